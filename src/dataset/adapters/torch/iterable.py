"""to_torch(): a dataset of tensors to iterate over, by itself or in the workers of a DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from dataset import DatasetIterator
from dataset.adapters.torch.device import Card, Copies, Target
from dataset.adapters.torch.parcel import packed, unpacked
from dataset.adapters.torch.passes import passes_over
from dataset.adapters.torch.tensors import TorchTensors
from dataset.closing import Closing
from dataset.dataset import Dataset, outgoing, shared_among
from dataset.errors import StateError
from dataset.plan.checks import require_int
from dataset.plan.epochs import with_epoch
from dataset.plan.node import inputs_first
from dataset.plan.plain import state_from_json, state_to_json

_STATE_VERSION = 2


class Pass(NamedTuple):
    """What a pass gives.

    Attributes:
        number: of the pass, which its random orders go by; None for a dataset in an element, which counts by itself.
        seed: common to the workers.
        part: which worker this is, and of how many.
    """

    number: int | None
    seed: int
    part: tuple[int, int]


class TorchIterableDataset(torch.utils.data.IterableDataset[Any]):
    """The elements of a Dataset, as tensors.

    Each worker of a DataLoader takes a part of its own of the elements; together they give all of them, once. A
    DataLoader with workers takes ``batch_size=None`` where the elements are batches.
    """

    def __init__(self, dataset: Dataset[Any], target: Target, *, is_inner: bool = False) -> None:
        """Hold a dataset. ``Dataset.to_torch`` calls it.

        Args:
            dataset: what to iterate over.
            target: where the tensors are wanted.
            is_inner: whether it comes out of an element, and so belongs whole to the worker that has it.
        """
        super().__init__()
        self._dataset = dataset
        self._target = target
        self._passes = None if is_inner else passes_over(dataset.plan)
        self._share: tuple[Any, Dataset[Any]] | None = None  # of the workers: which, and what that is

    def __iter__(self) -> TorchIterator:
        self._target.require_no_worker()
        return CudaIterator(self, self._copies()) if self._target.is_cuda else TorchIterator(self, self._tensors(), 0)

    def __len__(self) -> int:
        return len(self._dataset)

    def set_epoch(self, epoch: int) -> None:
        """Have the passes that begin from now on take the random orders of this epoch.

        Without it, they are numbered from 0 on. Workers that are already there hear of it, too.

        Args:
            epoch: at least 0.

        Raises:
            ValueError: if it is negative.
            TypeError: if it is no int.
        """
        number = require_int("set_epoch", "epoch", epoch, minimum=0)
        if self._passes is None:
            self._dataset = Dataset(with_epoch(self._dataset.plan, number))
        else:
            self._passes.choose(number)

    def begin(self) -> tuple[Pass, Any]:
        """A new pass in this process, and what ``go_on`` needs to know of it."""
        if self._passes is None:
            return Pass(None, 0, (0, 1)), None
        worker = torch.utils.data.get_worker_info()
        number, ticket = self._passes.begin(worker)
        part = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return Pass(number, _seed_of(self._dataset), part), ticket

    def go_on(self, ticket: Any, number: int | None) -> None:
        """Say that a pass is another one, from a saved state, so that the next one is behind it."""
        if self._passes is not None and number is not None:
            self._passes.go_on(torch.utils.data.get_worker_info(), ticket, number)

    def open(self, which: Pass, convert: Callable[[Any], Any], count: int) -> DatasetIterator[Any]:
        """An iterator over what a pass gives, converted, ``count`` elements before they are asked for."""
        share = self._shared(which)
        plan = share.plan if which.number is None else with_epoch(share.plan, which.number)
        dataset = share if plan is share.plan else Dataset(plan)
        return outgoing(dataset, lambda element: (convert(element), element), count, DatasetIterator)

    def _shared(self, which: Pass) -> Dataset[Any]:
        """This worker's part, the same in each pass, so that what it caches is kept."""
        worker, workers = which.part
        if workers == 1:
            return self._dataset
        if self._share is None or self._share[0] != (which.seed, which.part):
            part = self._dataset.shard_by_process(worker, workers, remainder="keep", seed=which.seed)
            self._share = (which.seed, which.part), shared_among(part, workers)
        return self._share[1]

    def _tensors(self) -> TorchTensors:
        return TorchTensors(self._target.make, self._inner)

    def _copies(self) -> Copies:
        return Copies(Card(self._target.device), self._inner)

    def _inner(self, dataset: Dataset[Any]) -> TorchIterableDataset:
        """What stands for a dataset in an element."""
        return TorchIterableDataset(dataset, self._target, is_inner=True)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_dataset": packed(self._dataset), "_share": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_dataset": unpacked(state["_dataset"])})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._dataset!r}>"


def _seed_of(dataset: Dataset[Any]) -> int:
    """A seed that all workers find: it comes of the numbers drawn for ops without one, which they were sent."""
    keys = [getattr(node, "key", None) or 0 for node in inputs_first(dataset.plan)]
    return sum(keys) % 2**63


class TorchIterator(Closing, Iterator[Any]):
    """One pass over a TorchIterableDataset. Closes like an iterator over a Dataset, and can say where it stands.

    Args:
        over: the dataset.
        convert: makes tensors of an element.
        count: how many elements to convert before they are asked for.
    """

    def __init__(self, over: TorchIterableDataset, convert: Callable[[Any], Any], count: int) -> None:
        self._over = over
        self._how = convert, count
        self._pass, self._ticket = over.begin()
        self._elements = over.open(self._pass, *self._how)

    def __next__(self) -> Any:
        return next(self._elements)

    def state_dict(self) -> dict[str, Any]:
        """The place behind the last element that was handed out, for a dataset built alike.

        Returns:
            Numbers, strings, lists and dicts: ``torch.load`` takes them with its default ``weights_only=True``.

        Raises:
            ClosedError: after ``close()``.
            StateError: if elements are held that are no plain data.
        """
        return {
            "version": _STATE_VERSION,
            "pass": [self._pass.number, self._pass.seed, *self._pass.part],
            # In a list it stays in one piece: StatefulDataLoader takes dicts apart.
            "iterator": [state_to_json(self._elements.state_dict())],
        }

    def load_state_dict(
        self, state: dict[str, Any], *, moved: Callable[[str], str] | Mapping[str, str] | None = None
    ) -> None:
        """Go to the place that ``state`` describes, from wherever the iterator stands. The passes after it follow.

        Args:
            state: what ``state_dict`` gave.
            moved: for files that have other names now; as of ``DatasetIterator.load_state_dict``.

        Raises:
            StateError: if the state is of another pipeline or another worker, or is damaged; the iterator stays where
                it was.
        """
        found = self._checked(state)
        elements = self._over.open(found, *self._how)
        try:
            elements.load_state_dict(state_from_json(state["iterator"][0]), moved=moved)
        except BaseException:
            elements.close()
            raise
        self._elements.close()
        self._elements, self._pass = elements, found
        self._over.go_on(self._ticket, found.number)

    def _checked(self, state: Any) -> Pass:
        if type(state) is not dict or "version" not in state:
            raise StateError(f"expected what state_dict() of an iterator over tensors returned, got {state!r:.100}")
        if state["version"] != _STATE_VERSION:
            raise StateError(f"the state has version {state['version']!r:.40}, this library reads {_STATE_VERSION}")
        which, place = state.get("pass"), state.get("iterator")
        if type(which) is not list or len(which) != 4 or type(place) is not list or len(place) != 1:
            raise StateError(f"expected what state_dict() of an iterator over tensors returned, got {state!r:.100}")
        number, seed, worker, workers = which
        if not (number is None or (type(number) is int and number >= 0)) or type(seed) is not int:
            raise StateError(f"the state is damaged: no pass has number {number!r:.40} and seed {seed!r:.40}")
        if (worker, workers) != self._pass.part:
            mine = "{} of {}".format(*self._pass.part)
            raise StateError(
                f"the state is of worker {worker} of {workers}, this is worker {mine}: resume with as many workers as "
                "there were"
            )
        return Pass(number, seed, (worker, workers))

    def stats(self) -> Any:
        """What each operator has done so far: see ``DatasetIterator.stats``."""
        return self._elements.stats()

    def close(self) -> None:
        """Stop background threads, wait for them, let go of files. May be called twice."""
        self._elements.close()


class CudaIterator(TorchIterator):
    """Has the next element on its way to the device when it hands out one."""

    def __init__(self, over: TorchIterableDataset, copies: Copies) -> None:
        super().__init__(over, copies.send, 1)
        self._copies = copies

    def __next__(self) -> Any:
        return self._copies.receive(next(self._elements))

"""Iterable datasets of tensors for ``to_torch()``, with and without the workers of a DataLoader."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Never

import torch

from dataset import DatasetIterator
from dataset.adapters.batch_ops import makes_batches
from dataset.adapters.torch.device import Card, Copies, Target
from dataset.adapters.torch.passes import passes_of
from dataset.adapters.torch.pickling import packed, unpacked
from dataset.adapters.torch.to_tensors import TorchTensors
from dataset.closing import Closing
from dataset.dataset import Dataset, device_iterator, shared_among
from dataset.errors import StateError
from dataset.plan.checks import missing_attribute, require_int
from dataset.plan.epochs import with_epoch
from dataset.plan.node import inputs_first
from dataset.plan.plain import state_from_json, state_to_json

_STATE_VERSION = 2


class Pass(NamedTuple):
    """The parameters of a pass over the elements.

    Attributes:
        number: the epoch, which determines random orders; None for a dataset in an element, which counts its own.
        seed: the seed that all workers share.
        part: the number of this worker, and the number of workers.
    """

    number: int | None
    seed: int
    part: tuple[int, int]


class HasTensors:
    """Base of the datasets of tensors, which have the elements of a Dataset and are sent to workers with it."""

    _dataset: Dataset[Any]
    _target: Target

    def __len__(self) -> int:
        return len(self._dataset)

    def _tensors(self) -> TorchTensors:
        return TorchTensors(self._target.make, self._inner)

    def _inner(self, dataset: Dataset[Any]) -> TorchIterableDataset:
        """Wrap a dataset that is part of an element."""
        return TorchIterableDataset(dataset, self._target, is_inner=True)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_dataset": packed(self._dataset)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_dataset": unpacked(state["_dataset"])})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._dataset!r}>"


class TorchIterableDataset(HasTensors, torch.utils.data.IterableDataset[Any]):
    """The elements of a Dataset, as tensors.

    Each worker of a DataLoader returns its own part of the elements; together they return each element once. If the
    elements are batches, give the DataLoader ``batch_size=None``.
    """

    def __init__(self, dataset: Dataset[Any], target: Target, *, is_inner: bool = False) -> None:
        """Wrap a dataset. ``Dataset.to_torch`` calls it.

        Args:
            dataset: the dataset.
            target: the memory for the tensors.
            is_inner: whether the dataset is part of an element, so that one worker reads all of it.
        """
        super().__init__()
        self._dataset = dataset
        self._target = target
        self._passes = None if is_inner else passes_of(dataset.plan)
        self._share: tuple[Any, Dataset[Any]] | None = None  # the key of this worker's part, and the part

    def __iter__(self) -> TorchIterator:
        self._target.require_no_worker()
        self._warn_of_nested_batches(sys._getframe(1).f_locals.get("self"))  # noqa: SLF001  # the documented way
        return CudaIterator(self, self._copies()) if self._target.is_cuda else TorchIterator(self, self._tensors(), 0)

    def _warn_of_nested_batches(self, caller: Any) -> None:
        """Warn if the caller is a DataLoader that makes batches of batches. Its fetcher has the attribute."""
        worker = torch.utils.data.get_worker_info()
        is_first = worker is None or worker.id == 0
        if is_first and getattr(caller, "auto_collation", False) is True and makes_batches(self._dataset.plan):
            warnings.warn(
                "DataLoader(dataset.to_torch()) makes batches of the elements, which are batches already: pass "
                "batch_size=None to it, or leave batch() out of the dataset",
                stacklevel=3,
            )

    def set_epoch(self, epoch: int) -> None:
        """Use the random orders of this epoch for all passes that start from now on.

        Without this call, passes are numbered from 0. It also takes effect in workers that are already running.

        Args:
            epoch: at least 0.

        Raises:
            ValueError: if it is negative.
            TypeError: if it is not an int.
        """
        number = require_int("set_epoch", "epoch", epoch, minimum=0)
        if self._passes is None:
            self._dataset = Dataset(with_epoch(self._dataset.plan, number))
        else:
            self._passes.choose(number)

    if not TYPE_CHECKING:  # type checkers report unknown names

        def __getattr__(self, name: str) -> Never:
            raise missing_attribute(self, name)

    def begin(self) -> tuple[Pass, Any]:
        """Start a new pass in this process; return its parameters and a ticket for ``go_on``."""
        if self._passes is None:
            return Pass(None, 0, (0, 1)), None
        worker = torch.utils.data.get_worker_info()
        number, ticket = self._passes.begin(worker)
        part = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return Pass(number, _seed_of(self._dataset), part), ticket

    def go_on(self, ticket: Any, number: int | None) -> None:
        """Set the number of a pass that is restored from a saved state, so that the next pass follows it."""
        if self._passes is not None and number is not None:
            self._passes.go_on(torch.utils.data.get_worker_info(), ticket, number)

    def open(self, which: Pass, convert: Callable[[Any], Any], count: int) -> DatasetIterator[Any]:
        """Return an iterator over the converted elements of a pass that prefetches ``count`` elements."""
        share = self._shared(which)
        plan = share.plan if which.number is None else with_epoch(share.plan, which.number)
        dataset = share if plan is share.plan else Dataset(plan)
        return device_iterator(dataset, lambda element: (convert(element), element), count, DatasetIterator)

    def _shared(self, which: Pass) -> Dataset[Any]:
        """Return this worker's part. It is the same object in each pass, so that its caches are kept."""
        worker, workers = which.part
        if workers == 1:
            return self._dataset
        if self._share is None or self._share[0] != (which.seed, which.part):
            part = self._dataset.shard_by_process(worker, workers, remainder="keep", seed=which.seed)
            self._share = (which.seed, which.part), shared_among(part, workers, torch.utils.data.get_worker_info())
        return self._share[1]

    def _copies(self) -> Copies:
        return Copies(Card(self._target.device), self._inner)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_share": None}


def _seed_of(dataset: Dataset[Any]) -> int:
    """Return a seed that all workers agree on: it is derived from the plan's random states, which are sent to them."""
    return sum(node.random.key for node in inputs_first(dataset.plan) if node.random is not None) % 2**63


class TorchIterator(Closing, Iterator[Any]):
    """Iterator over a TorchIterableDataset. It has the ``close`` and the state methods of a DatasetIterator.

    Args:
        over: the dataset.
        convert: converts an element to tensors.
        count: how many converted elements to prefetch.
    """

    def __init__(self, over: TorchIterableDataset, convert: Callable[[Any], Any], count: int) -> None:
        self._over = over
        self._how = convert, count
        self._pass, self._ticket = over.begin()
        self._elements = over.open(self._pass, *self._how)

    def __next__(self) -> Any:
        return next(self._elements)

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last element that was returned, for a dataset built in the same way.

        Returns:
            Numbers, strings, lists and dicts: ``torch.load`` reads them with its default ``weights_only=True``.

        Raises:
            ClosedError: after ``close()``.
            StateError: if buffered elements are not plain data.
        """
        return {
            "version": _STATE_VERSION,
            "pass": [self._pass.number, self._pass.seed, *self._pass.part],
            # A list, because StatefulDataLoader splits dicts.
            "iterator": [state_to_json(self._elements.state_dict())],
        }

    def load_state_dict(
        self, state: dict[str, Any], *, moved: Callable[[str], str] | Mapping[str, str] | None = None
    ) -> None:
        """Move to the position that ``state`` describes. Later passes are numbered from that of the state.

        Args:
            state: the result of ``state_dict``.
            moved: for files that have been renamed; as in ``DatasetIterator.load_state_dict``.

        Raises:
            StateError: if the state is of another pipeline or another worker, or is damaged. The iterator does not
                move.
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
        if type(state) is dict and "fingerprint" in state:
            raise StateError(
                "the state is of an iterator over a Dataset: load it into iter(dataset), or save the state of an "
                "iterator over dataset.to_torch() instead"
            )
        if type(state) is not dict or "version" not in state:
            raise StateError(f"expected what state_dict() of an iterator over tensors returned, got {state!r:.100}")
        if state["version"] != _STATE_VERSION:
            raise StateError(f"the state has version {state['version']!r:.40}, but this library reads {_STATE_VERSION}")
        which, place = state.get("pass"), state.get("iterator")
        if type(which) is not list or len(which) != 4 or type(place) is not list or len(place) != 1:
            raise StateError(f"expected what state_dict() of an iterator over tensors returned, got {state!r:.100}")
        number, seed, worker, workers = which
        if not (number is None or (type(number) is int and number >= 0)) or type(seed) is not int:
            raise StateError(f"the state is damaged: invalid pass number {number!r:.40} or seed {seed!r:.40}")
        if (worker, workers) != self._pass.part:
            mine = "{} of {}".format(*self._pass.part)
            raise StateError(
                f"the state is of worker {worker} of {workers}, but this is worker {mine}: resume with the same number "
                "of workers"
            )
        return Pass(number, seed, (worker, workers))

    def stats(self) -> Any:
        """Return what each operator has done so far: see ``DatasetIterator.stats``."""
        return self._elements.stats()

    def headspace(self, seconds: float = 10.0) -> Any:
        """Measure how fast your loop would be if its batches cost nothing: see ``DatasetIterator.headspace``."""
        return DatasetIterator.headspace(self, seconds)  # type: ignore[arg-type]  # which only calls next()

    def close(self) -> None:
        """Stop background threads, wait for them and close files. It may be called repeatedly."""
        self._elements.close()


class CudaIterator(TorchIterator):
    """Iterator that copies the next element to the device while the caller uses the current one."""

    def __init__(self, over: TorchIterableDataset, copies: Copies) -> None:
        super().__init__(over, copies.send, 1)
        self._copies = copies

    def __next__(self) -> Any:
        return self._copies.receive(next(self._elements))

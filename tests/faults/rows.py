"""The pipelines: how each is built, and which elements it returns.

Each calls the user function for the numbers from 0 to 23. Elements are compared as tuples of these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataset import Dataset, TFRecordDataset, io
from faults.functions import UserFunction

COUNT = 24
Group = tuple[int, ...]
ERROR: Group = ()
"""Marks the place of an element that failed."""


@dataclass(frozen=True)
class Row:
    """A kind of pipeline.

    Attributes:
        build: builds an iterable from the folder of the cell and the user function.
        expected: the numbers in each element, in order.
        calls_in_background: whether the function is called outside of the thread that calls ``next``.
        has_processes: whether the function is called in worker processes.
        has_launcher: whether the library uses a process that starts the workers.
        exit_takes_place: whether SystemExit of the function takes the place of its element; otherwise the function is
            called for the element again.
        keeps_passes: whether later passes return the elements of the first complete one.
        writes: whether elements are written to files, in the folder ``out``.
        is_iterator: whether ``iter`` returns an iterator of the library.
        length_of_inputs: the number of elements of each inner dataset, if there are several. If one cannot be opened,
            an error takes the place of all its elements.
        allocates: builds a pipeline in which the library allocates more memory; None for ``build``.
    """

    build: Callable[[Path, UserFunction], Any]
    expected: tuple[Group, ...] = tuple((number,) for number in range(COUNT))
    calls_in_background: bool = False
    has_processes: bool = False
    has_launcher: bool = False
    exit_takes_place: bool = False
    keeps_passes: bool = False
    writes: bool = False
    is_iterator: bool = True
    needs_torch: bool = False
    length_of_inputs: int = 1
    allocates: Callable[[Path, UserFunction], Any] | None = None
    allocated: tuple[Group, ...] = ()

    def place_of(self, value: int) -> int:
        """Return the place of the element with this number."""
        return next(place for place, group in enumerate(self.expected) if value in group)

    def with_error(self, value: int) -> tuple[Group, ...]:
        """Return the outcomes if the element with this number fails."""
        if self.expected is PAIRS:
            return in_pairs(value)
        if self.length_of_inputs > 1 and self.calls_in_background:
            return in_turn(self.length_of_inputs, value)
        return tuple(ERROR if value in group else group for group in self.expected)


def in_pairs(failing: int = -1) -> tuple[Group, ...]:
    """Return the outcomes of batches of two. A number that fails drops the numbers of its batch so far."""
    found: list[Group] = []
    batch: Group = ()
    for number in range(COUNT):
        batch = (*batch, number)
        if number == failing or len(batch) == 2:
            found.append(ERROR if number == failing else batch)
            batch = ()
    return (*found, batch) if batch else tuple(found)


PAIRS = in_pairs()


def in_turn(length: int, failing: int = -1) -> tuple[Group, ...]:
    """Return the outcomes of interleaving datasets of ``length`` numbers each, with a cycle length of three.

    A number that fails is ``ERROR``, followed in the same turn by the next number of its dataset.
    """
    inputs = [list(range(start, start + length)) for start in range(0, COUNT, length)]
    cycle: list[list[int] | None] = [None, None, None]
    found: list[Group] = []
    while inputs or any(cycle):
        for place in range(3):
            dataset = cycle[place]
            if dataset is None:
                dataset = inputs.pop(0) if inputs else []
            is_over = False
            while dataset and not is_over:
                number = dataset.pop(0)
                is_over = number != failing
                found.append((number,) if is_over else ERROR)
            cycle[place] = dataset if is_over else None  # it has ended, so its turn ends without an element
    return tuple(found)


def numbers(function: UserFunction) -> Dataset:
    """Return the numbers, mapped by the function."""
    return Dataset.range(COUNT).map(function)


def in_threads(folder: Path, function: UserFunction) -> Dataset:
    return Dataset.range(COUNT).map(function, num_parallel_calls=3)


@dataclass(frozen=True)
class FourFrom:
    """Return a dataset of four numbers, mapped by the function."""

    function: UserFunction

    def __call__(self, x: Any) -> Dataset:
        return Dataset.range(4 * x, 4 * x + 4).map(self.function)


@dataclass(frozen=True)
class Saved:
    """A dataset that is saved and loaded when it is iterated over."""

    dataset: Dataset
    path: str

    def __iter__(self) -> Iterator[Any]:
        self.dataset.save(self.path)
        yield from Dataset.load(self.path)


def from_records(folder: Path, function: UserFunction) -> Dataset:
    paths = [str(folder / f"{number}.tfrecord") for number in range(3)]
    for start, path in zip(range(0, COUNT, 8), paths, strict=True):
        if not Path(path).exists():
            with io.TFRecordWriter(path) as writer:
                for number in range(start, start + 8):
                    writer.write(b"%d" % number)
    return TFRecordDataset(paths, num_parallel_reads=3).map(function)


def to_torch(folder: Path, function: UserFunction) -> Any:
    import torch
    from torch.utils.data import DataLoader

    # The seconds between two checks of a DataLoader for dead workers; the default is 5.
    torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.5
    # Arrays are sent through a pipe; the file descriptors used for tensors are lost when PyTorch's workers are killed.
    tensors = numbers(function).to_torch()
    return DataLoader(tensors, None, num_workers=2, multiprocessing_context="fork", collate_fn=torch.Tensor.numpy)


ROWS: dict[str, Row] = {
    "map threads": Row(
        in_threads,
        calls_in_background=True,
        exit_takes_place=True,
        allocates=lambda folder, function: in_threads(folder, function).batch(2),
        allocated=PAIRS,
    ),
    "map processes": Row(
        lambda folder, function: Dataset.range(COUNT).map(function, num_parallel_calls=2, executor="process"),
        calls_in_background=True,
        has_processes=True,
        has_launcher=True,
        exit_takes_place=True,
    ),
    "parallel interleave": Row(
        lambda folder, function: Dataset.range(6).interleave(FourFrom(function), 3, num_parallel_calls=3),
        in_turn(4),
        calls_in_background=True,
        length_of_inputs=4,
    ),
    "parallel batch": Row(
        lambda folder, function: numbers(function).batch(2, num_parallel_calls=2), PAIRS, calls_in_background=True
    ),
    "prefetch": Row(
        lambda folder, function: numbers(function).prefetch(3),
        calls_in_background=True,
        allocates=lambda folder, function: numbers(function).batch(2).prefetch(3),
        allocated=PAIRS,
    ),
    "cache memory": Row(lambda folder, function: numbers(function).cache(), keeps_passes=True),
    "cache file": Row(
        lambda folder, function: numbers(function).cache(str(folder / "out")), keeps_passes=True, writes=True
    ),
    "snapshot": Row(
        lambda folder, function: numbers(function).snapshot(str(folder / "out")), keeps_passes=True, writes=True
    ),
    "save": Row(lambda folder, function: Saved(numbers(function), str(folder / "out")), writes=True, is_iterator=False),
    "TFRecord reads": Row(from_records, in_turn(8), length_of_inputs=8),
    "to_torch in DataLoader workers": Row(
        to_torch, calls_in_background=True, has_processes=True, is_iterator=False, needs_torch=True
    ),
}

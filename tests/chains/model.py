"""The model: a dataset as a function that opens an iterator over outcomes, going one element at a time.

An outcome is an element as Python values, or a Failure in the place of an element that fails. Nothing here knows of
chunks, plans, demand or iterators that can be saved.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dataset import RaggedTensor, SparseTensor

Open: TypeAlias = Callable[[], Iterator[Any]]
LENGTH_MAX = 1000
END = object()  # what next() gives behind the last outcome


@dataclass(frozen=True)
class Failure:
    """An element that fails, and the text of its exception; of the library's own exceptions, the type."""

    text: str


KNOWN_DIFFERENCES: list[str] = []


@contextmanager
def differences() -> Iterator[list[str]]:
    """What tf.data does otherwise on purpose of ours, noted by the models that are run in this context."""
    KNOWN_DIFFERENCES.clear()
    yield KNOWN_DIFFERENCES


class EndlessError(Exception):
    """The model of a pipeline came to no end, which says that the pipeline hangs or nearly so."""


@dataclass(frozen=True)
class Step:
    """One op: what it is called, how it is applied to a dataset of a library, and what it makes of outcomes."""

    name: str
    apply: Callable[[Any, Any], Any]
    model: Callable[[Open], Open]


@dataclass(frozen=True, repr=False)
class Pipeline:
    """A source and steps. ``make`` builds it anew each time, ``model`` says what must come out."""

    steps: tuple[Step, ...]
    kind: Any

    def stages(self, lib: Any) -> list[Any]:
        """The dataset after each step."""
        found: list[Any] = [None]
        for step in self.steps:
            found.append(step.apply(lib, found[-1]))
        return found[1:]

    def make(self, lib: Any) -> Any:
        return self.stages(lib)[-1]

    def open(self) -> Open:
        return opened(self.steps, list_of([]))

    def model(self, limit: int | None = None) -> list[Any]:
        """What must come out; up to ``limit`` outcomes of it."""
        return list(itertools.islice(self.open()(), limit))

    def prefixes(self) -> list[Pipeline]:
        """The pipeline as it was after each step. Their kind is not known."""
        return [Pipeline(self.steps[:length], None) for length in range(1, len(self.steps) + 1)]

    def __repr__(self) -> str:
        return " -> ".join(step.name for step in self.steps)


def opened(steps: tuple[Step, ...], source: Open) -> Open:
    """The model of several steps."""
    for step in steps:
        source = _bounded(step.model(source))
    return source


def _bounded(source: Open) -> Open:
    def run() -> Iterator[Any]:
        for number, outcome in enumerate(source()):
            if number == LENGTH_MAX:
                raise EndlessError
            yield outcome

    return run


def list_of(outcomes: list[Any]) -> Open:
    """The model of a dataset that holds these."""
    return lambda: iter(outcomes)


def streaming(run: Callable[[Iterator[Any]], Iterator[Any]]) -> Callable[[Open], Open]:
    """The model of an op that goes through its input once."""
    return lambda source: lambda: run(source())


def each(function: Callable[[Any], Any]) -> Callable[[Open], Open]:
    """The model of an op that turns each element into some outcomes, and passes failures on."""

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        for outcome in outcomes:
            yield from [outcome] if isinstance(outcome, Failure) else function(outcome)

    return streaming(run)


def plain(element: Any) -> Any:
    """An element as Python values: numbers, bytes, lists for arrays, tuples, dicts; a Failure for an exception."""
    if isinstance(element, Exception):
        return Failure(str(element) if type(element) is ValueError else type(element).__name__)
    if isinstance(element, tuple):
        return tuple(map(plain, element))
    if isinstance(element, dict):
        return {key: plain(part) for key, part in element.items()}
    if isinstance(element, RaggedTensor):
        return element.to_list()
    if isinstance(element, SparseTensor):
        return element.to_dense().tolist()
    return element.tolist() if isinstance(element, np.ndarray | np.generic) else element

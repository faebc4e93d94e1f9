"""The model: a dataset is a function that opens an iterator over outcomes, one element at a time.

An outcome is an element as Python values, or a Failure for an element that failed. The model has no chunks, plans,
demand or iterator states.
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
END = object()  # the result of next() after the last outcome


@dataclass(frozen=True)
class Failure:
    """An element that fails, and the text of its exception; of the library's own exceptions, the type."""

    text: str


KNOWN_DIFFERENCES: list[str] = []


@contextmanager
def differences() -> Iterator[list[str]]:
    """Recorder of intended differences from tf.data, filled by the models that run in this context."""
    KNOWN_DIFFERENCES.clear()
    yield KNOWN_DIFFERENCES


class EndlessError(Exception):
    """The model of a pipeline did not end, so the pipeline would hang or take very long."""


@dataclass(frozen=True)
class Step:
    """One op: its text, the function that applies it to a dataset of a library, and its model."""

    name: str
    apply: Callable[[Any, Any], Any]
    model: Callable[[Open], Open]


@dataclass(frozen=True, repr=False)
class Pipeline:
    """A source and steps. ``make`` builds a new dataset each time; ``model`` returns the expected outcomes."""

    steps: tuple[Step, ...]
    kind: Any

    def stages(self, lib: Any) -> list[Any]:
        """Return the dataset after each step."""
        found: list[Any] = [None]
        for step in self.steps:
            found.append(step.apply(lib, found[-1]))
        return found[1:]

    def make(self, lib: Any) -> Any:
        return self.stages(lib)[-1]

    def open(self) -> Open:
        return opened(self.steps, list_of([]))

    def model(self, limit: int | None = None) -> list[Any]:
        """Return the expected outcomes, at most ``limit``."""
        return list(itertools.islice(self.open()(), limit))

    def prefixes(self) -> list[Pipeline]:
        """Return the pipeline after each step. The kinds of their elements are not known."""
        return [Pipeline(self.steps[:length], None) for length in range(1, len(self.steps) + 1)]

    def __repr__(self) -> str:
        return " -> ".join(step.name for step in self.steps)


def opened(steps: tuple[Step, ...], source: Open) -> Open:
    """Return the model of several steps."""
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
    """Return the model of a dataset of these elements."""
    return lambda: iter(outcomes)


def streaming(run: Callable[[Iterator[Any]], Iterator[Any]]) -> Callable[[Open], Open]:
    """Return the model of an op that reads its input once."""
    return lambda source: lambda: run(source())


def each(function: Callable[[Any], Any]) -> Callable[[Open], Open]:
    """Return the model of an op that converts each element to any number of outcomes and passes failures on."""

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        for outcome in outcomes:
            yield from [outcome] if isinstance(outcome, Failure) else function(outcome)

    return streaming(run)


def plain(element: Any) -> Any:
    """Convert an element to Python values: numbers, bytes, lists for arrays, tuples, dicts; exceptions to Failures."""
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

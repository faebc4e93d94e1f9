"""The model: a dataset is a function that opens an iterator over outcomes, one element at a time.

An outcome is an element as Python values, or a Failure for an element that failed. The model has no chunks, plans,
demand or iterator states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dataset import RaggedTensor, SparseTensor

Open: TypeAlias = Callable[[], Iterator[Any]]
Model: TypeAlias = Callable[[Open], Open]
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


def bounded(source: Open) -> Open:
    """Return a model that raises EndlessError where a pipeline is too long."""

    def run() -> Iterator[Any]:
        for number, outcome in enumerate(source()):
            if number == LENGTH_MAX:
                raise EndlessError
            yield outcome

    return run


def list_of(outcomes: list[Any]) -> Open:
    """Return the model of a dataset of these elements."""
    return lambda: iter(outcomes)


def streaming(run: Callable[[Iterator[Any]], Iterator[Any]]) -> Model:
    """Return the model of an op that reads its input once."""
    return lambda source: lambda: run(source())


def each(function: Callable[[Any], Any]) -> Model:
    """Return the model of an op that converts each element to any number of outcomes and passes failures on."""

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        for outcome in outcomes:
            yield from [outcome] if isinstance(outcome, Failure) else function(outcome)

    return streaming(run)


def parts(element: Any) -> tuple[Any, ...]:
    """Return the arguments of a function of an element."""
    return element if isinstance(element, tuple) else (element,)


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

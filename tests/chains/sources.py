"""Sources of pipelines: a step that ignores its input, and the kind of its elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chains.kinds import INT, ROW, TEXT, Leaf, batched, spec, stack
from chains.model import Failure, Open, Step, list_of

SourceStrategy = st.SearchStrategy[tuple[Step, Any]]
SIZES = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 9, 12, 17, 24, 0])
TEXTS = [b"", b"a", b"two", b"nul\0", b"\xff\xfe", b"a"]


def source(name: str, make: Callable[[Any], Any], outcomes: list[Any]) -> Step:
    return Step(name, lambda lib, _: make(lib), lambda _: list_of(outcomes))


def rows_of(kind: Any, n: int) -> list[Any]:
    """Draw ``n`` elements of a dense kind, as Python values."""
    if isinstance(kind, dict):
        columns = [rows_of(part, n) for part in kind.values()]
        return [dict(zip(kind, row, strict=True)) for row in zip(*columns, strict=True)]
    if isinstance(kind, tuple):
        return list(zip(*[rows_of(part, n) for part in kind], strict=True))
    if kind.base == "text":
        return [TEXTS[i % len(TEXTS)] for i in range(n)]
    return list(range(n)) if not kind.rank else [[3 * i, 3 * i + 1, -i] for i in range(n)]


def arrays_of(lib: Any, kind: Any, n: int) -> Any:
    """Return the elements stacked in arrays of a library."""
    if isinstance(kind, dict):
        return {key: arrays_of(lib, part, n) for key, part in kind.items()}
    if isinstance(kind, tuple):
        return tuple(arrays_of(lib, part, n) for part in kind)
    dtype = object if kind.base == "text" else np.int64
    return lib.const(np.array(rows_of(kind, n), dtype).reshape((n, *(3,) * kind.rank)), dtype)


def _range(n: int) -> tuple[Step, Any]:
    return source(f"range({n})", lambda lib: lib.Dataset.range(n), list(range(n))), INT


def _steps(start: int, stop: int, step: int) -> tuple[Step, Any]:
    name = f"range({start}, {stop}, {step})"
    return source(name, lambda lib: lib.Dataset.range(start, stop, step), list(range(start, stop, step))), INT


def _slices(kind: Any, n: int) -> tuple[Step, Any]:
    def make(lib: Any) -> Any:
        return lib.Dataset.from_tensor_slices(arrays_of(lib, kind, n))

    return source(f"slices({_shown(kind)}, {n})", make, rows_of(kind, n)), kind


def _tensors(kind: Any) -> tuple[Step, Any]:
    def make(lib: Any) -> Any:
        return lib.Dataset.from_tensors(arrays_of(lib, kind, 4))

    return source(f"tensors({_shown(kind)})", make, [stack(kind, rows_of(kind, 4))]), batched(kind)


def _generator(n: int, broken: bool) -> tuple[Step, Any]:
    """A generator of numbers; if it raises, the outcomes are the error and then the end."""

    def generate() -> Iterator[Any]:
        yield from range(n)
        if broken:
            raise ValueError("over")

    def make(lib: Any) -> Any:
        return lib.Dataset.from_generator(generate, output_signature=spec(lib, INT))

    outcomes = [*range(n), Failure("over")] if broken else list(range(n))
    return source(f"{'broken_' * broken}generator({n})", make, outcomes), INT


def _row_generator(n: int) -> tuple[Step, Any]:
    """A generator of pairs of a text and a row of varying length."""
    kind = (TEXT, Leaf("int", 1))

    def generate() -> Iterator[Any]:
        for i in range(n):
            yield TEXTS[i % len(TEXTS)], np.full(i % 3 + 1, i)

    def make(lib: Any) -> Any:
        return lib.Dataset.from_generator(generate, output_signature=spec(lib, kind))

    outcomes = [(TEXTS[i % len(TEXTS)], [i] * (i % 3 + 1)) for i in range(n)]
    return source(f"row_generator({n})", make, outcomes), kind


def _sparse(n: int) -> tuple[Step, Any]:
    """Rows of three places, one of them filled."""

    def make(lib: Any) -> Any:
        indices = [[i, i % 3] for i in range(n)]
        return lib.Dataset.from_tensor_slices(lib.sparse(indices, np.arange(n) + 1, [n, 3]))

    rows = [[(i + 1) * (i % 3 == place) for place in range(3)] for i in range(n)]
    return source(f"sparse({n})", make, rows), Leaf("sparse", 1)


def _ragged(n: int) -> tuple[Step, Any]:
    """Ragged tensors of one to three rows, each of one to four numbers."""
    elements = [[list(range(i, i + (i + row) % 4 + 1)) for row in range(i % 3 + 1)] for i in range(n)]

    def make(lib: Any) -> Any:
        return lib.Dataset.from_tensor_slices(lib.ragged(elements))

    return source(f"ragged({n})", make, elements), Leaf("ragged", 2)


def _endless(n: int) -> tuple[Step, Any]:
    def model(_: Open) -> Open:
        return lambda: itertools.cycle(range(n))

    return Step(f"range({n}) -> repeat()", lambda lib, _: lib.Dataset.range(n).repeat(), model), INT


def _shown(kind: Any) -> str:
    if isinstance(kind, Leaf):
        return kind.base + "s" * kind.rank
    if isinstance(kind, dict):
        return "{" + ", ".join(f"{key}: {_shown(part)}" for key, part in kind.items()) + "}"
    return "(" + ", ".join(map(_shown, kind)) + ")"


_KINDS = st.sampled_from([INT, TEXT, ROW, (INT, TEXT), {"a": INT, "b": TEXT}, (INT, {"b": ROW, "c": (TEXT,)})])

FINITE: list[SourceStrategy] = [
    st.builds(_range, SIZES),
    st.builds(_slices, st.just(INT), SIZES),
    st.builds(_slices, _KINDS, SIZES),
    st.builds(_generator, SIZES, st.booleans()),
    st.builds(_steps, st.integers(-5, 5), st.integers(-9, 9), st.sampled_from([1, 2, 3, -1, -2])),
    st.builds(_row_generator, SIZES),
    st.builds(_tensors, _KINDS),
    st.builds(_sparse, st.integers(1, 9)),
    st.builds(_ragged, st.integers(1, 9)),
]
INFINITE: list[SourceStrategy] = [st.builds(_endless, st.integers(1, 9))]

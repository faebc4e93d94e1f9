"""Random results of functions, for the row loop: most are like the first one, and the user keeps some."""

from __future__ import annotations

import contextlib
import random
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dataset.runtime.chunks import ownership

Point = namedtuple("Point", "x y")  # noqa: PYI024  # its fields have no types

KEPT = np.arange(6.0)


def _array(rng: random.Random) -> Any:
    shape = rng.choice([(3,), (3,), (2, 3), (rng.randrange(4),), ()])
    array = np.full(shape, rng.randrange(9), rng.choice(["f4", "f4", "i8", ">i2", "m8[s]", "O", "U1", "?", "c16"]))
    return rng.choice([array, array, array.T, array[..., ::-1] if array.ndim else array])


LEAVES: dict[str, Callable[[random.Random], Any]] = {
    "int": lambda rng: rng.choice([rng.randrange(9), rng.randrange(9), -(2**63), 2**63, 2**64]),
    "float": lambda rng: rng.random(),
    "bool": lambda rng: rng.random() < 0.5,
    "complex": lambda rng: 1j * rng.random(),
    "number": lambda rng: rng.choice([np.float32, np.int8, np.bool_, np.longdouble, np.complex128])(rng.randrange(2)),
    "text": lambda rng: rng.choice(["a", "b" * rng.randrange(9), "\ud800"]),
    "bytes": lambda rng: rng.randbytes(rng.randrange(9)),
    "ints": lambda rng: [rng.randrange(9)] * rng.randrange(5) + rng.choice([[], [], [], [True], [1.5], [2**63]]),
    "floats": lambda rng: [rng.random()] * rng.randrange(1, 5) + rng.choice([[], [], [], [1]]),
    "texts": lambda rng: ["a"] * rng.randrange(3),
    "none": lambda rng: None,
    "array": _array,
    "vector": lambda rng: np.full(3, rng.random()),
    "image": lambda rng: np.full((2, 2), rng.randrange(9), np.uint8),
    "strided": lambda rng: np.arange(6.0).reshape(2, 3).T,
    "view": lambda rng: np.full(rng.randrange(5), 2.0).reshape(1, -1),
    "kept": lambda rng: rng.choice([KEPT, KEPT[:3], KEPT.reshape(2, 3), KEPT]),
    "memory": lambda rng: np.frombuffer(b"abcd", np.uint8),
    "dates": lambda rng: np.datetime64(rng.randrange(99), "D"),
}


def _form(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.choice(["leaf", "leaf", "leaf", "tuple", "dict", "point"] if depth < 3 else ["leaf"])
    parts = [_form(rng, depth + 1) for _ in range(2)] if kind != "leaf" else rng.choice(list(LEAVES))
    return kind, parts


def _result(rng: random.Random, form: Any, odd: float) -> Any:
    if rng.random() < odd:
        form = _form(rng)
    kind, parts = form
    if kind == "leaf":
        return LEAVES[parts](rng)
    values = [_result(rng, part, odd) for part in parts]
    if kind == "dict":
        items = list(zip("ab", values, strict=True))
        return dict(items if rng.random() < 0.8 else items[::-1])
    return {"tuple": tuple, "point": lambda parts: Point(*parts)}[kind](values)


def results(rng: random.Random, count: int) -> list[Any]:
    """Return random results; exceptions among them are to be raised."""
    form, odd = _form(rng), rng.choice([0, 0, 0, 0.02, 0.2])
    return [ValueError(str(i)) if rng.random() < odd / 5 else _result(rng, form, odd) for i in range(count)]


def give(result: Any) -> Any:
    """Return a result, or raise it."""
    if isinstance(result, Exception):
        raise result
    return result


@contextlib.contextmanager
def without_row_loop() -> Iterator[None]:
    """Use the twin of the row loop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ownership, "row_loop", lambda: None)
        yield

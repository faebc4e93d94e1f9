"""What the expressions of chains call: functions of elements, and the names of either library.

The functions are written once. Those that run in a graph of TensorFlow are the same code with the names of that
library, which replace a few of the functions here.
"""

from __future__ import annotations

import functools
import time
import types
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dataset
from dataset import Dataset, Options, RaggedTensor, SparseTensor, TensorSpec, io
from support.libraries import Ours
from support.resume_files import Files

lib: Any = Ours()

# Functions of elements, which take the parts of a tuple as arguments


def number(*element: Any) -> Any:
    """Return a number that depends on all parts of an element of any kind, also of one of the model."""
    return np.int64(_total(element) % 10007)


def _total(value: Any) -> int:
    if isinstance(value, dict):
        value = tuple(value[key] for key in sorted(value))
    if isinstance(value, tuple):
        return sum((place + 1) * _total(part) for place, part in enumerate(value))
    if isinstance(value, bytes):
        return zlib.crc32(value) % 10007
    if isinstance(value, RaggedTensor):
        value = value.flat_values
    if isinstance(value, SparseTensor):
        value = value.values
    if isinstance(value, list) or (isinstance(value, np.ndarray) and value.dtype == object):
        return sum(map(_total, value if isinstance(value, list) else value.ravel()))
    return int(np.sum(value))


def after(checked: Any, value: Any) -> Any:
    """Return ``value`` once ``checked`` is known."""
    return value


def unchanged(*element: Any) -> Any:
    return element[0] if len(element) == 1 else element


def text(*element: Any) -> Any:
    return lib.call(lambda n: b"%d" % n, dataset.TensorSpec((), bytes))(number(*element))


def half(*element: Any) -> Any:
    """Return half of the number, computed in plain Python."""
    return lib.call(lambda n: np.int64(int(n) // 2), dataset.TensorSpec((), np.int64))(number(*element))


def row(*element: Any) -> Any:
    """Return a row of one to three numbers."""
    return lib.fill([number(*element) % 3 + 1], number(*element))


def pair(*element: Any) -> Any:
    return number(*element), text(*element)


def record(*element: Any) -> Any:
    return {"n": number(*element), "row": row(*element)}


def every(divisor: int, rest: int) -> Callable[..., Any]:
    """Return a predicate that is true for one of ``divisor`` elements."""
    return lambda *element: number(*element) % divisor == rest


def others(divisor: int, rest: int) -> Callable[..., Any]:
    return lambda *element: number(*element) % divisor != rest


def checked(divisor: int, rest: int) -> Callable[..., Any]:
    """Return ``number``, but it fails for one of ``divisor`` elements."""

    def check(n: Any) -> Any:
        if n % divisor == rest:
            raise ValueError(f"bad {n}")
        return n

    return lambda *element: lib.call(check, dataset.TensorSpec((), np.int64))(number(*element))


def failing(divisor: int, rest: int) -> Callable[..., Any]:
    """Return the identity, which fails for one of ``divisor`` elements."""
    check = checked(divisor, rest)
    return lambda *element: after(check(*element), unchanged(*element))


def noisy(draws: Any, *element: Any) -> Any:
    return number(*element) * 10 + draws.integers(10)


def running_total(total: Any, element: Any) -> Any:
    total = (total + number(element)) % 1009
    return total, total


def slow(x: Any) -> Any:
    """Return the argument after a time that is enough for a cache to choose this place."""
    time.sleep(0.0005)
    return x


# Datasets and their arguments

BYTE_ORDERS = ["<i8", ">i8"]
"""Elements have the native one, whatever the order of the arrays that they come from."""

TEXTS = [b"", b"a", b"two", b"nul\0", b"\xff\xfe", b"a"]


def texts(n: int) -> Any:
    return lib.const(np.array([TEXTS[i % len(TEXTS)] for i in range(n)], object), object)


def rows(n: int) -> Any:
    return np.array([[3 * i, 3 * i + 1, -i] for i in range(n)], BYTE_ORDERS[n % 2]).reshape(n, 3)


def sparse(n: int) -> Any:
    """Return ``n`` rows of three places, one of them filled."""
    return lib.sparse([[i, i % 3] for i in range(n)], np.arange(n) + 1, [n, 3])


def ragged(n: int) -> Any:
    """Return ``n`` elements of one to three rows, each of one to four numbers."""
    return lib.ragged([[list(range(i, i + (i + row) % 4 + 1)) for row in range(i % 3 + 1)] for i in range(n)])


def numbers_in(values: Any, *, fails: bool = False) -> Any:
    """Return a dataset of numbers from a generator, which may raise an error at the end."""

    def generate() -> Iterator[Any]:
        yield from np.array(values)
        if fails:
            raise ValueError("over")

    return Dataset.from_generator(generate, output_signature=TensorSpec((), np.int64))


def texts_and_rows(n: int) -> Any:
    """Return a dataset of pairs of a text and a row of varying length from a generator."""
    return Dataset.from_generator(
        lambda: ((TEXTS[i % len(TEXTS)], np.full(i % 3 + 1, i, BYTE_ORDERS[i % 2])) for i in range(n)),
        output_signature=(TensorSpec((), bytes), TensorSpec((None,), np.int64)),
    )


def objects_in(values: list[Any]) -> Any:
    """Return a dataset from a generator without a signature."""
    return Dataset.from_generator(lambda: iter(values))


def joined(*window: Any) -> Any:
    """Return the dataset of a window's elements, whatever their structure."""
    return window[0] if len(window) == 1 and isinstance(window[0], Dataset) else Dataset.zip(unchanged(*window))


def selected(*keys: Any) -> Callable[[Any], Any]:
    return lambda source: source.select(*keys)


def stacked(*numbers: Any) -> Any:
    return lib.stack([lib.cast(each, np.int64) for each in numbers])


def options(**settings: Any) -> Options:
    """Return options; names with a dot are written with two underscores."""
    found = Options()
    for name, value in settings.items():
        group, _, field = name.rpartition("__")
        setattr(getattr(found, group) if group else found, field, value)
    return found


EXAMPLE = {"n": io.FixedLenFeature((), np.int64), "row": io.RaggedFeature(np.int64)}


def of_example(example: Any) -> Any:
    return io.parse_single_example(example, EXAMPLE)["n"] * 2


def of_examples(examples: Any) -> Any:
    return io.parse_example(examples, EXAMPLE)["n"] * 2


# Names of a library

NAMES = {
    **{name: getattr(dataset, name) for name in dataset.__all__},
    "EXAMPLE": EXAMPLE,
    "np": np,
    **{name: value for name, value in globals().items() if name.islower()},
}


@functools.cache
def names_of(library: Any) -> dict[str, Any]:
    """Return the names of an expression that runs in a library."""
    if library.name == Ours.name:
        return NAMES
    tf = library.tf

    def total(value: Any) -> Any:
        if isinstance(value, dict):
            value = tuple(value[key] for key in sorted(value))
        if isinstance(value, tuple):
            return sum((place + 1) * total(part) for place, part in enumerate(value))
        value = getattr(value, "flat_values", getattr(value, "values", value))
        if value.dtype == tf.string:
            value = library.call(lambda given: np.int64(_total(given)), dataset.TensorSpec((), np.int64))(value)
        return tf.reduce_sum(tf.cast(value, tf.int64))

    def after(checked: Any, value: Any) -> Any:
        with tf.control_dependencies([checked]):
            return tf.nest.map_structure(tf.identity, value, expand_composites=True)

    def selected(*keys: Any) -> Callable[[Any], Any]:
        def parts(*element: Any) -> Any:
            found = tuple(unchanged(*element)[key] if len(element) == 1 else element[key] for key in keys)
            return unchanged(*found)

        return lambda source: source.map(parts)

    names = {**globals(), **NAMES, "lib": library, "Dataset": library.Dataset, "TensorSpec": library.TensorSpec}
    for name, value in NAMES.items():
        if isinstance(value, types.FunctionType) and value.__module__ == __name__:
            names[name] = types.FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
            names[name].__kwdefaults__ = value.__kwdefaults__
    names |= {"number": lambda *element: total(element) % 10007, "after": after, "selected": selected}
    names["len"] = lambda given: tf.shape(given)[0] if isinstance(given, tf.Tensor) else len(given)
    return names


def build(expression: str, files: Path, folder: Path) -> Any:
    """Build the pipeline of an expression.

    Args:
        expression: the text of a chain.
        files: the folder that ``write_files`` has filled.
        folder: the folder in which the pipeline may write.
    """
    return eval(expression, {**NAMES, "files": Files(files, folder), "folder": str(folder)})  # noqa: S307  # it is ours

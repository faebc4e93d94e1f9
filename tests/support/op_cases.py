"""Small things that the tests of many ops need."""

import attrs
import numpy as np

from dataset import Dataset, RaggedTensor, SparseTensor


@attrs.define
class Sample:
    """An element of a user's class: one of attrs, whose second argument has another name than its attribute."""

    image: object
    _label: object


def fail_at(*bad):
    """A function for map that returns its argument, but raises ValueError for these."""

    def check(x):
        if int(x) in bad:
            raise ValueError(f"bad {x}")
        return x

    return check


class Resumable:
    """An iterator that raises the exceptions among its values, and continues after them."""

    def __init__(self, values):
        self._values = iter(values)

    def __iter__(self):
        return self

    def __next__(self):
        value = next(self._values)
        if isinstance(value, Exception):
            raise value
        return value


def ints(*values):
    """The elements of a dataset of int64 scalars."""
    return [np.int64(value) for value in values]


def rows(stop=4):
    """Vectors of 1, 2, 3 ... elements, as many as their values say."""
    return Dataset.range(1, stop).map(lambda n: np.full(n, n))


VIEWS = {
    "array": lambda buffer: buffer,
    "tuple": lambda buffer: (buffer, 1),
    "dict": lambda buffer: {"a": buffer},
    "twice": lambda buffer: (buffer, buffer),
    "list": lambda buffer: [buffer, 2 * buffer],
    "slice": lambda buffer: buffer[:2],
    "view of view": lambda buffer: buffer[None][0],
    "transpose": lambda buffer: buffer.reshape(1, 3).T,
    "ragged": lambda buffer: RaggedTensor(buffer, [0, 1, 3]),
    "sparse": lambda buffer: SparseTensor([[0], [1], [2]], buffer, [3]),
    "memory": lambda buffer: np.frombuffer(memoryview(buffer), buffer.dtype),
}
"""Elements that hold an array of three numbers, which the user's code may fill again."""

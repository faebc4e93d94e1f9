"""Tests of zip against tf.data's."""

from collections import OrderedDict

import numpy as np
from cases import Pair, failing
from compare import refused, same


def numbers(lib, *arguments):
    return lib.range(*arguments)


NESTINGS = {
    "one": lambda lib: lib.zip(numbers(lib, 3)),
    "two arguments": lambda lib: lib.zip(numbers(lib, 3), numbers(lib, 10, 20)),
    "three arguments": lambda lib: lib.zip(numbers(lib, 3), numbers(lib, 3), numbers(lib, 2)),
    "a tuple": lambda lib: lib.zip((numbers(lib, 3), numbers(lib, 2))),
    "a tuple of one": lambda lib: lib.zip((numbers(lib, 3),)),
    "tuples as arguments": lambda lib: lib.zip((numbers(lib, 3), numbers(lib, 2)), numbers(lib, 4)),
    "nested": lambda lib: lib.zip((numbers(lib, 3), (numbers(lib, 2), (numbers(lib, 4),)))),
    "a dict": lambda lib: lib.zip({"b": numbers(lib, 3), "a": numbers(lib, 5, 9)}),
    "an ordered dict": lambda lib: lib.zip(OrderedDict([("b", numbers(lib, 3)), ("a", numbers(lib, 5, 9))])),
    "a dict in a tuple": lambda lib: lib.zip(({"a": numbers(lib, 3)}, numbers(lib, 2))),
    "a named tuple": lambda lib: lib.zip(Pair(numbers(lib, 3), numbers(lib, 2))),
    "datasets=": lambda lib: lib.zip(datasets=(numbers(lib, 3), numbers(lib, 2))),
    "datasets= of one": lambda lib: lib.zip(datasets=numbers(lib, 3)),
    "datasets= of a dict": lambda lib: lib.zip(datasets={"a": numbers(lib, 3)}),
    "zips": lambda lib: lib.zip(lib.zip(numbers(lib, 3)), lib.zip(numbers(lib, 3))),
    "structures": lambda lib: lib.zip(
        lib.from_tensor_slices({"s": ["a", "b"], "n": (np.arange(2.0), np.arange(2))}), numbers(lib, 5).batch(2)
    ),
    "tensors of every kind": lambda lib: lib.zip(
        lib.from_tensors(lib.ragged([[1], [2, 3]])), lib.from_tensors(lib.sparse([[1]], np.array([5.0]), [3]))
    ),
    "a name": lambda lib: lib.zip(numbers(lib, 3), name="pairs"),
}


test_nestings = same(NESTINGS, spec=lambda name: "compatible" if name == "tensors of every kind" else "equal")
SOURCES = {
    "empty": lambda lib: numbers(lib, 0),
    "three": lambda lib: numbers(lib, 3),
    "five": lambda lib: numbers(lib, 5),
    "endless": lambda lib: numbers(lib, 2).repeat(),
    "unknown": lambda lib: numbers(lib, 9).filter(lambda x: x % 2 == 0),
    "unknown and endless": lambda lib: numbers(lib, 9).repeat().filter(lambda x: x % 2 == 0),
    "failing": lambda lib: failing(lib, 0, 2, size=5),
    "failing at the end": lambda lib: failing(lib, 3, size=4),
}


test_lengths_and_failures = same(
    lambda lib, first, second: lib.zip(first(lib), second(lib)), SOURCES, SOURCES, limit=12, spec="compatible"
)


REFUSED = {
    "nothing": lambda lib: lib.zip(),
    "a list": lambda lib: lib.zip([numbers(lib, 3), numbers(lib, 3)]),
    "a list in a tuple": lambda lib: lib.zip((numbers(lib, 3), [numbers(lib, 3)])),
    "both ways": lambda lib: lib.zip(numbers(lib, 3), datasets=numbers(lib, 3)),
    "a number": lambda lib: lib.zip(numbers(lib, 3), 3),
    "an array": lambda lib: lib.zip((numbers(lib, 3), np.arange(3))),
    "an empty tuple": lambda lib: lib.zip(()),
    "an empty dict": lambda lib: lib.zip({}),
}


test_what_is_refused = refused({(TypeError, ValueError): REFUSED})

"""Tests of interleave against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, SOURCES, failing
from compare import attempt, refused, same, theirs

from dataset import Dataset

CYCLES = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 5), (3, 2), (4, 1), (16, 3)]

INNER = {
    "as many as its number": lambda lib, x: lib.from_tensors(x).repeat(x),
    "fewer and fewer": lambda lib, x: lib.range(x, 7),
    "all empty": lambda lib, x: lib.range(0),
    "unknown": lambda lib, x: lib.range(5).filter(lambda y: y != x),
    "failing": lambda lib, x: failing(lib, 0, 2, size=4),
}


test_cycles = same(
    lambda lib, inner, cycle: lib.range(1, 6).interleave(lambda x: inner(lib, x), *cycle),
    INNER,
    CYCLES,
    spec=lambda inner, _: "any" if inner == "all empty" else "equal",
)
test_sources = same(
    lambda lib, source, cycle: source(lib).interleave(lambda x: lib.range(x, x + 3), *cycle),
    SOURCES,
    [(1, 1), (2, 1), (3, 2)],
    limit=30,
    spec=lambda source, _: "any" if "empty" in source else "equal",
)
test_structures = same(
    lambda lib, element: lib.range(2).interleave(lambda x: lib.from_tensors(element(lib)).repeat(2), 2),
    ELEMENTS,
    spec="compatible",
)
test_arguments = same(
    lambda lib, element: (
        lib.from_tensors(ELEMENTS[element](lib)).repeat(3).interleave(lambda *args: lib.from_tensors(args), 2)
    ),
    ["tuple", "tuple of one", "None in a tuple", "named tuple", "nested"],
)
test_endless_inner_datasets = same(
    lambda lib: lib.range(5).interleave(lambda x: lib.from_tensors(x).repeat(), 3, 2), limit=30
)
# tf.data uses the number of cores; with equal elements, the difference cannot be observed.
test_a_cycle_that_is_left_to_the_library = same(
    lambda lib, arguments: lib.range(1).interleave(lambda x: lib.range(4), **arguments),
    [{"cycle_length": None}, {"cycle_length": -1}, {"block_length": None}],
)
WRONG_VALUES = [{"cycle_length": 0}, {"cycle_length": -2}, {"block_length": 0}]
WRONG_VALUES += [{"num_parallel_calls": 0}, {"num_parallel_calls": -2}]
WRONG_TYPES = [{"cycle_length": 2.0}, {"cycle_length": "2"}, {"block_length": 1.5}, {"num_parallel_calls": "2"}]
WRONG_TYPES += [{"map_func": function} for function in (None, 3, "abs")]
test_what_is_refused = refused(
    {ValueError: WRONG_VALUES, TypeError: WRONG_TYPES},
    lambda lib, arguments: lib.range(3).interleave(
        **{"map_func": lib.Dataset.range, "cycle_length": np.int64(2), **arguments}
    ),
)


@pytest.mark.parametrize("result", [lambda x: x, lambda x: None, lambda x: (x,)])
def test_what_is_no_dataset(result):
    """tf.data traces the function at construction; here it is first called when an element is requested."""
    assert isinstance(theirs(lambda lib: attempt(lambda lib: lib.range(3).interleave(result), lib)), Exception)
    with pytest.raises(TypeError, match="must return a Dataset"):
        next(iter(Dataset.range(3).interleave(result)))

"""Tests of filter against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, SOURCES
from compare import attempt, refused, same, theirs

from dataset import Dataset, SpecError, TensorSpec
from support.libraries import fail_at

PREDICATES = {
    "some": lambda x: x % 3 != 1,
    "all": lambda x: x >= 0,
    "the first": lambda x: x == 0,
    "a Python bool": lambda x: True,
    "none": lambda x: x < 0,
}
FINITE = {name: make for name, make in SOURCES.items() if name != "endless"}


def even(lib, *bad):
    return lib.call(lambda x: np.bool_(fail_at(*bad)(x) % 2 == 0), TensorSpec((), np.bool_))


test_sources = same(lambda lib, source, predicate: source(lib).filter(predicate), FINITE, PREDICATES)
test_endless_data = same(
    lambda lib, predicate: SOURCES["endless"](lib).filter(PREDICATES[predicate]),
    ["some", "all", "the first", "a Python bool"],
    limit=lambda predicate: 1 if predicate == "the first" else 12,
)
test_structures = same(lambda lib, e: lib.from_tensors(e(lib)).repeat(2).filter(lambda *args: True), ELEMENTS)
test_failures = same(
    lambda lib, bad: lib.range(7).filter(even(lib, *bad)),
    [(0,), (3,), (6,), (0, 6), (2, 3, 4), (0, 1, 2, 4, 5, 6), (0, 1, 2, 3, 4, 5, 6)],
)


@pytest.mark.parametrize(
    "result", [lambda x: x, lambda x: 1, lambda x: "yes", lambda x: np.array([True]), lambda x: (True,), lambda x: None]
)
def test_a_predicate_that_gives_no_bool(result):
    """tf.data traces the predicate at construction; here it is first called when an element is requested."""
    assert isinstance(theirs(lambda lib: attempt(lambda lib: lib.range(3).filter(result), lib)), Exception)
    with pytest.raises(SpecError, match="must return a bool"):
        next(iter(Dataset.range(3).filter(result)))


test_what_is_no_function = refused(
    {TypeError: [None, 3, "abs", [bool]]}, lambda lib, predicate: lib.range(3).filter(predicate)
)

"""Tests of filter against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, FINITE
from compare import Ours, attempt, refused, same, theirs

from dataset import SpecError, TensorSpec
from support.libraries import fail_at

PREDICATES = {
    "some": lambda x: x % 3 != 1,
    "all": lambda x: x >= 0,
    "the first": lambda x: x == 0,
    "a Python bool": lambda x: True,
}


def even(lib, *bad):
    return lib.call(lambda x: np.bool_(fail_at(*bad)(x) % 2 == 0), TensorSpec((), np.bool_))


test_sources = same("source.filter(predicate)", source=FINITE, predicate=[*PREDICATES.values(), lambda x: x < 0])
test_endless_data = same(
    "range(3).repeat().filter(predicate)",
    predicate=PREDICATES,
    limit=lambda predicate: 1 if predicate == "the first" else 12,
)
test_structures = same("from_tensors(element).repeat(2).filter(lambda *args: True)", element=ELEMENTS)
BAD = [(0,), (3,), (6,), (0, 6), (2, 3, 4), (0, 1, 2, 4, 5, 6), (0, 1, 2, 3, 4, 5, 6)]
test_failures = same("range(7).filter(even(*bad))", bad=BAD)


@pytest.mark.parametrize("result", [3, "yes", np.array([True]), (True,), None], ids=repr)
def test_a_predicate_that_gives_no_bool(result):
    """tf.data traces the predicate at construction; here it is first called when an element is requested."""
    build = lambda lib: lib.range(3).filter(lambda x: result)
    assert isinstance(theirs(lambda lib: attempt(build, lib)), Exception)
    with pytest.raises(SpecError, match="must return a bool"):
        next(iter(build(Ours())))


test_what_is_no_function = refused({TypeError: [None, 3, "abs", [bool]]}, "range(3).filter(case)")

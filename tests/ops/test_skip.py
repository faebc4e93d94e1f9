"""skip: all but the first elements."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at


@pytest.mark.parametrize(("count", "first"), [(3, 3), (0, 0), (5, 5), (9, 5), (-1, 5), (-7, 5), (np.int64(2), 2)])
def test_leaves_out_the_first_elements(count, first):
    check_operator(lambda: Dataset.range(5).skip(count), [np.int64(i) for i in range(first, 5)])
    assert len(Dataset.range(5).skip(count)) == 5 - first


def test_skips_many_elements():
    check_operator(lambda: Dataset.range(5000).map(lambda x: x).skip(4998), [np.int64(4998), np.int64(4999)])


def test_takes_what_it_skips_and_what_it_gives():
    check_laziness(lambda numbers: numbers.skip(7), lambda k: k + 7 if k else 0)
    check_laziness(lambda numbers: numbers.skip(0), lambda k: k)


def test_runs_nothing_where_everything_is_skipped():
    check_laziness(lambda numbers: numbers.skip(-1), lambda k: 0)
    check_operator(lambda: Dataset.range(3).repeat().skip(-1), [])
    check_operator(lambda: Dataset.range(3).map(fail_at(1)).skip(-5), [])


def test_skips_into_endless_data():
    check_operator(lambda: Dataset.range(3).repeat().skip(4).take(3), [np.int64(i) for i in (1, 2, 0)])


def test_an_exception_among_the_skipped_comes_out_and_the_skipping_goes_on():
    # tf.data starts counting again behind the exception; here an exception is not counted, as in take.
    expected = [ValueError("bad 1"), np.int64(4), np.int64(5)]
    check_operator(lambda: Dataset.range(6).map(fail_at(1)).skip(3), expected)
    check_operator(lambda: Dataset.range(5).map(fail_at(4)).skip(3), [np.int64(3), ValueError("bad 4")])


def test_passes_structures_on():
    element = {"a": (np.int64(1), None), "b": b"x"}
    check_operator(lambda: Dataset.from_tensors({"a": (1, None), "b": "x"}).repeat(3).skip(1), [element] * 2)


def test_knows_its_cardinality():
    known, unknown, endless = Dataset.range(3), Dataset.range(3).filter(lambda x: True), Dataset.range(3).repeat()
    table = [(known, 2, 1), (known, 9, 0), (known, -1, 0), (endless, 4, -1), (endless, -1, -1), (unknown, 2, -2)]
    table += [(unknown, -1, -2), (unknown, 0, -2)]
    for dataset, count, cardinality in table:
        assert dataset.skip(count).cardinality() == cardinality
    assert known.skip(2).element_spec == known.element_spec


@pytest.mark.parametrize("count", [2.0, "2", None, True])
def test_refuses_a_count_that_is_no_int(count):
    with pytest.raises(TypeError, match=r"skip\(\): count must be an int, got"):
        Dataset.range(3).skip(count)

"""filter: the elements for which a function returns True. tests/oracle compares sources, structures and failures."""

import numpy as np
import pytest

from dataset import Dataset, SpecError, vectorized
from dataset.testing import check_laziness, check_operator, outcomes
from support.op_cases import ints


def test_gives_the_elements_for_which_the_predicate_is_true():
    check_operator(lambda: Dataset.range(7).filter(lambda x: x % 3 == 1), ints(1, 4))
    pairs = Dataset.zip(Dataset.range(4), Dataset.range(4, 0, -1))
    check_operator(lambda: pairs.filter(lambda a, b: a == b), [tuple(ints(2, 2))])
    check_operator(lambda: pairs.filter(lambda a, b: str(a) == str(b)), [tuple(ints(2, 2))])


def test_takes_no_more_than_up_to_the_last_match():
    check_laziness(lambda numbers: numbers.filter(lambda x: x % 5 == 2), lambda k: 5 * k - 2 if k else 0, size=48)
    check_laziness(
        lambda numbers: numbers.filter(lambda x: str(x).endswith("3")), lambda k: 10 * k - 6 if k else 0, size=44
    )


@pytest.mark.parametrize("result", [1, None, "yes", np.int64(1), [True], np.array([True]), 1.0], ids=repr)
def test_a_result_that_is_not_a_bool_is_an_error_of_its_element(result):
    for demand in (1, 2):
        got = outcomes(iter(Dataset.range(4).filter(lambda x: result if x == 1 else True).batch(demand)))
        (error,) = [outcome for outcome in got if isinstance(outcome, Exception)]
        assert isinstance(error, SpecError)
        assert "must return a bool" in str(error)
        assert "element 1" in error.__notes__[0]


def test_a_vectorized_predicate_gets_columns():
    check_operator(lambda: Dataset.range(5).filter(vectorized(lambda x: x % 2 == 0)), ints(0, 2, 4))
    for wrong in (lambda x: x, lambda x: x[:0] == 0):
        with pytest.raises(SpecError, match="bools"):
            list(Dataset.range(4).filter(vectorized(wrong)))

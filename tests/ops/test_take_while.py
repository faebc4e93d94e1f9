"""take_while: the elements before the first for which a function says False."""

import numpy as np
import pytest

from dataset import Dataset, SpecError, vectorized
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import ints


@pytest.mark.parametrize("limit", [0, 3, 99])
def test_ends_before_the_first_false(limit):
    check_operator(lambda: Dataset.range(6).take_while(lambda x: x < limit), ints(*range(min(limit, 6))))
    pairs = Dataset.zip(Dataset.range(4), Dataset.range(4, 0, -1))
    check_operator(lambda: pairs.take_while(lambda a, b: a < b), [tuple(ints(0, 4)), tuple(ints(1, 3))])


def test_takes_nothing_after_the_first_false():
    check_laziness(lambda numbers: numbers.take_while(lambda x: x < 20), lambda k: k)
    check_laziness(lambda numbers: numbers.take_while(lambda x: True), lambda k: k)
    check_laziness(lambda numbers: numbers.take_while(vectorized(lambda x: x < 20)), lambda k: k)


@pytest.mark.parametrize("demand", [1, 3, 100])
@pytest.mark.parametrize("kind", ["generator", "map", "slices"])
def test_calls_user_code_for_nothing_after_the_first_false(kind, demand):
    made, asked = [], []
    source = {
        "generator": Dataset.from_generator(lambda: (made.append(x) or x for x in range(20))),
        "map": Dataset.range(20).map(lambda x: made.append(int(x)) or x),
        "slices": Dataset.from_tensor_slices(np.arange(20)),
    }[kind]
    dataset = source.take_while(lambda x: asked.append(int(x)) or x < 4).batch(demand)
    assert np.concatenate(list(dataset)).tolist() == [0, 1, 2, 3]
    assert asked == [0, 1, 2, 3, 4]
    assert made == ([] if kind == "slices" else [0, 1, 2, 3, 4])


@pytest.mark.parametrize("result", [1, None, "yes", [True], (True,), np.array([True])], ids=repr)
def test_a_result_that_is_not_a_bool_is_an_error_of_its_element(result):
    got = check_operator(lambda: Dataset.range(4).take_while(lambda x: result if x == 1 else True))
    assert isinstance(got[1], SpecError)
    assert "take_while(<lambda>): the predicate must return a bool" in str(got[1])
    assert "element 1" in got[1].__notes__[0]
    assert_elements_equal([got[0], *got[2:]], ints(0, 2, 3))


def test_a_vectorized_predicate_gets_columns_and_ends_at_its_first_false():
    sizes = []

    @vectorized
    def small(x):
        sizes.append(len(x))
        return x % 5 < 3

    check_operator(lambda: Dataset.range(9).take_while(small), ints(0, 1, 2))
    check_operator(lambda: Dataset.range(3, 9).take_while(small), [])
    assert max(sizes) > 1
    with pytest.raises(SpecError, match="bools"):
        list(Dataset.range(4).take_while(vectorized(lambda x: x)))


def test_a_vectorized_predicate_that_fails_is_called_again_for_each_element_up_to_the_end():
    asked = []

    @vectorized
    def check(x):
        asked.append(x.tolist())
        if 1 in x or 4 in x:
            raise ValueError("bad")
        return x < 3

    check_operator(lambda: Dataset.range(9).take_while(check), [np.int64(0), ValueError("bad"), np.int64(2)])
    asked.clear()
    assert len(outcomes(iter(Dataset.range(9).take_while(check).ignore_errors().batch(9)))) == 1
    assert asked == [list(range(9)), [0], [1], [2], [3]]

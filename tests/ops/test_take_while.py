"""take_while: the elements before the first for which a function says False."""

import numpy as np
import pytest

from dataset import Dataset, SpecError, vectorized
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints


@pytest.mark.parametrize(("limit", "left"), [(3, 3), (0, 0), (1, 1), (6, 6), (99, 6)])
def test_ends_before_the_first_false(limit, left):
    check_operator(lambda: Dataset.range(6).take_while(lambda x: x < limit), ints(*range(left)))


def test_does_not_begin_again_behind_its_end():
    numbers = Dataset.from_tensor_slices([1, 2, 9, 1, 2])
    check_operator(lambda: numbers.take_while(lambda x: x < 5), ints(1, 2))
    check_operator(lambda: numbers.take_while(lambda x: x < 5).repeat(2), ints(1, 2, 1, 2))
    iterator = iter(numbers.repeat().take_while(lambda x: x < 5))
    assert len(list(iterator)) == 2
    assert list(iterator) == []


def test_of_nothing_is_nothing():
    check_operator(lambda: Dataset.range(0).take_while(lambda x: True), [])


def test_ends_endless_data():
    check_operator(lambda: Dataset.range(9).repeat().take_while(lambda x: x < 4), ints(0, 1, 2, 3))
    check_operator(lambda: Dataset.range(2).repeat().take_while(lambda x: True).take(5), ints(0, 1, 0, 1, 0))


def test_takes_nothing_behind_the_first_false():
    check_laziness(lambda numbers: numbers.take_while(lambda x: x < 20), lambda k: k)
    check_laziness(lambda numbers: numbers.take_while(lambda x: True), lambda k: k)
    check_laziness(lambda numbers: numbers.take_while(vectorized(lambda x: x < 20)), lambda k: k)


@pytest.mark.parametrize("demand", [1, 3, 100])
@pytest.mark.parametrize("kind", ["generator", "map", "slices"])
def test_calls_user_code_for_nothing_behind_the_first_false(kind, demand):
    made, asked = [], []

    def generate():
        for x in range(20):
            made.append(x)
            yield x

    sources = {
        "generator": lambda: Dataset.from_generator(generate),
        "map": lambda: Dataset.range(20).map(lambda x: made.append(int(x)) or x),
        "slices": lambda: Dataset.from_tensor_slices(np.arange(20)),
    }
    dataset = sources[kind]().take_while(lambda x: asked.append(int(x)) or x < 4).batch(demand)
    assert np.concatenate(list(dataset)).tolist() == [0, 1, 2, 3]
    assert asked == [0, 1, 2, 3, 4]
    assert made == ([] if kind == "slices" else [0, 1, 2, 3, 4])


@pytest.mark.parametrize(
    "value", [(1, "a"), {"b": 1, "a": [2, 3]}, (1, None), "text", np.zeros((2, 2)), ((1,), {"x": b"\x00"})], ids=repr
)
def test_passes_every_structure_on_unchanged(value):
    (element,) = Dataset.from_tensors(value)
    dataset = Dataset.from_tensors(value).repeat(3)
    check_operator(lambda: dataset.take_while(lambda *args: len(args) > 0), [element] * 3)
    assert dataset.take_while(lambda *args: True).element_spec == dataset.element_spec


def test_passes_the_items_of_a_tuple_as_arguments():
    pairs = Dataset.zip(Dataset.range(4), Dataset.range(4, 0, -1))
    check_operator(lambda: pairs.take_while(lambda a, b: a < b), [tuple(ints(0, 4)), tuple(ints(1, 3))])


@pytest.mark.parametrize("true", [True, np.True_, np.array(True)], ids=repr)
@pytest.mark.parametrize("false", [False, np.False_, np.array(False)], ids=repr)
def test_takes_every_kind_of_bool(true, false):
    assert_elements_equal(list(Dataset.range(5).take_while(lambda x: true if x < 2 else false)), ints(0, 1))


@pytest.mark.parametrize("result", [1, 0, None, "yes", np.int64(1), [True], (True,), np.array([True]), 1.0], ids=repr)
def test_a_result_that_is_no_bool_is_an_error_of_its_element(result):
    got = check_operator(lambda: Dataset.range(4).take_while(lambda x: result if x == 1 else True))
    assert isinstance(got[1], SpecError)
    assert "take_while(<lambda>): the predicate must return a bool" in str(got[1])
    assert "element 1" in got[1].__notes__[0]
    assert_elements_equal([got[0], *got[2:]], ints(0, 2, 3))


@pytest.mark.parametrize("bad", [0, 2, 3])
@pytest.mark.parametrize("source", [Dataset.range(6), Dataset.range(6).map(lambda x: x)], ids=["pure", "mapped"])
def test_a_predicate_that_raises_fails_its_element_and_goes_on(bad, source):
    expected = ints(0, 1, 2, 3)
    expected[bad] = ValueError(f"bad {bad}")
    check_operator(lambda: source.take_while(lambda x: fail_at(bad)(x) < 4), expected)


def test_failures_of_the_input_pass_until_the_end():
    expected = [np.int64(0), ValueError("bad 1"), np.int64(2)]
    check_operator(lambda: Dataset.range(6).map(fail_at(1, 5)).take_while(lambda x: x < 3), expected)
    check_operator(
        lambda: Dataset.range(6).map(fail_at(3)).take_while(lambda x: x < 3), [*ints(0, 1, 2), ValueError("bad 3")]
    )


def test_an_exception_has_a_note():
    with pytest.raises(ValueError, match="bad 2") as caught:
        list(Dataset.range(4).take_while(lambda x: fail_at(2)(x) < 9))
    assert caught.value.__notes__[-1].startswith("in take_while(<lambda>) from test_take_while.py:")
    assert caught.value.__notes__[-1].endswith("element 2")


def test_stop_iteration_and_interrupts_lose_nothing():
    def stop(x):
        if x == 1:
            raise StopIteration
        return x < 3

    got = outcomes(iter(Dataset.range(5).take_while(stop)))
    assert isinstance(got[1], RuntimeError)
    assert_elements_equal([got[0], *got[2:]], ints(0, 2))
    armed = [True]

    def interrupt(x):
        if x == 2 and armed:
            armed.clear()
            raise KeyboardInterrupt
        return x < 4

    iterator = iter(Dataset.range(6).take_while(interrupt).batch(5))
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert next(iterator).tolist() == [0, 1, 2, 3]
    assert list(iterator) == []


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


def test_a_vectorized_predicate_that_fails_is_asked_again_for_each_element_up_to_the_end():
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


def test_the_length_is_unknown():
    for source in (Dataset.range(5), Dataset.range(5).repeat(), Dataset.range(0)):
        assert source.take_while(lambda x: True).cardinality() == -2


@pytest.mark.parametrize("predicate", [None, True, "x"])
def test_refuses_what_cannot_be_called(predicate):
    with pytest.raises(TypeError, match=r"take_while\(\): predicate must be a function"):
        Dataset.range(3).take_while(predicate)

"""zip: elements side by side."""

import numpy as np
import pytest

from dataset import Dataset, TensorSpec
from dataset.testing import check_laziness, check_operator, outcomes
from support.op_cases import fail_at
from support.pipelines import Pair


def pairs(*numbers):
    return [(np.int64(a), np.int64(b)) for a, b in numbers]


def test_pairs_elements_and_ends_with_the_shortest():
    check_operator(lambda: Dataset.zip(Dataset.range(3), Dataset.range(10, 20)), pairs((0, 10), (1, 11), (2, 12)))
    check_operator(lambda: Dataset.zip(Dataset.range(9), Dataset.range(10, 11)), pairs((0, 10)))
    check_operator(lambda: Dataset.zip(Dataset.range(0), Dataset.range(3)), [])
    check_operator(lambda: Dataset.zip(Dataset.range(3), Dataset.range(0)), [])


def test_one_dataset_gives_its_elements_and_a_tuple_of_one_gives_tuples_as_in_tf_data():
    check_operator(lambda: Dataset.zip(Dataset.range(2)), [np.int64(0), np.int64(1)])
    check_operator(lambda: Dataset.zip((Dataset.range(1),)), [(np.int64(0),)])
    check_operator(lambda: Dataset.zip(datasets=Dataset.range(1)), [np.int64(0)])


def test_keeps_the_nesting_in_which_the_datasets_were_given():
    a, b = np.int64(0), np.int64(5)

    def numbers(start):
        return Dataset.range(start, start + 1)

    check_operator(lambda: Dataset.zip((numbers(0), (numbers(5), numbers(5)))), [(a, (b, b))])
    check_operator(lambda: Dataset.zip({"b": numbers(5), "a": numbers(0)}), [{"b": b, "a": a}])
    check_operator(lambda: Dataset.zip(datasets=(numbers(0), numbers(5))), [(a, b)])
    check_operator(lambda: Dataset.zip(Pair(numbers(0), numbers(5))), [Pair(a, b)])
    inner = Dataset.zip(numbers(0), numbers(5))
    check_operator(
        lambda: Dataset.zip(inner, Dataset.from_tensors({"t": ("a", None)})), [((a, b), {"t": (b"a", None)})]
    )


def test_knows_spec_and_cardinality():
    known, unknown, endless = Dataset.range(3), Dataset.range(3).filter(lambda x: True), Dataset.range(3).repeat()
    table = [
        ((known, Dataset.range(5)), 3),
        ((known, endless), 3),
        ((endless, endless), -1),
        ((unknown, endless), -2),
        ((known, unknown), -2),
    ]
    for datasets, cardinality in table:
        assert Dataset.zip(*datasets).cardinality() == cardinality
    spec = TensorSpec((), np.int64)
    assert Dataset.zip({"a": known, "b": known.batch(2)}).element_spec == {
        "a": spec,
        "b": TensorSpec((None,), np.int64),
    }


def test_takes_no_more_than_it_needs():
    check_laziness(lambda numbers: Dataset.zip(numbers, Dataset.range(100)), lambda k: k)
    check_laziness(lambda numbers: Dataset.zip(Dataset.range(100), numbers), lambda k: k)
    check_laziness(lambda numbers: Dataset.zip(numbers, Dataset.range(100).map(str)), lambda k: k)
    # the end of a generator shows only when it is asked for
    check_laziness(lambda numbers: Dataset.zip(Dataset.from_generator(lambda: range(5)), numbers), lambda k: k)


@pytest.mark.parametrize("demand", [1, 3, 10])
def test_does_not_read_one_source_past_the_end_of_an_earlier_one(demand):
    taken = []

    def count():
        for i in range(20):
            taken.append(i)
            yield i

    list(Dataset.zip(Dataset.range(5), Dataset.from_generator(count)).batch(demand))
    assert taken == list(range(5))
    taken.clear()
    list(Dataset.zip(Dataset.from_generator(lambda: range(5)), Dataset.from_generator(count)).batch(demand))
    assert taken == list(range(5))


def test_an_exception_takes_the_element_of_the_other_with_it():
    bad = ValueError
    numbers = Dataset.range(4)
    check_operator(
        lambda: Dataset.zip(numbers.map(fail_at(1)), numbers),
        [*pairs((0, 0)), bad("bad 1"), *pairs((2, 2), (3, 3))],
    )
    check_operator(
        lambda: Dataset.zip(numbers, numbers.map(fail_at(1, 2))),
        [*pairs((0, 0)), bad("bad 1"), bad("bad 2"), *pairs((3, 3))],
    )
    check_operator(
        lambda: Dataset.zip(numbers.map(fail_at(0)), numbers.map(fail_at(3))),
        [bad("bad 0"), *pairs((1, 1), (2, 2)), bad("bad 3")],
    )


def test_an_exception_beside_an_end_comes_out_before_the_end():
    """And none after it, as in tf.data."""
    bad = ValueError
    numbers = Dataset.range(6).map(fail_at(1, 2, 3))
    check_operator(lambda: Dataset.zip(numbers, Dataset.range(1)), [*pairs((0, 0)), bad("bad 1")])
    check_operator(lambda: Dataset.zip(numbers, Dataset.range(2)), [*pairs((0, 0)), bad("bad 1"), bad("bad 2")])
    check_operator(lambda: Dataset.zip(Dataset.range(1), numbers), pairs((0, 0)))


@pytest.mark.parametrize("demand", [2, 3, 4, 20])
def test_stays_in_step_behind_exceptions_whatever_the_demand(demand):
    numbers = Dataset.range(12)
    dataset = Dataset.zip(numbers.map(fail_at(2, 7)), numbers.map(fail_at(5, 11)), numbers)
    got = outcomes(iter(dataset.batch(demand)))
    for batch in got:
        if not isinstance(batch, Exception):
            a, b, c = batch
            assert a.tolist() == b.tolist() == c.tolist()
    assert sum(isinstance(batch, ValueError) for batch in got) == 4


def test_one_dataset_may_stand_twice():
    numbers = Dataset.range(3).map(lambda x: x + 1)
    check_operator(lambda: Dataset.zip(numbers, numbers), pairs((1, 1), (2, 2), (3, 3)))


def test_a_shuffled_dataset_that_stands_twice_gets_two_orders_as_in_tf_data():
    numbers = Dataset.range(50).shuffle(50, seed=1)
    left, right = zip(*Dataset.zip(numbers, numbers), strict=True)
    assert sorted(left) == sorted(right) == list(range(50))
    assert left != right

    def twice():
        shuffled = Dataset.range(9).shuffle(9, seed=1)
        return Dataset.zip(shuffled, shuffled)

    check_operator(twice, positions=9)


@pytest.mark.parametrize(
    ("arguments", "keywords", "words"),
    [
        ((), {}, "give datasets"),
        (([Dataset.range(2)],), {}, "use a tuple"),
        ((Dataset.range(2), 3), {}, "expected a Dataset, got 3"),
        (((Dataset.range(2), [Dataset.range(2)]),), {}, "use a tuple"),
        ((3,), {}, "expected a Dataset"),
        ((Dataset.range(2),), {"datasets": Dataset.range(2)}, "not both"),
    ],
)
def test_refuses_what_is_no_dataset(arguments, keywords, words):
    with pytest.raises(TypeError, match=rf"zip\(\).*{words}"):
        Dataset.zip(*arguments, **keywords)


@pytest.mark.parametrize("nothing", [((),), ({},), ((None,),)])
def test_refuses_a_structure_without_datasets(nothing):
    with pytest.raises((TypeError, ValueError), match=r"zip\(\)"):
        Dataset.zip(*nothing)


def test_an_endless_source_ends_with_the_other():
    check_operator(
        lambda: Dataset.zip(Dataset.range(2).repeat(), Dataset.range(5)),
        pairs((0, 0), (1, 1), (0, 2), (1, 3), (0, 4)),
    )

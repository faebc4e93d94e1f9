"""concatenate: one dataset, then another."""

import numpy as np
import pytest

from dataset import Dataset, Options, SpecError, TensorSpec
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at, ints


def test_gives_one_then_the_other():
    check_operator(lambda: Dataset.range(2).concatenate(Dataset.range(10, 12)), ints(0, 1, 10, 11))
    check_operator(lambda: Dataset.range(0).concatenate(Dataset.range(2)), ints(0, 1))
    check_operator(lambda: Dataset.range(2).concatenate(Dataset.range(0)), ints(0, 1))
    check_operator(lambda: Dataset.range(0).concatenate(Dataset.range(0)), [])


def test_does_not_touch_the_second_before_the_first_has_ended():
    check_laziness(lambda numbers: numbers.concatenate(Dataset.range(9)), lambda k: k)
    check_laziness(lambda numbers: Dataset.range(9).concatenate(numbers), lambda k: max(0, k - 9))


def test_batches_go_across_the_border():
    check_operator(
        lambda: Dataset.range(3).concatenate(Dataset.range(3)).batch(4), [np.array([0, 1, 2, 0]), np.array([1, 2])]
    )


def test_keeps_exceptions_in_their_place():
    check_operator(
        lambda: Dataset.range(3).map(fail_at(2)).concatenate(Dataset.range(3).map(fail_at(0))),
        [*ints(0, 1), ValueError("bad 2"), ValueError("bad 0"), *ints(1, 2)],
    )


def test_dicts_may_be_filled_in_another_order():
    one = Dataset.from_tensors({"a": 1, "b": "x"})
    two = Dataset.from_tensors({"b": "y", "a": 2})
    expected = [{"a": np.int64(1), "b": b"x"}, {"a": np.int64(2), "b": b"y"}]
    check_operator(lambda: one.concatenate(two), expected)
    check_operator(
        lambda: one.concatenate(two).batch(2), [{"a": np.array([1, 2]), "b": np.array([b"x", b"y"], object)}]
    )


def test_shapes_that_differ_become_unknown():
    def zeros(*shape):
        return Dataset.from_tensor_slices(np.zeros(shape))

    assert zeros(2, 3).concatenate(zeros(2, 4)).element_spec == TensorSpec((None,), np.float64)
    assert zeros(2, 3).concatenate(zeros(2, 3)).element_spec == TensorSpec((3,), np.float64)
    assert zeros(2, 3, 5).concatenate(zeros(2, 4, 5)).element_spec == TensorSpec((None, 5), np.float64)
    assert zeros(2, 3).concatenate(zeros(2, 4, 5)).element_spec == TensorSpec(None, np.float64)
    check_operator(lambda: zeros(1, 3).concatenate(zeros(1, 4)), [np.zeros(3), np.zeros(4)])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (Dataset.range(2, output_type=np.int32), "int64.*int32"),
        (Dataset.from_tensors("a"), "the same type"),
        (Dataset.from_tensors((1, 2)), "the same structure"),
        (Dataset.from_tensors({"a": 1}), "the same structure"),
        (Dataset.from_tensors((1,)), "the same structure"),
    ],
)
def test_refuses_elements_that_do_not_go_together(other, words):
    with pytest.raises(TypeError, match=rf"concatenate\(\).*{words}"):
        Dataset.range(2).concatenate(other)


def test_a_mismatch_that_only_running_shows_is_raised_while_iterating():
    dataset = Dataset.range(2).concatenate(Dataset.range(2).map(lambda x: (x, x)))
    iterator = iter(dataset)
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises((TypeError, ValueError), match="the same structure"):
        next(iterator)


@pytest.mark.parametrize("other", [[1, 2], None, 3, (Dataset.range(2),)])
def test_refuses_what_is_no_dataset(other):
    with pytest.raises(TypeError, match=r"concatenate\(\): expected a Dataset, got"):
        Dataset.range(2).concatenate(other)


def test_knows_its_cardinality():
    known, unknown, endless = Dataset.range(3), Dataset.range(3).filter(lambda x: True), Dataset.range(3).repeat()
    table = [
        (known, known, 6),
        (known, unknown, -2),
        (unknown, known, -2),
        (endless, unknown, -1),
        (unknown, endless, -1),
    ]
    for first, second, cardinality in table:
        assert first.concatenate(second).cardinality() == cardinality
    assert Dataset.range(0).concatenate(endless).cardinality() == -1


def test_never_comes_to_the_second_behind_an_endless_first():
    check_operator(lambda: Dataset.range(2).repeat().concatenate(Dataset.range(9)).take(5), ints(0, 1, 0, 1, 0))


# Many


def chained(datasets):
    first, *others = datasets
    for other in others:
        first = first.concatenate(other)
    return first


@pytest.mark.parametrize("optimized", [True, False])
def test_a_loop_may_join_thousands(optimized):
    options = Options()
    options.optimization.enabled = optimized

    def make():
        return chained(Dataset.range(3 * i, 3 * i + 3) for i in range(2000)).with_options(options)

    dataset = make()
    assert len(dataset) == 6000
    assert dataset.element_spec == TensorSpec((), np.int64)
    assert list(dataset) == list(range(6000))
    assert list(dataset.skip(5000).take(2)) == [5000, 5001]
    iterator = iter(make().batch(100))
    for _ in range(30):
        last = next(iterator)
    resumed = iter(make().batch(100))
    resumed.load_state_dict(iterator.state_dict())
    assert last[-1] == 2999
    assert next(resumed)[0] == 3000


def test_a_loop_may_put_thousands_before():
    dataset = Dataset.range(1)
    for i in range(1, 2000):
        dataset = Dataset.range(i, i + 1).concatenate(dataset)
    assert list(dataset) == [*range(1999, 0, -1), 0]


def test_chains_are_one_node_whichever_way_they_were_made():
    parts = [Dataset.range(3), Dataset.range(3, 5), Dataset.range(5, 6), Dataset.range(6, 9)]
    left = chained(parts)
    right = parts[0].concatenate(parts[1].concatenate(parts[2].concatenate(parts[3])))
    pairs = parts[0].concatenate(parts[1]).concatenate(parts[2].concatenate(parts[3]))
    for dataset in (left, right, pairs):
        assert dataset.plan.label() == "concatenate(4 datasets)"
        assert dataset.fingerprint() == left.fingerprint()
        assert list(dataset) == list(range(9))
    check_operator(lambda: right, ints(*range(9)))
    assert [int(left[i]) for i in range(9)] == list(range(9))


def test_a_labelled_one_stays():
    labelled = Dataset.range(2).concatenate(Dataset.range(2), name="both")
    plan = labelled.concatenate(Dataset.range(1)).plan
    assert plan.inputs[0].name == "both"
    check_operator(lambda: labelled.concatenate(Dataset.range(1)), ints(0, 1, 0, 1, 0))


def test_the_spec_of_many_is_the_narrowest_of_all():
    def zeros(*shape):
        return Dataset.from_tensor_slices(np.zeros(shape))

    dataset = chained([zeros(2, 3, 5), zeros(2, 3, 5), zeros(2, 4, 5), zeros(1, 4, 5)])
    assert dataset.element_spec == TensorSpec((None, 5), np.float64)
    assert chained([zeros(2, 3), zeros(2, 4), zeros(2, 3, 1)]).element_spec == TensorSpec(None, np.float64)
    with pytest.raises(TypeError, match=r"concatenate\(\).*float64.*int64"):
        chained([zeros(2, 3), zeros(2, 4), Dataset.range(3)])


def test_a_mismatch_in_the_middle_is_raised_at_its_place():
    pairs = Dataset.range(2).map(lambda x: (x, x))
    iterator = iter(chained([Dataset.range(1), Dataset.range(1, 2), pairs, Dataset.range(3)]))
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises(SpecError, match="all datasets must have the same structure"):
        next(iterator)


def test_one_that_is_shuffled_and_comes_twice_takes_two_epochs():
    shuffled = Dataset.range(20).shuffle(20, seed=1)
    got = [int(x) for x in chained([shuffled, shuffled, shuffled])]
    assert sorted(got[:20]) == sorted(got[20:40]) == list(range(20))
    assert got[:20] != got[20:40] != got[40:]
    check_operator(lambda: chained([Dataset.range(4).shuffle(4, seed=1)] * 3))

"""concatenate: one dataset, then another."""

import numpy as np
import pytest
from op_cases import fail_at, ints

from dataset import Dataset, TensorSpec
from dataset.testing import check_laziness, check_operator


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
        (Dataset.from_tensors("a"), "one type"),
        (Dataset.from_tensors((1, 2)), "one structure"),
        (Dataset.from_tensors({"a": 1}), "one structure"),
        (Dataset.from_tensors((1,)), "one structure"),
    ],
)
def test_refuses_elements_that_do_not_go_together(other, words):
    with pytest.raises(TypeError, match=rf"concatenate\(\).*{words}"):
        Dataset.range(2).concatenate(other)


def test_a_mismatch_that_only_running_shows_is_raised_while_iterating():
    dataset = Dataset.range(2).concatenate(Dataset.range(2).map(lambda x: (x, x)))
    iterator = iter(dataset)
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises((TypeError, ValueError), match="one structure"):
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

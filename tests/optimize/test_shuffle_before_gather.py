"""shuffle_before_gather: indices are shuffled, and rows taken afterwards."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor
from dataset.ops.gather import Gather
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_operator, check_rule

ROWS = {
    "matrix": np.arange(14.0).reshape(7, 2),
    "text": np.array([f"{i}\0" for i in range(7)], object),
    "dict": {"b": np.arange(7), "a": (np.arange(7).astype("M8[D]"), None)},
    "lists": ([1, 2, 3], ["a", "b", "c"]),
    "objects": np.array([{1}, {2}, {3}], object),
    "empty": np.zeros((0, 3)),
    "zero width": np.zeros((4, 0)),
    "ragged": RaggedTensor.from_rows([[i] * i for i in range(7)]),
    "sparse": SparseTensor([[0, 1], [3, 0]], [5, 6], [4, 2]),
}


def slices(kind="matrix"):
    return Dataset.from_tensor_slices(ROWS[kind])


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize(("size", "shown"), [(3, "3"), (100, "100"), (-2, "all")])
@pytest.mark.parametrize("reshuffle", [True, False])
def test_fires(kind, size, shown, reshuffle):
    plan = f"gather(from_tensor_slices) <- shuffle({shown}, seed=4) <- range({len(slices(kind))})"
    check_rule("shuffle_before_gather", lambda: slices(kind).shuffle(size, 4, reshuffle), plan)
    batched = slices(kind).shuffle(size, 4, reshuffle).batch
    if kind not in {"objects", "ragged"}:  # a set cannot be compared as an array, rows of ragged lengths do not stack
        check_rule(
            "shuffle_before_gather", lambda: slices(kind).shuffle(size, 4, reshuffle).batch(3), f"batch(3) <- {plan}"
        )
    assert batched(2).cardinality() == -(-len(slices(kind)) // 2)


@pytest.mark.parametrize(
    ("make", "plan"),
    [
        (lambda: Dataset.range(5).shuffle(3, seed=1), "shuffle(3, seed=1) <- range(5)"),
        (lambda: slices().take(4).shuffle(3, seed=1), "shuffle(3, seed=1) <- take(4) <- from_tensor_slices"),
        (lambda: slices().map(len).shuffle(3, seed=1), "shuffle(3, seed=1) <- map(len) <- from_tensor_slices"),
        (lambda: slices().batch(2).shuffle(3, seed=1), "shuffle(3, seed=1) <- batch(2) <- from_tensor_slices"),
        (lambda: Dataset.from_tensors([1]).shuffle(3, seed=1), "shuffle(3, seed=1) <- from_tensors"),
        (lambda: slices().batch(2), "batch(2) <- from_tensor_slices"),
    ],
)
def test_does_not_fire(make, plan):
    check_rule("shuffle_before_gather", make, plan)


def test_keeps_the_sequence_of_orders_over_epochs_and_iterators():
    def make():
        return Dataset.from_tensor_slices(np.arange(20)).shuffle(20, seed=3)

    fast, slow = make(), Dataset.range(20).shuffle(20, seed=3)
    for _ in range(3):
        assert [int(x) for x in fast.repeat(2)] == [int(x) for x in slow.repeat(2)]


def test_rows_are_the_users_to_write_into():
    source = np.zeros((10, 2))
    dataset = Dataset.from_tensor_slices(source).shuffle(4, seed=1)
    for element in (*dataset, *dataset.batch(3)):
        element[:] = 1
    assert not source.any()


def test_resumes_inside_what_was_read_ahead():
    check_operator(lambda: Dataset.from_tensor_slices(np.arange(12)).shuffle(5, seed=1).repeat(2).batch(5))


def test_keeps_the_users_lines_and_names():
    dataset = Dataset.from_tensor_slices(np.arange(3), name="rows").shuffle(3, name="mix")
    plan = optimize(dataset.plan).plan
    assert plan.name == "rows"
    assert all("test_shuffle_before_gather.py" in str(node.origin) for node in (plan, *plan.inputs))
    text = dataset.explain()
    assert "shuffle_before_gather: shuffle(3)" in text
    assert "mix" in text


def test_more_rows_than_are_read_ahead_at_once_come_in_the_same_order():
    numbers = np.arange(10_000)
    fast = np.concatenate(list(Dataset.from_tensor_slices(numbers).shuffle(500, seed=1).batch(1000)))
    slow = np.concatenate(list(Dataset.range(10_000).shuffle(500, seed=1).batch(1000)))
    assert_elements_equal([fast], [slow])


def test_a_gather_reads_from_another_input_and_keeps_its_arrays():
    gather = optimize(Dataset.from_tensor_slices([5, 6, 7]).shuffle(3, seed=1).plan).plan
    assert isinstance(gather, Gather)
    other = gather.with_inputs([Dataset.range(2).plan])
    assert [node.described() for node in other.inputs] == ["range(2)"]
    assert other.slices is gather.slices
    assert list(Dataset(other)) == [5, 6]

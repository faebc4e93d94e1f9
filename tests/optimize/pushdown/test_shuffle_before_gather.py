"""shuffle_before_gather: indices are shuffled, and rows taken afterwards."""

import itertools

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, TFRecordDataset
from dataset.io import TFRecordWriter
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_rule, outcomes
from support.pipelines import as_written, unoptimized

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


GATHER = "gather(from_tensor_slices)"
RULE = "shuffle_before_gather"


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("reshuffle", [True, False])
def test_fires(kind, reshuffle):
    count = len(slices(kind))
    for size, shown in ((3, "3"), (100, "100"), (-2, "all")):
        shuffled = lambda size=size: slices(kind).shuffle(size, 4, reshuffle)
        plan = f"{GATHER} <- shuffle({shown}, seed=4) <- range({count})"
        check_rule(RULE, shuffled, plan)
        assert shuffled().batch(2).cardinality() == -(-count // 2)
        if kind not in {"objects", "ragged"}:  # a set cannot be compared as an array, ragged rows do not stack
            check_rule(RULE, lambda shuffled=shuffled: shuffled().batch(3), f"batch(3) <- {plan}")


ELSEWHERE = [Dataset.range(5), Dataset.from_tensors([1]), slices().map(len), slices().map(len).repeat(2)]
ELSEWHERE += [slices().batch(2), slices().concatenate(slices()), Dataset.zip(slices(), Dataset.range(7))]
ELSEWHERE += [Dataset.zip(slices(), slices("empty"))]


@pytest.mark.parametrize("source", ELSEWHERE)
def test_does_not_fire(source):
    for make in (lambda: source.shuffle(3, seed=1), lambda: source.batch(2)):
        check_rule(RULE, make, as_written(make()))


MOVES = {
    "shuffle(3, seed=1) <- take(4)": lambda d: d.take(4).shuffle(3, 1),
    "shuffle(9, seed=1) <- repeat(3)": lambda d: d.repeat(3).shuffle(9, 1),
    "shuffle(5, seed=1) <- take(8) <- skip(3) <- repeat()": lambda d: d.repeat().skip(3).take(8).shuffle(5, 1),
    "repeat(3) <- shuffle(4, seed=1)": lambda d: d.shuffle(4, 1).repeat(3),
    "skip(2) <- repeat(3) <- shuffle(4, seed=1)": lambda d: d.shuffle(4, 1, False).repeat(3).skip(2),
    "take(2) <- shard(2, 1) <- shuffle(4, seed=1)": lambda d: d.shuffle(4, 1).shard(2, 1).take(2),
    "shuffle(3, seed=2) <- shuffle(4, seed=1)": lambda d: d.shuffle(4, 1).shuffle(3, 2),
}


@pytest.mark.parametrize("kind", set(ROWS) - {"empty"})  # which has no end if it is repeated
def test_takes_the_rows_behind_all_that_only_moves_them(kind):
    for plan, chain in MOVES.items():
        check_rule(RULE, lambda chain=chain: chain(slices(kind)), f"{GATHER} <- {plan} <- range({len(slices(kind))})")


def test_takes_the_rows_before_what_looks_at_them_or_begins_passes():
    shuffled, below = lambda: slices().shuffle(4, 1), "shuffle(4, seed=1) <- range(7)"
    check_rule(RULE, lambda: shuffled().batch(2).repeat(2), f"repeat(2) <- batch(2) <- {GATHER} <- {below}")
    check_rule(RULE, lambda: shuffled().prefetch(2).repeat(2), f"repeat(2) <- prefetch(2) <- {GATHER} <- {below}")
    again = lambda: shuffled().repeat(2).shuffle(3, 2)
    check_rule(RULE, again, f"shuffle(3, seed=2) <- {GATHER} <- repeat(2) <- {below}")


@pytest.mark.parametrize("others", [("text",), ("dict", "matrix"), ("matrix", "text", "ragged")])
def test_shuffles_the_numbers_of_rows_side_by_side(others):
    def make():
        return Dataset.zip(*(slices(kind) for kind in ("matrix", *others))).shuffle(4, 1).repeat(2)

    check_rule(RULE, make, f"{GATHER} <- repeat(2) <- shuffle(4, seed=1) <- range(7)")


def test_a_shuffle_that_stands_in_a_plan_twice_has_the_epochs_that_it_had():
    def make(combine, size):
        dataset = combine(Dataset.from_tensor_slices(np.arange(5)).shuffle(5, seed=1))
        return dataset.batch(size) if size else dataset

    combinations = [
        lambda d: Dataset.zip(d.repeat(40), d.repeat(40)),
        lambda d: Dataset.zip(d.repeat(40).shuffle(7, seed=2), d.repeat(40)),
        lambda d: Dataset.zip(d.repeat(40).skip(3), d.repeat(40).shard(2, 1)),
        lambda d: d.repeat(3).concatenate(d.take(3).repeat(2)),
    ]
    for combine, size in itertools.product(combinations, [0, 1, 4]):
        assert_elements_equal(list(make(combine, size)), list(unoptimized(make(combine, size))))


def test_keeps_the_users_lines_and_names():
    dataset = Dataset.from_tensor_slices(np.arange(3), name="rows").shuffle(3, name="mix")
    plan = optimize(dataset.plan).plan
    assert plan.name == "rows"
    assert all("test_shuffle_before_gather.py" in str(node.origin) for node in (plan, *plan.inputs))
    text = dataset.explain()
    assert "shuffle_before_gather: shuffle(3)" in text
    assert "mix" in text


def test_take_counts_only_records_that_do_not_fail(tmp_path):
    path = tmp_path / "a.tfrecord"
    with TFRecordWriter(path) as writer:
        for number in range(20):
            writer.write(b"%03d" % number)
    content = bytearray(path.read_bytes())
    for number in (3, 4, 11):
        content[19 * number + 13] ^= 1
    path.write_bytes(content)
    dataset = TFRecordDataset(str(path), index=True).shuffle(20, seed=1).take(15)
    assert sum(isinstance(outcome, bytes) for outcome in outcomes(iter(dataset))) == 15

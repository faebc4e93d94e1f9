"""slice_pushdown: take, skip and shard become part of the sources that know where their elements are."""

import itertools

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor
from dataset.optimize.driver import optimize
from dataset.testing import check_rule
from support.pipelines import as_written, double

ROWS = {
    "matrix": np.arange(18.0).reshape(9, 2),
    "backwards": np.arange(9)[::-1],
    "text": np.array([f"{i}\0" for i in range(9)], object),
    "dict": {"b": np.arange(9), "a": (np.arange(9).astype("M8[D]"), None)},
    "lists": ([1, 2, 3, 4, 5, 6, 7, 8, 9], list("abcdefghi")),
    "ragged": RaggedTensor.from_rows([[i] * i for i in range(9)]),
    "sparse": SparseTensor([[0, 1], [3, 0], [8, 1]], [5, 6, 7], [9, 2]),
}


def slices(kind="matrix"):
    return Dataset.from_tensor_slices(ROWS[kind])


CHOOSING = [
    (lambda d: d.take(4), "0:4"),
    (lambda d: d.take(0), "0:0"),
    (lambda d: d.take(99), None),
    (lambda d: d.skip(4), "4:9"),
    (lambda d: d.skip(99), "9:9"),
    (lambda d: d.skip(-1), "9:9"),
    (lambda d: d.shard(4, 1), "1:9:4"),
    (lambda d: d.shard(20, 12), "9:9:20"),
    (lambda d: d.skip(2).take(5), "2:7"),
    (lambda d: d.take(5).skip(2), "2:5"),
    (lambda d: d.shard(2, 1).skip(1).shard(2, 1), "5:9:4"),
    (lambda d: d.shard(4, 0).take(2), "0:8:4"),
]


@pytest.mark.parametrize("kind", ROWS)
def test_fires_over_slices(kind):
    for choose, rows in CHOOSING:
        plan = "from_tensor_slices" if rows is None else f"from_tensor_slices[{rows}]"
        check_rule("slice_pushdown", lambda choose=choose: choose(slices(kind)), plan)


@pytest.mark.parametrize(
    ("make", "plan"),
    [
        (lambda: Dataset.range(10).skip(4), "range(4, 10)"),
        (lambda: Dataset.range(10).take(4), "range(4)"),
        (lambda: Dataset.range(9, 0, -2).skip(1).take(2), "range(7, 3, -2)"),
        (lambda: Dataset.range(10).shard(3, 1), "range(1, 10, 3)"),
        (lambda: Dataset.range(2**63 - 3, 2**63 - 1).skip(1), f"range({2**63 - 2}, {2**63 - 1})"),
        (lambda: Dataset.range(300, output_type=np.uint8).skip(298), "range(298, 300)"),
        (lambda: Dataset.range(10).skip(4).map(double), "map(double) <- range(4, 10)"),
        (lambda: Dataset.range(10).shard(2, 1).batch(2).take(1), "take(1) <- batch(2) <- range(1, 10, 2)"),
        (lambda: Dataset.range(10).skip(4).repeat(2), "repeat(2) <- range(4, 10)"),
    ],
)
def test_fires_over_ranges(make, plan):
    check_rule("slice_pushdown", make, plan)


NUMBERS = Dataset.range(10)
NEVER = [NUMBERS.map(double).take(4), NUMBERS.map(double).skip(4), NUMBERS.filter(bool).shard(2, 0)]
NEVER += [NUMBERS.shuffle(9, 1, False).skip(4), NUMBERS.batch(2).skip(1), NUMBERS.repeat(2).skip(12)]
NEVER += [Dataset.range(10, output_type=np.float16).skip(1), Dataset.from_tensors(1).take(1)]
NEVER += [Dataset.from_generator(lambda: [1, 2]).shard(2, 0)]


@pytest.mark.parametrize("dataset", NEVER)
def test_does_not_fire(dataset):
    check_rule("slice_pushdown", lambda: dataset, as_written(dataset))


def test_says_what_a_user_could_change():
    mapped = NUMBERS.map(double)
    for dataset, op in [
        (mapped.skip(4), "skip"),
        (mapped.shard(8, 3), "shard"),
        (mapped.map(abs).shard(8, 3), "shard"),
    ]:
        (missed,) = optimize(dataset.plan).missed
        assert missed.rule == "slice_pushdown"
        reason = f"map(double) is also called for the elements that are left out; write {op}() before it"
        assert missed.reason == reason
    for dataset in (
        mapped.take(4),  # calls nothing for the others as it is
        Dataset.from_generator(lambda: [1, 2]).map(double).skip(1),  # could not go below the generator either
        mapped.shuffle(3).skip(4),
        mapped.skip(0),
    ):
        assert optimize(dataset.plan).missed == ()


def test_a_shard_of_files_reads_only_names(tmp_path):
    for i in range(6):
        (tmp_path / f"part-{i}").touch()
    files = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    assert optimize(files.shard(3, 1).plan).plan.label() == "list_files(2 files)"
    assert [name.decode()[-1] for name in files.shard(3, 1)] == ["1", "4"]
    shuffled = lambda: Dataset.list_files(str(tmp_path / "*"), shuffle=True, seed=3).shard(3, 1)
    check_rule("slice_pushdown", shuffled, "shard(3, 1) <- shuffle(6, seed=3) <- list_files(6 files)")


def test_takes_no_time_for_what_is_left_out():
    many = np.broadcast_to(np.float32(3), 10**13)
    assert list(Dataset.from_tensor_slices(many).skip(10**13 - 2)) == [3, 3]
    assert list(Dataset.from_tensor_slices(many).shard(10**12, 5).take(2)) == [3, 3]
    assert list(Dataset.range(2**62).skip(2**62 - 1)) == [2**62 - 1]


def test_rows_stay_read_only_views_of_the_users_array():
    array = np.arange(20).reshape(10, 2)
    for dataset in (Dataset.from_tensor_slices(array).shard(3, 1), Dataset.from_tensor_slices(array).skip(2).take(4)):
        for element in itertools.chain(dataset, dataset.batch(2)):
            assert np.shares_memory(element, array)
            assert not element.flags.writeable

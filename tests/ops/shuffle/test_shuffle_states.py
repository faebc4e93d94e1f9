"""States of shuffles whose input has random access: how many elements were returned, and none of the buffer."""

import numpy as np
import pytest

from dataset import Dataset, StateError, TFRecordDataset
from dataset.io import TFRecordWriter
from dataset.testing import assert_elements_equal, check_operator
from support.combinations import diagonals
from support.folders import flip
from support.op_cases import fail_at
from support.pipelines import unoptimized
from support.resuming import check_every_place, loaded, resealed, to_json
from support.states import state_after


def square(x):
    return x * x


def as_text(x):
    return str(x)


ROWS = np.arange(60).reshape(30, 2)
SLICES = Dataset.from_tensor_slices(ROWS)
DICTS = Dataset.from_tensor_slices({"a": ROWS, "b": ROWS[:, 0]})

SOURCES = {
    "range": lambda: Dataset.range(30),
    "slices": lambda: SLICES,
    "dict": lambda: DICTS,
    "repeated": lambda: Dataset.range(9).repeat(3),
    "endless": SLICES.repeat,
    "concatenated": lambda: Dataset.range(9).concatenate(Dataset.range(13)),
    "zipped": lambda: Dataset.zip(Dataset.range(30), SLICES),
    "batches": lambda: SLICES.batch(4),
    "share": lambda: Dataset.range(31).shard_by_process(1, 3, remainder="drop"),
    "arithmetic": lambda: Dataset.range(30).map(square),
    "in parallel": lambda: Dataset.range(30).map(as_text, num_parallel_calls=2).map(int),
    "function over batches": lambda: SLICES.batch(4).map(np.sum),
    "results again and again": lambda: Dataset.range(7).map(as_text).repeat(4),
    "a part of results": lambda: Dataset.range(60).map(as_text).skip(3).shard(2, 1).take(20),
    "shuffled in epochs": lambda: Dataset.range(8).shuffle(4, seed=1).repeat(4),
    "shuffled and prefetched": lambda: Dataset.range(8).shuffle(9, seed=1).repeat(2).prefetch(2),
    "shuffled thrice": lambda: Dataset.range(30).shuffle(5, seed=1).shuffle(6, seed=2),
    "a shuffled part": lambda: Dataset.range(70).shuffle(9, seed=1).skip(5).take(60).shard(2, 1),
}


@pytest.mark.parametrize(("source", "size", "optimized"), diagonals(3, SOURCES, [2, 7, 30, 100], [True, False]))
def test_keeps_the_contract_of_operators(source, size, optimized):
    def make():
        dataset = SOURCES[source]().shuffle(size, seed=3).take(40)
        return dataset if optimized else unoptimized(dataset)

    check_operator(make, positions=12)


@pytest.mark.parametrize(
    ("size", "chain"),
    [(1000, "range"), (10**6, "slices"), (10**5, "unoptimized"), (None, "epochs"), (10**5, "batched")],
)
def test_a_state_is_small_whatever_the_buffer(size, chain):
    rows = Dataset.from_tensor_slices(np.zeros((1_250_000, 1), np.uint8)).shuffle(size)
    dataset = {
        "range": Dataset.range(250_000).shuffle(size),
        "slices": rows,
        "unoptimized": unoptimized(rows),
        "epochs": rows.repeat(),
        "batched": rows.batch(10),
    }[chain]
    assert len(to_json(state_after(dataset, 3))) < 1000


@pytest.mark.parametrize(("demand", "size"), [(5, 6), (64, 1), (5, 31), (64, 30)])
def test_elements_drawn_ahead_do_not_count_as_returned(demand, size):
    everything = list(Dataset.range(30).shuffle(size, seed=1))
    check_operator(lambda: Dataset.range(30).shuffle(size, seed=1).batch(demand).unbatch(), everything, positions=12)


@pytest.mark.parametrize("size", [3, 20])
def test_after_an_element_that_failed_the_buffer_is_saved(size):
    check_operator(lambda: Dataset.range(10).map(fail_at(4, 8)).shuffle(size, seed=3).repeat(2))


def test_an_element_that_cannot_be_recomputed_is_an_error_that_says_so():
    broken = []

    def read(x):
        if broken:
            raise OSError("no such file")
        return str(x)

    def make():
        return Dataset.range(100).map(read).shuffle(5, seed=1)

    state = state_after(make(), 40)
    broken.append(True)
    again = loaded(make(), to_json(state))
    with pytest.raises(StateError, match=r"cannot be recomputed.*no such file"):
        next(again)
    assert list(again) == []  # the error is not repeated forever


@pytest.mark.parametrize(("size", "skipped"), diagonals(3, [2, 7, 30, 31], [0, 1, 23, 24, 29, 30, 31]))
def test_skipped_elements_are_not_computed(size, skipped):
    dataset = Dataset.range(30).shuffle(size, seed=3, reshuffle_each_iteration=False)
    assert_elements_equal(list(dataset.skip(skipped)), list(dataset)[skipped:])
    far = Dataset.range(10**15).shuffle(size, seed=3).skip(10**15 - 5)
    assert len(list(far)) == 5


@pytest.mark.parametrize("given", [-1, 31, 2**70])
def test_refuses_places_beyond_the_input(given):
    dataset = Dataset.range(30).shuffle(4, seed=1)
    state = state_after(dataset, 0)
    with pytest.raises(StateError, match=r"out of range for the input|state is damaged"):
        iter(dataset).load_state_dict(resealed(state, operator={**state["operator"], "at": given}))


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    "chain",
    [
        lambda d: d.shuffle(6, seed=2),
        lambda d: d.shuffle(None, seed=2).repeat(2),
        lambda d: unoptimized(d.map(len).shuffle(6, seed=2)),
        lambda d: d.shuffle(40, seed=2).batch(4),
    ],
)
def test_resumes_in_damaged_files(tmp_path, on_error, chain):
    name = tmp_path / "records.tfrecord"
    with TFRecordWriter(str(name)) as writer:
        for number in range(40):
            writer.write(f"record {number:03}".encode())
    flip(name, *(number * 26 + 14 for number in (7, 8, 30)))

    found = check_every_place(lambda: chain(TFRecordDataset(str(name), index=True, on_error=on_error)), range(0, 80, 4))
    assert any(isinstance(outcome, OSError) for outcome in found) is (on_error == "raise")

"""States of interleave: they are saved without waiting, hold nothing that can be read again, and lose nothing."""

import pickle
import threading

import numpy as np
import pytest

from dataset import Dataset, TFRecordDataset, io
from dataset.errors import DataLossError
from dataset.ops.interleave.subdatasets import Inputs
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.folders import flip
from support.overlap import Gate
from support.process_helpers import in_thread
from support.resuming import advanced, interrupted, loaded, to_json

pytestmark = pytest.mark.usefixtures("switch_interval")


# Saving does not wait


def ten_after(n):
    return Dataset.range(100 * n, 100 * n + 10)


BLOCKED = {
    "readers": lambda held, **how: Dataset.range(4).interleave(lambda n: ten_after(n).map(held), 4, **how),
    "the function": lambda held, **how: Dataset.range(5).interleave(lambda n: ten_after(held(n)), 2, **how),
    "the source": lambda held, **how: Dataset.range(6).map(held).interleave(ten_after, 2, **how),
}


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("blocked", BLOCKED)
def test_a_state_is_saved_at_once_while_user_code_blocks(blocked, deterministic):
    gate, is_in_readers = Gate(), blocked == "readers"

    def make(**how):
        return BLOCKED[blocked](lambda x: gate(x) if x % 100 == 3 else x, **how)

    how = {"num_parallel_calls": 8 if is_in_readers else 2, "deterministic": deterministic}
    iterator = iter(make(**how))
    found = advanced(iterator, 4 if is_in_readers else 3)
    gate.wait_for(4 if is_in_readers else 1)
    state = in_thread(lambda: to_json(iterator.state_dict())).result()
    resumed = loaded(make(**how), state)
    again = in_thread(lambda: to_json(resumed.state_dict())).result()
    gate.opened.set()
    expected = outcomes(iter(make()))
    for each in (iterator, resumed, loaded(make(**how), again)):
        whole = found + outcomes(each)
        assert whole == expected if deterministic else sorted(whole) == sorted(expected)


# Nothing is held that can be read again


@pytest.mark.parametrize("calls", [None, 4])
def test_a_state_holds_no_records_and_no_finished_rounds(tmp_path, calls):
    names = [str(tmp_path / f"{number}.tfrecord") for number in range(4)]
    for name in names:
        with io.TFRecordWriter(name) as writer:
            for i in range(100):
                writer.write(np.random.default_rng(i).bytes(3000))
    with iter(Dataset.from_tensor_slices(names).interleave(TFRecordDataset, 4, num_parallel_calls=calls)) as iterator:
        advanced(iterator, 75)
        assert len(pickle.dumps(iterator.state_dict())) < 4 * 1000
    with iter(Dataset.range(4).interleave(lambda n: Dataset.range(10_000), 4, num_parallel_calls=calls)) as iterator:
        for taken in range(1, 200, 7):
            advanced(iterator, 7)
            state = iterator.state_dict()["operator"]
            assert "held" not in state, taken
            assert all("ahead" not in slot["held"] for slot in state["inputs"][1:])


@pytest.mark.parametrize("parallel", [None, 2])
def test_a_dataset_that_has_ended_is_not_opened_again(parallel):
    calls = []

    def open_one(n):
        calls.append(int(n))
        return Dataset.range(1 if n == 0 else 100)

    def make():
        return Dataset.range(2).interleave(open_one, 2, num_parallel_calls=parallel)

    _, states = interrupted(make(), [20])
    calls.clear()
    assert len(outcomes(loaded(make(), states[20]))) == 81
    assert calls == [1]


# Files


def test_a_damaged_and_a_missing_file_fail_once_wherever_they_are_resumed(tmp_path):
    names = [str(tmp_path / f"{number}.plain") for number in range(5)]
    for number, (name, length) in enumerate(zip(names, (7, 0, 12, 3, 7), strict=True)):
        with io.TFRecordWriter(name) as writer:
            writer.write_all([f"{number}.{i}-{'x' * (i * 5 % 11)}".encode() for i in range(length)])
    flip(tmp_path / "2.plain", 100)
    names[3] += ".gone"
    files = Dataset.from_tensor_slices(names)
    found = check_operator(lambda: files.interleave(TFRecordDataset, 3, num_parallel_calls=3), positions=20)
    assert [type(x) for x in found if isinstance(x, Exception)] == [FileNotFoundError, DataLossError]
    assert_elements_equal(outcomes(iter(files.interleave(TFRecordDataset, 3))), found)
    assert_elements_equal(outcomes(iter(TFRecordDataset(names, num_parallel_reads=3))), found)


def test_readers_may_finish_while_the_source_is_saved(monkeypatch):
    """The source may wait for its workers, which may need the thread of a reader that is about to finish."""
    source = Dataset.range(20).map(int, num_parallel_calls=2, deterministic=False)
    dataset = source.interleave(lambda x: Dataset.range(x, x + 2), cycle_length=2, num_parallel_calls=2)
    was_free = []
    with iter(dataset) as iterator:
        advanced(iterator, 3)
        lock = iterator._root.readers.lock

        def save(inputs, *arguments, original=Inputs.save, **keywords):
            def finish():
                was_free.append(lock.acquire(timeout=5))
                if was_free[-1]:
                    lock.release()

            reader = threading.Thread(target=finish)
            reader.start()
            reader.join()
            return original(inputs, *arguments, **keywords)

        monkeypatch.setattr(Inputs, "save", save)
        iterator.state_dict()
    assert was_free == [True]

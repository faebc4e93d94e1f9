"""What the autotuner has learned is found by the code of the work, in this process and in a file."""

import functools
import json
import logging

import pytest

from dataset import AUTOTUNE, Dataset, Options
from dataset.autotune import tuning_memory as memory
from dataset.plan.fingerprints.work_key import work_key
from dataset.runtime.choice import Learned
from support.process_helpers import run_code

LEARNED = Learned("threads", 9, 1e-3, patience=2, waits=True, has_gaps=True)


def add(x, y=1):
    return x + y


class Adder:
    def __init__(self, y):
        self.y = y

    def method(self, x):
        return x + self.y


def adding(y):
    return lambda x: x + y


def built(function, size=10):
    return Dataset.range(size).map(function, num_parallel_calls=AUTOTUNE).plan


def test_the_key_is_that_of_the_code_whatever_the_data():
    makers = [lambda: add, lambda: adding(3), lambda: Adder(1).method, lambda: functools.partial(add, y=2), lambda: abs]
    keys = [[work_key(built(make(), size)) for size in (10, 20)] for make in makers]
    assert all(first == second for first, second in keys)
    others = [adding(4), adding("4"), functools.partial(add, y=3), lambda x: x]
    assert len({*(first for first, _ in keys), *map(work_key, map(built, others))}) == len(makers) + len(others)
    assert work_key(Dataset.range(10).map(add).plan) != work_key(built(add))  # another line


def test_the_key_is_the_same_in_another_process():
    program = """
from dataset import Dataset
from dataset.plan.fingerprints.work_key import work_key
print(work_key(Dataset.range(3).map(lambda x: x in {'a', 'b', 'c'}).plan))
"""
    assert len({run_code(program, PYTHONHASHSEED=seed).stdout for seed in "12"}) == 1


def test_a_file_keeps_what_was_learned(tmp_path):
    file = tmp_path / "memory.json"
    path = str(file)
    memory.remember({"a": LEARNED}, path)
    memory.forget()
    assert memory.recall("a", None) is None
    assert memory.recall("a", path) == LEARNED
    memory.forget()
    memory.remember({"b": LEARNED._replace(value=3)}, path)  # of another process, which did not read the first
    assert set(json.loads(file.read_text())["learned"]) == {"a", "b"}
    before = file.stat().st_ino
    memory.remember({"b": LEARNED._replace(value=3, each=2.0)}, path)
    assert file.stat().st_ino == before  # nothing was decided


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"\xff", b"[" * 100_000, b"7", b"{}", b'{"dataset_autotune": 9, "learned": {}}',
        b'{"dataset_autotune": 3, "learned": [1]}', b'{"dataset_autotune": 3, "learned": {"a": [1, 2]}}',
        b'{"dataset_autotune": 3, "learned": {"a": ["threads", 1e99, 0, 0, 0, 0, 0, false, false]}}',
        b'{"dataset_autotune": 3, "learned": {"a": ["threads", 3, NaN, 0, 0, 0, 0, false, false]}}',
        b'{"dataset_autotune": 3, "learned": {"a": ["threads", -1, 0, 0, 0, 0, 0, false, false]}}',
        b" " * (2 << 20),
    ],
)  # fmt: skip
def test_a_damaged_file_is_told_and_replaced(tmp_path, caplog, content):
    path = tmp_path / "memory.json"
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING, logger="dataset"):
        assert memory.recall("a", str(path)) is None
    assert f"autotune.memory: {path} is not used" in caplog.text
    memory.remember({"a": LEARNED}, str(path))
    memory.forget()
    assert memory.recall("a", str(path)) == LEARNED


def test_the_option_names_the_file(tmp_path):
    options = Options()
    options.autotune.memory = str(tmp_path / "memory.json")
    dataset = Dataset.range(50).map(str, num_parallel_calls=AUTOTUNE, name="map").with_options(options)
    for value in (1, 5):
        with iter(dataset) as iterator:
            next(iterator)
            record = next(record for record in iterator._profile.top.walk() if record.knob is not None)
            assert value in (1, record.knob.value)
            record.knob.value = 5
        memory.forget()
    with pytest.raises(TypeError, match=r"AutotuneOptions.memory must be text or None, got 7"):
        options.autotune.memory = 7

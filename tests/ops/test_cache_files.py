"""cache(filename): kept in files, for later passes and later processes."""

import dataclasses
import itertools
import logging
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from op_cases import fail_at, ints

from dataset import DataLossError, Dataset, RaggedTensor, SparseTensor, SpecError, StateError
from dataset.testing import assert_elements_equal, check_laziness, check_operator, no_leaks, outcomes


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Record:
    image: object
    label: object


def counting(calls, stop=4):
    return Dataset.range(stop).map(lambda x: calls.append(int(x)) or x)


@pytest.fixture
def new(tmp_path):
    """Names that nobody has used."""
    numbers = itertools.count()
    return lambda: str(tmp_path / f"cache{next(numbers)}")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "cache")


def files_in(path):
    return sorted(str(p.relative_to(path)) for p in Path(path).rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda name: Dataset.range(5).map(lambda x: x * 2).cache(name), ints(0, 2, 4, 6, 8)),
        (lambda name: Dataset.range(0).cache(name), []),
        (lambda name: Dataset.range(3).map(str).cache(name).repeat(3), [b"0", b"1", b"2"] * 3),
        (lambda name: Dataset.range(3).cache(name).repeat(2).batch(2), None),
        (lambda name: Dataset.range(6).shuffle(6, seed=1).cache(name).repeat(3), None),
        (lambda name: Dataset.range(6).cache(name).shuffle(6, seed=1).repeat(3), None),
        (
            lambda name: Dataset.range(5).map(fail_at(1, 3)).cache(name),
            [*ints(0), ValueError("bad 1"), *ints(2), ValueError("bad 3"), *ints(4)],
        ),
        (lambda name: Dataset.range(6).prefetch(2).cache(name).prefetch(2).repeat(2), None),
    ],
)
def test_keeps_the_whole_contract_while_filling(new, make, expected):
    check_operator(lambda: make(new()), expected)


def test_keeps_the_whole_contract_while_reading(path):
    make = lambda: Dataset.range(9).map(lambda x: (x, {"a": np.full(x, x)})).cache(path)
    found = list(make())
    check_operator(make, found)


def test_takes_one_element_for_each(new):
    check_laziness(lambda numbers: numbers.cache(new()), lambda k: k)


def test_runs_its_input_once_whoever_asks(path):
    calls = []
    dataset = counting(calls).cache(path)
    assert list(dataset) == list(dataset) == list(counting(calls).cache(path)) == [0, 1, 2, 3]
    assert list(dataset.batch(2).repeat(2).unbatch()) == [0, 1, 2, 3] * 2
    assert calls == [0, 1, 2, 3]


def test_asking_for_the_spec_writes_nothing(path):
    calls = []
    dataset = counting(calls).cache(path).map(lambda x: (x, x))
    assert dataset.element_spec[0].dtype == np.int64
    assert not Path(path).exists()
    assert len(list(dataset)) == 4


@pytest.mark.parametrize("taken", [1, 3, 4])
def test_a_partial_pass_leaves_no_cache_and_says_so(path, caplog, taken):
    calls = []
    dataset = counting(calls).cache(path)
    with caplog.at_level(logging.WARNING):
        assert len(list(dataset.take(taken))) == taken
    assert f"left after {taken} elements" in caplog.text
    assert "put take() before cache()" in caplog.text
    assert files_in(path) == []
    calls.clear()
    assert list(dataset) == [0, 1, 2, 3]
    assert calls == [0, 1, 2, 3]


def test_a_full_pass_says_nothing(path, caplog):
    list(Dataset.range(3).cache(path))
    list(Dataset.range(3).cache(path))
    assert not caplog.records


def test_a_second_iterator_during_the_first_pass_is_an_error(path):
    dataset = Dataset.range(4).cache(path)
    first = iter(dataset)
    next(first)
    second = iter(Dataset.range(4).cache(path))
    with pytest.raises(FileExistsError, match=r"another iterator of this process is filling the cache in .*cache"):
        next(second)
    assert list(first) == [1, 2, 3]
    assert list(second) == [0, 1, 2, 3]


def test_a_closed_or_abandoned_pass_lets_the_next_one_fill(path):
    for end in (lambda it: it.close(), lambda it: None):
        with no_leaks():
            iterator = iter(Dataset.range(4).cache(path))
            next(iterator)
            end(iterator)
            del iterator
    assert files_in(path) == []
    assert list(Dataset.range(4).cache(path)) == [0, 1, 2, 3]


def test_a_lock_file_that_nobody_holds_is_no_hindrance(path):
    Path(path).mkdir()
    Path(path, "filling.lock").write_text("process 1\n")
    assert list(Dataset.range(2).cache(path)) == [0, 1]
    assert [name for name in files_in(path) if "lock" in name] == []


def test_what_a_dead_writer_left_is_removed(path):
    run = Path(path, "0123456789abcdef")
    run.mkdir(parents=True)
    (run / "00000000.tfrecord").write_bytes(b"half")
    Path(path, "0123456789abcdef.lock").write_text("process 1\n")
    Path(path, "notes.txt").write_text("mine")
    assert list(Dataset.range(2).cache(path)) == [0, 1]
    assert not run.exists()
    assert Path(path, "notes.txt").read_text() == "mine"
    assert len(files_in(path)) == 3


def test_elements_that_fail_are_left_out_of_later_passes(path):
    dataset = Dataset.range(4).map(fail_at(1)).cache(path)
    assert_elements_equal(outcomes(iter(dataset)), [np.int64(0), ValueError("bad 1"), *ints(2, 3)])
    assert_elements_equal(outcomes(iter(dataset)), ints(0, 2, 3))


ELEMENTS = {
    "scalars": [np.float16(1.5), np.float16(-2)],
    "text": [b"a\0", b"", b"\0"],
    "times": list(np.array([1, 2], "M8[ns]")),
    "images": [np.full((2, 3), i, np.uint8) for i in range(3)],
    "vectors": [np.arange(i) for i in range(4)],
    "nested": [(np.int64(i), {"b": None, "a": (np.arange(i), b"x" * i)}) for i in range(3)],
    "ragged": [RaggedTensor.from_rows([[1.0] * i, []]) for i in range(3)],
    "sparse": [SparseTensor([[i]], [i], [4]) for i in range(3)],
    "named": [Point(np.int64(i), np.arange(2)) for i in range(3)],
    "dataclass": [Record(np.full(2, i), np.int64(i)) for i in range(3)],
    "keys": [{1: np.int64(i), 2: b"a"} for i in range(2)],
}


@pytest.mark.parametrize("kind", ELEMENTS)
def test_elements_of_every_kind_come_back(path, kind):
    elements = ELEMENTS[kind]
    make = lambda: Dataset.from_generator(lambda: iter(elements)).cache(path)
    assert_elements_equal(list(make()), elements)
    assert_elements_equal(list(make()), elements)


@pytest.mark.parametrize("warm", [False, True])
def test_arrays_come_out_read_only(path, warm):
    make = lambda: Dataset.range(2).map(lambda x: (np.full(3, x), RaggedTensor(np.zeros(2), [0, 2]))).cache(path)
    if warm:
        list(make())
    for array, ragged in make():
        assert not array.flags.writeable
        assert not ragged.values.flags.writeable


def test_an_object_is_refused_at_its_place_and_nothing_is_kept(path):
    dataset = Dataset.range(3).map(lambda x: object() if x == 1 else x).cache(path)
    for _ in range(2):
        found = outcomes(iter(dataset))
        assert_elements_equal([found[0], found[2]], ints(0, 2))
        assert isinstance(found[1], TypeError)
        assert "a object cannot be written to a file" in str(found[1])
    assert files_in(path) == []
    whole = outcomes(iter(dataset.batch(3)))
    assert isinstance(whole[0], TypeError)


def test_elements_of_another_dtype_are_refused(path):
    kinds = {1: np.float32(1), 3: b"text"}
    dataset = Dataset.range(5).map(lambda x: kinds.get(int(x), x)).cache(path)
    found = outcomes(iter(dataset))
    assert_elements_equal([found[0], found[2], found[4]], ints(0, 2, 4))
    for position, dtype in ((1, "float32"), (3, "bytes")):
        assert isinstance(found[position], SpecError)
        assert f"one kind and dtype, got {dtype} for the element after int64" in str(found[position])
        assert f"element {position}" in found[position].__notes__[0]


def test_an_old_cache_of_other_elements_is_an_error_that_says_what_to_do(path):
    list(Dataset.range(3).cache(path))
    message = r"holds elements of another pipeline.*delete the directory"
    for other in (
        Dataset.range(3).batch(2),
        Dataset.range(3).map(float),
        Dataset.range(3).map(lambda x: (x, x)),
        Dataset.from_tensor_slices({"a": [1]}),
    ):
        with pytest.raises(SpecError, match=message):
            next(iter(other.cache(path)))
    assert list(Dataset.range(9).cache(path)) == [0, 1, 2]  # as in tf.data: the same kind of elements


def test_a_saved_dataset_is_not_taken_for_a_cache(path):
    Dataset.range(3).save(path)
    with pytest.raises(SpecError, match=r"was written by save\(\)"):
        list(Dataset.range(3).cache(path))


@pytest.mark.parametrize("filename", [3, None, ["a"], 2.0])
def test_what_is_no_name(filename):
    with pytest.raises(TypeError, match="path"):
        Dataset.range(3).cache(filename)


def test_names_of_every_type(tmp_path):
    for name in (tmp_path / "a", os.fsencode(tmp_path / "a"), f"{tmp_path}/a/"):
        assert list(Dataset.range(3).cache(name)) == [0, 1, 2]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_directory_that_cannot_be_made(tmp_path):
    dataset = Dataset.range(3).cache(tmp_path / "no" / "where")
    with pytest.raises(FileNotFoundError, match="where"):
        list(dataset)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        list(Dataset.range(3).cache(tmp_path / "file"))


def test_a_damaged_cache_says_where(path):
    dataset = Dataset.range(1000).map(lambda x: x).cache(path)
    list(dataset)
    (shard,) = (name for name in files_in(path) if name.endswith(".tfrecord"))
    content = bytearray(Path(path, shard).read_bytes())
    content[len(content) // 2] ^= 1
    Path(path, shard).write_bytes(content)
    with pytest.raises(DataLossError, match=r"tfrecord, record 0, at byte 0"):
        list(dataset)


def test_a_state_of_a_first_pass_goes_on_where_there_is_no_cache(new):
    def make(name):
        return Dataset.range(4).shuffle(4, seed=3).map(lambda x: x + 1).cache(name).repeat(2)

    for position, warm in itertools.product(range(9), (False, True)):
        with iter(make(new())) as iterator:
            for _ in range(position):
                next(iterator)
            state = iterator.state_dict()
            rest = list(iterator)
        name = new()
        if warm:
            assert len(list(make(name))) == 8
        resumed = iter(make(name))
        resumed.load_state_dict(state)
        assert_elements_equal(list(resumed), rest)
        assert len(list(make(name))) == 8


def test_an_iterator_can_go_back_while_it_fills(path):
    iterator = iter(Dataset.range(5).map(lambda x: x).cache(path))
    next(iterator)
    state = iterator.state_dict()
    assert [next(iterator), next(iterator)] == [1, 2]
    iterator.load_state_dict(state)
    assert list(iterator) == [1, 2, 3, 4]
    assert list(Dataset.range(5).map(lambda x: x).cache(path)) == [0, 1, 2, 3, 4]


def test_a_state_that_reads_is_not_loaded_over_another_pass(new):
    def make(name):
        return Dataset.range(50).shuffle(50).map(lambda x: x).cache(name)

    one, two = new(), new()
    list(make(one)), list(make(two))
    reading = iter(make(one))
    next(reading)
    state = reading.state_dict()
    with pytest.raises(StateError, match="another pass was kept"):
        iter(make(two)).load_state_dict(state)


def test_a_disk_that_is_full_costs_the_cache_not_the_elements(path, monkeypatch, caplog):
    from dataset.io.elements.runs import RunWriter

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunWriter, "write", full)
    elements = [np.full(1 << 18, i) for i in range(4)]
    found = outcomes(iter(Dataset.from_tensor_slices(np.array(elements)).cache(path)))
    assert [type(one) for one in found].count(OSError) == 1
    assert_elements_equal([one for one in found if not isinstance(one, OSError)], elements)
    assert files_in(path) == []

"""cache(filename): the elements in files, for later passes and later processes."""

import dataclasses
import functools
import logging
import re
from pathlib import Path

import numpy as np
import pytest

from dataset import DataLossError, Dataset, SpecError, StateError
from dataset.io.elements import cache_dataset
from dataset.io.elements.metadata import Metadata
from dataset.io.elements.write_session import RunWriter
from dataset.plan.fingerprints import step_digests
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.folders import flip
from support.op_cases import fail_at, ints
from support.resuming import interrupted, loaded
from support.states import rest_of, state_after


def counting(calls, stop=4):
    return Dataset.range(stop).map(lambda x: calls.append(int(x)) or x)


def files_in(path):
    return sorted(str(p.relative_to(path)) for p in Path(path).rglob("*") if p.is_file())


@pytest.mark.parametrize(
    "make",
    [
        lambda name: Dataset.range(5).map(fail_at(1, 3)).cache(name),
        lambda name: Dataset.range(4).shuffle(6, seed=1).prefetch(2).cache(name).prefetch(2).repeat(2),
    ],
)
def test_keeps_the_contract_while_writing(new, make):
    check_operator(lambda: make(new()))
    check_laziness(lambda numbers: numbers.cache(new()), lambda k: k, size=20)


def test_keeps_the_contract_while_reading(path):
    make = lambda: Dataset.range(9).map(lambda x: (x, {"a": np.full(x, x)})).cache(path)
    check_operator(make, list(make()))


def test_runs_its_input_once_for_all_pipelines_and_says_nothing(path, caplog):
    calls = []
    dataset = counting(calls).cache(path)
    assert dataset.map(lambda x: (x, x)).element_spec[0].dtype == np.int64
    assert not Path(path).exists()  # the spec writes nothing
    calls.clear()
    assert list(dataset) == list(dataset) == list(counting(calls).cache(path)) == [0, 1, 2, 3]
    assert list(dataset.batch(2).repeat(2).unbatch()) == [0, 1, 2, 3] * 2
    assert calls == [0, 1, 2, 3]
    assert not caplog.records


@pytest.mark.parametrize("taken", [1, 4])
def test_a_partial_pass_leaves_no_cache_and_says_so(path, caplog, taken):
    calls = []
    dataset = counting(calls).cache(path)
    with caplog.at_level(logging.WARNING):
        assert len(list(dataset.take(taken))) == taken
    assert f"abandoned after {taken} elements" in caplog.text
    assert "put take() before cache()" in caplog.text
    assert files_in(path) == []
    calls.clear()
    assert list(dataset) == [0, 1, 2, 3]
    assert calls == [0, 1, 2, 3]


def test_a_second_iterator_during_the_first_pass_is_an_error(path):
    first, second = iter(Dataset.range(4).cache(path)), iter(Dataset.range(4).cache(path))
    next(first)
    with pytest.raises(FileExistsError, match=r"another iterator of this process is filling the cache in .*saved"):
        next(second)
    assert list(first) == [1, 2, 3]
    assert list(second) == [0, 1, 2, 3]


def test_objects_and_elements_of_another_dtype_are_refused_at_their_place(path):
    kinds = {1: np.float32(1), 3: object()}
    dataset = Dataset.range(5).map(lambda x: kinds.get(int(x), x)).cache(path)
    found = outcomes(iter(dataset))
    assert_elements_equal([found[0], found[2], found[4]], ints(0, 2, 4))
    assert isinstance(found[1], SpecError)
    assert "the same kind and dtype, got float32 for the element after int64" in str(found[1])
    assert "element 1" in found[1].__notes__[0]
    assert "a object cannot be written to a file" in str(found[3])
    assert files_in(path) == []


# Caches of other pipelines

MISMATCH = r"was filled by another pipeline, or the pipeline was edited since: .*on_mismatch=\"rebuild\""


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: Dataset.range(3).batch(2), r"it was filled by range\(3\), this pipeline is range\(3\) -> batch\(2\)"),
        (lambda: Dataset.range(9), "range"),
        (lambda: Dataset.from_tensor_slices({"a": [1]}), "it was filled by range.* where this pipeline has"),
    ],
)
def test_a_cache_of_another_pipeline_is_an_error_that_says_what_to_do_or_is_rebuilt(path, other, words):
    list(Dataset.range(3).cache(path))
    with pytest.raises(SpecError, match=MISMATCH) as caught:
        next(iter(other().cache(path)))
    assert re.search(words, str(caught.value))
    assert list(Dataset.range(3).cache(path)) == [0, 1, 2]
    expected = list(other())
    for _ in range(2):
        assert_elements_equal(list(other().cache(path, on_mismatch="rebuild")), expected)
    assert_elements_equal(list(other().cache(path)), expected)
    assert len(files_in(path)) == 2
    with pytest.raises(SpecError, match=MISMATCH):
        list(Dataset.range(3).cache(path))


def mapped(function):
    return Dataset.range(3).map(function)


def captures(thing, use):
    return lambda x: use(thing, x)


def holds(thing):
    return lambda x: x + (thing is None)


def twice(make):
    """Two functions that hold similar objects."""
    return lambda: [holds(make()) for _ in range(2)]


SAME = {
    "a list that grows": lambda: [captures([], lambda calls, x: calls.append(x) or x)] * 2,
    "a buffer": lambda: [captures(np.zeros((), np.int64), lambda buffer, x: np.add(x, 1, out=buffer).copy())] * 2,
    "a deep graph": twice(lambda: functools.reduce(lambda inner, _: [inner], range(100_000), [])),
    "more values than are read": twice(lambda: [0] * 1100),
}


@pytest.mark.parametrize("kind", SAME)
def test_an_equal_pipeline_is_not_a_mismatch(path, kind, monkeypatch):
    monkeypatch.setattr(step_digests, "_VALUES_MAX", 1000)
    first, second = SAME[kind]()
    made = list(mapped(first).cache(path))
    for function in (first, second):
        assert_elements_equal(list(mapped(function).cache(path)), made)


def test_another_version_of_python_has_other_bytecode(path, monkeypatch):
    list(mapped(lambda x: x + 1).cache(path))
    monkeypatch.setattr(cache_dataset, "PYTHON", "cpython-399-0")
    assert list(mapped(lambda x: x + 2).cache(path)) == [1, 2, 3]
    with pytest.raises(SpecError, match=MISMATCH):
        list(mapped(lambda x: x + 2).batch(2).cache(path))  # other elements are still noticed


@pytest.mark.parametrize("steps", [None, 3, [3], [["a", 3]], [["range(0, 3)", ""]]])
def test_a_cache_that_does_not_name_its_pipeline_is_read_if_its_elements_fit(path, steps):
    list(Dataset.range(3).cache(path))
    old = Metadata.read(path)
    about = {**old.about, "steps": steps} if steps is not None else {"start": old.about["start"]}
    dataclasses.replace(old, about=about).write(path)
    assert list(Dataset.range(9).cache(path)) == [0, 1, 2]
    with pytest.raises(SpecError, match=r"another pipeline.*(this one produces .*float|map\(float\))"):
        next(iter(mapped(float).cache(path)))


def test_an_abandoned_rebuild_keeps_the_old_cache(path):
    list(Dataset.range(3).cache(path))
    with iter(Dataset.range(4).cache(path, on_mismatch="rebuild")) as iterator:
        next(iterator)
    assert list(Dataset.range(3).cache(path)) == [0, 1, 2]


def test_a_saved_dataset_is_not_read_as_a_cache(path):
    Dataset.range(3).save(path)
    with pytest.raises(SpecError, match=r"was written by save\(\), not by cache\(\)"):
        list(Dataset.range(3).cache(path))


# Errors


def test_a_damaged_cache_is_an_error_that_says_where(path):
    dataset = Dataset.range(1000).map(lambda x: x).cache(path)
    list(dataset)
    (shard,) = Path(path).rglob("*.tfrecord")
    flip(shard, shard.stat().st_size // 2)
    with pytest.raises(DataLossError, match=r"tfrecord, record 0, at byte 0"):
        list(dataset)


def test_a_full_disk_costs_the_cache_and_no_element(path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    elements = [np.full(1 << 18, i) for i in range(4)]
    dataset = Dataset.from_tensor_slices(np.array(elements)).cache(path)
    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "write", full)
        found, states = interrupted(dataset, [3])
    assert [type(one) for one in found].count(OSError) == 1
    assert_elements_equal([one for one in found if not isinstance(one, OSError)], elements)
    assert files_in(path) == []
    list(dataset)
    assert_elements_equal(outcomes(loaded(dataset, states[3])), found[3:])


def test_a_cache_that_cannot_be_used_is_not_an_error_of_an_element(tmp_path):
    list(Dataset.range(3).cache(tmp_path / "other"))
    for name, error, words in (
        ("other", SpecError, "another pipeline"),
        ("absent/cache", FileNotFoundError, "absent"),
    ):
        iterator = iter(Dataset.range(4).cache(tmp_path / name).ignore_errors())
        for _ in range(2):
            with pytest.raises(error, match=words) as caught:
                next(iterator)
            assert caught.value.__notes__[-1].endswith("the iteration cannot continue")


# States


def test_a_state_of_a_full_cache_is_not_loaded_for_the_cache_of_another_pass(new):
    one, two = (Dataset.range(50).shuffle(50).map(float).cache(new()) for _ in range(2))
    list(one), list(two)
    with pytest.raises(StateError, match="the cache now holds another pass"):
        rest_of(two, state_after(one, 1))

"""save and load: elements in a directory, whole or not at all. tests/oracle compares kinds, shards and readers."""

import hashlib
import itertools
import json
import shutil
import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from dataset import DataLossError, Dataset, SpecError, StateError, TensorSpec, TFRecordDataset, vectorized
from dataset.io.elements import load_dataset
from dataset.io.elements.metadata import Metadata
from dataset.plan.spec import spec_of
from dataset.testing import assert_elements_equal, check_operator, no_leaks, outcomes
from support.op_cases import fail_at, ints
from support.pipelines import Record
from support.states import rest_of, state_after


def files_in(path):
    return sorted(str(p.relative_to(path)) for p in Path(path).rglob("*") if p.is_file())


def shards_in(path):
    return [Path(path, name) for name in files_in(path) if name.endswith(".tfrecord")]


@pytest.mark.parametrize("compression", [None, "AUTO", "GZIP", "ZLIB"])
def test_elements_come_back(path, compression):
    elements = [(np.int64(i), {"b": None, "a": (np.arange(i), b"x" * i)}) for i in range(3)]
    Dataset.from_generator(lambda: iter(elements)).save(path, compression)
    assert len(Dataset.load(path)) == 3
    check_operator(lambda: Dataset.load(path), elements)


def test_the_spec_is_kept_or_found_without_another_call(path):
    dataset = Dataset.from_tensor_slices(np.zeros((5, 3), np.float32)).batch(2)
    dataset.save(path)
    assert Dataset.load(path).element_spec == dataset.element_spec == TensorSpec((None, 3), np.float32)
    calls = []
    Dataset.range(3).map(lambda n: calls.append(n) or np.zeros((2, n))).save(path)
    assert calls == [0, 1, 2]
    assert Dataset.load(path).element_spec == TensorSpec((2, None), np.float64)


def flat(shards):
    return shards.flat_map(lambda shard: shard)


@pytest.mark.parametrize(
    ("empty", "spec"),
    [
        (Dataset.range(0), TensorSpec((), np.int64)),
        (Dataset.range(0).map(np.zeros), None),
    ],
    ids=["static", "downstream of a function"],
)
def test_what_was_saved_empty_is_loaded_empty(empty, spec, path):
    empty.save(path)
    loaded = Dataset.load(path)
    assert len(loaded) == 0
    assert list(loaded) == list(loaded.map(lambda n: n).shuffle(3).batch(2)) == list(loaded.repeat(2)) == []
    check_operator(lambda: loaded, [])
    if spec:
        assert loaded.element_spec == spec
    else:
        with pytest.raises(SpecError, match=r"saved without elements, so its element_spec is unknown.* pass load"):
            _ = loaded.element_spec
    given = TensorSpec((), np.int64)
    assert list(Dataset.load(path, given)) == list(Dataset.load(path, given, reader_func=flat)) == []


@pytest.mark.parametrize(
    "element",
    [OrderedDict(a=np.int64(1)), {1: b"a"}, (Record(np.int64(1), b""), None)],
    ids=str,
)
def test_other_classes_have_to_be_given(path, element):
    Dataset.from_tensors(element).save(path)
    with pytest.raises(SpecError, match=r"user-defined classes.*pass element_spec"):
        Dataset.load(path)
    assert_elements_equal(list(Dataset.load(path, spec_of(element)).repeat(2)), [element] * 2)


INT = TensorSpec((), np.int64)


@pytest.mark.parametrize("spec", [TensorSpec((), np.float64), TensorSpec((1,), np.int64), (INT,), {"a": INT}], ids=str)
def test_another_element_spec_is_an_error_and_a_wider_one_is_taken(path, spec):
    Dataset.range(3).save(path)
    with pytest.raises(SpecError, match=r"do not match: element_spec has"):
        Dataset.load(path, spec)
    wider = TensorSpec(None, np.int64)
    check_operator(lambda: Dataset.load(path, wider), ints(0, 1, 2))
    assert Dataset.load(path, wider).element_spec == wider


def test_compression_is_found_and_a_contradiction_is_an_error(path):
    big = Dataset.from_tensors(np.zeros(100_000))
    big.save(path)
    plain = sum(shard.stat().st_size for shard in shards_in(path))
    big.save(path, "GZIP")
    assert sum(shard.stat().st_size for shard in shards_in(path)) < plain / 50
    assert len(list(Dataset.load(path, compression="GZIP"))) == 1
    for other in ("", "ZLIB", "SNAPPY"):
        with pytest.raises(ValueError, match="was saved with 'GZIP'"):
            Dataset.load(path, compression=other)
    for use in (lambda: Dataset.load(path, compression="gzip"), lambda: big.save(path, 3)):
        with pytest.raises(ValueError, match="compression must be None"):
            use()


@pytest.mark.parametrize(
    ("reader", "error", "words"),
    [
        (3, TypeError, "reader_func"),
        (lambda d: 3, TypeError, "reader_func"),
        (lambda d: d, SpecError, "reader_func must return elements"),
        (lambda d: flat(d).map(lambda x: (x, x)), SpecError, "reader_func must return elements"),
    ],
)
def test_what_is_no_reader_or_changes_the_elements(path, reader, error, words):
    Dataset.range(3).save(path)
    with pytest.raises(error, match=words):
        next(iter(Dataset.load(path, reader_func=reader)))


def test_shard_functions_of_every_kind(path):
    Dataset.range(4).enumerate().save(path, shard_func=lambda i, x: np.int32(i % 2))  # a tuple is two arguments
    assert len(shards_in(path)) == 2
    Dataset.range(4).save(path, shard_func=vectorized(lambda column: column % 4))
    assert len(shards_in(path)) == 4
    Dataset.range(4).save(path, shard_func=lambda x: 2**63 + int(x))
    assert list(Dataset.load(path, reader_func=flat)) == [0, 1, 2, 3]
    with no_leaks():  # of descriptors: there are more shards than files may be open
        Dataset.range(600).save(path, "GZIP", shard_func=lambda x: x % 300)
    assert len(shards_in(path)) == 300


def test_an_error_of_the_shard_function_says_where_it_was(path):
    with pytest.raises(ValueError, match="bad 2") as caught:
        Dataset.range(4).save(path, shard_func=fail_at(2))
    (note,) = caught.value.__notes__
    assert "check) from test_save_load.py" in note
    assert note.endswith("element 2")


def test_a_failing_element_leaves_what_was_there(path):
    with pytest.raises(ValueError, match="bad"):
        Dataset.range(5).map(fail_at(3)).save(path)
    assert files_in(path) == []
    with pytest.raises(FileNotFoundError) as caught:
        Dataset.load(path)
    assert "wait=True" in caught.value.__notes__[0]
    Dataset.range(2).save(path)
    with no_leaks(), pytest.raises(ValueError, match="bad"):
        Dataset.range(5).map(fail_at(3)).save(path, shard_func=lambda x: x)
    assert list(Dataset.load(path)) == [0, 1]


@pytest.mark.parametrize(
    ("dataset", "error", "message"),
    [
        (Dataset.range(3).map(lambda x: {"a": x, "b": {1}}), TypeError, "component 'b': a set cannot be written"),
        (
            Dataset.range(3).map(lambda x: np.float32(x) if x == 2 else x),
            SpecError,
            "got float32 for the element after int64",
        ),
        (Dataset.range(3).repeat(), ValueError, r"infinite; use take\(\)"),
    ],
)
def test_what_cannot_be_saved(path, dataset, error, message):
    with pytest.raises(error, match=message):
        dataset.save(path)
    assert not Path(path).exists() or files_in(path) == []


def test_saving_again_replaces_all(path):
    Dataset.range(6).save(path, shard_func=lambda x: x % 3)
    before = Dataset.load(path)
    before.map(lambda x: x + 1).save(path)  # over what it reads
    assert list(Dataset.load(path)) == [1, 2, 3, 4, 5, 6]
    assert len(files_in(path)) == 2
    error = outcomes(iter(before))[0]
    assert isinstance(error, FileNotFoundError)
    assert any("load it again" in note for note in error.__notes__)


def test_arguments_that_save_and_load_do_not_take(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Dataset.range(3).save(tmp_path / "file")
    Dataset.range(3).save(tmp_path / "saved")
    with pytest.raises(TypeError, match="wait must be True or False"):
        Dataset.load(tmp_path / "saved", wait=1)
    with pytest.raises(TypeError, match="TensorSpec"):
        Dataset.load(tmp_path / "saved", 3)


def test_a_state_goes_with_what_was_saved_and_not_with_what_replaced_it(path, tmp_path):
    Dataset.range(6).save(path, shard_func=lambda x: x % 2)
    state = state_after(Dataset.load(path), 1)
    shutil.copytree(path, tmp_path / "copy")
    assert rest_of(Dataset.load(tmp_path / "copy"), state) == [1, 2, 3, 4, 5]
    Dataset.range(1, 7).save(path, shard_func=lambda x: x % 2)
    with pytest.raises(StateError):
        rest_of(Dataset.load(path), state)


def test_many_small_records_resume_anywhere(path):
    images = np.random.default_rng(1).integers(0, 255, (40, 400, 400), np.uint8)
    Dataset.from_tensor_slices(images).save(path)
    assert Metadata.read(path).shards[0].records > 5
    check_operator(lambda: Dataset.load(path), list(images), positions=12)


def test_waiting_ends_when_the_saving_does(path, monkeypatch):
    monkeypatch.setattr(load_dataset, "_POLL_SECONDS", 0.01)
    looked = threading.Event()
    read = Metadata.read.__func__

    def reading(cls, name):
        try:
            return read(cls, name)
        finally:
            looked.set()

    monkeypatch.setattr(Metadata, "read", classmethod(reading))
    found = []
    waiting = threading.Thread(target=lambda: found.extend(Dataset.load(path, wait=True)))
    waiting.start()
    assert looked.wait(30)
    assert not found
    Dataset.range(3).save(path)
    waiting.join(30)
    assert found == [0, 1, 2]


# Damage


def test_a_cut_file_is_data_loss_even_where_a_record_ends(path):
    Dataset.range(10_000).save(path)
    (shard,) = shards_in(path)
    content = shard.read_bytes()
    whole_record = 12 + 4 + int.from_bytes(content[:8], "little")
    heads = [json.loads(record[4 : 4 + int.from_bytes(record[:4], "little")]) for record in TFRecordDataset(shard)]
    ends = [0, *itertools.accumulate(head["elements"] for head in heads)]
    for size in (whole_record, 0, 5, len(content) - 1):
        shard.write_bytes(content[:size])
        found = outcomes(iter(Dataset.load(path)))
        assert isinstance(found[-1], DataLossError)
        assert len(found) - 1 in ends[:-1]
        assert found[-1].path == str(shard)
    shard.write_bytes(content + content)
    found = outcomes(iter(Dataset.load(path)), 40_000)
    assert "this is not record 3 of file 0" in str(found[-1])
    assert len(found) == 10_001
    shard.unlink()
    assert isinstance(outcomes(iter(Dataset.load(path)))[0], FileNotFoundError)


def test_metadata_of_another_dataset_is_found_out(path):
    Dataset.range(10).save(path)
    rewritten(path, components=[LEAF | {"dtype": "<f8"}])
    (error,) = outcomes(iter(Dataset.load(path)))
    assert isinstance(error, DataLossError)
    assert "float64" in str(error)
    assert (error.record, error.offset) == (0, 0)
    rewritten(path, components=[LEAF], shards=[{"file": 0, "records": 1, "elements": 9, "crc": 0}], elements=9)
    (error,) = outcomes(iter(Dataset.load(path)))
    assert "more than the 9 written elements" in str(error)


def rewritten(path, **changes):
    """metadata.json with other content and a digest that fits, as an attacker could create it."""
    file = Path(path, "metadata.json")
    content = json.loads(file.read_text()) | changes
    del content["digest"]
    digest = hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
    file.write_text(json.dumps(content | {"digest": digest}))


LEAF = {"kind": "tensor", "shape": [], "dtype": "<i8"}


@pytest.mark.parametrize(
    "changes",
    [
        *({"run": run} for run in ("../../etc", "/etc", "0123456789abcdeg", None, ["0123456789abcdef"])),
        {"shards": [{"file": "../a", "records": 1, "elements": 3, "crc": 0}]},
        {"shards": [{"file": 0, "records": 1, "elements": True, "crc": 0}]},
        {"shards": [{}]},
        {"elements": 10**18},
        {"components": []},
        {"components": [LEAF, LEAF]},
        *({"components": [LEAF | change]} for change in ({"dtype": "|O"}, {"shape": [-1]}, {"shape": "abc"})),
        {"components": [LEAF | {"kind": "object"}]},
        {"structure": {"class": "os.system"}},
        {"structure": {"namedtuple": "x; import os", "names": ["a"], "of": ["*"]}},
        {"structure": {"namedtuple": "A", "names": ["__class__"], "of": ["*"]}},
        {"structure": {"namedtuple": "A", "names": ["a", "b"], "of": ["*"]}},
        *({"structure": {"dict": pairs}} for pairs in ([["a", "*"], ["a", "*"]], [[1, "*"]], ["ab"])),
        {"structure": "**"},
        {"compression": "BZIP"},
        {"about": {"$bytes": "?"}},
        {"about": {"$array": "", "dtype": "|O", "shape": [1]}},
        {"version": 99},
        {"format": "other"},
    ],
    ids=str,
)
def test_metadata_is_not_believed(path, changes):
    Dataset.range(3).save(path)
    rewritten(path, **changes)
    words = "has version 99, but this library reads version 1" if "version" in changes else r"metadata\.json"
    with pytest.raises((DataLossError, ValueError), match=words):
        Dataset.load(path)


def test_files_of_the_format_are_as_documented(path):
    Dataset.range(3).save(path)
    run = Metadata.read(path).run
    assert files_in(path) == [f"{run}/00000000.tfrecord", "metadata.json"]
    (record,) = TFRecordDataset(Path(path, run, "00000000.tfrecord"))
    size = int.from_bytes(record[:4], "little")
    expected = {"elements": 3, "columns": [["array", "<i8", [3]]], "place": [run, 0, 0]}
    assert json.loads(record[4 : 4 + size]) == expected
    assert record[-24:] == np.arange(3).tobytes()

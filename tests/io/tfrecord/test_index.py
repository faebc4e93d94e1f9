"""Tests of TFRecordIndex: its content, the saved file, and when a saved file is not trusted."""

from __future__ import annotations

import contextlib
import copy
import gzip
import itertools
import logging
import os
import pickle
import random
import re
import struct
import tempfile
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import io
from dataset.errors import ClosedError, DataLossError
from dataset.io.indexed.index_file import NotAnIndexError
from dataset.io.tfrecord.frame_scan import scan_lengths
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.testing import no_leaks
from support.folders import flipped
from support.tfrecord_files import GOLDEN, GOLDEN_RECORDS, assorted, frame, frames, header, masked, read

pytestmark = pytest.mark.usefixtures("native")


def offsets_of(records):
    return [0, *itertools.accumulate(len(record) + 16 for record in records)]


@pytest.mark.parametrize(
    "records",
    [
        [],
        [b""],
        [b"%04d" % i for i in range(5000)],
        assorted(3000),
        [bytes(400_000), b"", bytes(3_000_000), b"last"],
        [bytes([i % 256]) * (100_000 if i % 20 == 0 else 5) for i in range(300)],
        GOLDEN_RECORDS,
    ],
    ids=["none", "empty", "equal", "assorted", "large", "mixed", "golden"],
)
def test_finds_every_record_of_a_file(records, save):
    with io.TFRecordIndex.build(save(GOLDEN[""] if records is GOLDEN_RECORDS else frames(records))) as index:
        assert index.lengths.tolist() == list(map(len, records))
        assert index.offsets.tolist() == offsets_of(records)
        assert list(index) == index[:] == records
        assert index[1::2] == records[1::2]
        assert [index[np.int64(-1 - i)] for i in range(len(index))] == records[::-1]
        for number in (len(records), -len(records) - 1, 10**30):
            with pytest.raises(IndexError, match=f"{len(records)} records"):
                index[number]
        assert not index.offsets.flags.writeable
        assert not index.lengths.flags.writeable


def test_an_open_index_is_saved_beside_the_file_and_found_again(save):
    path = save(frames(assorted(50)))
    saved = Path(f"{path}.index")
    built = io.TFRecordIndex.build(path)
    assert not saved.exists()
    built.save()
    content = saved.read_bytes()
    saved.unlink()
    first = io.TFRecordIndex.open(path)
    assert Path(first.index_path) == saved
    assert saved.read_bytes() == content
    os.utime(saved, ns=(1, 1))
    second = io.TFRecordIndex.open(os.fsencode(path))
    assert saved.stat().st_mtime_ns == 1  # it was not rewritten
    assert second.offsets.tolist() == first.offsets.tolist() == offsets_of(assorted(50))


@pytest.mark.parametrize("records", [[b"x", b"y", b"z"], [b"a", b"bc"]], ids=["another size", "the same size"])
def test_the_index_of_a_changed_file_is_made_anew_with_a_warning(records, save):
    path = save(frames([b"ab", b"c"]))
    before = io.TFRecordIndex.open(path)
    later = path.stat().st_mtime_ns + 10**9
    path.write_bytes(frames(records))
    os.utime(path, ns=(later, later))
    with pytest.raises(DataLossError, match="modified after its index was built"):
        before[0]
    with (
        pytest.warns(UserWarning, match="does not match the size or time of .* It is rebuilt"),
        io.TFRecordIndex.open(path) as index,
    ):
        assert list(index) == records
    assert list(io.TFRecordIndex.open(path)) == records  # without a warning the next time


def test_a_damaged_index_is_made_anew_with_a_warning(save):
    path = save(frames(assorted(20)))
    saved = Path(io.TFRecordIndex.open(path).index_path)
    content = saved.read_bytes()
    places = range(8, len(content))
    for damaged in (*(flipped(content, at, 1 << at % 8) for at in places), *(content[:size] for size in places)):
        saved.write_bytes(damaged)
        with pytest.warns(UserWarning, match=r"is not used: it.* rebuilt, and saved again"):
            assert io.TFRecordIndex.open(path).lengths.tolist() == list(map(len, assorted(20)))
        assert saved.read_bytes() == content


def test_a_file_that_is_no_index_is_left_alone(save, caplog):
    path = save(frames([b"a"]))
    other = Path(f"{path}.index")
    other.write_bytes(b"a checkpoint's index")
    with caplog.at_level(logging.INFO, "dataset"), pytest.warns(UserWarning, match="another kind of file"):
        assert list(io.TFRecordIndex.open(path)) == [b"a"]
    assert other.read_bytes() == b"a checkpoint's index"
    assert "is not saved" in caplog.text
    with pytest.raises(FileExistsError, match="is not an index"):
        io.TFRecordIndex.build(path).save()


def test_where_nothing_can_be_saved_the_index_works_all_the_same(save, monkeypatch):
    path = save(frames([b"a"]))
    monkeypatch.setattr("dataset.io.indexed.saved_index.AtomicFile", Mock(side_effect=PermissionError("read-only")))
    assert list(io.TFRecordIndex.open(path)) == [b"a"]
    assert not Path(f"{path}.index").exists()


def test_a_missing_file_is_missing(save):
    path = save(frames([b"a"]))
    io.TFRecordIndex.open(path)
    path.unlink()  # its index is of no use
    with pytest.raises(FileNotFoundError, match=r"0\.tfrecord"):
        io.TFRecordIndex.open(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(frames([b"a"] * 9)), "starts like a GZIP stream, and only uncompressed files can be ind"),
        (b"id,name\n1,a\n2,b\n" * 9, r"record 0, at byte 0: .* is this a TFRecord file\?"),
        *(
            (frame(b"a") + header(length) + b"x" * 100, "record 1, at byte 17: a record is truncated")
            for length in (2**63, 2**64 - 1, 2**40)
        ),
    ],
    ids=["GZIP", "text", "2**63 bytes", "2**64 - 1 bytes", "2**40 bytes"],
)
def test_another_kind_of_file_and_a_length_beyond_the_file_are_refused(content, words, save):
    with pytest.raises(DataLossError, match=words):
        io.TFRecordIndex.build(save(content))


def test_an_index_that_is_taken_for_a_file_says_what_it_is(save):
    saved = io.TFRecordIndex.open(save(frames([b"a"]))).index_path
    words = r"this is the index of another file: use a file pattern that excludes \*\.index"
    with pytest.raises(DataLossError, match=words):
        io.TFRecordIndex.build(saved)
    assert re.search(words, str(read(TFRecordFile(saved))[1]))


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.sampled_from([0, 1, 7, 30, 5000, 70_000]), min_size=1, max_size=40),
    bit=st.integers(0, 7),
    data=st.data(),
)
def test_damage_is_found_where_it_is_in_a_length_and_nowhere_else(lengths, bit, data):
    records = [random.Random(i).randbytes(n) for i, n in enumerate(lengths)]
    content, offsets = bytearray(frames(records)), offsets_of(records)
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << bit
    owner = max(i for i, start in enumerate(offsets[:-1]) if start <= place)
    in_length = place - offsets[owner] < 12
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        path.write_bytes(content)
        found, damage = scan_lengths(str(path))
        assert found.tolist() == lengths[: owner if in_length else None]
        assert (damage is not None) == in_length
        if damage is not None:
            assert (damage.record, damage.offset) == (owner, offsets[owner])
            assert str(damage) == str(read(TFRecordFile(path))[1])  # the same message as when everything is read
            return
        with io.TFRecordIndex.build(path) as index:
            assert [index[i] for i in range(len(index)) if i != owner] == records[:owner] + records[owner + 1 :]
            with pytest.raises(DataLossError, match="checksum of a record's") as caught:
                index[owner]
            assert (caught.value.record, caught.value.offset) == (owner, offsets[owner])


# Content of index files


def hostile(count, width, lengths, size):
    content = struct.pack("<8sIIQQq", b"TFRINDEX", 1, width, count, size, 0) + lengths
    return content + masked(content)


@pytest.mark.parametrize(
    "content",
    [
        hostile(2**61, 8, b"", 0),
        hostile(1, 4, b"\0" * 4, 15),
        hostile(0, 4, b"", 1),
        hostile(1, 8, struct.pack("<Q", 2**64 - 16), 0),  # and 16 is 0, in 64 bits
        hostile(2, 8, struct.pack("<QQ", 2**63, 2**63 - 32), 0),
        hostile(1, 3, b"\0" * 3, 16),
    ],
)
def test_a_hostile_index_is_not_believed(content):
    with pytest.raises(NotAnIndexError):
        io.TFRecordIndex.unpack(content)


# Changes while it is open


def test_a_file_that_is_cut_or_vanishes_while_open_gives_what_it_has(save):
    path = save(frames([b"first", b"second", b"third"]))
    with io.TFRecordIndex.open(path) as index, contextlib.closing(index.open_records()) as opened:
        assert index[0] == b"first"
        os.truncate(path, 30)
        path.unlink()
        assert index[0] == b"first"
        with pytest.raises(DataLossError, match=r"record 1, at byte 21: a record is truncated"):
            index[1]
        with pytest.raises(DataLossError, match=r"record 2"):
            index[2]
        found, damage = opened.records(0, 3)
        assert found == [b"first"]
        assert "record 1, at byte 21: a record is truncated" in str(damage)
    with pytest.raises(ClosedError):
        opened.record(0)


def test_closing_gives_the_file_back_asking_again_opens_it_and_a_copy_reads_for_itself(save):
    path = save(frames([b"a", b"b"]))
    with no_leaks():
        index = io.TFRecordIndex.open(path)
        assert index[0] == b"a"
        index.close()
        index.close()
        assert index[1] == b"b"
        for twin in (copy.copy(index), pickle.loads(pickle.dumps(index))):
            assert list(twin) == [b"a", b"b"]
        del index, twin

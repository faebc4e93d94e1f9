"""Tests of damaged TFRecord files: no wrong records, all records before the damage, and errors with positions."""

from __future__ import annotations

import gzip
import itertools
import random
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import TFRecordDataset
from dataset.io.tfrecord.reader import TFRecordFile
from support.memory import memory_below
from support.tfrecord_files import COMPRESS, GOLDEN, KINDS, assorted, frames, header, model, read

pytestmark = pytest.mark.usefixtures("native")


@settings(deadline=None, max_examples=150)
@given(
    data=st.data(),
    records=st.builds(assorted, st.integers(0, 60), largest=st.sampled_from([1, 30, 400])),
    size=st.sampled_from([None, 0, 64, 500]),
    kind=st.sampled_from(KINDS),
    tail=st.just(b"") | st.binary(max_size=60),
)
def test_any_damage_is_found_where_the_model_finds_it_and_loses_what_the_model_loses(data, records, size, kind, tail):
    content = bytearray(frames(records))
    if content:
        for place in data.draw(st.sets(st.integers(0, len(content) - 1), max_size=8)):
            content[place] ^= data.draw(st.integers(1, 255))
        content = content[: data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))]
    content = bytes(content) + tail
    records, damages = model(content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        path.write_bytes(COMPRESS[kind](content))
        found, error = read(TFRecordFile(path, kind, size))
        assert (error and (error.offset, error.record)) == (damages[0][:2] if damages else None)
        assert found == records[: damages[0][1] if damages else None]
        dataset = TFRecordDataset(str(path), kind, size, on_error="skip")
        position = data.draw(st.integers(0, len(records)))
        with iter(dataset) as iterator, iter(dataset) as resumed:
            assert list(itertools.islice(iterator, position)) == records[:position]
            resumed.load_state_dict(iterator.state_dict())
            assert list(iterator) == list(resumed) == records[position:]
            assert sum(operator.skipped_elements for operator in iterator.stats().operators) == len(damages)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 10_000_000, 1000])
def test_a_length_that_cannot_be_is_not_believed(length, kind, verify, save):
    """The checksum of the length is correct, so only the size of the file shows the damage."""
    tail = random.Random(1).randbytes(8 << 20) if length == 2**40 else b"tail"
    path = save(COMPRESS[kind](frames([b"good"]) + header(length) + tail))
    with memory_below(3_000_000):  # not even the bytes that are there are read
        found, error = read(TFRecordFile(path, kind, None if length == 2**40 else 4096, verify))
    assert found == [b"good"]
    assert (error.record, error.offset) == (1, 20)
    assert f"its header declares {length} bytes" in str(error)


def test_without_verifying_wrong_checksums_pass(save):
    content = bytearray(frames([b"one", b"two"] * 30))
    content[8] ^= 1  # of a length
    content[12] ^= 1  # data
    content[-1] ^= 1  # of data
    found, error = read(TFRecordFile(save(content), verify=False))
    assert error is None
    assert found == [b"nne", b"two", *[b"one", b"two"] * 29]


def test_errors_say_what_is_wrong_and_where(save):
    path = save(frames([b"one", b"two"])[:-2])
    _, error = read(TFRecordFile(path))
    assert str(error) == (
        f"{path}, record 1, at byte 19: a record is truncated: its header declares 3 bytes and a checksum of 4, "
        "but 5 bytes follow; copying or writing the file may not have finished"
    )
    assert (error.path, error.offset, error.record) == (str(path), 19, 1)


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"a text file, not a TFRecord file", "", "checksum of a record's length is wrong.*is this a TFRecord file?"),
        (b"short", "", "header is truncated: 12 bytes expected, 5 left in the file; is this a TFRecord file?"),
        (GOLDEN["GZIP"], "", 'starts like a GZIP stream: pass compression_type="GZIP"'),
        (GOLDEN["GZIP"][:9], "", 'starts like a GZIP stream: pass compression_type="GZIP"'),
        (GOLDEN["ZLIB"], "", 'starts like a ZLIB stream: pass compression_type="ZLIB"'),
        (GOLDEN[""], "GZIP", "if this is not a GZIP file, pass compression_type=None"),
        (GOLDEN["ZLIB"], "GZIP", "if this is not a GZIP file, pass compression_type='ZLIB'"),
        (GOLDEN["GZIP"], "ZLIB", "if this is not a ZLIB file, pass compression_type='GZIP'"),
        (GOLDEN["GZIP"] + b"garbage", "GZIP", "corrupt .* after 1 complete stream"),
        (GOLDEN["GZIP"][:-1], "GZIP", "the GZIP stream is truncated"),
        (gzip.compress(b"text of some length", mtime=0), "GZIP", "length is wrong.*is this a TFRecord file?"),
    ],
)
def test_a_file_of_another_kind_is_recognised(content, kind, words, save):
    _, error = read(TFRecordFile(save(content), kind))
    assert re.search(words.replace("?", r"\?"), str(error))

"""Writing TFRecord files: TensorFlow's bytes, and a name that appears only over a whole file."""

from __future__ import annotations

import gc
import gzip
import subprocess
import sys
import zlib

import numpy as np
import pytest
from tfrecord_files import GOLDEN, GOLDEN_RECORDS, KINDS, frame, read

from dataset.io.tfrecord.reader import TFRecordFile
from dataset.io.tfrecord.writer import TFRecordOptions, TFRecordWriter


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def test_the_writer_writes_the_bytes_that_tensorflow_writes(tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        for record in GOLDEN_RECORDS:
            writer.write(record)
    assert (tmp_path / "a").read_bytes() == GOLDEN[""]


@pytest.mark.parametrize(("kind", "decompress"), [("GZIP", gzip.decompress), ("ZLIB", zlib.decompress)])
@pytest.mark.parametrize("level", [None, -1, 0, 9])
def test_compressed_files_hold_the_same_frames(kind, decompress, level, tmp_path):
    with TFRecordWriter(tmp_path / "a", TFRecordOptions(kind, level)) as writer:
        for record in GOLDEN_RECORDS:
            writer.write(record)
    assert decompress((tmp_path / "a").read_bytes()) == GOLDEN[""]


class StopError(Exception):
    pass


@pytest.mark.parametrize("kind", KINDS)
def test_the_name_appears_when_the_writer_is_closed(kind, tmp_path):
    path = tmp_path / "a"
    writer = TFRecordWriter(path, kind)
    writer.write(b"one")
    writer.flush()
    assert not path.exists()
    writer.write(b"two")
    writer.close()
    writer.close()
    assert names_in(tmp_path) == ["a"]
    assert read(TFRecordFile(path, kind)) == ([b"one", b"two"], None)


def test_flushed_records_are_in_the_temporary_file(tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write(b"one")
        writer.flush()
        (temporary,) = tmp_path.iterdir()
        assert temporary.read_bytes() == frame(b"one")


@pytest.mark.parametrize("before", [None, b"the old file"])
def test_an_exception_leaves_what_was_there(before, tmp_path):
    path = tmp_path / "a"
    if before:
        path.write_bytes(before)
    with pytest.raises(StopError), TFRecordWriter(path) as writer:
        writer.write(b"one")
        raise StopError
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [before] * bool(before)


def test_a_writer_that_is_dropped_leaves_nothing(tmp_path):
    writer = TFRecordWriter(tmp_path / "a")
    writer.write(b"one")
    assert len(names_in(tmp_path)) == 1
    del writer
    gc.collect()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(("last", "left"), [("sys.exit(1)", 0), ("os._exit(1)", 1)])
def test_a_process_that_ends_leaves_nothing_under_the_name(last, left, tmp_path):
    """An exit cleans up; a crash can't, but what it leaves does not look like the file."""
    code = (
        "import os, sys; from dataset.io.tfrecord.writer import TFRecordWriter\n"
        f"writer = TFRecordWriter({str(tmp_path / 'a.tfrecord')!r}); writer.write(b'one'); writer.flush(); {last}"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
    assert len(names_in(tmp_path)) == left
    assert list(tmp_path.glob("*.tfrecord")) == []


def test_a_write_that_fails_gives_the_file_up(tmp_path, monkeypatch):
    """A frame written by half must not get the name through a later close()."""
    writer = TFRecordWriter(tmp_path / "a")
    writer.write(b"one")

    class Full:
        def compress(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "_compressor", Full())
    with pytest.raises(OSError, match="No space left"):
        writer.write(b"two")
    writer.close()
    assert names_in(tmp_path) == []
    with pytest.raises(ValueError, match="is closed"):
        writer.write(b"three")


def test_a_closed_writer_refuses_records(tmp_path):
    writer = TFRecordWriter(tmp_path / "a")
    writer.close()
    for use in (lambda: writer.write(b"one"), writer.flush):
        with pytest.raises(ValueError, match=r"the writer of .*a is closed"):
            use()


@pytest.mark.parametrize("record", [b"abc", bytearray(b"abc"), memoryview(b"abc"), np.bytes_(b"abc")])
def test_anything_that_is_bytes_is_written(record, tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write(record)
    assert (tmp_path / "a").read_bytes() == frame(b"abc")


def test_a_view_of_numbers_is_written_whole(tmp_path):
    numbers = np.arange(6, dtype="<i4").reshape(2, 3)
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write(numbers.data)
    assert (tmp_path / "a").read_bytes() == frame(numbers.tobytes())


@pytest.mark.parametrize(("record", "words"), [("text", "got str: 'text'; encode"), (3, "int: 3"), (None, "NoneType")])
def test_a_record_that_is_not_bytes_is_refused(record, words, tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        with pytest.raises(TypeError, match=words):
            writer.write(record)
        writer.write(b"fine")
    assert read(TFRecordFile(tmp_path / "a")) == ([b"fine"], None)


def test_a_message_that_was_not_serialized_is_told_how(tmp_path):
    class Message:
        def SerializeToString(self):  # noqa: N802
            return b""

    with TFRecordWriter(tmp_path / "a") as writer, pytest.raises(TypeError, match=r"call its SerializeToString\(\)"):
        writer.write(Message())


def test_options_are_checked(tmp_path):
    with pytest.raises(ValueError, match="got 'LZ4'"):
        TFRecordWriter(tmp_path / "a", "LZ4")
    with pytest.raises(ValueError, match="must be None or -1 to 9, got 10"):
        TFRecordOptions("GZIP", 10)
    with pytest.raises(TypeError, match="must be TFRecordOptions or a string, got 3"):
        TFRecordWriter(tmp_path / "a", 3)
    assert names_in(tmp_path) == []

"""Tests of writing TFRecord files: the same bytes as TensorFlow, and only complete files under the final name."""

from __future__ import annotations

import gc
import gzip
import os
import subprocess
import sys
import types
import zlib

import numpy as np
import pytest

from dataset.io.tfrecord.reader import TFRecordFile
from dataset.io.tfrecord.writer import TFRecordOptions, TFRecordWriter
from support.folders import names_in
from support.tfrecord_files import GOLDEN, GOLDEN_RECORDS, KINDS, frame, read


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [None, -1, 0, 9])
def test_the_writer_writes_the_bytes_that_tensorflow_writes(kind, level, tmp_path):
    decompress = {"": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}[kind]
    with TFRecordWriter(tmp_path / "a", TFRecordOptions(kind, level)) as writer:
        writer.write_all(GOLDEN_RECORDS[:1])
        for record in GOLDEN_RECORDS[1:]:
            writer.write(record)
            writer.flush()
            assert not (tmp_path / "a").exists()
            (temporary,) = tmp_path.iterdir()
            assert kind or temporary.read_bytes().endswith(frame(record))
    writer.close()
    assert names_in(tmp_path) == ["a"]
    assert decompress((tmp_path / "a").read_bytes()) == GOLDEN[""]
    with pytest.raises(ValueError, match=r"the writer of .*a is closed"):
        writer.write(b"one")


def full(*_):
    raise OSError(28, "No space left on device")


def test_a_dropped_writer_that_cannot_write_any_more_says_so_and_leaves_nothing(tmp_path, monkeypatch):
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: errors.append(found.exc_value))
    (tmp_path / "a").write_bytes(b"old")
    writer = TFRecordWriter(tmp_path / "a")
    writer.write(b"one")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        del writer
        gc.collect()
    (error,) = errors
    assert "No space left" in str(error)
    assert "its records are lost" in error.__notes__[-1]
    assert names_in(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


NEVER_CLOSED = "opened at writing.py:3, was never closed; its records were written"


@pytest.mark.parametrize(
    ("last", "status", "expected", "words"),
    [
        ("", 0, [b"one", b"two"], NEVER_CLOSED),
        ("sys.exit(1)", 1, [b"one", b"two"], NEVER_CLOSED),
        ("raise ValueError('bad')", 1, None, "the program ended with ValueError, so its records were discarded"),
        ("raise KeyboardInterrupt", -2, None, "ended with KeyboardInterrupt, so its records were discarded"),
        ("os._exit(1)", 1, None, None),
        ("writer.close()", 0, [b"one", b"two"], None),
        ("os.fork() or sys.exit(0); os.wait()", 0, [b"one", b"two"], "its records were written"),
        ("if os.fork() == 0: del writer; gc.collect(); os._exit(0)\nos.wait()", 0, [b"one", b"two"], "were written"),
    ],
)
def test_the_records_of_a_program_that_ends_reach_the_file_unless_it_crashes(last, status, expected, words, tmp_path):
    """A crash leaves the old file intact; leftover files have other names."""
    path, program = tmp_path / "a.tfrecord", tmp_path / "writing.py"
    path.write_bytes(frame(b"old"))
    program.write_text(
        "import gc, os, sys\nfrom dataset.io import TFRecordWriter\n"
        f"writer = TFRecordWriter({str(path)!r})\nwriter.write(b'one')\nwriter.flush()\nwriter.write(b'two')\n{last}\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "default", program], check=False, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == status, done.stderr
    assert ("ResourceWarning" in done.stderr) == bool(words)
    assert done.stderr.count("was never closed") == bool(words)
    assert (words or "") in done.stderr
    assert read(TFRecordFile(path)) == (expected or [b"old"], None)
    assert list(tmp_path.glob("*.tfrecord")) == [path]


def test_a_write_that_fails_gives_the_file_up(tmp_path, monkeypatch):
    """A file with a partially written frame must not be renamed by a later close()."""
    writer = TFRecordWriter(tmp_path / "a")
    writer.write(b"one")
    monkeypatch.setattr(writer._file, "_compressor", types.SimpleNamespace(compress=full))
    with pytest.raises(OSError, match="No space left"):
        writer.write(b"two")
    writer.close()
    assert names_in(tmp_path) == []
    with pytest.raises(ValueError, match="is closed"):
        writer.write(b"three")


NUMBERS = np.arange(6, dtype="<i4").reshape(2, 3)


@pytest.mark.parametrize("record", [b"abc", bytearray(b"abc"), memoryview(b"abc"), np.bytes_(b"abc"), NUMBERS.data])
def test_anything_that_is_bytes_is_written(record, tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write(record)
    assert (tmp_path / "a").read_bytes() == frame(bytes(record))


class Message:
    def SerializeToString(self):  # noqa: N802
        return b""


@pytest.mark.parametrize(
    ("record", "words"),
    [
        *(("text", "got str: 'text'; encode"), (3, "int: 3"), (None, "NoneType")),
        (Message(), r"call its SerializeToString\(\)"),
    ],
)
def test_a_record_that_is_not_bytes_is_refused(record, words, tmp_path):
    with TFRecordWriter(tmp_path / "a") as writer:
        with pytest.raises(TypeError, match=words):
            writer.write(record)
        writer.write(b"fine")
    assert read(TFRecordFile(tmp_path / "a")) == ([b"fine"], None)


def test_options_are_checked(tmp_path):
    with pytest.raises(ValueError, match="got 'LZ4'"):
        TFRecordWriter(tmp_path / "a", "LZ4")
    with pytest.raises(ValueError, match="must be None or -1 to 9, got 10"):
        TFRecordOptions("GZIP", 10)
    with pytest.raises(TypeError, match="must be TFRecordOptions or a string, got 3"):
        TFRecordWriter(tmp_path / "a", 3)
    assert names_in(tmp_path) == []

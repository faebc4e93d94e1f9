"""Tests of compressed streams read in any sizes: the same bytes, bounded memory, and no data lost before damage."""

from __future__ import annotations

import gzip
import io
import random
import sys
import types
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import DataLossError, TextLineDataset, TFRecordDataset
from dataset.io.files import compression
from dataset.io.files.compression import (
    INFLATE_BYTES,
    DamagedStreamError,
    guess_compression,
    new_compressor,
    open_stream,
    quick_library,
)
from dataset.io.text import lines
from fuzz.target import drained
from support.block_files import ALL_KINDS, COMPRESS
from support.folders import flipped
from support.memory import memory_below
from support.process_helpers import run_code
from support.tfrecord_files import frame


def stream_of(content, kind):
    return open_stream(io.BytesIO(content), kind)


@settings(deadline=None, max_examples=60)
@given(
    parts=st.lists(st.one_of(st.binary(max_size=200), st.integers(0, 200_000).map(lambda n: b"ab" * n)), max_size=4),
    kind=st.sampled_from(ALL_KINDS),
    size=st.sampled_from([1000, INFLATE_BYTES - 1, INFLATE_BYTES, 1 << 18, 1 << 20]),
)
def test_streams_in_a_row_read_as_one_in_any_helpings(parts, kind, size):
    content = b"".join(COMPRESS[kind](part) for part in parts)
    assert drained(stream_of(content, kind), size) == (b"".join(parts), None)


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("level", [None, 0, 1, 9])
def test_what_the_compressor_writes_is_read(kind, level):
    compressor = new_compressor(kind, level)
    written = compressor.compress(b"one") + compressor.flush(zlib.Z_SYNC_FLUSH)
    assert stream_of(written, kind).read(9) == b"one"
    written += compressor.compress(bytearray(b"two")) + compressor.flush()
    assert drained(stream_of(written, kind)) == (b"onetwo", None)


def test_every_block_of_zstd_before_the_damage_comes_out_although_one_call_decompresses_them_all():
    data = [b"%06d" % number * 10_000 for number in range(20)]
    compressor = new_compressor("ZSTD")
    content = b"".join(compressor.compress(part) + compressor.flush(zlib.Z_SYNC_FLUSH) for part in data) + b"\xff" * 10
    assert len(content) < INFLATE_BYTES
    for size in (1000, 1 << 18, 1 << 21):
        found, error = drained(stream_of(content, "ZSTD"), size)
        assert found == b"".join(data)
        assert "the ZSTD stream is corrupt" in str(error)
    stream = stream_of(content, "ZSTD")
    stream.seek(1_080_000)
    assert stream.read(6) == b"000018"
    with pytest.raises(DamagedStreamError, match="corrupt"):
        stream.seek(1_200_001)


def test_a_zstd_frame_that_declares_a_window_above_128_mib_is_refused_without_allocating_it():
    frame_header = b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3])  # RFC 8878: a window of 2 GiB
    found, error = drained(stream_of(frame_header + COMPRESS["ZSTD"](b"a")[6:], "ZSTD"))
    assert found == b""
    assert "too much memory" in str(error)


LIMITED = """
import gc, io, resource, sys
from pathlib import Path
from dataset.io.files.compression import DamagedStreamError, open_stream
block = (5 << 3 | 1 << 1).to_bytes(3, "little")  # RFC 8878: five times the byte that follows
content = b"\\x28\\xb5\\x2f\\xfd\\x00" + bytes([(27 - 10) << 3]) + block + b"a" + b"\\xff" * 3  # a window of 128 MiB
open_stream(io.BytesIO(content[:10]), "ZSTD").read(5)
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (int(sys.argv[1]) << 20), -1))
gc.disable()
kept = []
for _ in range(5):
    stream = open_stream(io.BytesIO(content), "ZSTD")
    kept.append(stream)
    try:
        while piece := stream.read(9):
            print(piece.decode(), end=" ")
    except (DamagedStreamError, MemoryError) as error:
        print(type(error).__name__, end=" ")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is calculated from /proc")
@pytest.mark.parametrize(("mebibytes", "expected"), [(300, "aaaaa DamagedStreamError "), (64, "MemoryError ")])
def test_the_window_of_a_damaged_zstd_stream_is_freed_and_a_lack_of_memory_is_no_damage(mebibytes, expected):
    done = run_code(LIMITED, mebibytes)
    assert (done.stdout, done.stderr) == (5 * expected, "")


def test_a_pipe_of_zstd_is_read_to_the_damage(monkeypatch):
    pipe = io.BytesIO(COMPRESS["ZSTD"](b"abc") + b"garbage")
    pipe.seekable = lambda: False
    found, error = drained(open_stream(pipe, "ZSTD"))
    assert found == b"abc"
    assert "corrupt" in str(error)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    from dataset.io.files import zstd

    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    zstd._library.cache_clear()
    with pytest.raises(ImportError, match=r'pip install "dataset-combinators\[zstd\]"'):
        open_stream(io.BytesIO(), "ZSTD")
    zstd._library.cache_clear()


def test_zeros_after_a_stream_are_padding_but_not_before_it():
    padded = gzip.compress(b"one") + bytes(200_000)
    assert drained(stream_of(padded, "GZIP")) == (b"one", None)
    assert drained(stream_of(padded + gzip.compress(b"two"), "GZIP")) == (b"onetwo", None)
    assert "corrupt" in str(drained(stream_of(bytes(20), "GZIP"))[1])


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_seeking_finds_every_byte_and_forward_does_not_begin_again(kind):
    class Counted(io.BytesIO):
        taken = 0

        def read(self, size=-1):
            piece = super().read(size)
            self.taken += len(piece)
            return piece

    data = random.Random(1).randbytes(200_000)
    file = Counted(COMPRESS[kind](data[:70_000]) + COMPRESS[kind](data[70_000:]))
    stream = open_stream(file, kind)
    for offsets in (range(0, 200_000, 20_000), (5, 199_999, 70_000, 69_999, 200_000, 1)):
        for offset in offsets:
            stream.seek(offset)
            assert stream.read(1) == data[offset : offset + 1]
        assert file.taken <= len(file.getvalue()) or offset == 1


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB", "ZSTD"])
def test_a_file_that_inflates_a_thousandfold_is_read_in_bounded_memory(kind):
    stream, total = stream_of(COMPRESS[kind](bytes(20_000_000)), kind), 0
    with memory_below(1_000_000):
        while piece := stream.read(10_000):
            total += len(piece)
    assert total == 20_000_000


def test_first_bytes_tell_the_compression():
    for level in range(10):
        assert guess_compression(zlib.compress(b"data", level)) == "ZLIB"
    assert guess_compression(gzip.compress(b"")) == "GZIP"
    skipped = b"\x5a\x2a\x4d\x18\x05\0\0\0hello"
    frame = b"\x28\xb5\x2f\xfd"
    for head in (frame, skipped + frame, skipped * 2 + frame, skipped, skipped[:9]):
        assert guess_compression(head) == "ZSTD"
    assert guess_compression(skipped + b"\x04\x22\x4d\x18") == ""  # LZ4 has such frames, too
    assert [guess_compression(head) for head in (b"", b"\x1f", b"x", b"text", bytes(9))] == [""] * 5


# With isal, or with a library that behaves like isal in the worst case, instead of zlib


class Strict:
    """A fast library that stops silently at damage and cannot copy its state."""

    error = ArithmeticError

    class decompressobj:  # noqa: N801  # zlib's name
        def __init__(self, bits):
            self._inflater = zlib.decompressobj(bits)

        def decompress(self, data, limit):
            try:
                return self._inflater.decompress(data, limit)
            except zlib.error:
                raise Strict.error from None

        def __getattr__(self, name):
            if name == "copy":
                raise AttributeError
            return getattr(self._inflater, name)


@pytest.fixture(params=["strict", "isal"])
def quick(request, monkeypatch):
    library = Strict if request.param == "strict" else quick_library.__wrapped__()
    used = []

    def decompressobj(bits):
        used.append(bits)
        return library.decompressobj(bits)

    noted = types.SimpleNamespace(error=library.error, decompressobj=decompressobj)
    monkeypatch.setattr(compression, "quick_library", lambda: noted)
    return used


def assert_as_by_zlib(content, kind, size=1000):
    found, error = drained(stream_of(content, kind), size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "quick_library", lambda: None)
        expected, damage = drained(stream_of(content, kind), size)
    assert (found, str(error)) == (expected, str(damage))


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_another_library_gives_the_same_as_zlib_wherever_a_stream_is_damaged_or_cut(kind, quick):
    rng = random.Random(3)
    data = b"".join(rng.randbytes(rng.randrange(20)) * rng.randrange(4) for _ in range(20))
    content = COMPRESS[kind](data) + COMPRESS[kind](b"more" * 10)
    for place in range(len(content)):
        assert_as_by_zlib(content[:place], kind)
        for bit in range(place % 3, 8, 3):
            assert_as_by_zlib(flipped(content, place, 1 << bit), kind)
    assert quick


def test_what_cannot_be_gone_back_in_and_headers_that_isal_does_not_look_at_are_left_to_zlib(quick):
    pipe = io.BytesIO(gzip.compress(b"abc"))
    pipe.seekable = lambda: False
    assert drained(open_stream(pipe, "GZIP")) == (b"abc", None)
    found, error = drained(stream_of(flipped(gzip.compress(b"abc"), 3, 0x20), "GZIP"))
    assert found == b""
    assert "unknown header flags set" in str(error)
    assert quick == []


@pytest.mark.parametrize(("read", "framed"), [(TextLineDataset, bytes), (TFRecordDataset, frame)])
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_one_element_out_of_all_proportion_to_the_file_is_refused(tmp_path, monkeypatch, kind, read, framed):
    """Eight megabytes of zeros from eight kilobytes; the test uses lower bounds than the library's."""
    for module in (compression, lines):
        monkeypatch.setattr(module, "LARGE_BYTES", 1 << 20)
    zeros, mixed = bytes(1 << 23), random.Random(1).randbytes(1 << 20).hex().encode()
    for content, count in ((zeros, 1), (mixed, 1), (bytes(1 << 19), 1), (zeros[: 1 << 19] + b"\n", 16)):
        (tmp_path / "a").write_bytes(COMPRESS[kind](framed(content * count)))
        if kind not in {"", "SNAPPY"} and (content is zeros or (count > 1 and framed is frame)):
            words = r"100 times the size of the compressed file.*decompress the file first"
            with pytest.raises(DataLossError, match=words):
                list(read(str(tmp_path / "a"), kind))
        else:
            found = b"".join(list(read(str(tmp_path / "a"), kind)))
            assert found == (content * count).replace(b"\n", b"" if framed is bytes else b"\n")

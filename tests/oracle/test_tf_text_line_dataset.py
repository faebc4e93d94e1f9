"""Tests of TextLineDataset against tf.data's."""

import gzip
from pathlib import Path

import pytest
from compare import FAILED, Ours, assert_same, has_failed, outcomes, theirs

from support.tfrecord_files import COMPRESS

TEXTS = [b"", b"\n", b"\n\n", b"a", b"a\n", b"one\ntwo\nthree", b"one\ntwo\nthree\n", b"a\n\nb\n\n", b"a\r\nb\r\n"]
TEXTS += [b"a\r\nb", b"a\rb\n", b"a\rb\rc", b"\r", b"\r\n", b"\r\r\n\r", b"a\n\r", b"a\n\r\n\r", b"a\n\rb"]
TEXTS += [b"x\x00y\n\x00\n", b"\xff\xfe\n\x80\xc3\n", b"a\x0bb\x0cc\x1cd\x85e\n\xe2\x80\xa8f\n", b"\xef\xbb\xbfbom\n"]
TEXTS += [b"a\x1a\nb\n", b"x" * 300_000 + b"\n" + b"y" * 262_143 + b"\n" + b"z" * 600_000]
TEXTS += [b"".join(b"%d\r\n" % number for number in range(500))]


def write(path, content):
    Path(path).write_bytes(content)
    return str(path)


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:20]))
def test_texts(tmp_path, text, compression):
    path = write(tmp_path / "a", COMPRESS[compression](text))
    for size in (None, 0, 1, 3, 1000):
        if size is None or size * 1000 > len(text):  # reading single bytes is slow
            assert_same(lambda lib, size=size: lib.TextLineDataset(path, compression, size), limit=1000)


def test_several_gzip_streams_are_one_text_and_others_are_none(tmp_path):
    path = write(tmp_path / "a", gzip.compress(b"a\nb") + gzip.compress(b"c\nd"))
    assert assert_same(lambda lib: lib.TextLineDataset(path, "GZIP")) == [b"a", b"bc", b"d"]
    write(path, b"plain\n")
    assert assert_same(lambda lib: lib.TextLineDataset(path, "GZIP"), limit=1)[0] == FAILED


def test_a_stream_that_is_cut_short(tmp_path):
    """tf.data treats the truncated file as complete and a partial line as a line; here it is data loss."""
    text = b"".join(b"%d\n" % number for number in range(20_000))
    path = write(tmp_path / "a", gzip.compress(text, 0)[:-20_000])  # the same bytes with every version of zlib
    found = outcomes(iter(Ours.TextLineDataset(path, "GZIP")), lambda value: value, 30_000)
    lines = theirs(lambda lib: list(lib.TextLineDataset(path, "GZIP").as_numpy_iterator()))
    assert 100 < len(lines) < 20_000
    assert found[-1] == FAILED
    assert found[:-1] == lines[: len(found) - 1]
    assert len(lines) - len(found) in {-1, 0}
    assert not has_failed(found[:-1])

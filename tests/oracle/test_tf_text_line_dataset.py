"""Tests of TextLineDataset against tf.data's."""

import gzip
import zlib
from pathlib import Path

import pytest
from compare import FAILED, Ours, assert_same, has_failed, outcomes, refused, theirs

TEXTS = [b"", b"\n", b"\n\n", b"a", b"a\n", b"one\ntwo\nthree", b"one\ntwo\nthree\n", b"a\n\nb\n\n", b"a\r\nb\r\n"]
TEXTS += [b"a\r\nb", b"a\rb\n", b"a\rb\rc", b"\r", b"\r\n", b"\r\r\n\r", b"a\n\r", b"a\n\r\n\r", b"a\n\rb"]
TEXTS += [b"x\x00y\n\x00\n", b"\xff\xfe\n\x80\xc3\n", b"a\x0bb\x0cc\x1cd\x85e\n\xe2\x80\xa8f\n", b"\xef\xbb\xbfbom\n"]
TEXTS += [b"a\x1a\nb\n", b"x" * 300_000 + b"\n" + b"y" * 262_143 + b"\n" + b"z" * 600_000]
TEXTS += [b"".join(b"%d\r\n" % number for number in range(500))]
COMPRESS = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


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


def test_several_gzip_streams_are_one_text(tmp_path):
    path = write(tmp_path / "a", gzip.compress(b"a\nb") + gzip.compress(b"c\nd"))
    assert assert_same(lambda lib: lib.TextLineDataset(path, "GZIP")) == [b"a", b"bc", b"d"]


@pytest.fixture
def paths(tmp_path):
    counts = {"a": 3, "b": 0, "c": 1, "d": 4}
    return [
        write(tmp_path / name, b"".join(f"{name}{number}\n".encode() for number in range(count)))
        for name, count in counts.items()
    ]


def test_names(paths):
    for names in (paths, tuple(paths), paths[0], [], [Path(paths[0]), paths[3].encode()]):
        assert_same(lambda lib, names=names: lib.TextLineDataset(names))
    assert_same(lambda lib: lib.TextLineDataset(lib.from_tensor_slices(paths)))
    assert_same(lambda lib: lib.TextLineDataset(lib.list_files(f"{Path(paths[0]).parent}/*", shuffle=False)))
    assert_same(lambda lib: lib.TextLineDataset(filenames=paths, compression_type=None, buffer_size=9, name="label"))
    assert_same(lambda lib: lib.from_tensor_slices(paths).interleave(lib.TextLineDataset, cycle_length=2))
    assert_same(lambda lib: lib.TextLineDataset(paths).skip(2).repeat(2).batch(3))
    assert_same(lambda lib: lib.TextLineDataset(paths).shard(2, 1))
    for reads in (1, 2, 3, 4, -1):
        files = paths if reads > 0 else paths[:1]
        assert_same(lambda lib, n=reads, files=files: lib.TextLineDataset(files, num_parallel_reads=n))


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read(tmp_path, paths, name):
    # tf.data raises for it forever; here the next file is read.
    files = [paths[0], str(tmp_path / name), paths[2]]
    found = assert_same(lambda lib: lib.TextLineDataset(files), limit=4)
    assert found[3] == FAILED
    everything = outcomes(iter(Ours.TextLineDataset(files)), lambda value: value, 100)
    assert everything == [b"a0", b"a1", b"a2", FAILED, b"c0"]


def test_what_is_no_gzip(tmp_path):
    path = write(tmp_path / "a", b"plain\n")
    assert_same(lambda lib: lib.TextLineDataset(path, "GZIP"), limit=1)


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


WRONG_TYPES = [{"filenames": names} for names in (3, [3], None)]
test_arguments_that_are_wrong = refused(
    {
        ValueError: [*({"num_parallel_reads": n} for n in (0, -2)), {"buffer_size": -1}, {"compression_type": "gz"}],
        TypeError: [*WRONG_TYPES, {"buffer_size": 2.5}, {"num_parallel_reads": "2"}],
    },
    lambda lib, paths, arguments: lib.TextLineDataset(**{"filenames": paths, **arguments}),
    fixture="paths",
)

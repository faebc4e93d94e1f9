"""Tests of FixedLengthRecordDataset against tf.data's."""

from pathlib import Path

import pytest
from compare import FAILED, Ours, assert_same, outcomes, refused

from support.tfrecord_files import COMPRESS

NOT_WHOLE = [(b"abcdefg", (2,)), (b"a", (2,)), (b"HabcdeFF", (2, 1, 2)), (b"HHHaFFF", (2, 3, 3)), (b"H", (2, 3))]
NOT_WHOLE += [(b"", (2, 3)), (b"F", (2, 0, 2)), (b"HF", (2, 3, 3))]


def write(path, content):
    Path(path).write_bytes(content)
    return str(path)


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize(
    "sizes", [(2,), (1, 0, 0), (6, None, None), (2, 2), (1, 3, 3), (3, 0, 3), (2, 6), (5, 1), (9,)]
)
def test_files_of_whole_records(tmp_path, sizes, compression):
    content = b"abcdef" if sum(size or 0 for size in sizes[1:]) or sizes[0] < 7 else b"abcdefghi" * 300
    path = write(tmp_path / "a", COMPRESS[compression](content))
    for size in (None, 0, 1, 2, 7):
        found = assert_same(
            lambda lib, size=size: lib.FixedLengthRecordDataset(
                path, *sizes, buffer_size=size, compression_type=compression
            ),
            limit=400,
        )
        assert FAILED not in found


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize(("content", "sizes"), NOT_WHOLE, ids=repr)
def test_files_that_hold_no_whole_number_of_records(tmp_path, content, sizes, compression):
    """A file of known size returns only an error; a compressed file returns its complete records before the error."""
    bad, good = write(tmp_path / "bad", COMPRESS[compression](content)), write(tmp_path / "good", b"xxyy")
    # For a file of known size, tf.data raises forever; here the error is raised once, and the next file is read.
    limit = 9 if compression else 1
    found = assert_same(
        lambda lib: lib.FixedLengthRecordDataset(bad, *sizes, compression_type=compression), limit=limit
    )
    assert FAILED in found
    if not compression and len(sizes) == 1:
        assert outcomes(iter(Ours.FixedLengthRecordDataset([bad, good], *sizes)), bytes, 9) == [FAILED, b"xx", b"yy"]


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize(
    "sizes", [(700, 0, 0), (699, 700, 300), (300_000, 50_000, 50_000), (100, 200_000, 400_000)], ids=str
)
def test_many_records(tmp_path, sizes, compression):
    content = b"".join((b"%06d," % number) * 100 for number in range(1000))  # its record is small
    path = write(tmp_path / "a", COMPRESS[compression](content))
    assert_same(lambda lib: lib.FixedLengthRecordDataset(path, *sizes, None, compression), limit=5000)


WRONG_TYPES = [{"record_bytes": 2.0}, {"record_bytes": "2"}, {"header_bytes": 2.0}, {"footer_bytes": "x"}]
test_arguments_that_are_wrong = refused(
    {
        ValueError: [
            {"record_bytes": 0},
            *({name: -1} for name in ("record_bytes", "header_bytes", "footer_bytes")),
        ],
        TypeError: WRONG_TYPES,
    },
    lambda lib, arguments: lib.FixedLengthRecordDataset(**{"filenames": __file__, "record_bytes": 2, **arguments}),
)

"""Tests of FixedLengthRecordDataset against tf.data's."""

from pathlib import Path

import pytest
from compare import FAILED, Ours, assert_same, outcomes, refused

from support.tfrecord_files import COMPRESS

# Contents, and the sizes of a record, the header and the footer.
SIZES = [(2, None, None), (1, 0, 0), (6, None, None), (2, 2, None), (1, 3, 3), (3, 0, 3), (2, 6, None), (5, 1, None)]
SMALL = [*((b"abcdef", sizes) for sizes in SIZES), (b"abcdefghi" * 300, (9, None, None))]
LARGE = b"".join((b"%06d," % number) * 100 for number in range(1000))  # its record is small
LARGE = [(LARGE, sizes) for sizes in ((700, 0, 0), (699, 700, 300), (300_000, 50_000, 50_000), (100, 200_000, 400_000))]
NOT_WHOLE = [(b"HabcdeFF", (2, 1, 2)), (b"HHHaFFF", (2, 3, 3)), (b"F", (2, 0, 2)), (b"HF", (2, 3, 3))]
NOT_WHOLE += [(b"H", (2, 3, None)), (b"", (2, 3, None)), (b"abcdefg", (2, None, None)), (b"a", (2, None, None))]


def write(path, content):
    Path(path).write_bytes(content)
    return str(path)


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize(("content", "sizes"), SMALL + LARGE, ids=lambda value: str(value)[:20])
def test_files_of_whole_records(tmp_path, content, sizes, compression):
    path = write(tmp_path / "a", COMPRESS[compression](content))
    for buffer in (None, 0, 1, 2, 7) if (content, sizes) in SMALL else (None,):
        build = lambda lib, buffer=buffer: lib.FixedLengthRecordDataset(path, *sizes, buffer, compression)
        found = assert_same(build, limit=5000)
        assert FAILED not in found or (content, sizes) in LARGE


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize(("content", "sizes"), NOT_WHOLE, ids=repr)
def test_files_that_hold_no_whole_number_of_records(tmp_path, content, sizes, compression):
    """A file of known size returns only an error; a compressed file returns its complete records before the error."""
    bad, good = write(tmp_path / "bad", COMPRESS[compression](content)), write(tmp_path / "good", b"xxyy")
    # For a file of known size, tf.data raises forever; here the error is raised once, and the next file is read.
    build = lambda lib: lib.FixedLengthRecordDataset(bad, *sizes, None, compression)
    found = assert_same(build, limit=9 if compression else 1)
    assert FAILED in found
    if not compression and sizes[1:] == (None, None):
        assert outcomes(iter(Ours.FixedLengthRecordDataset([bad, good], *sizes)), bytes, 9) == [FAILED, b"xx", b"yy"]


WRONG_TYPES = [{"record_bytes": 2.0}, {"record_bytes": "2"}, {"header_bytes": 2.0}, {"footer_bytes": "x"}]
WRONG_VALUES = [{"record_bytes": 0}, *({name: -1} for name in ("record_bytes", "header_bytes", "footer_bytes"))]
test_arguments_that_are_wrong = refused(
    {ValueError: WRONG_VALUES, TypeError: WRONG_TYPES},
    "FixedLengthRecordDataset(**{'filenames': 'a', 'record_bytes': 2, **case})",
)

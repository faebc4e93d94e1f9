"""Tests of read_file and write_file."""

import pytest

from dataset import io


@pytest.mark.parametrize("content", [b"", b"abc\0", bytes(3_000_000), bytearray(b"ab"), memoryview(b"ab"), "ü"])
def test_what_was_written_is_read(content, tmp_path):
    local = (tmp_path / "a", str(tmp_path / "b"), str(tmp_path / "c").encode(), (tmp_path / "d").as_uri())
    for path in (*local, "memory://whole/new/a"):
        io.write_file(path, content)
        assert io.read_file(path) == (content.encode() if isinstance(content, str) else bytes(content))


def test_arguments_are_checked(tmp_path):
    with pytest.raises(TypeError, match="contents must be bytes or text, got int"):
        io.write_file(tmp_path / "a", 3)
    assert list(tmp_path.iterdir()) == []
    for use in (io.read_file, lambda path: io.write_file(path, b"")):
        with pytest.raises(TypeError, match="a path must be"):
            use(3)
        with pytest.raises(ValueError, match="a path must not be empty"):
            use("")
    with pytest.raises(IsADirectoryError):
        io.write_file(tmp_path, b"abc")

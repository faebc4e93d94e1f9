"""Tests of decode_wav and encode_wav on untrusted bytes. tests/oracle compares values with TensorFlow's."""

import numpy as np
import pytest

from dataset.errors import ParseError
from dataset.io.wav import decode_wav, encode_wav

CONTENT = encode_wav(np.linspace(-1, 1, 20).reshape(10, 2), 8000)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello", "begin with b'hello' instead of RIFF"),
        (CONTENT[:36], "there is no chunk b'data'"),
        (CONTENT[:-1], "the chunk b'data' at byte 36 is truncated"),
        (CONTENT.replace(b"fmt ", b"fmtx"), "there is no chunk b'fmt '"),
        (CONTENT[:20] + b"\3" + CONTENT[21:], "format 3 and 16 bits; convert the file"),
        (CONTENT[:22] + b"\3" + CONTENT[23:], "3 channels of 8000 samples per second contradict 4 bytes"),
        (CONTENT[:16] + b"\x12" + CONTENT[17:], "truncated"),
    ],
)
def test_corrupt_files_are_refused(content, words):
    with pytest.raises(ParseError, match=words):
        decode_wav(content)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="with 1 to 65535 channels"):
        encode_wav(np.zeros((1, 1 << 16)), 1)
    with pytest.raises(ValueError, match="sample_rate must be from 1 to 2147483647, got"):
        encode_wav(np.zeros((3, 1)), 1 << 31)
    with pytest.raises(TypeError):
        encode_wav(np.zeros((3, 1)), 1.5)
    with pytest.raises(TypeError, match="must be the bytes of one file, got str"):
        decode_wav("RIFF")
    with pytest.raises(ValueError, match="desired_samples must be at least 0, or -1"):
        decode_wav(CONTENT, desired_samples=-2)

"""Codec for audio in WAV files: 16-bit PCM, as in ``tf.audio``.

This module converts between bytes and arrays. It opens no files.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dataset.errors import ParseError
from dataset.plan.checks import require_unmasked

_FORMAT = struct.Struct("<HHIIHH")  # of samples, channels, rate, bytes per second, bytes per frame, bits per sample
_HEADER = struct.Struct("<4sI4s4sI16s4sI")
_PCM = 1
_SCALE = 1 << 15


def decode_wav(
    contents: bytes, desired_channels: int = -1, desired_samples: int = -1
) -> tuple[npt.NDArray[np.float32], np.int32]:
    """Decode a WAV file of 16-bit PCM samples to the same values as ``tf.audio.decode_wav``.

    Args:
        contents: the bytes of the file.
        desired_channels: the number of channels to return: surplus channels are dropped, and the last one is repeated
            for missing ones. -1 for the number in the file.
        desired_samples: the number of samples of each channel to return: the end is dropped, or padded with zeros. -1
            for the number in the file.

    Returns:
        A writable float32 array of shape ``(samples, channels)`` with values from -1 up to but not including 1, and the
        number of samples per second as int32.

    Raises:
        ParseError: the bytes are not a WAV file, have samples of another format, or are truncated or corrupt.
        ValueError: a desired number is less than -1.
        TypeError: the contents are not bytes.

    Example:
        >>> audio, rate = decode_wav(encode_wav([[0.5], [-1.0]], 8000), desired_samples=3)
        >>> audio.tolist(), rate
        ([[0.5], [-1.0], [0.0]], np.int32(8000))
    """
    if not isinstance(contents, bytes):
        raise TypeError(f"decode_wav(): contents must be the bytes of one file, got {type(contents).__name__}")
    for name, desired in (("desired_channels", desired_channels), ("desired_samples", desired_samples)):
        if operator.index(desired) < -1:
            raise ValueError(f"decode_wav(): {name} must be at least 0, or -1 for that in the file, got {desired}")
    channels, rate, data = _read(contents)
    samples = np.frombuffer(data, "<i2").reshape(-1, channels)[: None if desired_samples < 0 else desired_samples]
    shape = (
        len(samples) if desired_samples < 0 else desired_samples,
        channels if desired_channels < 0 else desired_channels,
    )
    audio = np.zeros(shape, np.float32)
    chosen = np.minimum(np.arange(shape[1]), channels - 1)
    audio[: len(samples)] = samples[:, chosen] * np.float32(1 / _SCALE)
    return audio, np.int32(rate)


def encode_wav(audio: npt.ArrayLike, sample_rate: int) -> bytes:
    """Encode audio as a WAV file of 16-bit PCM samples, to the same bytes as ``tf.audio.encode_wav``.

    Args:
        audio: numbers of shape ``(samples, channels)``. Those below -1 or above 1 are clipped to this range; NaN is 0.
        sample_rate: the number of samples per second.

    Returns:
        The bytes of the file.

    Raises:
        ValueError: the array has another shape, the rate is out of range, or the file would exceed 4 GiB.
        TypeError: the array is masked: fill it with ``.filled(value)``.

    Example:
        >>> len(encode_wav(np.zeros((100, 2)), 44100))
        444
    """
    require_unmasked(audio, "encode_wav(): ")
    values = np.asarray(audio, np.float32)
    if values.ndim != 2 or not 0 < values.shape[1] < 1 << 16:
        raise ValueError(
            f"encode_wav(): audio must have shape (samples, channels) with 1 to 65535 channels, got {values.shape}"
        )
    rate, channels = operator.index(sample_rate), values.shape[1]
    width = 2 * channels
    if not 0 < rate * width < 1 << 32:
        raise ValueError(f"encode_wav(): sample_rate must be from 1 to {((1 << 32) - 1) // width}, got {rate}")
    if values.size * 2 + _HEADER.size > 0xFFFFFFFF:
        raise ValueError(f"encode_wav(): a WAV file has at most 4 GiB, got audio of shape {values.shape}; split it")
    scaled = np.nan_to_num(values, posinf=1, neginf=-1) * np.float32(_SCALE)
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # ties away from zero, as TensorFlow rounds
    data: bytes = np.clip(rounded, -_SCALE, _SCALE - 1).astype("<i2").tobytes()
    form = _FORMAT.pack(_PCM, channels, rate, rate * width, width, 16)
    header: bytes = _HEADER.pack(
        *(b"RIFF", _HEADER.size + len(data) - 8, b"WAVE"), *(b"fmt ", _FORMAT.size, form), *(b"data", len(data))
    )
    return header + data


def _read(contents: bytes) -> tuple[int, int, memoryview]:
    """Return the number of channels, the sample rate and the bytes of the samples."""
    if contents[:4] != b"RIFF" or contents[8:12] != b"WAVE":
        raise _unreadable(f"they begin with {contents[:12]!r} instead of RIFF and WAVE")
    chunks: dict[bytes, memoryview] = {}
    for name, content in _chunks(contents):
        if name == b"data" and name in chunks:
            raise _unreadable("there is more than one data chunk")
        chunks.setdefault(name, content)
    for name in (b"fmt ", b"data"):
        if name not in chunks:
            raise _unreadable(f"there is no chunk {name!r}")
    channels, rate = _read_format(chunks[b"fmt "])
    data = chunks[b"data"]
    if len(data) % (2 * channels):
        raise _unreadable(
            f"the data have {len(data)} bytes, which is not a multiple of 2 for each of {channels} channels"
        )
    return channels, rate, data


def _chunks(contents: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the name and the content of each chunk. A zero byte after a chunk of odd size belongs to it."""
    position = 12
    while position < len(contents):
        name, size = contents[position : position + 4], contents[position + 4 : position + 8]
        begin = position + 8
        position = begin + int.from_bytes(size, "little")
        if len(size) < 4 or position > len(contents):
            raise _unreadable(f"the chunk {name!r} at byte {begin - 8} is truncated")
        yield name, memoryview(contents)[begin:position]
        if (position - begin) % 2 and contents[position : position + 1] == b"\0":
            position += 1


def _read_format(content: memoryview) -> tuple[int, int]:
    """Return the number of channels and the sample rate that the format chunk declares."""
    if len(content) not in {16, 18}:
        raise _unreadable(f"the format chunk has {len(content)} bytes instead of 16 or 18")
    kind, channels, rate, bytes_per_second, width, bits = _FORMAT.unpack_from(content)
    if (kind, bits) != (_PCM, 16):
        raise _unreadable(f"the samples have format {kind} and {bits} bits; convert the file to 16-bit PCM (format 1)")
    if not channels or width != 2 * channels or bytes_per_second != rate * width or rate >= 1 << 31:
        raise _unreadable(
            f"{channels} channels of {rate} samples per second contradict {width} bytes per frame and "
            f"{bytes_per_second} per second"
        )
    return channels, rate


def _unreadable(why: str) -> ParseError:
    return ParseError(f"decode_wav(): the bytes can't be read as a WAV file: {why}")

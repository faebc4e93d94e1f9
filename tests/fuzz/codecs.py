"""Targets that decode values and blocks: TensorProto, WAV, Snappy."""

from __future__ import annotations

import io
import math
import random
import struct
from typing import Any

import numpy as np

from dataset.errors import ParseError
from dataset.io import decode_wav, encode_wav, parse_tensor, serialize_tensor
from dataset.io.example.messages import TensorProto
from dataset.io.files.compression import DamagedStreamError, new_compressor, open_stream

from .mutate import INTEGERS, mutated
from .target import Target, drained

# By dtype: its number and its field in TensorFlow.
_FIELDS = {
    "float32": (1, "float_val"),
    "float64": (2, "double_val"),
    "int32": (3, "int_val"),
    "uint8": (4, "int_val"),
    "int16": (5, "int_val"),
    "S": (7, "string_val"),
    "complex64": (8, "scomplex_val"),
    "int64": (9, "int64_val"),
    "bool": (10, "bool_val"),
    "float16": (19, "half_val"),
    "uint32": (22, "uint32_val"),
    "uint64": (23, "uint64_val"),
}
_TENSOR_BYTES = 1 << 16


class Tensors(Target):
    """Tensors have the values that protobuf's parser returns, and are the same after they were written again."""

    name = "tensors"
    allowed = (ParseError,)
    tokens = (
        b"\x12\x00",
        b"\x12\x02\x08\x01",
        b"\x08\x07",
        b"\x22\x04abcd",
        b"\x42\x01a",
        b"\x3a\x02\xff\x7f",
        b"\x08",
    )

    def make_samples(self) -> list[bytes]:
        arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([True, False]), np.array([[b"a\0", b""]], "O")]
        samples = [serialize_tensor(array) for array in (*arrays, np.arange(3), 1 + 2j, np.ones((1,) * 33), [b"a"] * 3)]
        fields: list[tuple[int, dict[str, Any]]] = [
            (1, {"float_val": [1.5, -0.0]}),
            (7, {"string_val": [b"abc", b""], "shape": [1] * 40 + [2]}),
            (7, {"tensor_content": b"\1\2abc"}),
            (8, {"scomplex_val": [1, 2, 3]}),
            (19, {"half_val": [15360, -1]}),
            (4, {"int_val": [300, -1], "shape": [2, 50]}),
            (23, {"uint64_val": [1 << 63]}),
        ]
        return samples + [self._encoded(dtype, values.pop("shape", [2]), values) for dtype, values in fields]

    @staticmethod
    def _encoded(dtype: int, shape: list[int], values: dict[str, Any]) -> bytes:
        message = TensorProto(dtype=dtype, **values)
        for size in shape:
            message.tensor_shape.dim.add(size=size)
        return bytes(message.SerializeToString(deterministic=True))

    def make_input(self, rng: random.Random) -> tuple[str, bytes]:
        data = rng.choice(self.samples)
        if rng.random() < 0.3:  # a valid message with another shape
            message = TensorProto.FromString(data)
            sizes = rng.choice(([1], [1, 2], [0, 1, 3], [number for number in INTEGERS if number < 1 << 63], [-1, 1]))
            del message.tensor_shape.dim[rng.randrange(len(message.tensor_shape.dim) + 1) :]
            for _ in range(rng.choice((0, 1, 3, 31, 63, 64, 65, 200))):
                message.tensor_shape.dim.add(size=rng.choice(sizes))
            data = message.SerializeToString(deterministic=True)
        if rng.random() < 0.7:
            data = mutated(rng, data, self.samples, self.tokens)
        number = data[1] if data[:1] == b"\x08" and len(data) > 1 else 0
        names = [name for name, (dtype, _) in _FIELDS.items() if dtype == number]
        return names[0] if names and rng.random() < 0.95 else rng.choice(list(_FIELDS)), data

    def check(self, data: Any) -> None:
        if isinstance(data, bytes):  # a sample
            numbers = {number: name for name, (number, _) in _FIELDS.items()}
            data = numbers.get(TensorProto.FromString(data).dtype, "complex128"), data
        name, serialized = data
        tensor = np.asarray(parse_tensor(serialized, name, max_bytes=_TENSOR_BYTES), object if name == "S" else None)
        message = TensorProto.FromString(serialized)  # raises for a message that the library should have refused
        assert tensor.shape == tuple(dim.size for dim in message.tensor_shape.dim)
        if name == "S":
            assert tensor.ravel().tolist() == _texts(message, tensor.size)
        elif name in _FIELDS:
            assert tensor.dtype == name
            assert repr(tensor.ravel().tolist()) == repr(_numbers(message, name, tensor.size))  # NaN equals NaN
        written = serialize_tensor(tensor)
        again = np.asarray(parse_tensor(written, name), tensor.dtype)
        assert (again.shape, serialize_tensor(again)) == (tensor.shape, written)


def _repeated(values: list[Any], count: int, zero: Any) -> list[Any]:
    return (values + (values[-1:] or [zero]) * max(count - len(values), 0))[:count]


def _texts(message: Any, count: int) -> list[bytes]:
    """Return the texts in a message that the library accepted."""
    if not message.tensor_content:
        return _repeated(list(message.string_val), count, b"")
    stream, lengths = io.BytesIO(message.tensor_content), []
    for _ in range(count):
        groups = [stream.read(1)[0]]
        while groups[-1] > 0x7F:
            groups.append(stream.read(1)[0])
        lengths.append(sum((group & 0x7F) << 7 * place for place, group in enumerate(groups)))
    texts = [stream.read(length) for length in lengths]
    assert [len(text) for text in texts] == lengths
    assert not stream.read()
    return texts


def _numbers(message: Any, name: str, count: int) -> Any:
    """Return the values of a message that the library accepted."""
    dtype = np.dtype(name)
    if message.tensor_content:
        return np.frombuffer(message.tensor_content, dtype).tolist()
    values = list(getattr(message, _FIELDS[name][1]))
    if dtype.kind == "c":
        values = list(np.array(values[: len(values) // 2 * 2], dtype.type(0).real.dtype).view(dtype))
    elif name == "float16":  # the values are its bits
        values = list(np.array([value & 0xFFFF for value in values], np.uint16).view(dtype))
    elif dtype.kind in "iu":
        unsigned = np.array([value & (1 << 8 * dtype.itemsize) - 1 for value in values], f"u{dtype.itemsize}")
        values = list(unsigned.view(dtype))
    return np.array(_repeated(values, count, 0), dtype).tolist()


class Wavs(Target):
    """WAV files: the samples are in the file, and are the same after they were written again."""

    name = "wav"
    allowed = (ParseError,)
    tokens = (b"RIFF", b"WAVE", b"fmt ", b"data", b"LIST\1\0\0\0x\0", b"\x10\0\0\0\1\0\1\0", b"\x12\0\0\0\1\0\2\0")

    def make_samples(self) -> list[bytes]:
        samples = [encode_wav(np.linspace(-1, 1, 40).reshape(-1, channels), 8000) for channels in (1, 2, 5)]
        samples += [encode_wav(np.zeros((0, 2)), 1), samples[1][:36] + b"LIST\3\0\0\0abc\0" + samples[1][36:]]
        return [*samples, samples[0][:16] + b"\x12" + samples[0][17:36] + b"\0\0" + samples[0][36:]]

    def make_input(self, rng: random.Random) -> tuple[bytes, int, int]:
        data = mutated(rng, rng.choice(self.samples), self.samples, self.tokens)
        if rng.random() < 0.5 and len(data) > 36:  # an arbitrary, consistent format
            channels, rate = rng.choice((1, 2, 3, 300, 0x7FFF)), rng.choice(INTEGERS) & 0xFFFF
            form = struct.pack("<HHIIHH", 1, channels, rate, rate * 2 * channels & 0xFFFFFFFF, 2 * channels, 16)
            data = data[:20] + form + data[36:]
        return data, rng.choice((-1, -1, 0, 1, 3)), rng.choice((-1, -1, 0, 1, 50))

    def check(self, data: Any) -> None:
        contents, channels, samples = data if isinstance(data, tuple) else (data, -1, -1)
        audio, rate = decode_wav(contents)
        frames = (audio * np.float32(1 << 15)).astype("<i2").tobytes()
        assert frames in contents
        assert len(frames) == 2 * math.prod(audio.shape)
        if rate:
            again, same = decode_wav(encode_wav(audio, int(rate)))
            assert (again.tolist(), same) == (audio.tolist(), rate)
        part, same = decode_wav(contents, channels, samples)
        assert same == rate
        wanted = [audio.shape[0] if samples < 0 else samples, audio.shape[1] if channels < 0 else channels]
        assert list(part.shape) == wanted
        for place in range(min(wanted[1], 3)):
            column = audio[: wanted[0], min(place, audio.shape[1] - 1)].tolist()
            assert part[:, place].tolist() == column + [0.0] * (wanted[0] - len(column))


class SnappyBlocks(Target):
    """Snappy streams are decompressed up to the damage that a decompressor of twenty lines finds."""

    name = "snappy"
    allowed = (DamagedStreamError,)
    tokens = (b"\0\0\0\1\0", b"\0\0\0\3\1\0a", b"\xff\xff\xff\xff\x0f", b"\0\0", b"\xfc\xff\xff\xff\xff", b"\xff" * 5)

    def make_samples(self) -> list[bytes]:
        texts = (
            b"",
            b"abc" * 30,
            random.Random(2).randbytes(3000),
            bytes(1 << 20),
            b"line\n" * 5000,
            b"ab" * 40 + b"x",
        )
        compressors = [new_compressor("SNAPPY", 1) for _ in texts]
        samples = [one.compress(text) + one.flush() for one, text in zip(compressors, texts, strict=True)]
        return [*samples, samples[1] + samples[2] + samples[1]]

    def make_input(self, rng: random.Random) -> bytes:
        data = rng.choice(self.samples)
        if rng.random() < 0.6 and data:  # blocks of correct sizes
            blocks = [data[4 : 4 + int.from_bytes(data[:4], "big")], *(sample[4:] for sample in self.samples if sample)]
            some = [rng.choice(blocks[-3:]) if rng.random() < 0.5 else blocks[0] for _ in range(rng.randrange(1, 4))]
            place = rng.randrange(len(some))
            some[place] = mutated(rng, some[place], blocks, self.tokens)
            return b"".join(len(block).to_bytes(4, "big") + block for block in some)
        return mutated(rng, data, self.samples, self.tokens)

    def check(self, data: bytes) -> None:
        expected, is_whole = _unsnapped(data)
        for size in (100, 1 << 18):
            found, failure = drained(open_stream(io.BytesIO(data), "SNAPPY"), size)
            assert found == expected, (len(found), len(expected))
            assert (failure is None) == is_whole, failure
        if failure is not None:
            raise failure


def _unsnapped(data: bytes) -> tuple[bytes, bool]:
    """Return the content of the blocks up to the first damaged one, and whether there is none."""
    pieces, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        block = data[at + 4 : at + 4 + size]
        content = _unsnapped_block(block) if at + 4 + size <= len(data) else None
        if content is None:
            return b"".join(pieces), False
        pieces.append(content)
        at += 4 + size
    return b"".join(pieces), True


def _unsnapped_block(block: bytes) -> bytes | None:
    """Return the content of a block; None if it is damaged. See format_description.txt of Snappy."""
    at = next((place + 1 for place, byte in enumerate(block[:5]) if byte < 0x80), 0)
    total = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(block[:at]))
    content = bytearray()
    if not at or total >= 1 << 32:
        return None
    while at < len(block):
        tag = block[at]
        kind, size, at = tag & 3, (tag >> 2) + 1, at + 1
        extra = (max(size - 60, 0), 1, 2, 4)[kind]
        number = int.from_bytes(block[at : at + extra], "little")
        if at + extra > len(block):
            return None
        at += extra
        if kind == 0:
            size = number + 1 if extra else size
            content += block[at : at + size]
            if at + size > len(block):
                return None
            at += size
        else:
            if kind == 1:
                size, number = 4 + (tag >> 2 & 7), (tag >> 5) << 8 | number
            if not 0 < number <= len(content):
                return None
            repeated = content[-number:] if number <= size else content[-number:][:size]
            content += (repeated * (size // len(repeated) + 1))[:size]
        if len(content) > total:
            return None
    return bytes(content) if len(content) == total else None

"""Targets that decode values and blocks: TensorProto, WAV, Snappy."""

from __future__ import annotations

import io
import math
import random
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from cramjam import DecompressionError, snappy

from dataset.errors import ParseError
from dataset.io import decode_wav, encode_wav, parse_tensor, serialize_tensor
from dataset.io.example import tensor
from dataset.io.example.messages import TensorProto
from dataset.io.files.compression import DamagedStreamError, open_stream
from support.block_files import COMPRESS

from .mutate import INTEGERS, mutated
from .target import CONTENTS, Target, drained

_NUMBERS = {"S" if dtype == "bytes" else dtype: number for dtype, (number, _) in tensor._DTYPES.items()}
_NUMBERS.pop("bfloat16")
_TENSOR_BYTES = 1 << 16


def _message(dtype: int, sizes: Sequence[int] = (2,), **values: Any) -> bytes:
    message = TensorProto(dtype=dtype, tensor_shape={"dim": [{"size": size} for size in sizes]}, **values)
    return bytes(message.SerializeToString(deterministic=True))


class Tensors(Target):
    """Tensors have the shape that protobuf's parser returns, and are the same after they were written again."""

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
        return [
            *samples,
            _message(1, float_val=[1.5, -0.0]),
            _message(7, 40 * [1] + [2], string_val=[b"abc", b""]),
            _message(7, tensor_content=b"\1\2abc"),
            _message(8, scomplex_val=[1, 2, 3]),
            _message(19, half_val=[15360, -1]),
            _message(4, [2, 50], int_val=[300, -1]),
            _message(23, uint64_val=[1 << 63]),
        ]

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
        names = [name for name, own in _NUMBERS.items() if own == number]
        return names[0] if names and rng.random() < 0.95 else rng.choice(list(_NUMBERS)), data

    def check(self, data: Any) -> None:
        if isinstance(data, bytes):  # a sample
            numbers = {number: name for name, number in _NUMBERS.items()}
            data = numbers.get(TensorProto.FromString(data).dtype, "complex128"), data
        name, serialized = data
        tensor = np.asarray(parse_tensor(serialized, name, max_bytes=_TENSOR_BYTES), object if name == "S" else None)
        message = TensorProto.FromString(serialized)  # raises for a message that the library should have refused
        assert tensor.shape == tuple(dim.size for dim in message.tensor_shape.dim)
        assert tensor.dtype == (object if name == "S" else name)
        written = serialize_tensor(tensor)
        again = np.asarray(parse_tensor(written, name), tensor.dtype)
        assert (again.shape, serialize_tensor(again)) == (tensor.shape, written)


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
    """Snappy streams are decompressed up to the damage that a loop over their blocks finds."""

    name = "snappy"
    allowed = (DamagedStreamError,)
    tokens = (b"\0\0\0\1\0", b"\0\0\0\3\1\0a", b"\xff\xff\xff\xff\x0f", b"\0\0", b"\xfc\xff\xff\xff\xff", b"\xff" * 5)

    def make_samples(self) -> list[bytes]:
        samples = [COMPRESS["SNAPPY"](text) for text in (*CONTENTS, b"ab" * 40 + b"x")]
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
        block = data[at + 4 : at + 4 + int.from_bytes(data[at : at + 4], "big")]
        at += 4 + int.from_bytes(data[at : at + 4], "big")
        try:
            if at > len(data) or snappy.decompress_raw_len(block) > 64 * len(block):  # the library would allocate it
                return b"".join(pieces), False
            pieces.append(bytes(snappy.decompress_raw(block)))
        except DecompressionError:
            return b"".join(pieces), False
    return b"".join(pieces), True

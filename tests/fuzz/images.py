"""Targets that decode images."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import numpy as np

from dataset import io

from .mutate import mutated, packed_integer
from .target import Target

MAX_PIXELS = 1 << 20
_DECODERS: tuple[tuple[Any, dict[str, Any]], ...] = (
    *((io.decode_image, {}), (io.decode_image, {"channels": 3}), (io.decode_image, {"channels": 1})),
    *((io.decode_image, {"channels": 4}), (io.decode_image, {"expand_animations": False})),
    *((io.decode_jpeg, {}), (io.decode_jpeg, {"ratio": 4, "try_recover_truncated": True, "channels": 3})),
    *((io.decode_png, {}), (io.decode_png, {"channels": 4, "dtype": np.uint16}), (io.decode_png, {"channels": 1})),
)


class _Images(Target):
    allowed = (ValueError,)

    def make_input(self, rng: random.Random) -> tuple[int, bytes]:
        return rng.randrange(len(_DECODERS)), mutated(rng, rng.choice(self.samples), self.samples, self.tokens)

    def check(self, data: Any) -> None:
        number, contents = data if isinstance(data, tuple) else (0, data)
        decode, arguments = _DECODERS[number]
        pixels = decode(contents, max_pixels=MAX_PIXELS, **arguments)
        assert pixels.dtype in {np.dtype(np.uint8), np.dtype(np.uint16)}
        height, width = pixels.shape[-3:-1]
        assert height * width <= MAX_PIXELS

    @staticmethod
    def picture(channels: int, depth: Any = np.uint8) -> Any:
        """Return a small image with some structure, the same each time."""
        rng = np.random.default_rng(channels)
        coarse = rng.integers(0, 200, (4, 5, channels))
        fine = rng.integers(0, 50, (16, 20, channels))
        return (np.kron(coarse, np.ones((4, 4, 1), np.int64)) + fine).astype(depth)


class Jpeg(_Images):
    """JPEG: baseline, progressive, gray, subsampled."""

    name = "jpeg"
    tokens = tuple(
        b"\xff" + kind for kind in (b"\xd8\xff", b"\xc0", b"\xc2", b"\xc4", b"\xdb", b"\xda", b"\xd9", b"\xd0")
    )
    tokens += (b"\xff\xdd\0\4", b"\xff\xe1\0\x10Exif\0\0", b"\xff\xee\0\x0eAdobe", b"\0\x11\x08\xff\xff\xff\xff\3")

    def make_samples(self) -> list[bytes]:
        return [
            io.encode_jpeg(self.picture(3)),
            io.encode_jpeg(self.picture(1)),
            io.encode_jpeg(self.picture(3), 40, progressive=True, optimize_size=True),
            io.encode_jpeg(self.picture(3), 90, chroma_downsampling=False),
        ]


class Png(_Images):
    """PNG, with chunks whose checksums are mostly correct."""

    name = "png"
    tokens = tuple(b"IHDR PLTE tRNS IDAT IEND acTL fcTL fdAT gAMA iCCP eXIf zTXt".split())

    def make_samples(self) -> list[bytes]:
        samples = [io.encode_png(self.picture(channels)) for channels in (1, 3, 4)]
        samples += [io.encode_png(self.picture(3, np.uint16))]
        header, rest = samples[1][:8], samples[1][8:]
        text = _chunk(b"tEXt", b"Comment\0hello") + _chunk(b"gAMA", struct.pack(">I", 45455))
        samples.append(header + rest[:25] + text + rest[25:])
        body = zlib.compress(b"".join(b"\0" + bytes(range(16)) for _ in range(16)))
        palette = bytes(range(48))
        pieces = (b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 3, 0, 0, 0)), (b"PLTE", palette), (b"tRNS", b"\0\x80")
        samples.append(header + b"".join(_chunk(*piece) for piece in (*pieces, (b"IDAT", body), (b"IEND", b""))))
        return samples

    def make_input(self, rng: random.Random) -> tuple[int, bytes]:
        number, data = super().make_input(rng)
        if rng.random() < 0.4:
            data = _with_deflated(rng, rng.choice(self.samples))
        return number, _with_checksums(data) if rng.random() < 0.8 else data


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _with_checksums(data: bytes) -> bytes:
    """Correct the checksum of every chunk."""
    pieces, at = [data[:8]], 8
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            break
        pieces += [data[at : end - 4], struct.pack(">I", zlib.crc32(data[at + 4 : end - 4]))]
        at = end
    return b"".join([*pieces, data[at:]])


def _with_deflated(rng: random.Random, data: bytes) -> bytes:
    """Change the pixels, or the sizes in the header, of an otherwise valid file."""
    if rng.random() < 0.5:
        at = 16 + rng.randrange(13)
        piece = packed_integer(rng)[:4]
        return data[:at] + piece + data[at + len(piece) :]
    at = data.rfind(b"IDAT") - 4
    size = int.from_bytes(data[at : at + 4], "big")
    raw = zlib.decompress(data[at + 8 : at + 8 + size])
    return data[:at] + _chunk(b"IDAT", zlib.compress(mutated(rng, raw, [raw]))) + data[at + 12 + size :]


class GifAndBmp(_Images):
    """GIF, with animations, and BMP."""

    name = "gif_bmp"
    tokens = (b"GIF89a", b"\x21\xf9\x04", b"\x21\xff\x0bNETSCAPE2.0", b"\x2c", b"\x3b", b"BM", b"\x28\0\0\0")
    tokens += (b"\x0c\0\0\0",)

    def make_samples(self) -> list[bytes]:
        import cv2

        samples = [cv2.imencode(".bmp", self.picture(channels))[1].tobytes() for channels in (1, 3, 4)]
        return [*samples, _gif(1), _gif(3)]


def _gif(frames: int) -> bytes:
    """Encode frames of 8 x 8 pixels in four colours, with one code per pixel."""
    palette = bytes((0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255))
    parts = [b"GIF89a", struct.pack("<HHBBB", 8, 8, 0x81, 0, 0), palette, b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"]
    for frame in range(frames):
        codes = []
        for pixel in range(64):
            codes += [4] * (pixel % 2 == 0) + [(pixel + frame) % 4]  # cleared often: codes stay three bits long
        bits = sum(code << 3 * place for place, code in enumerate([*codes, 5]))
        body = bits.to_bytes(-(-3 * (len(codes) + 1) // 8), "little")
        parts += [b"\x21\xf9\x04\x04\x05\0\0\0", b"\x2c", struct.pack("<HHHHB", 0, 0, 8, 8, 0), b"\x02"]
        parts += [bytes((len(body),)), body, b"\0"]
    return b"".join([*parts, b"\x3b"])

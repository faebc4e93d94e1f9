"""Detection of the content type of bytes from their start: an image, a sound, text or raw bytes. Nothing is decoded.

The bytes are untrusted: the result is what they declare.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from dataset.io.image.image_headers import bmp_size, gif_size, jpeg_frame, png_size

TEXT = "text"
RAW = "raw"
IMAGES = {"jpeg", "png", "gif", "bmp", "webp"}

MAGIC = [
    (0, b"\xff\xd8\xff", "jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "png"),
    (0, b"GIF87a", "gif"),
    (0, b"GIF89a", "gif"),
    (8, b"WEBP", "webp"),  # within a RIFF file, like the next one
    (8, b"WAVE", "wav"),
    (0, b"fLaC", "flac"),
    (0, b"OggS", "ogg"),
    (0, b"ID3", "mp3"),
    (4, b"ftyp", "mp4"),
    (0, b"\x1aE\xdf\xa3", "matroska"),  # also WebM
    (0, b"II*\0", "tiff"),
    (0, b"MM\0*", "tiff"),
    (0, b"\x93NUMPY", "npy"),
    (0, b"%PDF-", "pdf"),
    (0, b"\x1f\x8b\x08", "gzip"),
    (0, b"PK\x03\x04", "zip"),
]
BMP_HEADER_SIZES = {12, 40, 52, 56, 64, 108, 124}  # checked because "BM" alone is weak evidence
TEXT_BYTES_MAX = 1 << 16  # how many bytes of a value are inspected
CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # control characters that text files do not contain


class Look(NamedTuple):
    """The detected content type of bytes.

    Attributes:
        kind: ``jpeg``, ``text``, ``raw`` and so on.
        width: the declared width of an image in pixels; 0 if unknown.
        height: the declared height of an image in pixels; 0 if unknown.
    """

    kind: str
    width: int = 0
    height: int = 0


def look_of(value: bytes) -> Look:
    """Detect the content type of bytes.

    >>> look_of(b"GIF89a" + bytes([2, 0, 3, 0])), look_of(b"cat"), look_of(bytes(3))
    (Look(kind='gif', width=2, height=3), Look(kind='text', width=0, height=0), Look(kind='raw', width=0, height=0))
    """
    for start, magic, kind in MAGIC:
        if value.startswith(magic, start) and (start != 8 or value.startswith(b"RIFF")):
            return Look(kind, *_picture_size(kind, value))
    if value.startswith(b"BM") and int.from_bytes(value[14:18], "little") in BMP_HEADER_SIZES:
        return Look("bmp", *_picture_size("bmp", value))
    return Look(RAW) if text_of(value) is None else Look(TEXT)


def text_of(value: bytes, bytes_max: int = TEXT_BYTES_MAX) -> str | None:
    """Return the first ``bytes_max`` bytes as text; None if they are not UTF-8 or contain control characters."""
    start = value[:bytes_max]
    if CONTROLS.search(start):
        return None
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(start, final=len(value) <= bytes_max)
    except UnicodeDecodeError:
        return None


def _picture_size(kind: str, value: bytes) -> tuple[int, int]:
    """Return the declared width and height; zeros if they are not known."""
    if kind == "jpeg":
        frame = jpeg_frame(value)
        return (frame.width, frame.height) if frame else (0, 0)
    if kind == "png" and value[12:16] != b"IHDR":
        return 0, 0
    readers = {"png": png_size, "gif": gif_size, "bmp": bmp_size}
    if kind not in readers:
        return 0, 0
    height, width = readers[kind](value)
    return max(width, 0), max(height, 0)

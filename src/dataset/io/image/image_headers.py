"""Header parsers for untrusted image bytes, run before a C library receives them.

A declared size or length may be any number, and a decoder that trusts it allocates that much memory. The parsers here
only slice and compare, in time and memory proportional to the given bytes. They return numbers, or None if the bytes
are truncated or corrupt; decoders.py decides whether a size is acceptable, and raises. This module decodes no pixels,
raises nothing and imports no library of the extra. Each parser expects that its caller has checked the magic bytes.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

# JPEG (ITU T.81) ------------------------------------------------------------------------------------------------------

# SOF0 to SOF15; C4, C8 and CC are tables and extensions.
_JPEG_FRAME_MARKERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# Markers without a length: TEM, RST0 to RST7, SOI; 00 is not a marker.
_JPEG_LONE_MARKERS: Final = frozenset({0x00, 0x01, *range(0xD0, 0xD9)})


class JpegFrame(NamedTuple):
    """The size and the number of components that a frame header declares."""

    height: int
    width: int
    components: int


def jpeg_frame(contents: bytes) -> JpegFrame | None:
    """Read the frame header (B.2.2), skipping other segments; return None if it is missing."""
    position = 2
    while (position := contents.find(b"\xff", position)) != -1 and position + 10 <= len(contents):
        marker = contents[position + 1]
        if marker in _JPEG_FRAME_MARKERS:
            height = int.from_bytes(contents[position + 5 : position + 7], "big")
            width = int.from_bytes(contents[position + 7 : position + 9], "big")
            return JpegFrame(height, width, contents[position + 9])
        if marker == 0xFF:  # fill
            position += 1
        elif marker in _JPEG_LONE_MARKERS:
            position += 2
        else:
            position += 2 + int.from_bytes(contents[position + 2 : position + 4], "big")
    return None


# PNG (ISO/IEC 15948) --------------------------------------------------------------------------------------------------

PNG_GRAY: Final = 0
PNG_RGB: Final = 2
PNG_GRAY_ALPHA: Final = 4

_PNG_COLOR_KINDS: Final = frozenset({b"gAMA", b"cHRM", b"sRGB"})  # libpng uses these to convert colours to gray
_PNG_KINDS: Final = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}) | _PNG_COLOR_KINDS
_PNG_ORDERS: Final = (
    [b"IHDR", b"IDAT", b"IEND"],
    [b"IHDR", b"PLTE", b"IDAT", b"IEND"],
    [b"IHDR", b"tRNS", b"IDAT", b"IEND"],
    [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"],
)


def plain_png(contents: bytes) -> bytes | None:
    """Check the chunks of a PNG (clause 5) and remove those that do not affect pixels; return None if a check fails.

    Two defects of OpenCV 5.0 make this necessary. It allocates the declared length of a chunk, up to 2 GiB, before it
    reads the bytes. Damaged animation chunks can corrupt its heap, which kills the process. Without these chunks it
    decodes the first image, which is the required result.
    """
    chunks, kinds = [contents[:8]], []
    for kind, begin, end in _png_chunks(contents):
        if kind in _PNG_KINDS:
            chunks.append(contents[begin:end])
            kinds.append(kind)
        elif not kind[0] & 0x20:  # an unknown chunk that is marked as critical
            return None
    order = [kind for kind in dict.fromkeys(kinds) if kind not in _PNG_COLOR_KINDS]
    if order not in _PNG_ORDERS or kinds.count(b"IHDR") > 1 or contents[8:16] != b"\0\0\0\rIHDR":
        return None
    return b"".join(chunks)


def _png_chunks(contents: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, begin and end of each complete chunk, up to IEND or the first truncated chunk."""
    begin = 8
    while begin + 12 <= len(contents):
        end = begin + 12 + int.from_bytes(contents[begin : begin + 4], "big")
        if end > len(contents):
            return
        kind = contents[begin + 4 : begin + 8]
        yield kind, begin, end
        if kind == b"IEND":
            return
        begin = end


def png_size(plain: bytes) -> tuple[int, int]:
    """Read height and width from the result of plain_png()."""
    return int.from_bytes(plain[20:24], "big"), int.from_bytes(plain[16:20], "big")


def png_color_type(plain: bytes) -> int:
    """Read the colour type from the result of plain_png(): PNG_GRAY, PNG_RGB, PNG_GRAY_ALPHA or another."""
    return plain[25]


# BMP and GIF ----------------------------------------------------------------------------------------------------------


def bmp_size(contents: bytes) -> tuple[int, int]:
    """Read height and width; bytes that are missing count as 0."""
    old = contents[14:18] == b"\x0c\0\0\0"  # the first version of the header has 16-bit sizes
    width = int.from_bytes(contents[18:20] if old else contents[18:22], "little", signed=not old)
    height = int.from_bytes(contents[20:22] if old else contents[22:26], "little", signed=not old)
    return abs(height), width  # a negative height means top to bottom


def gif_size(contents: bytes) -> tuple[int, int]:
    """Read height and width; bytes that are missing count as 0."""
    return int.from_bytes(contents[8:10], "little"), int.from_bytes(contents[6:8], "little")

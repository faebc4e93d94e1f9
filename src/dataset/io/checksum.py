"""The checksum of TFRecord files and of saved indexes."""

from __future__ import annotations

from dataset.io import libraries

UINT32_MAX = 0xFFFFFFFF
MASK_DELTA = 0xA282EAD8  # part of the format: CRCs of data that contains CRCs are weak, so CRCs are masked


def masked_crc(data: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32C of bytes, masked as TFRecord files store it."""
    crc: int = libraries.crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & UINT32_MAX

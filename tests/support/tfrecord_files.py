"""TFRecord files for tests: frames built according to the format's description."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from pathlib import Path

from crc32c import crc32c

from dataset.errors import DataLossError

KINDS = ["", "GZIP", "ZLIB"]
COMPRESS = {"": bytes, "GZIP": lambda data: gzip.compress(data, mtime=0), "ZLIB": zlib.compress}

HEADER, FOOTER = 12, 4  # the bytes of a frame around its data


def masked(data):
    """Return the format's masked CRC-32C, computed as in its description."""
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32)


def header(length):
    packed = struct.pack("<Q", length)
    return packed + masked(packed)


def frame(data):
    return header(len(data)) + data + masked(data)


def frames(records):
    return b"".join(map(frame, records))


def write_records(path, records):
    Path(path).write_bytes(frames(records))


GOLDEN_RECORDS = [b"", b"a", b"tensor\x00flow", bytes(range(40))]
GOLDEN = {kind: compress(frames(GOLDEN_RECORDS)) for kind, compress in COMPRESS.items()}
"""Files of these records. tests/oracle compares such files with TensorFlow's."""


def read(file, n=1000):
    """Return all records, and the error that ended them or None; close the file."""
    found, error = [], None
    try:
        while (chunk := file.records(n)) is not None:
            assert 1 <= len(chunk) <= n
            found += chunk
    except DataLossError as damage:
        error = damage
        assert file.records(n) is None
        assert file.exhausted
    file.close()
    return found, error


def assorted(count, seed=0, largest=30):
    """Records of different lengths, some of them empty."""
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(largest)) for _ in range(count)]


def model(content):
    """Read a file as its description says, without looking ahead.

    Return the valid records, and for each damaged place: offset, record number, whether reading can continue.
    """
    records, damages, at = [], [], 0
    number = -1
    while at < len(content):
        number += 1
        head = content[at : at + HEADER]
        if len(head) < HEADER or masked(head[:8]) != head[8:]:
            return records, [*damages, (at, number, False)]
        end = at + HEADER + struct.unpack("<Q", head[:8])[0]
        if end + FOOTER > len(content):
            return records, [*damages, (at, number, False)]
        data = content[at + HEADER : end]
        if masked(data) == content[end : end + FOOTER]:
            records.append(data)
        else:
            damages.append((at, number, True))
        at = end + FOOTER
    return records, damages

"""TFRecord files for tests: files written by TensorFlow, and frames built according to the format's description."""

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

# Written by TensorFlow 2.21's tf.io.TFRecordWriter, one file per compression type.
GOLDEN_RECORDS = [b"", b"a", b"tensor\x00flow", bytes(range(40))]
GOLDEN = {
    "": b"\x00\x00\x00\x00\x00\x00\x00\x00)\x03\x98\x07\xd8\xea\x82\xa2\x01\x00\x00\x00\x00\x00\x00\x00\x01u\xdeAaxn"
    b"\xe4("
    b"\x0b\x00\x00\x00\x00\x00\x00\x00\x86\x15\xf5\x04tensor\x00flow\x1f3\xbf/(\x00\x00\x00\x00\x00\x00\x00\xffp\x16J"
    b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c"
    b"\x1d\x1e\x1f !\"#$%&'u\x11\x89\x83",
    "GZIP": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03c`\x80\x00M\xe6\x19\xec7^5-b\x84\xf2\x19K\xef9&V\xe4=\xd1\xe0\x86"
    b"\n\xb4\x89~e)I\xcd+\xce/bH\xcb\xc9/\x977\xde\xaf\xaf\x01\x95\xfa_ \xe6\xc5\xc0\xc8\xc4\xcc\xc2\xca\xc6\xce\xc1"
    b"\xc9\xc5\xcd\xc3\xcb\xc7/ ($,\"*&.!)%-#+'\xaf\xa0\xa8\xa4\xac\xa2\xaa\xa6^*\xd8\xd9\x0c\x00\xd0\xfb9\xf0t\x00\x00"
    b"\x00",
    "ZLIB": b"x\x9cc`\x80\x00M\xe6\x19\xec7^5-b\x84\xf2\x19K\xef9&V\xe4=\xd1\xe0\x86\n\xb4\x89~e)I\xcd+\xce/bH\xcb\xc9/"
    b'\x977\xde\xaf\xaf\x01\x95\xfa_ \xe6\xc5\xc0\xc8\xc4\xcc\xc2\xca\xc6\xce\xc1\xc9\xc5\xcd\xc3\xcb\xc7/ ($,"*&.!)%-'
    b"#+'\xaf\xa0\xa8\xa4\xac\xa2\xaa\xa6^*\xd8\xd9\x0c\x00K\x83\x15b",
}


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

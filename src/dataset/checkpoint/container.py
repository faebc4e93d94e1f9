r"""File format of checkpoints: a small binary container. The reader checks every number before it uses it.

    offset  bytes
    0       8       b"\x93DSTATE\n"; the first byte is not ASCII, and the last detects converted line ends
    8       4       version of the container, 1; all numbers are little-endian and unsigned
    12      4       0
    16      8       length of the whole file
    24      8       length of the header
    32      ...     header: JSON in ASCII: {"saved": ms since 1970, "library": version, "state": ...}
    ...     ...     blobs: the content of all bytes and arrays, concatenated
    -32     32      BLAKE2b digest of everything before it

The state in the header has the form defined in plan/plain.py, except that the content of bytes and arrays is replaced
by its [offset, length] in the blobs.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any, NamedTuple

from dataset.amounts import PIECE_BYTES
from dataset.errors import StateError
from dataset.io.files.opening import InputFile, open_input
from dataset.plan.drawing.brief import brief_bytes
from dataset.plan.plain import Blobs, blob_getter, from_json, to_json
from dataset.version import __version__
from dataset.world import time

MAGIC = b"\x93DSTATE\n"
VERSION = 1

_FIXED = struct.Struct("<8sIIQQ")
_DIGEST_BYTES = 32
_REMEDY = "restore another copy of the file, or start from the beginning"


class Saved(NamedTuple):
    """The content of a checkpoint file.

    Attributes:
        state: the result of ``state_dict``.
        saved: when the file was written, in seconds since 1970.
        library: the version of the library that wrote the file.
        nbytes: the size of the file.
    """

    state: Any
    saved: float
    library: str
    nbytes: int


def pack(state: Any) -> list[bytes]:
    """Return the content of a file, in pieces.

    Raises:
        StateError: ``state`` contains something that is not plain data.
    """
    blobs = Blobs()
    try:
        document = {"saved": round(1000 * time.time()), "library": __version__, "state": to_json(state, blobs.put)}
        header = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    except TypeError as error:
        raise StateError(str(error)) from None
    except RecursionError:
        raise StateError("the state is nested too deeply to be the state of an iterator") from None
    length = _FIXED.size + len(header) + blobs.size + _DIGEST_BYTES
    pieces = [_FIXED.pack(MAGIC, VERSION, 0, length, len(header)), header, *blobs.pieces]
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for piece in pieces:
        digest.update(piece)
    return [*pieces, digest.digest()]


def read(path: str) -> Saved:
    """Return the content of a file.

    Raises:
        OSError: the file does not exist or can't be read.
        StateError: the file is not a checkpoint, has another version, or is truncated or damaged.
    """
    file = open_input(path)
    try:
        content, header_length = _checked(file, path)
    finally:
        file.close()
    header = content[_FIXED.size : _FIXED.size + header_length]
    blobs = content[_FIXED.size + header_length : -_DIGEST_BYTES]
    try:
        document = json.loads(bytes(header))
        saved, library = float(document["saved"]) / 1000, str(document["library"])
        return Saved(from_json(document["state"], blob_getter(blobs)), saved, library, len(content))
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise _wrong(path, f"its digest is correct, but it does not contain a state: {error!r:.200}") from None
    except RecursionError:
        raise _wrong(path, "its digest is correct, but it is nested too deeply to be a state") from None


def _checked(file: InputFile, path: str) -> tuple[memoryview, int]:
    """Check the file; return all of its bytes and the length of the header."""
    start = _read(file, _FIXED.size)
    if not MAGIC.startswith(start[: len(MAGIC)]):
        raise _wrong(path, f"it begins with {start[: len(MAGIC)]!r}", is_state=False)
    if len(start) < _FIXED.size:
        raise _wrong(path, f"it is truncated after {len(start)} bytes, within the fixed header")
    _, version, zero, length, header_length = _FIXED.unpack(start)
    if version != VERSION:
        raise StateError(
            f"{path}: the checkpoint has format version {version}, but version {__version__} of this library reads "
            f"version {VERSION}; read it with the library that wrote it, or start from the beginning"
        )
    if zero or length < _FIXED.size + _DIGEST_BYTES or header_length > length - _FIXED.size - _DIGEST_BYTES:
        raise _wrong(path, "the lengths at its beginning are damaged")
    content = start + _read(file, length - len(start))
    if len(content) < length:
        raise _wrong(path, f"it is truncated after {len(content):,} of {length:,} bytes ({brief_bytes(length)})")
    if file.read(1):
        raise _wrong(path, f"it has more than its {length:,} bytes")
    whole = memoryview(content)
    if hashlib.blake2b(whole[:-_DIGEST_BYTES], digest_size=_DIGEST_BYTES).digest() != whole[-_DIGEST_BYTES:]:
        raise _wrong(path, "it is damaged: its digest does not match its content")
    return whole, header_length


def _read(file: InputFile, count: int) -> bytes:
    """Read up to ``count`` bytes, in pieces, because ``count`` is declared by the file and may be wrong."""
    pieces = []
    while count and (piece := file.read(min(count, PIECE_BYTES))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _wrong(path: str, what: str, *, is_state: bool = True) -> StateError:
    kind = "the checkpoint is invalid" if is_state else "this is not a checkpoint written by checkpoint.save()"
    return StateError(f"{path}: {kind}: {what}; {_REMEDY if is_state else 'check the path'}")

r"""The file of a state: a small binary container, read without believing any number in it before it is checked.

    offset  bytes
    0       8       b"\x93DSTATE\n"; the first byte is no text, and the last shows whether somebody changed line ends
    8       4       version of the container, 1; all numbers are little-endian and unsigned
    12      4       0
    16      8       length of the whole file
    24      8       length of the header
    32      ...     header: JSON in ASCII: {"saved": ms since 1970, "library": version, "state": ...}
    ...     ...     the bytes of all bytes and arrays, one behind another
    -32     32      BLAKE2b over all before it

The state in the header is as plan/plain.py has it, but that the bytes of a value are behind the header, and their
[offset, length] there stands for them.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
from typing import Any, NamedTuple

from dataset.errors import StateError
from dataset.io.files.opening import InputFile, open_input
from dataset.plan.brief import brief_bytes
from dataset.plan.plain import from_json, to_json
from dataset.version import __version__

__all__ = ["Saved", "pack", "read"]

MAGIC = b"\x93DSTATE\n"
VERSION = 1

_FIXED = struct.Struct("<8sIIQQ")
_DIGEST_BYTES = 32
_PIECE_BYTES = 1 << 20  # read at once: memory grows with what is there, whatever length the file declares
_REMEDY = "take another copy of it, or begin anew"


class Saved(NamedTuple):
    """What a file of a state holds.

    Attributes:
        state: what ``state_dict`` gave.
        saved: when, in seconds since 1970.
        library: the version of the library that wrote it.
        nbytes: of the file.
    """

    state: Any
    saved: float
    library: str
    nbytes: int


def pack(state: Any) -> list[bytes]:
    """The content of a file, in pieces.

    Raises:
        StateError: if something in ``state`` is no plain data.
    """
    blobs: list[bytes] = []
    offset = 0

    def put(content: bytes) -> list[int]:
        nonlocal offset
        place = [offset, len(content)]
        blobs.append(content)
        offset += len(content)
        return place

    try:
        document = {"saved": round(1000 * time.time()), "library": __version__, "state": to_json(state, put)}
        header = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    except TypeError as error:
        raise StateError(str(error)) from None
    except RecursionError:
        raise StateError("the state is nested too deeply to be one that an iterator gave") from None
    length = _FIXED.size + len(header) + offset + _DIGEST_BYTES
    pieces = [_FIXED.pack(MAGIC, VERSION, 0, length, len(header)), header, *blobs]
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for piece in pieces:
        digest.update(piece)
    return [*pieces, digest.digest()]


def read(path: str) -> Saved:
    """What a file holds.

    Raises:
        OSError: if there is no such file, for example.
        StateError: if it is no file of a state, of another version, cut short or damaged.
    """
    file = open_input(path)
    try:
        content, header_length = _checked(file, path)
    finally:
        file.close()
    header = content[_FIXED.size : _FIXED.size + header_length]
    blobs = content[_FIXED.size + header_length : -_DIGEST_BYTES]

    def get(place: Any) -> bytes:
        if type(place) is not list or [type(part) for part in place] != [int, int]:
            raise ValueError(f"no place of bytes: {place!r:.100}")
        start, length = place
        if start < 0 or length < 0 or start + length > len(blobs):
            raise ValueError(f"bytes {start} to {start + length} of {len(blobs)}")
        return bytes(blobs[start : start + length])

    try:
        document = json.loads(bytes(header))
        saved, library = float(document["saved"]) / 1000, str(document["library"])
        return Saved(from_json(document["state"], get), saved, library, len(content))
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise _wrong(path, f"its digest is right, but it is no state: {error!r:.200}") from None
    except RecursionError:
        raise _wrong(path, "its digest is right, but it is nested too deeply to be a state") from None


def _checked(file: InputFile, path: str) -> tuple[memoryview, int]:
    """All bytes of the file, which are what was written, and how many the header has."""
    start = _read(file, _FIXED.size)
    if not MAGIC.startswith(start[: len(MAGIC)]):
        raise _wrong(path, f"it begins with {start[: len(MAGIC)]!r}", is_state=False)
    if len(start) < _FIXED.size:
        raise _wrong(path, f"it is cut short after {len(start)} bytes, before it says how many it should have")
    _, version, zero, length, header_length = _FIXED.unpack(start)
    if version != VERSION:
        raise StateError(
            f"{path}: a file of a state in version {version} of the format; this library, {__version__}, reads version "
            f"{VERSION}: read it with the library that wrote it, or begin anew"
        )
    if zero or length < _FIXED.size + _DIGEST_BYTES or header_length > length - _FIXED.size - _DIGEST_BYTES:
        raise _wrong(path, "the lengths at its beginning are damaged")
    content = start + _read(file, length - len(start))
    if len(content) < length:
        raise _wrong(path, f"it is cut short after {len(content):,} of {length:,} bytes ({brief_bytes(length)})")
    if file.read(1):
        raise _wrong(path, f"it goes on behind its {length:,} bytes")
    whole = memoryview(content)
    if hashlib.blake2b(whole[:-_DIGEST_BYTES], digest_size=_DIGEST_BYTES).digest() != whole[-_DIGEST_BYTES:]:
        raise _wrong(path, "it is damaged: its bytes do not fit its digest")
    return whole, header_length


def _read(file: InputFile, count: int) -> bytes:
    """The next bytes, fewer at the end; in pieces, because the count is what the file declares."""
    pieces = []
    while count and (piece := file.read(min(count, _PIECE_BYTES))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _wrong(path: str, what: str, *, is_state: bool = True) -> StateError:
    kind = (
        "the file of a state is no good" if is_state else "this is no file of a state, as checkpoint.save() writes it"
    )
    return StateError(f"{path}: {kind}: {what}; {_REMEDY if is_state else 'is it the right path?'}")

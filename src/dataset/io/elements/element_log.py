"""Element log: an append-only file of what was taken from a queue, from which it can be read again.

A log is a TFRecord file. Its first record is JSON: ``format``, ``version`` and a random ``id``, by which a saved state
recognizes its log. Each other record holds the elements, and exceptions in their places, that were taken together: a
length (4 bytes, little-endian), that many bytes of JSON in the form of plan/plain.py, and the bytes of its arrays.

A record is handed to the operating system before its elements are returned. So a log survives the death of its process.
It is not synced to the disk: after a power failure, the last records may be missing. A record that is incomplete at the
end was being written when its process died, and none of its elements was returned: the next writer cuts it off. Any
other damage is an error.

One iterator at a time appends, and it holds a lock on the file. The content is not trusted: a record is read only if
the file contains all of its declared bytes, and nothing in it is executed.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from dataset.closing import Closing
from dataset.errors import DataLossError, StateError
from dataset.io.files.locks import NO_FOLLOW, hold
from dataset.io.files.opening import local_folder
from dataset.io.tfrecord.frames import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    frame_bytes,
    frame_damage,
    framed_all,
    length_damage,
)
from dataset.plan.plain import Blobs, blob_getter, from_json, to_json

_FORMAT = "dataset element log"
_VERSION = 1
_length = struct.Struct("<I")

Load: TypeAlias = Callable[[Any], list[Any]]
"""Makes elements, and exceptions in their places, of plain data."""


def log_opener(op: str, path: Any) -> Callable[[Load], ElementLog]:
    """Return a function that opens the log at a local path.

    Raises:
        ValueError: the path has a scheme.
        TypeError: ``path`` is not a path.
    """
    return partial(ElementLog, local_folder(op, path, "file"))


class ElementLog(Closing):
    """An open element log with a position, at first that of its beginning.

    Args:
        path: a local path. The file is created if it does not exist.
        load: makes outcomes of plain data.

    Raises:
        OSError: the file cannot be opened, or is a link.
        DataLossError: while reading: the file is not a log, or is damaged.
    """

    def __init__(self, path: str, load: Load) -> None:
        self.path = path
        self._load = load
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        self._offset = self._number = 0  # of the next record
        self._id = ""
        self._is_locked = False

    def place(self) -> dict[str, Any]:
        """Return the position as plain data."""
        self._begin()
        return {"id": self._id, "offset": self._offset, "number": self._number}

    def go_to(self, place: dict[str, Any]) -> None:
        """Continue at a position that ``place`` returned, also in another process.

        Raises:
            StateError: the position is that of another log, or after the end of this one.
        """
        offset, number = int(place["offset"]), int(place["number"])
        if not offset:
            return  # the log was empty
        size = self._size()
        if not self._begin() or self._id != place["id"]:
            raise StateError(f"{self.path!r} is not the log that the state was saved with; pass the same file")
        if not 0 < offset <= size:
            raise StateError(
                f"the state is from byte {offset:,} of the log {self.path!r}, which has only {size:,}: it was "
                "truncated, or not written to the disk before a power failure; use an older state"
            )
        self._offset, self._number = offset, number

    def read(self) -> list[Any] | None:
        """Return the outcomes of the next record; None at the end, from where on ``append`` may be called.

        Raises:
            BlockingIOError: at the end, another iterator appends to the log.
        """
        while not self._begin() or (record := self._next()) is None:
            if self._is_locked:
                self._file.truncate(self._offset)
                if self._offset:
                    return None
                self._write_header()
            if not hold(self._file.fileno(), self.path, unsupported=True):
                raise BlockingIOError(
                    f"the log {self.path!r} belongs to another iterator, which takes the elements of the queue; close "
                    "that one first"
                )
            self._is_locked = True  # the file may have grown before
        try:
            return self._decoded(record)
        except Exception as error:
            raise self._damage(f"a record cannot be read: {error!r:.200}", len(record)) from error

    def _decoded(self, record: bytes) -> list[Any]:
        (length,) = _length.unpack_from(record)
        blobs = memoryview(record)[_length.size + length :]
        plain = from_json(json.loads(record[_length.size : _length.size + length]), blob_getter(blobs))
        outcomes = self._load(plain)
        if not outcomes:
            raise ValueError("it holds no elements")
        return outcomes

    def append(self, outcomes: Any) -> None:
        """Write a record of outcomes, as plain data, at the end, and move after it.

        Raises:
            OSError: the disk is full, for example. The file is then as it was before.
            StateError: the outcomes are not plain data.
        """
        self._write(_encoded(outcomes))

    def _write_header(self) -> None:
        header = {"format": _FORMAT, "version": _VERSION, "id": secrets.token_hex(8)}
        self._write(json.dumps(header).encode())
        self._offset = self._number = 0  # it is read like any other

    def _write(self, record: bytes) -> None:
        frame = memoryview(framed_all([record]))
        try:
            self._file.seek(self._offset)
            left = frame
            while left:
                left = left[self._file.write(left) :]
        except BaseException:
            self._file.truncate(self._offset)
            raise
        self._offset += len(frame)
        self._number += 1

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _begin(self) -> bool:
        """Read the header unless it was read; return False if the file ends before it or within it."""
        if not self._offset and (header := self._next()) is not None:
            self._id = self._checked_id(header)
        return bool(self._offset)

    def _next(self) -> bytes | None:
        """Return the next record; None if the file ends before it or within it."""
        left = self._size() - self._offset
        self._file.seek(self._offset)
        head = self._file.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            return None
        if words := length_damage(head, 0):
            raise self._damage(words)
        size = frame_bytes(head, 0)
        if size > left:
            return None
        frame = head + self._file.read(size - HEADER_BYTES)
        if words := frame_damage(frame, 0, size):
            raise self._damage(words)
        self._offset += size
        self._number += 1
        return frame[HEADER_BYTES:-FOOTER_BYTES]

    def _checked_id(self, record: bytes) -> str:
        try:
            header = json.loads(record)
            if header["format"] == _FORMAT and header["version"] == _VERSION:
                return str(header["id"])
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        raise self._damage(f"this is not an element log of version {_VERSION}: it begins with {record!r:.100}")

    def _damage(self, words: str, record: int | None = None) -> DataLossError:
        """Return the error for the next record, or for the last one, of ``record`` bytes."""
        before = 0 if record is None else record + FRAME_BYTES
        return DataLossError(
            words, path=self.path, offset=self._offset - before, record=self._number - (record is not None)
        )

    def close(self) -> None:
        """Close the file, which releases the lock. A second call does nothing."""
        self._file.close()


def _encoded(outcomes: Any) -> bytes:
    blobs = Blobs()
    head = json.dumps(to_json(outcomes, blobs.put), separators=(",", ":")).encode()
    return b"".join([_length.pack(len(head)), head, *blobs.pieces])

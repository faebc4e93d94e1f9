"""Writes records to several TFRecord files that belong together, the shards, which appear all at the end or not at all.

Here are the names of shards, which record goes to which, and what becomes of all files when one can't be written. A
single file is writer.py's.
"""

from __future__ import annotations

import errno
import operator
import os
import string
from collections.abc import Iterator, Sequence

from dataset.io.files.opening import path_string
from dataset.io.tfrecord.writer import RecordFile, RecordWriter, TFRecordOptions, complete, writer_options

__all__ = ["ShardedTFRecordWriter"]

FIELDS = ("shard", "num_shards")


class ShardedTFRecordWriter(RecordWriter):
    """Writes records to ``num_shards`` TFRecord files in turn: record ``i`` goes to shard ``i % num_shards``.

    So shards differ by one record at most, whatever their number turns out to be, and the same records give the same
    files. All shards lie under temporary names until ``close`` has written the last byte of the last of them through to
    the disk; then they get their names, one right after the other. Leaving a ``with`` block by an exception and a write
    that fails remove them all, and files that had these names before stay as they were. A writer that is never closed
    is closed as a ``TFRecordWriter`` is.

    No system renames several files at once. So shard 0 is taken away before the other shards get their names, and gets
    its own last: should the process be killed in this moment, or the system refuse a name, shard 0 is missing. Old and
    new shards are never mixed in a set that looks complete.

    Each shard is an open file until the end.

    Args:
        path_pattern: the names of the files, with the fields ``{shard}``, from 0, and ``{num_shards}`` in the words of
            ``str.format``, such as ``"train-{shard:05d}-of-{num_shards:05d}.tfrecord"``. A brace is written twice.
        num_shards: how many files; at least 1.
        options: ``TFRecordOptions``, or just a compression type such as ``"GZIP"``.

    Attributes:
        paths: the names of the shards.

    Raises:
        OSError: nothing can be written there, or the system allows too few open files; the message says what to do.
        TypeError: an argument has the wrong type.
        ValueError: the pattern has other fields or gives two shards one name, or an option is wrong.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with ShardedTFRecordWriter(os.path.join(folder, "{shard}-of-{num_shards}.tfrecord"), 2) as writer:
    ...         for record in (b"one", b"two", b"three"):
    ...             writer.write(record)
    ...     sorted(os.listdir(folder))
    ['0-of-2.tfrecord', '1-of-2.tfrecord']
    """

    def __init__(
        self,
        path_pattern: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        num_shards: int = 1,
        options: TFRecordOptions | str | None = None,
    ) -> None:
        options = writer_options("ShardedTFRecordWriter", options)
        self.paths: list[str] = []
        self._files: list[RecordFile] = []
        self._next = 0  # the shard that the next record goes to
        self._closed = False
        folders: set[str] = set()
        try:
            for path in _shard_paths(path_string(path_pattern), operator.index(num_shards)):
                folder = os.path.dirname(path)  # noqa: PTH120  # it may have a scheme
                self._files.append(RecordFile(path, options, remove_abandoned=folder not in folders))
                folders.add(folder)
                self.paths.append(path)
        except BaseException as error:
            self.discard()
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                raise _too_many(error, num_shards, len(self.paths)) from error
            raise
        self._close_at_the_end(self._files)

    def write(self, record: bytes | bytearray | memoryview) -> None:
        """Append one record to the next shard.

        Raises:
            TypeError: it is not bytes.
            ValueError: the writer was closed.
            OSError: the disk is full, for example; all shards are discarded.
        """
        self.write_all([bytes(record) if isinstance(record, (bytearray, memoryview)) else record])

    def write_all(self, records: Sequence[bytes]) -> None:
        """Append many records, each to the next shard, in less time than one by one.

        Raises:
            TypeError: one is not bytes; all shards are discarded.
            ValueError: the writer was closed.
            OSError: the disk is full, for example; all shards are discarded.
        """
        if self._closed:
            raise ValueError(f"ShardedTFRecordWriter: the writer of {self.paths[0]} is closed")
        count = len(self._files)
        try:
            for index in range(min(count, len(records))):
                self._files[(self._next + index) % count].put_all(records[index::count])
        except BaseException:
            self.discard()  # some of the records are written, and nobody knows which
            raise
        self._next = (self._next + len(records)) % count

    def close(self) -> None:
        """Finish all shards and give them their names. A second time, and after a failure, it does nothing."""
        if self._closed:
            return
        try:
            complete(self._files)
        except BaseException:
            self.discard()
            raise
        self._closed = True

    def discard(self) -> None:
        """Remove what was written. After ``close`` it does nothing."""
        self._closed = True
        for file in self._files:
            file.target.discard()


def _shard_paths(pattern: str, num_shards: int) -> Iterator[str]:
    """The names of the shards, made as they are asked for, since there may be too many to open."""
    if num_shards < 1:
        raise ValueError(f"num_shards must be at least 1, got {num_shards}")
    fields = _fields(pattern)
    if num_shards > 1 and "shard" not in fields:
        raise ValueError(
            f"the file name {pattern!r} needs a field {{shard}} to name {num_shards} shards, as in "
            '"train-{shard:05d}-of-{num_shards:05d}.tfrecord"'
        )
    seen: set[str] = set()
    for shard in range(num_shards):
        path = _formatted(pattern, shard, num_shards)
        if path in seen:
            raise ValueError(f"the file name {pattern!r} gives two shards the name {path!r}; use a plain {{shard}}")
        seen.add(path)
        yield path


def _fields(pattern: str) -> set[str]:
    try:
        fields = {field for _, field, _, _ in string.Formatter().parse(pattern) if field is not None}
    except ValueError as error:  # an odd brace
        raise ValueError(
            f"the file name {pattern!r} is no pattern: {error}; a brace in a name is written twice"
        ) from None
    for field in sorted(fields - set(FIELDS)):
        raise ValueError(
            f"the file name {pattern!r} has the field {{{field}}}; the fields are {{shard}} and {{num_shards}}, and a "
            "brace in a name is written twice"
        )
    return fields


def _formatted(pattern: str, shard: int, num_shards: int) -> str:
    try:
        return pattern.format(shard=shard, num_shards=num_shards)
    except (ValueError, LookupError) as error:  # such as {shard:x5}, or a field inside of a field
        raise ValueError(
            f"the file name {pattern!r} can't be formatted: {error}; write {{shard:05d}} for five digits"
        ) from None


def _too_many(error: OSError, num_shards: int, opened: int) -> OSError:
    return OSError(
        error.errno,
        f"cannot write {num_shards} shards at once: each is an open file until the end, and after {opened} of them the "
        "system allows no more; use fewer shards, or raise the limit (ulimit -n)",
    )

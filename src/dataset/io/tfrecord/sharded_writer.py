"""Writer of a set of TFRecord files, the shards; all of them appear at the end, or none.

This module names the shards, distributes the records, and handles failures of single files. writer.py writes one file.
"""

from __future__ import annotations

import errno
import operator
import os
import string
from collections.abc import Iterator, Sequence

from dataset.io.files.opening import path_string
from dataset.io.tfrecord.writer import RecordFile, RecordWriter, TFRecordOptions, complete, writer_options

FIELDS = ("shard", "num_shards")


class ShardedTFRecordWriter(RecordWriter):
    """Writer of ``num_shards`` TFRecord files in turn: record ``i`` goes to shard ``i % num_shards``.

    So the sizes of the shards differ by at most one record, whatever the number of records, and the same records
    produce the same files. All shards have temporary names until ``close`` has flushed all of them to the disk. Then
    they are renamed one after the other. If an exception leaves the ``with`` block, or a write fails, all of them are
    removed, and existing files of these names are unchanged. A writer that is never closed is closed like a
    ``TFRecordWriter``.

    No system renames several files atomically. So an existing shard 0 is moved away before the other shards are
    renamed, and the new shard 0 is renamed last. If the process is killed in between, or renaming fails, shard 0 is
    missing. A set of shards that looks complete never mixes old and new shards.

    Each shard is an open file until the end.

    Args:
        path_pattern: the names of the files, a ``str.format`` pattern with the fields ``{shard}``, from 0, and
            ``{num_shards}``, such as ``"train-{shard:05d}-of-{num_shards:05d}.tfrecord"``. Double a literal brace.
        num_shards: the number of files; at least 1.
        options: ``TFRecordOptions``, or a compression type such as ``"GZIP"``.

    Attributes:
        paths: the names of the shards.

    Raises:
        OSError: the files can't be written, or the system allows too few open files; the message says what to do.
        TypeError: an argument has the wrong type.
        ValueError: the pattern has other fields or gives two shards the same name, or an option is wrong.

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
            TypeError: the record is not bytes.
            ValueError: the writer was closed.
            OSError: the disk is full, for example; all shards are discarded.
        """
        self.write_all([bytes(record) if isinstance(record, (bytearray, memoryview)) else record])

    def write_all(self, records: Sequence[bytes]) -> None:
        """Append many records, each to the next shard; faster than one by one.

        Raises:
            TypeError: a record is not bytes; all shards are discarded.
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
            self.discard()  # an unknown part of the records was written
            raise
        self._next = (self._next + len(records)) % count

    def close(self) -> None:
        """Finish all shards and give them their names. Does nothing on a second call or after a failure."""
        if self._closed:
            return
        try:
            complete(self._files)
        except BaseException:
            self.discard()
            raise
        self._closed = True

    def discard(self) -> None:
        """Remove all shards. Does nothing after ``close``."""
        self._closed = True
        for file in self._files:
            file.target.discard()


def _shard_paths(pattern: str, num_shards: int) -> Iterator[str]:
    """Generate the names of the shards lazily: there may be too many to open."""
    if num_shards < 1:
        raise ValueError(f"num_shards must be at least 1, got {num_shards}")
    fields = _fields(pattern)
    if num_shards > 1 and "shard" not in fields:
        raise ValueError(
            f"the file name {pattern!r} needs a field {{shard}} to name {num_shards} shards, such as "
            '"train-{shard:05d}-of-{num_shards:05d}.tfrecord"'
        )
    seen: set[str] = set()
    for shard in range(num_shards):
        path = _formatted(pattern, shard, num_shards)
        if path in seen:
            raise ValueError(
                f"the file name {pattern!r} gives two shards the same name {path!r}; use {{shard}} without a format"
            )
        seen.add(path)
        yield path


def _fields(pattern: str) -> set[str]:
    try:
        fields = {field for _, field, _, _ in string.Formatter().parse(pattern) if field is not None}
    except ValueError as error:  # a single brace
        raise ValueError(f"the file name {pattern!r} is not a valid pattern: {error}; double a literal brace") from None
    for field in sorted(fields - set(FIELDS)):
        raise ValueError(
            f"the file name {pattern!r} has the unknown field {{{field}}}; the fields are {{shard}} and "
            "{num_shards}; double a literal brace"
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
        f"cannot write {num_shards} shards at once: each is an open file until the end, and the system allowed only "
        f"{opened} of them; use fewer shards, or raise the limit (ulimit -n)",
    )

"""The writer of TFRecord files, and its options.

Here a record is checked, framed and compressed on its way into a file that appears whole or not at all. The bytes of a
frame are frames.py's, what makes files appear whole is ``AtomicFile`` (io/files/atomic.py). Reading is not known here,
nor what is inside a record. Several files at once are sharded_writer.py's.
"""

from __future__ import annotations

import operator
import os
import sys
import warnings
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from dataset.io.files.atomic import AtomicFile, commit_together
from dataset.io.files.compression import compression_name, new_compressor
from dataset.io.tfrecord.frames import framed, framed_all
from dataset.plan.origin import Origin, caller
from dataset.redaction import redacted

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["RecordFile", "RecordWriter", "TFRecordOptions", "TFRecordWriter", "complete", "writer_options"]


@dataclass(frozen=True)
class TFRecordOptions:
    """How a TFRecord file is compressed.

    Args:
        compression_type: ``None`` or ``""``, ``"GZIP"`` or ``"ZLIB"``.
        compression_level: 0 (fastest) to 9 (smallest); ``None`` or -1 for zlib's default. Without compression it does
            nothing.

    Raises:
        ValueError: the type or the level is none of these.

    >>> TFRecordOptions("GZIP", compression_level=9)
    TFRecordOptions(compression_type='GZIP', compression_level=9)
    """

    compression_type: str | None = None
    compression_level: int | None = None

    def __post_init__(self) -> None:
        compression_name(self.compression_type)
        if self.compression_level is not None and not -1 <= operator.index(self.compression_level) <= 9:
            raise ValueError(f"compression_level must be None or -1 to 9, got {self.compression_level!r}")


def writer_options(owner: str, options: TFRecordOptions | str | None) -> TFRecordOptions:
    """What a writer was given as options; ``owner`` is the writer, for messages.

    Raises:
        TypeError: they are neither ``TFRecordOptions`` nor a string.
        ValueError: there is no such compression.
    """
    if options is None or isinstance(options, str):
        options = TFRecordOptions(options)
    if not isinstance(options, TFRecordOptions):
        raise TypeError(f"{owner}: options must be TFRecordOptions or a string, got {options!r:.100}")
    return options


class RecordFile:
    """A TFRecord file while it is written: frames and compresses records into an ``AtomicFile``.

    Args:
        path: the final name.
        options: of the compression.
        remove_abandoned: see AtomicFile.
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        options: TFRecordOptions,
        *,
        remove_abandoned: bool = True,
    ) -> None:
        self._compressor = new_compressor(compression_name(options.compression_type), options.compression_level)
        self._finished = False
        self.target = AtomicFile(path, remove_abandoned=remove_abandoned)

    def put(self, *pieces: bytes | bytearray | memoryview, flush_mode: int = zlib.Z_NO_FLUSH) -> None:
        """Append bytes. When that fails the file is discarded."""
        if self.target.closed or self._finished:
            state = "closed" if self.target.closed else "finished"
            raise ValueError(f"TFRecordWriter: the writer of {redacted(self.target.path)} is {state}")
        try:
            for piece in pieces:
                self.target.file.write(self._compressor.compress(piece))
            if flush_mode != zlib.Z_NO_FLUSH:
                self.target.file.write(self._compressor.flush(flush_mode))
                self.target.file.flush()
        except BaseException:
            # A frame may be written by half. Without this, a later close() would give the broken file its name.
            self.target.discard()
            raise

    def put_all(self, records: Sequence[bytes]) -> None:
        """Append records."""
        if set(map(type, records)) - {bytes}:
            for record in records:
                _require_bytes("write_all", record)
            records = list(map(bytes, records))
        self.put(framed_all(records))

    def finish(self) -> None:
        """Write all there is to write, without giving the file its name. A second time it does nothing."""
        if not self._finished:
            self.put(flush_mode=zlib.Z_FINISH)
            self._finished = True


def complete(files: Sequence[RecordFile]) -> None:
    """Finish files that belong together and give them their names; those that are closed are left out.

    Raises:
        OSError: the disk is full, for example; see ``commit_together``.
    """
    waiting = [file for file in files if not file.target.closed]
    try:
        for file in waiting:
            file.finish()
    except BaseException:
        for file in waiting:
            file.target.discard()
        raise
    commit_together([file.target for file in waiting])


class RecordWriter(ABC):
    """What appears as a whole or not at all: a ``with`` block closes it at its end, and discards it on an exception.

    A writer that is neither closed nor discarded is closed with a ``ResourceWarning`` when it is collected or when the
    interpreter exits.
    """

    def _close_at_the_end(self, files: Sequence[RecordFile]) -> None:
        """Remember what to complete if the user never closes the writer. Subclasses call this when they are open."""
        kind = type(self).__name__
        self._unclosed = weakref.finalize(
            self, _complete_unclosed, kind, files, caller(), os.getpid(), getattr(sys, "last_value", None)
        )

    @abstractmethod
    def close(self) -> None:
        """Finish what was written and give it its name. A second time, and after a failure, it does nothing."""

    @abstractmethod
    def discard(self) -> None:
        """Remove what was written. After ``close`` it does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def _complete_unclosed(
    kind: str, files: Sequence[RecordFile], opened: Origin, owner: int, last_error: BaseException | None
) -> None:
    """Complete the files of a writer that is collected, or alive at the exit, and was never closed.

    A forked child leaves the files to its parent. When the program ends by an exception the files are discarded, as at
    the end of a ``with`` block; an error at a prompt does not end the program.

    Args:
        kind: the writer's class.
        files: of the writer.
        opened: where.
        owner: the process that opened them.
        last_error: ``sys.last_value`` when they were opened.
    """
    waiting = [file for file in files if not file.target.closed]
    if not waiting or os.getpid() != owner:
        for file in waiting:
            file.target.discard()  # which only closes it
        return
    paths = waiting[0].target.path if len(waiting) == 1 else f"{waiting[0].target.path} and {len(waiting) - 1} more"
    words = f"{kind}: the writer of {paths}, opened at {opened}, was never closed"
    uncaught = getattr(sys, "last_value", None)
    if uncaught is not None and uncaught is not last_error and not hasattr(sys, "ps1"):
        for file in waiting:
            file.target.discard()
        words += f"; the program ended by {type(uncaught).__name__}, so its records were discarded"
    else:
        try:
            complete(waiting)
        except BaseException as error:
            error.add_note(f"{words}; its records are lost")
            raise
        words += "; its records were written to the file now"
    warnings.warn(f"{words}. Use a with block, or call close().", ResourceWarning, stacklevel=2)


class TFRecordWriter(RecordWriter):
    """Writes records to a TFRecord file, which appears under its name when ``close`` has succeeded.

    Until then the bytes lie under a hidden temporary name in the same directory. Leaving a ``with`` block by an
    exception, and a write that fails, remove them and leave nothing under the name, and so does a program that ends by
    an uncaught exception. A writer that is never closed is closed when it is collected or when the interpreter exits,
    with a ``ResourceWarning``. A process that is killed, or ends in ``os._exit``, leaves nothing under the name.

    Args:
        path: the file to write. One that exists is replaced at the end, and its permissions are kept. It may have a
            scheme, such as ``s3://``.
        options: ``TFRecordOptions``, or just a compression type such as ``"GZIP"``.

    Raises:
        OSError: nothing can be written there; the message says why and what to do.
        TypeError: the options are neither ``TFRecordOptions`` nor a string.
        ValueError: an option is wrong.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TFRecordWriter(os.path.join(folder, "a.tfrecord"), "GZIP") as writer:
    ...         writer.write(b"a record")
    ...     os.listdir(folder)
    ['a.tfrecord']
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        options: TFRecordOptions | str | None = None,
    ) -> None:
        self._file = RecordFile(path, writer_options("TFRecordWriter", options))
        self._close_at_the_end([self._file])

    def write(self, record: bytes | bytearray | memoryview) -> None:
        """Append one record.

        Args:
            record: its bytes.

        Raises:
            TypeError: it is not bytes.
            ValueError: the writer was closed.
            OSError: the disk is full, for example; the file is discarded.
        """
        _require_bytes("write", record)
        data = memoryview(record).cast("B") if isinstance(record, memoryview) else record
        self._file.put(*framed(data))

    def write_all(self, records: Sequence[bytes]) -> None:
        """Append many records, in less time than one by one.

        Args:
            records: the bytes of each.

        Raises:
            TypeError: one is not bytes; then none of them is written.
            ValueError: the writer was closed.
            OSError: the disk is full, for example; the file is discarded.
        """
        self._file.put_all(records)

    def flush(self) -> None:
        """Hand what was written to the operating system, still under the temporary name."""
        self._file.put(flush_mode=zlib.Z_SYNC_FLUSH)

    def finish(self) -> None:
        """Write all there is to write, without giving the file its name, which is left to ``close``.

        Nothing can be written after it. A second time it does nothing.

        Raises:
            ValueError: the file was discarded.
            OSError: the disk is full, for example; the file is discarded.
        """
        self._file.finish()

    def close(self) -> None:
        """Finish the file and give it its name. A second time, and after a failure, it does nothing."""
        complete([self._file])

    def discard(self) -> None:
        """Remove what was written. After ``close`` it does nothing."""
        self._file.target.discard()


def _require_bytes(method: str, record: object) -> None:
    if not isinstance(record, (bytes, bytearray, memoryview)):
        way_out = "call its SerializeToString()" if hasattr(record, "SerializeToString") else "encode it first"
        got = f"{type(record).__name__}: {record!r:.100}"
        raise TypeError(f"TFRecordWriter.{method}(): a record must be bytes, got {got}; {way_out}")

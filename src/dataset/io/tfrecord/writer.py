"""Writer of TFRecord files, and its options.

This module checks, frames and compresses records and writes them to an atomic file. frames.py defines the bytes of a
frame, ``AtomicFile`` (io/files/atomic.py) makes files appear atomically, and sharded_writer.py writes several files.
This module knows nothing about reading or about the contents of a record.
"""

from __future__ import annotations

import operator
import os
import sys
import warnings
import weakref
import zlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from dataset.closing import Closing
from dataset.io.files.atomic import AtomicFile, commit_together
from dataset.io.files.compression import compression_name, new_compressor
from dataset.io.tfrecord.frames import framed, framed_all
from dataset.plan.origin import Origin, caller
from dataset.redaction import redacted


@dataclass(frozen=True)
class TFRecordOptions:
    """Compression options of a TFRecord file.

    Args:
        compression_type: ``None`` or ``""``, ``"GZIP"``, ``"ZLIB"`` or ``"ZSTD"``.
        compression_level: 0 (fastest) to 9 (smallest); ``None`` or -1 for zlib's default. Ignored without compression.

    Raises:
        ValueError: the type or the level is invalid.

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
    """Return the options of a writer as ``TFRecordOptions``; ``owner`` is the writer's name, for messages.

    Raises:
        TypeError: the options are neither ``TFRecordOptions`` nor a string.
        ValueError: the compression type is unknown.
    """
    if options is None or isinstance(options, str):
        options = TFRecordOptions(options)
    if not isinstance(options, TFRecordOptions):
        raise TypeError(f"{owner}: options must be TFRecordOptions or a string, got {options!r:.100}")
    return options


class RecordFile:
    """TFRecord file that is being written: writes compressed frames to an ``AtomicFile``.

    Args:
        path: the final name.
        options: the compression options.
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
        """Append bytes. If that fails, the file is discarded."""
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
            # A frame may be partially written. Without this, a later close() would commit the broken file.
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
        """Write all remaining bytes without giving the file its name. May be called more than once."""
        if not self._finished:
            self.put(flush_mode=zlib.Z_FINISH)
            self._finished = True


def complete(files: Sequence[RecordFile]) -> None:
    """Finish and commit files that form a set; closed files are ignored.

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


class RecordWriter(Closing):
    """Base class of atomic writers: a ``with`` block closes the writer at its end, or discards it on an exception.

    A writer that is neither closed nor discarded is closed with a ``ResourceWarning`` when it is garbage collected or
    when the interpreter exits.
    """

    def _close_at_the_end(self, files: Sequence[RecordFile]) -> None:
        """Register the files to complete if the user never closes the writer. Subclasses call this once open."""
        kind = type(self).__name__
        self._unclosed = weakref.finalize(
            self, _complete_unclosed, kind, files, caller(), os.getpid(), getattr(sys, "last_value", None)
        )

    @abstractmethod
    def discard(self) -> None:
        """Remove the output. Does nothing after ``close``."""

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
    """Complete the files of a writer that was never closed, when it is garbage collected or the interpreter exits.

    A forked child leaves the files to its parent. If the program ends with an exception, the files are discarded, as in
    a ``with`` block; an error at an interactive prompt does not end the program.

    Args:
        kind: the name of the writer's class.
        files: the files of the writer.
        opened: where the writer was opened.
        owner: the ID of the process that opened it.
        last_error: ``sys.last_value`` when it was opened.
    """
    waiting = [file for file in files if not file.target.closed]
    if not waiting or os.getpid() != owner:
        for file in waiting:
            file.target.discard()  # in a forked child this only closes the file
        return
    paths = waiting[0].target.path if len(waiting) == 1 else f"{waiting[0].target.path} and {len(waiting) - 1} more"
    words = f"{kind}: the writer of {paths}, opened at {opened}, was never closed"
    uncaught = getattr(sys, "last_value", None)
    if uncaught is not None and uncaught is not last_error and not hasattr(sys, "ps1"):
        for file in waiting:
            file.target.discard()
        words += f"; the program ended with {type(uncaught).__name__}, so its records were discarded"
    else:
        try:
            complete(waiting)
        except BaseException as error:
            error.add_note(f"{words}; its records are lost")
            raise
        words += "; its records were written to the file"
    warnings.warn(f"{words}. Use a with block, or call close().", ResourceWarning, stacklevel=2)


class TFRecordWriter(RecordWriter):
    """Writer of a TFRecord file, which appears under its name only when ``close`` succeeds.

    Until then the bytes are in a file with a hidden temporary name in the same directory. This file is removed, and no
    file of the final name appears, if an exception leaves the ``with`` block, a write fails, or the program ends with
    an uncaught exception. A writer that is never closed is closed with a ``ResourceWarning`` when it is garbage
    collected or when the interpreter exits. If the process is killed or calls ``os._exit``, no file of that name
    appears.

    Args:
        path: the file to write, possibly with a scheme such as ``s3://``. An existing file is replaced at the end, and
            its permissions are kept.
        options: ``TFRecordOptions``, or a compression type such as ``"GZIP"``.

    Raises:
        OSError: the file can't be written; the message says why and what to do.
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
            TypeError: the record is not bytes.
            ValueError: the writer was closed.
            OSError: the disk is full, for example; the file is discarded.
        """
        _require_bytes("write", record)
        data = memoryview(record).cast("B") if isinstance(record, memoryview) else record
        self._file.put(*framed(data))

    def write_all(self, records: Sequence[bytes]) -> None:
        """Append many records; faster than one by one.

        Args:
            records: the bytes of each record.

        Raises:
            TypeError: a record is not bytes; then none of them is written.
            ValueError: the writer was closed.
            OSError: the disk is full, for example; the file is discarded.
        """
        self._file.put_all(records)

    def flush(self) -> None:
        """Pass all written bytes to the operating system; the file keeps its temporary name."""
        self._file.put(flush_mode=zlib.Z_SYNC_FLUSH)

    def finish(self) -> None:
        """Write all remaining bytes without giving the file its name; ``close`` does that.

        No record can be written afterwards. May be called more than once.

        Raises:
            ValueError: the file was discarded.
            OSError: the disk is full, for example; the file is discarded.
        """
        self._file.finish()

    def close(self) -> None:
        """Finish the file and give it its name. Does nothing on a second call or after a failure."""
        complete([self._file])

    def discard(self) -> None:
        """Remove the output. Does nothing after ``close``."""
        self._file.target.discard()


def _require_bytes(method: str, record: object) -> None:
    if not isinstance(record, (bytes, bytearray, memoryview)):
        way_out = "call its SerializeToString()" if hasattr(record, "SerializeToString") else "encode it first"
        got = f"{type(record).__name__}: {record!r:.100}"
        raise TypeError(f"TFRecordWriter.{method}(): a record must be bytes, got {got}; {way_out}")

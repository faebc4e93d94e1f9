"""Run writer: the directory, lock file and shard files of one run, and their removal.

Records are passed as bytes. A run is invisible to readers until ``finish`` has written the metadata. A run that is
discarded, garbage collected or unfinished at the interpreter's exit removes its directory. A run whose process died is
removed by the next writer.

The lock files list the runs that may be removed. The lock file of a run is created before its directory. It is removed
after the directory, or when the metadata names the run. The lock file of the previous run is created again before the
metadata names another run. So at whatever step a writer is killed, its leftovers are listed. Anything not listed is not
removed: a directory of a user, or a snapshot, may have a name like that of a run. Only shards are removed from the
directory of a run, and links are not followed.
"""

from __future__ import annotations

import contextlib
import io
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataset.io import libraries
from dataset.io.elements.locks import LockFile
from dataset.io.elements.metadata import (
    FILE_NAME,
    Metadata,
    ShardRecord,
    is_run,
    is_shard_name,
    new_run,
    run_path,
    shard_name,
)
from dataset.io.files.atomic import sync_directory
from dataset.io.files.compression import Compressor, new_compressor
from dataset.io.tfrecord.frames import framed

__all__ = ["RunGoneError", "RunWriter", "remove_dead_runs", "remove_leftovers"]

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_BY_DESCRIPTOR = os.unlink in os.supports_dir_fd and os.scandir in os.supports_fd
_OPEN_FILES_MAX = 64  # shard_func may use thousands of shards, and a process may open about a thousand files


@dataclass
class _ShardFile:
    number: int
    path: Path
    records: int = 0
    elements: int = 0
    crc: int = 0


@dataclass
class _Open:
    """Open file without a buffer: records are large, and closing it in a forked child must not write bytes twice."""

    file: io.FileIO
    compressor: Compressor

    def write(self, piece: bytes | bytearray | memoryview) -> None:
        self._put(self.compressor.compress(piece))

    def close(self) -> None:
        """End the compressed stream and close the file; another stream may be appended later."""
        try:
            self._put(self.compressor.flush())
            os.fsync(self.file.fileno())
        finally:
            self.file.close()

    def _put(self, content: bytes | bytearray | memoryview) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[self.file.write(rest) :]


class RunGoneError(Exception):
    """Internal: the run to continue does not exist any more."""


class RunWriter:
    """Writer of the shards of a new run, or of a run to continue.

    Args:
        path: the directory, which must exist.
        compression: a name from ``compression_name``.
        place: the result of ``place`` in an earlier process, to continue from there.

    Raises:
        OSError: the directory can't be written to.
        RunGoneError: the run to continue does not exist any more, or is in use.
    """

    def __init__(self, path: str, compression: str, place: dict[str, Any] | None = None) -> None:
        self.path = path
        self.compression = compression
        self.run = new_run() if place is None else str(place["run"])
        if not is_run(self.run):
            raise RunGoneError
        remove_dead_runs(path, but=self.run)
        before = None
        with contextlib.suppress(OSError, ValueError):  # damaged metadata is replaced
            before = _current_run(path)
        self._folder = run_path(path, self.run)
        if place is not None and (self._folder.is_symlink() or not self._folder.is_dir() or before == self.run):
            raise RunGoneError
        self._file_mode = _mode(Path(path) / FILE_NAME, 0o666)
        lock = LockFile.take(f"{self._folder}.lock")
        if lock is None:  # only a continued run can belong to another writer
            raise RunGoneError
        if place is None:
            try:
                self._folder.mkdir(0o777 if before is None else _mode(run_path(path, before), 0o777))
            except BaseException:
                lock.release()
                raise
        self._shards: dict[int, _ShardFile] = {}
        self._open: OrderedDict[int, _Open] = OrderedDict()  # least recently written first
        self._finalizer = weakref.finalize(self, _remove_run, self._folder, lock, self._open, os.getpid())
        self._lock = lock
        try:
            if place is not None:
                self._go_to(place)
        except (OSError, RunGoneError):
            self.discard()
            raise

    def place(self) -> dict[str, Any]:
        """Flush everything to the disk; return plain data from which a later writer can continue."""
        while self._open:
            self._open.popitem()[1].close()
        self._sync_folders()
        shards = [
            {
                "number": shard.number,
                "size": shard.path.stat().st_size,
                "records": shard.records,
                "elements": shard.elements,
                "crc": shard.crc,
            }
            for shard in self._shards.values()
        ]
        return {"run": self.run, "shards": shards}

    def _go_to(self, place: dict[str, Any]) -> None:
        """Truncate the files to ``place``."""
        for number, one in enumerate(place["shards"]):
            path = self._folder / shard_name(number)
            size = int(one["size"])
            try:
                descriptor = os.open(path, os.O_WRONLY | _NO_FOLLOW)
            except OSError:
                raise RunGoneError from None
            with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123  # Path.open does not accept descriptors
                if not 0 <= size <= os.fstat(descriptor).st_size:
                    raise RunGoneError
                file.truncate(size)
            key = int(one["number"])
            self._shards[key] = _ShardFile(key, path, int(one["records"]), int(one["elements"]), int(one["crc"]))
        known = {shard.path for shard in self._shards.values()}
        for path in self._folder.iterdir():
            if path not in known and is_shard_name(path.name):
                path.unlink()

    def leave(self) -> None:
        """Close the run, but keep its files for a later writer, which continues or removes it."""
        if self._finalizer.detach() is not None:
            while self._open:
                with contextlib.suppress(OSError):
                    self._open.popitem()[1].file.close()
            self._lock.release(keep=True)

    def next_record(self, number: int) -> list[str | int]:
        """Return the unique place of the next record of the shard ``number``: the run, the file, the record in it."""
        shard = self._shards.get(number)
        return [self.run, len(self._shards), 0] if shard is None else [self.run, int(shard.path.stem), shard.records]

    def write(self, number: int, record: bytes, elements: int) -> None:
        """Append a record to the shard ``number``. After a failure, call ``discard``."""
        shard = self._shards.get(number)
        if shard is None:
            shard = self._shards[number] = _ShardFile(number, self._folder / shard_name(len(self._shards)))
        out = self._opened(shard)
        for piece in framed(record):
            out.write(piece)
        shard.records += 1
        shard.crc = libraries.crc32c(record, shard.crc)
        shard.elements += elements

    def _opened(self, shard: _ShardFile) -> _Open:
        out = self._open.get(shard.number)
        if out is None:
            if len(self._open) == _OPEN_FILES_MAX:
                self._open.pop(next(iter(self._open))).close()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_FOLLOW | (0 if shard.records else os.O_EXCL)
            file = io.FileIO(os.open(shard.path, flags, self._file_mode), "ab")
            out = self._open[shard.number] = _Open(file, new_compressor(self.compression))
        self._open.move_to_end(shard.number)
        return out

    def finish(
        self, skeleton: Any, components: Any, about: dict[str, Any], *, may_replace: Callable[[], bool] = lambda: True
    ) -> Metadata | None:
        """Flush everything to the disk, and make the run the content of the directory.

        Args:
            skeleton: the skeleton of the elements' structure, see Metadata.
            components: their specs, see Metadata.
            about: plain data.
            may_replace: called at the last moment; if it returns False, the run is discarded and None is returned.

        Raises:
            OSError: writing failed; the run is discarded.
        """
        try:
            while self._open:
                self._open.popitem()[1].close()
            metadata = Metadata(self.run, skeleton, components, self.compression, self._in_order(), about)
            if not may_replace():
                self.discard()
                return None
            self._sync_folders()
            replaced, is_written = _listed(self.path), False
            try:
                metadata.write(self.path)
                is_written = True
            finally:
                if replaced is not None:
                    replaced.release(keep=is_written)
        except BaseException:
            self.discard()
            raise
        self._finalizer.detach()
        self._lock.release()
        remove_dead_runs(self.path)  # removes the replaced run
        return metadata

    def _sync_folders(self) -> None:
        sync_directory(str(self._folder))
        sync_directory(self.path)

    def _in_order(self) -> tuple[ShardRecord, ...]:
        """Return the shards by number; negative ones come last, as in tf.data, which treats the numbers as unsigned."""
        files = {number: file for file, number in enumerate(self._shards)}
        shards = [self._shards[number] for number in sorted(self._shards, key=lambda number: number % 2**64)]
        return tuple(ShardRecord(files[one.number], one.records, one.elements, one.crc) for one in shards)

    def discard(self) -> None:
        """Remove the run. Does nothing after ``finish`` or a previous call."""
        self._finalizer()


def _remove_run(folder: Path, lock: LockFile, files: dict[int, _Open], owner: int) -> None:
    """Close the files of a run and remove it; a forked child only closes its copies."""
    for out in files.values():
        with contextlib.suppress(OSError):
            out.file.close()
    files.clear()
    lock.release(keep=os.getpid() == owner and not (_is_named(folder) or _remove_shards(folder)))


def _is_named(folder: Path) -> bool:
    """Return whether the metadata names a run, which is possible if ``finish`` failed after writing the metadata."""
    with contextlib.suppress(OSError, ValueError):
        return _current_run(str(folder.parent)) == folder.name
    return False


def _listed(path: str) -> LockFile | None:
    """Create the lock file of the run that will be replaced, so that it is removed once the metadata names another."""
    try:
        run = _current_run(path)
        return None if run is None else LockFile.take(f"{run_path(path, run)}.lock")
    except (OSError, ValueError):
        return None


def remove_dead_runs(path: str, but: str = "") -> None:
    """Remove the leftovers of dead writers, and runs that were replaced; except the run ``but``."""
    for name in os.listdir(path):  # noqa: PTH208  # only names are needed
        run = name.removesuffix(".lock")
        if run in {name, but} or not is_run(run):
            continue
        with contextlib.suppress(OSError):  # not a lock file, or one of another user
            lock = LockFile.take(str(Path(path) / name), create=False)
            if lock is not None:  # otherwise its writer is alive
                lock.release(keep=not _is_settled(path, run, lock))


def remove_leftovers(path: str, *locks: str) -> None:
    """Remove the leftovers of a writer that was killed after writing the metadata; called by readers.

    Args:
        path: the directory; missing permissions are ignored.
        locks: names of other lock files in it.
    """
    with contextlib.suppress(OSError):
        remove_dead_runs(path)
        for name in locks:
            lock = LockFile.take(str(Path(path) / name), create=False)
            if lock is not None:
                lock.release(keep=not lock.was_marked)


def _is_settled(path: str, run: str, lock: LockFile) -> bool:
    """Remove what is left of a run, whose lock is held here; return whether nothing remains to be removed."""
    try:
        if _current_run(path) == run:
            return True
    except (OSError, ValueError):
        return False  # if the metadata cannot be read, nothing is removed
    folder = run_path(path, run)
    if not lock.was_marked and os.path.lexists(folder):
        return False  # no writer has marked the lock, so the directory was not created by a run
    return _remove_shards(folder)


def _remove_shards(folder: Path) -> bool:
    """Remove the directory of a run if it contains only shards; return whether it is gone."""
    descriptor = None
    try:
        if _BY_DESCRIPTOR:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW)
        elif folder.is_symlink():
            return False
        with os.scandir(folder if descriptor is None else descriptor) as found:
            entries = list(found)
        if not all(is_shard_name(entry.name) and entry.is_file(follow_symlinks=False) for entry in entries):
            return False
        for entry in entries:
            os.unlink(entry.path, dir_fd=descriptor)  # Path.unlink has no dir_fd
        folder.rmdir()
    except FileNotFoundError:
        return not os.path.lexists(folder)
    except OSError:
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def _current_run(path: str) -> str | None:
    """Return the run that the metadata names; None without metadata."""
    try:
        return Metadata.read(path).run
    except FileNotFoundError:
        return None


def _mode(path: Path, most: int) -> int:
    """Return the permissions of the file that is replaced; ``most`` if there is none."""
    try:
        return path.stat().st_mode & most
    except OSError:
        return most

"""Run writer: the directory, lock file and shard files of one run, and their removal.

Records are passed as bytes. A run is invisible to readers until ``publish`` has written the metadata. A run that is
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
import secrets
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dataset.amounts import OPEN_FILES_MAX
from dataset.io import libraries
from dataset.io.elements.metadata import (
    FILE_NAME,
    Metadata,
    ShardRecord,
    is_run,
    is_shard_name,
    run_path,
    shard_name,
)
from dataset.io.files.atomic import sync_directory
from dataset.io.files.compression import new_compressor
from dataset.io.files.locks import NO_FOLLOW, LockFile, check_digits
from dataset.io.tfrecord.frames import framed

_BY_DESCRIPTOR = os.unlink in os.supports_dir_fd and os.scandir in os.supports_fd


@dataclass
class _Shard:
    """Shard of a run: its number, the number of its file, and what was written to it."""

    number: int
    file: int
    records: int = 0
    elements: int = 0
    crc: int = 0


class RunGoneError(Exception):
    """Internal: the run to continue does not exist any more."""


class RunWriter:
    """Writer of the shards of a new run, or of a run to continue.

    Args:
        path: the directory, which must exist.
        compression: a name from ``compression_name``.
        place: the result of ``place`` in an earlier process, to continue from there.

    Attributes:
        run: the name of the run.
        others: the lock files of other writers in the directory when this one began.

    Raises:
        OSError: the directory can't be written to.
        RunGoneError: the run to continue does not exist any more, or is in use.
        KeyError, TypeError, ValueError: ``place`` is not a result of ``place``.
    """

    def __init__(self, path: str, compression: str, place: dict[str, Any] | None = None) -> None:
        self.path = path
        self.compression = compression
        self.run, self._lock = _new_run(path) if place is None else _run_to_continue(path, place["run"])
        self._folder = run_path(path, self.run)
        self._shards: dict[int, _Shard] = {}
        self._files: dict[int, io.FileIO] = {}  # without buffers: a forked child must not write bytes twice
        self._finalizer = weakref.finalize(self, _abandon, path, self.run, self._lock, self._files, os.getpid())
        try:
            self.others = _remove_dead_runs(path, but=self.run)
            before = None
            with contextlib.suppress(OSError, ValueError):  # damaged metadata is replaced
                before = _current_run(path)
            self._file_mode = _mode(Path(path) / FILE_NAME, 0o666)
            if place is None:
                self._folder.mkdir(0o777 if before is None else _mode(run_path(path, before), 0o777))
            elif before == self.run:
                raise RunGoneError  # noqa: TRY301
            else:
                self._go_to(place["shards"])
        except BaseException:
            self.discard()
            raise

    def place(self) -> dict[str, Any]:
        """Flush everything to the disk; return plain data from which a later writer can continue."""
        self._sync()
        shards = [{**asdict(one), "size": self._path(one).stat().st_size} for one in self._shards.values()]
        return {"run": self.run, "shards": shards}

    def _go_to(self, shards: list[dict[str, Any]]) -> None:
        """Truncate the files to ``place``."""
        for file, one in enumerate(shards):
            shard = _Shard(*(int(one[key]) for key in ("number", "file", "records", "elements", "crc")))
            try:
                descriptor = os.open(self._folder / shard_name(file), os.O_WRONLY | NO_FOLLOW)
            except OSError:
                raise RunGoneError from None
            with io.FileIO(descriptor, "wb") as opened:
                if shard.file != file or not 0 <= int(one["size"]) <= os.fstat(descriptor).st_size:
                    raise RunGoneError
                opened.truncate(int(one["size"]))
                os.fsync(descriptor)
            self._shards[shard.number] = shard
        known = set(map(self._path, self._shards.values()))
        for path in self._folder.iterdir():
            if path not in known and is_shard_name(path.name):
                path.unlink()

    def leave(self) -> None:
        """Close the run, but keep its files for a later writer, which continues or removes it."""
        if self._finalizer.detach() is not None:
            _close(self._files)
            self._lock.release(keep=True)

    def next_record(self, number: int) -> list[str | int]:
        """Return the unique place of the next record of the shard ``number``: the run, the file, the record in it."""
        shard = self._shards.get(number)
        return [self.run, len(self._shards), 0] if shard is None else [self.run, shard.file, shard.records]

    def write(self, number: int, record: bytes, elements: int) -> None:
        """Append a record to the shard ``number``, compressed as a stream. After a failure, call ``discard``."""
        shard = self._shards.setdefault(number, _Shard(number, len(self._shards)))
        file = self._opened(shard)
        compressor = new_compressor(self.compression)
        for content in [*map(compressor.compress, framed(record)), compressor.flush()]:
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
        shard.records += 1
        shard.elements += elements
        shard.crc = libraries.crc32c(record, shard.crc)

    def _opened(self, shard: _Shard) -> io.FileIO:
        file = self._files.get(shard.number)
        if file is None:
            if len(self._files) == OPEN_FILES_MAX:
                self._sync()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_FOLLOW | (0 if shard.records else os.O_EXCL)
            file = self._files[shard.number] = io.FileIO(os.open(self._path(shard), flags, self._file_mode), "ab")
        return file

    def _path(self, shard: _Shard) -> Path:
        return self._folder / shard_name(shard.file)

    def _sync(self) -> None:
        """Flush everything to the disk, and close the files."""
        while self._files:
            with self._files.popitem()[1] as file:
                os.fsync(file.fileno())
        sync_directory(str(self._folder))
        sync_directory(self.path)

    def publish(self, skeleton: Any, components: Any, about: dict[str, Any], *, replace: bool) -> None:
        """Flush everything to the disk, and make the run the content of the directory.

        Args:
            skeleton: the skeleton of the elements' structure, see Metadata.
            components: their specs, see Metadata.
            about: plain data.
            replace: whether to replace existing content; otherwise the run is discarded if there is any.

        Raises:
            OSError: writing failed; the run is discarded.
        """
        # Negative numbers come last, as in tf.data, which treats the numbers as unsigned.
        shards = [self._shards[number] for number in sorted(self._shards, key=lambda number: number % 2**64)]
        records = tuple(ShardRecord(one.file, one.records, one.elements, one.crc) for one in shards)
        metadata = Metadata(self.run, skeleton, components, self.compression, records, about)
        previous, lock = None, None
        try:
            self._sync()
            with contextlib.suppress(OSError, ValueError):
                previous = _current_run(self.path)
                lock = None if previous is None else LockFile(lock_path(self.path, previous), create=True)
            if replace or previous is None:
                metadata.write(self.path)
        finally:
            self.discard()  # keeps what the metadata names
            if previous is not None and lock is not None:
                lock.release(keep=not _is_settled(self.path, previous))

    def discard(self) -> None:
        """Remove the run, unless it was published. Does nothing on a second call."""
        self._finalizer()


def lock_path(path: str, run: str) -> Path:
    """Return the lock file of a run."""
    return Path(path) / f"{run}.{check_digits(run)}.lock"


def _new_run(path: str) -> tuple[str, LockFile]:
    while True:
        run = secrets.token_hex(8)
        with contextlib.suppress(BlockingIOError):  # another writer looked at the file before it was locked
            return run, LockFile(lock_path(path, run), create=True)


def _run_to_continue(path: str, run: Any) -> tuple[str, LockFile]:
    if not is_run(run) or run_path(path, run).is_symlink() or not run_path(path, run).is_dir():
        raise RunGoneError
    try:
        return run, LockFile(lock_path(path, run), create=True)
    except BlockingIOError:
        raise RunGoneError from None


def _abandon(path: str, run: str, lock: LockFile, files: dict[int, io.FileIO], owner: int) -> None:
    """Close the files of a run and remove what was not published; a forked child only closes its copies."""
    _close(files)
    lock.release(keep=os.getpid() == owner and not _is_settled(path, run))


def _close(files: dict[int, io.FileIO]) -> None:
    while files:
        with contextlib.suppress(OSError):
            files.popitem()[1].close()


def _remove_dead_runs(path: str, but: str = "") -> list[Path]:
    """Remove the leftovers of dead writers, and runs that were replaced; except the run ``but``.

    Returns:
        The lock files that other writers hold.
    """
    held = []
    for name in os.listdir(path):  # noqa: PTH208  # only names are needed
        run = name[:16]
        if run == but or not is_run(run) or Path(path) / name != lock_path(path, run):
            continue
        try:
            lock = LockFile(lock_path(path, run), create=False)
        except BlockingIOError:
            held.append(lock_path(path, run))
        except OSError:  # it was removed, is a link, or belongs to another user
            pass
        else:
            lock.release(keep=not _is_settled(path, run))
    return held


def remove_leftovers(path: str) -> None:
    """Remove the leftovers of a writer that was killed after writing the metadata, if permissions allow it."""
    with contextlib.suppress(OSError):
        _remove_dead_runs(path)


def _is_settled(path: str, run: str) -> bool:
    """Remove a run, whose lock is held here, unless it was published; return whether nothing remains to be removed."""
    try:
        return _current_run(path) == run or _remove_shards(run_path(path, run))
    except (OSError, ValueError):
        return False  # if the metadata cannot be read, nothing is removed


def _remove_shards(folder: Path) -> bool:
    """Remove the directory of a run if it contains only shards; return whether it is gone."""
    descriptor = None
    try:
        if _BY_DESCRIPTOR:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW)
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

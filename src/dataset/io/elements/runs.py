"""One run of writing a directory: its folder, its lock, its shards' files, and how all of that goes away again.

Records come in as bytes. Nobody sees a run before ``finish`` has written the metadata. One that is discarded, collected
or alive at the interpreter's exit removes its folder; one whose process died is removed by the next writer.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataset.io.compression import Compressor, new_compressor
from dataset.io.elements.locks import LockFile
from dataset.io.elements.metadata import Metadata, Shard, is_run, new_run, run_path, shard_name
from dataset.io.libraries import castagnoli
from dataset.io.tfrecord.frames import framed

__all__ = ["RunGoneError", "RunWriter"]

_OPEN_FILES_MAX = 64  # a function may tell thousands of shards apart, and a process may open about a thousand files


@dataclass
class _ShardFile:
    number: int
    path: Path
    records: int = 0
    elements: int = 0
    crc: int = 0


@dataclass
class _Open:
    """An open file, without a buffer: records are large, and what a forked child closes must not be written twice."""

    file: io.FileIO
    compressor: Compressor

    def write(self, piece: bytes | bytearray | memoryview) -> None:
        self._put(self.compressor.compress(piece))

    def close(self) -> None:
        """End the compressed stream; another may follow behind it."""
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
    """Internal: there is nothing to go on with."""


class RunWriter:
    """Writes the shards of a new run, or goes on with one.

    Args:
        path: the directory, which exists.
        compression: a name from ``compression_name``.
        place: what ``place`` returned in a process that has ended since, to go on from there.

    Raises:
        OSError: if nothing can be written there.
        RunGoneError: if the run to go on with is not there any more, or not alone.
    """

    def __init__(self, path: str, compression: str, place: dict[str, Any] | None = None) -> None:
        self.path = path
        self.compression = compression
        self.run = new_run() if place is None else str(place["run"])
        remove_dead_runs(path, but=self.run)
        self._folder = run_path(path, self.run)
        if place is not None and (not is_run(self.run) or not self._folder.is_dir() or _holds(path, self.run)):
            raise RunGoneError
        lock = LockFile.take(f"{self._folder}.lock")
        if lock is None:  # only a run that is gone on with can be somebody else's
            raise RunGoneError
        self._shards: dict[int, _ShardFile] = {}
        self._open: OrderedDict[int, _Open] = OrderedDict()  # the one written to last at the end
        self._finalizer = weakref.finalize(self, _remove_run, self._folder, lock, self._open, os.getpid())
        self._lock = lock
        try:
            if place is None:
                self._folder.mkdir()
            else:
                self._go_to(place)
        except (OSError, RunGoneError):
            self.discard()
            raise

    def place(self) -> dict[str, Any]:
        """Write everything through to the disk; returns plain data, to go on from here later."""
        while self._open:
            self._open.popitem()[1].close()
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
        """Cut off what was written after ``place``."""
        for number, one in enumerate(place["shards"]):
            path = self._folder / shard_name(number)
            size = int(one["size"])
            if not path.is_file() or path.stat().st_size < size:
                raise RunGoneError
            os.truncate(path, size)
            key = int(one["number"])
            self._shards[key] = _ShardFile(key, path, int(one["records"]), int(one["elements"]), int(one["crc"]))
        known = {shard.path for shard in self._shards.values()}
        for path in self._folder.iterdir():
            if path not in known:
                path.unlink()

    def leave(self) -> None:
        """Let go of the run, and leave its files for somebody to go on with."""
        if self._finalizer.detach() is not None:
            while self._open:
                with contextlib.suppress(OSError):
                    self._open.popitem()[1].file.close()
            self._lock.release()

    def write(self, number: int, record: bytes, elements: int) -> None:
        """Append a record to the shard ``number``. A failure leaves it unusable; then ``discard``."""
        shard = self._shards.get(number)
        if shard is None:
            shard = self._shards[number] = _ShardFile(number, self._folder / shard_name(len(self._shards)))
        out = self._opened(shard)
        for piece in framed(record):
            out.write(piece)
        shard.records += 1
        shard.crc = castagnoli.crc32c(record, shard.crc)
        shard.elements += elements

    def _opened(self, shard: _ShardFile) -> _Open:
        out = self._open.get(shard.number)
        if out is None:
            if len(self._open) == _OPEN_FILES_MAX:
                self._open.pop(next(iter(self._open))).close()
            file = shard.path.open("ab", buffering=0)
            out = self._open[shard.number] = _Open(file, new_compressor(self.compression))
        self._open.move_to_end(shard.number)
        return out

    def finish(
        self, skeleton: Any, components: Any, about: dict[str, Any], *, may_replace: Callable[[], bool] = lambda: True
    ) -> Metadata | None:
        """Write everything through to the disk, and make it what the directory holds.

        Args:
            skeleton: of the elements' structure, see Metadata.
            components: their specs, see Metadata.
            about: plain data.
            may_replace: asked at the last moment; if it says no the run is discarded, and None returned.

        Raises:
            OSError: if that fails; the run is discarded.
        """
        try:
            while self._open:
                self._open.popitem()[1].close()
            metadata = Metadata(self.run, skeleton, components, self.compression, self._in_order(), about)
            if not may_replace():
                self.discard()
                return None
            metadata.write(self.path)
        except BaseException:
            self.discard()
            raise
        self._finalizer.detach()
        self._lock.release()
        remove_dead_runs(self.path)  # that which was replaced
        return metadata

    def _in_order(self) -> tuple[Shard, ...]:
        """By number; negative ones behind all others, as in tf.data, which takes the numbers for unsigned."""
        files = {number: file for file, number in enumerate(self._shards)}
        shards = [self._shards[number] for number in sorted(self._shards, key=lambda number: number % 2**64)]
        return tuple(Shard(files[one.number], one.records, one.elements, one.crc) for one in shards)

    def discard(self) -> None:
        """Remove what was written. After ``finish``, or a second time, it does nothing."""
        self._finalizer()


def _remove_run(folder: Path, lock: LockFile, files: dict[int, _Open], owner: int) -> None:
    """A forked child closes its copies only."""
    for out in files.values():
        with contextlib.suppress(OSError):
            out.file.close()
    files.clear()
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
    lock.release()


def remove_dead_runs(path: str, but: str = "") -> None:
    """Remove what writers that died have left behind, and runs that were replaced; but not the run ``but``."""
    for name in os.listdir(path):  # noqa: PTH208  # names are what is wanted
        run = name.removesuffix(".lock")
        if not is_run(run) or run == but or _holds(path, run):
            continue
        lock = LockFile.take(str(Path(path) / f"{run}.lock"))
        if lock is None:
            continue  # somebody is writing it
        if not _holds(path, run):  # asked again, now that no writer can be finishing it
            shutil.rmtree(run_path(path, run), ignore_errors=True)
        lock.release()


def _holds(path: str, run: str) -> bool:
    """Whether the metadata names this run. Where it cannot be read nothing is removed."""
    try:
        return Metadata.read(path).run == run
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True

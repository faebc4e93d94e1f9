"""Caching: methods that keep elements, in memory or in files, and ``load``, which reads such files."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from dataset import deferred
from dataset.api.base import DatasetMethods, T_co
from dataset.options import AUTOTUNE
from dataset.plan.node import Node

if TYPE_CHECKING:
    from dataset.dataset import Dataset  # at run time, dataset.py sets it
    from dataset.runtime.iteration.chunk_scan import ChunkScan


class CachingMethods(DatasetMethods[T_co]):
    """Methods of Dataset that cache, prefetch and store its elements."""

    def cache(
        self,
        filename: str | os.PathLike[str] | int = "",
        name: str | None = None,
        *,
        on_mismatch: Literal["error", "rebuild"] = "error",
        directory: str | os.PathLike[str] = "",
    ) -> Dataset[T_co]:
        """Cache the elements of the first full pass for later passes, in memory or in files.

        Put it after expensive ops and before random ones. Cached arrays are read-only.

        A pass that is stopped early stores nothing, and the next pass starts over; with a ``filename`` a warning is
        logged. Elements that fail raise an error in the pass that fills the cache, and are left out of later passes.

        All passes of one iteration return the elements of the same pass over the input, in the same order, even if the
        cache is read in several places or not yet full. If a later op, such as ``take``, stops a pass early, timing
        decides whether read-ahead in between, such as that of ``prefetch``, still completes the pass and fills the
        cache.

        A saved state does not hold the elements, but names the pass that the cache was returning. A resumed iterator
        reads this pass from the cache, or repeats it if the cache does not hold it, and fills an empty cache; only a
        state from a later pass is refused if the cache holds another one. This does not apply to a cache in a dataset
        that a function returns, such as that of ``interleave``, which the next pass fills.

        ``cache(AUTOTUNE)`` finds the place. It may stand anywhere, also after random ops, and changes no element: not
        the order, which random ops after that place draw anew in each pass, not the elements that fail, and not
        whether arrays are writable. The candidates are the ops before it, up to the first that has several inputs,
        repeats, or runs in other processes, as far as no random op comes before them. The first pass measures their
        times and sizes, and keeps the elements of the last candidate while they take less than half of the memory
        budget (``options.autotune.ram_budget``), or of the free space on the disk. At its end, the candidate is chosen
        that saves most work and fits. If it is another one, the second pass fills it. ``explain()`` and ``stats()`` say
        what was chosen and why. Functions and generators must return the same in each pass.

        Args:
            filename: a directory, created by the first pass if its parent exists; later processes read from it, too.
                Default: in memory, for this Dataset. AUTOTUNE: the elements of this op or of one before it, in memory
                or in ``directory``.
            name: a label.
            on_mismatch: what to do if the directory was filled by another pipeline, or by this one before an edit:
                ``"error"``, or ``"rebuild"`` to fill it again. Detected are changed operations, arguments, seeds and
                data, and edits of functions: of their code, of captured values and defaults, and of the functions and
                values of their own module that they name. Not detected are edits of other modules, changed contents of
                files with the same names, changed contents of objects from other packages, values that change while the
                pipeline runs, edits of functions if another version of Python filled the cache, and changes of a few
                values in arrays of more than 64 MiB.
            directory: where ``cache(AUTOTUNE)`` keeps the elements, like ``filename``. Default: in memory.

        Raises:
            FileExistsError: while iterating, if another iterator is filling the same directory. With AUTOTUNE, the pass
                is not cached instead.
            SpecError: while iterating, if the directory holds the elements of another pipeline.
            ValueError: if the directory has a scheme, such as ``s3://``, if ``on_mismatch`` is invalid, or if
                ``directory`` is given without AUTOTUNE.
            TypeError: while iterating, for an element that cannot be stored in files, such as an object of your own
                class.

        >>> calls = []
        >>> dataset = Dataset.range(3).map(lambda x: calls.append(x) or x).cache()
        >>> [len(list(dataset)), len(list(dataset)), len(calls)]
        [3, 3, 3]
        >>> import time
        >>> epochs = Dataset.range(3).map(lambda x: time.sleep(0.01) or x, name="slow").shuffle(3).cache(AUTOTUNE)
        >>> print(epochs.explain().splitlines()[1])
          cache(AUTOTUNE) the first pass decides where  3 elements  ...
        >>> for epoch in range(2):
        ...     _ = list(epochs)
        >>> print(epochs.explain().splitlines()[1])
          cache(AUTOTUNE) keeps about ... after slow, which saves ... of work in each pass  3 elements  ...
        """
        if on_mismatch not in {"error", "rebuild"}:
            raise ValueError(f'cache(): on_mismatch must be "error" or "rebuild", got {on_mismatch!r:.100}')
        if isinstance(filename, int):
            if filename != AUTOTUNE or getattr(filename, "max", None):
                raise TypeError(f"cache(): filename must be a path or AUTOTUNE, got {filename!r:.100}")
            folder = directory and deferred.local_folder("cache", directory)
            store = deferred.CacheDirectories(folder, on_mismatch) if folder else None
            return Dataset(deferred.AutoCache(self._plan, store, name=name))
        if directory:
            raise ValueError("cache(): directory is for cache(AUTOTUNE, directory=...); pass it as filename")
        if isinstance(filename, str | bytes) and not filename:
            return Dataset(deferred.Cache(self._plan, name=name))
        folder = deferred.local_folder("cache", filename)
        return Dataset(deferred.FileCache(self._plan, folder, on_mismatch=on_mismatch, name=name))

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> Dataset[T_co]:
        """Produce the next elements in a background thread while the current one is used.

        Args:
            buffer_size: the most elements to hold; after ``batch``, these are batches. AUTOTUNE, or None, begins with
                2; the autotuner adjusts it, up to 128. The thread then only runs while that is faster than working
                without it. Without it, elements that cost little and need no user code that may wait are computed
                several at once, for a millisecond. If memory is short (``options.autotune.ram_budget``), the buffer
                holds fewer elements.
            name: a label.

        Raises:
            ValueError: if ``buffer_size`` is negative and not AUTOTUNE.

        >>> [int(x) for x in Dataset.range(3).prefetch(2)]
        [0, 1, 2]
        """
        return Dataset(deferred.Prefetch(self._plan, AUTOTUNE if buffer_size is None else buffer_size, name=name))

    def snapshot(
        self,
        path: str | os.PathLike[str],
        compression: str | None = "AUTO",
        reader_func: Callable[[Dataset[Dataset[Any]]], Dataset[Any]] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Write the elements of the first full pass to files; later passes, in any process, read them.

        Unlike a cache in files, a snapshot belongs to exactly one pipeline: a pipeline with other functions, numbers or
        arrays has its own snapshot under the same path. (Functions are compared by their code and what they refer to,
        as far as that can be determined. Files that a pipeline reads are compared by name.) A pass that is stopped
        early, or in which an element fails, is discarded. Several passes may write at once; the first to end is kept.

        Args:
            path: a directory for snapshots.
            compression: ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` or ``"SNAPPY"`` (extra ``snappy``); None and ``"AUTO"`` mean
                no compression.
            reader_func: takes a Dataset of one Dataset for each shard, returns a Dataset of their elements. Default: an
                element from each in turn.
            shard_func: takes an element as ``map`` passes it, returns the number of its shard. Default: four in turn.
            name: a label.

        Raises:
            TypeError: if a function is not callable.
            ValueError: if the compression is unknown, or the path has a scheme, such as ``s3://``.

        >>> import tempfile
        >>> calls = []
        >>> def costly(x):
        ...     calls.append(x)
        ...     return x
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dataset = Dataset.range(3).map(costly).snapshot(folder)
        ...     [len(list(dataset)), len(list(dataset)), len(calls)]
        [3, 3, 3]
        """
        return Dataset(deferred.Snapshot(self._plan, path, compression, reader_func, shard_func, name=name))  # type: ignore[arg-type]  # made a string there

    def save(
        self,
        path: str | os.PathLike[str],
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: dict[str, Any] | None = None,
    ) -> None:
        """Write all elements to files, from which ``Dataset.load`` restores a dataset.

        A previous save under the same path is replaced after everything is written; it remains if an element fails.

        Args:
            path: a directory; it is created.
            compression: ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` or ``"SNAPPY"`` (extra ``snappy``). Default, and ``"AUTO"``:
                none.
            shard_func: takes an element as ``map`` passes it, returns the number of its shard. Default: one shard.
            checkpoint_args: lets an interrupted save resume from its last checkpoint, when the same pipeline is saved
                to the same path again: a dict with ``directory`` (for the checkpoints), ``max_to_keep`` (how many, or
                None for all), and optionally ``checkpoint_interval`` (in elements; by default 16 MiB of data) and
                ``checkpoint_name`` (the prefix of their files; default ``"ckpt"``).

        Raises:
            TypeError: for elements that cannot be stored in files, such as objects of your own classes.
            SpecError: if the elements differ in structure or dtype.
            ValueError: if the dataset is infinite, or an argument is invalid; if a path has a scheme, such as
                ``s3://``.
            OSError: if the directory cannot be written.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Dataset.range(6).batch(2).save(folder)
        ...     for batch in Dataset.load(folder):
        ...         print(batch)
        [0 1]
        [2 3]
        [4 5]
        """
        optimized = self._optimized
        open_pass = partial(deferred.ChunkScan, optimized.plan, optimized.options, deferred.Autotuner)
        deferred.save(optimized.plan, open_pass, path, compression, shard_func, checkpoint_args)

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[[Dataset[Dataset[Any]]], Dataset[Any]] | None = None,
        wait: bool = False,
    ) -> Dataset[Any]:
        """Return a dataset of the elements written by ``save``. Numeric arrays are read-only views of the files.

        Args:
            path: the directory.
            element_spec: the spec of the elements. It is stored in the files, except for instances of your own classes
                (dataclasses, for example); named tuples are restored as named tuples of the same name and fields.
            compression: stored in the files; a different value is an error.
            reader_func: takes a Dataset of one Dataset for each shard, returns a Dataset of their elements. Default: an
                element from each in turn.
            wait: whether to wait until a save has finished, if there is none yet. It checks twice a second.

        Raises:
            FileNotFoundError: if nothing was saved there, or the save has not finished.
            DataLossError: if the metadata is damaged; while iterating, if the files of the elements are damaged.
            SpecError: if the elements do not match ``element_spec``.
            ValueError: if ``compression`` is not that of the files, or the path has a scheme, such as ``s3://``.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Dataset.range(6).save(folder, shard_func=lambda x: x % 2)
        ...     in_turn = list(Dataset.load(folder))
        ...     one_by_one = list(Dataset.load(folder, reader_func=lambda shards: shards.flat_map(lambda shard: shard)))
        >>> [int(x) for x in in_turn], [int(x) for x in one_by_one]
        ([0, 1, 2, 3, 4, 5], [0, 2, 4, 1, 3, 5])
        """
        return Dataset(deferred.load(path, element_spec, compression, reader_func, wait))

    def write_tfrecord(
        self,
        path_pattern: str | os.PathLike[str],
        num_shards: int = 1,
        compression: str | None = None,
        encode: Callable[..., Any] | None = None,
        *,
        compression_level: int | None = None,
        progress: bool | None = None,
    ) -> list[str]:
        """Write all elements to TFRecord files.

        Element ``i`` goes to shard ``i % num_shards``, so the sizes of shards differ by at most one record. All files
        are renamed to their final names at the end, one right after the other; until then existing files remain. If an
        element fails, the disk is full or the program is interrupted, none of the new files appears. All files are open
        until the end.

        Args:
            path_pattern: the names of the files, with the fields ``{shard}``, counted from 0, and ``{num_shards}``,
                such as ``"train-{shard:05d}-of-{num_shards:05d}.tfrecord"``. A brace in a name is written twice.
            num_shards: the number of files. If more than one, the pattern must contain ``{shard}``.
            compression: ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` or ``"SNAPPY"`` (extra ``snappy``). Default: none.
            encode: takes an element as ``map`` passes it, returns the bytes of its record; a function marked with
                ``@vectorized`` is called with columns. Default: elements of ``bytes`` are records, dicts are encoded as
                Examples by ``io.encode_example``.
            compression_level: 0 (fastest) to 9 (smallest). Default: zlib's, 6.
            progress: whether to show on stderr the number of records written, the total, the rate, and the number of
                bytes before compression. Default: if stderr is a terminal.

        Returns:
            The names of the files, shard 0 first.

        Raises:
            TypeError: for elements that are neither bytes nor dicts, without ``encode``; for results of ``encode`` that
                are not bytes.
            ValueError: if the dataset is infinite, the pattern has other fields or lacks ``{shard}``, or an argument is
                invalid.
            OSError: if the files cannot be written, or the system allows too few open files.

        >>> import os, tempfile
        >>> from dataset import TFRecordDataset
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pattern = os.path.join(folder, "train-{shard:02d}-of-{num_shards:02d}.tfrecord")
        ...     paths = Dataset.range(5).write_tfrecord(pattern, 2, encode=lambda x: b"record %d" % x)
        ...     [os.path.basename(path) for path in paths], list(TFRecordDataset(paths[1]))
        (['train-00-of-02.tfrecord', 'train-01-of-02.tfrecord'], [b'record 1', b'record 3'])
        """
        return deferred.write_tfrecord(
            self._plan, _chunk_scan, path_pattern, num_shards, compression, encode, compression_level, progress
        )


def _chunk_scan(plan: Node) -> ChunkScan:
    optimized = deferred.optimize(plan)
    return deferred.ChunkScan(optimized.plan, optimized.options, deferred.Autotuner)

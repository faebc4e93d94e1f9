"""Dataset: the public class for building pipelines, with a method per op. Ops are in ops/, their execution in runtime/.

A Dataset only holds a plan. Names, arguments, defaults and semantics are those of ``tf.data.Dataset``; values are
NumPy's.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Never,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    cast,
    overload,
)

import numpy as np
import numpy.typing as npt

from dataset import deferred
from dataset.extras import load_extra
from dataset.io.image.folder import EXTENSIONS
from dataset.options import AUTOTUNE, Options, bounded
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.checks import (
    missing_attribute,
    require_bool,
    require_columns,
    require_int,
    require_parallelism,
    require_plan,
    require_plans,
    require_threads,
)
from dataset.plan.lazy import lazy_property
from dataset.plan.nested import datasets_are_made_by
from dataset.plan.node import Node, restarted, walk
from dataset.plan.structure import Structure, structure_of
from dataset.redaction import redacted
from dataset.runtime.chunks.chunk import Column
from dataset.runtime.random.streams import EpochLedger
from dataset.runtime.resources.cores import usable_cores
from dataset.runtime.resources.memory import default_budget

if TYPE_CHECKING:  # imports against the layering: loaded by the methods that return them
    from dataset.adapters.jax import JaxDataset
    from dataset.adapters.live_progress import LiveProgress
    from dataset.adapters.progress import Progress
    from dataset.adapters.queue_feeder import QueueFeeder
    from dataset.adapters.torch.iterable import TorchIterableDataset
    from dataset.adapters.torch.map_style import TorchMapDataset
    from dataset.autotune.profile_report import ProfileReport
    from dataset.ops.group.group_by_reducer import Reducer
    from dataset.ops.skip import Skip
    from dataset.ops.take import Take
    from dataset.optimize.driver import Optimized
    from dataset.runtime.iteration.chunk_scan import ChunkScan
    from dataset.runtime.iteration.device_prefetch import Convert
    from dataset.runtime.iteration.iterator import DatasetIterator
    from dataset.runtime.state.replay_log import ReplayMarks

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")
A = TypeVar("A", bound=np.generic)
Array: TypeAlias = "npt.NDArray[Any]"
Scalar: TypeAlias = "np.generic | bytes | str | float"
Unknown: TypeAlias = "tuple[Never, ...]"
"""Only Any and ``tuple[Any, ...]`` match it: overloads for it come first, and later ones know the element."""
Kind = TypeVar("Kind", bound="DatasetIterator[Any]")


class NamedFields(Protocol):
    """Type of named tuples: batches of them are named tuples, too."""

    def _asdict(self) -> dict[str, Any]: ...


class Dataset(Generic[T_co]):
    """Lazy sequence of elements, which are produced during iteration.

    Start from a source (``from_tensor_slices``, ``list_files``, ``TFRecordDataset``, ...), chain transformations, and
    iterate. Nothing runs before the iteration, and each iteration runs the pipeline again. An element is an array, a
    NumPy scalar, ``bytes``, or tuples, named tuples, dicts, dataclasses and attrs classes of these.

    All methods take a ``name``, which is shown in error notes and by ``explain()``.

    >>> dataset = Dataset.range(6).map(lambda x: x * x).batch(4)
    >>> for batch in dataset:
    ...     print(batch)
    [0 1 4 9]
    [16 25]
    """

    def __init__(self, plan: Node) -> None:
        """Create a dataset from a plan. Users call the static methods below instead."""
        if not isinstance(plan, Node):
            raise TypeError(
                f"Dataset() takes a plan, got {type(plan).__name__}; use a static method such as "
                "Dataset.from_tensor_slices, from_list, from_generator, from_torch or from_huggingface"
            )
        self._plan = plan

    if not TYPE_CHECKING:  # type checkers report unknown names

        def __getattr__(self, name: str) -> Never:
            raise missing_attribute(self, name)

    @lazy_property
    def _cuts(self) -> dict[int, Take | Skip]:
        """The first take or skip of each number of elements."""
        return {}

    @property
    def plan(self) -> Node:
        """The plan as written, before optimization."""
        return self._plan

    @lazy_property
    def _optimized(self) -> Optimized:
        return deferred.optimize(self._plan)

    # Sources

    @staticmethod
    def from_csv(
        file_pattern: Any,
        batch_size: int,
        column_names: Sequence[str] | None = None,
        column_defaults: Any = None,
        label_name: str | None = None,
        select_columns: Any = None,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        header: bool = True,
        num_epochs: int | None = None,
        shuffle: bool = True,
        shuffle_buffer_size: int = 10000,
        shuffle_seed: int | None = None,
        prefetch_buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        sloppy: bool = False,
        num_rows_for_inference: int | None = 100,
        compression_type: str | None = None,
        ignore_errors: bool = False,
        encoding: str = "utf-8",
    ) -> Dataset[Any]:
        r"""Return a dataset of batches of CSV rows: dicts of columns by name, or pairs of such a dict and the labels.

        It corresponds to ``tf.data.experimental.make_csv_dataset``, with its defaults: by default the rows are shuffled
        and repeated infinitely. This call finds the files and reads their headers and first rows. ``CsvDataset``
        returns single rows in the order of the files.

        Args:
            file_pattern: a path with ``*``, ``?`` and ``[...]``, or a list of such paths.
            batch_size: rows per batch. With ``num_epochs=None`` every batch is full; otherwise the last may be smaller.
            column_names: the names of all columns of the files. Default: those of the header, which must be the same in
                all files.
            column_defaults: for each column that is read, in their order in the files, a dtype or a default value as
                for ``CsvDataset``. Default: inferred from the first rows, as int64, float64 or bytes; empty fields are
                0 or ``b""``. As in tf.data, integers beyond int64 are inferred as floats; ``bytes`` keeps all digits.
            label_name: the column to return separately from the dict.
            select_columns: names or indices of the columns to read. Default: all.
            field_delim: the delimiter between fields; one byte.
            use_quote_delim: whether quotation marks enclose fields. If False, they are ordinary characters.
            na_value: a text that counts as an empty field, in addition to the empty text.
            header: whether the first row of each file is a header.
            num_epochs: how many times to repeat the rows; None for infinitely.
            shuffle: whether to shuffle the files and the rows, in a different order in each epoch.
            shuffle_buffer_size: the size of the shuffle buffer, in rows.
            shuffle_seed: makes the orders repeatable.
            prefetch_buffer_size: batches to prefetch. Default AUTOTUNE.
            num_parallel_reads: how many files to read at once, taking a row from each in turn. Default 1. AUTOTUNE is a
                cycle of 4 files.
            sloppy: whether rows of files that are read at once may be returned in any order.
            num_rows_for_inference: how many rows, of all files together, are used to infer types; None for all.
            compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` (extra ``zstd``), ``"SNAPPY"`` (extra
                ``snappy``); or ``"AUTO"``: the first bytes of each file determine which of these it is, but not SNAPPY.
            ignore_errors: whether to skip rows that cannot be parsed.
            encoding: the encoding of the names in the header, which must be a superset of ASCII; text in rows stays
                ``bytes``.

        Raises:
            FileNotFoundError: if no file matches.
            ValueError: if an argument is invalid; if headers differ, or the rows used for inference cannot be parsed.
            TypeError: if an argument has the wrong type.
            ParseError: while iterating, for a row that cannot be parsed, in the place of its batch.
            DataLossError: while iterating, where a compressed file is damaged.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "prices.csv")
        ...     _ = path.write_text("item,price\napple,0.5\npear,1\n")
        ...     list(Dataset.from_csv(str(path), 2, num_epochs=1, shuffle=False))
        [{'item': array([b'apple', b'pear'], dtype=object), 'price': array([0.5, 1. ])}]
        """
        return Dataset(
            deferred.from_csv_plan(
                file_pattern,
                batch_size,
                column_names=column_names,
                column_defaults=column_defaults,
                label_name=label_name,
                select_columns=select_columns,
                layout_arguments=(field_delim, use_quote_delim, na_value),
                header=header,
                num_epochs=num_epochs,
                shuffle=shuffle,
                shuffle_buffer_size=shuffle_buffer_size,
                shuffle_seed=shuffle_seed,
                prefetch_buffer_size=prefetch_buffer_size,
                num_parallel_reads=num_parallel_reads,
                sloppy=sloppy,
                num_rows_for_inference=num_rows_for_inference,
                compression_type=compression_type,
                ignore_errors=ignore_errors,
                encoding=encoding,
            )
        )

    @staticmethod
    def from_tensors(tensors: T, name: str | None = None) -> Dataset[T]:
        """Return a dataset of one element, ``tensors``.

        Args:
            tensors: an element of any structure.
            name: a label.

        Raises:
            ValueError: if it has no components.

        >>> list(Dataset.from_tensors([1, 2, 3]))
        [array([1, 2, 3])]
        """
        return Dataset(deferred.Tensors(tensors, name=name))

    @overload
    @staticmethod
    def from_tensor_slices(tensors: list[str] | list[bytes], name: str | None = None) -> Dataset[bytes]: ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: list[int], name: str | None = None) -> Dataset[np.int64]: ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: list[float], name: str | None = None) -> Dataset[np.float64]: ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: tuple[Any, Any], name: str | None = None) -> Dataset[tuple[Any, Any]]: ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: tuple[Any, Any, Any], name: str | None = None) -> Dataset[tuple[Any, Any, Any]]: ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: dict[str, Any], name: str | None = None) -> Dataset[dict[str, Any]]: ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset[Any]: ...

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the rows of arrays.

        The arrays are not copied; rows are read-only views of them. A list is data, a tuple or dict structure.

        Args:
            tensors: arrays of shape (n, ...) in any structure.
            name: a label.

        Raises:
            ValueError: if a component has no rows, or the numbers of rows differ.

        >>> images, labels = np.zeros((3, 28, 28), np.uint8), [7, 8, 9]
        >>> dataset = Dataset.from_tensor_slices({"image": images, "label": labels})
        >>> len(dataset), [int(element["label"]) for element in dataset]
        (3, [7, 8, 9])
        """
        return Dataset(deferred.TensorSlices(tensors, name=name))

    @staticmethod
    def from_list(elements: list[T], name: str | None = None) -> Dataset[T]:
        """Return a dataset of the items of a list, like ``tf.data.experimental.from_list``.

        In contrast to ``from_tensor_slices``, each item is a whole element: a tuple or dict is structure, a list an
        array, and the shapes may differ. Arrays are not copied; elements are read-only views of them.

        Args:
            elements: at least one element. All have the same structure and dtypes.
            name: a label.

        Raises:
            ValueError: if ``elements`` is not a list or is empty, or the structures or dtypes differ.

        >>> list(Dataset.from_list([(1, "a"), (2, "b")]))
        [(np.int64(1), b'a'), (np.int64(2), b'b')]
        >>> Dataset.from_list([[1], [2, 3]]).element_spec
        TensorSpec(shape=(None,), dtype=int64)
        """
        return Dataset(deferred.ListElements(elements, name=name))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[T]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset[T]:
        """Return a dataset of the values that a generator function yields. Each iteration calls the function again.

        With a signature, values are checked against it, and ints are converted to declared float dtypes. Without a
        signature (beyond tf.data), the first element determines the spec.

        Args:
            generator: a function that returns an iterable; a class with ``__iter__`` works, too.
            output_types: dtypes in the structure of an element; the older form of a signature.
            output_shapes: shapes in the same structure, with ``output_types``; default, unknown.
            args: the arguments of ``generator``, converted to components: text to ``bytes``, lists to read-only arrays.
            output_signature: TensorSpec, RaggedTensorSpec and so on in the structure of an element. A tuple in the
                place of a TensorSpec is data, like a list.
            name: a label.

        Raises:
            TypeError: if ``generator`` is not callable, both forms of a signature are given, or a signature contains
                anything but specs.
            ValueError: if shapes and types differ in structure.

        >>> def count(stop):
        ...     for i in range(stop):
        ...         yield i, [i] * i
        >>> for number, row in Dataset.from_generator(count, args=(3,)):
        ...     print(number, row.shape)
        0 (0,)
        1 (1,)
        2 (2,)
        """
        signature = deferred.signature_of(output_types, output_shapes, output_signature)
        return Dataset(deferred.Generator(generator, () if args is None else args, signature, name=name))

    @staticmethod
    def from_queue(
        queue: Any,
        element_spec: Any = None,
        *,
        log: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Return a dataset of the elements that other threads or processes put into a queue. Beyond tf.data.

        An element is taken when it is requested, and never earlier, except by ``prefetch`` and parallel ops. Each is
        taken once: iterators of the same queue share its elements. The dataset ends when the queue is closed (a queue
        of ``dataset.queues``) or shut down (``queue.Queue`` and ``asyncio.Queue`` since Python 3.13), and with an
        element ``StopIteration()`` in any kind of queue. An exception in the queue is raised in its place.
        ``task_done()`` is called when an element is taken.

        A queue cannot repeat an element. So a saved state holds, by value, the elements that were taken and not
        delivered yet. Elements in the queue are not a part of the state, and neither are those that a closed iterator
        had taken: what a restarted program resumes with depends on its producers.

        With ``log``, elements are appended to a file before they are returned. Then the elements of the dataset are
        those in the log, followed by those of the queue: each iteration begins with the first element that was ever
        taken, a saved state is a position in the log, and resuming is exact, also after the process was killed. Only
        one iterator at a time can take elements. ``docs/howto/queues.md`` describes what a log can promise.

        Args:
            queue: a queue of ``dataset.queues``, ``queue``, ``multiprocessing`` or ``asyncio``. For that of asyncio,
                call this in a coroutine of its event loop, and iterate by ``async for``, or in another thread.
            element_spec: the structure, dtypes and shapes of the elements; default: that of the queue, or unknown.
            log: the local path of the log, which is created if it does not exist.
            name: a label.

        Raises:
            BlockingIOError: while iterating, if another iterator takes elements for the same log.
            DataLossError: while iterating, if the log is damaged. Then nothing more is taken.
            RuntimeError: if no event loop runs, for an ``asyncio.Queue``.
            SpecError: while iterating, if a log would have to name the class of the elements, as there is no
                ``element_spec``.
            StateError: while iterating, if an element is not made of numbers and text, so that it cannot be logged.
            TypeError: if ``queue`` is of another kind, or ``element_spec`` contains anything but specs.
            ValueError: if the path of the log has a scheme.

        >>> import threading
        >>> from dataset.queues import FIFOQueue
        >>> queue = FIFOQueue(capacity=2)
        >>> def produce():
        ...     for number in range(5):
        ...         queue.enqueue(number)
        ...     queue.close()
        >>> threading.Thread(target=produce).start()
        >>> list(Dataset.from_queue(queue).batch(2))
        [array([0, 1]), array([2, 3]), array([4])]
        """
        open_log = None if log is None else deferred.log_opener("from_queue", log)
        return Dataset(deferred.FromQueue(queue, element_spec, open_log, name=name))

    @staticmethod
    def from_tf(tf_dataset: Any, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the elements of a ``tf.data.Dataset``. Each iteration iterates it again.

        Elements are those of ``as_numpy_iterator()``, with this library's ragged and sparse tensors and datasets. All
        values are copies. An element that fails raises TensorFlow's exception in its place. TensorFlow determines the
        read-ahead. A saved state counts elements: restoring it iterates from the start up to the position.

        Args:
            tf_dataset: a ``tf.data.Dataset``.
            name: a label.

        Raises:
            TypeError: if ``tf_dataset`` is not one, or a component is not an array, text, a ragged or sparse tensor or
                a dataset.
            RuntimeError: inside a ``tf.function``.
            ImportError: if TensorFlow is not installed.

        >>> import tensorflow as tf
        >>> dataset = Dataset.from_tf(tf.data.Dataset.range(4).batch(2))
        >>> len(dataset), list(dataset)
        (2, [array([0, 1]), array([2, 3])])
        """
        tf = load_extra("tensorflow", "tensorflow", "from_tf() needs")
        source = deferred.TfDataset(tf, tf_dataset)
        plan = deferred.ExternalSource(
            source, (), source.signature, method="from_tf", kind=source.kind, count=source.count, name=name
        )
        return Dataset(plan)

    @staticmethod
    def from_ray(dataset: Any, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the rows of a ``ray.data.Dataset``, as dicts of arrays by column name.

        Each iteration executes the Ray dataset again. Ray Data keeps the order of rows only if its option
        ``preserve_order`` is set. A saved state counts rows: restoring it reads the rows before it again.

        Args:
            dataset: a ``ray.data.Dataset``.
            name: a label.

        Raises:
            TypeError: if ``dataset`` is not one.

        >>> import ray  # doctest: +SKIP
        >>> next(iter(Dataset.from_ray(ray.data.range(3))))  # doctest: +SKIP
        {'id': np.int64(0)}
        """
        if not hasattr(dataset, "iter_rows"):
            raise TypeError(f"from_ray(): expected a ray.data.Dataset, got {type(dataset).__name__}")
        return Dataset(deferred.Generator(dataset.iter_rows, (), None, name=name))

    @staticmethod
    def from_torch(dataset: Any, output_signature: Any = None, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the items of a PyTorch dataset, as NumPy arrays. Needs the extra ``torch``.

        A map-style dataset is a source with random access: ``shuffle``, ``skip`` and ``shard`` operate on indices, and
        only the required items are fetched, in batches if it has ``__getitems__``. The rows of a ``TensorDataset`` are
        read as by ``from_tensor_slices``. An IterableDataset or a DataLoader is iterated again by each iteration.
        Upstream of ``to_torch()``, which divides the elements among the workers of a DataLoader, an IterableDataset
        that divides itself finds a single worker (``docs/howto/sharding.md``).

        Tensors are detached and copied to the host. Arrays from a map-style dataset's tensors share their memory and
        are read-only; those from an iterable dataset are copies, since it may reuse its tensors. A list at the top
        level of an item is structure, like a tuple; other lists are data. bfloat16 and float8 require the package
        ml_dtypes.

        Args:
            dataset: a ``torch.utils.data.Dataset``, or any object with ``__getitem__`` and ``__len__``; an
                ``IterableDataset`` or a ``DataLoader``.
            output_signature: TensorSpec and so on in the structure of an element. Default: that of the first element.
            name: a label.

        Raises:
            TypeError: if ``dataset`` is none of these, or a signature contains anything but specs.
            ImportError: if torch is not installed; while iterating, if ml_dtypes is not.

        >>> import torch
        >>> pairs = torch.utils.data.TensorDataset(torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 2]))
        >>> for x, y in Dataset.from_torch(pairs).batch(2):
        ...     print(x.tolist(), y)
        [[0.0, 1.0], [2.0, 3.0]] [0 1]
        [[4.0, 5.0]] [2]
        """
        load_extra("torch", "torch", "from_torch() needs")
        signature = deferred.signature_of(None, None, output_signature, op="from_torch")
        if deferred.torch_source.is_iterable(dataset):
            return Dataset(deferred.Generator(deferred.torch_source.Iterating(dataset), (), signature, name=name))
        columns = deferred.torch_source.columns_of(dataset) if signature is None else None
        if columns is not None:
            return Dataset(deferred.TensorSlices(columns, name=name))
        return Dataset(
            deferred.IndexedSource("from_torch", dataset, signature, deferred.torch_source.element_of, name=name)
        )

    @staticmethod
    def from_arrow(
        data: Any,
        columns: Sequence[str] | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Return a dataset of the rows of an Arrow table, as dicts. Needs the extra ``parquet``.

        It is like ``from_tensor_slices`` of the table's columns: it has random access and is shuffled by index. Numbers
        are not copied; text is copied once, at this call. Types and nulls are handled as in ``from_parquet``.

        Args:
            data: a ``pyarrow.Table`` or ``RecordBatch``, a list of batches, an object with ``__arrow_c_stream__`` (a
                data frame of polars or pandas, a DuckDB relation, a ``RecordBatchReader``), or the path of an Arrow IPC
                or Feather file. This call reads a stream or a file completely, so that every iteration has the same
                rows.
            columns: the columns to read, in the order of the keys; ``"a.b"`` is a field of a struct. Default: all.
            fill_null: replacement values for nulls, by column.
            name: a label.

        Raises:
            TypeError: if ``data`` is none of these.
            ValueError: if a column does not exist, or has a null that its dtype cannot represent.
            SpecError: if a column's type is not supported.
            DataLossError: if a file is damaged.
            ImportError: if pyarrow is not installed.

        >>> import pyarrow as pa
        >>> table = pa.table({"age": [31, 17], "name": ["Ann", "Bob"], "scores": [[1.0, 2.0], []]})
        >>> for row in Dataset.from_arrow(table, columns=["name", "scores"]):
        ...     print(row)
        {'name': b'Ann', 'scores': array([1., 2.])}
        {'name': b'Bob', 'scores': array([], dtype=float64)}
        """
        return Dataset(deferred.arrow_plan(data, columns, fill_null, name))

    @staticmethod
    def from_arrow_ipc(
        filenames: Any,
        columns: Sequence[str] | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        shard: tuple[int, int] | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Return a dataset of the rows of Arrow IPC files, as dicts. Needs the extra ``parquet``.

        It is ``from_parquet`` for files of the IPC file format (Feather) and the IPC stream format (as Hugging Face
        caches them): the arguments, types, nulls, shards and errors are the same, with record batches for row groups.
        ``from_arrow(path)`` reads one such file into memory instead, and shuffles it by index.

        A local file is mapped into memory, and numbers are views of it: it must not be truncated while it is in use.
        ``skip``, ``dataset[i]`` and resuming go to a record batch directly. A remote file of the stream format is read
        completely, because it has no index. Compressed batches are decompressed: one at a time in the file format, all
        when a file of the stream format is opened.

        Args:
            filenames: a path, a pattern such as ``"data/*.arrow"`` (its files are sorted), a list of those, or a
                Dataset of paths.
            columns: the columns to read, in the order of the keys; ``"a.b"`` is a field of a struct. Default: all.
            fill_null: replacement values for nulls, by column.
            shard: ``(num_shards, index)`` reads only every ``num_shards``-th record batch, counted over all files.
            num_parallel_reads: how many files to read at once, in background threads, taking 1024 rows from each in
                turn. Default: one file after the other. AUTOTUNE is a cycle of 4 files.
            name: a label.

        Raises:
            DataLossError, FileNotFoundError, ImportError, SpecError, TypeError, ValueError: as in ``from_parquet``.

        >>> import os, tempfile
        >>> import pyarrow as pa
        >>> table = pa.table({"age": [31, 17, 64], "name": ["Ann", "Bob", "Cid"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "people.arrow")
        ...     with pa.ipc.new_file(path, table.schema) as writer:
        ...         writer.write_table(table, max_chunksize=2)
        ...     people = Dataset.from_arrow_ipc(path, columns=["name"])
        ...     print(len(people), people[2])
        3 {'name': b'Cid'}
        """
        return Dataset(
            deferred.parquet_plan(filenames, columns, fill_null, shard, num_parallel_reads, name, deferred.ArrowIpc)
        )

    @staticmethod
    def from_json_lines(
        filenames: Any,
        columns: Mapping[str, Any] | Sequence[str] | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        compression_type: str | None = None,
        num_rows_for_inference: int | None = 1000,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        r"""Return a dataset of the rows of JSON Lines files, as dicts.

        It is ``JsonLinesDataset``, which describes values, nulls, columns and errors, for patterns of file names.

        Args:
            filenames: a path, a pattern such as ``"data/**/*.jsonl"`` (its files are sorted), a list of those, or a
                Dataset of paths.
            columns: names, or a dict of types, as in ``JsonLinesDataset``. Default: all, with inferred types.
            fill_null: replacement values for nulls, by column.
            compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` (extra ``zstd``), ``"SNAPPY"`` (extra
                ``snappy``); or ``"AUTO"``: the first bytes of each file determine which of these it is, but not SNAPPY.
            num_rows_for_inference: how many rows of all files together are inspected to infer types; None for all.
            num_parallel_reads: how many files to read at once, in background threads, taking a row from each in turn.
                Default: one file after the other. AUTOTUNE is a cycle of 4 files.
            name: a label.

        Raises:
            FileNotFoundError: if a pattern matches no file, or a file is missing whose rows determine the types.
            ValueError, TypeError, ParseError, DataLossError: as in ``JsonLinesDataset``.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with open(os.path.join(folder, "a.jsonl"), "w") as file:
        ...         _ = file.write('{"n": 1, "x": 0.5, "who": {"name": "Ann"}}\n{"n": 2, "who": {"name": "Bob"}}\n')
        ...     for batch in Dataset.from_json_lines(os.path.join(folder, "*.jsonl")).batch(2):
        ...         print(batch)
        {'n': array([1, 2]), 'x': array([0.5, nan]), 'who': {'name': array([b'Ann', b'Bob'], dtype=object)}}
        """
        plan = deferred.json_lines_plan(
            filenames,
            columns,
            fill_null,
            compression_type=compression_type,
            num_rows_for_inference=num_rows_for_inference,
            num_parallel_reads=num_parallel_reads,
            name=name,
        )
        return Dataset(plan)

    @staticmethod
    def from_parquet(
        filenames: Any,
        columns: Sequence[str] | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        shard: tuple[int, int] | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Return a dataset of the rows of Parquet files, as dicts. Needs the extra ``parquet``.

        One row group is in memory at a time, and only ``columns`` are read. Rows and batches are read-only views of it
        if their dtype allows. ``skip(n)`` directly after this source, ``dataset[i]`` and resuming from a saved state do
        not read earlier row groups. This call reads the first file's footer for the columns; ``len`` and
        ``cardinality`` read the footers of all files.

        Numbers keep their dtypes; a decimal is the nearest float64. Text and binary are ``bytes``; dictionary-encoded
        columns are decoded. Timestamps and dates are datetime64 (in UTC), times of the day and durations timedelta64.
        Timestamps in the old format INT96 have microseconds, without smaller digits, so that all years fit. Lists of a
        fixed size are arrays; other lists are arrays of varying length, like rows of a RaggedTensor: ``batch`` makes
        RaggedTensors of them, ``padded_batch`` pads them. Structs are dicts. A null is NaN in floats and NaT in times;
        a null int, bool, text or list raises an error in its place, unless ``fill_null`` has a value for it.

        Args:
            filenames: a path, a pattern such as ``"data/*.parquet"`` (its files are sorted), a list of those, or a
                Dataset of paths.
            columns: the columns to read, in the order of the keys; ``"a.b"`` is a field of a struct. Default: all, in
                the order of the first file.
            fill_null: replacement values for nulls, by column: ``{"age": -1, "tags": ""}``. In a column of lists, it
                replaces null items, and null lists become empty.
            shard: ``(num_shards, index)`` reads only every ``num_shards``-th row group, counted over all files in the
                given order, so each row group belongs to one shard. Shards may differ in size; ``shard()`` is exact,
                but reads everything.
            num_parallel_reads: how many files to read at once, in background threads, taking 1024 rows from each in
                turn. Default: one file after the other. AUTOTUNE is a cycle of 4 files.
            name: a label.

        Raises:
            FileNotFoundError: if the first file is missing; for other files, while iterating, in their place.
            DataLossError: if the first file's footer is damaged; while iterating, in the place of a damaged row group
                or later file. Reading continues after it.
            ValueError: if a column or the shard does not exist; while iterating, at a null without a replacement.
            SpecError: if a column's type is not supported; while iterating, for a file with other columns than the
                first.
            TypeError: if an argument has the wrong type.
            ImportError: if pyarrow is not installed.

        >>> import os, tempfile
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "people.parquet")
        ...     pq.write_table(pa.table({"age": [31, None, 17], "name": ["Ann", "Bob", "Cid"]}), path)
        ...     people = Dataset.from_parquet(path, columns=["name", "age"], fill_null={"age": -1})
        ...     print(len(people))
        ...     for batch in people.batch(2):
        ...         print(batch)
        3
        {'name': array([b'Ann', b'Bob'], dtype=object), 'age': array([31, -1])}
        {'name': array([b'Cid'], dtype=object), 'age': array([17])}
        """
        return Dataset(deferred.parquet_plan(filenames, columns, fill_null, shard, num_parallel_reads, name))

    @staticmethod
    def from_huggingface(
        hf: Any,
        columns: Sequence[str] | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Return a dataset of the rows of a Hugging Face dataset, as dicts. Needs the extra ``huggingface``.

        Rows of a ``datasets.Dataset`` are read and converted only when they are requested, so it may be larger than
        memory. It has random access and is shuffled by index. It keeps the order that its own ``shuffle``, ``select``
        and ``filter`` produced. Types and nulls are handled as in ``from_parquet``, with the dtypes of the features. A
        ``ClassLabel`` is an int64, an ``Array2D`` an array, ``Json`` its text. Of a format, only the selection of
        columns is used.

        An ``Image`` is decoded into an array: uint8 of shape (height, width, 3) for RGB, (height, width) for gray; the
        indices of a palette become its colors. An ``Audio`` is a dict of ``array``, float32, and ``sampling_rate``, and
        needs torchcodec. To decode in parallel, use ``hf.cast_column("image", datasets.Image(decode=False))`` and
        decode in ``map``; the column then has ``bytes`` and ``path``, and either may be empty. A function passed to
        ``set_transform`` is called with as many rows as are requested at once.

        A ``datasets.IterableDataset`` is iterated from its first row in each pass, in the order of its own epoch; a
        ``shuffle()`` after this source gives each epoch a different order. Nothing is read ahead. Resuming from a saved
        state reads the earlier rows again.

        Args:
            hf: a ``datasets.Dataset`` or ``datasets.IterableDataset``; select one split of a ``DatasetDict``.
            columns: the columns to read, in the order of the keys; ``"a.b"`` is a field of a struct. Default: those of
                its format.
            fill_null: replacement values for nulls, by column.
            name: a label.

        Raises:
            TypeError: if ``hf`` is neither.
            ValueError: if a column does not exist, or ``columns`` are given for a dataset without known features; while
                iterating, in the place of a row with a null that its column's dtype cannot represent.
            SpecError: if a column's type is not supported, such as a list of structs, or a ``Video``.
            ImportError: if datasets is not installed.

        >>> import datasets
        >>> reviews = datasets.Dataset.from_dict({"text": ["good", "bad"], "stars": [5, 1]})
        >>> for row in Dataset.from_huggingface(reviews.select([1, 0])):
        ...     print(row)
        {'text': b'bad', 'stars': np.int64(1)}
        {'text': b'good', 'stars': np.int64(5)}
        """
        load_extra("datasets", "huggingface", "from_huggingface() needs")
        op = "from_huggingface"
        make = deferred.HuggingfaceMakers(
            table=partial(deferred.TableRows, name=name),
            rows=partial(deferred.IndexedSource, op, name=name),
            stream=partial(deferred.Generator, method=op, name=name),
            row_reader=partial(deferred.RowReader, op),
        )
        return Dataset(
            deferred.huggingface_plan(hf, require_columns(op, columns), deferred.require_fill_null(op, fill_null), make)
        )

    @staticmethod
    def from_pandas(
        df: Any,
        columns: Sequence[str] | None = None,
        *,
        index: bool = False,
        fill_null: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Return a dataset of the rows of a pandas frame, as dicts. Needs the extra ``pandas``.

        It is like ``from_tensor_slices`` of the frame's columns: it has random access and is shuffled by index.
        Numbers and times are not copied; text is copied once, at this call. Later changes of the frame have no effect
        (with pandas 3, or with copy-on-write enabled).

        pandas' nullable dtypes become NumPy's, times with a time zone datetime64 in UTC, categories their values,
        sparse columns dense ones. Text is ``bytes``. Columns in Arrow's memory are handled as in ``from_arrow``, and so
        are Python objects, which must be of one kind: numbers, text, times, lists, dicts, or NumPy arrays. Arrays and
        lists of equal shape are rows of an array; their first dimension may differ, as in a RaggedTensor. A null (None,
        NaN, NaT, NA) is NaN in floats and NaT in times; in other dtypes it is an error, unless ``fill_null`` has a
        value for it.

        Args:
            df: a ``DataFrame``; or a ``Series``, whose values are the elements, not in a dict.
            columns: the columns to read, in the order of the keys. Default: all.
            index: whether to include the index as columns before the others, as ``df.reset_index()`` does.
            fill_null: replacement values for nulls, by column; ``"a.b"`` is a field of a column of dicts.
            name: a label.

        Raises:
            TypeError: if ``df`` is neither; if column names are not text, or have several levels.
            ValueError: if a column does not exist or is ambiguous; at the first row with a null that its column's dtype
                cannot represent.
            SpecError: if a column's type is not supported, such as periods and intervals; at the first row with an
                object of another kind.
            ImportError: if pandas or pyarrow is not installed.

        >>> import pandas as pd
        >>> people = pd.DataFrame({"name": ["Ann", "Bob"], "age": [31, 17]}, index=pd.Index([7, 9], name="id"))
        >>> for row in Dataset.from_pandas(people, index=True):
        ...     print(row)
        {'id': np.int64(7), 'name': b'Ann', 'age': np.int64(31)}
        {'id': np.int64(9), 'name': b'Bob', 'age': np.int64(17)}
        >>> next(iter(Dataset.from_pandas(people["age"]).batch(2)))
        array([31, 17])
        """
        load_extra("pandas", "pandas", "from_pandas() needs")
        load_extra("pyarrow", "pandas", "from_pandas() needs")
        require_bool("from_pandas", "index", index)
        asked, fills = require_columns("from_pandas", columns), deferred.require_fill_null("from_pandas", fill_null)
        of_arrow = partial(deferred.arrow_columns, "from_pandas")
        made = deferred.pandas_columns(df, asked, index=index, fill_null=fills, arrow_columns=of_arrow)
        return Dataset(deferred.PandasSlices(made, held=df.copy(deep=False), name=name))

    @staticmethod
    def from_polars(
        df: Any,
        columns: Sequence[str] | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Return a dataset of the rows of a polars frame, as dicts. Needs the extra ``polars``.

        It is like ``from_tensor_slices`` of the frame's columns: it has random access and is shuffled by index. Numbers
        and times are not copied if they are contiguous (``df.rechunk()``); bools and text are copied once, at this
        call. Types and nulls are handled as in ``from_parquet``: an ``Array`` is an array, a ``List`` an array of
        varying length, a ``Struct`` a dict; ``Categorical`` and ``Enum`` are their values, a ``Decimal`` is a float64,
        a ``Time`` a timedelta64 since midnight, a time with a time zone is in UTC.

        Args:
            df: a ``DataFrame``; a ``LazyFrame``, which is collected into memory at this call; or a ``Series``, whose
                values are the elements, not in a dict.
            columns: the columns to read, in the order of the keys; ``"a.b"`` is a field of a struct. Default: all.
            fill_null: replacement values for nulls, by column.
            name: a label.

        Raises:
            TypeError: if ``df`` is none of these.
            ValueError: if a column does not exist, or has a null that its dtype cannot represent.
            SpecError: if a column's type is not supported: ``Object``, ``Int128``, lists of structs.
            ImportError: if polars or pyarrow is not installed.

        >>> import polars as pl
        >>> frame = pl.DataFrame({"name": ["Ann", "Bob"], "scores": [[1.0, 2.0], []]})
        >>> for row in Dataset.from_polars(frame):
        ...     print(row)
        {'name': b'Ann', 'scores': array([1., 2.])}
        {'name': b'Bob', 'scores': array([], dtype=float64)}
        """
        polars = load_extra("polars", "polars", "from_polars() needs")
        load_extra("pyarrow", "polars", "from_polars() needs")
        asked, bare = require_columns("from_polars", columns), isinstance(df, polars.Series)
        made = deferred.arrow_columns("from_polars", deferred.polars_table(df, asked), asked, fill_null)
        return Dataset(deferred.PolarsSlices(made[df.name] if bare else made, name=name))

    @overload
    @staticmethod
    def from_image_folder(
        path: str | os.PathLike[str],
        labels: Any = ...,
        class_names: Sequence[str] | None = ...,
        *,
        channels: int = ...,
        image_size: tuple[int, int] | None = ...,
        interpolation: str = ...,
        decode: bool = ...,
        extensions: Sequence[str] = ...,
        shuffle: bool = ...,
        seed: int | None = ...,
        num_parallel_calls: int | None = ...,
        deterministic: bool | None = ...,
        validation_split: float | None = ...,
        subset: Literal["training", "validation"] | None = ...,
        name: str | None = ...,
    ) -> Dataset[Any]: ...

    @overload
    @staticmethod
    def from_image_folder(
        path: str | os.PathLike[str],
        labels: Any = ...,
        class_names: Sequence[str] | None = ...,
        *,
        channels: int = ...,
        image_size: tuple[int, int] | None = ...,
        interpolation: str = ...,
        decode: bool = ...,
        extensions: Sequence[str] = ...,
        shuffle: bool = ...,
        seed: int | None = ...,
        num_parallel_calls: int | None = ...,
        deterministic: bool | None = ...,
        validation_split: float | None = ...,
        subset: Literal["both"],
        name: str | None = ...,
    ) -> tuple[Dataset[Any], Dataset[Any]]: ...

    @staticmethod
    def from_image_folder(
        path: str | os.PathLike[str],
        labels: Any = "inferred",
        class_names: Sequence[str] | None = None,
        *,
        channels: int = 3,
        image_size: tuple[int, int] | None = None,
        interpolation: str = "bilinear",
        decode: bool = True,
        extensions: Sequence[str] = EXTENSIONS,
        shuffle: bool = False,
        seed: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        validation_split: float | None = None,
        subset: Literal["training", "validation", "both"] | None = None,
        name: str | None = None,
    ) -> Dataset[Any] | tuple[Dataset[Any], Dataset[Any]]:
        """Return a dataset of the images in a folder with a subfolder for each class: pairs of an image and its label.

        Label ``i`` is the i-th of the sorted names of the subfolders, which ``io.image_folder_classes(path)`` returns.
        The files in the subfolders, including nested ones, are listed at this call and sorted by path. Names that begin
        with a dot are hidden and ignored. Links are followed, but each folder is read only once per class.

        Args:
            path: the folder.
            labels: ``"inferred"`` from the names of the subfolders; a list of ints, one for each image in the order of
                their paths; or None for images without labels.
            class_names: the names of the subfolders in the order of their labels. Default: sorted.
            channels: 1 for grayscale, 3 for RGB, 4 for RGBA, 0 for those of each file.
            image_size: ``(height, width)`` to resize to; images are then float32. Default: uint8 in their own sizes.
            interpolation: ``method`` of ``io.resize``.
            decode: whether to decode the images; if False, the elements have the bytes of each file instead.
            extensions: the extensions of image files, case-insensitive.
            shuffle: whether to read the files in a different random order in each epoch.
            seed: makes the orders repeatable, and determines the division into subsets.
            num_parallel_calls: how many images to read and decode at once, in background threads; AUTOTUNE tunes it.
            deterministic: whether the order of the elements is fixed, even if a later image is ready earlier. Default
                True.
            validation_split: the fraction of the images that is kept for validation, as in Keras'
                ``image_dataset_from_directory``. The images are chosen at random; for the same files and seed, they are
                those that Keras chooses with ``shuffle=True``. ``shuffle`` has no influence on the division.
            subset: ``"training"``, ``"validation"``, or ``"both"`` for a pair of datasets; only the first is
                shuffled. To divide into other parts, or by person instead of by image, see ``split``.
            name: a label.

        Raises:
            FileNotFoundError: if the folder does not exist, or has no subfolder or no image; while iterating, if a file
                has disappeared.
            ValueError: if ``class_names`` or ``labels`` do not match the folder; if only one of ``validation_split``
                and ``subset`` is given, or no ``seed`` with them; while iterating, in the place of a file that is not
                an image.
            ImportError: while iterating, if the extra ``images`` is not installed.

        >>> import pathlib, tempfile
        >>> from dataset import io
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name, gray in ("cat/1.png", 10), ("dog/1.png", 20), ("dog/2.png", 30):
        ...         file = pathlib.Path(folder, name)
        ...         file.parent.mkdir(exist_ok=True)
        ...         _ = file.write_bytes(io.encode_png(np.full((2, 2, 1), gray, np.uint8)))
        ...     for image, label in Dataset.from_image_folder(folder):
        ...         print(image.shape, image[0, 0], label)
        (2, 2, 3) [10 10 10] 0
        (2, 2, 3) [20 20 20] 1
        (2, 2, 3) [30 30 30] 1
        """
        plans = deferred.image_folder_plans(
            path,
            labels,
            class_names,
            channels,
            image_size,
            interpolation,
            decode,
            extensions,
            shuffle,
            seed,
            num_parallel_calls,
            deterministic,
            validation_split,
            subset,
            name,
        )
        datasets: list[Dataset[Any]] = [Dataset(plan) for plan in plans]
        return (datasets[0], datasets[1]) if subset == "both" else datasets[0]

    @overload
    @staticmethod
    def range(*args: int, name: str | None = None) -> Dataset[np.int64]: ...

    @overload
    @staticmethod
    def range(*args: int, output_type: type[A], name: str | None = None) -> Dataset[A]: ...

    @overload
    @staticmethod
    def range(*args: int, output_type: npt.DTypeLike, name: str | None = None) -> Dataset[Any]: ...

    @staticmethod
    def range(*args: int, output_type: npt.DTypeLike = np.int64, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of evenly spaced integers, with the arguments of Python's ``range``.

        Args:
            *args: ``stop``; ``start, stop``; or ``start, stop, step``.
            output_type: the dtype. Default int64.
            name: a label.

        Raises:
            TypeError: if an argument is not an int.
            ValueError: if the step is 0, or the number of arguments is wrong.

        >>> [int(x) for x in Dataset.range(10, 0, -3)]
        [10, 7, 4, 1]
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(f"range(): give stop, or start and stop, or start, stop and step; got {len(args)} numbers")
        start, stop = (0, args[0]) if len(args) == 1 else args[:2]
        step = args[2] if len(args) == 3 else 1
        return Dataset(deferred.Range(start, stop, step, output_type, name=name))

    @staticmethod
    def counter(
        start: Any = 0, step: Any = 1, dtype: npt.DTypeLike = np.int64, name: str | None = None
    ) -> Dataset[Any]:
        """Return an infinite dataset of evenly spaced numbers.

        The numbers are added in ``dtype``: integers wrap around, floats are rounded at each step.

        Args:
            start: the first number.
            step: the difference between consecutive numbers.
            dtype: a dtype of integers, floats or complex numbers. Default int64.
            name: a label.

        Raises:
            TypeError: if ``dtype`` is not numeric, or a number does not match it.
            ValueError: if an int does not fit into 64 bits.

        >>> [int(x) for x in Dataset.counter(start=10, step=5).take(3)]
        [10, 15, 20]
        """
        return Dataset(deferred.Counter(start, step, dtype, name=name))

    @staticmethod
    def random(
        seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset[np.int64]:
        """Return an infinite dataset of random integers: int64, from 0 to 2**32 - 1.

        Args:
            seed: makes the numbers repeatable: a dataset built again has the same numbers.
            rerandomize_each_iteration: whether each epoch and each new iterator gets different numbers. By default
                every pass over a dataset has the same numbers, even without a seed.
            name: a label.

        Raises:
            TypeError: if ``seed`` is not an int, or ``rerandomize_each_iteration`` not a bool.

        >>> numbers = Dataset.random(seed=1).take(3)
        >>> list(numbers) == list(numbers)
        True
        """
        again = False if rerandomize_each_iteration is None else rerandomize_each_iteration
        return Dataset(deferred.Random(seed, again, name=name))

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
    ) -> Dataset[bytes]:
        """Return a dataset of the names of matching files, listed at this call.

        Directories match, too. As in a shell, a wildcard does not match a dot at the beginning of a name, so hidden
        files and folders match only patterns such as ``.*``. The name of an existing file, such as ``a[1].txt``, is not
        taken as a pattern. Names are ``bytes`` as ``os.fsencode`` returns them, and need not be valid UTF-8.

        Args:
            file_pattern: a path with ``*``, ``?`` and ``[...]``, or a list of such paths. One with a scheme, such as
                ``s3://bucket/*.tfrecord``, is listed by fsspec, and its file names include the scheme.
            shuffle: whether to shuffle the names in each epoch. Default True; if False, they are sorted.
            seed: makes the orders repeatable.
            name: a label.

        Raises:
            FileNotFoundError: if no file matches.
            OSError: if a storage cannot be reached, or denies access.
            TypeError: if a pattern is not a path, or ``shuffle`` not a bool.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in "b.txt", "a.txt":
        ...         _ = pathlib.Path(folder, name).write_text("")
        ...     files = Dataset.list_files(f"{folder}/*.txt", shuffle=False)
        ...     [pathlib.Path(file.decode()).name for file in files]
        ['a.txt', 'b.txt']
        """
        files = deferred.matching_files(file_pattern)
        source = deferred.ListFiles(np.array(list(map(os.fsencode, files)), object), name=name)
        if shuffle is not None and not require_bool("list_files", "shuffle", shuffle):
            return Dataset(source)
        return Dataset(deferred.Shuffle(source, len(files), seed, name=name))

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

    @overload
    @staticmethod
    def zip(first: Dataset[T], second: Dataset[S], /, *, name: str | None = None) -> Dataset[tuple[T, S]]: ...

    @overload
    @staticmethod
    def zip(
        first: Dataset[T], second: Dataset[S], third: Dataset[R], /, *, name: str | None = None
    ) -> Dataset[tuple[T, S, R]]: ...

    @overload
    @staticmethod
    def zip(datasets: tuple[Dataset[T], Dataset[S]], /, *, name: str | None = None) -> Dataset[tuple[T, S]]: ...

    @overload
    @staticmethod
    def zip(dataset: Dataset[T], /, *, name: str | None = None) -> Dataset[T]: ...

    @overload
    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset[Any]: ...

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the combined elements of several datasets; it ends with the shortest.

        Args:
            *args: datasets, or one nested structure of datasets. The elements of a single dataset are unchanged.
            datasets: that structure as a keyword argument, instead of ``args``.
            name: a label.

        Raises:
            TypeError: if the structure contains anything other than Datasets, such as a list; or if both are given.

        >>> pairs = Dataset.zip(Dataset.range(3), Dataset.range(10, 20))
        >>> [(int(a), int(b)) for a, b in pairs]
        [(0, 10), (1, 11), (2, 12)]
        """
        if (datasets is None) == (not args):
            raise TypeError("zip(): give datasets, either as arguments or as datasets=, not both")
        nested = args if len(args) > 1 else args[0] if args else datasets
        structure = structure_of(nested)
        sources = structure.flatten(nested)
        if not sources:
            raise ValueError(f"zip(): give at least one dataset, got {nested!r}")
        for source in sources:
            if not isinstance(source, Dataset):
                hint = "; a list is data, use a tuple" if isinstance(source, list) else ""
                raise TypeError(f"zip(): expected a Dataset, got {source!r} of type {type(source).__name__}{hint}")
        return Dataset(deferred.Zip(structure, tuple(source.plan for source in sources), name=name))

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Dataset[T]],
        choice_dataset: Dataset[Any],
        stop_on_empty_dataset: bool = True,
        name: str | None = None,
    ) -> Dataset[T]:
        """Return a dataset of elements from several datasets, in the order of given choices.

        Args:
            datasets: a list of datasets with elements of the same structure and dtypes.
            choice_dataset: a dataset of int64 scalars: the index in ``datasets`` of the source of the next element.
            stop_on_empty_dataset: whether to end when a chosen dataset has ended. If False, such choices are skipped
                until the choices or all datasets have ended.
            name: a label.

        Raises:
            TypeError: if an argument is not a Dataset, or the elements are not compatible.
            ValueError: if there are no datasets; while iterating, in the place of a choice that is out of range.

        >>> letters = Dataset.from_tensor_slices(["a", "b"])
        >>> digits = Dataset.from_tensor_slices(["1", "2"])
        >>> choices = Dataset.from_tensor_slices([0, 1, 1, 0])
        >>> list(Dataset.choose_from_datasets([letters, digits], choices))
        [b'a', b'1', b'2', b'b']
        """
        sources = require_plans("choose_from_datasets", "datasets", datasets)
        choices = require_plan("choose_from_datasets", "choice_dataset", choice_dataset)
        return Dataset(deferred.ChooseFromDatasets(sources, stop_on_empty_dataset, choices, name=name))

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset[T]],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
        *,
        exact: bool = False,
        interpolation: str = "step",
        on_empty: str | None = None,
        name: str | None = None,
    ) -> Dataset[T]:
        """Return a dataset of elements from several datasets, mixed at random or in exact proportions.

        Each dataset keeps its own order. With ``exact`` (beyond tf.data) the mix is deterministic: after any n
        elements, each dataset has contributed its share of n to within one element (the quota method of Balinski and
        Young, 1975). Weights are then interpreted as exact decimal numbers.

        Args:
            datasets: a list of datasets with elements of the same structure and dtypes.
            weights: a number for each dataset, in any proportion; or a dataset of such vectors, one for each element.
                A dataset of weight 0 is left out. Default, all equal. Beyond tf.data, a schedule: pairs of an element
                number and the weights from there on, ``[(0, [1, 0]), (10_000, [1, 1])]``, or a function that takes the
                number of an element and returns weights. Elements are counted from 0 in each pass, over all processes.
                A saved state can be resumed with other weights of later elements.
            seed: makes the order repeatable.
            stop_on_empty_dataset: whether to end with the first dataset that ends. If False, the others continue, in
                the proportion of their weights.
            rerandomize_each_iteration: whether each epoch and each new iterator gets a different order. By default
                every pass over a dataset has the same order.
            exact: whether to keep the proportions exactly.
            interpolation: how weights change from one pair of a schedule to the next: ``"step"`` or ``"linear"``.
            on_empty: what happens when a dataset ends: ``"continue"`` with the others until all have ended,
                ``"stop"``, or ``"repeat"`` it; beyond tf.data. Default: as ``stop_on_empty_dataset`` says.
            name: a label.

        Raises:
            TypeError: if an argument is not a Dataset, the elements are not compatible, or weights are not numbers.
            ValueError: if there are no datasets; if weights are negative, not finite or too few; if ``exact`` is
                combined with a seed or with weights that vary; if the numbers of a schedule do not ascend from 0.

        >>> ones, twos = Dataset.from_tensors(1).repeat(), Dataset.from_tensors(2).repeat()
        >>> mixed = Dataset.sample_from_datasets([ones, twos], weights=[0.75, 0.25], exact=True)
        >>> [int(x) for x in mixed.take(8)]
        [1, 1, 1, 2, 1, 1, 1, 2]
        >>> scheduled = Dataset.sample_from_datasets([ones, twos], weights=[(0, [1, 0]), (3, [0, 1])])
        >>> [int(x) for x in scheduled.take(6)]
        [1, 1, 1, 2, 2, 2]
        """
        plan = deferred.sample_plan(
            datasets,
            weights,
            seed,
            stop_on_empty_dataset,
            rerandomize_each_iteration,
            exact=exact,
            interpolation=interpolation,
            on_empty=on_empty,
            name=name,
        )
        return Dataset(plan)

    # Transformations, element by element

    @overload
    def map(
        self: Dataset[Unknown],
        map_func: Callable[..., S],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]: ...

    @overload
    def map(
        self: Dataset[tuple[*Ts]],
        map_func: Callable[[*Ts], S],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]: ...

    @overload
    def map(
        self,
        map_func: Callable[[T_co], S],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]: ...

    def map(
        self,
        map_func: Callable[..., S],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]:
        """Apply a function to each element.

        A tuple element is passed to the function as separate arguments, any other element as one argument. A function
        marked with ``@dataset.vectorized`` is called with whole columns. An exception is raised in the place of its
        element; the iteration can continue after it.

        With ``num_parallel_calls`` the function is called in the background for several elements at once, ahead of the
        consumer. The read-ahead is bounded: usually by the number of elements that are requested or produced at a time,
        at most 32 for each call. If one element takes long, at most the same number of elements after it, or 64 MiB,
        are produced meanwhile. Elements that take less than about a millisecond are processed in groups. If threads do
        not help, because the function is cheap or holds the interpreter lock, it is called in the consumer's thread.

        Args:
            map_func: takes an element, returns an element; always with the same structure.
            num_parallel_calls: the most calls at once. Default: one at a time, when an element is requested. With
                AUTOTUNE, the first calls show whether the function waits; then up to 64 calls run at once. For others,
                the caller's own thread and as many threads as this process may use cores are compared.
            deterministic: whether to keep the order of the elements. Default: the value of the options, which is True
                unless set. If False, elements are returned as soon as they are ready.
            synchronous: True means that calls are never made ahead or in parallel, whatever the options allow. It
                cannot be combined with ``num_parallel_calls``.
            use_unbounded_threadpool: whether the calls do not count against ``options.threading``'s
                ``private_threadpool_size``: for functions that mostly wait.
            name: a label.
            executor: where parallel calls run. "thread" suits functions that wait or release the interpreter lock, such
                as NumPy, decoders and file reads. "process" suits functions that compute in Python: they run in
                ``num_parallel_calls`` (default AUTOTUNE) worker processes. The function, elements and results must be
                serializable with pickle or cloudpickle, which the extra ``process`` installs. Large arrays are passed
                in shared memory. Side effects of the function are limited to the worker process. Processes that are
                idle when an iteration ends wait up to a minute for the next iteration of any dataset. With AUTOTUNE,
                if threads gain nothing, as the function holds the interpreter lock, processes are tried, too, and kept
                if they are faster. A function that cannot be sent stays in this process. Its side effects may happen in
                either place.

        Raises:
            TypeError: if ``map_func`` is not callable; while iterating, if it cannot be sent to a process.
            ValueError: if ``num_parallel_calls`` is less than 1 and not AUTOTUNE, or given with ``synchronous=True``;
                if the executor is unknown.
            WorkerDiedError: while iterating, in the place of the element during which a worker process died.

        >>> [int(x) for x in Dataset.range(4).map(lambda x: x * 10, num_parallel_calls=2)]
        [0, 10, 20, 30]
        """
        require_threads("map", synchronous, use_unbounded_threadpool, num_parallel_calls)
        return Dataset(
            deferred.Map(
                self._plan,
                map_func,
                num_parallel_calls=num_parallel_calls,
                deterministic=deterministic,
                synchronous=bool(synchronous),
                use_unbounded_threadpool=bool(use_unbounded_threadpool),
                executor=executor,
                name=name,
            )
        )

    def random_map(
        self,
        map_func: Callable[..., S],
        seed: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]:
        """Apply a function that draws random numbers to each element, such as an augmentation. Beyond tf.data.

        The function gets its own generator for each element. Its numbers depend only on the seed, the epoch and the
        position of the element: not on how many elements are processed at a time or in parallel, nor on where the
        iteration was resumed. Each epoch and each new iterator draws different numbers, and a pipeline built again
        draws the same sequence of them.

        Args:
            map_func: takes a ``np.random.Generator`` and an element as ``map`` passes it, returns an element.
            seed: makes the draws repeatable; without one, ``set_random_seed`` does.
            num_parallel_calls: the most calls at once, as for ``map``.
            deterministic: whether to keep the order of the elements, as for ``map``.
            name: a label.
            executor: where parallel calls run, as for ``map``; "process" suits augmentation in Python.

        Raises:
            TypeError: if ``map_func`` is not callable, or takes whole columns; if ``seed`` is not an int; while
                iterating, if the function cannot be sent to a process.
            ValueError: if ``num_parallel_calls`` is less than 1 and not AUTOTUNE; if the executor is unknown.
            WorkerDiedError: while iterating, in the place of the element during which a worker process died.

        >>> def flip(rng, image):
        ...     return image[:, ::-1] if rng.random() < 0.5 else image
        >>> images = np.arange(60).reshape(20, 1, 3)
        >>> def run(**settings):
        ...     dataset = Dataset.from_tensor_slices(images).random_map(flip, seed=4, **settings)
        ...     return [image.tolist() for image in dataset]
        >>> run() == run() == run(num_parallel_calls=2, executor="process")
        True
        """
        return Dataset(
            deferred.RandomMap(
                self._plan,
                map_func,
                seed,
                num_parallel_calls=num_parallel_calls,
                deterministic=deterministic,
                executor=executor,
                name=name,
            )
        )

    def scan(
        self, initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, S]], name: str | None = None
    ) -> Dataset[S]:
        """Apply a function that carries a state from one element to the next.

        An exception of the function or of the input leaves the state unchanged. The function may modify arrays of the
        state in place; modifications made before it raises remain.

        Args:
            initial_state: an element; the state for the first element of each pass.
            scan_func: takes the state and an element (a tuple as one argument), returns a pair of the next state, which
                may differ only in its shapes, and the output element.
            name: a label.

        Raises:
            TypeError: if ``scan_func`` is not callable, or takes whole columns.
            SpecError: while iterating, if it does not return a pair, or the state's structure or dtype changes.

        >>> sums = Dataset.range(1, 5).scan(np.int64(0), lambda total, x: (total + x, total + x))
        >>> [int(x) for x in sums]
        [1, 3, 6, 10]
        """
        return Dataset(deferred.Scan(self._plan, initial_state, scan_func, name=name))

    def select(self, *keys: Any, name: str | None = None) -> Dataset[Any]:
        """Select parts of each element, like ``operator.itemgetter``. Beyond tf.data, which needs a ``map``.

        Unlike a function in ``map``, it has no cost per element: it only drops columns.

        Args:
            *keys: keys of a dict, positions in a tuple, names of fields of a named tuple, dataclass or attrs class. One
                key selects the part itself, several keys a tuple of parts in this order.
            name: a label.

        Raises:
            TypeError: if no key is given.
            ValueError: if a key does not exist. If the keys are unknown before running, a SpecError while iterating.

        >>> people = Dataset.from_tensors({"name": "Ada", "born": 1815, "died": 1852})
        >>> next(iter(people.select("name")))
        b'Ada'
        >>> next(iter(people.select("died", "born")))
        (np.int64(1852), np.int64(1815))
        """
        return Dataset(deferred.Select(self._plan, keys, name=name))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset[T_co]:
        """Keep the elements for which a function returns True.

        Args:
            predicate: takes an element as ``map`` passes it, returns a bool.
            name: a label.

        Raises:
            TypeError: if ``predicate`` is not callable.
            SpecError: while iterating, if it returns anything but a bool.

        >>> [int(x) for x in Dataset.range(6).filter(lambda x: x % 2 == 0)]
        [0, 2, 4]
        """
        return Dataset(deferred.Filter(self._plan, predicate, name=name))

    def flat_map(self, map_func: Callable[..., Dataset[S]], name: str | None = None) -> Dataset[S]:
        """Map each element to a dataset, and return the elements of these datasets one after the other.

        Args:
            map_func: takes an element as ``map`` passes it, returns a Dataset.
            name: a label.

        Raises:
            TypeError: if ``map_func`` is not callable; while iterating, if it does not return a Dataset.

        >>> [int(x) for x in Dataset.range(4).flat_map(lambda n: Dataset.range(n))]
        [0, 0, 1, 0, 1, 2]
        """
        return Dataset(deferred.FlatMap(self._plan, map_func, name=name))

    def interleave(
        self,
        map_func: Callable[..., Dataset[S]],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[S]:
        """Map each element to a dataset, and return the elements of several of these datasets in turn.

        Args:
            map_func: takes an element as ``map`` passes it, returns a Dataset.
            cycle_length: how many datasets are open at a time. Default, and for AUTOTUNE, 4.
            block_length: how many consecutive elements to take from a dataset before the next one's turn. Default 1.
            num_parallel_calls: how many datasets to read at once, in background threads, each into a bounded buffer.
                In addition, ``map_func`` is called and the first elements are read ahead for the next
                ``min(cycle_length, num_parallel_calls)`` datasets after those of the cycle. Default: nothing is read
                before it is requested. AUTOTUNE begins with ``cycle_length``, as reading is mostly waiting; the
                autotuner then adjusts it.
            deterministic: whether the order is the same as when reading one dataset at a time. Default: the value of
                ``Options().deterministic``, which is True unless set. If False, elements are returned as soon as they
                are ready.
            name: a label.

        Raises:
            TypeError: if ``map_func`` is not callable; while iterating, if it does not return a Dataset.
            ValueError: if a number is too small.

        >>> numbers = Dataset.range(1, 4).interleave(
        ...     lambda n: Dataset.from_tensors(n).repeat(3), cycle_length=2, block_length=2)
        >>> [int(x) for x in numbers]
        [1, 1, 2, 2, 1, 2, 3, 3, 3]
        """
        require_parallelism("interleave", num_parallel_calls, deterministic)
        cycle = AUTOTUNE if cycle_length is None else cycle_length
        block = 1 if block_length is None else block_length
        node = deferred.Interleave(
            self._plan,
            map_func,
            cycle,
            block,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            name=name,
        )
        return Dataset(node)

    # Transformations of the sequence

    def concatenate(self, dataset: Dataset[S], name: str | None = None) -> Dataset[T_co | S]:
        """Return the elements of this dataset, then those of another.

        Args:
            dataset: a dataset with elements of the same structure and dtypes.
            name: a label.

        Raises:
            TypeError: if ``dataset`` is not a Dataset, or its elements are not compatible.

        >>> [int(x) for x in Dataset.range(2).concatenate(Dataset.range(10, 12))]
        [0, 1, 10, 11]
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"concatenate(): expected a Dataset, got {dataset!r} of type {type(dataset).__name__}")
        return Dataset(deferred.Concatenate.of(self._plan, dataset.plan, name))

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset[tuple[np.int64, T_co]]:
        """Pair each element with its number, as ``(number, element)``.

        Args:
            start: the first number.
            name: a label.

        >>> [(int(i), text) for i, text in Dataset.from_tensor_slices(["a", "b"]).enumerate(start=1)]
        [(1, b'a'), (2, b'b')]
        """
        return Dataset(deferred.Enumerate(self._plan, start, name=name))

    def take(self, count: int, name: str | None = None) -> Dataset[T_co]:
        """Return the first elements.

        Args:
            count: how many; all of them if negative.
            name: a label.

        Warns:
            UserWarning: if ``skip`` of the same number is called on this dataset as well, and its order differs between
                iterations: then elements of one are also in the other. See ``split``.

        >>> [int(x) for x in Dataset.range(100).take(3)]
        [0, 1, 2]
        """
        return self._cut(deferred.Take(self._plan, count, name=name))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset[T_co]:
        """Return the elements before the first for which a function returns False.

        Args:
            predicate: takes an element as ``map`` passes it, returns a bool. It is not called after the first False.
            name: a label.

        Raises:
            TypeError: if ``predicate`` is not callable.
            SpecError: while iterating, if it returns anything but a bool.

        >>> [int(x) for x in Dataset.range(100).take_while(lambda x: x * x < 20)]
        [0, 1, 2, 3, 4]
        """
        return Dataset(deferred.TakeWhile(self._plan, predicate, name=name))

    def skip(self, count: int, name: str | None = None) -> Dataset[T_co]:
        """Return all elements except the first ones.

        Args:
            count: how many to leave out; all of them if negative.
            name: a label.

        Warns:
            UserWarning: as ``take``.

        >>> [int(x) for x in Dataset.range(5).skip(3)]
        [3, 4]
        """
        return self._cut(deferred.Skip(self._plan, count, name=name))

    def _cut(self, node: Take | Skip) -> Dataset[T_co]:
        """Return the dataset of a take or skip. Warn if both would divide a dataset without a stable order."""
        first = self._cuts.setdefault(node.count, node)
        if first.op != node.op and node.count > 0:
            unstable = next((part for part in walk(self._plan) if not part.traits.stable), None)
            if unstable is not None:
                warnings.warn(
                    f"{first} and {node.label()} overlap: {unstable} has another order in each iteration, so elements "
                    "of one are also in the other; use split() before it, or reshuffle_each_iteration=False",
                    stacklevel=3,
                )
        return Dataset(node)

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Dataset[T_co]:
        """Return every ``num_shards``-th element, starting at number ``index``, to split the data among workers.

        Shard early, preferably the file names, and before anything random.

        Args:
            num_shards: how many workers there are.
            index: which of them this is, from 0.
            name: a label.

        Raises:
            ValueError: if ``index`` is not below ``num_shards``.

        >>> [int(x) for x in Dataset.range(10).shard(num_shards=3, index=1)]
        [1, 4, 7]
        """
        return Dataset(deferred.Shard(self._plan, num_shards, index, name=name))

    def shard_by_process(
        self,
        rank: int | None = None,
        world_size: int | None = None,
        *,
        remainder: str = "drop",
        by: str = "auto",
        seed: int = 0,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Return this process's share of the elements, with the same number for each process of distributed training.

        Each element (each batch, if called after ``batch``) belongs to exactly one process. Each process avoids work on
        the others' elements: if whole files can be split, it reads only its own. Otherwise elements are split upstream
        of ``map`` functions, and rows of other processes are not read if the source has random access. ``explain()``
        shows where the split happens. Call it last, before ``prefetch``; ops after it see only this process's elements.
        For details see ``docs/howto/sharding.md``.

        All processes must build the same pipeline and start their iterations at the same time. They then use the same
        random numbers upstream. A shuffle of a source with random access has one order for all processes; any other
        shuffle reorders each process's own elements. Each pass of ``repeat`` is split separately. Upstream,
        ``deterministic=False`` has no effect. Functions that draw their own random numbers, or return datasets that do
        so without a seed, differ between processes; ``random_map`` does not.

        Args:
            rank: the rank of this process, from 0. Default: that of torch.distributed if it is initialised, else that
                of JAX, else the environment variable RANK, which torchrun sets; else 0 of 1. Determined at this call.
            world_size: the number of processes; given if and only if ``rank`` is.
            remainder: how to treat the last round, if there are not enough elements for all processes. ``"drop"``:
                leave it out. ``"pad"``: processes without an element get one of zeros (empty text), with the shapes and
                dtypes of their last one. ``"repeat"``: processes without an element get one from the beginning.
                ``"keep"``: keep it, so some processes have one element more, which must not take part in a collective
                operation. With files, all processes get the smallest number (``"drop"``) or the largest.
            by: ``"files"``: file ``i`` of the list, before shuffling, belongs to process ``i`` modulo ``world_size``.
                Ops after the files must not combine or count records of several files, as ``take``, ``enumerate`` and
                ``zip`` do. Also, unless the pipeline is infinite or ``remainder`` is ``"keep"``, the number of elements
                must follow from the numbers of records: each process then counts the records of all files once, when
                the first element is requested. ``"elements"``: element ``k`` belongs to process ``k`` modulo
                ``world_size``. ``"auto"``: files, if that is possible and there are at least as many as processes.
            seed: the seed for random ops without their own seed; the same in all processes.
            name: a label.

        Raises:
            ValueError: if ``rank`` is not below ``world_size``, or only one of them is given; if ``by`` is ``"files"``
                and the files cannot be split.
            TypeError: if an argument has the wrong type.

        >>> [int(x) for x in Dataset.range(7).shard_by_process(rank=1, world_size=3)]
        [1, 4]
        """
        if rank is None and world_size is None:
            rank, world_size = deferred.process_rank("shard_by_process")
        return Dataset(
            deferred.shard_plan(self._plan, rank, world_size, remainder=remainder, by=by, seed=seed, name=name)
        )

    def split(
        self,
        parts: Sequence[float] | Sequence[int],
        seed: int | None = None,
        *,
        by: str | Callable[..., Any] = "element",
        name: str | None = None,
    ) -> tuple[Dataset[T_co], ...]:
        """Divide the elements into datasets that never overlap, such as those for training and for validation.

        Each element is in exactly one of the parts: in the same one in each iteration, in each epoch, and in each run
        of the program with the same arguments and the same data. Within a part, the elements keep their order. Call it
        before ``shuffle`` and ``repeat``. ``docs/howto/training_and_validation.md`` is a guide.

        ``by="element"`` divides positions. With a seed, they are divided at random, where a known number of elements
        gives parts of exactly the stated sizes, and an unknown number approximately. Without a seed, the parts are
        consecutive: pass a seed, unless the elements are in random order, or the last ones are to be predicted from the
        first ones. Functions of ``map`` are not called for elements of other parts. A failing element keeps its
        position. Upstream, ``deterministic=False`` has no effect.

        ``by="file"`` divides the list of files that the dataset reads. Each part reads only its own files. A file that
        is listed several times, also by the name of a link to it, counts once and is in one part.

        ``by=function`` divides keys: all elements with the same key, such as the ID of a patient, are in the same part.
        The part depends only on the key and the seed, and so is the same in each dataset with this key, in any order.
        The fractions are those of the keys, approximately. Each part reads all elements and leaves out those of others.

        It corresponds to ``torch.utils.data.random_split``, scikit-learn's ``train_test_split`` and
        ``GroupShuffleSplit``, and ``keras.utils.split_dataset``.

        Args:
            parts: the fractions of the parts, which add up to 1; or the numbers of their elements (of files, with
                ``by="file"``), which add up to all of them. One number may be -1, for the rest.
            seed: determines the random division; None for consecutive parts. With keys, None means 0.
            by: ``"element"``, ``"file"``, or a function that takes an element as ``map`` passes it and returns its key,
                of numbers and text.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if the fractions or counts do not add up; if a part would be empty; if fractions of an unknown
                number have no seed; if an upstream op, such as ``shuffle``, moves elements to other positions in each
                iteration or, without a seed, in each run, so that parts would overlap; if the files cannot be divided.
            SpecError: while iterating, if a key is not made of numbers and text.

        >>> train, validation = Dataset.range(10).split([0.8, 0.2], seed=1)
        >>> [int(x) for x in validation]
        [7, 9]
        >>> people = Dataset.from_tensor_slices({"patient": [4, 7, 4, 7], "scan": [0, 1, 2, 3]})
        >>> parts = people.split([0.5, 0.5], seed=2, by=lambda row: row["patient"])
        >>> [[int(row["scan"]) for row in part] for part in parts]
        [[0, 2], [1, 3]]
        """
        return tuple(map(Dataset, deferred.split_plans(self._plan, parts, seed, by, name)))

    def distribute(
        self,
        workers: int = AUTOTUNE,
        *,
        engine: str = "processes",
        resources: Mapping[str, float] | None = None,
        deterministic: bool | None = None,
        max_restarts: int = 3,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Run all operations before this one in worker processes, on this machine or on a Ray cluster.

        The elements and their order are the same as without it, unless files are divided: then each worker shuffles and
        batches the elements of its own files. Each element is returned exactly once, also if workers die and are
        replaced. Operations after it run in this process. ``distribute(1)`` moves the pipeline out of the training
        process, whose interpreter it then does not slow down. Needs the extra ``process`` or ``distributed``.

        With several workers, each computes a share. Where positions can be counted without computing elements (arrays,
        ranges and indexed files, with ``map``, ``random_map``, ``batch``, ``zip``, ``enumerate``, and shuffles below
        them), worker ``k`` of n computes the elements k, k + n, and so on. Otherwise, files are divided. The order then
        depends on the number of workers, but not on their speed, and each worker ends with a short batch, or drops it
        with ``drop_remainder=True``: call ``batch`` after ``distribute`` to have one rest. A pipeline that cannot be
        divided runs in one worker. ``explain()`` shows the division and its reason. After an element has failed before
        a ``batch``, which moves all later batches, one worker computes the rest.

        A saved state has a position for each worker. It can be loaded with another number of workers if the pipeline is
        divided by elements.

        Args:
            workers: the number of workers. AUTOTUNE: as many as help, up to one per core of this machine, or up to as
                many actors as the Ray cluster has room for.
            engine: ``"processes"``: processes on this machine. ``"ray"``: actors of a Ray cluster, of the one that
                ``ray.init()`` has connected to, or else of one on this machine. If it has no room for an actor, one
                that runs does its work, too, and a warning is logged.
            resources: what a Ray actor needs, such as ``{"CPU": 2}``. Default: one CPU.
            deterministic: whether to keep the order. If False, elements are returned as they become available. Default:
                as the options say, normally True. The operations in a worker always keep their order.
            max_restarts: how often a worker is replaced within ten minutes, before its death is an error. A worker that
                shows no sign of life for ten seconds is killed and replaced, too.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if ``workers`` is less than 1, or ``engine`` is unknown.
            ImportError: while iterating: if cloudpickle or Ray is not installed.
            WorkerDiedError: while iterating: if a worker has died too often. Names its exit reason and its element.

        >>> squares = Dataset.range(6).map(lambda x: x * x).distribute(2)
        >>> [int(x) for x in squares]
        [0, 1, 4, 9, 16, 25]
        """
        return Dataset(
            deferred.Distribute(
                self._plan,
                workers,
                engine,
                resources,
                deterministic,
                max_restarts,
                deferred.divide,
                deferred.Autotuner,
                name=name,
            )
        )

    def assert_cardinality(self, expected_cardinality: int, name: str | None = None) -> Dataset[T_co]:
        """Declare the number of elements where it is unknown, such as the number of records in files.

        Then ``len`` works, and so do progress bars, the number of steps in Keras, and ``to_torch()`` in a DataLoader.
        The number is checked during iteration. In tf.data it is ``tf.data.experimental.assert_cardinality``.

        Args:
            expected_cardinality: the number of elements, including those that fail, or ``INFINITE_CARDINALITY``.
            name: a label for errors and plans.

        Raises:
            TypeError: if the number is not an int.
            ValueError: if it is negative, or the plan has a different known cardinality.
            CardinalityError: while iterating: if there are fewer elements, after the last one; if there are more, in
                the place of the first extra element, where the iteration ends.

        >>> even = Dataset.range(10).filter(lambda x: x % 2 == 0).assert_cardinality(5)
        >>> len(even), len(even.batch(2))
        (5, 3)
        """
        return Dataset(deferred.AssertCardinality(self._plan, expected_cardinality, name=name))

    def pad_to_cardinality(
        self, cardinality: int, mask_key: str = "valid", name: str | None = None
    ) -> Dataset[dict[str, Any]]:
        """Append elements of zeros up to a number of elements, and mark the others with True under ``mask_key``.

        Then all batches are full and no data are dropped, for example in an evaluation. Text is empty in the zeros. If
        the element spec does not determine the shapes, they are those of the last element. It is
        ``tf.data.experimental.pad_to_cardinality``, which requires known shapes.

        Args:
            cardinality: the number of elements of the result.
            mask_key: the key of the mask, a bool: False in the appended elements. It replaces a component of that key.
            name: a label.

        Raises:
            TypeError: if the number is not an int, or the key is not text.
            ValueError: if the number of elements is unknown, infinite or larger; or if the elements are not dicts,
                which may be known only while iterating.

        >>> list(Dataset.from_tensor_slices({"a": [1, 2]}).pad_to_cardinality(3))[1:]
        [{'a': np.int64(2), 'valid': np.True_}, {'a': np.int64(0), 'valid': np.False_}]
        """
        return Dataset(deferred.PadToCardinality(self._plan, cardinality, mask_key, name=name))

    def unique(self, name: str | None = None) -> Dataset[T_co]:
        """Drop elements that have occurred before.

        Elements are equal if they have the same dtypes, shapes and values; NaN equals NaN. The elements seen so far are
        kept in memory, and in saved states.

        Args:
            name: a label.

        Raises:
            SpecError: while iterating, if an element contains an object that is not hashable.

        >>> [int(x) for x in Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique()]
        [3, 1, 2]
        """
        return Dataset(deferred.Unique(self._plan, name=name))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset[T_co]:
        """Drop the elements that fail. Interrupts are not caught.

        After 100,000 consecutive failures, the last error is raised, because the input might fail forever.

        Args:
            log_warning: whether to log each error and its origin to the logger ``dataset``.
            name: a label.

        >>> numbers = Dataset.from_tensor_slices([1, 0, 4]).map(lambda x: 8 // int(x))
        >>> [int(x) for x in numbers.ignore_errors()]
        [8, 2]
        """
        return Dataset(deferred.IgnoreErrors(self._plan, log_warning, name=name))

    def skip_records(self, file: str | os.PathLike[str], name: str | None = None) -> Dataset[T_co]:
        """Leave out the elements that are made from records named in a skip list, such as damaged examples.

        The file has one JSON object per line, as ``python -m dataset state --records`` prints them and
        ``SourceRecord.to_dict()`` returns them: ``{"file": "/data/a.tfrecord", "number": 17}``. Other keys are ignored
        for records of files. For other sources, ``source`` takes the place of ``file``, and ``inputs`` and ``within``
        are compared if they are given. The file is read when this method is called. It may be empty: then the op costs
        nothing, and records can be added later without invalidating saved states.

        An element that is made from several records, such as a pair of ``zip``, is left out if any of them is listed.
        So use this op before ``batch``, preferably directly after the reader. A record that was in the buffer of an
        earlier op when a state was saved is also left out; one in the buffer of a later op, such as ``shuffle``, is
        not. Names that match no element in a whole pass are logged as a warning to the logger ``dataset``.

        Args:
            file: the path of the skip list, local or remote.
            name: a label.

        Raises:
            ValueError: a line of the file does not name a record.
            OSError: the file cannot be read.
            SpecError: while iterating, if the records that an element is made from are unknown.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "skip.jsonl")
        ...     with open(path, "w") as file:
        ...         _ = file.write('{"source": "letters", "number": 1}')
        ...     letters = Dataset.from_tensor_slices([b"a", b"b", b"c"], name="letters").skip_records(path)
        >>> list(letters)
        [b'a', b'c']
        """
        path = deferred.path_string(file)
        names = deferred.skip_list("skip_records", deferred.read_file(path).decode(), redacted(path))
        return Dataset(deferred.SkipRecords(self._plan, names, name=name))

    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset[T_co]:
        """Repeat the dataset. Each pass runs it again, with a different order if it is shuffled.

        Args:
            count: how often; infinitely if None or negative.
            name: a label.

        >>> [int(x) for x in Dataset.range(2).repeat(3)]
        [0, 1, 0, 1, 0, 1]
        """
        return Dataset(deferred.Repeat(self._plan, count, name=name))

    def shuffle(
        self,
        buffer_size: int | None,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Shuffle the elements.

        A buffer is filled; each output element is drawn from it at random and replaced by the next input element.
        In-memory arrays and files with an index are shuffled by index, so a large buffer is cheap, and a buffer of all
        elements takes no space in a saved state.

        Args:
            buffer_size: the number of elements to draw from; None, or UNKNOWN_CARDINALITY (-2), for all of them.
            seed: makes the orders repeatable: a pipeline built again has the same sequence of orders.
            reshuffle_each_iteration: whether each epoch and each new iterator gets a different order; None means True.
            name: a label.

        Raises:
            ValueError: if ``buffer_size`` is less than 1.

        >>> sorted(int(x) for x in Dataset.range(5).shuffle(buffer_size=5, seed=1))
        [0, 1, 2, 3, 4]
        """
        return Dataset(deferred.Shuffle(self._plan, buffer_size, seed, reshuffle_each_iteration, name=name))

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[Any, T_co]]:
        """Drop or repeat elements to reach a target distribution of classes; elements become (class, element) pairs.

        The input is iterated up to three times in parallel, and ``class_func`` is called each time.

        Args:
            class_func: takes an element as ``map`` passes it, returns its class, an int from 0.
            target_dist: the target share of each class.
            initial_dist: the share of each class in the data. Default: estimated from the elements read so far.
            seed: makes the choice repeatable.
            name: a label.

        Raises:
            TypeError: if ``class_func`` is not callable, or a distribution is not a vector of numbers.
            ValueError: if a distribution does not add up to 1, or a target class does not occur in the data; while
                iterating, in the place of an element whose class is out of range.

        >>> numbers = Dataset.range(10_000)  # one in ten is of class 1
        >>> even = numbers.rejection_resample(lambda x: int(x % 10 == 0), [0.5, 0.5], [0.9, 0.1], seed=1)
        >>> classes = [label for label, number in even]
        >>> bool(0.45 < np.mean(classes) < 0.55)
        True
        """
        return Dataset(deferred.rejection_resample_plan(self._plan, class_func, target_dist, initial_dist, seed, name))

    # Batches

    @overload
    def batch(
        self: Dataset[Unknown],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Any]: ...

    @overload
    def batch(
        self: Dataset[Scalar],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Array]: ...

    @overload
    def batch(
        self: Dataset[np.ndarray[Any, np.dtype[A]]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[npt.NDArray[A]]: ...

    @overload
    def batch(
        self: Dataset[NamedFields],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[T_co]: ...

    @overload
    def batch(
        self: Dataset[tuple[np.ndarray[Any, np.dtype[A]], Scalar | Array]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[npt.NDArray[A], Array]]: ...

    @overload
    def batch(
        self: Dataset[tuple[Any, Any]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[Any, Any]]: ...

    @overload
    def batch(
        self: Dataset[tuple[Any, ...]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[Any, ...]]: ...

    @overload
    def batch(
        self: Dataset[dict[str, Any]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]: ...

    @overload
    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[T_co]: ...

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Stack consecutive elements into arrays with a new first axis.

        Args:
            batch_size: elements per batch.
            drop_remainder: whether to leave out a last batch that is not full.
            num_parallel_calls: the most batches stacked at once, in the background, ahead of the consumer by at most
                this many batches. Default: one at a time, when it is requested. AUTOTUNE begins with the number of
                cores that this process may use. It pays off for large elements.
            deterministic: whether to keep the order of the batches, as for ``map``.
            name: a label.

        Raises:
            ValueError: if ``batch_size`` is less than 1.
            SpecError: while iterating, if the elements of a batch differ in structure, shape or dtype.

        >>> [batch.tolist() for batch in Dataset.range(5).batch(2)]
        [[0, 1], [2, 3], [4]]
        """
        return Dataset(
            deferred.Batch(
                self._plan,
                batch_size,
                drop_remainder,
                num_parallel_calls=num_parallel_calls,
                deterministic=deterministic,
                name=name,
            )
        )

    @overload
    def padded_batch(
        self: Dataset[Unknown],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]: ...

    @overload
    def padded_batch(
        self: Dataset[Scalar],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Array]: ...

    @overload
    def padded_batch(
        self: Dataset[np.ndarray[Any, np.dtype[A]]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[npt.NDArray[A]]: ...

    @overload
    def padded_batch(
        self: Dataset[NamedFields],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[T_co]: ...

    @overload
    def padded_batch(
        self: Dataset[tuple[np.ndarray[Any, np.dtype[A]], Scalar | Array]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[tuple[npt.NDArray[A], Array]]: ...

    @overload
    def padded_batch(
        self: Dataset[tuple[Any, Any]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[tuple[Any, Any]]: ...

    @overload
    def padded_batch(
        self: Dataset[tuple[Any, ...]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[tuple[Any, ...]]: ...

    @overload
    def padded_batch(
        self: Dataset[dict[str, Any]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]: ...

    @overload
    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[T_co]: ...

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Batch components of different sizes, padded at the end.

        Args:
            batch_size: elements per batch.
            padded_shapes: shapes in the structure of an element, None or -1 for the largest in the batch. Default: the
                largest in every dimension.
            padding_values: padding values in the structure of an element, or one for all. Default 0 or ``b""``.
            drop_remainder: whether to leave out a last batch that is not full.
            name: a label.

        Raises:
            ValueError: if ``batch_size`` is less than 1, or shapes are incompatible with the elements.
            SpecError: while iterating, if a component is larger than its padded shape.

        >>> rows = Dataset.range(1, 4).map(lambda n: np.full(n, n))
        >>> for batch in rows.padded_batch(3, padding_values=-1):
        ...     print(batch)
        [[ 1 -1 -1]
         [ 2  2 -1]
         [ 3  3  3]]
        """
        node = deferred.PaddedBatch(self._plan, batch_size, drop_remainder, padded_shapes, padding_values, name=name)
        return Dataset(node)

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: npt.DTypeLike = np.int64,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Batch components of different sizes as RaggedTensors.

        A component is dense, as from ``batch``, if ``element_spec`` has its full shape. If a component has unknown
        dimensions, the last unknown one and all before it are ragged; after a ``map``, whose sizes are unknown, all
        dimensions are ragged. RaggedTensors are stacked and keep their row splits.

        Args:
            batch_size: elements per batch.
            drop_remainder: whether to leave out a last batch that is not full.
            row_splits_dtype: the dtype of row splits for dense components: int32 or int64.
            name: a label.

        Raises:
            ValueError: if ``batch_size`` is less than 1, or ``row_splits_dtype`` is another dtype.
            SpecError: while iterating, if elements of a batch differ in structure, dtype, rank or inner shape.

        >>> next(iter(Dataset.range(1, 4).map(lambda n: np.full(n, n)).ragged_batch(3)))
        RaggedTensor([[1], [2, 2], [3, 3, 3]], dtype=int64)
        """
        return Dataset(deferred.RaggedBatch(self._plan, batch_size, drop_remainder, row_splits_dtype, name=name))

    def sparse_batch(self, batch_size: int, row_shape: Any, name: str | None = None) -> Dataset[Any]:
        """Batch single dense components of different sizes as SparseTensors. Every cell is stored, including zeros.

        Args:
            batch_size: elements per batch; the last may have fewer.
            row_shape: the maximum shape of an element; None in a dimension for the largest in the batch.
            name: a label.

        Raises:
            TypeError: if elements have more than one component, or are ragged or sparse.
            ValueError: if ``batch_size`` is less than 1, or ``row_shape`` is incompatible with the elements.
            SpecError: while iterating, if an element is larger than ``row_shape``, or has another rank.

        >>> batch = next(iter(Dataset.range(1, 4).map(lambda n: np.full(n, n)).sparse_batch(3, row_shape=[4])))
        >>> batch.to_dense()
        array([[1, 0, 0, 0],
               [2, 2, 0, 0],
               [3, 3, 3, 0]])
        """
        return Dataset(deferred.SparseBatch(self._plan, batch_size, row_shape=row_shape, name=name))

    def rebatch(
        self, batch_size: int | Sequence[int], drop_remainder: bool = False, name: str | None = None
    ) -> Dataset[Any]:
        """Change the batch size: equivalent to ``unbatch().batch(batch_size)``, but at the cost of slicing.

        Args:
            batch_size: rows per batch; or several sizes, used in turn and repeated. A batch of size 0 is empty.
            drop_remainder: whether to leave out a last batch that is not full.
            name: a label.

        Raises:
            TypeError: if ``batch_size`` contains anything but ints.
            ValueError: if a size is negative or all sizes are 0, or components are scalars.
            SpecError: while iterating, if components differ in the number of rows, or the rows of a batch in shape.

        >>> [batch.tolist() for batch in Dataset.range(7).batch(4).rebatch([3, 0, 1])]
        [[0, 1, 2], [], [3], [4, 5, 6], []]
        """
        return Dataset(deferred.Rebatch(self._plan, batch_size, drop_remainder, name=name))

    def unbatch(self, name: str | None = None) -> Dataset[Any]:
        """Split each element into its rows.

        Args:
            name: a label.

        Raises:
            ValueError: if a component is a scalar.

        >>> [int(x) for x in Dataset.from_tensors([1, 2]).repeat(2).unbatch()]
        [1, 2, 1, 2]
        """
        return Dataset(deferred.Unbatch(self._plan, name=name))

    def pack(
        self,
        length: int,
        *,
        window: int = 1000,
        key: Any = None,
        too_long: str = "split",
        boundaries: str = "segment_ids",
        pad: Any = 0,
        max_sequences: int | None = None,
        shuffle: bool = False,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Pack sequences of tokens into rows of ``length`` tokens, with little padding.

        The components that are arrays are token features: one row per token, and in each element all of one length.
        They are cut at the same places. Other components, numbers and bytes, are values of a sequence: each row has an
        array of those of its sequences.

        The sequences of each ``window`` elements are placed by best-fit-decreasing. No sequence goes from one window to
        the next. Rows, and sequences within a row, are in the order of the input. Sequences without tokens are left
        out. A saved state holds the position of the window in the input, and no elements.

        Arrays of int32 that describe the sequences of a row are added: to a dict under their names, to a tuple as last
        components. A single array becomes a tuple with them. ``boundaries`` selects them:

        - ``"segment_ids"``: ``segment_ids``, of shape (length,), is 1 for the tokens of the first sequence, 2 for those
          of the second, and 0 for padding. ``positions``, of shape (length,), counts the tokens of each sequence from 0
          and is 0 for padding.
        - ``"cu_seqlens"``: ``cu_seqlens`` has the place of the first token of each sequence, and ``length`` last, as
          kernels for attention over sequences of different lengths take it. Padding is one more sequence, so that they
          compute every token. ``positions`` is as above.
        - ``"lengths"``: ``lengths`` has the number of tokens of each sequence, without the padding.

        A ``shard_by_process(remainder="keep")`` after it gives each process whole windows, and so does any remainder if
        ``repeat()`` precedes. Otherwise each process packs all windows, so that all get equally many rows.

        Args:
            length: tokens per row.
            window: elements that are packed together. More of them need less padding and more memory.
            key: the name or position of the token feature whose length counts. Default: the first.
            too_long: what becomes of a sequence with more than ``length`` tokens. ``"split"``: pieces of ``length``
                tokens and a shorter last one, each a sequence of its own; ``"truncate"``: its first ``length`` tokens;
                ``"drop"``: nothing; ``"error"``: a ValueError in its place.
            boundaries: how to tell the sequences of a row apart.
            pad: the token that fills a row, or a dict with one for some keys of the elements. Default 0 or ``b""``.
            max_sequences: the maximum number of sequences in a row. Default: any.
            shuffle: whether to shuffle the rows of each window, in a new order for each epoch.
            seed: the seed of that order.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type, or ``pad`` is not a value of the dtype of the tokens.
            ValueError: if an argument has a wrong value, the elements have no array, or a key that is added exists.
            SpecError: while iterating, if the token features of an element differ in length, or elements in dtypes.

        >>> texts = Dataset.range(1, 5).map(lambda n: np.full(n, n))
        >>> for tokens, segment_ids, positions in texts.pack(6):
        ...     print(tokens, segment_ids, positions)
        [1 3 3 3 0 0] [1 2 2 2 0 0] [0 0 1 2 0 0]
        [2 2 4 4 4 4] [1 1 2 2 2 2] [0 1 0 1 2 3]
        """
        return Dataset(
            deferred.Pack(
                self._plan, length, window, key, too_long, boundaries, pad, max_sequences, shuffle, seed, name=name
            )
        )

    def batch_by_tokens(
        self,
        max_tokens: int,
        *,
        length: Callable[..., Any] | None = None,
        window: int = 1000,
        layout: str = "padded",
        pad_to: int | Sequence[int] | None = None,
        pad: Any = 0,
        across_processes: bool | int = False,
        shuffle: bool = True,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Batch sequences of similar lengths, so that no batch has more than ``max_tokens`` tokens, padding included.

        The sequences of each ``window`` elements are sorted by length and cut into batches, which come in random order.
        Each element is in exactly one batch. A sequence that exceeds ``max_tokens`` by itself is a ValueError. A saved
        state holds the position of the window in the input, and no elements.

        Args:
            max_tokens: the maximum size of a batch. Padded: the number of elements times the length they are padded to;
                otherwise the number of tokens.
            length: takes an element, returns its number of tokens. Default: the length of its first array.
            window: elements that are sorted together.
            layout: ``"padded"``: as ``padded_batch``; ``"ragged"``: as ``ragged_batch``; ``"packed"``: the arrays of a
                batch are concatenated, and ``cu_seqlens`` and ``positions`` are added, as ``pack`` does.
            pad_to: lengths to pad to, so that there are fewer shapes: multiples of an int, or one of several lengths.
                Default: the longest in the batch.
            pad: the padding value, or a dict with one for some keys of the elements. Default 0 or ``b""``.
            across_processes: the number of processes that will share the batches, or True for the number that
                ``shard_by_process()`` finds. Each window then has equally many batches for each of them, and the
                batches of a step are similar in size. A ``shard_by_process`` after it deals them.
            shuffle: whether to shuffle the batches of a window, in a new order for each epoch; else the largest is
                first.
            seed: the seed of that order.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type, or ``pad`` is not a value of the dtype of the tokens.
            ValueError: if an argument has a wrong value, or the elements have no array.
            SpecError: while iterating, if elements of a batch differ in structure, dtype or rank.

        >>> texts = Dataset.range(1, 8).map(lambda n: np.full(n, n))
        >>> for batch in texts.batch_by_tokens(10, shuffle=False):
        ...     print(batch.tolist())
        [[4, 4, 4, 4, 0], [5, 5, 5, 5, 5]]
        [[1, 0, 0], [2, 2, 0], [3, 3, 3]]
        [[7, 7, 7, 7, 7, 7, 7]]
        [[6, 6, 6, 6, 6, 6]]
        """
        op = "batch_by_tokens"
        if across_processes is True:
            processes = deferred.process_rank(op)[1]
        elif across_processes is False:
            processes = 1
        else:
            processes = require_int(op, "across_processes", across_processes, minimum=1)
        return Dataset(
            deferred.BatchByTokens(
                self._plan, max_tokens, length, window, layout, pad_to, pad, processes, shuffle, seed, name=name
            )
        )

    def concat_split(
        self, length: int, separator: Any = None, drop_remainder: bool = False, name: str | None = None
    ) -> Dataset[Any]:
        """Concatenate all sequences of tokens into one stream, and cut it into rows of ``length`` tokens.

        No row has padding, but sequences begin and end anywhere. All components must be arrays with one row per token,
        in each element of one length. Sequences without tokens are left out. A saved state holds the tokens since the
        last full row.

        Args:
            length: tokens per row.
            separator: a token to add after each sequence, or a dict with one for some keys of the elements, and 0 or
                ``b""`` for the others. Default: none.
            drop_remainder: whether to leave out a last row that is not full.
            name: a label.

        Raises:
            TypeError: if ``separator`` is not a value of the dtype of the tokens.
            ValueError: if ``length`` is less than 1, or the elements have a component that is not an array.
            SpecError: while iterating, if the components of an element differ in length, or elements in dtypes.

        >>> texts = Dataset.range(1, 5).map(lambda n: np.full(n, n))
        >>> for tokens in texts.concat_split(5, separator=0):
        ...     print(tokens)
        [1 0 2 2 0]
        [3 3 3 0 4]
        [4 4 4 0]
        """
        return Dataset(deferred.ConcatSplit(self._plan, length, separator, drop_remainder, name=name))

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Batch elements of similar length together, so that little padding is needed.

        Args:
            element_length_func: takes an element as ``map`` passes it, returns its length, an int. A function that only
                reads a length, such as ``len`` or ``lambda tokens, label: len(tokens)``, is fastest: the lengths of
                thousands of rows in memory are then determined at once.
            bucket_boundaries: ascending lengths; bucket ``i`` holds the lengths below boundary ``i``, the last bucket
                the rest.
            bucket_batch_sizes: elements per batch for each bucket, one more than there are boundaries.
            padded_shapes: as in ``padded_batch``. Default: the largest in the batch.
            padding_values: as in ``padded_batch``.
            pad_to_bucket_boundary: whether to pad unknown dimensions to the bucket's boundary minus 1.
            no_padding: whether to disable padding, for sparse and ragged elements.
            drop_remainder: whether to leave out batches that are not full at the end.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type, or elements cannot be padded.
            ValueError: if the boundaries are not ascending, or the number of sizes does not match the boundaries; while
                iterating, with ``pad_to_bucket_boundary``, in the place of an element that is at least as long as the
                last boundary.

        >>> rows = Dataset.range(1, 6).map(lambda n: np.full(n, n))
        >>> for batch in rows.bucket_by_sequence_length(len, [3], [2, 3]):
        ...     print(batch)
        [[1 0]
         [2 2]]
        [[3 3 3 0 0]
         [4 4 4 4 0]
         [5 5 5 5 5]]
        """
        node = deferred.BucketBySequenceLength(
            self._plan,
            element_length_func,
            bucket_boundaries,
            bucket_batch_sizes,
            padded_shapes,
            padding_values,
            pad_to_bucket_boundary,
            no_padding,
            drop_remainder,
            name=name,
        )
        return Dataset(node)

    # Datasets of datasets

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Group consecutive elements into datasets. ``flat_map`` turns them into elements, such as overlapping batches.

        For arrays of consecutive elements, ``sliding_window`` is shorter.

        A window of tuples is a tuple of datasets, a window of dicts a dict of datasets. The elements of a window are
        already in memory: it can be iterated at any time, and several times.

        Args:
            size: elements per window.
            shift: the distance between the starts of consecutive windows. Default ``size``.
            stride: the distance between the elements of a window.
            drop_remainder: whether to leave out the windows at the end that are not full.
            name: a label.

        Raises:
            ValueError: if a number is less than 1.

        >>> for window in Dataset.range(7).window(3, shift=2, drop_remainder=True):
        ...     print([int(x) for x in window])
        [0, 1, 2]
        [2, 3, 4]
        [4, 5, 6]
        >>> pairs = Dataset.range(4).window(2, shift=1, drop_remainder=True).flat_map(lambda window: window.batch(2))
        >>> [pair.tolist() for pair in pairs]
        [[0, 1], [1, 2], [2, 3]]
        """
        return Dataset(deferred.Window(self._plan, size, shift, stride, drop_remainder, name=name))

    def sliding_window(
        self, size: int, shift: int = 1, stride: int = 1, pad: Any = None, name: str | None = None
    ) -> Dataset[Any]:
        """Return windows of consecutive elements as arrays, with a new first axis.

        Element ``i`` holds the input elements ``i * shift``, ``i * shift + stride``, and so on. The windows are those
        of ``numpy.lib.stride_tricks.sliding_window_view``, and of ``window``, ``flat_map`` and ``batch``, for each
        component. They share memory and are read-only; ``batch`` copies them.

        If the input has random access, so have the windows: ``dataset[i]`` reads only what is in the window.

        Args:
            size: elements per window.
            shift: the distance between the starts of consecutive windows.
            stride: the distance between the elements of a window.
            pad: the value that fills the windows at the end that are not full, in all components or in the structure of
                the elements. By default, these windows are left out.
            name: a label.

        Raises:
            ValueError: if a number is less than 1.
            TypeError: if ``pad`` is not a value of a component's dtype.

        >>> [window.tolist() for window in Dataset.range(5).sliding_window(3)]
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        >>> [window.tolist() for window in Dataset.range(5).sliding_window(3, shift=2, pad=-1)]
        [[0, 1, 2], [2, 3, 4], [4, -1, -1]]
        >>> series = Dataset.from_tensor_slices({"time": [1, 2, 3], "load": [0.5, 0.7, 0.6]})
        >>> series.sliding_window(2)[1]
        {'time': array([2, 3]), 'load': array([0.7, 0.6])}
        """
        return Dataset(deferred.SlidingWindow(self._plan, size, shift, stride, pad=pad, name=name))

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Dataset[T_co]], Dataset[S]],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Dataset[S]:
        """Group elements by key into windows, and reduce each window with a function.

        As soon as there are enough elements with a key, ``reduce_func`` is called with the key and a dataset of them,
        and the elements of the returned dataset are output. Windows that are not full follow at the end, in the order
        of their keys.

        Args:
            key_func: takes an element as ``map`` passes it, returns an int.
            reduce_func: takes a key, as int64, and a Dataset of elements; returns a Dataset.
            window_size: elements per window.
            window_size_func: takes a key, returns the number of elements in its windows; an alternative to
                ``window_size``. Called once for each key.
            name: a label.

        Raises:
            TypeError: if a function is not callable; while iterating, if ``reduce_func`` does not return a Dataset.
            ValueError: if both or neither of ``window_size`` and ``window_size_func`` are given; if a size is less than
                1.
            SpecError: while iterating, if ``key_func`` or ``window_size_func`` does not return an int.

        >>> batches = Dataset.range(7).group_by_window(
        ...     key_func=lambda x: x % 2, reduce_func=lambda key, window: window.batch(3), window_size=3)
        >>> [batch.tolist() for batch in batches]
        [[0, 2, 4], [1, 3, 5], [6]]
        """
        return Dataset(
            deferred.GroupByWindow(self._plan, key_func, reduce_func, window_size, window_size_func, name=name)
        )

    def group_by_reducer(self, key_func: Callable[..., Any], reducer: Reducer, name: str | None = None) -> Dataset[Any]:
        """Group elements by key, and reduce each group to one element, in the order of the keys.

        It is ``tf.data.experimental.group_by_reducer``. Only a state for each key is held, not the elements. The first
        result needs all elements, and so does ``element_spec``, which computes it.

        Args:
            key_func: takes an element as ``map`` passes it, returns an int.
            reducer: the functions that make the initial state, the next state, and the result.
            name: a label.

        Raises:
            TypeError: if ``key_func`` is not callable, or ``reducer`` is not a Reducer.
            SpecError: while iterating, if ``key_func`` does not return an int, or the structure or a dtype of a state
                changes.

        >>> from dataset import Reducer
        >>> means = Reducer(
        ...     init_func=lambda key: (0, 0),
        ...     reduce_func=lambda state, x: (state[0] + x, state[1] + 1),
        ...     finalize_func=lambda total, count: total / count)
        >>> [float(mean) for mean in Dataset.range(7).group_by_reducer(lambda x: x % 2, means)]
        [3.0, 3.0]
        """
        return Dataset(deferred.group_by_reducer_plan(self._plan, key_func, reducer, name))

    # Execution

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
        return Dataset(
            deferred.FileCache(self._plan, deferred.local_folder("cache", filename), on_mismatch=on_mismatch, name=name)
        )

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

    def with_options(self, options: Options, name: str | None = None) -> Dataset[T_co]:
        """Return the dataset with other settings. Settings made later in a chain take precedence.

        Args:
            options: the settings.
            name: a label.

        Raises:
            TypeError: if ``options`` is not an Options.

        >>> options = Options()
        >>> options.optimization.enabled = False
        >>> Dataset.range(3).with_options(options).options()
        Options(optimization=OptimizationOptions(enabled=False))
        """
        if not isinstance(options, Options):
            raise TypeError(f"with_options(): expected an Options, got {options!r} of type {type(options).__name__}")
        return Dataset(deferred.WithOptions(self._plan, options.freeze(), name=name))

    def options(self) -> Options:
        """Return all settings of this dataset and its inputs, merged; they cannot be changed."""
        return deferred.options_of(self._plan).freeze()

    def apply(self, transformation_func: Callable[[Self], S]) -> S:
        """Apply a function to this dataset, so that custom transformations fit into a chain.

        Args:
            transformation_func: takes a Dataset, returns a Dataset.

        Raises:
            TypeError: if it returns anything else.

        >>> def every_other(dataset):
        ...     return dataset.shard(2, 0)
        >>> [int(x) for x in Dataset.range(6).apply(every_other)]
        [0, 2, 4]
        """
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"apply(): the function must return a Dataset, got {result!r}")
        return result

    # Results

    def get_single_element(self, name: str | None = None) -> T_co:
        """Return the only element of a dataset, for example to run a pipeline on a single value.

        Args:
            name: a label.

        Raises:
            ValueError: if the dataset is empty or has more than one element.

        >>> Dataset.from_tensors([1, 2]).map(lambda x: x * 10).get_single_element()
        array([10, 20])
        """
        return cast("T_co", deferred.get_single_element(self._plan, iter(self), name))

    def reduce(self, initial_state: S, reduce_func: Callable[[S, Any], S], name: str | None = None) -> S:
        """Combine all elements into one value.

        Args:
            initial_state: an element; the result for an empty dataset.
            reduce_func: takes the state and an element (a tuple as one argument), returns the next state.
            name: a label.

        Raises:
            SpecError: if ``reduce_func`` returns a state with another structure.

        >>> Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x)
        np.int64(10)
        """
        del name  # no op to label
        return cast("S", deferred.reduce(self, initial_state, reduce_func))

    def as_numpy_iterator(self) -> DatasetIterator[T_co]:
        """Return an iterator over the elements; ``iter(dataset)`` is the same."""
        return iter(self)

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

    # Frameworks

    def to_queue(self, queue: Any) -> QueueFeeder:
        """Put the elements into a queue, in a background thread. Beyond tf.data.

        At the end, the queue is closed: by ``close()``, by ``shutdown()``, or before Python 3.13 by an element
        ``StopIteration()`` in a ``queue.Queue``. An exception is put into the queue and ends the data.

        Args:
            queue: a queue of ``dataset.queues``, or a ``queue.Queue``.

        Returns:
            A handle of the thread, with ``join(timeout)`` and ``close()``; also a context manager, which closes it.

        Raises:
            TypeError: if ``queue`` is of another kind.

        >>> from dataset.queues import FIFOQueue
        >>> queue = FIFOQueue(capacity=10)
        >>> with Dataset.range(3).to_queue(queue):
        ...     queue.dequeue_many(3)
        array([0, 1, 2])
        """
        return deferred.QueueFeeder(self, queue)

    def to_ray(self, shares: int = AUTOTUNE) -> Any:
        """Return a ``ray.data.Dataset`` of the elements. Needs the extra ``distributed``.

        Each read task computes a share of the elements, divided as by ``distribute``. Rows are in the order of the
        shares. The keys of dicts become columns; other elements become the column ``item``, or ``item_0``, ``item_1``
        and so on for tuples.

        Args:
            shares: the number of read tasks. AUTOTUNE: one per core of the Ray cluster.

        Raises:
            ImportError: if Ray is not installed.

        >>> Dataset.range(3).map(lambda x: {"x": x * x}).to_ray(2).sum("x")  # doctest: +SKIP
        5
        """
        count = bounded(shares, deferred.actors_that_fit({})) if shares == AUTOTUNE else shares
        division = deferred.divide(self._plan, count)
        return deferred.to_ray([Dataset(division.share(rank)) for rank in range(division.workers)])

    @overload
    def to_torch(
        self, device: Any = None, pin_memory: bool = False, map_style: Literal[False] = False
    ) -> TorchIterableDataset: ...

    @overload
    def to_torch(
        self, device: Any = None, pin_memory: bool = False, *, map_style: Literal[True]
    ) -> TorchMapDataset: ...

    def to_torch(
        self, device: Any = None, pin_memory: bool = False, map_style: bool = False
    ) -> TorchIterableDataset | TorchMapDataset:
        """Return a ``torch.utils.data.IterableDataset`` of the elements, as tensors. Needs the extra ``torch``.

        Iterate over it directly, or pass it to a DataLoader. A tensor shares the memory of its array. PyTorch has no
        read-only tensors, so read-only arrays, such as views of a source or of a cache, are copied.

        ``DataLoader(dataset.to_torch(), batch_size=None, num_workers=4)`` runs the pipeline in processes. Each process
        produces a part of the elements. Each element is returned once, and in order if it is not shuffled. This pays
        off for functions that hold the interpreter lock; otherwise threads (``num_parallel_calls``) are cheaper. A
        ``shuffle`` of a source without random access shuffles within each worker's part. Each worker has its own memory
        cache, which lasts as long as the worker: use ``persistent_workers=True``. The cores and the memory that
        AUTOTUNE may use are divided among the workers.

        Passes are numbered from 0, also in workers, and the number determines the random orders; ``set_epoch(n)`` sets
        the number of the next pass. Iterators have ``state_dict()`` and ``load_state_dict()``, with which torchdata's
        ``StatefulDataLoader`` resumes in the middle of an epoch, with the same number of workers.

        Text is ``bytes``, and arrays of text are nested lists. A RaggedTensor becomes a nested tensor with the jagged
        layout, a SparseTensor a sparse COO tensor, a Dataset in an element a dataset of tensors. bfloat16 and float8
        arrays use the dtypes of ml_dtypes.

        Args:
            device: the device of the tensors, such as ``"cuda"``; default, host memory. For CUDA, one element is
                produced ahead and copied from pinned memory on a separate stream, while the device computes with the
                previous one. Not for use in the workers of a DataLoader.
            pin_memory: whether tensors in host memory are pinned, for non-blocking copies. Without an accelerator it
                warns, and has no effect.
            map_style: whether to return a ``torch.utils.data.Dataset`` with ``__getitem__`` and ``__len__`` instead,
                for PyTorch's samplers. It requires random access and a known length.

        Raises:
            TypeError: for a component that has no tensor type in PyTorch, such as datetime64 (while iterating, if that
                is unknown before running user code); with ``map_style``, if the op named in the message has no random
                access or the length is unknown.
            ValueError: if the device does not exist.
            ImportError: if torch is not installed.

        >>> dataset = Dataset.from_tensor_slices({"x": np.eye(4, dtype=np.float32), "y": [0, 1, 2, 3]}).batch(2)
        >>> for batch in dataset.to_torch():
        ...     print(batch["x"].shape, batch["y"])
        torch.Size([2, 4]) tensor([0, 1])
        torch.Size([2, 4]) tensor([2, 3])
        >>> dataset.to_torch(map_style=True)[-1]["y"]
        tensor([2, 3])
        """
        load_extra("torch", "torch", "to_torch() needs")
        require_bool("to_torch", "pin_memory", pin_memory)
        require_bool("to_torch", "map_style", map_style)
        return deferred.torch_dataset(self, device, pin_memory, map_style)

    def to_keras(self, class_weight: Mapping[int, float] | None = None) -> Any:
        """Return the dataset for ``fit``, ``evaluate`` and ``predict`` of Keras 3, on any backend.

        An element is one batch: ``x``, ``(x, y)`` or ``(x, y, sample_weight)``, each of them an array or, for models
        with several inputs or outputs, a tuple or dict of arrays. ``predict`` uses ``x``. Each epoch is a new pass over
        the dataset, so a shuffled dataset has a new order. Keras knows the number of steps if ``cardinality()`` is
        known. With ``steps_per_epoch`` an epoch continues where the last one stopped; infinite datasets require it.
        ``batch_size``, ``shuffle`` and ``validation_split`` of ``fit`` are for arrays in memory.

        Floats are converted to ``keras.config.floatx()``, as for arrays in memory; other dtypes are unchanged. Text is
        supported on the TensorFlow backend only. No batch is produced ahead except by ``prefetch``; on TensorFlow, one
        more. Keras itself takes one batch to build a model, and to determine the shapes of targets before its first
        training.

        An error in the pipeline is raised by ``fit`` unchanged; on TensorFlow as one of ``tf.errors``, with its type,
        traceback and notes in the message. If training stops within an epoch, the iterator is closed by the garbage
        collector. If the number of batches is unknown, Keras warns at the end of an epoch that data ran out.

        Args:
            class_weight: the weights of classes in the loss, by class number; other classes have weight 1. For elements
                ``(x, y)`` with one output. ``fit`` does not accept its own ``class_weight``, ``sample_weight`` or ``y``
                together with a dataset.

        Returns:
            An object for Keras that can be used any number of times. With Keras before 3.7 a ``keras.utils.PyDataset``,
            for which the number of batches must be known or infinite.

        Raises:
            ImportError: if Keras is not installed.
            ValueError: if elements are not batches, or Keras does not support them: single values, RaggedTensors,
                dataclasses, ... If that is unknown before running the pipeline, ``fit`` raises it.
            TypeError: if ``class_weight`` is not a dict of ints and numbers.

        >>> import keras
        >>> x = np.arange(100.0).reshape(50, 2)
        >>> train = Dataset.from_tensor_slices((x, x.sum(1))).shuffle(50).batch(10)
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(train.to_keras(), validation_data=train.to_keras(), epochs=2, verbose=0)
        >>> sorted(history.history)
        ['loss', 'val_loss']
        >>> model.predict(train.to_keras(), verbose=0).shape
        (50, 1)
        """
        load_extra("keras", "keras", "to_keras() needs")
        return deferred.keras_dataset(self, class_weight)

    def to_jax(self, sharding: Any = None, prefetch: int = 2) -> JaxDataset:
        """Return the elements as JAX arrays on devices; the next ones are copied while the current one is used.

        The result can be iterated any number of times and has this dataset's length. Its iterators support ``close``,
        ``with``, ``state_dict``, ``load_state_dict`` and ``stats`` like those of a Dataset; a state belongs to the
        element that was returned last. They also have ``get_state`` and ``set_state`` like those of Grain, so that
        Orbax can save them together with the weights. Structures do not change, including dataclasses and attrs
        classes. dtypes are JAX's: without ``jax_enable_x64``, 64-bit numbers are silently converted to 32 bits. No JAX
        array shares memory with an array outside of JAX.

        Read-ahead uses no thread: each step pulls the element ``prefetch`` positions ahead, and starts to copy it. Put
        ``prefetch`` at the end of this dataset, too, to produce the elements in the background.

        Args:
            sharding: a ``jax.sharding.Sharding`` or ``jax.Device`` for all components, or a structure of them that
                matches the elements' structure or its upper levels. If it includes devices of other processes, each
                process provides its own rows, the same number as the others, and gets global arrays: call
                ``shard_by_process`` before. Default: the default device.
            prefetch: the number of elements to pull and copy before they are needed. 0 for none.

        Raises:
            TypeError: if ``sharding`` is of another type, or its structure does not match the elements.
            SpecError: for components that JAX does not support (text, ragged or sparse tensors, datasets, objects), or
                shapes that cannot be sharded. Raised in the place of the element, unless the spec is known before.
            ValueError: if ``prefetch`` is negative.
            ImportError: if JAX is not installed.

        >>> images = Dataset.from_tensor_slices({"x": np.ones((4, 2), np.float32), "y": np.arange(4)})
        >>> for batch in images.batch(2).to_jax():
        ...     print(batch["x"].sum(), batch["y"])
        4.0 [0 1]
        4.0 [2 3]
        """
        count = require_int("to_jax", "prefetch", prefetch, minimum=0)
        load_extra("jax", "jax", "to_jax() needs")
        return deferred.JaxDataset(self, sharding, count)

    def to_tf(self, output_signature: Any = None) -> Any:
        """Return the elements as a ``tf.data.Dataset``, for TensorFlow's own ops and training loops.

        It has the same ``element_spec`` and cardinality, and each pass over it is a new pass over this dataset. Text
        becomes ``tf.string``; RaggedTensor, SparseTensor, tuples, named tuples, dicts, attrs classes and ``None``
        become TensorFlow's, and so do dataclasses with ``__tf_flatten__``. TensorFlow calls Python for each element,
        which takes a few hundred microseconds: batch first. Nothing is read ahead except by ``prefetch`` of this
        dataset or of TensorFlow. An element that fails raises a ``tf.errors`` exception in its place, with the text of
        the original. TensorFlow's checkpoints cannot save its iterators.

        Args:
            output_signature: TensorSpec, RaggedTensorSpec and so on in the structure of an element. Default:
                ``element_spec``. After a user's function, the sizes are those of the first element, and an element with
                other sizes is an error; use a signature with None for sizes that vary.

        Raises:
            SpecError: if TensorFlow has no type for a component, such as ``datetime64``, Python objects and datasets,
                or for the structure; as text, in the place of an element that does not match the signature.
            TypeError: if the signature contains anything but specs.
            ImportError: if TensorFlow is not installed.

        >>> batches = Dataset.range(4).map(lambda x: {"x": x}).batch(2, drop_remainder=True)
        >>> for element in batches.to_tf():
        ...     print(element)
        {'x': <tf.Tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>}
        {'x': <tf.Tensor: shape=(2,), dtype=int64, numpy=array([2, 3])>}
        """
        tf = load_extra("tensorflow", "tensorflow", "to_tf() needs")
        return deferred.tf_dataset(tf, self, output_signature)

    def progress(
        self, desc: str | None = None, *, live: bool = False, **arguments: Any
    ) -> Progress[T_co] | LiveProgress[T_co]:
        r"""Return the dataset with a tqdm progress bar: ``for batch in train.progress("epoch 1")``.

        Each iteration draws its own bar, which shows the total if ``cardinality()`` is known. The bar and the iterator
        are closed when the loop ends, also by ``break`` or an exception.

        With ``live=True``, the table of ``iterator.stats()`` takes the place of the bar. A terminal and the output of a
        notebook cell show it in place, and the loop updates it twice a second. Other files get a line every ten
        seconds, and the table at the end.

        Args:
            desc: the text before the bar or the table.
            live: whether to show the statistics instead of a bar. Then ``arguments`` may be ``file`` (default stderr),
                ``mininterval``, the seconds between two updates, and ``disable``.
            **arguments: other arguments of ``tqdm.auto.tqdm``, such as ``total``, ``unit`` (default ``"batch"``, or
                ``"element"`` if elements are not batches), ``leave``, ``file``, ``ncols``, ``mininterval``,
                ``disable``, ``position``, ``initial``, ``postfix``, ``colour``.

        Returns:
            An iterable that can be used any number of times, with the length of the dataset.

        Raises:
            ImportError: if tqdm, or rich for a table in a terminal, is not installed.
            TypeError: if an argument is not accepted.

        >>> import io
        >>> terminal = io.StringIO()
        >>> total = 0
        >>> for batch in Dataset.range(10).batch(4).progress("adding", file=terminal):
        ...     total += batch.sum()
        >>> print(terminal.getvalue().split("\r")[-1])
        adding: 100%|...| 3/3 [00:00<00:00, ...batch/s]
        """
        if require_bool("progress", "live", live):
            return deferred.LiveProgress(self, desc, arguments)
        load_extra("tqdm.auto", "progress", "progress() needs")
        return deferred.Progress(self, {"desc": desc, **arguments})

    def __iter__(self) -> DatasetIterator[T_co]:
        return deferred.DatasetIterator(self._optimized.plan, self._optimized.options, deferred.Autotuner)

    def __aiter__(self) -> AsyncIterator[T_co]:
        """Iterate with ``async for``: elements are computed in a thread, and the event loop stays free.

        After an element that fails, ``anext`` continues with the next one, as ``next`` does. A cancelled ``anext``, as
        by ``asyncio.wait_for``, loses nothing: the next one returns the element. The iterator has ``aclose()``; it is
        also closed at the end of the data, when it is dropped, and when the event loop ends.

        >>> import asyncio
        >>> async def total():
        ...     return sum([int(x) async for x in Dataset.range(4)])
        >>> asyncio.run(total())
        6
        """
        return deferred.AsyncElements(iter(self))

    def __getitem__(self, index: int) -> T_co:
        """Return element ``index`` without producing those before it; a negative index counts from the end.

        Works if every op has random access: arrays and ``range``, and ``map``, ``batch``, ``zip``, ``enumerate``,
        ``take``, ``skip``, ``shard``, ``repeat``, ``concatenate`` and similar ops. An element that fails counts like
        any other. Arrays, and records of files with an index, are looked up directly; after other ops the pipeline is
        opened for each lookup, which takes some tens of microseconds.

        Raises:
            TypeError: if ``index`` is not an int, or an op has no random access; the message names it.
            IndexError: if ``index`` is out of range.

        >>> Dataset.range(1000).map(lambda x: x * x).batch(100)[3][:4]
        array([90000, 90601, 91204, 91809])
        """
        element: T_co = deferred.element_at(self._plan, index)
        return element

    @property
    def element_spec(self) -> Any:
        """The spec of an element: its structure, with a TensorSpec for each component.

        It is known without running anything, except after a user's function: then one element is produced, once. Its
        kinds, dtypes and ranks are assumed for all elements. Its sizes are not assumed: those dimensions are None.

        >>> Dataset.range(10).batch(4).element_spec
        TensorSpec(shape=(None,), dtype=int64)
        """
        return self._plan.element_spec

    def cardinality(self) -> int:
        """Return the number of elements, INFINITE_CARDINALITY (-1), or UNKNOWN_CARDINALITY (-2).

        >>> Dataset.range(10).batch(4).cardinality()
        3
        """
        return self._plan.cardinality()

    def __len__(self) -> int:
        cardinality = self.cardinality()
        if cardinality == INFINITE_CARDINALITY:
            raise TypeError(
                "this dataset is infinite and has no length; use take() or cardinality(); a DataLoader takes "
                "dataset.to_torch()"
            )
        if cardinality == UNKNOWN_CARDINALITY:
            raise TypeError(
                "the length of this dataset is unknown before it is run; use assert_cardinality(n) if you know it, "
                "TFRecordDataset(..., index=True) or TarDataset(..., index=True) to count the records of files, or "
                "sum(1 for _ in dataset) to count by running it; a DataLoader takes dataset.to_torch()"
            )
        return cardinality

    def __bool__(self) -> bool:
        return True  # as in tf.data: the truth value must not depend on the length

    def fingerprint(self) -> np.uint64:
        """Return a hash of what determines the elements: equal for equal pipelines, also in other processes.

        It covers ops, parameters, seeds, the data of in-memory arrays, and the code of functions with captured values.
        It does not cover other data that functions read, nor the content of files. Of objects that serve the program,
        such as loggers and locks, only the class counts. Iterations do not change it, unless a function changes a value
        that it has captured. It may differ between versions of Python.

        >>> def make(factor):
        ...     return Dataset.range(3).map(lambda x: x * factor)
        >>> bool(make(2).fingerprint() == make(2).fingerprint())
        True
        >>> bool(make(2).fingerprint() == make(3).fingerprint())
        False
        """
        return np.uint64(deferred.content_fingerprint(self._plan))

    def explain(self, format: str = "text") -> str:
        """Return a description of the plan as written and as run, and of the rules that rewrote it or nearly did.

        Nothing runs, not even user functions. The text has the last operation on top. For each operation it shows the
        number of elements, its source line, that of its function, and its spec, as far as they are known.

        Args:
            format: ``"text"``, or ``"svg"`` for a picture of the plan as run, from the sources at the top to the last
                operation at the bottom, which notebooks show.

        Raises:
            ValueError: if the format is unknown.

        >>> print(Dataset.range(10).take(-1).batch(4).explain())
        as written:
          batch(4)   3 elements   ...  int64[?]
          take(-1)   10 elements  ...  int64
          range(10)  10 elements  ...  int64
        <BLANKLINE>
        as it runs:
          batch(4)   3 elements   ...  int64[?]
          range(10)  10 elements  ...  int64
        <BLANKLINE>
        rewritten:
          noop_elimination: take(-1) from ...
        """
        match format:
            case "text":
                return deferred.explain_text(self.options().dataset_name, self._plan, self._optimized)
            case "svg":
                return deferred.svg(self._optimized.plan, self._optimized.rules_of)
        raise ValueError(f'explain(): format must be "text" or "svg", got {format!r}')

    def profile(self, seconds: float = 10.0) -> ProfileReport[Dataset[T_co]]:
        """Run the pipeline alone, as fast as it can, and say what each op costs and what to change.

        The elements are dropped. The run does not count as an iteration, so later ones shuffle as without it. Functions
        are called, generators are read, and caches and snapshots are written as in any other iteration. With AUTOTUNE,
        the next iteration begins with the settings that the run has found.

        Args:
            seconds: how long to run, unless the data end before. A tuned pipeline needs a few seconds to settle.

        Returns:
            A report that prints as a table, with a ranked list of suggestions. ``apply()`` returns the dataset with the
            safe ones applied, and ``save_trace(path)`` writes a trace of its threads for Perfetto.

        Raises:
            TypeError: if ``seconds`` is not a number.
            ValueError: if ``seconds`` is not positive.
            Exception: the exception of the first element that fails.

        >>> import time
        >>> def fetch(x):
        ...     time.sleep(0.001)
        ...     return x
        >>> report = Dataset.range(100).map(fetch).batch(10).profile(seconds=0.1)
        >>> [suggestion.code for suggestion in report.suggestions[:3]]
        ['.cache()', '.map(..., num_parallel_calls=AUTOTUNE)', '.prefetch(AUTOTUNE)']
        >>> report.apply().plan.label()
        'prefetch(AUTOTUNE)'
        """
        optimized = self._optimized
        return deferred.profile(self._plan, optimized.plan, optimized.options, seconds, Dataset)

    def _repr_svg_(self) -> str:
        return self.explain("svg")

    def __repr__(self) -> str:
        name = self.options().dataset_name
        return f"<{type(self).__name__}{f' {name!r}' if name else ''}: {self._plan}>"


def shared_among(dataset: Dataset[Any], processes: int, worker: Any = None) -> Dataset[Any]:
    """Return the dataset for one of several concurrent processes, with its share of the cores and the memory.

    ``worker`` is torch's WorkerInfo, by which the sources must not divide their elements again.
    """
    if worker is not None:
        deferred.keep_sources_whole(worker)
    settings = dataset.options().autotune
    options = Options()
    options.autotune.cpu_budget = max(1, (settings.cpu_budget or usable_cores()) // processes)
    options.autotune.ram_budget = max(1, (settings.ram_budget or default_budget()) // processes)
    return dataset.with_options(options)


def columns_at(dataset: Dataset[Any], places: Sequence[int]) -> tuple[Structure, Sequence[Column]] | None:
    """Return the elements at these existing positions, as columns.

    None if they must be looked up one by one. That is also the case if one fails, to find out which.
    """
    plan = deferred.elements_at(dataset.plan, np.array(places, np.int64))
    if plan is None:
        return None
    try:
        elements = deferred.first_elements(plan, len(places))
    except Exception:  # noqa: BLE001  # the lookup of the single element raises it again
        return None
    return elements.structure, elements.columns()


def _chunk_scan(plan: Node) -> ChunkScan:
    optimized = deferred.optimize(plan)
    return deferred.ChunkScan(optimized.plan, optimized.options, deferred.Autotuner)


def device_iterator(dataset: Dataset[Any], convert: Convert, count: int, kind: type[Kind]) -> Kind:
    """Return an iterator over converted elements, for a framework.

    Args:
        dataset: the dataset whose elements are converted.
        convert: see ``runtime/iteration/device_prefetch.py``.
        count: how many elements may be pulled ahead of those that were returned.
        kind: the class of the iterator.
    """
    optimized = dataset._optimized  # noqa: SLF001  # its own class
    return kind(optimized.plan, optimized.options, deferred.Autotuner, deferred.DevicePrefetch(convert, count))


def tracing_iterator(
    dataset: Dataset[T],
    state: dict[str, Any] | None = None,
    moved: Callable[[str], str] | Mapping[str, str] | None = None,
    *,
    from_start: bool = False,
) -> DatasetIterator[T]:
    """Return an iterator that records provenance, whatever the options of the dataset are.

    The dataset does not count it as an iteration. It does not read the caches of the dataset, whose elements may have
    been stored without their provenance.

    Args:
        dataset: the dataset.
        state: a saved state to continue from.
        moved: as in ``load_state_dict``.
        from_start: whether to start at the beginning of the iteration in which the state was saved.
    """
    optimized, wanted = dataset._optimized, Options()  # noqa: SLF001  # its own class
    wanted.provenance = True
    plan = restarted(optimized.plan)
    options, epochs = optimized.options.merge(wanted), EpochLedger(detached=True)
    iterator: DatasetIterator[T] = deferred.DatasetIterator(plan, options, deferred.Autotuner, epochs=epochs)
    if state is not None:
        iterator._load(state, moved, from_start=from_start)  # noqa: SLF001  # as load_state_dict does
    return iterator


def replay_marks() -> ReplayMarks[dict[str, Any]]:
    """Return the marks of an adapter whose framework reads elements ahead of those that it has used."""
    return deferred.ReplayMarks()


datasets_are_made_by(Dataset)

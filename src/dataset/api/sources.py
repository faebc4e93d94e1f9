"""Sources: datasets of arrays, lists, generators, queues, numbers and files. readers.py has those that are classes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from dataset import deferred
from dataset.api.base import A, T
from dataset.plan.checks import require_bool

if TYPE_CHECKING:  # at run time, dataset.py sets it
    from dataset.dataset import Dataset


class SourceMethods:
    """Methods of Dataset that create one."""

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
        queue: Any, element_spec: Any = None, *, log: str | os.PathLike[str] | None = None, name: str | None = None
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
        plan = deferred.parquet_plan(filenames, columns, fill_null, shard, num_parallel_reads, name, deferred.ArrowIpc)
        return Dataset(plan)

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
        extensions: Sequence[str] = (".bmp", ".gif", ".jpeg", ".jpg", ".png"),
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

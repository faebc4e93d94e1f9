"""Dataset: the chain that users write. One method per op; what an op does is in ops/, how it runs in runtime/.

A Dataset holds a plan and nothing else. Names, arguments, defaults and semantics are those of ``tf.data.Dataset``;
values are NumPy's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from dataset import deferred
from dataset.extras import load_extra
from dataset.io.image.folder import EXTENSIONS
from dataset.options import AUTOTUNE, Options
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.checks import (
    require_bool,
    require_int,
    require_parallelism,
    require_plan,
    require_plans,
    require_threads,
)
from dataset.plan.lazy import lazy_property
from dataset.plan.nested import datasets_are_made_by
from dataset.plan.node import Node
from dataset.plan.structure import Structure, structure_of
from dataset.runtime.chunks.chunk import Column
from dataset.runtime.resources.cores import usable_cores
from dataset.runtime.resources.memory import default_budget

if TYPE_CHECKING:  # against the arrow: loaded by the methods that give them
    from dataset.adapters.jax import JaxDataset
    from dataset.adapters.progress import Progress
    from dataset.adapters.torch.iterable import TorchIterableDataset
    from dataset.adapters.torch.map_style import TorchMapDataset
    from dataset.optimize.driver import Optimized
    from dataset.runtime.iteration.chunk_scan import ChunkScan
    from dataset.runtime.iteration.device_prefetch import Convert
    from dataset.runtime.iteration.iterator import DatasetIterator

__all__ = ["Dataset"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")
Kind = TypeVar("Kind", bound="DatasetIterator[Any]")


class Dataset(Generic[T_co]):
    """A sequence of elements that is made while it is iterated over.

    Start from a source (``from_tensor_slices``, ``list_files``, ``TFRecordDataset``, ...), chain transformations, and
    iterate. Nothing runs before that, and iterating again runs it again. An element is an array, a NumPy scalar,
    ``bytes``, or tuples, named tuples, dicts, dataclasses and attrs classes of those.

    All methods take a ``name``, which error notes and ``explain()`` show.

    >>> dataset = Dataset.range(6).map(lambda x: x * x).batch(4)
    >>> for batch in dataset:
    ...     print(batch)
    [0 1 4 9]
    [16 25]
    """

    def __init__(self, plan: Node) -> None:
        """Hold a plan. Users call the static methods below instead."""
        self._plan = plan

    @property
    def plan(self) -> Node:
        """The plan as it was written, before it is optimized."""
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
        r"""A dataset of batches of CSV rows: dicts of columns by name, or a pair of such a dict and the label's column.

        It is ``tf.data.experimental.make_csv_dataset``, with its defaults: the rows come shuffled, and without end.
        Files are looked for, and headers and first rows read, at this call.
        ``CsvDataset`` gives single rows as they stand in the files.

        Args:
            file_pattern: a path with ``*``, ``?`` and ``[...]``, or a list of such paths.
            batch_size: rows in a batch. With ``num_epochs=None`` every batch is full, else the last may be smaller.
            column_names: of all columns of the files. Default: the header's, which all files must share.
            column_defaults: for each column that is read, in their order in the files, a dtype or a default value as
                for ``CsvDataset``. Default: what the first rows say, int64, float64 or bytes; empty fields are 0 or
                ``b""``.
            label_name: the column that is given beside the dict.
            select_columns: names or indices of the columns to read. Default: all.
            field_delim: what separates fields; one byte.
            use_quote_delim: whether quotation marks mean anything.
            na_value: a text that counts as empty, beside the empty one.
            header: whether the first row of each file is a header.
            num_epochs: how many times the rows are given; None for without end.
            shuffle: whether to shuffle the files and the rows, in another order in each epoch.
            shuffle_buffer_size: rows to draw from.
            shuffle_seed: makes the orders repeatable.
            prefetch_buffer_size: batches to make ahead. Default AUTOTUNE.
            num_parallel_reads: from how many files to read at once, a row from each in turn. Default 1. AUTOTUNE is a
                cycle of 4 files.
            sloppy: whether rows of files that are read at once may come in any order.
            num_rows_for_inference: how many rows, of all files together, are looked at for types; None for all.
            compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``.
            ignore_errors: whether to pass over rows that can't be read.
            encoding: of the names in the header; text in rows stays ``bytes``. Any in which ASCII is ASCII.

        Raises:
            FileNotFoundError: if no file matches.
            ValueError: if an argument can't be; if headers differ, or the rows that are looked at can't be read.
            TypeError: if an argument is of the wrong type.
            ParseError: while iterating, in the place of a row that can't be read; its batch goes with it.
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
            ValueError: if there is no component in it.

        >>> list(Dataset.from_tensors([1, 2, 3]))
        [array([1, 2, 3])]
        """
        return Dataset(deferred.Tensors(tensors, name=name))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the rows of arrays.

        The arrays are not copied; rows are read-only views of them. A list is data, a tuple or dict structure.

        Args:
            tensors: arrays of shape (n, ...) in any structure.
            name: a label.

        Raises:
            ValueError: if a component has no rows, or another number of them.

        >>> images, labels = np.zeros((3, 28, 28), np.uint8), [7, 8, 9]
        >>> dataset = Dataset.from_tensor_slices({"image": images, "label": labels})
        >>> len(dataset), [int(element["label"]) for element in dataset]
        (3, [7, 8, 9])
        """
        return Dataset(deferred.TensorSlices(tensors, name=name))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[T]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset[T]:
        """Return a dataset of what a generator function yields. Each iteration calls the function anew.

        With a signature, values are checked against it, and ints become the floats that it declares. Without one, which
        tf.data does not allow, the first element tells the spec.

        Args:
            generator: a function that returns an iterable; a class with ``__iter__`` will do.
            output_types: dtypes in the structure of an element; the older form of a signature.
            output_shapes: shapes in the same structure, with ``output_types``; default, unknown.
            args: what ``generator`` is called with, as components: text as ``bytes``, lists as read-only arrays.
            output_signature: TensorSpec, RaggedTensorSpec and so on in the structure of an element. Where it says
                TensorSpec, a tuple is data, as a list is.
            name: a label.

        Raises:
            TypeError: if ``generator`` cannot be called, both forms of a signature are given, or one holds no specs.
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
    def from_tf(tf_dataset: Any, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the elements of a ``tf.data.Dataset``. Each iteration is a new pass over that.

        Elements are what ``as_numpy_iterator()`` gives, with ragged and sparse tensors, and datasets, of this library.
        All are copies. An element that fails raises TensorFlow's exception in its place. How much is read ahead is
        TensorFlow's affair. A saved state counts elements: going there runs the pass again up to it.

        Args:
            tf_dataset: TensorFlow's.
            name: a label.

        Raises:
            TypeError: if it is something else, or a component is no array, text, ragged or sparse tensor or dataset.
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
    def from_torch(dataset: Any, output_signature: Any = None, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the items of a dataset of torch, as NumPy arrays. Needs the extra ``torch``.

        A map-style dataset is a source with random access: ``shuffle``, ``skip`` and ``shard`` move indices, and only
        what is wanted is asked for, in lists where it has ``__getitems__``. Of a ``TensorDataset`` rows are taken as
        of arrays, by ``from_tensor_slices``. An IterableDataset, or a DataLoader, is run anew by each iteration.

        Tensors are detached and brought to the host. Arrays of a map-style dataset's tensors share their memory, and
        are read-only; those of an iterable one are copied, since it may fill the same tensor again. A list at the top
        of an item is structure, as a tuple is, others are data. bfloat16 and float8 take the package ml_dtypes.

        Args:
            dataset: a ``torch.utils.data.Dataset``, or any object with ``__getitem__`` and ``__len__``; an
                ``IterableDataset`` or a ``DataLoader``.
            output_signature: TensorSpec and so on in the structure of an element. Default: what the first one says.
            name: a label.

        Raises:
            TypeError: if it is none of these, or a signature holds no specs.
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

        It is like ``from_tensor_slices`` of the table's columns: random access, and shuffled by index. Numbers are not
        copied, text is, once, at this call. Types and nulls are as in ``from_parquet``.

        Args:
            data: a ``pyarrow.Table`` or ``RecordBatch``, a list of batches, an object with ``__arrow_c_stream__`` (a
                data frame of polars or pandas, a DuckDB relation, a ``RecordBatchReader``), or the path of an Arrow IPC
                or Feather file. A stream is read to its end at this call, a file whole, so that every iteration gives
                the same rows.
            columns: names of those to take, in the order of the keys; ``"a.b"`` is a field of a struct. Default: all.
            fill_null: what stands for a null, by column.
            name: a label.

        Raises:
            TypeError: if ``data`` is none of these.
            ValueError: if there is no such column, or a null in one whose dtype has no value for it.
            SpecError: if a column's type has no component.
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

        One row group is in memory at a time, of which only ``columns`` are read; rows and batches are read-only views
        of it where their dtype allows. ``skip(n)`` directly behind it, ``dataset[i]`` and going on from a saved state
        do not read the row groups before. The first file's footer is read at this call, for the columns; those of all
        files by ``len`` and ``cardinality``.

        Numbers keep their dtypes; decimals are float64. Text and binary are ``bytes``, of dictionaries the values.
        Timestamps and dates are datetime64 (in UTC), times of the day and durations timedelta64. Lists of a fixed size
        are arrays; other lists are arrays whose length varies, as rows of a RaggedTensor are: ``batch`` makes
        RaggedTensors of them, ``padded_batch`` pads. Structs are dicts. A null is NaN in floats and NaT in times; an
        int, a bool, a text or a list that is null fails at its place, unless ``fill_null`` gives a value.

        Args:
            filenames: a path, a pattern such as ``"data/*.parquet"`` (its files are sorted), a list of those, or a
                Dataset of paths.
            columns: names of those to read, in the order of the keys; ``"a.b"`` is a field of a struct. Default: all,
                in the order of the first file.
            fill_null: what stands for a null, by column: ``{"age": -1, "tags": ""}``. In lists it stands for values;
                a list that is null is then empty.
            shard: ``(num_shards, index)`` reads every ``num_shards``-th row group only, counted through all files as
                listed, so each row group belongs to one shard. Shards differ in size; ``shard()`` is exact, but
                reads all.
            num_parallel_reads: from how many files to read at once, in background threads; 1024 rows from each in turn.
                Default: one file after the other. AUTOTUNE is a cycle of 4 files.
            name: a label.

        Raises:
            FileNotFoundError: if the first file is missing; of another one, while iterating, at its place.
            DataLossError: if the first file's footer is damaged; while iterating, where a row group is, or a later
                file. What is behind it is read.
            ValueError: if there is no such column, or no such shard; while iterating, at a null without a value.
            SpecError: if a column's type has no component; while iterating, for a file whose columns are not those of
                the first.
            TypeError: if an argument is of a wrong type.
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
    ) -> Dataset[Any]:
        """Return a dataset of the rows of a Hugging Face dataset, as dicts. Needs the extra ``huggingface``.

        Of a ``datasets.Dataset`` rows are read and converted when they are asked for, and no others, so it may be
        larger than memory. It has random access, is shuffled by index, and its order is that which its own ``shuffle``,
        ``select`` and ``filter`` gave it. Types and nulls are as in ``from_parquet``, whatever its format: dtypes are
        those of the features. A ``ClassLabel`` is an int64, an ``Array2D`` an array, ``Json`` its text. Of a format
        only the choice of columns counts.

        An ``Image`` is decoded into an array: uint8 of shape (height, width, 3) for RGB, (height, width) for gray. An
        ``Audio`` is a dict of ``array``, float32, and ``sampling_rate``, and needs torchcodec. To decode in parallel,
        have its ``bytes`` and ``path`` as they are, ``hf.cast_column("image", datasets.Image(decode=False))``, of which
        one may be empty, and decode in ``map``. A function given to ``set_transform`` is called for the rows that are
        asked for, as many at once.

        A ``datasets.IterableDataset`` is iterated over, from its first row in each pass, in the order of its own epoch;
        ``shuffle()`` behind this one gives each epoch another order. Nothing is read ahead of what is asked for. Going
        on from a saved state reads the rows before again.

        Args:
            hf: a ``datasets.Dataset`` or ``datasets.IterableDataset``; of a ``DatasetDict``, one of its splits.
            columns: names of those to take, in the order of the keys; ``"a.b"`` is a field of a struct. Default: those
                of its format.
            fill_null: what stands for a null, by column.
            name: a label.

        Raises:
            TypeError: if ``hf`` is neither.
            ValueError: if there is no such column, or ``columns`` are given where only Python knows which there are;
                while iterating, at the place of a row with a null in a column whose dtype has no value for it.
            SpecError: if a column's type has no component, such as a list of structs, or a ``Video``.
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
            deferred.huggingface_plan(
                hf, deferred.require_columns(op, columns), deferred.require_fill_null(op, fill_null), make
            )
        )

    @staticmethod
    def from_pandas(
        df: Any,
        columns: Sequence[str] | None = None,
        *,
        index: bool = False,
        fill_null: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Return a dataset of the rows of a pandas frame, as dicts. Needs the extra ``pandas``.

        It is like ``from_tensor_slices`` of the frame's columns: random access, and shuffled by index. Numbers, bools
        and times are not copied; text is, once, at this call. What is written to the frame later does not show (with
        pandas 3, or with its copy-on-write switched on).

        NumPy's and pandas' nullable dtypes become NumPy's, times with a zone datetime64 in UTC, categories the values
        that they stand for, sparse columns dense ones. Text is ``bytes``. What is in Arrow's memory is as in
        ``from_arrow``. Objects must be of one kind in a column: numbers, text, times, or arrays and lists of numbers or
        text. Those of one shape are rows of an array; their first dimension may differ, as in a RaggedTensor. A null
        (None, NaN, NaT, NA) is NaN in floats and NaT in times; in other dtypes it is an error, unless ``fill_null``
        gives a value.

        Args:
            df: a ``DataFrame``; or a ``Series``, whose values are the elements, in no dict.
            columns: names of those to take, in the order of the keys. Default: all.
            index: whether the index counts as columns, too, before the others: those of ``df.reset_index()``.
            fill_null: what stands for a null, by column.
            name: a label.

        Raises:
            TypeError: if ``df`` is neither; if names of columns are not text, or of several levels.
            ValueError: if there is no such column, or two of one name; at the first row with a null in a column whose
                dtype has no value for it, or with an object of another kind.
            SpecError: if no component stands for what a column holds, such as periods and intervals.
            ImportError: if pandas is not installed; or pyarrow, for a column in Arrow's memory.

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
        require_bool("from_pandas", "index", index)
        asked, fills = (
            deferred.require_columns("from_pandas", columns),
            deferred.require_fill_null("from_pandas", fill_null),
        )
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
    ) -> Dataset[Any]:
        """Return a dataset of the rows of a polars frame, as dicts. Needs the extra ``polars``.

        It is like ``from_tensor_slices`` of the frame's columns: random access, and shuffled by index. Numbers and
        times are not copied, if they lie in one piece (``df.rechunk()``); bools and text are, once, at this call. Types
        and nulls are as in ``from_parquet``: an ``Array`` is an array, a ``List`` an array whose length varies, a
        ``Struct`` a dict; ``Categorical`` and ``Enum`` are what they stand for, a ``Decimal`` is a float64, a ``Time``
        a timedelta64 since midnight, a time with a zone in UTC.

        Args:
            df: a ``DataFrame``; a ``LazyFrame``, which is collected at this call, into memory; or a ``Series``, whose
                values are the elements, in no dict.
            columns: names of those to take, in the order of the keys; ``"a.b"`` is a field of a struct. Default: all.
            fill_null: what stands for a null, by column.
            name: a label.

        Raises:
            TypeError: if ``df`` is none of these.
            ValueError: if there is no such column, or a null in one whose dtype has no value for it.
            SpecError: if a column's type has no component: ``Object``, ``Int128``, lists of structs.
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
        asked, bare = deferred.require_columns("from_polars", columns), isinstance(df, polars.Series)
        made = deferred.arrow_columns("from_polars", deferred.polars_table(df, asked), asked, fill_null)
        return Dataset(deferred.PolarsSlices(made[df.name] if bare else made, name=name))

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
        name: str | None = None,
    ) -> Dataset[Any]:
        """Return a dataset of the images in a folder that has a folder for each class: pairs of an image and its label.

        Label ``i`` is the i-th of the sorted names of these folders, which ``io.image_folder_classes(path)`` gives. The
        files are those in them, and in folders in them, in the order of their paths, listed at this call. What begins
        with a dot is hidden and passed by. Links are followed, but no folder is entered twice for one class.

        Args:
            path: the folder.
            labels: ``"inferred"`` from the folders' names; a list of ints, one for each image below ``path`` in the
                order of their paths; or None for images alone.
            class_names: the names of the folders of classes in the order of their labels. Default: sorted.
            channels: 1 for grayscale, 3 for RGB, 4 for RGBA, 0 for what each file has.
            image_size: ``(height, width)`` to resize to; images are float32 then. Default: uint8 of their own sizes.
            interpolation: ``method`` of ``io.resize``.
            decode: if False, the bytes of each file come instead of the image.
            extensions: of the files that are images, in upper or lower case.
            shuffle: whether to read the files in another random order in each epoch.
            seed: makes the orders repeatable.
            num_parallel_calls: how many images to make at once, in background threads; AUTOTUNE sets it.
            deterministic: whether the order must not depend on which image is made first. Default True.
            name: a label.

        Raises:
            FileNotFoundError: if there is no such folder, no folder in it, or no image; while iterating, if a file is
                gone.
            ValueError: if ``class_names`` or ``labels`` do not fit what is there; while iterating, for a file that is
                no image, at its place.
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
        return Dataset(
            deferred.image_folder_plan(
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
                name,
            )
        )

    @staticmethod
    def range(*args: int, output_type: npt.DTypeLike = np.int64, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of numbers at equal steps, with the arguments of Python's ``range``.

        Args:
            *args: ``stop``; ``start, stop``; or ``start, stop, step``.
            output_type: the dtype. Default int64.
            name: a label.

        Raises:
            TypeError: if an argument is no int.
            ValueError: if the step is 0, or there are no or too many arguments.

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
        """Return a dataset of numbers at equal steps, without end.

        The numbers are added up in ``dtype``: integers wrap around at its ends, floats round at each step.

        Args:
            start: the first number.
            step: what each next number is more.
            dtype: integers, floats or complex numbers. Default int64.
            name: a label.

        Raises:
            TypeError: if ``dtype`` is not numeric, or a number is not one for it.
            ValueError: if an int does not fit into 64 bits.

        >>> [int(x) for x in Dataset.counter(start=10, step=5).take(3)]
        [10, 15, 20]
        """
        return Dataset(deferred.Counter(start, step, dtype, name=name))

    @staticmethod
    def random(
        seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset[Any]:
        """Return a dataset of random integers without end: int64, from 0 to 2**32 - 1.

        Args:
            seed: makes them repeatable: a dataset built again gives the same numbers.
            rerandomize_each_iteration: whether each epoch and each new iterator gets other numbers. By default every
                pass over one dataset gives the same, even without a seed.
            name: a label.

        Raises:
            TypeError: if ``seed`` is no int, or ``rerandomize_each_iteration`` no bool.

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
        """A dataset of the names of the files that match, found at this call. Directories and hidden files match, too.

        Args:
            file_pattern: a path with ``*``, ``?`` and ``[...]``, or a list of such paths. One with a scheme, such as
                ``s3://bucket/*.tfrecord``, is listed by fsspec, and its names come out with the scheme.
            shuffle: whether to give them in another random order in each epoch. Default True; else they are sorted.
            seed: makes the orders repeatable.
            name: a label.

        Raises:
            FileNotFoundError: if no file matches.
            OSError: if a storage can't be reached, or refuses.
            TypeError: if a pattern is no path, or ``shuffle`` no bool.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in "b.txt", "a.txt":
        ...         _ = pathlib.Path(folder, name).write_text("")
        ...     files = Dataset.list_files(f"{folder}/*.txt", shuffle=False)
        ...     [pathlib.Path(file.decode()).name for file in files]
        ['a.txt', 'b.txt']
        """
        files = deferred.matching_files(file_pattern)
        source = deferred.ListFiles(np.array(files, object), name=name)
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
        """A dataset of the elements that ``save`` wrote. Arrays of numbers come out read-only, as views of the files.

        Args:
            path: the directory.
            element_spec: what the elements are. The files tell it, except for instances of classes of your own
                (dataclasses, for example); named tuples come back as named tuples of the same name and fields.
            compression: the files tell it; another one is an error.
            reader_func: takes a Dataset of one Dataset for each shard, returns a Dataset of their elements. Default: an
                element from each in turn.
            wait: whether to wait until the saving has finished, if nothing is there yet. It is looked for twice a
                second.

        Raises:
            FileNotFoundError: if nothing was saved there, or the saving has not finished.
            DataLossError: if files are damaged; for those of the elements, while iterating.
            SpecError: if the elements are not what ``element_spec`` says.
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

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of elements side by side; it ends with the shortest.

        Args:
            *args: datasets, or one nested structure of datasets: a dataset alone keeps its elements as they are.
            datasets: that structure by name, instead of ``args``.
            name: a label.

        Raises:
            TypeError: if something else than a Dataset stands in the structure, lists included; or both are given.

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
        datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True, name: str | None = None
    ) -> Dataset[Any]:
        """Return a dataset of elements from several datasets, in the order of given choices.

        Args:
            datasets: a list of datasets with elements of the same structure and dtypes.
            choice_dataset: a dataset of int64 scalars: from which of ``datasets`` the next element comes.
            stop_on_empty_dataset: whether to end when a dataset that is chosen has ended; else such choices are passed
                by, until the choices or all datasets have ended.
            name: a label.

        Raises:
            TypeError: if something is no Dataset, or the elements do not go together.
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
        datasets: Any,
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
        *,
        exact: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Return a dataset of elements from several datasets, mixed at random, or in exact shares.

        Each dataset keeps its own order. With ``exact``, which tf.data does not have, nothing is left to chance: after
        any n elements, each dataset has given its share of n to within one element (the quota method of Balinski and
        Young, 1975). Weights then count as the decimal numbers that they are written as.

        Args:
            datasets: a list of datasets with elements of the same structure and dtypes.
            weights: a number for each dataset, in any proportion; or a dataset of such vectors, one for each element.
                A dataset of weight 0 is left out. Default, all equal.
            seed: makes the order repeatable.
            stop_on_empty_dataset: whether to end with the first dataset that ends; else the others go on, in the
                proportion of their weights.
            rerandomize_each_iteration: whether each epoch and each new iterator gets another order. By default every
                pass over one dataset has the same.
            exact: whether to keep exactly to the shares.
            name: a label.

        Raises:
            TypeError: if something is no Dataset, the elements do not go together, or weights are no numbers.
            ValueError: if there are no datasets; if weights are negative, not finite or too few; if ``exact`` comes
                with a seed or with weights that vary.

        >>> ones, twos = Dataset.from_tensors(1).repeat(), Dataset.from_tensors(2).repeat()
        >>> mixed = Dataset.sample_from_datasets([ones, twos], weights=[0.75, 0.25], exact=True)
        >>> [int(x) for x in mixed.take(8)]
        [1, 1, 1, 2, 1, 1, 1, 2]
        """
        plan = deferred.sample_plan(
            datasets, weights, seed, stop_on_empty_dataset, rerandomize_each_iteration, exact=exact, name=name
        )
        return Dataset(plan)

    # Transformations, element by element

    def map(
        self,
        map_func: Callable[..., S],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        executor: str = "thread",
    ) -> Dataset[S]:
        """Return each element through a function.

        A tuple element reaches the function as separate arguments, any other as one. A function marked with
        ``@dataset.vectorized`` is called with whole columns. An exception takes the place of its element; the iteration
        can go on behind it.

        With ``num_parallel_calls`` the function is called in the background, for several elements at once, ahead of
        whoever iterates. How far ahead is bounded: usually by as many elements as are asked for at a time or as the
        workers make in one go, at most 32 for each call; and where one element takes long, by the same number of those
        behind it, but 64 MiB of them. Elements that take less than about a millisecond are made, and come out, in runs.
        Where threads turn out to gain nothing, because the function is cheap or holds the interpreter's lock, it is
        called in the thread that iterates.

        Args:
            map_func: takes an element, returns an element; the same structure each time.
            num_parallel_calls: the most calls at once. Default, one at a time, when an element is asked for. AUTOTUNE
                begins with the number of cores that this process may use; the autotuner then sets it, up to 128 for
                functions that wait more than they compute.
            deterministic: whether to keep the order of the elements; default, as the options say, and they say yes. If
                not, what is ready first comes first.
            synchronous: True says that calls must never be made ahead or at once, whatever the options allow; so it
                does not go together with ``num_parallel_calls``.
            use_unbounded_threadpool: whether the calls do not count against ``options.threading``'s
                ``private_threadpool_size``: for functions that mostly wait.
            name: a label.
            executor: where calls are made that are made in parallel. "thread" suits functions that wait, or that
                release the interpreter's lock, as NumPy, decoders and file reads do. "process" is for functions that
                compute in Python: they run in ``num_parallel_calls`` (default AUTOTUNE) worker processes, for
                which function, elements and results must be such that pickle or cloudpickle can send them; the
                extra ``process`` installs that. Large arrays travel in shared memory. What the function changes
                outside of its results, it changes in the worker process only. Processes that are idle when an
                iteration ends wait for the next one of the same dataset, for a minute at most.

        Raises:
            TypeError: if ``map_func`` cannot be called; while iterating, if it cannot be sent to a process.
            ValueError: if ``num_parallel_calls`` is less than 1 and not AUTOTUNE, or given with ``synchronous=True``;
                if there is no such executor.
            WorkerDiedError: while iterating, in the place of the element that a worker process died of.

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
    ) -> Dataset[S]:
        """Return each element through a function that draws random numbers, such as an augmentation. tf.data has none.

        The function gets a generator of its own for each element. What it draws depends on the seed, the epoch and the
        position of the element, and on nothing else: not on how many elements are made at a time or in parallel, nor on
        where the iteration was resumed. Each epoch and each new iterator draws other numbers, and a pipeline built
        again draws the same sequence of them.

        Args:
            map_func: takes a ``np.random.Generator`` and an element as ``map`` passes it, returns an element.
            seed: makes the draws repeatable; without one, ``set_random_seed`` does.
            num_parallel_calls: the most calls at once, as for ``map``.
            deterministic: whether to keep the order of the elements, as for ``map``.
            name: a label.

        Raises:
            TypeError: if ``map_func`` cannot be called, or takes whole columns; if ``seed`` is no int.

        >>> def flip(rng, image):
        ...     return image[:, ::-1] if rng.random() < 0.5 else image
        >>> images = np.arange(60).reshape(20, 1, 3)
        >>> def run():
        ...     dataset = Dataset.from_tensor_slices(images).random_map(flip, seed=4)
        ...     return [image.tolist() for image in dataset]
        >>> run() == run()
        True
        """
        return Dataset(
            deferred.RandomMap(
                self._plan,
                map_func,
                seed,
                num_parallel_calls=num_parallel_calls,
                deterministic=deterministic,
                name=name,
            )
        )

    def scan(
        self, initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, S]], name: str | None = None
    ) -> Dataset[S]:
        """Return each element through a function that carries a state from one to the next.

        An exception, of the function or of the input, leaves the state as it was. The function may change arrays of the
        state in place; what it has changed before it raises stays changed.

        Args:
            initial_state: an element; the state for the first element of each pass.
            scan_func: takes the state and an element (a tuple as one argument), returns a pair of the next state, in
                which only shapes may be others, and the element to put out.
            name: a label.

        Raises:
            TypeError: if ``scan_func`` cannot be called, or takes whole columns.
            SpecError: while iterating, if it returns no pair, or another structure or dtype than the state has.

        >>> sums = Dataset.range(1, 5).scan(np.int64(0), lambda total, x: (total + x, total + x))
        >>> [int(x) for x in sums]
        [1, 3, 6, 10]
        """
        return Dataset(deferred.Scan(self._plan, initial_state, scan_func, name=name))

    def select(self, *keys: Any, name: str | None = None) -> Dataset[Any]:
        """Some parts of each element, like ``operator.itemgetter``. tf.data has none; it says ``map`` with a lambda.

        Unlike such a function it is never called for an element: columns are left out, which costs nothing.

        Args:
            *keys: keys of a dict, positions in a tuple, names of fields of a named tuple, dataclass or attrs class. One
                key gives the part itself, several a tuple of parts in the order given.
            name: a label.

        Raises:
            TypeError: if no key is given.
            ValueError: if there is no such key; while iterating, a SpecError, where only running tells the keys.

        >>> people = Dataset.from_tensors({"name": "Ada", "born": 1815, "died": 1852})
        >>> next(iter(people.select("name")))
        b'Ada'
        >>> next(iter(people.select("died", "born")))
        (np.int64(1852), np.int64(1815))
        """
        return Dataset(deferred.Select(self._plan, keys, name=name))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset[T_co]:
        """Return the elements for which a function returns True.

        Args:
            predicate: takes an element as ``map`` passes it, returns a bool.
            name: a label.

        Raises:
            TypeError: if ``predicate`` cannot be called.
            SpecError: while iterating, if it returns anything but a bool.

        >>> [int(x) for x in Dataset.range(6).filter(lambda x: x % 2 == 0)]
        [0, 2, 4]
        """
        return Dataset(deferred.Filter(self._plan, predicate, name=name))

    def flat_map(self, map_func: Callable[..., Dataset[S]], name: str | None = None) -> Dataset[S]:
        """Return the elements of a dataset for each element, one dataset after the other.

        Args:
            map_func: takes an element as ``map`` passes it, returns a Dataset.
            name: a label.

        Raises:
            TypeError: if ``map_func`` cannot be called; while iterating, if it returns no Dataset.

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
        """Return the elements of a dataset for each element, several datasets side by side.

        Args:
            map_func: takes an element as ``map`` passes it, returns a Dataset.
            cycle_length: how many datasets are open at a time. Default, and for AUTOTUNE, 4.
            block_length: elements taken from one before the next has its turn. Default 1.
            num_parallel_calls: from how many datasets to read at once, in background threads, each into a bounded
                buffer. ``map_func`` is called, and the first elements are read, ahead for the next
                ``min(cycle_length, num_parallel_calls)`` datasets beside those of the cycle. Default: nothing is read
                before it is asked for. AUTOTUNE begins with ``cycle_length``, as reading is mostly waiting; the
                autotuner then sets it.
            deterministic: whether the order is the one that reading one dataset at a time gives. Default: as
                ``Options().deterministic`` says, which is yes. False gives what is ready first.
            name: a label.

        Raises:
            TypeError: if ``map_func`` cannot be called; while iterating, if it returns no Dataset.
            ValueError: if a number is too small.

        >>> numbers = Dataset.range(1, 4).interleave(
        ...     lambda n: Dataset.from_tensors(n).repeat(3), cycle_length=2, block_length=2)
        >>> [int(x) for x in numbers]
        [1, 1, 2, 2, 1, 2, 3, 3, 3]
        """
        require_parallelism("interleave", num_parallel_calls, deterministic)
        cycle = deferred.DEFAULT_CYCLE_LENGTH if cycle_length is None or cycle_length == AUTOTUNE else cycle_length
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

    def concatenate(self, dataset: Dataset[Any], name: str | None = None) -> Dataset[Any]:
        """This dataset, then another.

        Args:
            dataset: with elements of the same structure and dtypes.
            name: a label.

        Raises:
            TypeError: if it is no Dataset, or its elements do not go with these.

        >>> [int(x) for x in Dataset.range(2).concatenate(Dataset.range(10, 12))]
        [0, 1, 10, 11]
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"concatenate(): expected a Dataset, got {dataset!r} of type {type(dataset).__name__}")
        return Dataset(deferred.Concatenate.of(self._plan, dataset.plan, name))

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset[tuple[Any, T_co]]:
        """Return each element with its number before it.

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

        >>> [int(x) for x in Dataset.range(100).take(3)]
        [0, 1, 2]
        """
        return Dataset(deferred.Take(self._plan, count, name=name))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset[T_co]:
        """Return the elements before the first for which a function returns False.

        Args:
            predicate: takes an element as ``map`` passes it, returns a bool. It is not called behind the first False.
            name: a label.

        Raises:
            TypeError: if ``predicate`` cannot be called.
            SpecError: while iterating, if it returns anything but a bool.

        >>> [int(x) for x in Dataset.range(100).take_while(lambda x: x * x < 20)]
        [0, 1, 2, 3, 4]
        """
        return Dataset(deferred.TakeWhile(self._plan, predicate, name=name))

    def skip(self, count: int, name: str | None = None) -> Dataset[T_co]:
        """All but the first elements.

        Args:
            count: how many to leave out; all of them if negative.
            name: a label.

        >>> [int(x) for x in Dataset.range(5).skip(3)]
        [3, 4]
        """
        return Dataset(deferred.Skip(self._plan, count, name=name))

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Dataset[T_co]:
        """Return every ``num_shards``-th element, from number ``index`` on, so that workers can share the data.

        Shard early, best the file names, before anything random.

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
        """This process's share of the elements, for training in several processes, with equally many for each.

        All processes together give every element once, batches if it stands behind ``batch``. Each makes as little as
        possible of what is others': where whole files can be dealt out, it reads its own; else elements are dealt out
        below the functions of ``map``, and rows that are others' are not read where they can be had by number.
        ``explain()`` shows where. Write it last, before ``prefetch``; what stands behind it sees this process's
        elements only. ``docs/howto/sharding.md`` says more.

        All processes must build the same pipeline, and begin their iterations over it together. They then agree about
        what is random below it. A shuffle of rows that are taken by number is one order for all; any other shuffles
        each process's own elements. Each pass of ``repeat`` is dealt out for itself. ``deterministic=False`` does not
        hold below. Functions that draw random numbers by themselves, or return datasets that do without a seed, do not
        agree; ``random_map`` does.

        Args:
            rank: which process this is, from 0. Default: as torch.distributed says if it is initialised, else as JAX
                does, else as the variable RANK, which torchrun sets; else 0 of 1. Asked at this call.
            world_size: of how many; with ``rank`` or not at all.
            remainder: what becomes of the last round, if there are not enough elements for all. ``"drop"``: it is left
                out. ``"pad"``: who has none gets one of zeros (text is empty), with the shapes and dtypes of its last.
                ``"repeat"``: who has none gets one from the beginning again. ``"keep"``: it is given as it is, so some
                processes have one more, which must not meet a collective operation. With files, all have as many as
                the process that has fewest (``"drop"``) or most.
            by: ``"files"``: file ``i`` of the list, before it is shuffled, belongs to process ``i`` modulo
                ``world_size``. What stands above must not mix or count the records of several files, as ``take``,
                ``enumerate`` and ``zip`` do; and unless it has no end, or ``remainder`` is ``"keep"``, the number of
                records must follow from the files: each process then counts the records of all files, once, when the
                first element is asked for. ``"elements"``: element ``k`` belongs to process ``k`` modulo
                ``world_size``. ``"auto"``: files, where there are as many as processes and it can be done.
            seed: of what is random and has no seed of its own; the same in all processes.
            name: a label.

        Raises:
            ValueError: if ``rank`` is not below ``world_size``, or one of them is given alone; if files are asked for
                where they cannot be dealt out; it says why.
            TypeError: if an argument has a wrong type.

        >>> [int(x) for x in Dataset.range(7).shard_by_process(rank=1, world_size=3)]
        [1, 4]
        """
        if rank is None and world_size is None:
            rank, world_size = deferred.process_rank("shard_by_process")
        return Dataset(
            deferred.shard_plan(self._plan, rank, world_size, remainder=remainder, by=by, seed=seed, name=name)
        )

    def assert_cardinality(self, expected_cardinality: int, name: str | None = None) -> Dataset[T_co]:
        """Return the same elements, of which it is known that there are so many, such as records of files.

        Then ``len`` works, and with it progress bars, the steps of Keras, and ``to_torch()`` in a DataLoader. It is
        checked while iterating. tf.data has it as ``tf.data.experimental.assert_cardinality``.

        Args:
            expected_cardinality: the number of elements, those that fail included, or ``INFINITE_CARDINALITY``.
            name: a label for errors and plans.

        Raises:
            TypeError: if the number is no int.
            ValueError: if it is negative, or the plan has another one.
            CardinalityError: while iterating, at the end: if there are fewer, in the place behind them; if there are
                more, in the place of the first that is too many, and nothing comes behind it.

        >>> even = Dataset.range(10).filter(lambda x: x % 2 == 0).assert_cardinality(5)
        >>> len(even), len(even.batch(2))
        (5, 3)
        """
        return Dataset(deferred.AssertCardinality(self._plan, expected_cardinality, name=name))

    def unique(self, name: str | None = None) -> Dataset[T_co]:
        """Return each element once, where it comes first.

        Elements are equal if they have the same dtypes, shapes and values; NaN equals NaN. What has been seen is kept
        in memory, and in a saved state.

        Args:
            name: a label.

        Raises:
            SpecError: while iterating, if an element holds an object without a hash.

        >>> [int(x) for x in Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique()]
        [3, 1, 2]
        """
        return Dataset(deferred.Unique(self._plan, name=name))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset[T_co]:
        """Return the elements that do not fail. Interrupts come out.

        Where 100,000 elements in a row have failed, the last error comes out, because the input may go on like that
        without end.

        Args:
            log_warning: whether to log each error, with where it comes from, to the logger ``dataset``.
            name: a label.

        >>> numbers = Dataset.from_tensor_slices([1, 0, 4]).map(lambda x: 8 // int(x))
        >>> [int(x) for x in numbers.ignore_errors()]
        [8, 2]
        """
        return Dataset(deferred.IgnoreErrors(self._plan, log_warning, name=name))

    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset[T_co]:
        """Return the dataset several times over. Each pass runs it anew, with another order where it is shuffled.

        Args:
            count: how often; endlessly if None or negative.
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
        """Return the elements in a random order.

        A buffer is filled; each element that comes out is drawn from it at random and replaced by the next. In-memory
        arrays and files with an index are shuffled by index, so that a large buffer costs little, and none of it is
        saved in a state where it holds all elements.

        Args:
            buffer_size: elements to draw from; None, or UNKNOWN_CARDINALITY (-2), for all of them.
            seed: makes the orders repeatable: a pipeline built again gives the same sequence of orders.
            reshuffle_each_iteration: whether each epoch and each new iterator gets another order; None is True.
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
        """Elements dropped or repeated so that classes come in wanted shares, each element as (class, element).

        The data are read in up to three passes side by side, and ``class_func`` is called in each.

        Args:
            class_func: takes an element as ``map`` passes it, returns its class, an int from 0 on.
            target_dist: the share wanted of each class.
            initial_dist: the share that each class has in the data. Default, estimated from what has been read.
            seed: makes the choice repeatable.
            name: a label.

        Raises:
            TypeError: if ``class_func`` cannot be called, or a distribution is no vector of numbers.
            ValueError: if a distribution does not add up to 1, or asks for what is not there; while iterating, in the
                place of an element whose class is out of range.

        >>> numbers = Dataset.range(10_000)  # one in ten is of class 1
        >>> even = numbers.rejection_resample(lambda x: int(x % 10 == 0), [0.5, 0.5], [0.9, 0.1], seed=1)
        >>> classes = [label for label, number in even]
        >>> bool(0.45 < np.mean(classes) < 0.55)
        True
        """
        return Dataset(deferred.rejection_resample_plan(self._plan, class_func, target_dist, initial_dist, seed, name))

    # Batches

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Consecutive elements stacked into arrays with a new first axis.

        Args:
            batch_size: elements in a batch.
            drop_remainder: whether to leave out a last batch that is not full.
            num_parallel_calls: the most batches stacked at once, in the background, ahead of whoever iterates, by as
                many batches. Default, one at a time, when it is asked for. AUTOTUNE begins with the number of cores
                that this process may use. It pays for large elements.
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

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Batches of components of different sizes, filled up at the end.

        Args:
            batch_size: elements in a batch.
            padded_shapes: shapes in the structure of an element, None or -1 for the largest in the batch. Default, the
                largest in every dimension.
            padding_values: what to fill up with, in the structure of an element or one for all. Default 0 or ``b""``.
            drop_remainder: whether to leave out a last batch that is not full.
            name: a label.

        Raises:
            ValueError: if ``batch_size`` is less than 1, or shapes do not go with the elements.
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
        """Batches of components of different sizes, as RaggedTensors.

        A component is dense, as from ``batch``, where ``element_spec`` has its whole shape. Of a component with unknown
        dimensions the last unknown one and all before it are ragged; behind a ``map``, whose spec only running tells,
        all dimensions are. RaggedTensors are stacked as they are, and keep their row splits.

        Args:
            batch_size: elements in a batch.
            drop_remainder: whether to leave out a last batch that is not full.
            row_splits_dtype: of the RaggedTensors made of dense components: int32 or int64.
            name: a label.

        Raises:
            ValueError: if ``batch_size`` is less than 1, or ``row_splits_dtype`` another dtype.
            SpecError: while iterating, if elements of a batch differ in structure, dtype, rank or inner shape.

        >>> next(iter(Dataset.range(1, 4).map(lambda n: np.full(n, n)).ragged_batch(3)))
        RaggedTensor([[1], [2, 2], [3, 3, 3]], dtype=int64)
        """
        return Dataset(deferred.RaggedBatch(self._plan, batch_size, drop_remainder, row_splits_dtype, name=name))

    def sparse_batch(self, batch_size: int, row_shape: Any, name: str | None = None) -> Dataset[Any]:
        """Batches of one dense component of different sizes, as SparseTensors. Every cell is stored, zeros too.

        Args:
            batch_size: elements in a batch; the last may have fewer.
            row_shape: room for one element; None for the largest in the batch.
            name: a label.

        Raises:
            TypeError: if elements are more than one component, or are ragged or sparse.
            ValueError: if ``batch_size`` is less than 1, or ``row_shape`` does not go with the elements.
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
        """Batches of other sizes: what ``unbatch().batch(batch_size)`` gives, at the cost of slices.

        Args:
            batch_size: rows in a batch; of several sizes, each in turn, from the start again. A batch of 0 is empty.
            drop_remainder: whether to leave out a last batch that is not full.
            name: a label.

        Raises:
            TypeError: if ``batch_size`` holds anything but ints.
            ValueError: if it is negative or all 0, or components are scalars.
            SpecError: while iterating, if components differ in the number of rows, or the rows of a batch in shape.

        >>> [batch.tolist() for batch in Dataset.range(7).batch(4).rebatch([3, 0, 1])]
        [[0, 1, 2], [], [3], [4, 5, 6], []]
        """
        return Dataset(deferred.Rebatch(self._plan, batch_size, drop_remainder, name=name))

    def unbatch(self, name: str | None = None) -> Dataset[Any]:
        """Return the rows of each element, one by one.

        Args:
            name: a label.

        Raises:
            ValueError: if a component is a scalar.

        >>> [int(x) for x in Dataset.from_tensors([1, 2]).repeat(2).unbatch()]
        [1, 2, 1, 2]
        """
        return Dataset(deferred.Unbatch(self._plan, name=name))

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
        """Batches of elements of like length, so that little has to be filled up.

        Args:
            element_length_func: takes an element as ``map`` passes it, returns its length, an int.
                Fastest is one that only looks a length up, such as ``len`` or ``lambda tokens, label: len(tokens)``: of
                rows in memory, those of thousands are known at once.
            bucket_boundaries: ascending lengths; bucket ``i`` holds those below boundary ``i``, the last one the rest.
            bucket_batch_sizes: elements in a batch of each bucket, one more than there are boundaries.
            padded_shapes: as in ``padded_batch``. Default, the largest in the batch.
            padding_values: as in ``padded_batch``.
            pad_to_bucket_boundary: whether to fill unknown dimensions up to the bucket's boundary minus 1.
            no_padding: whether to fill up nothing, for sparse and ragged elements.
            drop_remainder: whether to leave out batches that are not full at the end.
            name: a label.

        Raises:
            TypeError: if an argument is of a wrong type, or elements cannot be padded.
            ValueError: if the boundaries do not ascend, or the numbers of sizes and boundaries do not go together;
                while iterating, with ``pad_to_bucket_boundary``, at the place of an element that is as long as the last
                boundary or longer.

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
        """Datasets of consecutive elements. ``flat_map`` makes elements of them again, such as batches that overlap.

        A window of tuples is a tuple of datasets, one of dicts a dict of datasets. The elements of a window are there
        when the window is: it can be iterated at any time, and several times.

        Args:
            size: elements in a window.
            shift: how far the next window starts behind this one. Default ``size``.
            stride: how far the elements of a window are apart.
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

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Dataset[T_co]], Dataset[S]],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Dataset[S]:
        """Return what a function makes of each window of elements with the same key.

        As soon as there are enough elements with a key, ``reduce_func`` is called with the key and a dataset of them,
        and the elements of the dataset that it returns come out. At the end come the windows that are not full, in the
        order of their keys.

        Args:
            key_func: takes an element as ``map`` passes it, returns an int.
            reduce_func: takes a key, as int64, and a Dataset of elements; returns a Dataset.
            window_size: elements in a window.
            window_size_func: takes a key, returns the number of elements in its windows; instead of ``window_size``.
                Called once for each key.
            name: a label.

        Raises:
            TypeError: if a function cannot be called; while iterating, if ``reduce_func`` returns no Dataset.
            ValueError: if both or none of ``window_size`` and ``window_size_func`` are given; if a size is less than 1.
            SpecError: while iterating, if ``key_func`` or ``window_size_func`` returns no int.

        >>> batches = Dataset.range(7).group_by_window(
        ...     key_func=lambda x: x % 2, reduce_func=lambda key, window: window.batch(3), window_size=3)
        >>> [batch.tolist() for batch in batches]
        [[0, 2, 4], [1, 3, 5], [6]]
        """
        return Dataset(
            deferred.GroupByWindow(self._plan, key_func, reduce_func, window_size, window_size_func, name=name)
        )

    # How it runs

    def cache(
        self,
        filename: str | os.PathLike[str] = "",
        name: str | None = None,
        *,
        on_mismatch: Literal["error", "rebuild"] = "error",
    ) -> Dataset[T_co]:
        """Keep the elements of the first full pass for the passes after it, in memory or in files.

        Put it behind what is costly and before what is random. Arrays come out read-only, because they are kept.

        A pass that is left before its end keeps nothing, and the next pass starts anew; with a ``filename`` a warning
        is logged. Elements that fail are raised in the pass that fills the cache, and left out of those after it.

        Args:
            filename: a directory, made by the first pass if its parent exists; later processes read from it, too.
                Default: in memory, for this Dataset.
            name: a label.
            on_mismatch: what to do if another pipeline filled the directory, or this one before an edit: ``"error"``,
                or ``"rebuild"`` to fill it anew. Other operations, arguments, seeds and data are noticed, and edits of
                functions: their code, the values that they capture or have as defaults, and the functions and values of
                their own module that they name. Not noticed are edits of other modules, other contents of files of the
                same names, objects of other packages with other content, values that change while the pipeline runs,
                all edits of functions where another version of Python filled the cache, and changes of a few values in
                arrays of more than 64 MiB.

        Raises:
            FileExistsError: while iterating, if another iterator is filling the same directory.
            SpecError: while iterating, if the directory holds the elements of another pipeline.
            ValueError: if ``filename`` has a scheme, such as ``s3://``, or ``on_mismatch`` is another word.
            TypeError: while iterating, for an element that no file can hold, such as an object of a class of your own.

        >>> calls = []
        >>> dataset = Dataset.range(3).map(lambda x: calls.append(x) or x).cache()
        >>> [len(list(dataset)), len(list(dataset)), len(calls)]
        [3, 3, 3]
        """
        if on_mismatch not in {"error", "rebuild"}:
            raise ValueError(f'cache(): on_mismatch must be "error" or "rebuild", got {on_mismatch!r:.100}')
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
        """Write the elements of the first full run to files; later runs, in whatever process, read them.

        Unlike a cache in files, a snapshot belongs to the very pipeline before it: one whose functions, numbers or
        arrays are others has a snapshot of its own under the same path. (Functions count by their code and what they
        refer to, as far as that can be seen. Files that a pipeline reads count by name.) A run that is left early, or
        in which an element fails, is not kept. Several may write at once; the first to end is kept.

        Args:
            path: a directory for snapshots.
            compression: ``"GZIP"`` or ``"ZLIB"``; None and ``"AUTO"`` are none.
            reader_func: takes a Dataset of one Dataset for each shard, returns a Dataset of their elements. Default: an
                element from each in turn.
            shard_func: takes an element as ``map`` passes it, returns the number of its shard. Default: four in turn.
            name: a label.

        Raises:
            TypeError: if a function cannot be called.
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
        """Make the next elements in a background thread while the current one is used.

        Args:
            buffer_size: elements to hold at most, of whatever kind they are: behind ``batch``, batches. AUTOTUNE, or
                None, begins with 2; the autotuner sets it, up to 128. There is a thread then only while making
                elements and using them both take long enough for that to pay. While memory is short
                (``options.autotune.ram_budget``) it holds fewer, whatever the size.
            name: a label.

        Raises:
            ValueError: if ``buffer_size`` is negative and not AUTOTUNE.

        >>> [int(x) for x in Dataset.range(3).prefetch(2)]
        [0, 1, 2]
        """
        return Dataset(deferred.Prefetch(self._plan, AUTOTUNE if buffer_size is None else buffer_size, name=name))

    def with_options(self, options: Options, name: str | None = None) -> Dataset[T_co]:
        """Return the same dataset, run with other settings. Settings made later in a chain win.

        Args:
            options: what to set.
            name: a label.

        Raises:
            TypeError: if it is no Options.

        >>> options = Options()
        >>> options.optimization.enabled = False
        >>> Dataset.range(3).with_options(options).options()
        Options(optimization=OptimizationOptions(enabled=False))
        """
        if not isinstance(options, Options):
            raise TypeError(f"with_options(): expected an Options, got {options!r} of type {type(options).__name__}")
        return Dataset(deferred.WithOptions(self._plan, options.freeze(), name=name))

    def options(self) -> Options:
        """All settings of this dataset and its inputs, merged; they cannot be changed."""
        return deferred.options_of(self._plan).freeze()

    def apply(self, transformation_func: Callable[[Self], S]) -> S:
        """Return what a function makes of this dataset, so that own transformations fit into a chain.

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

    # What it gives

    def get_single_element(self, name: str | None = None) -> T_co:
        """Return the element of a dataset of one element; the way to run a pipeline on a single thing.

        Args:
            name: a label.

        Raises:
            ValueError: if there is no element, or more than one.

        >>> Dataset.from_tensors([1, 2]).map(lambda x: x * 10).get_single_element()
        array([10, 20])
        """
        return cast("T_co", deferred.get_single_element(self._plan, iter(self), name))

    def reduce(self, initial_state: S, reduce_func: Callable[[S, Any], S], name: str | None = None) -> S:
        """Run through all elements and combine them into one value.

        Args:
            initial_state: an element; what comes out for an empty dataset.
            reduce_func: takes the state and an element (a tuple as one argument), returns the next state.
            name: a label.

        Raises:
            SpecError: if ``reduce_func`` returns another structure than the state has.

        >>> Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x)
        np.int64(10)
        """
        del name  # nothing is left that it could label
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
        """Run through all elements and write them to files, from which ``Dataset.load`` makes a dataset again.

        What was saved under the path before is replaced when all is written, and stays when an element fails.

        Args:
            path: a directory; it is made.
            compression: ``"GZIP"`` or ``"ZLIB"``. Default: none, which also ``"AUTO"`` means.
            shard_func: takes an element as ``map`` passes it, returns the number of the shard that it goes into.
                Default: one shard.
            checkpoint_args: makes a save that was interrupted go on where its last checkpoint was written, when the
                same pipeline is saved to the same path again: a dict of ``directory`` (for them), ``max_to_keep``
                (how many, or None for all), and, optional, ``checkpoint_interval`` (elements from one to the next; by
                default 16 MiB) and ``checkpoint_name`` (of their files; ``"ckpt"``).

        Raises:
            TypeError: for elements that no file can hold, such as objects of classes of your own.
            SpecError: if the elements differ in structure or dtype.
            ValueError: if the dataset is infinite, or an argument wrong; if a path has a scheme, such as ``s3://``.
            OSError: if nothing can be written there.

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
        """Run through all elements and write them to TFRecord files, which any reader of that format can read.

        Element ``i`` goes to shard ``i % num_shards``, so shards differ by one record at most. They all get their names
        at the end, one right after the other; until then what was there before stays. When an element fails, the disk
        is full or the program is interrupted, none of them appears. Each is an open file until the end.

        Args:
            path_pattern: the names of the files, with the fields ``{shard}``, counted from 0, and ``{num_shards}``,
                such as ``"train-{shard:05d}-of-{num_shards:05d}.tfrecord"``. A brace in a name is written twice.
            num_shards: how many files. More than one need ``{shard}`` in the pattern.
            compression: ``"GZIP"`` or ``"ZLIB"``. Default: none.
            encode: takes an element as ``map`` passes it, returns the bytes of its record; one that is marked with
                ``@vectorized`` is called with columns. Default: elements that are ``bytes`` are records, dicts are made
                Examples by ``io.encode_example``.
            compression_level: 0 (fastest) to 9 (smallest). Default: zlib's, 6.
            progress: whether to say on stderr how many records were written, of how many, how fast, and how many bytes
                they have before compression. Default: if stderr is a terminal.

        Returns:
            The names of the files, shard 0 first.

        Raises:
            TypeError: for elements that are neither bytes nor dicts, without ``encode``; for results of ``encode`` that
                are not bytes.
            ValueError: if the dataset is infinite, the pattern has other fields or lacks ``{shard}``, or an argument is
                wrong.
            OSError: if nothing can be written there, or the system allows too few open files.

        >>> import os, tempfile
        >>> from dataset import TFRecordDataset
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pattern = os.path.join(folder, "train-{shard:02d}-of-{num_shards:02d}.tfrecord")
        ...     paths = Dataset.range(5).write_tfrecord(pattern, 2, encode=lambda x: b"record %d" % x)
        ...     [os.path.basename(path) for path in paths], list(TFRecordDataset(paths[1]))
        (['train-00-of-02.tfrecord', 'train-01-of-02.tfrecord'], [b'record 1', b'record 3'])
        """
        return deferred.write_tfrecord(
            self._plan, _whole_pass, path_pattern, num_shards, compression, encode, compression_level, progress
        )

    # Frameworks

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

        Iterate over it, or hand it to what takes one. A tensor shares the memory of its array. torch has no read-only
        tensors: of an array that is read-only, such as a view of a source or of a cache, it gets a copy.

        ``DataLoader(dataset.to_torch(), batch_size=None, num_workers=4)`` runs the pipeline in processes, of which each
        makes a part of the elements; together they give every element once, and what is not shuffled in its order.
        That pays where functions hold the interpreter's lock; else threads (``num_parallel_calls``) cost less. A
        ``shuffle`` of what can only be read one after the other shuffles within each worker's part. Each worker keeps
        a memory cache of its own, which lasts as long as the worker: use ``persistent_workers=True``. The cores and
        the memory that AUTOTUNE may use are divided among the workers.

        Passes over it are numbered from 0, also in workers, and each has the random orders of its number;
        ``set_epoch(n)`` says which the next ones are. Iterators have ``state_dict()`` and ``load_state_dict()``, with
        which torchdata's ``StatefulDataLoader`` goes on in the middle of an epoch, with as many workers as before.

        Text is ``bytes``, and arrays of text are nested lists. A RaggedTensor becomes a nested tensor of the jagged
        layout, a SparseTensor a sparse COO tensor, a Dataset in an element a dataset of tensors. bfloat16 and float8
        come from ml_dtypes.

        Args:
            device: where the tensors are wanted, such as ``"cuda"``; default, in the host's memory. For CUDA one
                element is made ahead, and copied from page-locked memory, on a stream of its own, while the device
                computes with the one before. Not for use in the workers of a DataLoader.
            pin_memory: whether tensors in the host's memory are page-locked, for copies that do not block. Without an
                accelerator it warns, and does nothing.
            map_style: whether to make a ``torch.utils.data.Dataset`` with ``__getitem__`` and ``__len__`` instead, for
                samplers of torch. That takes random access and a known length.

        Raises:
            TypeError: for a component that torch has no tensors for, such as datetime64 (while iterating, where only
                user code can tell); with ``map_style``, if there is no random access or no length, naming the op.
            ValueError: if there is no such device.
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
        """Return the dataset as ``fit``, ``evaluate`` and ``predict`` of Keras 3 take it, on any backend of Keras.

        An element is one batch: ``x``, ``(x, y)`` or ``(x, y, sample_weight)``, each of them an array or, for models
        with several inputs or outputs, a tuple or dict of arrays. ``predict`` takes the ``x`` of it. Each epoch is a
        new pass over the dataset, so what is shuffled comes in a new order. Keras knows the number of steps where
        ``cardinality()`` does. With ``steps_per_epoch`` an epoch goes on where the last one stopped; infinite datasets
        need it. ``batch_size``, ``shuffle`` and ``validation_split`` of ``fit`` are for arrays in memory.

        Floats come as ``keras.config.floatx()``, as those of arrays in memory do; other dtypes stay. Text is for the
        TensorFlow backend only. No batch is made ahead beyond what ``prefetch`` says; on TensorFlow, one more. Keras
        itself takes one to build a model that has not been built, and to see the shapes of targets before its first
        training.

        An error in the pipeline comes out of ``fit`` as it is; on TensorFlow as one of ``tf.errors``, with its type,
        traceback and notes in the message. A training that stops within an epoch leaves its iterator to the garbage
        collector. Where the number of batches is unknown, Keras warns at the end of an epoch that data ran out.

        Args:
            class_weight: how much the targets of a class weigh in the loss, by class number; classes that are not named
                weigh 1. For elements ``(x, y)`` with one output. ``fit`` does not take its own ``class_weight``,
                ``sample_weight`` or ``y`` beside a dataset.

        Returns:
            An object for Keras, for any number of calls. With Keras before 3.7 a ``keras.utils.PyDataset``, for which
            the number of batches must be known or infinite.

        Raises:
            ImportError: if Keras is not installed.
            ValueError: if there are no batches, or elements that Keras does not take: single values, RaggedTensors,
                dataclasses, ... Where only running the pipeline can tell, it is raised by ``fit``.
            TypeError: if ``class_weight`` is no dict of ints and numbers.

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
        """Return the same elements as JAX arrays on devices, the next ones on their way while one is worked on.

        The result can be iterated over any number of times and has this dataset's length. Its iterators have
        ``close``, ``with``, ``state_dict``, ``load_state_dict`` and ``stats`` as those of a Dataset; a state belongs to
        the element that was handed out last. They have ``get_state`` and ``set_state`` as those of Grain have, so that
        Orbax saves them beside the weights. Structures stay, dataclasses and attrs classes included; dtypes are JAX's:
        without ``jax_enable_x64``, 64-bit numbers are cut to 32 bits without a word. No JAX array shares memory with
        an array that anybody else holds.

        Reading ahead takes no thread: each step asks for the element that is ``prefetch`` places further on, and begins
        to copy it. Put ``prefetch`` at the end of this dataset, too, to make the elements themselves in the background.

        Args:
            sharding: a ``jax.sharding.Sharding`` or ``jax.Device`` for all components, or a structure of them like that
                of the elements or its upper part. Where devices of other processes are in it, each process gives its
                own rows, as many as the others, and gets global arrays. Default: the default device.
            prefetch: elements to ask for, and to copy, before they are needed. 0 is none.

        Raises:
            TypeError: if ``sharding`` is something else, or has another structure than the elements.
            SpecError: for components of which JAX has no arrays (text, ragged or sparse tensors, datasets, objects),
                or shapes that a sharding can't cut. In the place of the element, unless the spec tells at once.
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
        """Return the same elements as a ``tf.data.Dataset``, for TensorFlow's own ops and training loops.

        It has the right ``element_spec`` and cardinality, and each pass over it is a new one over this dataset. Text is
        ``tf.string``; RaggedTensor, SparseTensor, tuples, named tuples, dicts, attrs classes and ``None`` are
        TensorFlow's, and so are dataclasses that have ``__tf_flatten__``. TensorFlow calls Python for each element,
        which takes some hundred microseconds: batch first. Nothing is read ahead that neither this dataset's nor
        TensorFlow's ``prefetch`` asks for. What an element raises comes out in its place, as a ``tf.errors`` exception
        with the text of the original. TensorFlow's checkpoints can't hold its iterators.

        Args:
            output_signature: TensorSpec, RaggedTensorSpec and so on in the structure of an element. Default:
                ``element_spec``. After a user's function the sizes are those of the first element, and an element of
                other sizes is an error; give a signature with None for sizes that differ.

        Raises:
            SpecError: if TensorFlow has no type for a component, such as ``datetime64``, Python objects and datasets,
                or for the structure; in the place of an element that is not of the signature, as text.
            TypeError: if something else than a spec is in the signature.
            ImportError: if TensorFlow is not installed.

        >>> batches = Dataset.range(4).map(lambda x: {"x": x}).batch(2, drop_remainder=True)
        >>> for element in batches.to_tf():
        ...     print(element)
        {'x': <tf.Tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>}
        {'x': <tf.Tensor: shape=(2,), dtype=int64, numpy=array([2, 3])>}
        """
        tf = load_extra("tensorflow", "tensorflow", "to_tf() needs")
        return deferred.tf_dataset(tf, self, output_signature)

    def progress(self, desc: str | None = None, **arguments: Any) -> Progress[T_co]:
        r"""Return the dataset with a progress bar of tqdm's: ``for batch in train.progress("epoch 1")``.

        Each iteration draws a bar of its own, which knows the end where ``cardinality()`` does. The bar and the
        iterator are closed with the loop: at the end, by ``break``, by an exception.

        Args:
            desc: what stands before the bar.
            **arguments: what ``tqdm.auto.tqdm`` takes beside the data, such as ``total``, ``unit`` (default
                ``"batch"``, or ``"element"`` where elements are none), ``leave``, ``file``, ``ncols``, ``mininterval``,
                ``disable``, ``position``, ``initial``, ``postfix``, ``colour``.

        Returns:
            What can be iterated over any number of times, with the length of the dataset.

        Raises:
            ImportError: if tqdm is not installed.
            TypeError: if tqdm has no such argument.

        >>> import io
        >>> terminal = io.StringIO()
        >>> total = 0
        >>> for batch in Dataset.range(10).batch(4).progress("adding", file=terminal):
        ...     total += batch.sum()
        >>> print(terminal.getvalue().split("\r")[-1])
        adding: 100%|...| 3/3 [00:00<00:00, ...batch/s]
        """
        load_extra("tqdm.auto", "progress", "progress() needs")
        return deferred.Progress(self, {"desc": desc, **arguments})

    def __iter__(self) -> DatasetIterator[T_co]:
        return deferred.DatasetIterator(self._optimized.plan, self._optimized.options, deferred.Autotuner)

    def __getitem__(self, index: int) -> T_co:
        """Element ``index``, made without those before it; from the end where it is negative.

        Works where every op can go to a place: on arrays and ``range``, and through ``map``, ``batch``, ``zip``,
        ``enumerate``, ``take``, ``skip``, ``shard``, ``repeat``, ``concatenate`` and the like. An element that fails
        counts like any other. Arrays, and records of files with an index, are looked up at once; behind other ops the
        pipeline is opened each time, which takes some tens of microseconds.

        Raises:
            TypeError: if ``index`` is no int, or an op, which is named, must run from its start.
            IndexError: if there is no such element.

        >>> Dataset.range(1000).map(lambda x: x * x).batch(100)[3][:4]
        array([90000, 90601, 91204, 91809])
        """
        element: T_co = deferred.element_at(self._plan, index)
        return element

    @property
    def element_spec(self) -> Any:
        """What an element is: its structure, with a TensorSpec for each component.

        Known without running anything, except after a user's function: then one element is made, once. Its kinds,
        dtypes and ranks are taken for those of all. Its sizes are not: those dimensions are None.

        >>> Dataset.range(10).batch(4).element_spec
        TensorSpec(shape=(None,), dtype=int64)
        """
        return self._plan.element_spec

    def cardinality(self) -> int:
        """How many elements there are; INFINITE_CARDINALITY (-1), or UNKNOWN_CARDINALITY (-2) if only running tells.

        >>> Dataset.range(10).batch(4).cardinality()
        3
        """
        return self._plan.cardinality()

    def __len__(self) -> int:
        cardinality = self.cardinality()
        if cardinality == INFINITE_CARDINALITY:
            raise TypeError("this dataset is infinite and has no length; use take() or cardinality()")
        if cardinality == UNKNOWN_CARDINALITY:
            raise TypeError("the length of this dataset is unknown before it is run; use cardinality()")
        return cardinality

    def __bool__(self) -> bool:
        return True  # as in tf.data: asking whether there is a dataset must not ask for its length

    def fingerprint(self) -> np.uint64:
        """A number for what the dataset gives: equal for pipelines that are built alike, also in other processes.

        It goes over ops, parameters, seeds, the data of in-memory arrays, and the code of functions with what they
        capture. What functions read elsewhere, and the content of files, does not count. Another version of Python may
        give another number.

        >>> def make(factor):
        ...     return Dataset.range(3).map(lambda x: x * factor)
        >>> bool(make(2).fingerprint() == make(2).fingerprint())
        True
        >>> bool(make(2).fingerprint() == make(3).fingerprint())
        False
        """
        return np.uint64(deferred.content_fingerprint(self._plan))

    def explain(self, format: str = "text") -> str:
        """The plan as it was written and as it will run, the rules that made the difference, and those that nearly did.

        Nothing is run for it, user functions neither. The text has the last operation on top, each with the number of
        its elements, the line where it was written, that of its function, and its spec, as far as they are known.

        Args:
            format: ``"text"``; ``"svg"`` for a picture; ``"html"`` for the picture with the lists, as notebooks show
                it; ``"dot"`` for Graphviz source. The last three draw the plan as it will run.

        Raises:
            ValueError: if there is no such format.

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
        name = self.options().dataset_name
        match format:
            case "text":
                return deferred.explain_text(name, self._plan, self._optimized)
            case "html":
                return deferred.page(name, self._plan, self._optimized)
            case "svg":
                return deferred.svg(self._optimized.plan, self._optimized.rules_of)
            case "dot":
                return deferred.dot(self._optimized.plan, self._optimized.rules_of)
        raise ValueError(f'explain(): format must be "text", "svg", "html" or "dot", got {format!r}')

    def _repr_html_(self) -> str:
        return self.explain("html")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return what notebooks show: they choose from these forms, and may say which they want."""
        forms: dict[str, Callable[[], str]] = {
            "text/plain": self.__repr__,
            "text/html": self._repr_html_,
            "image/svg+xml": lambda: self.explain("svg"),
        }
        return {
            kind: form()
            for kind, form in forms.items()
            if (include is None or kind in include) and (exclude is None or kind not in exclude)
        }

    def __repr__(self) -> str:
        name = self.options().dataset_name
        return f"<{type(self).__name__}{f' {name!r}' if name else ''}: {self._plan.location()}>"


def shared_among(dataset: Dataset[Any], processes: int) -> Dataset[Any]:
    """The same dataset, for one of several processes that run at once: its budgets are a part of what there is."""
    settings = dataset.options().autotune
    options = Options()
    options.autotune.cpu_budget = max(1, (settings.cpu_budget or usable_cores()) // processes)
    options.autotune.ram_budget = max(1, (settings.ram_budget or default_budget()) // processes)
    return dataset.with_options(options)


def columns_at(dataset: Dataset[Any], places: Sequence[int]) -> tuple[Structure, Sequence[Column]] | None:
    """Return the elements at these places, which exist, as columns.

    None where they have to be looked up one by one, which is so, too, where one fails: that shows which it is.
    """
    plan = deferred.chosen(dataset.plan, np.array(places, np.int64))
    if plan is None:
        return None
    try:
        elements = deferred.first_elements(plan, len(places))
    except Exception:  # noqa: BLE001  # it comes again
        return None
    return elements.structure, elements.columns()


def _whole_pass(plan: Node) -> ChunkScan:
    optimized = deferred.optimize(plan)
    return deferred.ChunkScan(optimized.plan, optimized.options, deferred.Autotuner)


def outgoing(dataset: Dataset[Any], convert: Convert, count: int, kind: type[Kind]) -> Kind:
    """Return an iterator over converted elements, for a framework.

    Args:
        dataset: whose elements they are.
        convert: see ``runtime/iteration/device_prefetch.py``.
        count: how many more elements may be asked for than were handed out.
        kind: of the iterator.
    """
    optimized = dataset._optimized  # noqa: SLF001  # its own class
    return kind(optimized.plan, optimized.options, deferred.Autotuner, deferred.DevicePrefetch(convert, count))


datasets_are_made_by(Dataset)

"""Datasets that are read from files, one class for each format, named as in tf.data.

These are the front: arguments, documentation, examples. How a format is read is in io/, and what they have in common,
such as moving from file to file, in io/dataset_files.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataset.dataset import Dataset
from dataset.io.csv.layout import layout_of
from dataset.io.csv.source import Csv
from dataset.io.dataset_files import file_names, read_files
from dataset.io.sql.source import SqlQuery
from dataset.io.text.fixed_length_records_source import FixedLengthRecord
from dataset.io.text.lines_source import TextLine
from dataset.io.tfrecord.indexed_source import indexed_records
from dataset.io.tfrecord.source import TFRecord
from dataset.plan.checks import require_bool

__all__ = ["CsvDataset", "FixedLengthRecordDataset", "SqlDataset", "TFRecordDataset", "TextLineDataset"]


class CsvDataset(Dataset[tuple[Any, ...]]):
    r"""The rows of CSV files, as tuples of scalars. For dicts of columns by the names in the header: ``from_csv``.

    A field may be put in double quotation marks; it may then hold delimiters and line ends, and two marks for one. Rows
    end with a line feed, a carriage return, or both. Blanks around numbers are allowed.

    A row that can't be read raises in its place, once, and reading goes on with the next: ``ignore_errors()`` drops it.
    A quotation mark that is never closed takes in the rest of its file.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        record_defaults: a list with an entry for each column that is read. A dtype, or an empty array of it, is that of
            a column in which no field may be empty; a value is that of a column where empty fields stand for this
            value. ``np.int32``, ``np.int64``, ``np.float32``, ``np.float64`` or ``bytes``; a Python int is int64, a
            float float64.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``.
        buffer_size: bytes to read at once. Default 256 KiB. No row may be longer than 64 MiB, or this if it is more.
        header: whether the first row of each file is passed over.
        field_delim: what separates fields; one byte.
        use_quote_delim: whether quotation marks mean anything.
        na_value: a text that counts as empty, beside the empty one.
        select_cols: the indices of the columns to read, ascending; default, all. A row may then have any others.
        exclude_cols: the indices of the columns not to read, instead.
        num_parallel_reads: from how many files to read at once, in background threads; a row from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.

    Raises:
        ValueError: if an argument can't be.
        TypeError: if one is of the wrong type, or no column can have a dtype.
        ParseError: while iterating, in the place of a row that has another number of fields, a misplaced quotation
            mark, a field that is empty or no number. It names file, line, column and text.
        FileNotFoundError: while iterating, at the place of a file that is missing; the next file is read after it.
        DataLossError: while iterating, where a compressed file is damaged; the next file is read after it.

    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "prices.csv")
    ...     _ = path.write_text('item,price,count\n"apple, red",0.5,3\npear,,7\n')
    ...     rows = CsvDataset(path, [bytes, np.float32(1), np.int64], header=True)
    ...     list(rows.batch(2))
    [(array([b'apple, red', b'pear'], dtype=object), array([0.5, 1. ], dtype=float32), array([3, 7]))]
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Any = None,
        exclude_cols: Any = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        files = file_names("CsvDataset", filenames)
        layout = layout_of(
            "CsvDataset", record_defaults, field_delim, use_quote_delim, na_value, select_cols, exclude_cols
        )
        rows = Csv(files, layout, compression_type, buffer_size, header, name=name)
        super().__init__(read_files(rows, num_parallel_reads))


class FixedLengthRecordDataset(Dataset[bytes]):
    """Records of one length, as ``bytes``, that stand end to end in binary files.

    ``io.decode_raw`` makes arrays of them.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        record_bytes: the length of each record, at least 1.
        header_bytes: how many bytes stand before the first record of each file. Default 0.
        footer_bytes: how many stand behind the last. Default 0.
        buffer_size: bytes to read at once. Default, and 0, 256 KiB.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``. Lengths are counted in the uncompressed file.
        num_parallel_reads: from how many files to read at once, in background threads; a record from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.

    Raises:
        ValueError: if the compression type is unknown, or a number too small.
        TypeError: if a file name is no path, or the dataset is one of something else.
        FileNotFoundError: while iterating, at the place of a file that is missing; the next file is read after it.
        DataLossError: while iterating, at the place of a file that holds no whole number of records. As in tf.data,
            none of it is given; of a compressed file, and of a pipe, whose size shows at its end only, all whole
            records are. Also where a compressed file is damaged. The next file is read after it.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.bin")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"head" + b"abcdef")
    ...     list(FixedLengthRecordDataset(path, record_bytes=3, header_bytes=4))
    [b'abc', b'def']
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        files = file_names("FixedLengthRecordDataset", filenames)
        source = FixedLengthRecord(
            files, record_bytes, header_bytes, footer_bytes, buffer_size, compression_type, name=name
        )
        super().__init__(read_files(source, num_parallel_reads))


class SqlDataset(Dataset[Any]):
    """The rows that an SQL query gives.

    Args:
        driver_name: ``"sqlite"``; or, for any other database, a function that opens a connection as Python's DB-API 2.0
            has it. It is called with ``data_source_name``, or with nothing if that is None, once for each iteration.
            One thread at a time uses the connection, but not always the same one.
        data_source_name: for SQLite a file, which is opened to be read only, ``":memory:"`` or a ``file:`` URI.
        query: a SELECT, or another statement that gives rows.
        output_types: a dtype for each column, nested as the elements are to be: bools, integers, floats, ``bytes``. The
            components of a dict stand in the order of its sorted keys, as in tf.data. By default elements are tuples,
            and dtypes those of the first row: bool, int64, float64, ``bytes``.

    NULL becomes 0, 0.0, False or ``b""``, as in tf.data; COALESCE in the query gives something else. Numbers become
    text, text that is a number becomes one, and floats that are whole become integers.

    An iterator that is resumed runs the query again and passes over as many rows as were given. So it goes on exactly
    there only if the query has an ORDER BY that leaves nothing open.

    Raises:
        ValueError: if there is no such driver, or ``output_types`` has no dtype.
        TypeError: if an argument has another type than these.
        FileNotFoundError: while iterating, if there is no such SQLite file. None is made.
        SpecError: while iterating, once, where the query has not as many columns as ``output_types``; and in the place
            of a row with a value that can't become the declared dtype, behind which the next row comes.
        Exception: while iterating, once, what the database says against the query. It is the end.

    >>> import numpy as np
    >>> query = "SELECT 1, 2.5, 'three' UNION SELECT 4, NULL, 'five' ORDER BY 1"
    >>> list(SqlDataset("sqlite", ":memory:", query, (np.int32, np.float64, bytes)))
    [(np.int32(1), np.float64(2.5), b'three'), (np.int32(4), np.float64(0.0), b'five')]
    """

    def __init__(
        self,
        driver_name: str | Callable[..., Any],
        data_source_name: Any,
        query: str,
        output_types: Any = None,
    ) -> None:
        super().__init__(SqlQuery(driver_name, data_source_name, query, output_types))


class TextLineDataset(Dataset[bytes]):
    r"""The lines of text files, as ``bytes`` without their ends.

    A line ends with a newline, and at the end of the file unless nothing is behind the last newline. Every carriage
    return is dropped, as in tf.data. Lines may hold any other bytes, whatever their encoding, and may be empty.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``.
        buffer_size: bytes to read at once. Default, and 0, 256 KiB.
        num_parallel_reads: from how many files to read at once, in background threads; a line from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.

    Raises:
        ValueError: if the compression type is unknown, or a number too small.
        TypeError: if a file name is no path, or the dataset is one of something else.
        FileNotFoundError: while iterating, at the place of a file that is missing; the next file is read after it.
        DataLossError: while iterating, where a compressed file is damaged, behind all lines that are whole; the rest of
            that file is given up, and the next one is read after it.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.txt")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"one\r\n\ntwo")
    ...     list(TextLineDataset(path))
    [b'one', b'', b'two']
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        files = file_names("TextLineDataset", filenames)
        super().__init__(read_files(TextLine(files, compression_type, buffer_size, name=name), num_parallel_reads))


class TFRecordDataset(Dataset[bytes]):
    """The records of TFRecord files, as ``bytes``, both checksums of each verified.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``. The extra ``gzip`` halves the time these take.
        buffer_size: bytes to read at once. Default 256 KiB.
        num_parallel_reads: from how many files to read at once, in background threads; a record from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.
        on_error: what to do where a file is damaged. ``"raise"``: a DataLossError, and the rest of that file is given
            up. ``"skip"``: a record whose data is damaged is passed over, and every sound one before and behind it
            comes out; where a length is broken, or the file or its compressed stream is cut short or corrupt, nothing
            tells where the next record begins, so that file ends there. Each such place is a warning of the logger
            ``dataset``, with the file, the byte and the record's number (the first 10 records of a file, then a sum),
            and counts in ``skipped_elements`` of ``iterator.stats()``. A missing file is an error all the same.
        index: whether to look up where the records are, for which tf.data has nothing. ``len(dataset)`` is known then
            and ``dataset[i]`` works, ``skip`` and ``shard`` read nothing of what they leave out, and ``shuffle(None)``
            is a random order of all records that keeps none of them in memory. The index of each file is saved beside
            it as ``<name>.index``, and made where there is none, when the dataset is made; see ``io.TFRecordIndex``.

    Raises:
        ValueError: if the compression type or ``on_error`` is unknown, or a number too small; if ``index`` is asked for
            of compressed files, or with ``num_parallel_reads``.
        TypeError: if a file name is no path, or the dataset is one of something else.
        FileNotFoundError: while iterating, at the place of a file that is missing; the next file is read after it.
        DataLossError: while iterating, where a file is damaged, unless ``on_error`` is ``"skip"``; the next file is
            read after it.

    >>> import os, tempfile
    >>> from dataset import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.tfrecord")
    ...     with io.TFRecordWriter(path) as writer:
    ...         writer.write(b"one")
    ...         writer.write(b"two")
    ...     list(TFRecordDataset(path)), TFRecordDataset(path, index=True)[1]
    ([b'one', b'two'], b'two')
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        on_error: str = "raise",
        index: bool = False,
    ) -> None:
        files = file_names("TFRecordDataset", filenames)
        source = TFRecord(files, compression_type, buffer_size, on_error, name=name)
        if require_bool("TFRecordDataset", "index", index):
            super().__init__(indexed_records(source, num_parallel_reads))
        else:
            super().__init__(read_files(source, num_parallel_reads))

"""Datasets that are read from files, one class for each format, named as in tf.data.

The classes here are the public API. The formats are implemented in io/; what they have in common, such as moving from
file to file, is in io/dataset_files.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dataset import deferred
from dataset.dataset import Dataset


class CsvDataset(Dataset[tuple[Any, ...]]):
    r"""A dataset of the rows of CSV files, as tuples of scalars. For dicts keyed by the header's names: ``from_csv``.

    A field may be enclosed in double quotation marks; it may then contain delimiters, line ends, and quotation marks,
    which are doubled. Rows end with a line feed, a carriage return, or both. Blanks around numbers are allowed.

    A row that cannot be parsed raises an error in its place, and reading continues with the next row:
    ``ignore_errors()`` drops it. A quotation mark that is never closed extends its field to the end of the file.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        record_defaults: a list with an entry for each column that is read: a dtype, or an empty array of it, for a
            required column; a value for a column in which empty fields become this value. The dtypes are ``np.int32``,
            ``np.int64``, ``np.float32``, ``np.float64`` and ``bytes``; a Python int is an int64, a float a float64.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` (extra ``zstd``), ``"SNAPPY"`` (extra
            ``snappy``); or ``"AUTO"``: the first bytes of each file determine which of these it is, but not SNAPPY.
        buffer_size: bytes to read at once. Default 256 KiB. A row may be at most 64 MiB long, or ``buffer_size`` if
            that is larger.
        header: whether the first row of each file is skipped.
        field_delim: the delimiter between fields; one byte.
        use_quote_delim: whether quotation marks enclose fields. If False, they are ordinary characters.
        na_value: a text that counts as an empty field, in addition to the empty text.
        select_cols: the indices of the columns to read, ascending; default, all. A row may then have any others.
        exclude_cols: the indices of the columns not to read; an alternative to ``select_cols``.
        num_parallel_reads: how many files to read at once, in background threads, taking a row from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.

    Raises:
        ValueError: if an argument is invalid.
        TypeError: if an argument has the wrong type, or a dtype is not supported.
        ParseError: while iterating, in the place of a row with the wrong number of fields, a misplaced quotation mark,
            an empty required field or an invalid number. It names the file, line, column and text.
        FileNotFoundError: while iterating, in the place of a file that is missing; the next file is read after it.
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

    __dataset_no_user_code__ = True  # as the function of interleave

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
        files = deferred.file_names("CsvDataset", filenames)
        layout = deferred.layout_of(
            "CsvDataset", record_defaults, field_delim, use_quote_delim, na_value, select_cols, exclude_cols
        )
        rows = deferred.Csv(files, buffer_size, header, layout=layout, compression_type=compression_type, name=name)
        super().__init__(deferred.read_files(rows, num_parallel_reads))


class FixedLengthRecordDataset(Dataset[bytes]):
    """A dataset of the fixed-length records of binary files, as ``bytes``.

    ``io.decode_raw`` converts them to arrays.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        record_bytes: the length of each record, at least 1.
        header_bytes: the number of bytes before the first record of each file. Default 0.
        footer_bytes: the number of bytes after the last record of each file. Default 0.
        buffer_size: bytes to read at once. Default, and 0, 256 KiB.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` (extra ``zstd``), ``"SNAPPY"`` (extra
            ``snappy``); or ``"AUTO"``: the first bytes of each file determine which of these it is, but not SNAPPY.
            Lengths are counted in the uncompressed file.
        num_parallel_reads: how many files to read at once, in background threads, taking a record from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.
        index: whether records are read by number (beyond tf.data), with the same effects as for ``TextLineDataset``.
            Their positions are computed when the dataset is created, from the sizes of the files; nothing is saved.

    Raises:
        ValueError: if the compression type is unknown, or a number is too small; if ``index`` is combined with
            compressed files or ``num_parallel_reads``.
        TypeError: if a file name is not a path, or the elements of the dataset are not paths.
        FileNotFoundError: while iterating, in the place of a file that is missing; the next file is read after it.
        DataLossError: while iterating, in the place of a file whose size is not a whole number of records. As in
            tf.data, none of its records are returned. The size of a compressed file or a pipe is known only at its end,
            so there the error follows all whole records. Also where a compressed file is damaged. The next file is read
            after it. With ``index``, a file of another size is an error at the call.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.bin")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"head" + b"abcdef")
    ...     records = FixedLengthRecordDataset(path, record_bytes=3, header_bytes=4, index=True)
    ...     list(records), len(records), records[1]
    ([b'abc', b'def'], 2, b'def')
    """

    __dataset_no_user_code__ = True  # as the function of interleave

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
        *,
        index: bool = False,
    ) -> None:
        files = deferred.file_names("FixedLengthRecordDataset", filenames)
        source = deferred.FixedLengthRecord(
            files, record_bytes, header_bytes, footer_bytes, buffer_size, compression_type=compression_type, name=name
        )
        super().__init__(deferred.read_or_index(source, num_parallel_reads, index=index))


class JsonLinesDataset(Dataset[dict[str, Any]]):
    r"""A dataset of the rows of JSON Lines files, as dicts. For patterns of file names: ``from_json_lines``.

    Every line holds a JSON object; blank lines are skipped. Rows stay in columns: ``batch`` slices them. Integers are
    int64, or uint64 if that is necessary, other numbers the nearest float64, text is ``bytes`` in UTF-8, objects are
    dicts. Lists of numbers, bools or text are arrays of varying length, like rows of a RaggedTensor: ``batch`` makes
    RaggedTensors of them. Any other value, such as a list of objects, an integer beyond 64 bits or one nested more than
    32 deep, is ``bytes``: its JSON text, which ``json.loads`` reads. Integers in it keep all their digits.

    A null or a missing key is NaN in a column of floats and ``b"null"`` in one of JSON text. In other columns, it is an
    error in its place unless ``fill_null`` has a value for it. If the columns are inferred, a key that is not among
    them is an error, too: no data are dropped silently. Reading continues after such a row; ``ignore_errors()`` drops
    it.

    The extra ``json`` installs orjson, which parses faster. The results are the same.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        columns: the columns to read. A dict determines their types, and no file is read now: for each key a dtype,
            ``bytes``, ``object`` for JSON text, a ``TensorSpec`` of known shape for lists of one length, a
            ``RaggedTensorSpec`` for other lists, or a dict for the columns of an object. With a list of names, or by
            default all, the types are inferred from the first 1000 rows of the files, which are read now. In
            ``interleave(JsonLinesDataset)``, each file would have types of its own: pass a dict, as in the example.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` (extra ``zstd``), ``"SNAPPY"`` (extra
            ``snappy``); or ``"AUTO"``: the first bytes of each file determine which of these it is, but not SNAPPY.
        buffer_size: bytes to read at once. Default, and 0, 256 KiB.
        num_parallel_reads: how many files to read at once, in background threads, taking a row from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.
        fill_null: replacement values for nulls, by column: ``{"age": -1, "user.name": ""}``. In a column of lists, it
            replaces null items, and null lists become empty.
        index: whether to use an index of where the rows are, with the same effects as for ``TextLineDataset``. Both
            use the same saved index of a file.

    Raises:
        ValueError: if a column does not exist, a shape is not supported, or a replacement does not match its column; if
            ``index`` is combined with compressed files or ``num_parallel_reads``.
        TypeError: if an argument has the wrong type.
        FileNotFoundError: if a file is missing whose rows determine the types; for other files, while iterating, in
            their place.
        ParseError: while iterating, in the place of a line that is not a JSON object or does not match the columns. It
            names the file, the line, and the column: of the text if it is not JSON, else the key.
        DataLossError: while iterating, where a compressed file is damaged; the next file is read after it.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.jsonl")
    ...     _ = path.write_text('{"text": "one", "ids": [1, 2]}\n{"text": "two", "ids": []}\n')
    ...     list(JsonLinesDataset(path))
    [{'text': b'one', 'ids': array([1, 2])}, {'text': b'two', 'ids': array([], dtype=int64)}]

    >>> def read(path):
    ...     return JsonLinesDataset(path, {"text": bytes})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a", "b"):
    ...         _ = pathlib.Path(folder, f"{name}.jsonl").write_text(f'{{"text": "{name}", "n": 1}}\n')
    ...     list(Dataset.list_files(f"{folder}/*.jsonl", shuffle=False).interleave(read))
    [{'text': b'a'}, {'text': b'b'}]
    """

    __dataset_no_user_code__ = True  # as the function of interleave

    def __init__(
        self,
        filenames: Any,
        columns: Mapping[str, Any] | Sequence[str] | None = None,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        index: bool = False,
    ) -> None:
        plan = deferred.json_lines_plan(
            filenames,
            columns,
            fill_null,
            compression_type=compression_type,
            num_parallel_reads=num_parallel_reads,
            name=name,
            buffer_size=buffer_size,
            node=deferred.JsonLines,
            index=index,
        )
        super().__init__(plan)


class SqlDataset(Dataset[Any]):
    """A dataset of the rows that an SQL query returns.

    Args:
        driver_name: ``"sqlite"``; or, for any other database, a function that opens a DB-API 2.0 connection. It is
            called once for each iteration, with ``data_source_name``, or without arguments if that is None. One thread
            at a time uses the connection, but not always the same one.
        data_source_name: for SQLite a file, which is opened read-only, ``":memory:"`` or a ``file:`` URI.
        query: a SELECT, or another statement that returns rows.
        output_types: a dtype for each column, in the structure of the elements: bools, integers, floats, ``bytes``. The
            columns fill the components of a dict in the order of its sorted keys, as in tf.data. By default elements
            are tuples with the dtypes of the first row: bool, int64, float64, ``bytes``.

    NULL becomes 0, 0.0, False or ``b""``, as in tf.data; use COALESCE in the query for another value. Where the
    declared dtype requires it, numbers are converted to text, numeric text to numbers, and whole floats to integers.

    A resumed iterator runs the query again and skips the rows that were already returned. It continues at exactly the
    same row only if the query has an ORDER BY that determines the order completely.

    Raises:
        ValueError: if the driver is unknown, or ``output_types`` has no dtype.
        TypeError: if an argument has the wrong type.
        FileNotFoundError: while iterating, if the SQLite file does not exist. It is not created.
        SpecError: while iterating, once, if the number of columns of the query differs from ``output_types``; and in
            the place of a row with a value that cannot be converted to the declared dtype; the next row follows.
        Exception: while iterating, once, the database's own error if the query fails. The iteration ends with it.

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
        super().__init__(deferred.SqlQuery(driver_name, data_source_name, query, output_types))


class TarDataset(Dataset[dict[str, bytes]]):
    """A dataset of the samples of WebDataset shards, as dicts of ``bytes``: tar files with one member for each field.

    Consecutive members whose names are equal up to the first dot of the file name are a sample. The rest of the name,
    in lower case, is the field: ``train/001.jpg`` and ``train/001.seg.png`` are the fields ``jpg`` and ``seg.png`` of
    the sample ``train/001``, which the field ``__key__`` holds. Names without a dot, names that begin with ``__meta__``
    or the like, directories and links are skipped, as in WebDataset. Nothing is written to disk.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        fields: the fields to return; others are skipped. By default all: those of the first sample, which is read now.
            Then a sample with another field is an error, because no data are dropped silently.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` (extra ``zstd``), ``"SNAPPY"`` (extra
            ``snappy``); or ``"AUTO"``: the first bytes of each file determine which of these it is, but not SNAPPY.
        buffer_size: bytes to read at once. Default, and 0, 256 KiB.
        num_parallel_reads: how many files to read at once, in background threads, taking a sample from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.
        index: whether to find all samples now, by reading the headers of the members. Then ``len(dataset)`` and
            ``dataset[i]`` work, ``skip`` and ``shard`` do not read the samples they leave out, and ``shuffle(None)`` is
            a random order of all samples that keeps none of them in memory. The index is not saved.

    Raises:
        ValueError: if the compression type is unknown, or there is no sample; if ``index`` is combined with compressed
            files or ``num_parallel_reads``.
        TypeError: if an argument has the wrong type.
        FileNotFoundError: if a file is missing that is read now; for other files, while iterating, in their place.
        SpecError: while iterating, in the place of a sample that has other fields, or the same one twice.
        DataLossError: while iterating, where a file is truncated, a header is damaged or a member is sparse; the next
            file is read after it. It names the file and the byte. A file is truncated, too, if the block of zeros is
            missing that ends an archive: then members may be missing. With ``index``, this is raised at the call.

    >>> import io, os, tarfile, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.tar")
    ...     with tarfile.open(path, "w") as shard:
    ...         for name, data in (("0.txt", b"zero"), ("0.cls", b"3"), ("1.txt", b"one"), ("1.cls", b"4")):
    ...             member = tarfile.TarInfo(name)
    ...             member.size = len(data)
    ...             shard.addfile(member, io.BytesIO(data))
    ...     list(TarDataset(path)), TarDataset(path, ["txt"], index=True)[1]
    ([{'__key__': b'0', 'txt': b'zero', 'cls': b'3'}, {'__key__': b'1', 'txt': b'one', 'cls': b'4'}],
     {'__key__': b'1', 'txt': b'one'})
    """

    __dataset_no_user_code__ = True  # as the function of interleave

    def __init__(
        self,
        filenames: Any,
        fields: Sequence[str] | None = None,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool = False,
    ) -> None:
        super().__init__(
            deferred.tar_plan(filenames, fields, compression_type, buffer_size, num_parallel_reads, name, index=index)
        )


class TextLineDataset(Dataset[bytes]):
    r"""A dataset of the lines of text files, as ``bytes`` without line ends.

    A line ends with a newline or at the end of the file; a newline at the end of the file does not begin another line.
    Every carriage return is dropped, as in tf.data. Lines may hold any other bytes in any encoding, and may be empty.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` (extra ``zstd``), ``"SNAPPY"`` (extra
            ``snappy``); or ``"AUTO"``: the first bytes of each file determine which of these it is, but not SNAPPY.
        buffer_size: bytes to read at once. Default, and 0, 256 KiB.
        num_parallel_reads: how many files to read at once, in background threads, taking a line from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.
        index: whether to use an index of where the lines are (beyond tf.data). Then ``len(dataset)`` and ``dataset[i]``
            work, ``skip`` and ``shard`` do not read the lines they leave out, and ``shuffle(None)`` is a random order
            of all lines that keeps none of them in memory. The index of each file is saved beside it as
            ``<name>.index``: 0.3% of its size. It is built when the dataset is created if it is missing, damaged, or
            older than the file. A file that is modified afterwards is a DataLossError.

    Raises:
        ValueError: if the compression type is unknown, or a number is too small; if ``index`` is combined with
            compressed files or ``num_parallel_reads``.
        TypeError: if a file name is not a path, or the elements of the dataset are not paths.
        FileNotFoundError: while iterating, in the place of a file that is missing; the next file is read after it.
        DataLossError: while iterating, where a compressed file is damaged, after all complete lines. The rest of that
            file is skipped, and the next file is read.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.txt")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"one\r\n\ntwo")
    ...     list(TextLineDataset(path)), TextLineDataset(path, index=True)[2]
    ([b'one', b'', b'two'], b'two')
    """

    __dataset_no_user_code__ = True  # as the function of interleave

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool = False,
    ) -> None:
        files = deferred.file_names("TextLineDataset", filenames)
        source = deferred.TextLine(files, buffer_size, compression_type=compression_type, name=name)
        super().__init__(deferred.read_or_index(source, num_parallel_reads, index=index))


class TFRecordDataset(Dataset[bytes]):
    """A dataset of the records of TFRecord files, as ``bytes``. Both checksums of each record are verified.

    Args:
        filenames: a path, a list of paths, or a Dataset of them.
        compression_type: None or ``""``, ``"GZIP"``, ``"ZLIB"``, ``"ZSTD"`` (extra ``zstd``), ``"SNAPPY"`` (extra
            ``snappy``); or ``"AUTO"``: the first bytes of each file determine which of these it is, but not SNAPPY.
            The extra ``gzip`` halves the decompression time of the first two.
        buffer_size: bytes to read at once. Default 256 KiB.
        num_parallel_reads: how many files to read at once, in background threads, taking a record from each in turn.
            Default: one file after the other. AUTOTUNE is a cycle of 4 files.
        name: a label.
        on_error: what to do where a file is damaged. ``"raise"``: raise a DataLossError and skip the rest of that file.
            ``"skip"``: skip a record whose data is damaged and return all intact ones before and after it. Where a
            length is broken, or the file or its compressed stream is truncated or corrupt, the start of the next record
            is unknown, so that file ends there. Each damaged place is logged as a warning of the logger ``dataset``
            with the file, the byte and the record's index (the first 10 records of a file, then a total), and counted
            in ``skipped_elements`` of ``iterator.stats()``. A missing file is still an error. With ``index``, length
            and positions count the records whose data is damaged.
        index: whether to use an index of where the records are (beyond tf.data). Then ``len(dataset)`` and
            ``dataset[i]`` work, ``skip`` and ``shard`` do not read the records they leave out, and ``shuffle(None)``
            is a random order of all records that keeps none of them in memory. The index of each file is saved beside
            it as ``<name>.index``. A missing index is built when the dataset is created; see ``io.TFRecordIndex``.

    Raises:
        ValueError: if the compression type or ``on_error`` is unknown, or a number is too small; if ``index`` is
            combined with compressed files or ``num_parallel_reads``.
        TypeError: if a file name is not a path, or the elements of the dataset are not paths.
        FileNotFoundError: while iterating, in the place of a file that is missing; the next file is read after it.
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

    __dataset_no_user_code__ = True  # as the function of interleave

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
        files = deferred.file_names("TFRecordDataset", filenames)
        source = deferred.TFRecord(files, buffer_size, on_error, compression_type=compression_type, name=name)
        super().__init__(deferred.read_or_index(source, num_parallel_reads, index=index))

"""Targets that read tables: CSV, Parquet, Arrow."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dataset import Dataset
from dataset.errors import DataLossError, ParseError, SpecError
from dataset.io.csv.layout import layout_of
from dataset.io.csv.reader import CsvFile
from dataset.io.csv.rows import parse_rows
from dataset.io.json_lines import reader as json_reader
from dataset.io.json_lines.parser import parse_line
from dataset.io.json_lines.reader import JsonLinesFile
from support.block_files import columns_of

from .mutate import mutated
from .target import Target


class Csv(Target):
    """CSV files: the same rows and errors in blocks of any size, and as by the parser in Python."""

    name = "csv"
    allowed = (ParseError, DataLossError)
    tokens = (b'"', b'""', b",", b"\n", b"\r", b"\r\n", b'","', b"1", b"-9223372036854775808", b"1e308", b"nan")
    tokens += (b"\xef\xbb\xbf",)

    def make_samples(self) -> list[bytes]:
        self.layout = layout_of("fuzz", [bytes, np.int64(7), bytes])
        return [
            b"one,1,x\ntwo,2,y\nthree,3,z\n" * 12,
            b'"a,b",12345,"line\nend"\r\n"q""q",-5,\r\nlast,,end',
            b"".join(b"name %d,%d,text\r" % (i, i**9) for i in range(30)),
            b"\xef\xbb\xbfa,1,b\n\n,,\n",
            b"",
        ]

    def check(self, data: bytes) -> None:
        path = self.folder / "a.csv"
        path.write_bytes(data)
        whole, blocks = (_rows(CsvFile(str(path), self.layout, buffer_size=size)) for size in (None, 16))
        assert whole == blocks
        text = data.removeprefix(b"\xef\xbb\xbf")
        rows = parse_rows(text if text[-1:] in b"\n" else text + b"\n", 0, self.layout)
        wanted = [repr([column[row] for column in rows.columns]) for row in range(len(rows.starts) - 1)]
        failures = [row for row in whole if row.startswith(str(path))]
        found = [None if row in failures else row for row in whole]
        assert found[: len(wanted)] == [None if row in rows.errors else text for row, text in enumerate(wanted)]
        assert found[len(wanted) :] in ([], [None]), "rows after a quotation mark that is not closed"
        if failures:
            raise ParseError(failures[0])


class JsonRows(Target):
    """JSON Lines files: the same rows and errors in blocks of any size, with orjson and with the standard library."""

    name = "json_lines"
    allowed = (ParseError, ValueError)
    tokens = (b"{", b"}", b"[", b"]", b'"', b"\n", b"\r", b"\\u", b"\\ud800", b"null", b"1e999", b"-", b"\xef\xbb\xbf")
    tokens += (b'"a":', b",", b"NaN", b"18446744073709551616", b'{"a":', b"[[[[[[[[", b"true")

    def make_samples(self) -> list[bytes]:
        rows = [
            {"a": i, "b": [i] * (i % 3), "c": {"d": f"text {i}", "e": i / 3}, "f": [{"g": None}]} for i in range(20)
        ]
        lines = [json.dumps(row).encode() for row in rows]
        return [
            b"\n".join(lines),
            b"\r\n\n".join(lines[:5]),
            b'\xef\xbb\xbf{"a": 1}\n{"a": 2.5}\n{}',
            b'{"a": "\\u00e9"}',
        ]

    def check(self, data: bytes) -> None:
        path = self.folder / "a.jsonl"
        path.write_bytes(data)
        columns = Dataset.from_json_lines(str(path)).plan.columns
        found = [_rows(JsonLinesFile(str(path), columns, None, size)) for size in (None, 16)]
        with mock.patch.object(json_reader, "line_parser", return_value=parse_line):
            found.append(_rows(JsonLinesFile(str(path), columns, None, None)))
        assert found[0] == found[1] == found[2], found


def _rows(file: Any) -> list[str]:
    """Return all rows, with the place of each error, as text."""
    rows: list[str] = []
    with file:
        for found in columns_of(file, 7):
            if isinstance(found, Exception):
                rows.append(str(found).partition(", column")[0])
            else:
                rows += [repr([column[row] for column in found]) for row in range(len(found[0]))]
    return rows


class _Table(Target):
    """Files of tables; they are read to the end."""

    allowed = (DataLossError, SpecError, ValueError, OSError, NotImplementedError)
    opened: ClassVar[Callable[[str], Dataset[Any]]]

    def check(self, data: bytes) -> None:
        path = self.folder / f"a.{self.name}"
        path.unlink(missing_ok=True)  # a mapping of the previous input may still be in use
        path.write_bytes(data)
        dataset = type(self).opened(str(path))
        assert dataset.cardinality() >= -2
        self.read(dataset)
        self.read(dataset.skip(20).shuffle(100, seed=1))


def _pairs(numbers: list[int]) -> Any:
    return pa.array([[i, i] for i in numbers], pa.list_(pa.int32(), 2))


def _tables() -> list[Any]:
    numbers = list(range(40))
    lists = [[1] * (i % 4) for i in numbers]
    texts = [f"text {i % 3}" for i in numbers]
    return [
        pa.table({"x": numbers, "name": texts}),
        pa.table({"x": numbers, "maybe": pa.array([None if i % 5 == 0 else i / 2 for i in numbers])}),
        pa.table({"lists": pa.array(lists), "flags": pa.array([i % 2 == 0 for i in numbers])}),
        pa.table({"nested": pa.array([[row, row] for row in lists]), "bytes": pa.array([b"ab" * i for i in numbers])}),
        pa.table({"s": pa.array([{"a": i, "b": f"{i}"} for i in numbers]), "d": pa.array(texts).dictionary_encode()}),
        pa.table({"t": pa.array(numbers, pa.timestamp("us"))}).append_column("fixed", _pairs(numbers)),
    ]


class Parquet(_Table):
    """Parquet files, mutated anywhere or in their footers; such a file must not crash the process."""

    name = "parquet"
    opened = Dataset.from_parquet
    tokens = (b"PAR1", b"\x15\x00", b"\x15\x02", b"\x19\x1c", b"\x16\xff\xff\xff\xff\x0f", b"\x00", b"\x2c", b"\x1c")

    def make_samples(self) -> list[bytes]:
        pa.set_memory_pool(pa.system_memory_pool())
        options: tuple[dict[str, Any], ...] = (
            {"row_group_size": 16},
            {"compression": "none", "use_dictionary": False},
            {"data_page_version": "2.0", "write_page_index": True},
            {"write_page_checksum": True, "compression": "gzip"},
        )
        samples = []
        for table in _tables():
            for chosen in options:
                target = io.BytesIO()
                pq.write_table(table, target, **chosen)
                samples.append(target.getvalue())
        return samples

    def make_input(self, rng: random.Random) -> bytes:
        data = rng.choice(self.samples)
        if rng.random() < 0.3:
            return mutated(rng, data, self.samples, self.tokens)
        size = int.from_bytes(data[-8:-4], "little")
        pages, footer = data[: -8 - size], data[-8 - size : -8]
        if rng.random() < 0.3:
            pages = mutated(rng, pages, self.samples, self.tokens)
        else:
            footer = mutated(rng, footer, self.samples, self.tokens)
        return pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


class Arrow(_Table):
    """Arrow files and streams, read as a whole."""

    name = "arrow"
    opened = Dataset.from_arrow
    tokens = (b"ARROW1", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x10\0\0\0")
    forms: ClassVar[tuple[tuple[Any, str | None], ...]] = ((pa.ipc.new_file, None), (pa.ipc.new_stream, None))

    def make_samples(self) -> list[bytes]:
        pa.set_memory_pool(pa.system_memory_pool())
        samples = []
        for table in _tables():
            for new, compression in self.forms:
                target = pa.BufferOutputStream()
                with new(target, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
                    writer.write_table(table, max_chunksize=16)
                samples.append(target.getvalue().to_pybytes())
        return samples


class ArrowIpc(Arrow):
    """Arrow files and streams, read batch by batch; such a file must not crash the process."""

    name = "arrow_ipc"
    opened = Dataset.from_arrow_ipc
    forms = (*Arrow.forms, (pa.ipc.new_file, "lz4"))

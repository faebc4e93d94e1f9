"""Small files of every format that the library reads, for tests that read them repeatedly."""

from __future__ import annotations

import gzip
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dataset import Dataset, io
from dataset.io import TFRecordOptions, TFRecordWriter
from support.tar_files import archive

RECORDS = 5  # in each file
PARTS = 3  # files of each format


@dataclass(frozen=True)
class Files:
    """The folders of the files.

    Attributes:
        folder: contains the files; it is not written to any more.
        scratch: a folder that a pipeline may write to. A pipeline that must find it empty gets another folder.
    """

    folder: Path
    scratch: Path

    def parts(self, name: str) -> list[str]:
        """Return the paths of one format: ``name`` is the part of the file name before the number."""
        return [str(path) for path in sorted(self.folder.glob(f"{name}-[0-9].*")) if path.suffix != ".index"]


def write_files(folder: Path) -> None:
    """Fill an empty folder. Files of one format differ in length."""
    for part in range(PARTS):
        numbers = range(10 * part, 10 * part + RECORDS + part)
        records = [b"record %d" % number + b"." * (number % 4) for number in numbers]
        lines = b"".join(b"line %d\n" % number for number in numbers)
        rows = b"".join(b'%d,%d.5,"word %d"\n' % (number, number, number) for number in numbers)
        for name, compression in (("plain", ""), ("gzip", "GZIP"), ("zlib", "ZLIB"), ("zstd", "ZSTD")):
            with TFRecordWriter(str(folder / f"{name}-{part}.tfrecord"), TFRecordOptions(compression)) as writer:
                for record in records:
                    writer.write(record)
        with TFRecordWriter(str(folder / f"example-{part}.tfrecord")) as writer:
            for number in range(20 * part, 20 * part + 12 + part):  # enough to be read as blocks
                writer.write(io.encode_example({"n": number, "row": [number] * (number % 3)}))
        (folder / f"text-{part}.txt").write_bytes(lines)
        (folder / f"lines-{part}.txt").write_bytes(lines)  # no pattern of another case finds the index
        (folder / f"packed-{part}.gz").write_bytes(gzip.compress(lines, mtime=0))
        objects = [b'{"n": %d, "row": [%d, 1], "text": "word %d"}' % (number, number, number) for number in numbers]
        objects[2] = objects[2].replace(b"row", b"other")  # an error in its place, because the columns are closed
        (folder / f"json-{part}.jsonl").write_bytes(b"\n\n".join(objects))
        (folder / f"rows-{part}.jsonl").write_bytes(b"\n\n".join(objects))
        (folder / f"csv-{part}.csv").write_bytes(rows)
        fields = [("txt", "txt" if place == 2 else "cls") for place in range(len(numbers))]  # one sample is an error
        members = [(f"{n}.{field}", b"word %d" % n) for n, both in zip(numbers, fields, strict=True) for field in both]
        (folder / f"shard-{part}.tar").write_bytes(archive(members))
        (folder / f"named-{part}.csv").write_bytes(b"number,half,word\n" + rows)
        (folder / f"fixed-{part}.bin").write_bytes(b"HEAD" + b"".join(b"%04d" % number for number in numbers))
        for image in range(2):
            path = folder / "images" / f"class {part}" / f"{image}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(io.encode_png(np.full((2, 2, 1), 10 * part + image, np.uint8)))
    named = [("range", 2), ("range", 3), ("from_tensor_slices", 1), ("counter", 5)]
    (folder / "skip.jsonl").write_text(
        "".join(f'{{"source": "{source}", "number": {number}}}\n' for source, number in named)
    )
    with sqlite3.connect(folder / "numbers.sqlite") as connection:
        connection.execute("CREATE TABLE numbers (number INTEGER, word TEXT)")
        connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(i, f"word {i}") for i in range(12)])
    connection.close()
    Dataset.range(14).map(lambda x: (x, str(x))).save(str(folder / "saved"), shard_func=lambda x, _: x % 3)
    _write_tables(folder)


def _write_tables(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for part in range(PARTS):
        numbers = list(range(10 * part, 10 * part + RECORDS + part))
        table = pa.table({"x": numbers, "name": [f"name {number}" for number in numbers]})
        pq.write_table(table, folder / f"table-{part}.parquet", row_group_size=2)
        new = pa.ipc.new_stream if part == 1 else pa.ipc.new_file
        with new(str(folder / f"batches-{part}.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    with pa.OSFile(str(folder / "table.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)

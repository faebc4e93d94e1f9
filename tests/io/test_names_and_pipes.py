"""Tests of all readers and writers with odd names of files, with pipes, and with files of another kind."""

import io
import os
import threading
import unicodedata
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from dataset import (
    CsvDataset,
    Dataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    SqlDataset,
    TarDataset,
    TextLineDataset,
    TFRecordDataset,
)
from dataset.io import (
    FixedLenFeature,
    TFRecordIndex,
    TFRecordWriter,
    encode_example,
    encode_png,
    encode_wav,
    make_batched_features_dataset,
    read_file,
    write_file,
)
from dataset.testing import check_operator
from support.tar_files import archive
from support.tfrecord_files import frames

NAMES = {
    "not UTF-8": b"caf\xe9",
    "newline": b"a\nb",
    "quotes": b"q'\"`$",
    "long": b"n" * 250,
    "NFC": unicodedata.normalize("NFC", "é").encode(),
    "NFD": unicodedata.normalize("NFD", "é").encode(),
    "wildcards": b"a[1]*?",
    "backslash": b"a\\*b",
    "colon": b"a:b#c%20",
    "hidden": b".hidden",
}


def table(new):
    content, rows = io.BytesIO(), pa.table({"a": [1, 2]})
    if new is pq.write_table:
        new(rows, content)
    else:
        with new(content, rows.schema) as writer:
            writer.write_table(rows)
    return content.getvalue()


EXAMPLE = encode_example({"a": 1})
TAR, LINES, CSV = archive([("0.a", b"1"), ("1.a", b"2")]), b'{"a": 1}\n{"a": 2}\n', b"a\n1\n2\n"
READERS = {
    "records": (TFRecordDataset, frames([b"1", b"2"])),
    "indexed records": (partial(TFRecordDataset, index=True), frames([b"1", b"2"])),
    "Examples": (
        lambda path: make_batched_features_dataset(
            path, 1, {"a": FixedLenFeature((), np.int64)}, num_epochs=1, shuffle=False
        ),
        frames([EXAMPLE, EXAMPLE]),
    ),
    "lines": (TextLineDataset, b"1\n2\n"),
    "fixed": (lambda path: FixedLengthRecordDataset(path, 1), b"12"),
    "JSON Lines": (JsonLinesDataset, LINES),
    "CSV": (lambda path: CsvDataset(path, [np.int64], header=True), CSV),
    "from_csv": (lambda path: Dataset.from_csv(path, 1, num_epochs=1, shuffle=False), CSV),
    "tar": (TarDataset, TAR),
    "Parquet": (Dataset.from_parquet, table(pq.write_table)),
    "Arrow file": (Dataset.from_arrow_ipc, table(ipc.new_file)),
    "Arrow stream": (Dataset.from_arrow_ipc, table(ipc.new_stream)),
    "from_arrow": (Dataset.from_arrow, table(ipc.new_stream)),
    "list_files": (lambda path: Dataset.list_files(path).interleave(TextLineDataset), b"1\n2\n"),
    "read_file": (lambda path: Dataset.from_tensors(os.fsencode(path)).map(read_file).repeat(2), b"1"),
}


@pytest.mark.filterwarnings("ignore:.*index does not match")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize(("read", "content"), READERS.values(), ids=READERS)
def test_a_file_with_an_odd_name_is_read(tmp_path, read, content, name):
    path = os.fsdecode(name)
    (tmp_path / path).write_bytes(content)
    paths = [str(tmp_path / path), os.fsencode(tmp_path / path)]
    for form in paths:
        assert len(list(read(form))) == 2
    if name == NAMES["not UTF-8"]:
        check_operator(lambda: read(paths[0]), positions=1)  # the names in the states, too


def saved(read, write, path):
    write(Dataset.range(3), path)
    return [int(x) for x in read(path)] == [0, 1, 2]


def written_records(path):
    with TFRecordWriter(path) as writer:
        writer.write(b"a")
    return len(TFRecordIndex.open(path)) == 1 and list(TFRecordDataset(path)) == [b"a"]


def image(path):
    write_file(f"{path}/a/x.png", encode_png(np.zeros((1, 1, 3), np.uint8)))
    return [label for _, label in Dataset.from_image_folder(path)] == [0]


def database(path):
    import sqlite3

    with sqlite3.connect(path[:-10]) as connection:  # SQLite appends "-journal"
        connection.execute("create table t as select 1 as a")
    return list(SqlDataset("sqlite", path[:-10], "select a from t", (np.int64,))) == [(1,)]


WRITERS = {
    "TFRecordWriter": written_records,
    "write_tfrecord": lambda path: Dataset.from_tensors(b"a").write_tfrecord(path) or len(read_file(path)) == 17,
    "save": partial(saved, Dataset.load, Dataset.save),
    "cache": partial(saved, Dataset.range(3).cache, lambda data, path: list(data.cache(path))),
    "images": image,
    "SQLite": database,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_file_with_an_odd_name_is_written(tmp_path, write, name):
    assert write(str(tmp_path / os.fsdecode(name * (40 // len(name) + 1))))


# Files that can be read only once


ONCE = {
    **{name: READERS[name] for name in ("records", "lines", "fixed", "CSV", "from_arrow")},
    "JSON Lines": (lambda path: Dataset.from_json_lines(path, {"a": np.int64}), LINES),
    "from_csv": (
        lambda path: Dataset.from_csv(path, 1, ["a"], [np.int64], num_epochs=1, shuffle=False, num_parallel_reads=1),
        CSV,
    ),
    "tar": (lambda path: TarDataset(path, ["a"]), TAR),
    "WAV": (lambda path: Dataset.from_tensor_slices([read_file(path), b""]), encode_wav([[0.5]], 8000)),
}


@pytest.mark.parametrize(("read", "content"), ONCE.values(), ids=ONCE)
@pytest.mark.parametrize("is_named", [True, False])
def test_a_pipe_that_is_read_once_is_read(tmp_path, read, content, is_named):
    if is_named:
        path = str(tmp_path / "pipe")
        os.mkfifo(path)
        ends = []
        thread = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(content))
    else:
        ours, theirs = os.pipe()
        path, ends = f"/dev/fd/{ours}", [ours]
        thread = threading.Thread(target=lambda: (os.write(theirs, content), os.close(theirs)))
    thread.start()
    try:
        assert len(list(read(path))) == 2
    finally:
        thread.join()
        for end in ends:
            os.close(end)


TWICE = {
    "JSON Lines": (JsonLinesDataset, r"pass columns=\{name: dtype\}"),
    "from_csv": (lambda path: Dataset.from_csv(path, 1), "pass column_names and column_defaults"),
    "tar": (TarDataset, "pass fields"),
    "indexed tar": (lambda path: TarDataset(path, ["a"], index=True), "regular"),
    "indexed records": (partial(TFRecordDataset, index=True), "regular"),
    "Parquet": (Dataset.from_parquet, "seekable"),
    "Arrow": (Dataset.from_arrow_ipc, "Dataset.from_arrow"),
    "AUTO": (lambda path: list(TextLineDataset(path, "AUTO")), "its beginning is read twice; pass the compression"),
}


@pytest.mark.parametrize(("read", "words"), TWICE.values(), ids=TWICE)
def test_a_pipe_that_would_be_read_twice_is_refused_without_opening_it(tmp_path, read, words):
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for a writer for ever
    with pytest.raises(OSError, match=rf"this is a pipe or a device, but .*{words}.*pipe'"):
        read(str(tmp_path / "pipe"))


def test_a_pipe_in_the_place_of_an_index_or_metadata_is_not_opened(tmp_path):
    (tmp_path / "a").write_bytes(frames([b"1"]))
    os.mkfifo(tmp_path / "a.index")
    assert list(TFRecordDataset(tmp_path / "a", index=True)) == [b"1"]
    os.mkfifo(tmp_path / "metadata.json")
    for read in (lambda: Dataset.load(tmp_path), lambda: list(Dataset.range(3).cache(tmp_path))):
        with pytest.raises(OSError, match=r"metadata of saved elements must be a regular file.*metadata.json"):
            read()


# Files of another kind


OTHERS = {
    "LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
    "HTML": (b"<!DOCTYPE html>\n<html></html>", "a web page or the error of a server"),
    "XML": (b'<?xml version="1.0"?>\n<Error/>', "a web page or the error of a server"),
    "UTF-16": ('{"a": 1}\n'.encode("utf-16"), "convert it to UTF-8"),
    "UTF-16 without a mark": ('{"a": 1}\n'.encode("utf-16-be"), "convert it to UTF-8"),
    "an array": (b'[{"a": 1},\n{"a": 2}]\n', "write one object per line, as jq"),
    "an array in one line": (b'[{"a": 1}, {"a": 2}]\n', "write one object per line, as jq"),
    "over several lines": (b'{\n "a": 1\n}\n', "write one object per line, as jq"),
    "xz": (b"\xfd7zXZ\0\0\0", "decompress it first"),
}


@pytest.mark.parametrize(("content", "words"), OTHERS.values(), ids=OTHERS)
def test_a_file_of_another_kind_is_named(tmp_path, content, words):
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"no row with a key was found in .*a; .*: .*a, line 1, .*{words}"):
        Dataset.from_json_lines(path)
    if "jq" not in words:
        for read in (TFRecordDataset, partial(TarDataset, fields=["a"]), Dataset.from_parquet):
            with pytest.raises(OSError, match=words):
                list(read(path))

"""Tests of from_arrow_ipc: both formats, what is read, damage, and integration with the rest of the library."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dataset import DataLossError, Dataset
from dataset.testing import assert_elements_equal, check_operator

NEW = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}


def table(first=0, count=25):
    numbers = list(range(first, first + count))
    return pa.table(
        {
            "x": numbers,
            "name": [f"name {i}" for i in numbers],
            "list": [[i] * (i % 3) for i in numbers],
            "who": [{"age": i, "maybe": None if i % 5 == 0 else i / 2} for i in numbers],
            "kind": pa.array([f"kind {i % 3}" for i in numbers]).dictionary_encode(),
        }
    )


@pytest.fixture
def save(tmp_path):
    def write(name, data, kind="file", compression=None, batch=10):
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with NEW[kind](str(tmp_path / name), data.schema, options=options) as writer:
            writer.write_table(data, max_chunksize=batch)
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("kind", NEW)
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_rows_are_those_of_from_arrow_in_both_formats(save, kind, compression):
    path = save("a.arrow", table(), kind, compression)
    dataset, expected = Dataset.from_arrow_ipc(path), Dataset.from_arrow(table())
    assert dataset.element_spec == expected.element_spec
    assert_elements_equal(list(dataset.batch(7)), list(expected.batch(7)))
    assert len(check_operator(lambda: Dataset.from_arrow_ipc(path), list(expected), positions=5)) == len(dataset) == 25
    chosen = Dataset.from_arrow_ipc(path, columns=["who.age", "name"])
    assert list(chosen.skip(24)) == [{"who": {"age": np.int64(24)}, "name": b"name 24"}]


def test_numbers_of_a_local_file_are_views_of_the_mapping(save):
    (batch,) = Dataset.from_arrow_ipc(save("a.arrow", pa.table({"x": np.arange(4)}))).batch(4)
    before = pa.total_allocated_bytes()
    assert not batch["x"].flags.owndata
    assert not batch["x"].flags.writeable
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("read", [Dataset.from_arrow_ipc, Dataset.from_arrow])
def test_a_stream_that_is_cut_between_batches_is_not_complete(save, tmp_path, read):
    path = save("a.arrow", pa.table({"x": range(25)}), "stream")
    content = (tmp_path / "a.arrow").read_bytes()
    assert len(list(read(path))) == 25
    (tmp_path / "a.arrow").write_bytes(content[:-8])  # tests/fuzz cuts it anywhere
    with pytest.raises(DataLossError, match=r"a.arrow, .*ends without an end mark"):
        read(path)
    old = pa.ipc.IpcWriteOptions(use_legacy_format=True)  # whose end mark is not told from data
    with pa.ipc.new_stream(path, table().schema, options=old) as writer:
        writer.write_table(table())
    assert len(list(read(path))) == 25


def test_damage_is_data_loss_and_the_next_file_follows(save, tmp_path):
    for name, content in (("no", b"text"), ("empty", b""), ("magic", b"ARROW1\0\0")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataLossError, match="not an Arrow IPC file, or it is damaged"):
            Dataset.from_arrow_ipc(str(tmp_path / name))
    good = save("good.arrow", pa.table({"s": ["a", "b"]}))
    bad = save("bad.arrow", pa.table({"s": ["text one", "text two", "end"]}), batch=2)
    content = (tmp_path / "bad.arrow").read_bytes()
    offsets = np.array([0, 8, 16], np.int32).tobytes()
    assert content.count(offsets) == 1
    (tmp_path / "bad.arrow").write_bytes(content.replace(offsets, np.array([0, 8, 1 << 30], np.int32).tobytes()))
    iterator = iter(Dataset.from_arrow_ipc([bad, good]))
    with pytest.raises(DataLossError, match="record batch 0, rows 0 to 1, can't be read"):
        next(iterator)
    assert [row["s"] for row in iterator] == [b"end", b"a", b"b"]

"""Tests of what the datasets of files share against tf.data's: names, reading side by side, and missing files."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from compare import FAILED, Ours, assert_same, outcomes, refused, same

from support.tfrecord_files import frames

WRITE = {
    "TextLineDataset": lambda records: b"".join(record + b"\n" for record in records),
    "TFRecordDataset": frames,
    "FixedLengthRecordDataset": b"".join,
}


class Files(NamedTuple):
    """Four files of the format of a reader; their elements are "a0", "a1", and so on."""

    reader: str
    paths: list[str]

    def read(self, lib, names=None, **arguments):
        more = {"record_bytes": 2} if self.reader == "FixedLengthRecordDataset" else {}
        return getattr(lib, self.reader)(self.paths if names is None else names, **more | arguments)


@pytest.fixture(params=WRITE)
def files(request, tmp_path):
    for name, count in {"a": 3, "b": 0, "c": 1, "d": 4}.items():
        elements = [f"{name}{number}".encode() for number in range(count)]
        Path(tmp_path, name).write_bytes(WRITE[request.param](elements))
    return Files(request.param, [str(tmp_path / name) for name in "abcd"])


NAMES = {
    **{kind.__name__: kind for kind in (list, tuple, np.array)},
    "one": lambda paths: paths[0],
    "one in a list": lambda paths: paths[:1],
    "a string of NumPy": lambda paths: np.str_(paths[0]),
    "a Path": lambda paths: Path(paths[0]),
    "Paths": lambda paths: list(map(Path, paths)),
    "a Path and bytes": lambda paths: [Path(paths[0]), paths[3].encode()],
    "none": lambda paths: [],
}
test_names = same("files.read(lib, names(files.paths))", names=NAMES, fixture="files")
test_pipelines = same(
    {
        "names of a dataset": "files.read(lib, from_tensor_slices(files.paths))",
        "one name, twice": "files.read(lib, from_tensors(files.paths[0]).repeat(2))",
        "names of list_files": "files.read(lib, list_files(f'{Path(files.paths[0]).parent}/[a-d]', shuffle=False))",
        "names of a function": "files.read(lib, range(2).map(lambda x: const(files.paths[0], object)))",
        "interleave": "from_tensor_slices(files.paths).interleave(lambda name: files.read(lib, name), 2)",
        "flat_map": "from_tensor_slices(files.paths).flat_map(lambda name: files.read(lib, name)).skip(2).repeat(2)",
        "shard": "files.read(lib).shard(2, 1)",
        "by keyword": "files.read(lib, compression_type=None, buffer_size=9, name='label')",
    },
    fixture="files",
)
# With AUTOTUNE, tf.data interleaves as many files as there are cores; with one file there is no difference.
test_parallel_reads = same(
    "files.read(lib, files.paths[: None if n > 0 else 1], num_parallel_reads=n)", n=[1, 2, 3, 4, -1], fixture="files"
)


@pytest.mark.parametrize("missing", ["missing", "."])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_file_that_cannot_be_read(files, tmp_path, place, missing):
    """tf.data raises for it forever; here the next file is read."""
    names = [files.paths[0], files.paths[3]]
    names.insert(place, str(tmp_path / missing))
    before = (0, 3, 7)[place]
    found = assert_same(lambda lib: files.read(lib, names), limit=before + 1)
    assert found[before] == FAILED
    elements = [b"a0", b"a1", b"a2", b"d0", b"d1", b"d2", b"d3"]
    everything = outcomes(iter(files.read(Ours(), names)), lambda value: value, 100)
    assert everything == [*elements[:before], FAILED, *elements[before:]]


WRONG_TYPES = [{name: value} for name in ("num_parallel_reads", "buffer_size") for value in (2.5, "2")]
test_arguments_that_are_wrong = refused(
    {ValueError: [{"num_parallel_reads": 0}, {"num_parallel_reads": -2}], TypeError: WRONG_TYPES},
    "files.read(lib, **case)",
    fixture="files",
)
test_what_is_no_name = refused({TypeError: [3, [3], 2.5, np.arange(2)]}, "files.read(lib, case)", fixture="files")
test_what_is_no_dataset_of_names = refused(
    {TypeError: [[b"a", b"b"], {"a": b"b"}, np.arange(2)]}, "files.read(lib, from_tensors(case))", fixture="files"
)
# tf.data takes both for a TFRecordDataset.
OTHERS = [(reader, one) for reader in WRITE for one in ({"buffer_size": -1}, {"compression_type": "gz"})]
test_other_arguments_that_are_wrong = refused(
    {ValueError: [case for case in OTHERS if case[0] != "TFRecordDataset"]},
    "Files(case[0], ['a']).read(lib, **case[1])",
)

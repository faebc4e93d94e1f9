"""Tests of what the datasets of files share against tf.data's: names, reading side by side, and missing files."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from compare import FAILED, Ours, assert_same, outcomes, refused, same

from dataset import io

READERS = {
    "TextLineDataset": lambda lib, *names, **more: lib.TextLineDataset(*names, **more),
    "TFRecordDataset": lambda lib, *names, **more: lib.TFRecordDataset(*names, **more),
    "FixedLengthRecordDataset": lambda lib, *names, **more: lib.FixedLengthRecordDataset(
        *names, record_bytes=2, **more
    ),
}
COUNTS = {"a": 3, "b": 0, "c": 1, "d": 4}


@pytest.fixture
def files(tmp_path):
    """Return the paths of four files of each format; their elements are "a0", "a1", and so on."""
    for reader in READERS:
        (tmp_path / reader).mkdir()
        for name, count in COUNTS.items():
            elements = [f"{name}{number}".encode() for number in range(count)]
            if reader == "TFRecordDataset":
                with io.TFRecordWriter(tmp_path / reader / name) as writer:
                    writer.write_all(elements)
            else:
                end = b"\n" if reader == "TextLineDataset" else b""
                (tmp_path / reader / name).write_bytes(b"".join(element + end for element in elements))
    return {reader: [str(tmp_path / reader / name) for name in COUNTS] for reader in READERS}


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
PIPELINES = {
    "names of a dataset": lambda lib, read, paths: read(lib, lib.from_tensor_slices(paths)),
    "one name, twice": lambda lib, read, paths: read(lib, lib.from_tensors(paths[0]).repeat(2)),
    "names of list_files": lambda lib, read, paths: read(
        lib, lib.list_files(f"{Path(paths[0]).parent}/*", shuffle=False)
    ),
    "names of a function": lambda lib, read, paths: read(lib, lib.range(2).map(lambda x: lib.const(paths[0], object))),
    "interleave": lambda lib, read, paths: lib.from_tensor_slices(paths).interleave(partial(read, lib), 2),
    "flat_map": lambda lib, read, paths: lib.from_tensor_slices(paths).flat_map(partial(read, lib)).skip(2).repeat(2),
    "shard": lambda lib, read, paths: read(lib, paths).shard(2, 1),
    "by keyword": lambda lib, read, paths: read(
        lib, filenames=paths, compression_type=None, buffer_size=9, name="label"
    ),
}
test_names = same(
    lambda lib, files, reader, names: READERS[reader](lib, names(files[reader])), list(READERS), NAMES, fixture="files"
)
test_pipelines = same(
    lambda lib, files, reader, use: use(lib, READERS[reader], files[reader]), list(READERS), PIPELINES, fixture="files"
)
# With AUTOTUNE, tf.data interleaves as many files as there are cores; with one file there is no difference.
test_parallel_reads = same(
    lambda lib, files, reader, n: READERS[reader](lib, files[reader][: None if n > 0 else 1], num_parallel_reads=n),
    list(READERS),
    [1, 2, 3, 4, -1],
    fixture="files",
)


@pytest.mark.parametrize("missing", ["missing", "."])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_cannot_be_read(files, tmp_path, reader, place, missing):
    """tf.data raises for it forever; here the next file is read."""
    read, names = READERS[reader], [files[reader][0], files[reader][3]]
    names.insert(place, str(tmp_path / missing))
    before = (0, 3, 7)[place]
    found = assert_same(lambda lib: read(lib, names), limit=before + 1)
    assert found[before] == FAILED
    elements = [b"a0", b"a1", b"a2", b"d0", b"d1", b"d2", b"d3"]
    everything = outcomes(iter(read(Ours(), names)), lambda value: value, 100)
    assert everything == [*elements[:before], FAILED, *elements[before:]]


NO_NAMES = [lambda lib, names=names: {"filenames": names} for names in (3, [3], 2.5, np.arange(2), None)]
NO_NAMES += [lambda lib, names=names: {"filenames": lib.from_tensors(names)} for names in (["a", "b"], {"a": "b"})]
WRONG = {
    ValueError: [{"num_parallel_reads": 0}, {"num_parallel_reads": -2}],
    TypeError: [{name: value} for name in ("num_parallel_reads", "buffer_size") for value in (2.5, "2")],
}
WRONG = {error: [lambda lib, one=one: one for one in options] for error, options in WRONG.items()}
WRONG[TypeError] += [*NO_NAMES, lambda lib: {"filenames": lib.range(2)}]
CASES = {error: [(reader, one) for reader in READERS for one in options] for error, options in WRONG.items()}
CASES[ValueError] += [  # tf.data takes both for a TFRecordDataset
    (reader, lambda lib, one=one: one)
    for reader in READERS
    for one in ({"buffer_size": -1}, {"compression_type": "gz"})
    if reader != "TFRecordDataset"
]
test_arguments_that_are_wrong = refused(
    CASES,
    lambda lib, files, case: READERS[case[0]](lib, **{"filenames": files[case[0]], **case[1](lib)}),
    fixture="files",
)

"""Nodes of ``TarDataset``: the samples of tar files as dicts of bytes, in order or by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.io.dataset_file_patterns import known_paths, read_each_file
from dataset.io.dataset_files import BlockFileSource, file_names, known_names
from dataset.io.files.opening import require_regular
from dataset.io.indexed.source import FileRows, IndexedFiles, read_or_index
from dataset.io.tar.index import TarIndex
from dataset.io.tar.reader import KEY, TarFile
from dataset.plan.checks import require_bool, require_columns
from dataset.plan.nested import dataset_of
from dataset.plan.node import Node
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import Structure, structure_of
from dataset.redaction import redacted
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.metrics.dropped import DroppedCount

OP = "TarDataset"


def structure_of_names(names: Sequence[str]) -> Structure:
    """Return the structure of a sample with these components."""
    return structure_of(dict.fromkeys(names, TensorSpec((), bytes)))


def components(names: Sequence[str]) -> list[str]:
    """Return the names in the order of the components of a sample."""
    return structure_of_names(names).flatten({name: name for name in names})


@dataclass(frozen=True, eq=False)
class Tar(BlockFileSource):
    """Node that reads the samples of the files that ``source`` names, one file after another.

    Attributes:
        names: the key and the fields.
        is_closed: whether another field is an error, because the fields were inferred.
    """

    op: ClassVar[str] = OP
    has_index: ClassVar[bool] = True
    names: tuple[str, ...] = field(kw_only=True)
    is_closed: bool = field(kw_only=True)

    def _element_spec(self) -> Any:
        return dict.fromkeys(self.names, TensorSpec((), bytes))

    def open_file(self, path: str) -> TarFile:
        names = components(self.names)
        return TarFile(path, names, self.compression_type, self.buffer_size, is_closed=self.is_closed)

    def open_index(self, path: str) -> TarIndex:
        return TarIndex.build(path, components(self.names), is_closed=self.is_closed)

    def indexed(self, indexes: tuple[TarIndex, ...], run_bytes: int) -> IndexedTar:
        return IndexedTar(indexes, run_bytes, names=self.names, name=self.name)


@dataclass(frozen=True, eq=False)
class IndexedTar(IndexedFiles):
    """Node whose element ``i`` is sample ``i``, counted across all files."""

    op: ClassVar[str] = OP
    names: tuple[str, ...] = field(kw_only=True)

    @property
    def structure(self) -> Structure:
        return structure_of_names(self.names)

    def _element_spec(self) -> Any:
        return dict.fromkeys(self.names, TensorSpec((), bytes))

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "names": list(self.names)}

    def open_rows(self, skipped: DroppedCount) -> IndexedSamples:  # noqa: ARG002  # none is skipped
        return IndexedSamples(self)

    def element(self, position: int) -> Any:
        sample = self._at_hand().row(self.places[position])
        return {name: sample[name] for name in self.names}


class IndexedSamples(FileRows):
    """Random-access reader of the samples of several files."""

    node: IndexedTar

    def take(self, numbers: Array) -> Chunk:
        samples = self.records(numbers)
        columns = [[sample[name] for sample in samples] for name in components(self.node.names)]
        return Chunk(self.node.structure, len(samples), columns)


def tar_plan(
    filenames: Any,
    fields: Any,
    compression_type: str | None,
    buffer_size: int | None,
    num_parallel_reads: int | None,
    name: str | None,
    *,
    index: bool,
) -> Node:
    """Return the plan of ``TarDataset``, which documents the arguments."""
    require_bool(OP, "index", index)
    asked = require_columns(OP, fields, "fields")
    files = file_names(OP, filenames)
    if asked is None:
        paths = known_names(OP, files) if index else known_paths(files)
        if paths is None:

            def read_one_file(path: bytes) -> Any:
                return dataset_of(tar_plan([path], fields, compression_type, buffer_size, None, name, index=False))

            return read_each_file(files, read_one_file, num_parallel_reads, name)
        names = _first_names(paths, compression_type)
    else:
        names = (KEY, *(field for field in asked if field != KEY))
    source = Tar(files, buffer_size, names=names, is_closed=asked is None, compression_type=compression_type, name=name)
    return read_or_index(source, num_parallel_reads, index=index)


def _first_names(paths: Sequence[str], compression_type: str | None) -> tuple[str, ...]:
    """Return the key and the fields of the first sample of all files."""
    for path in paths:
        require_regular(path, "fields are inferred from a sample that is then read again; pass fields")
        with TarFile(path, None, compression_type) as file:
            found = file.columns(1)
            if found is not None:
                return tuple(found[0][0])
    where = ", ".join(map(redacted, paths[:3])) or "no files"
    raise ValueError(f"{OP}(): no sample was found in {where}; pass fields")

"""Source nodes of TextLineDataset: the lines of files, as ``bytes``. lines.py reads a single file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.io.dataset_files import BlockFileSource
from dataset.io.indexed.source import IndexedFiles
from dataset.io.text.line_index import LineIndex
from dataset.io.text.lines import TextLineFile
from dataset.plan.spec import TensorSpec


@dataclass(frozen=True, eq=False)
class TextLine(BlockFileSource):
    """Source node: all lines of the files that ``source`` names, file by file."""

    op: ClassVar[str] = "TextLineDataset"
    holds_blocks: ClassVar[bool] = True
    has_index: ClassVar[bool] = True

    def _element_spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_file(self, path: str) -> TextLineFile:
        return TextLineFile(path, self.compression_type, self.buffer_size)

    def open_index(self, path: str) -> LineIndex:
        return LineIndex.open(path)

    def indexed(self, indexes: tuple[LineIndex, ...], run_bytes: int) -> IndexedTextLine:
        return IndexedTextLine(indexes, run_bytes, name=self.name)


@dataclass(frozen=True, eq=False)
class IndexedTextLine(IndexedFiles):
    """Source node whose element ``i`` is line ``i``, counted across all files."""

    op: ClassVar[str] = TextLine.op

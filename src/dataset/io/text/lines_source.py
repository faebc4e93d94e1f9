"""Source node of TextLineDataset: the lines of files, as ``bytes``. lines.py reads a single file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.io.dataset_files import BlockFileSource
from dataset.io.text.lines import TextLineFile
from dataset.plan.spec import TensorSpec


@dataclass(frozen=True, eq=False)
class TextLine(BlockFileSource):
    """Source node: all lines of the files that ``source`` names, file by file."""

    op: ClassVar[str] = "TextLineDataset"
    holds_blocks: ClassVar[bool] = True

    def _element_spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_file(self, path: str) -> TextLineFile:
        return TextLineFile(path, self.compression_type, self.buffer_size)

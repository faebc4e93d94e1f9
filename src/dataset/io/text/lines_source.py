"""Source node of TextLineDataset: the lines of files, as ``bytes``. lines.py reads a single file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.io.dataset_files import FileSource
from dataset.io.files.compression import compression_name
from dataset.io.text.lines import TextLineFile
from dataset.plan.checks import require_int
from dataset.plan.spec import TensorSpec


@dataclass(frozen=True, eq=False)
class TextLine(FileSource):
    """Source node: all lines of the files that ``source`` names, file by file."""

    op: ClassVar[str] = "TextLineDataset"
    buffer_size: int | None = None

    def __post_init__(self) -> None:
        self._set("compression_type", compression_name(self.compression_type))
        if self.buffer_size is not None:
            require_int(self.op, "buffer_size", self.buffer_size, minimum=0)

    def _element_spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_file(self, path: str) -> TextLineFile:
        return TextLineFile(path, self.compression_type, self.buffer_size)

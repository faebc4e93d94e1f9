"""Node of ``CsvDataset``: the rows of files as tuples or dicts of scalars. csv/reader.py reads a single file."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from dataset.io.csv.layout import CsvLayout
from dataset.io.csv.reader import CsvFile
from dataset.io.dataset_files import FileSource
from dataset.io.files.compression import compression_name
from dataset.plan.checks import require_bool, require_int
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import structure_of


@dataclass(frozen=True, eq=False)
class Csv(FileSource):
    """Node that reads all rows of the files that ``source`` names, one file after another.

    Attributes:
        layout: the layout of the files.
        label_name: if ``named``, the column that is returned separately from the dict of the other columns.
        named: whether an element is a dict keyed by column name instead of a tuple.
    """

    op: ClassVar[str] = "CsvDataset"
    counts_elements: ClassVar[bool] = False  # it counts lines
    layout: CsvLayout
    buffer_size: int | None = None
    header: bool = False
    named: bool = field(default=False, kw_only=True)
    label_name: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._set("compression_type", compression_name(self.compression_type, reading=True))
        self._set("header", require_bool(self.op, "header", self.header))
        if self.buffer_size is not None:
            require_int(self.op, "buffer_size", self.buffer_size, minimum=1)

    def _element_spec(self) -> Any:
        return self._arranged([TensorSpec((), column.dtype) for column in self.layout.columns])

    def open_file(self, path: str) -> CsvFile:
        element = self._arranged(list(range(len(self.layout.columns))))
        order = structure_of(element).flatten(element)  # that of the components of a dict is the order of their names
        return CsvFile(path, self.layout, self.compression_type, self.buffer_size, self.header, order)

    def _arranged(self, parts: list[Any]) -> Any:
        """Arrange one value per column in the structure of an element."""
        if not self.named:
            return tuple(parts)
        assert self.layout.names is not None  # named requires them
        by_name = dict(zip(self.layout.names, parts, strict=True))
        if self.label_name is None:
            return by_name
        label = by_name.pop(self.label_name)
        return by_name, label

    def parameters(self) -> dict[str, Any]:
        parameters = super().parameters()
        layout = parameters.pop("layout")
        given = {part.name: getattr(layout, part.name) for part in fields(layout)}
        columns = tuple((column.dtype, column.default) for column in layout.columns)
        return {**given, **parameters, "columns": columns}

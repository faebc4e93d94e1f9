"""Source node of TFRecordDataset: the records of files, as ``bytes``. tfrecord/reader.py reads a single file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from dataset.io.dataset_files import BlockFileSource
from dataset.io.tfrecord.damage.damage_log import DamageLog
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.plan.spec import TensorSpec
from dataset.runtime.context import ExecutionContext


@dataclass(frozen=True, eq=False)
class TFRecord(BlockFileSource):
    """Source node: all records of the files that ``source`` names, file by file."""

    op: ClassVar[str] = "TFRecordDataset"
    holds_blocks: ClassVar[bool] = True
    packs: ClassVar[bool] = True
    has_index: ClassVar[bool] = True
    on_error: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_error not in ("raise", "skip"):
            raise ValueError(f'TFRecordDataset(): on_error must be "raise" or "skip", got {self.on_error!r}')

    def _element_spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_file(self, path: str, count: Callable[[int], object] | None = None) -> TFRecordFile:
        log = DamageLog(str(self), count) if self.on_error == "skip" else None
        return TFRecordFile(path, self.compression_type, self.buffer_size, log=log)

    def opener(self, context: ExecutionContext) -> Callable[[str], TFRecordFile]:
        def count(places: int) -> None:
            context.skipped.add(places)
            context.iteration.coordinator.check_usable()  # closing must not wait for the end of much damage

        return partial(self.open_file, count=count)

"""TFRecordDataset: the records of files, as ``bytes``. Moves along the files; reading one is tfrecord/reader.py's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.io.compression import compression_name
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.checks import require_int
from dataset.plan.node import UnaryNode
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.pending import Pending


@dataclass(frozen=True, eq=False)
class TFRecord(UnaryNode):
    """All records of the files that ``source`` names, file after file."""

    op: ClassVar[str] = "TFRecordDataset"
    compression_type: str | None = None
    buffer_size: int | None = None

    def __post_init__(self) -> None:
        self._set("compression_type", compression_name(self.compression_type))
        if self.buffer_size is not None:
            require_int("TFRecordDataset", "buffer_size", self.buffer_size, minimum=0)

    def _element_spec(self) -> Any:
        return TensorSpec((), bytes)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def lower(self, build: Build) -> Operator:
        return TFRecordOperator(build(self.source), self)


class TFRecordOperator(UnaryOperator):
    """Holds the open file. A damaged file raises once, at the place of the damage; the next file is read after it."""

    def __init__(self, source: Operator, node: TFRecord) -> None:
        super().__init__(source)
        self.node = node
        self.file: TFRecordFile | None = None
        self._pending = Pending()  # a damage behind records that came first

    def pull(self, n: int) -> Chunk | None:
        return self._pending.give(n) if self._pending else self._pending.collect(self._read, n)

    def _read(self, n: int) -> Chunk | None:
        """Up to ``n`` records of one block."""
        while True:
            if self.file is None:
                name = self.source.pull(1)
                if name is None:
                    return None
                self.file = self._open(name.rows()[0])
            try:
                records = self.file.records(n)
            except OSError as error:  # missing, unreadable or damaged: what is left of this file is given up
                error.add_note(f"in {self.node.located()}")
                self._close_file()
                raise
            if records is not None:
                return Chunk(LEAF, len(records), [records])
            self._close_file()

    def _open(self, name: Any) -> TFRecordFile:
        if not isinstance(name, bytes):
            raise SpecError(f"{self.node.located()}: a file name must be text, got {name!r} of {type(name).__name__}")
        return TFRecordFile(name, self.node.compression_type, self.node.buffer_size)

    def _close_file(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def state_dict(self) -> State:
        place = None
        if self.file is not None:
            offset, record = self.file.tell()
            place = {"path": self.file.path, "offset": offset, "record": record}
        return {**super().state_dict(), "file": place, "pending": self._pending.save()}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._pending.load(state["pending"], lambda: self.node.element_spec)
        place = state["file"]
        if place is not None:
            self.file = self._open(place["path"].encode())
            self.file.seek(int(place["offset"]), int(place["record"]))

    def close(self) -> None:
        self._close_file()
        super().close()

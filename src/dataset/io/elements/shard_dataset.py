"""Source node for one shard of a saved dataset, used by load(), snapshot() and cache(filename).

A saved state identifies a shard by the identity of its dataset and its number. The pipeline that loads the state has
read the metadata itself, so a state never determines which files are opened.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.errors import DataLossError
from dataset.io.elements.decoding import DamagedRecordError, decode
from dataset.io.elements.metadata import Metadata, run_path
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.plan.lazy import lazy_property
from dataset.plan.nested import restored_by
from dataset.plan.node import Node
from dataset.plan.spec import flatten_spec
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk, Remainder
from dataset.runtime.chunks.lineage import LineageWriter
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import Operator
from dataset.runtime.position import Position


class SavedElements:
    """Saved dataset: a complete directory of elements, and their element_spec for this reader.

    Args:
        path: the directory.
        metadata: its metadata.
        spec: the spec of the elements; it defines their structure. None if there are no elements and it is unknown.
    """

    def __init__(self, path: str, metadata: Metadata, spec: Any) -> None:
        self.path = path
        self.metadata = metadata
        self.spec = spec
        self.structure, self.components = flatten_spec(spec)
        self.identity = metadata.identity
        _known.add(self)

    def shards(self) -> list[SavedShard]:
        """Return the plans of the shards, in order."""
        return [SavedShard(self, number) for number in range(len(self.metadata.shards))]

    def __reduce__(self) -> tuple[type[SavedElements], tuple[Any, ...]]:
        return type(self), (self.path, self.metadata, self.spec)  # so that a copy is registered, too

    def __repr__(self) -> str:
        return f"SavedElements({self.identity})"


_known: weakref.WeakSet[SavedElements] = weakref.WeakSet()


@dataclass(frozen=True, eq=False)
class SavedShard(Node, reads_files=True):
    """Source node: the elements of shard ``number``, in the order in which they were written."""

    op: ClassVar[str] = "saved_shard"
    restored_as: ClassVar[str] = "saved_shard"
    saved: SavedElements = field(repr=False)
    number: int = 0

    def parameters(self) -> dict[str, Any]:
        return {"saved": self.saved.identity, "number": self.number}

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(static_spec=self.saved.spec is not None)

    def _element_spec(self) -> Any:
        return self.saved.spec

    def cardinality(self) -> int:
        return self.saved.metadata.shards[self.number].elements

    def label(self) -> str:
        return f"saved_shard({self.number})"

    def lower(self, context: ExecutionContext) -> Operator:
        path = self.saved.metadata.shard_path(self.saved.path, self.number)
        return SavedShardOperator(self, source_lineage(context, self, path))

    def to_plain(self) -> Any:
        return {"saved": self.saved.identity, "number": self.number}


def _restore(data: Any) -> Node:
    same = (one for one in list(_known) if one.identity == data["saved"])
    saved = next((one for one in same if run_path(one.path, one.metadata.run).is_dir()), None)  # others were removed
    number = data["number"]
    if saved is None or not (type(number) is int and 0 <= number < len(saved.metadata.shards)):
        raise ValueError("the state refers to a saved dataset that is not the one that exists now")
    return SavedShard(saved, number)


restored_by(SavedShard.restored_as, _restore)


class SavedShardOperator(Operator):
    """Source operator: holds the open file and the rest of a record. A damaged file raises once, then the shard ends.

    A record contains its place, so a record of another shard is detected before its elements are returned. At the end
    of the shard the number of its elements is compared with the one in the metadata.
    """

    op = "saved_shard"
    saved = ("_before", "_given", "_ended")

    def __init__(self, node: SavedShard, lineage: LineageWriter | None) -> None:
        self.node = node
        self._lineage = lineage
        saved = node.saved
        self.shard = saved.metadata.shards[node.number]
        self.expected = self.shard.elements
        path = saved.metadata.shard_path(saved.path, node.number)
        self.file = TFRecordFile(path, saved.metadata.compression)
        self._place = (0, 0)  # offset and number of the current record, or of the first one to read
        self._before = 0  # elements of the records before it
        self._length = 0  # elements of it; 0 without a current record
        self._given = 0  # elements from its beginning on that have been returned; may reach into later records
        self._record = Remainder()
        self._ended = False

    def pull(self, n: int) -> Chunk | None:
        while not self._record:
            if self._ended:
                return None
            self._read()
        chunk = self._record.give(n)
        assert chunk is not None
        if self._lineage is not None:
            chunk.lineage = self._lineage.run(self._before + self._given, chunk.length)
        self._given += chunk.length
        return chunk

    def _read(self) -> None:
        """Read the next record, unless the shard ends here."""
        place = self.file.tell()
        try:
            records = self.file.records(1)
            if records is None:
                self._end(place)
                return
            chunk = self._decoded(records[0], place)
        except OSError as error:  # missing, unreadable or damaged
            self._ended = True
            self.file.close()
            error.add_note(f"in {self.node}, from {self.node.saved.path}")
            if isinstance(error, FileNotFoundError):
                error.add_note("the saved dataset may have been replaced since this dataset was created: load it again")
            raise
        self._before += self._length
        self._given -= self._length
        self._place, self._length = place, chunk.length
        self._record = Remainder(chunk)
        if self._given:
            self._record.give(self._given)

    def _decoded(self, record: bytes, place: tuple[int, int]) -> Chunk:
        saved = self.node.saved
        try:
            belongs = (saved.metadata.run, self.shard.file, place[1])
            columns, found, length = decode(record, len(saved.components), belongs)
            if self._before + self._length + length > self.expected:
                raise DamagedRecordError(f"it has more than the {self.expected} written elements")  # noqa: TRY301
            for expected, spec in zip(saved.metadata.components or (), found, strict=True):
                if not expected.is_compatible_with(spec):
                    raise DamagedRecordError(f"it holds {spec!r}, but the metadata says {expected!r}")  # noqa: TRY301
        except DamagedRecordError as damage:
            raise DataLossError(str(damage), path=self.file.path, offset=place[0], record=place[1]) from None
        return Chunk(saved.structure, length, columns)

    def _end(self, place: tuple[int, int]) -> None:
        self._ended = True
        self.file.close()
        found = self._before + self._length
        if found != self.expected:
            words = f"the file ends after {found} elements, but {self.expected} were written"
            raise DataLossError(words, path=self.file.path, offset=place[0], record=place[1])

    def save(self) -> Position:
        offset, record = self._place
        return super().save().with_own(offset=offset, record=record)

    def load(self, position: Position) -> None:
        super().load(position)
        self._place = position.count("offset"), position.count("record")
        if not self._ended:
            self.file.seek(*self._place)

    def close(self) -> None:
        self.file.close()

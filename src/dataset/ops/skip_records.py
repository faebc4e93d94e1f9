"""Node and operator of skip_records(file): leave out the elements that are made from records named in a skip list."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.lazy import lazy_property
from dataset.plan.node import UnaryNode
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.lineage import Lineage, joined, records_of, source_numbered
from dataset.runtime.chunks.source_records import SourceRecord
from dataset.runtime.context import ExecutionContext, LineageContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.chunk_transform import ChunkTransformOperator
from dataset.runtime.position import Position

_log = logging.getLogger("dataset")

_SHOWN_MAX = 3


class _RecordName(NamedTuple):
    """Name of a record in a skip list. None matches any value, except that a record without a file has no file."""

    source: str | None
    file: str | None
    number: int
    inputs: tuple[int, ...] | None
    within: tuple[_RecordName, ...] | None

    def fits(self, record: SourceRecord) -> bool:
        """Return whether this is the name of the record."""
        if (record.file, record.number) != (self.file, self.number):
            return False
        if self.file is not None:
            return True
        if record.source != self.source or self.inputs not in (None, record.inputs):
            return False
        if self.within is None:
            return True
        return len(self.within) == len(record.within) and all(
            name.fits(inner) for name, inner in zip(self.within, record.within, strict=True)
        )

    def __str__(self) -> str:
        return f"{self.source if self.file is None else self.file}:{self.number}"


def skip_list(op: str, text: str, where: str) -> tuple[_RecordName, ...]:
    """Return the names in a skip list, each once.

    Raises:
        ValueError: a line is not the name of a record.
    """
    names: dict[_RecordName, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                names[_name(json.loads(line))] = None
            except (ValueError, TypeError, RecursionError) as error:
                raise ValueError(
                    f"{op}(): line {number} of {where} does not name a record: {error}; a line is a JSON object such "
                    'as {"file": "/data/a.tfrecord", "number": 17}'
                ) from None
    return tuple(names)


def _name(entry: Any) -> _RecordName:
    if not isinstance(entry, dict):
        raise TypeError(f"expected an object, got {entry!r:.100}")
    source, file, number = entry.get("source"), entry.get("file"), entry.get("number")
    inputs, within = entry.get("inputs"), entry.get("within")
    if type(number) is not int:
        raise TypeError(f'"number" must be an integer, got {number!r:.100}')
    if not (isinstance(file, str) or (file is None and isinstance(source, str))):
        raise TypeError(f'"file" must be a path, or absent if "source" names a reader, got {file!r:.100}')
    if inputs is not None and not (isinstance(inputs, list) and all(type(index) is int for index in inputs)):
        raise TypeError(f'"inputs" must be a list of integers, got {inputs!r:.100}')
    if within is not None and not isinstance(within, list):
        raise TypeError(f'"within" must be a list of records, got {within!r:.100}')
    return _RecordName(
        source if file is None else None,
        file,
        number,
        None if inputs is None or file is not None else tuple(inputs),
        None if within is None or file is not None else tuple(map(_name, within)),
    )


@dataclass(frozen=True, eq=False)
class SkipRecords(UnaryNode, separable=True):
    """Node that leaves out the elements of ``source`` that are made from one of the records ``names``.

    The list is not a part of the fingerprint: states can be loaded after records were added to it.
    """

    op: ClassVar[str] = "skip_records"
    names: tuple[_RecordName, ...] = field(repr=False)

    @lazy_property
    def by_number(self) -> dict[int | None, list[_RecordName]]:
        """The names by the number of the record."""
        found: dict[int | None, list[_RecordName]] = {}
        for name in self.names:
            found.setdefault(name.number, []).append(name)
        return found

    @lazy_property
    def by_place(self) -> dict[tuple[str | None, bool], list[int]]:
        """The numbers of records by file or source, and whether it is a source without a file."""
        found: dict[tuple[str | None, bool], list[int]] = {}
        for name in self.names:
            found.setdefault((name.file or name.source, name.file is None), []).append(name.number)
        return found

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY if self.names else self.source.cardinality()

    def label(self) -> str:
        return f"{self.op}({len(self.names)})"

    def fingerprint_fields(self) -> Any:
        return sorted(map(repr, self.names))

    def lower(self, context: ExecutionContext) -> Operator:
        keeps_lineage = context.is_traced
        context.is_traced = keeps_lineage or bool(self.names)
        return SkipRecordsOperator(context(self.source), self, context, keeps_lineage=keeps_lineage)


class SkipRecordsOperator(ChunkTransformOperator):
    """Operator that drops elements by their lineage, and reports names that it has not met in a whole first pass."""

    def __init__(self, source: Operator, node: SkipRecords, context: ExecutionContext, *, keeps_lineage: bool) -> None:
        super().__init__(source, node)
        self._names = node.names
        self._by_number, self._by_place = node.by_number, node.by_place
        self._skipped = context.skipped
        self._keeps_lineage = keeps_lineage
        self._listed: dict[int, npt.NDArray[np.int64]] = {}  # numbers of records, by the number of the source
        self._unmet = set(node.names) if LineageContext(context).epoch == 0 else set()

    def produce(self, n: int) -> Chunk | None:
        chunk = super().produce(n)
        if chunk is None:
            self._report()
        return chunk

    def convert(self, inputs: Chunk) -> Chunk | None:
        if not self._names:
            return inputs
        if inputs.lineage is None:
            raise SpecError("the records that it is made from are unknown; use skip_records() after the reader")
        _require_records(inputs.lineage)
        dropped = [index for index in self._candidates(inputs.lineage) if self._is_listed(inputs.lineage[index])]
        if dropped:
            self._skipped.add(len(dropped))
            if len(dropped) == inputs.length:
                return None
            inputs = inputs.take(np.delete(np.arange(inputs.length), dropped))
        # The input may hold the chunk.
        return inputs if self._keeps_lineage else inputs.with_lineage(None)

    def _candidates(self, lineage: Lineage) -> Iterable[int]:
        """Return the indices of the elements with a record whose source and number are listed."""
        rows = joined(lineage)
        found = np.zeros(len(rows), np.bool_)
        for source in np.unique(rows[:, 0]).tolist():
            numbers = self._numbers_of(source)
            if len(numbers):
                found |= (rows[:, 0] == source) & np.isin(rows[:, 1], numbers)
        if not found.any():
            return ()
        ends = np.cumsum([len(part) for part in lineage])
        candidates: list[int] = np.unique(np.searchsorted(ends, np.flatnonzero(found), "right")).tolist()
        return candidates

    def _numbers_of(self, source: int) -> npt.NDArray[np.int64]:
        numbers = self._listed.get(source)
        if numbers is None:
            found = source_numbered(source)
            listed = () if found is None else self._by_place.get((found.file or found.name, found.file is None), ())
            numbers = self._listed[source] = np.array(listed, np.int64)
        return numbers

    def _is_listed(self, lineage: Any) -> bool:
        names = self._by_number
        records = _all_of(records_of(lineage))
        met = {name for record in records for name in names.get(record.number, ()) if name.fits(record)}
        self._unmet -= met
        return bool(met)

    def _report(self) -> None:
        unmet, self._unmet = self._unmet, set()
        if unmet:
            shown = ", ".join(sorted(map(str, unmet))[:_SHOWN_MAX])
            _log.warning(
                "%s: %d of the %d listed records are not among the elements here, such as %s; compare the paths with "
                "those that iterator.provenance() shows",
                self.node,
                len(unmet),
                len(self._names),
                shown,
            )

    def load(self, position: Position) -> None:
        super().load(position)
        self._unmet = set()  # earlier elements are not known


def _require_records(lineage: Lineage) -> None:
    for number in np.unique(joined(lineage)[:, 0]).tolist():
        source = source_numbered(number)
        if source is not None and source.is_store:
            raise SpecError(
                f"it comes from {source.name}(), which does not tell the records that its elements are made from; use "
                f"skip_records() before {source.name}()"
            )


def _all_of(records: Iterable[SourceRecord]) -> Iterator[SourceRecord]:
    for record in records:
        yield record
        yield from _all_of(record.within)

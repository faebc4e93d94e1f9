"""Source records: what an element was made from, in the form that users get. lineage.py has the compact form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload


@dataclass(frozen=True)
class SourceRecord:
    """A record of a source: a line, a row, an Example, the name of a file.

    Attributes:
        source: the reader, such as ``"TFRecordDataset"``, or the ``name`` that it was given; None if the record is
            unknown.
        file: the path of the file, without secrets; None for sources that read no file.
        number: the number of the record in the file or source, from 0. For a range or a counter, the number itself. In
            a CSV file, the number of the line on which the row ends. None if the record is unknown.
        epoch: the number of earlier passes over the source in this iteration, as ``repeat`` makes them; None if it is
            unknown.
        inputs: for each op that joins several datasets, the index of the input that the record came from; the op that
            is closest to the end of the pipeline first.
        within: if a function returned the dataset of the source, as in ``interleave``, the records of the element that
            was passed to it.
    """

    source: str | None
    file: str | None = None
    number: int | None = None
    epoch: int | None = None
    inputs: tuple[int, ...] = ()
    within: tuple[SourceRecord, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data, which ``json`` can write."""
        plain = {"source": self.source, "file": self.file, "number": self.number, "epoch": self.epoch}
        return {**plain, "inputs": list(self.inputs), "within": [record.to_dict() for record in self.within]}

    def __str__(self) -> str:
        if self.source is None:
            return "unknown"
        parts = [f"{self.source if self.file is None else self.file}:{self.number}"]
        parts += [f"epoch {self.epoch}"] if self.epoch else []
        parts += [f"input {'.'.join(map(str, self.inputs))}"] if self.inputs else []
        parts += [f"of {'; '.join(map(str, self.within))}"] if self.within and self.file is None else []
        return ", ".join(parts)


class Provenance(Sequence[SourceRecord]):
    """The source records of one element, in order; of a batch, those of its rows one after another.

    Args:
        records: the records.

    >>> records = Provenance([SourceRecord("TFRecordDataset", "/data/a.tfrecord", 17, 0)])
    >>> print(records)
    /data/a.tfrecord:17
    >>> records[0].number, len(records), records.is_complete
    (17, 1, True)
    """

    def __init__(self, records: Sequence[SourceRecord]) -> None:
        self._records = tuple(records)

    @overload
    def __getitem__(self, index: int) -> SourceRecord: ...

    @overload
    def __getitem__(self, index: slice) -> Provenance: ...

    def __getitem__(self, index: int | slice) -> SourceRecord | Provenance:
        found = self._records[index]
        return found if isinstance(found, SourceRecord) else Provenance(found)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def is_complete(self) -> bool:
        """Whether all records are known."""
        return all(record.source is not None for record in self._records)

    def to_list(self) -> list[dict[str, Any]]:
        """Return the records as plain data, which ``json`` can write."""
        return [record.to_dict() for record in self._records]

    def __eq__(self, other: object) -> bool:
        return self._records == other._records if isinstance(other, Provenance) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._records)

    def __str__(self) -> str:
        return "\n".join(map(str, self._records))

    def __repr__(self) -> str:
        return f"Provenance({list(self._records)!r})"

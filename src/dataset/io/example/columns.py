"""Column: the values of one key in n records, and the twin that reads columns with protobuf.

kernel_columns.py reads the same columns with the native kernels; assemble.py shapes the values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dataset.errors import ParseError
from dataset.io.example.reference import List, list_of, read_features
from dataset.plan.values import object_column

_KIND_NAMES = {1: "bytes", 2: "float32", 3: "int64"}
INT64 = 3


class Problem(ParseError):  # noqa: N818  # never seen by users: parse.py converts it to a complete message
    """Internal error in one feature of one record; the code that catches it adds the feature's name."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row


class MissingFeature(Problem):
    """A required feature that a record does not have."""

    def __init__(self, row: int) -> None:
        super().__init__(row, "is required, but missing. Set default_value, or use VarLenFeature")


class Column(NamedTuple):
    """Column: the values of one key in n records.

    Attributes:
        present: bool (n,), whether the record has the key with a list; None if all have.
        counts: int64 (n,), the number of values in each record.
        values: all values, concatenated; bytes as an object array.
        each: the number of values in every record, if known without inspecting ``counts``; otherwise -1.
    """

    present: npt.NDArray[np.bool_] | None
    counts: npt.NDArray[np.int64]
    values: npt.NDArray[Any]
    each: int = -1


class Steps(NamedTuple):
    """The steps of one key in n SequenceExamples.

    Attributes:
        present: bool (n,), whether the record has the key.
        counts: int64 (n,), the number of steps in each record.
        columns: the MessageColumns or KernelColumns of all steps, which have only this key.
    """

    present: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]
    columns: Any


class MessageReader:
    """Reader of a few keys with protobuf: the specification of ``KernelReader``."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = list(keys)

    def read_one(self, record: bytes, row: int | None = None) -> list[List]:
        """Return the list of each key in an Example, as ``list_of``.

        Raises:
            ParseError: as ``read_features``.
        """
        return [list_of(feature) for feature in read_features(record, self.keys, row)]

    def columns(self, records: Iterable[bytes]) -> MessageColumns:
        """Return the columns of Examples.

        Raises:
            ParseError: a record is not an Example; the message has its position.
        """
        return MessageColumns([self.read_one(record, row) for row, record in enumerate(records)])

    def steps(self, records: Iterable[bytes]) -> list[Steps]:
        """Return the steps of each key in SequenceExamples.

        Raises:
            ParseError: a record is not a SequenceExample; the message has its position.
        """
        rows, found = [read_features(record, self.keys, row, in_lists=True) for row, record in enumerate(records)], []
        for place in range(len(self.keys)):
            lists = [row[place] for row in rows]
            steps = [() if one is None else one.feature for one in lists]
            present = np.array([one is not None for one in lists], np.bool_)
            columns = MessageColumns([[list_of(step)] for step in itertools.chain(*steps)])
            found.append(Steps(present, np.array([*map(len, steps)], np.int64), columns))
        return found


class MessageColumns:
    """Columns of the lists that protobuf has read: for each record, the list of each key."""

    def __init__(self, lists: Sequence[Sequence[List]]) -> None:
        self._lists = lists

    def column(self, place: int, wanted: int, *, decoded: bool = True, void: bool = False) -> Column:  # noqa: ARG002
        """Return the values of the key at ``place``; the column has no values unless ``decoded``.

        Byte strings may be of void dtype if that is cheaper and ``void`` is set; here they are objects.

        Raises:
            Problem: for the first record whose list is not of kind ``wanted``.
        """
        lists = [row[place] for row in self._lists]
        for row, (kind, _) in enumerate(lists):
            if kind and kind != wanted:
                raise wrong_kind(row, kind, wanted)
        flat = [value for _, values in lists for value in values or ()] if decoded else []
        present = None if all(kind for kind, _ in lists) else np.array([kind > 0 for kind, _ in lists], np.bool_)
        counts = np.array([len(values or ()) for _, values in lists], np.int64)
        values = object_column(flat) if wanted == 1 else np.array(flat, np.float32 if wanted == 2 else np.int64)
        return Column(present, counts, values)


def kind_of(dtype: np.dtype[Any]) -> int:
    """Return the field number in Feature of lists of ``dtype``."""
    return {"S": 1, "f": 2, "i": INT64}[dtype.kind]


def wrong_kind(row: int, kind: int, wanted: int) -> Problem:
    """Return the problem of a record that holds another kind of list."""
    held, requested = _KIND_NAMES[kind], _KIND_NAMES[wanted]
    return Problem(row, f"holds {held}, but {requested} was requested. Request {held}")

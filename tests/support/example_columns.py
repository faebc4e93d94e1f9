"""Comparison of the readers of columns of Examples: what they return, as lists."""

import numpy as np

from dataset.errors import ParseError
from dataset.io.example.columns import Problem
from dataset.plan.packed import BytesColumn


def in_blocks(records):
    """Return records as a column, each a part of a block without room after it."""
    parts = [BytesColumn.of_block(b"before" + record, [(6, 6 + len(record))]) for record in [*records, b"last"]]
    return BytesColumn.joined(parts)[:-1].copy()


def steps_of(make, keys):
    """Return as lists what ``make`` reads of the steps of each key; or the error."""
    try:
        found = make()
    except ParseError as error:
        return str(error)
    assert len(found) == len(keys)
    result = []
    for present, counts, columns in found:
        assert (counts[~present] == 0).all()
        read = contents(lambda columns=columns: columns, int(counts.sum()), [""])
        result.append((present.tolist(), counts.tolist(), read))
    return result


def contents(make, length, keys):
    """Return as lists what ``make`` reads from ``length`` records, for all keys and kinds; or the errors."""
    try:
        columns = make()
    except ParseError as error:
        return str(error)
    found = []
    for place in range(len(keys)):
        for wanted in (1, 2, 3):
            for decoded in (True, False):
                try:
                    column = columns.column(place, wanted, decoded=decoded)
                except Problem as problem:
                    found.append((problem.row, str(problem)))
                    continue
                counts = column.counts.tolist()
                assert column.each == -1 or counts == [column.each] * length
                present = [True] * length if column.present is None else column.present.tolist()
                values = column.values if decoded else column.values[:0]
                assert values.flags.writeable
                assert values.dtype == {1: object, 2: np.float32, 3: np.int64}[wanted] or not decoded
                if values.dtype == np.float32:  # a Python float, which the twin reads, is never a signalling NaN
                    values = np.array(values.tolist(), np.float32)
                found.append((counts, present, values.tolist() if wanted == 1 else values.tobytes()))
    return found

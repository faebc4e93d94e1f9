"""Tests of lineage: how it is divided, joined, moved to later passes, and saved."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from dataset import StateError
from dataset.runtime.chunks.lineage import (
    UNKNOWN,
    LineageWriter,
    RecordSource,
    divided,
    grouped,
    joined,
    later,
    load_lineage,
    paired,
    records_of,
    save_lineage,
)

SOURCE = RecordSource("lines", "/data/a.txt", (1,))


def numbers(lineage: Any) -> list[list[int | None]]:
    return [[record.number for record in records_of(rows)] for rows in lineage]


def written(start: int, count: int) -> Any:
    return LineageWriter(SOURCE, 0, None).run(start, count)


def test_elements_of_a_batch_are_joined_and_divided():
    batches = grouped(written(0, 5), 2)
    assert numbers(batches) == [[0, 1], [2, 3], [4]]
    assert numbers(divided(batches[0], 2)) == [[0], [1]]
    pairs = paired([written(0, 4), written(10, 4)], 4)
    assert numbers(pairs) == [[0, 10], [1, 11], [2, 12], [3, 13]]
    assert numbers(divided(joined(pairs), 4)) == numbers(pairs)
    assert numbers(divided(joined(pairs), 3)) == [[0, 10, 1, 11, 2, 12, 3, 13]] * 3
    assert numbers(paired([written(0, 2), written(0, 2)], 2)) == [[0], [1]]
    assert numbers(paired([written(0, 2), None], 2)) == [[0, None], [1, None]]


def test_records_of_an_argument_stay_with_the_record():
    argument = np.concatenate([written(7, 1)[0], UNKNOWN])
    inner = LineageWriter(RecordSource("rows", None, ()), 2, argument).run(3, 2)
    first, second = (records_of(rows) for rows in inner)
    assert [record.number for record in (*first, *second)] == [3, 4]
    assert [part.number for part in first[0].within] == [7, None]
    assert first[0].within[0].inputs == (1,)


def test_a_later_pass_has_a_later_epoch():
    lineage = LineageWriter(SOURCE, 1, written(7, 1)[0]).run(0, 2)
    moved = later(lineage, np.array([0, 3]), 2)
    assert [(r.epoch, r.within[0].epoch) for rows in moved for r in records_of(rows)] == [(2, 0), (5, 3)]
    own = later(list(lineage), np.array([0, 3]), 2, nested=False)
    assert [(r.epoch, r.within[0].epoch) for rows in own for r in records_of(rows)] == [(2, 0), (5, 0)]
    assert records_of(later(UNKNOWN[np.newaxis], np.array([1]))[0])[0].epoch is None


@pytest.mark.parametrize("lineage", [written(3, 4), [written(0, 2).reshape(-1, 4), UNKNOWN], []])
def test_saved_lineage_is_loaded(lineage):
    loaded = load_lineage(save_lineage(lineage), len(lineage))
    assert [records_of(rows) for rows in loaded] == [records_of(rows) for rows in lineage]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sources", [["lines", 5, []]]),
        ("sources", [["lines", None, [0.5]]]),
        ("sources", [["lines"]]),
        ("sources", []),
        ("sources", 3),
        ("matrix", np.zeros((2, 3), np.int64)),
        ("matrix", np.full((4, 4), 9)),
        ("matrix", np.zeros((4, 4))),
        ("matrix", "text"),
        ("sizes", np.array([1, 1, 1])),
        ("sizes", np.array([-1, 5, 0, 0])),
        ("sizes", np.array([2**62, 2**62, 2**62, 2**62 + 4])),
    ],
)
def test_damaged_lineage_is_rejected(key, value):
    saved = copy.deepcopy(save_lineage(written(0, 4)))
    with pytest.raises(StateError, match="the saved provenance of elements cannot be read"):
        load_lineage({**saved, key: value}, 4)

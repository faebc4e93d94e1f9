"""Tests of damaged lineage in a state. test_provenance.py tests what becomes of lineage in pipelines."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from dataset import StateError
from dataset.runtime.chunks.lineage import (
    LineageWriter,
    RecordSource,
    load_lineage,
    save_lineage,
)

SOURCE = RecordSource("lines", "/data/a.txt", (1,))


def written(start: int, count: int) -> Any:
    return LineageWriter(SOURCE, 0, None).run(start, count)


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

"""Tests of ragged partitions of Examples against tf.io's, including empty rows and absurd row numbers."""

import numpy as np
import pytest
from compare import theirs

from dataset import RaggedTensor, io

PARTITIONS = {
    "splits": [("RowSplits", "splits")],
    "lengths": [("RowLengths", "lengths")],
    "starts": [("RowStarts", "starts")],
    "limits": [("RowLimits", "limits")],
    "ids": [("ValueRowIds", "ids")],
    "nothing": [],
    "splits of lengths": [("RowSplits", "rows"), ("RowLengths", "lengths")],
    "one row": [("UniformRowLength", 4)],
    "rows of lengths": [("UniformRowLength", 1), ("RowLengths", "lengths")],
    "ids of lengths": [("ValueRowIds", "outer"), ("RowLengths", "lengths")],
    "lengths of pairs": [("RowLengths", "pairs"), ("UniformRowLength", 2)],
}
USUAL = {"splits": [0, 2, 4], "lengths": [2, 2], "starts": [0, 1], "limits": [3, 4], "ids": [0, 0, 1, 1]}
USUAL |= {"rows": [0, 1, 2], "outer": [0, 7]}
EMPTY = {"splits": [0, 0, 4, 4], "lengths": [0, 4, 0], "starts": [0, 0, 4], "limits": [0, 0, 4]}
EMPTY |= {"ids": [3, 3, 3, 9000], "rows": [0, 1, 3], "outer": [0, 7, 7]}


def plain(rows):
    return rows.to_list() if isinstance(rows, RaggedTensor) else rows.tolist()


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("record", [USUAL, EMPTY], ids=["usual", "with empty rows"])
def test_valid_partitions_give_the_same_rows(partition, record):
    keys = {"v": [1, 2, 3, 4], "pairs": [1, 1], **record}
    serialized = io.encode_example({key: np.array(values) for key, values in keys.items()})

    def feature(io, dtype):
        made = [getattr(io.RaggedFeature, kind)(key) for kind, key in PARTITIONS[partition]]
        return {"r": io.RaggedFeature(dtype, value_key="v", partitions=made)}

    parse = lambda lib: lib.tf.io.parse_single_example(serialized, feature(lib.tf.io, lib.tf.int64))["r"]
    expected = plain(theirs(parse, serialized))
    assert plain(io.parse_single_example(serialized, feature(io, np.int64))["r"]) == expected
    together = io.parse_example([*[serialized] * 9, b""], feature(io, np.int64))["r"]
    assert plain(together[8]) == expected
    assert len(together[9]) == 0

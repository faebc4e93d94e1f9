"""Tests of ragged partitions of Examples against tf.io's, including empty rows and absurd row numbers."""

import numpy as np
import pytest
from compare import theirs

from dataset import RaggedTensor, io

PARTITIONS = {
    "splits": lambda lib: [lib.RaggedFeature.RowSplits("splits")],
    "lengths": lambda lib: [lib.RaggedFeature.RowLengths("lengths")],
    "starts": lambda lib: [lib.RaggedFeature.RowStarts("starts")],
    "limits": lambda lib: [lib.RaggedFeature.RowLimits("limits")],
    "ids": lambda lib: [lib.RaggedFeature.ValueRowIds("ids")],
    "nothing": lambda lib: [],
    "splits of lengths": lambda lib: [lib.RaggedFeature.RowSplits("rows"), lib.RaggedFeature.RowLengths("lengths")],
    "one row": lambda lib: [lib.RaggedFeature.UniformRowLength(4)],
    "rows of lengths": lambda lib: [lib.RaggedFeature.UniformRowLength(1), lib.RaggedFeature.RowLengths("lengths")],
    "ids of lengths": lambda lib: [lib.RaggedFeature.ValueRowIds("outer"), lib.RaggedFeature.RowLengths("lengths")],
    "lengths of pairs": lambda lib: [lib.RaggedFeature.RowLengths("pairs"), lib.RaggedFeature.UniformRowLength(2)],
}
RECORDS = {
    "usual": {"splits": [0, 2, 4], "lengths": [2, 2], "starts": [0, 1], "limits": [3, 4], "ids": [0, 0, 1, 1]},
    "with empty rows": {
        "splits": [0, 0, 4, 4],
        "lengths": [0, 4, 0],
        "starts": [0, 0, 4],
        "limits": [0, 0, 4],
        "ids": [3, 3, 3, 9000],
    },
}


def plain(rows):
    return rows.to_list() if isinstance(rows, RaggedTensor) else rows.tolist()


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("record", RECORDS)
def test_valid_partitions_give_the_same_rows(partition, record):
    keys = {
        "v": [1, 2, 3, 4],
        "pairs": [1, 1],
        "rows": [0, 1, len(RECORDS[record]["lengths"])],
        "outer": [0, 7, 7][: len(RECORDS[record]["lengths"])],
        **RECORDS[record],
    }
    serialized = io.encode_example({key: np.array(values) for key, values in keys.items()})

    def parsed(lib):
        made = PARTITIONS[partition](lib.tf.io)
        feature = lib.tf.io.RaggedFeature(lib.tf.int64, value_key="v", partitions=made)
        return lib.tf.io.parse_single_example(serialized, {"r": feature})["r"]

    expected = plain(theirs(parsed, serialized))
    mine = {"r": io.RaggedFeature(np.int64, value_key="v", partitions=PARTITIONS[partition](io))}
    found = io.parse_single_example(serialized, mine)["r"]
    together = io.parse_example([*[serialized] * 9, b""], mine)["r"]
    for one in (found, together[8]):
        assert plain(one) == expected
    assert len(together[9]) == 0

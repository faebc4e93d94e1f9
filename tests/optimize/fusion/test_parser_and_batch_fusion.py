"""parser_and_batch_fusion: values of different lengths go from the parser to the batch end to end."""

import numpy as np
import pytest

from dataset import Dataset, io
from dataset.testing import check_operator, check_rule
from support.pipelines import as_written, fired

SPARSE = {"words": io.VarLenFeature(np.int64), "label": io.FixedLenFeature((), np.int64)}
ROWS = {"rows": io.FixedLenSequenceFeature((2,), np.float32, allow_missing=True)}
RAGGED = {"words": io.RaggedFeature(np.int64), "label": io.FixedLenFeature((), np.int64)}
NESTED = {"words": io.RaggedFeature(np.int64, partitions=[io.RaggedFeature.RowLengths("lengths")])}
DENSE = {"label": io.FixedLenFeature((), np.int64), "pair": io.FixedLenFeature((2,), np.int64)}


def record(i):
    words = list(range(i % 5))
    pairs = [i / 2] * (2 * (i % 3))
    return io.encode_example({"words": words, "lengths": [len(words)], "rows": pairs, "pair": [i, -i], "label": i})


RECORDS = [record(i) for i in range(60)]


def words_in(example):
    return example["words"].shape[0]


class Derived(io.ExampleParser):
    pass


def parsed(features, *bad, calls=None, parser=io.ExampleParser, **options):
    found = [b"bad" if i in bad else good for i, good in enumerate(RECORDS)]
    return Dataset.from_tensor_slices(np.array(found, object)).map(
        parser(features), num_parallel_calls=calls, **options
    )


FIRES = {
    "sparse": lambda *bad: parsed(SPARSE, *bad).batch(9),
    "parallel map": lambda *bad: parsed(SPARSE, *bad, calls=2).batch(9),
    "parallel batch": lambda *bad: parsed(SPARSE, *bad).batch(9, num_parallel_calls=2),
    "drop_remainder": lambda *bad: parsed(SPARSE, *bad).batch(9, drop_remainder=True),
    "rows": lambda *bad: parsed(ROWS, *bad).padded_batch(9),
    "rows to a bound": lambda *bad: parsed(ROWS, *bad).padded_batch(9, {"rows": [1, 2]}),
    "rows that differ": lambda *bad: parsed(ROWS, *bad).batch(9),
    "ragged": lambda *bad: parsed(RAGGED, *bad).ragged_batch(9),
    "ragged int32": lambda *bad: parsed(RAGGED, *bad).ragged_batch(9, row_splits_dtype=np.int32),
    "ragged padded": lambda *bad: parsed(RAGGED, *bad).padded_batch(9),
    "buckets": lambda *bad: parsed(RAGGED, *bad).bucket_by_sequence_length(words_in, [2, 4], [5, 3, 4]),
    "ragged buckets": lambda *bad: parsed(SPARSE, *bad).bucket_by_sequence_length(
        words_in, [2, 4], [5, 3, 4], no_padding=True
    ),
    "select": lambda *bad: parsed(SPARSE, *bad).select("words").batch(9),
}

NEVER = {
    "dense": lambda: parsed(DENSE).batch(9),
    "rows of rows": lambda: parsed(NESTED).batch(9),
    "derived": lambda: parsed(SPARSE, parser=Derived).batch(9),
    "in a process": lambda: parsed(SPARSE, executor="process").batch(9),
    "batches of one": lambda: parsed(SPARSE).batch(1),
    "not batched": lambda: parsed(SPARSE),
    "something between": lambda: parsed(SPARSE).shuffle(9, seed=1).batch(9),
    "sparse_batch": lambda: parsed(RAGGED).select("words").sparse_batch(9, [None]),
    "another function": lambda: Dataset.range(9).map(lambda x: x).batch(9),
}


@pytest.mark.parametrize("make", FIRES.values(), ids=FIRES)
def test_fires_and_changes_nothing(make):
    assert "parser_and_batch_fusion" in fired(make())
    described = as_written(make())
    for bad in ((), (0, 12, 59), (8, 9, 10)):
        check_rule("parser_and_batch_fusion", lambda bad=bad: make(*bad), described)
    check_operator(lambda: make(8, 9, 10), positions=2)


@pytest.mark.parametrize("make", NEVER.values(), ids=NEVER)
def test_does_not_fire(make):
    assert "parser_and_batch_fusion" not in fired(make())

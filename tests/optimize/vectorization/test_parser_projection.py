"""parser_projection: features that a select drops are checked, and not decoded."""

import numpy as np
import pytest

from dataset import Dataset, ParseError, io
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes
from support.pipelines import fired

FEATURES = {
    "image": io.FixedLenFeature((), bytes),
    "weights": io.FixedLenFeature((2,), np.float32),
    "cells": io.VarLenFeature(np.float32),
    "label": io.FixedLenFeature((), np.int64),
    "size": io.FixedLenFeature((), np.int64, default_value=7),
}
ROWS = FEATURES | {"rows": io.FixedLenSequenceFeature((), np.float32, allow_missing=True)}
DENSE = {name: spec for name, spec in ROWS.items() if name != "cells"}
NESTED = {
    "label": FEATURES["label"],
    "words": io.RaggedFeature(np.float32, partitions=[io.RaggedFeature.RowLengths("lengths")]),
}


def record(i, wrong):
    values = {"image": bytes([i]) * i, "weights": [i / 2, -i / 2], "cells": [i / 2] * (i % 3), "label": i}
    return io.encode_example(values | {"rows": [0.5] * (i % 4)} | (wrong if i == 21 else {}))


def parsed(features=FEATURES, *, wrong=None, calls=None, parser=io.ExampleParser):
    found = [record(i, wrong or {}) for i in range(60)]
    return Dataset.from_tensor_slices(np.array(found, object)).map(parser(features), num_parallel_calls=calls)


FIRES = {
    "select('label')": lambda **how: parsed(**how).select("label"),
    "select('size', 'label')": lambda **how: parsed(calls=2, **how).select("size", "label"),
    "batch(9) <- select('cells', 'label')": lambda **how: parsed(**how).batch(9).select("cells", "label"),
    "take(40) <- shuffle(20, seed=1) <- select('label')": lambda **how: (
        parsed(**how).shuffle(20, seed=1, reshuffle_each_iteration=False).take(40).select("label")
    ),
    "batch(9) <- prefetch(3) <- shard(2, 0) <- skip(1) <- select('weights')": lambda **how: (
        parsed(**how).skip(1).shard(2, 0).prefetch(3).select("weights").batch(9)
    ),
    # Rows of different lengths, which are not stacked.
    "batch(9) <- take(50) <- select('label')": lambda **how: parsed(ROWS, **how).take(50).select("label").batch(9),
}


class Derived(io.ExampleParser):
    pass


def function_of(features):
    return lambda record: io.parse_single_example(record, features)


NEVER = {
    "all": lambda: parsed().select(*FEATURES),
    "partitions": lambda: parsed(NESTED).select("label"),
    "derived": lambda: parsed(parser=Derived).select("label"),
    "cache": lambda: parsed().cache().select("label"),
    "map": lambda: parsed().map(dict).select("label"),
    "rows that are stacked": lambda: parsed(ROWS).batch(9).select("label"),
    "padded_batch": lambda: parsed(DENSE).padded_batch(9).select("label"),
    "repeat": lambda: parsed().repeat(2).select("label"),
    "function, not directly": lambda: parsed(parser=function_of).batch(40).select("label"),
    "not selected": lambda: parsed().map(lambda element: element["label"]),
}

WRONG = {
    "nothing": None,
    "another kind": {"image": 3},
    "another kind of number": {"weights": [1, 2]},
    "number of values": {"weights": [0.5]},
    "no values": {"weights": []},
    "two images": {"image": [b"a", b"b"]},
    "an empty list": {"image": np.array([], object)},
    "what is read": {"label": [1, 2]},
    "sparse of another kind": {"cells": [b"a"]},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_fires_and_changes_nothing(wrong):
    for described, make in FIRES.items():
        plan = f"{described} <- map(ExampleParser) <- from_tensor_slices"
        check_rule("parser_projection", lambda make=make: make(wrong=wrong), plan)
    by_function = parsed(parser=function_of, wrong=wrong).select("label").batch(40)
    assert "parser_projection" in fired(by_function)
    check_operator(lambda: by_function, positions=2)


@pytest.mark.parametrize("make", FIRES.values(), ids=FIRES)
def test_keeps_the_contract_of_operators(make):
    assert "parser_projection" in fired(make())
    check_operator(lambda: make(wrong={"weights": [0.5]}), positions=2)


@pytest.mark.parametrize("make", NEVER.values(), ids=NEVER)
def test_does_not_fire(make):
    assert "parser_projection" not in fired(make())


@pytest.mark.parametrize("missing", ["image", "weights", "label"])
def test_a_feature_that_nobody_reads_must_be_there(missing):
    records = [io.encode_example({"image": b"", "weights": [0.5, 0.5], "label": i}) for i in range(20)]
    lacking = {"image": b"", "weights": [0.5, 0.5], "label": 13}
    del lacking[missing]
    records[13] = io.encode_example(lacking)
    labels = Dataset.from_tensor_slices(np.array(records, object)).map(io.ExampleParser(FEATURES)).select("label")
    found = outcomes(iter(labels.batch(10)))
    assert_elements_equal(found[:1], [np.arange(10)])
    assert isinstance(found[1], ParseError)
    assert f"feature {missing!r} is required, but missing" in str(found[1])
    assert found[1].__notes__[0].endswith("element 13")


def test_branches_of_one_dataset_are_read_apart():
    both = parsed()
    labels, weights, whole = next(iter(Dataset.zip((both.select("label"), both.select("weights"), both)).batch(30)))
    assert labels.tolist() == list(range(30))
    assert weights.tolist() == whole["weights"].tolist() == [[i / 2, -i / 2] for i in range(30)]
    assert whole["image"].tolist() == [bytes([i]) * i for i in range(30)]

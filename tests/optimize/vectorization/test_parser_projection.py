"""parser_projection: features that a select drops are checked, and not decoded."""

import numpy as np
import pytest

from dataset import Dataset, ParseError, io
from dataset.io.example import parse
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes

FEATURES = {
    "image": io.FixedLenFeature((), bytes),
    "weights": io.FixedLenFeature((2,), np.float32),
    "cells": io.VarLenFeature(np.float32),
    "label": io.FixedLenFeature((), np.int64),
    "size": io.FixedLenFeature((), np.int64, default_value=7),
}
ROWS = FEATURES | {"rows": io.FixedLenSequenceFeature((), np.float32, allow_missing=True)}
NUMBERS = {"label": io.FixedLenFeature((), np.int64), "size": io.FixedLenFeature((2,), np.int64)}
NESTED = NUMBERS | {"words": io.RaggedFeature(np.float32, partitions=[io.RaggedFeature.RowLengths("lengths")])}


def values(i):
    return {
        "image": bytes([i]) * i,
        "weights": [i / 2, -i / 2],
        "cells": [i / 2] * (i % 3),
        "label": i,
        "rows": [0.5] * (i % 4),
    }


def parsed(features=FEATURES, *, wrong=None, calls=None, parser=io.ExampleParser):
    found = [io.encode_example(values(i) | ({} if wrong is None or i != 21 else wrong)) for i in range(60)]
    return Dataset.from_tensor_slices(np.array(found, object)).map(parser(features), num_parallel_calls=calls)


FIRES = {
    "select": (lambda **how: parsed(**how).select("label"), "select('label') <- map(ExampleParser)"),
    "parallel": (
        lambda **how: parsed(calls=2, **how).select("size", "label"),
        "select('size', 'label') <- map(ExampleParser)",
    ),
    "batch": (
        lambda **how: parsed(**how).batch(9).select("label"),
        "batch(9) <- select('label') <- map(ExampleParser)",
    ),
    "sparse": (
        lambda **how: parsed(**how).batch(9).select("cells", "label"),
        "batch(9) <- select('cells', 'label') <- map(ExampleParser)",
    ),
    "shuffle": (
        lambda **how: parsed(**how).shuffle(20, seed=1, reshuffle_each_iteration=False).take(40).select("label"),
        "take(40) <- shuffle(20, seed=1) <- select('label') <- map(ExampleParser)",
    ),
    "others": (
        lambda **how: parsed(**how).skip(1).shard(2, 0).prefetch(3).select("weights").batch(9),
        "batch(9) <- prefetch(3) <- shard(2, 0) <- skip(1) <- select('weights') <- map(ExampleParser)",
    ),
    "rows that are not stacked": (
        lambda **how: parsed(ROWS, **how).take(50).select("label").batch(9),
        "batch(9) <- take(50) <- select('label') <- map(ExampleParser)",
    ),
}


class Derived(io.ExampleParser):
    pass


NEVER = {
    "all": lambda: parsed().select(*FEATURES),
    "numbers only": lambda: parsed(NUMBERS).select("label"),
    "partitions": lambda: parsed(NESTED).select("label"),
    "derived": lambda: parsed(parser=Derived).select("label"),
    "cache": lambda: parsed().cache().select("label"),
    "map": lambda: parsed().map(dict).select("label"),
    "rows that are stacked": lambda: parsed(ROWS).batch(9).select("label"),
    "padded_batch": lambda: parsed(ROWS).padded_batch(9).select("label"),
    "repeat": lambda: parsed().repeat(2).select("label"),
    "no such key": lambda: parsed().select("labels"),
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


def fires(dataset):
    return "parser_projection" in [fired.rule for fired in optimize(dataset.plan).fired]


def function_of(features):
    return lambda record: io.parse_single_example(record, features)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize(("make", "described"), FIRES.values(), ids=FIRES)
def test_fires_and_changes_nothing(make, described, wrong):
    assert fires(make())
    check_rule("parser_projection", lambda: make(wrong=wrong), f"{described} <- from_tensor_slices")


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_fires_for_functions_that_parse(wrong):
    def make():
        return parsed(parser=function_of, wrong=wrong).select("label").batch(40)

    assert fires(make())
    check_operator(make, positions=2)


@pytest.mark.parametrize(("make", "described"), FIRES.values(), ids=FIRES)
def test_keeps_the_contract_of_operators(make, described):
    check_operator(lambda: make(wrong={"weights": [0.5]}), positions=4)


@pytest.mark.parametrize("make", NEVER.values(), ids=NEVER)
def test_does_not_fire(make):
    assert not fires(make())


@pytest.mark.parametrize("missing", ["image", "weights", "label"])
def test_a_feature_that_nobody_reads_must_be_there(missing):
    records = [io.encode_example(values(i)) for i in range(20)]
    lacking = values(13)
    del lacking[missing]
    records[13] = io.encode_example(lacking)
    labels = Dataset.from_tensor_slices(np.array(records, object)).map(io.ExampleParser(FEATURES)).select("label")
    found = outcomes(iter(labels.batch(10)))
    assert_elements_equal(found[:1], [np.arange(10)])
    assert isinstance(found[1], ParseError)
    assert f"feature {missing!r} is required, but missing" in str(found[1])
    assert found[1].__notes__[0].endswith("element 13")


def test_what_nobody_reads_is_not_decoded(monkeypatch):
    decoded = []
    column = parse.column

    def noting(lists, kind):
        decoded.append(kind)
        return column(lists, kind)

    monkeypatch.setattr(parse, "column", noting)
    assert_elements_equal(list(parsed().batch(60).select("label")), [np.arange(60)])
    assert decoded == [3, 3]  # the two features of integers


def test_branches_of_one_dataset_are_read_apart():
    both = parsed()
    dataset = Dataset.zip((both.select("label"), both.select("weights"), both)).batch(30)
    labels, weights, whole = next(iter(dataset))
    assert labels.tolist() == list(range(30))
    assert weights.tolist() == whole["weights"].tolist() == [[i / 2, -i / 2] for i in range(30)]
    assert whole["image"].tolist() == [bytes([i]) * i for i in range(30)]

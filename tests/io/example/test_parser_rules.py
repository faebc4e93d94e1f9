"""Tests that the rules about parsing do not change results, for all records, features and ops after the map."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, io
from dataset.optimize.vectorization import parsing_functions
from dataset.testing import assert_elements_equal, outcomes
from support.example_strategies import alike, damaged, feature_specs, odd_examples
from support.pipelines import no_rules, only
from support.resuming import check_every_place

RULES = {"parser_vectorization", "parser_and_batch_fusion", "parser_projection", "map_and_batch_fusion"}


def shuffled(dataset):
    return dataset.shuffle(11, seed=3, reshuffle_each_iteration=False).skip(2)


BEHIND = {
    "nothing": lambda dataset, names: dataset,
    "batch": lambda dataset, names: dataset.batch(9),
    "batch, dropping": lambda dataset, names: dataset.batch(9, drop_remainder=True),
    "batch, parallel": lambda dataset, names: dataset.batch(9, num_parallel_calls=2),
    "padded_batch": lambda dataset, names: dataset.padded_batch(9),
    "ragged_batch": lambda dataset, names: dataset.ragged_batch(9),
    "ragged_batch, int32": lambda dataset, names: dataset.ragged_batch(9, row_splits_dtype=np.int32),
    "sparse_batch": lambda dataset, names: dataset.sparse_batch(9, [None]),
    "select, batch": lambda dataset, names: dataset.select(*names).batch(9),
    "batch, select": lambda dataset, names: dataset.batch(9).select(*names),
    "shuffle, select": lambda dataset, names: shuffled(dataset).select(*names).batch(9),
    "prefetch, select": lambda dataset, names: dataset.prefetch(12).take(20).select(*names).batch(9),
    "batch of batches": lambda dataset, names: dataset.batch(9).batch(2),
    "unbatch": lambda dataset, names: dataset.batch(9).unbatch(),
    "map": lambda dataset, names: dataset.map(lambda element: element[names[0]]),
    "ignore_errors": lambda dataset, names: dataset.ignore_errors().batch(9),
}


def parsers(features):
    """Return the ways to parse that the rules match, each with the arguments of map."""
    return {
        "ExampleParser": (io.ExampleParser(features), {}),
        "parallel ExampleParser": (io.ExampleParser(features), {"num_parallel_calls": 2}),
        "lambda": (lambda record: io.parse_single_example(record, features), {}),
        "partial": (functools.partial(io.parse_single_example, features=features), {"num_parallel_calls": 2}),
    }


def assert_same_outcomes(got, expected):
    """Check that elements are equal, and failures in their full text and location."""
    assert_elements_equal(got, expected)
    notes = [[getattr(each, "__notes__", []) for each in some] for some in (got, expected)]
    assert notes[0] == notes[1]


@st.composite
def cases(draw):
    """Draw records, sometimes with a few bad ones, and features, some of them suitable."""
    if draw(st.booleans()):
        records, kinds = draw(alike(min_size=9))
        features = draw(feature_specs(kinds))
    else:
        some = draw(st.lists(odd_examples(), min_size=1, max_size=5))
        records, features = [some[i % len(some)] for i in range(draw(st.integers(9, 24)))], draw(feature_specs())
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(records) - 1))
        records[at] = draw(damaged(st.just(records[at])) | st.just(b"") | odd_examples())
    names = draw(st.lists(st.sampled_from(list(features)), min_size=1, unique=True))
    return records, features, names


@settings(max_examples=250, deadline=None)
@given(
    case=cases(),
    how=st.sampled_from(list(parsers({"x": io.VarLenFeature(int)}))),
    behind=st.sampled_from(list(BEHIND)),
    rules=st.sets(st.sampled_from(sorted(RULES)), min_size=1),
)
def test_the_rules_change_no_outcome(case, how, behind, rules):
    records, features, names = case
    function, arguments = parsers(features)[how]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parsing_functions, "_RECORDS_MIN", 8)
        parsed = Dataset.from_tensor_slices(np.array(records, object)).map(function, **arguments)
        try:
            dataset = BEHIND[behind](parsed, names)
        except (TypeError, ValueError):  # the op does not support such elements, with or without the rules
            return
        got, expected = (outcomes(iter(dataset.with_options(options))) for options in (only(*rules), no_rules()))
        assert_same_outcomes(got, expected)


ON, OFF = only(*RULES), no_rules()


@pytest.mark.parametrize(
    ("behind", "first", "then"),
    [
        *((behind, ON, ON) for behind in ("batch", "padded_batch", "batch, select", "shuffle, select")),
        *((behind, ON, OFF) for behind in ("batch", "padded_batch", "select, batch")),  # nothing has changed places
        *((behind, OFF, ON) for behind in ("batch", "padded_batch", "select, batch")),
    ],
)
@pytest.mark.parametrize("how", ["parallel ExampleParser", "lambda"])
def test_a_state_goes_on_with_and_without_the_rules(behind, how, first, then, monkeypatch):
    monkeypatch.setattr(parsing_functions, "_RECORDS_MIN", 8)
    features = {
        "same": io.FixedLenFeature((2,), np.float32),
        "label": io.FixedLenFeature((), np.int64),
        "rows": io.FixedLenSequenceFeature((), np.int64, allow_missing=True),
        "cells": io.VarLenFeature(np.float32),
    }
    for name in {"padded_batch": ["cells"], "batch, select": ["rows"]}.get(behind, []):
        del features[name]
    records = [
        io.encode_example({"same": [0.5, i / 2], "label": i, "rows": [i] * (i // 20 + 1), "cells": [i / 2] * (i % 3)})
        for i in range(60)
    ]
    records[13] = b"bad"
    records[33] = io.encode_example({"label": 1})
    function, arguments = parsers(features)[how]

    def make(options):
        dataset = Dataset.from_tensor_slices(np.array(records, object)).map(function, **arguments)
        return BEHIND[behind](dataset, [*features][1:]).with_options(options)

    expected = outcomes(iter(make(no_rules())))
    found = check_every_place(lambda: make(first), range(len(expected) + 1), resume=lambda: make(then))
    assert_same_outcomes(found, expected)


AHEAD = {
    "shuffle": shuffled,
    "prefetch": lambda dataset: dataset.prefetch(5),
    "take_while": lambda dataset: dataset.take_while(lambda element: element["label"] < 20),
    "interleave": lambda dataset: Dataset.range(3).interleave(dataset.skip, 2, 3, num_parallel_calls=2),
    "sample": lambda dataset: Dataset.sample_from_datasets([dataset, dataset.skip(3)], [0.5, 0.5], seed=2),
    "zip": lambda dataset: Dataset.zip((dataset, dataset.skip(3))),
}


@pytest.mark.parametrize("ahead", AHEAD.values(), ids=AHEAD)
@pytest.mark.parametrize("bad", [(), (0,), (7, 8), (19, 39)])
def test_that_a_parser_is_no_user_code_changes_no_outcome(ahead, bad):
    """It may be called speculatively, unlike a user function."""
    records = [b"bad" if i in bad else io.encode_example({"label": i}) for i in range(40)]
    parser = io.ExampleParser({"label": io.FixedLenFeature((), np.int64)})
    source = Dataset.from_tensor_slices(np.array(records, object))
    got, expected = (ahead(source.map(function)) for function in (parser, parser.parse_one))
    assert_elements_equal(outcomes(iter(got)), outcomes(iter(expected)))

"""LengthFunction: which functions are recognized as lengths, and that sorting by them changes nothing."""

from functools import partial

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor
from dataset.ops.group.lengths import LengthFunction
from dataset.plan.structure import structure_of

# ruff: noqa: PLW0108  # these lambdas are what users write

BARE, PAIR, ROW = 0, (0, 1), {"label": 0, "tokens": 3, "parts": (1, {"deep": 2})}


def named(tokens):
    """With a docstring, which is among the constants."""
    return len(tokens)


def in_steps(row):
    tokens = row["tokens"]
    return len(tokens)


def looks_up_more(row):
    label = row["nothing"]  # noqa: F841  # it may fail
    return len(row["tokens"])


def length(x):
    return len(x)


class Length:
    def __call__(self, x):
        return len(x)


@pytest.mark.parametrize(
    ("function", "element", "index"),
    [
        (len, BARE, 0),
        (named, BARE, 0),
        (lambda x: len(x), BARE, 0),
        (lambda x: x.shape[0], BARE, 0),
        (lambda x, y: y.shape[0], PAIR, 1),
        (lambda row: len(row["tokens"]), ROW, 3),
        (in_steps, ROW, 3),
        (lambda row: len(row["parts"][1]["deep"]), ROW, 2),
        (lambda x, row: len(row["b"]), (0, {"a": 1, "b": 2}), 2),
        (lambda x, n=3: len(x), BARE, 0),
        (Length(), BARE, 0),
        (partial(lambda n, x: length(x), 3), BARE, 0),
    ],
)
def test_recognizes_the_length_of_a_component(function, element, index):
    found = LengthFunction.of(function, structure_of(element))
    assert found is not None
    assert found._index == index
    assert found.holds()


seen = []


@pytest.mark.parametrize(
    ("function", "element"),
    [
        (looks_up_more, ROW),
        (lambda x: len(x) + 1, BARE),
        (lambda x: x.shape[1], BARE),
        (lambda x: x.shape, BARE),
        (lambda x: len(x[0]), BARE),  # of a part of an array
        (lambda x: seen.append(x) or len(x), BARE),
        (lambda x: len(x) if x is not None else 0, BARE),
        (lambda x: (yield len(x)), BARE),
        (lambda *x: len(x), BARE),
        (lambda x, y: len(x), BARE),
        (lambda x: len(x), PAIR),  # it is called with two arguments
        (lambda row: len(row["nothing"]), ROW),
        (lambda row: len(seen), ROW),
        (len, PAIR),
    ],
)
def test_recognizes_no_other_function(function, element):
    assert LengthFunction.of(function, structure_of(element)) is None


def test_names_mean_what_they_are_bound_to():
    scope = {}
    exec("def length(x): return len(x)", scope)
    source = Dataset.from_tensor_slices(RaggedTensor.from_rows([[i] for i in range(40)], np.int64))
    iterator = iter(source.bucket_by_sequence_length(scope["length"], [5], [2, 4], no_padding=True))
    found = LengthFunction.of(scope["length"], structure_of(BARE))
    assert found.holds()
    assert len(next(iterator)) == 2
    scope["len"] = lambda x: 7
    assert not found.holds()
    assert list(map(len, iterator)).count(4) > 5  # from then on
    assert LengthFunction.of(scope["length"], structure_of(BARE)) is None
    del scope["len"]
    assert found.holds()
    scope["length"].__code__ = (lambda x: 1 + len(x)).__code__
    assert not found.holds()

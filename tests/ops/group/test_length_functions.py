"""Which functions are known to give nothing but a length, and that sorting by them gives what calling them does."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor
from dataset.ops.group import lengths
from dataset.ops.group.lengths import LengthFunction
from dataset.plan.structure import structure_of
from dataset.runtime.chunks.chunk import Chunk
from dataset.testing import assert_elements_equal

BARE, PAIR, ROW = 0, (0, 1), {"label": 0, "tokens": 3, "parts": (1, {"deep": 2})}


def named(tokens):
    """With a docstring, which stands among the constants."""
    return len(tokens)


def in_steps(tokens):
    found = tokens
    return len(found)


@pytest.mark.parametrize(
    ("function", "element", "index"),
    [
        (len, BARE, 0),
        (named, BARE, 0),
        (lambda x: len(x), BARE, 0),  # noqa: PLW0108  # it is what users write
        (lambda x: x.shape[0], BARE, 0),
        (lambda x, y: len(x), PAIR, 0),
        (lambda x, y: len(y), PAIR, 1),
        (lambda x, y: y.shape[0], PAIR, 1),
        (lambda row: len(row["tokens"]), ROW, 3),
        (lambda row: row["tokens"].shape[0], ROW, 3),
        (lambda row: len(row["parts"][1]["deep"]), ROW, 2),
        (lambda x, row: len(row["b"]), (0, {"a": 1, "b": 2}), 2),
        (lambda x: len(x), (0,), 0),  # noqa: PLW0108
    ],
)
def test_is_the_length_of_a_component(function, element, index):
    found = LengthFunction.of(function, structure_of(element))
    assert found is not None
    assert found._index == index
    assert found.holds()


class Length:
    def __call__(self, x):
        return len(x)


seen = []


@pytest.mark.parametrize(
    ("function", "element"),
    [
        (Length(), BARE),
        (Length().__call__, BARE),
        (in_steps, BARE),  # could be proved, and is not worth it
        (lambda x: len(x) + 1, BARE),
        (lambda x: -len(x), BARE),
        (lambda x: x.shape[1], BARE),
        (lambda x: x.shape[-1], BARE),
        (lambda x: x.shape, BARE),
        (lambda x: x.size, BARE),
        (lambda x: len(x[0]), BARE),  # of a part of an array
        (lambda x: len(x.shape), BARE),
        (lambda x: len(str(x)), BARE),
        (lambda x: seen.append(x) or len(x), BARE),
        (lambda x: len(x) if x is not None else 0, BARE),
        (lambda x: (yield len(x)), BARE),
        (lambda *x: len(x), BARE),
        (lambda x, n=3: len(x), BARE),
        (lambda x, y: len(x), BARE),
        (lambda x: len(x), PAIR),  # noqa: PLW0108  # it is given two arguments
        (lambda row: len(row["nothing"]), ROW),
        (lambda row: len(row["parts"]), ROW),
        (lambda row: len(seen), ROW),
        (lambda: 3, BARE),
        (lambda x: 3, BARE),
        (max, BARE),
        (len, PAIR),
    ],
)
def test_all_else_is_the_users(function, element):
    assert LengthFunction.of(function, structure_of(element)) is None


def test_names_mean_what_they_are_bound_to():
    scope = {}
    exec("def length(x): return len(x)", scope)
    found = LengthFunction.of(scope["length"], structure_of(BARE))
    assert found.holds()
    scope["len"] = lambda x: 7
    assert not found.holds()
    assert LengthFunction.of(scope["length"], structure_of(BARE)) is None
    del scope["len"]
    assert found.holds()
    scope["length"].__code__ = (lambda x: 1 + len(x)).__code__
    assert not found.holds()


@pytest.mark.parametrize(
    "column",
    [
        np.zeros((3, 5)),
        [np.zeros(2), np.zeros(0), np.zeros(4)],
        [b"a", b"", b"abc"],
        [RaggedTensor.from_rows([[1], []]), RaggedTensor.from_rows([[1]])],
    ],
)
def test_gives_what_the_function_gives(column):
    chunk = Chunk(structure_of(BARE), len(column), [column])
    found = LengthFunction.of(len, structure_of(BARE)).lengths(chunk)
    assert found.dtype == np.int64
    assert found.tolist() == [len(value) for value in column]


def test_gives_nothing_where_the_function_fails():
    chunk = Chunk(structure_of(BARE), 3, [np.zeros(3)])
    assert LengthFunction.of(len, structure_of(BARE)).lengths(chunk).shape == (0,)


def rows(count=300):
    lengths_of = np.random.default_rng(0).integers(0, 12, count)
    tokens = RaggedTensor.from_rows([np.full(length, i) for i, length in enumerate(lengths_of)], np.int64)
    return tokens, np.arange(count)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    ("elements", "fast"),
    [
        (lambda x, y: x, lambda x: len(x)),  # noqa: PLW0108
        (lambda x, y: x, lambda x: x.shape[0]),
        (lambda x, y: (x, y), lambda x, y: len(x)),
        (lambda x, y: {"tokens": x, "label": y}, lambda row: len(row["tokens"])),
    ],
)
def test_batches_are_those_of_elements_that_come_one_by_one(elements, fast, shuffled, monkeypatch):
    source = Dataset.from_tensor_slices(elements(*rows()))
    if shuffled:
        source = source.shuffle(50, seed=1, reshuffle_each_iteration=False)
    options = {"bucket_boundaries": [3, 6, 9], "bucket_batch_sizes": [4, 7, 2, 5], "no_padding": True}
    found = list(source.bucket_by_sequence_length(fast, **options))
    calls = []
    monkeypatch.setattr(lengths.LengthFunction, "of", lambda function, structure: calls.append(function))
    assert_elements_equal(list(source.bucket_by_sequence_length(fast, **options)), found)
    assert calls == [fast]


def test_a_name_that_is_bound_anew_counts_from_then_on():
    scope = {}
    exec("def length(x): return len(x)", scope)
    source = Dataset.from_tensor_slices(RaggedTensor.from_rows([[i] for i in range(40)], np.int64))
    iterator = iter(source.bucket_by_sequence_length(scope["length"], [5], [2, 4], no_padding=True))
    assert len(next(iterator)) == 2
    scope["len"] = lambda x: 9
    assert list(map(len, iterator)).count(4) > 5

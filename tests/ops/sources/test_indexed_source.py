"""Rows of any object that can be indexed, as the node that adapters make."""

from __future__ import annotations

import numpy as np
import pytest

from dataset import Dataset, SpecError, TensorSpec
from dataset.ops.sources.indexed_source import IndexedSource
from dataset.testing import check_operator, outcomes
from support.pipelines import unoptimized


class Squares:
    """Records which items are requested."""

    def __init__(self, length=20, bad=()):
        self.length = length
        self.bad = set(bad)
        self.asked = []

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.asked.append(index)
        if index in self.bad:
            raise ValueError(f"bad {index}")
        return np.full(2, index * index), index


class ManySquares(Squares):
    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        self.runs = []

    def __getitems__(self, indices):
        self.runs.append(list(indices))
        if self.bad & set(indices):
            raise ValueError("one of them")
        return [(np.full(2, index * index), index) for index in indices]


def rows_of(data, **keywords):
    return Dataset(IndexedSource("from_squares", data, **keywords))


CHAINS = {
    "sharded": lambda rows: rows.skip(3).shard(3, 1),
    "taken": lambda rows: rows.take(5),
    "shuffled whole, twice": lambda rows: rows.shuffle(50, seed=1).repeat(2),
    "batched": lambda rows: rows.batch(4),
    "shuffled and batched": lambda rows: rows.shuffle(20, seed=2).batch(3, drop_remainder=True),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_it_keeps_the_contract(chain):
    one_by_one = check_operator(lambda: CHAINS[chain](rows_of(Squares())), positions=8)
    check_operator(lambda: CHAINS[chain](rows_of(ManySquares())), one_by_one, positions=4)


def test_an_item_that_fails_has_its_place_is_looked_up_once_and_says_which_it_is():
    check_operator(lambda: rows_of(Squares(6, bad=(1, 4))))
    data = Squares(6, bad=(2,))
    found = outcomes(iter(rows_of(data).batch(4)))
    assert data.asked == [0, 1, 2, 3, 4, 5]
    assert "item 2" in found[0].__notes__[0]
    assert "from_squares(Squares) from test_indexed_source.py" in found[0].__notes__[0]


@pytest.mark.parametrize("optimize", [True, False])
def test_only_requested_items_are_looked_up(optimize):
    data = Squares(100)
    dataset = rows_of(data, signature=(TensorSpec(2, np.int64), TensorSpec((), np.int64))).shuffle(100, seed=1).skip(10)
    dataset = dataset if optimize else unoptimized(dataset)
    iterator = iter(dataset.shard(2, 1).batch(4))
    assert data.asked == []
    first = next(iterator)
    assert data.asked == first[1].tolist()
    assert len(set(data.asked)) == 4


@pytest.mark.parametrize("chain", [lambda rows: rows.shuffle(30, seed=3), lambda rows: rows.shuffle(5).batch(2)])
def test_nothing_is_looked_up_ahead_because_items_are_user_code(chain):
    data = Squares(100)
    iterator = iter(chain(rows_of(data)))
    for step in range(1, 20):
        got = next(iterator)
        assert len(data.asked) == step * np.size(got[1])
    data.asked.clear()
    assert rows_of(data)[-3][1] == 97
    assert data.asked == [97]


def test_many_are_looked_up_at_once_and_what_fails_among_them_is_found_one_by_one():
    data = ManySquares(6, bad=(2,))
    found = outcomes(iter(rows_of(data).batch(3)))
    assert str(found[0]) == "bad 2"
    assert found[-1][1].tolist() == [3, 4, 5]
    assert data.runs == [[0, 1, 2], [3, 4, 5]]


def test_too_few_items_are_an_error_that_says_so():
    class Short(Squares):
        def __getitems__(self, indices):
            return [self[index] for index in indices[1:]]

    words = r"Short.__getitems__\(\) must return one item per requested index: expected 3 items, got 2"
    with pytest.raises(SpecError, match=words):
        next(iter(rows_of(Short()).batch(3)))


def test_a_signature_is_what_items_are_held_to():
    signature = (TensorSpec(2, np.float32), TensorSpec((), np.float64))
    dataset = rows_of(Squares(3), signature=signature)
    assert dataset.element_spec == signature
    assert [array.dtype for array, _ in dataset] == [np.float32] * 3
    with pytest.raises(SpecError, match="output_signature declares"):
        next(iter(rows_of(Squares(3), signature=(TensorSpec(3, np.int64), TensorSpec((), np.int64)))))


def test_arrays_that_the_object_keeps_are_copied_and_those_that_are_read_only_are_not():
    kept = [np.arange(3), np.arange(3)]
    copied = list(rows_of(kept))
    assert not any(np.shares_memory(array, mine) for array, mine in zip(copied, kept, strict=True))
    for array in kept:
        array.flags.writeable = False
    shared = list(rows_of(kept))
    assert all(np.shares_memory(array, mine) for array, mine in zip(shared, kept, strict=True))
    assert not any(array.flags.writeable for array in shared)

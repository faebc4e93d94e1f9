"""Tests of the Dataset class: its properties, iteration, and apply."""

import copy
import pickle

import numpy as np
import pytest

from dataset import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from dataset.testing import assert_elements_equal


def test_nothing_runs_before_somebody_iterates():
    calls = []
    dataset = Dataset.range(5).map(lambda x: calls.append(x) or x).batch(2).shuffle(3).repeat()
    repr(dataset)
    dataset.cardinality()
    dataset.options()
    dataset.explain()
    iter(dataset)
    assert calls == []


@pytest.mark.parametrize("result", [None, 3, [1], "x"])
def test_apply_refuses_a_function_that_makes_no_dataset(result):
    with pytest.raises(TypeError, match=r"apply\(\).*must return a Dataset"):
        Dataset.range(3).apply(lambda dataset: result)


def test_cardinality_is_an_int_and_len_is_defined_where_it_is_a_number():
    assert (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY) == (-1, -2)
    assert type(Dataset.range(5).batch(2).cardinality()) is int
    assert type(Dataset.from_tensor_slices(np.zeros(3)).repeat(np.int64(2)).cardinality()) is int
    assert len(Dataset.range(5).batch(2)) == 3
    assert len(Dataset.range(0)) == 0


def test_explain_has_a_format_for_pictures_which_a_notebook_shows():
    dataset = Dataset.range(10).batch(4)
    assert dataset.explain() == dataset.explain("text")
    picture = dataset.explain(format="svg")
    assert picture.startswith("<svg ")
    assert dataset._repr_svg_() == picture
    with pytest.raises(ValueError, match=r'must be "text" or "svg", got \'png\''):
        dataset.explain("png")


SOURCES = {
    "range": [3],
    "zip": [Dataset.range(3)],
    "from_tensors": [1],
    "from_tensor_slices": [[1]],
    "from_generator": [list],
}
ARGUMENTS = SOURCES | {
    "map": [str], "filter": [bool], "flat_map": [Dataset.range], "interleave": [Dataset.range], "enumerate": [],
    "concatenate": [Dataset.range(3)], "take": [1], "skip": [1], "shard": [1, 0], "repeat": [], "shuffle": [1],
    "batch": [1], "padded_batch": [1], "unbatch": [], "cache": [], "prefetch": [1],
}  # fmt: skip


@pytest.mark.parametrize("op", ARGUMENTS)
def test_every_op_takes_a_name_and_shows_it(op):
    method = getattr(Dataset if op in SOURCES else Dataset.range(3).batch(1), op)
    assert "'n'" in repr(method(*ARGUMENTS[op], name="n"))


def test_a_pipeline_can_be_pickled_and_copied_and_runs_by_itself():
    dataset = Dataset.from_tensor_slices(np.arange(20)).shuffle(5, seed=1).cache().batch(3).prefetch(2)
    fresh = list(Dataset.from_tensor_slices(np.arange(20)).shuffle(5, seed=1).cache().batch(3).prefetch(2))
    list(dataset)  # fills the cache, which is not copied
    for twin in (pickle.loads(pickle.dumps(dataset)), copy.deepcopy(dataset)):
        assert_elements_equal(list(twin), fresh)

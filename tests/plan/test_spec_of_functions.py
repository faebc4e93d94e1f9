"""What a spec claims where only user code tells what comes out: kind, dtype and rank, never a size."""

import numpy as np
import pytest

from dataset import Dataset, DatasetSpec, RaggedTensor, RaggedTensorSpec, TensorSpec
from dataset.plan.spec import as_observed, flatten_spec

UNSIZED = {
    "map": lambda numbers: numbers.map(np.zeros),
    "window and flat_map": lambda numbers: numbers.window(4).flat_map(lambda window: window.batch(4)),
    "interleave": lambda numbers: numbers.interleave(lambda n: Dataset.from_tensors(np.zeros(n))),
    "from_generator": lambda numbers: Dataset.from_generator(lambda: (np.zeros(n) for n in range(5))),
    "scan": lambda numbers: numbers.scan(0, lambda state, n: (state, np.zeros(n))),
    "group_by_window": lambda numbers: numbers.group_by_window(lambda n: 0, lambda _, window: window.batch(4), 4),
    "random_map": lambda numbers: numbers.random_map(lambda rng, n: np.zeros(n)),
}


@pytest.mark.parametrize("make", UNSIZED.values(), ids=list(UNSIZED))
def test_the_spec_allows_every_element(make):
    dataset = make(Dataset.range(5))
    spec = dataset.element_spec
    assert spec.shape == (None,)
    for element in dataset:
        assert spec.is_compatible_with(element)


def test_rank_dtype_and_structure_are_those_of_the_first_element():
    dataset = Dataset.range(3).map(lambda n: {"image": np.zeros((n + 1, 4), np.uint8), "label": n, "name": "a"})
    assert dataset.element_spec == {
        "image": TensorSpec((None, None), np.uint8),
        "label": TensorSpec((), np.int64),
        "name": TensorSpec((), bytes),
    }


def test_sizes_inside_ragged_tensors_and_datasets_are_not_claimed():
    ragged = Dataset.range(3).map(lambda n: RaggedTensor.from_rows([[1]] * (n + 1)))
    assert ragged.element_spec == RaggedTensorSpec((None, None), np.int64)
    inner = Dataset.range(3).map(lambda n: Dataset.from_tensors(np.zeros(n)))
    assert inner.element_spec == DatasetSpec(TensorSpec((None,), np.float64))


def test_what_is_declared_and_what_ops_do_is_claimed():
    mapped = Dataset.range(8).map(lambda n: np.zeros(3))
    assert mapped.batch(2, drop_remainder=True).element_spec == TensorSpec((2, None), np.float64)
    assert mapped.padded_batch(2, padded_shapes=[3]).element_spec == TensorSpec((None, 3), np.float64)
    kept = Dataset.from_tensor_slices(np.zeros((8, 3))).shuffle(4).filter(lambda row: True).batch(2)
    assert kept.element_spec == TensorSpec((None, 3), np.float64)


def test_adapters_may_use_the_sizes_of_the_first_element():
    mapped, other = (Dataset.range(8).map(lambda n, rows=rows: (np.zeros((rows, 4)), n)) for rows in (3, 5))
    for dataset, observed in (
        (mapped.batch(2), [(None, 3, 4), (None,)]),
        (mapped.batch(2).unbatch(), [(3, 4), ()]),
        (mapped.concatenate(mapped.repeat(2)), [(3, 4), ()]),
        (mapped.concatenate(other), [(None, 4), ()]),
        (mapped.padded_batch(2), [(None, None, None), (None,)]),
    ):
        assert [as_observed(spec).shape for spec in flatten_spec(dataset.element_spec)[1]] == observed

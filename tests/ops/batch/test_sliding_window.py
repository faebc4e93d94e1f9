"""sliding_window: arrays of consecutive elements."""

import itertools

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at
from support.pipelines import Record

SHAPES = [
    {"size": 3},
    {"size": 3, "shift": 2},
    {"size": 2, "shift": 5},
    {"size": 3, "shift": 2, "stride": 2},
    {"size": 9, "shift": 4},
    {"size": 12},
]


def by_window(dataset, shape):
    """Return the windows that window, flat_map and batch make."""
    return dataset.window(**{"shift": 1, **shape}, drop_remainder=True).flat_map(lambda w: w.batch(shape["size"]))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bad", [(), (3, 4), (0, 9)], ids=str)
def test_windows_are_those_of_window_and_batch(shape, bad):
    numbers = Dataset.range(10).map(fail_at(*bad))
    expected = outcomes(iter(by_window(numbers, shape)))
    assert list(map(str, outcomes(iter(numbers.sliding_window(**shape))))) == list(map(str, expected))
    check_operator(lambda: numbers.sliding_window(**shape))
    check_operator(lambda: numbers.sliding_window(**shape, pad=-1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_windows_are_those_of_numpy(shape):
    rows = np.arange(20.0).reshape(10, 2)
    size, shift, stride = shape["size"], shape.get("shift", 1), shape.get("stride", 1)
    dataset = Dataset.from_tensor_slices(rows).sliding_window(**shape)
    expected = []
    if (span := (size - 1) * stride + 1) <= 10:
        view = np.lib.stride_tricks.sliding_window_view(rows, span, axis=0)
        expected = list(view[::shift, :, ::stride].transpose(0, 2, 1))
    check_operator(lambda: dataset, expected)
    assert len(dataset) == len(expected)
    assert dataset.element_spec == TensorSpec((size, 2), np.float64)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_padding_fills_windows_at_the_end(shape):
    size, shift, stride = shape["size"], shape.get("shift", 1), shape.get("stride", 1)
    dataset = Dataset.range(10).sliding_window(**shape, pad=-1)
    expected = [
        [place if place < 10 else -1 for place in range(start, start + size * stride, stride)]
        for start in range(0, 10, shift)
    ]
    assert [window.tolist() for window in dataset] == expected
    assert len(dataset) == len(expected)
    assert {window.shape for window in dataset} == {dataset.element_spec.shape}


def test_every_component_has_its_padding():
    rows = Dataset.from_tensor_slices({"x": np.zeros((3, 2)), "word": np.array(["a", "b", "c"])})
    last = list(rows.sliding_window(2, pad={"x": 0.5, "word": "end"}))[-1]
    assert_elements_equal([last], [{"x": np.array([[0.0, 0.0], [0.5, 0.5]]), "word": np.array([b"c", b"end"], object)}])
    with pytest.raises(TypeError, match="pad has 'end' for"):
        rows.sliding_window(2, pad="end")
    with pytest.raises(TypeError, match="pad must have the structure of the elements"):
        rows.sliding_window(2, pad={"x": 0.5})
    with pytest.raises(TypeError, match=r"pad has 0\.5 for"):
        Dataset.range(3).sliding_window(2, pad=0.5)
    ragged = Dataset.from_tensor_slices(RaggedTensor.from_rows([[1], [2, 3], []]))
    assert [window.to_list() for window in ragged.sliding_window(2)] == [[[1], [2, 3]], [[2, 3], []]]
    with pytest.raises(TypeError, match="remove pad"):
        ragged.sliding_window(2, pad=0)


def test_arguments_are_checked():
    for argument in ("size", "shift", "stride"):
        with pytest.raises(ValueError, match=f"sliding_window\\(\\): {argument} must be"):
            Dataset.range(3).sliding_window(**{"size": 2, argument: 0})
    label = "sliding_window(2, shift=3, stride=4, pad=-1)"
    assert label in repr(Dataset.range(3).sliding_window(2, 3, 4, -1))


def test_structures_and_nested_windows():
    records = Dataset.range(6).map(lambda x: Record(x, {"deep": np.full(2, x)}))
    check_operator(lambda: records.sliding_window(2))
    pairs = Dataset.zip((Dataset.range(6), Dataset.range(6, 12))).sliding_window(2, shift=2)
    assert_elements_equal(list(pairs)[1:2], [(np.array([2, 3]), np.array([8, 9]))])
    nested = Dataset.range(5).sliding_window(2).sliding_window(3)
    assert nested.element_spec == TensorSpec((3, 2), np.int64)
    assert list(nested)[1].tolist() == [[1, 2], [2, 3], [3, 4]]
    check_operator(lambda: Dataset.range(30).sliding_window(4).shuffle(5, seed=1).batch(3))


def test_windows_of_unequal_elements_fail_in_their_places():
    rows = Dataset.range(8).map(lambda x: np.zeros(2 if x == 4 else 1))
    found = outcomes(iter(rows.sliding_window(2)))
    assert [type(one) for one in found] == [np.ndarray] * 3 + [SpecError] * 2 + [np.ndarray] * 2
    assert "the element has shape (2,) in element 1 of a window, but (1,) before" in str(found[3])
    check_operator(lambda: rows.sliding_window(2))


def test_requests_no_more_than_is_needed():
    check_laziness(lambda numbers: numbers.sliding_window(3), lambda k: k and k + 2)
    check_laziness(lambda numbers: numbers.sliding_window(2, shift=5), lambda k: k and 5 * (k - 1) + 2)
    check_laziness(lambda numbers: numbers.sliding_window(2, stride=4), lambda k: k and k + 4)


def test_windows_share_memory_and_are_read_only():
    images = Dataset.from_tensor_slices(np.arange(40 * 64).reshape(40, 8, 8)).sliding_window(10)
    windows = list(images)
    assert sum(itertools.starmap(np.shares_memory, itertools.pairwise(windows))) > 0.8 * len(windows)
    assert not any(window.flags.writeable for window in windows)
    batches = list(images.batch(4))
    assert all(batch.flags.writeable for batch in batches)

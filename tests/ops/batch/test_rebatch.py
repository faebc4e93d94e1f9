"""rebatch: batches of other sizes. tests/oracle compares sizes, sources and failures with tf.data."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at


def batches(*rows):
    return [np.array(row, np.int64) for row in rows]


@pytest.mark.parametrize(
    ("size", "drop", "expected"),
    [
        (3, True, batches([0, 1, 2], [3, 4, 5])),
        ([2, 0, 1], False, batches([0, 1], [], [2], [3, 4], [], [5], [6])),
        (np.array([6, 1], np.int32), False, batches([0, 1, 2, 3, 4, 5], [6])),
    ],
)
def test_cuts_and_joins_batches(size, drop, expected):
    check_operator(lambda: Dataset.range(7).batch(4).rebatch(size, drop), expected)
    assert_elements_equal(list(Dataset.range(7).batch(4).map(lambda b: b).rebatch(size, drop)), expected)


def test_takes_no_more_than_the_rows_need():
    for drop in (False, True):  # if True, the number of rows of each batch is known
        check_laziness(lambda numbers, drop=drop: numbers.batch(4, drop).rebatch(3), lambda k: 4 * -(-3 * k // 4))
        check_laziness(
            lambda numbers, drop=drop: numbers.batch(4, drop).rebatch(9, drop_remainder=True),
            lambda k: 4 * -(-9 * k // 4),
        )


COMPONENTS = {
    "ragged twice": RaggedTensor.from_nested_row_splits(np.eye(4), [[0, 2, 2, 3, 3, 5], [0, 1, 1, 2, 4, 4]]),
    "sparse, out of order": SparseTensor([[3, 0], [0, 2], [0, 1]], [3, 2, 1.5], [5, 3]),
    "dates": np.arange(5).astype("M8[D]"),
    "a dict": {"b": (np.zeros((5, 2)), None), "a": RaggedTensor(np.arange(5), np.array([0, 2, 2, 3, 3, 5], np.int32))},
}


@pytest.mark.parametrize("component", COMPONENTS)
def test_returns_what_unbatch_and_batch_return(component):
    whole = Dataset.from_tensors(COMPONENTS[component]).repeat(3)
    check_operator(lambda: whole.rebatch(7), list(whole.unbatch().batch(7)))
    assert_elements_equal(list(whole.rebatch([3, 0, 1]).unbatch()), list(whole.unbatch()))


def test_slices_share_memory_with_the_input_and_joined_batches_belong_to_the_user():
    source = np.arange(8)
    whole = Dataset.from_tensors(source)
    for batch in whole.rebatch(3):
        assert np.shares_memory(batch, next(iter(whole)))
        assert not batch.flags.writeable
    for batch in whole.repeat(2).rebatch(16):
        batch[:] = 0
    assert source.tolist() == list(range(8))


def test_empty_batches_after_a_function_have_the_shape_of_its_results():
    dataset = Dataset.range(2).map(lambda i: np.full((2, 3), i))
    got = check_operator(lambda: dataset.rebatch([0, 4]))
    assert [batch.shape for batch in got] == [(0, 3), (4, 3), (0, 3)]
    failing = Dataset.range(3).map(fail_at(0)).map(lambda i: np.full(1, i))
    assert_elements_equal(outcomes(iter(failing.rebatch([0, 2]))), [ValueError("bad 0"), *batches([], [1, 2], [])])


def test_batches_that_cannot_be_cut_or_joined_fail_in_their_place():
    lengths = [(2, 2), (1, 2), (3, 3)]
    pairs = Dataset.range(3).map(lambda i: tuple(np.full(n, i) for n in lengths[int(i)]))
    got = check_operator(lambda: pairs.rebatch(2))
    assert_elements_equal(got[:1], [(np.array([0, 0]), np.array([0, 0]))])
    assert isinstance(got[1], SpecError)
    assert "component 0 has 1, component 1 has 2" in str(got[1])
    assert [len(batch[0]) for batch in got[2:]] == [2, 1]

    shapes = [(2, 2), (4, 3), (3, 3)]
    matrices = Dataset.range(3).map(lambda i: {"x": np.ones(shapes[int(i)])})
    got = check_operator(lambda: matrices.rebatch(3))
    assert isinstance(got[0], SpecError)
    assert "rebatch(3) from test_rebatch.py" in str(got[0])
    assert "component 'x' has row shape (3,) in element 1 but (2,) in element 0" in str(got[0])
    assert [batch["x"].shape for batch in got[1:]] == [(3, 3), (3, 3)]


def test_batches_of_other_kinds_fail_in_their_batch():
    dataset = Dataset.range(2).map(lambda i: RaggedTensor([1.0], [0, 1]) if i else np.ones(1)).rebatch(2)
    with pytest.raises(SpecError, match=r"rebatch\(2\).* in element 1 but .* in element 0"):
        next(iter(dataset))


def test_an_exception_drops_the_rows_that_wait_for_their_batch():
    dataset = Dataset.range(10).map(fail_at(4)).batch(2).rebatch(3)
    expected = [np.array([0, 1, 2]), ValueError("bad 4"), np.array([5, 6, 7]), np.array([8, 9])]
    check_operator(lambda: dataset, expected)


@pytest.mark.parametrize(
    ("value", "words"),
    [(1, "is a scalar"), ((np.zeros(2), 1), "component 1 is a scalar"), ((np.zeros(2), np.zeros(3)), "same number")],
    ids=repr,
)
def test_refuses_elements_without_rows(value, words):
    with pytest.raises(ValueError, match=words):
        Dataset.from_tensors(value).rebatch(2)
    unknown = Dataset.range(1).map(lambda _: value)
    with pytest.raises(SpecError):
        next(iter(unknown.rebatch(2)))

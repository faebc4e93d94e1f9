"""interleave: datasets side by side. tests/oracle compares cycles, sources and failures with tf.data."""

import functools

import numpy as np
import pytest

from dataset import CsvDataset, Dataset, TFRecordDataset
from dataset.plan.node import holds_user_code, spec_is_static
from dataset.testing import assert_elements_equal, check_laziness, check_operator
from support.combinations import diagonals
from support.op_cases import ints


def reference(inputs, cycle, block):
    """The algorithm of tf.data, one element at a time: an ended input leaves its place empty until the next turn."""
    waiting, slots, turn, out = [list(i) for i in inputs], [None] * cycle, 0, []
    while waiting or any(slot is not None for slot in slots):
        if slots[turn] is None and waiting:
            slots[turn] = waiting.pop(0)
        if slots[turn] is not None:
            taken, slots[turn] = slots[turn][:block], slots[turn][block:]
            out += taken
            if len(taken) < block:
                slots[turn] = None
        turn = (turn + 1) % cycle
    return out


LENGTHS = [[], [3], [0, 0], [4, 4, 4], [1, 0, 7, 2, 0, 3], [10, 1, 1, 1, 10], [1000, 3, 500, 129, 128, 127]]


@pytest.mark.parametrize(("cycle", "block", "lengths"), diagonals(3, [1, 2, 3, 7], [1, 2, 5], LENGTHS))
def test_equals_a_reference_in_plain_python(cycle, block, lengths):
    rows = [[1000 * i + j for j in range(length)] for i, length in enumerate(lengths)]
    expected = ints(*reference(rows, cycle, block))
    for inside in (
        lambda n: Dataset.range(1000 * n, 1000 * n + lengths[int(n)]),  # may be read ahead
        lambda n: Dataset.from_generator(lambda: rows[int(n)]),  # may not
    ):
        dataset = Dataset.range(len(lengths)).interleave(inside, cycle_length=cycle, block_length=block)
        assert_elements_equal(list(dataset), expected)
        assert [x for batch in dataset.batch(97) for x in batch] == expected
        if (cycle, lengths) == (2, LENGTHS[4]):
            check_operator(lambda dataset=dataset: dataset, expected)


def test_takes_no_more_than_it_needs():
    def transform(numbers):
        return numbers.interleave(lambda n: Dataset.from_tensors(n).repeat(4), cycle_length=2, block_length=2)

    # 0 0 1 1 0 0 1 1 | 2 2 3 3 ...: the second is opened for element 3, the third for element 9
    check_laziness(transform, lambda k: k // 8 * 2 + (0, 1, 1, 2, 2, 2, 2, 2)[k % 8], size=10)


def test_does_not_read_inner_generators_ahead():
    taken = []

    def generate(n):
        for i in range(9):
            taken.append((int(n), i))
            yield i

    dataset = Dataset.range(3).interleave(lambda n: Dataset.from_generator(generate, args=(n,)), cycle_length=2)
    for demand in (1, 5):
        taken.clear()
        list(dataset.take(5).batch(demand))
        assert taken == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]


class _Derived(TFRecordDataset):
    pass


def test_a_reader_of_the_library_is_not_user_code():
    files = Dataset.from_tensor_slices(["missing"])
    for reader in (TFRecordDataset, functools.partial(CsvDataset, record_defaults=[np.int64, b""])):
        plan = files.interleave(reader).plan
        assert not holds_user_code(plan)
        assert spec_is_static(plan)
        assert plan.element_spec == reader("missing").element_spec
    for other in (functools.partial(TFRecordDataset, wrong=1), _Derived, lambda path: TFRecordDataset(path, "")):
        assert holds_user_code(files.interleave(other).plan)
        assert not spec_is_static(files.interleave(other).plan)


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("keywords", [{}, {"num_parallel_calls": 2}])
@pytest.mark.parametrize(
    "values",
    [np.zeros((30, 0), np.float32), np.array([(i, i / 2) for i in range(30)], [("a", "<i2"), ("b", "<f8")])],
    ids=["empty rows", "structured"],
)
def test_whole_rounds_have_the_elements_of_single_requests(values, keywords, block):
    order = reference([range(15), range(15, 30)], 2, block)
    rows = Dataset.from_tensor_slices(values)
    dataset = Dataset.range(2).interleave(lambda n: rows.skip(15 * n).take(15), 2, block, **keywords)
    assert_elements_equal(list(dataset), list(Dataset.from_tensor_slices(values[order])))
    assert_elements_equal([row for batch in dataset.batch(30) for row in batch], list(values[order]))

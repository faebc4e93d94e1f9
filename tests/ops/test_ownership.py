"""Neither what a consumer writes into an element nor what user code does to its arrays reaches anything else."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor
from dataset.plan.structure import structure_of
from dataset.testing import assert_elements_equal
from support.op_cases import VIEWS

KEPT = np.zeros(2)
CHAINS = {
    "from_tensor_slices": lambda rows: rows,
    "from_list": lambda rows: Dataset.from_list([np.zeros(2)] * 3),
    "from_generator": lambda rows: Dataset.from_generator(lambda: [np.zeros(2)] * 3),
    "map": lambda rows: rows.map(lambda row: row + 0),
    "an array that the function keeps": lambda rows: rows.map(lambda row: KEPT),
    "cache": lambda rows: rows.map(lambda row: row + 0).cache(),
    "batches of a cache": lambda rows: rows.map(lambda row: row + 0).cache().batch(2),
    "shuffled cache": lambda rows: rows.map(lambda row: row + 0).cache().shuffle(3, seed=1),
    "filter": lambda rows: rows.filter(lambda row: True),
    "shard": lambda rows: rows.shard(2, 1),
    "shuffle": lambda rows: rows.shuffle(4, seed=1),
    "batch": lambda rows: rows.shuffle(4, seed=1).batch(3),
    "batches of rows": lambda rows: rows.batch(2),
    "padded_batch": lambda rows: rows.padded_batch(2),
    "ragged_batch": lambda rows: rows.map(lambda row: row).ragged_batch(2),
    "unbatch": lambda rows: rows.batch(4).unbatch(),
    "rebatch": lambda rows: rows.batch(4).rebatch(3),
    "buckets": lambda rows: rows.bucket_by_sequence_length(len, [3], [2, 2]),
    "buckets without padding": lambda rows: rows.bucket_by_sequence_length(len, [3], [2, 2], no_padding=True),
    "windows": lambda rows: rows.window(3, shift=1).flat_map(lambda window: window.batch(2)),
    "rows of a ragged tensor": lambda rows: Dataset.from_tensors(RaggedTensor(np.zeros(3), [0, 2, 3])).unbatch(),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_what_a_consumer_writes_reaches_nothing_else(chain):
    source = np.zeros((12, 2))
    for element in CHAINS[chain](Dataset.from_tensor_slices(source)).repeat(2):
        for part in structure_of(element).flatten(element):
            array = part.flat_values if isinstance(part, RaggedTensor) else part
            assert not array.any()
            if array.flags.writeable:
                array[...] = 1
    assert not source.any()


MAKERS = {
    "function": lambda make: Dataset.range(3).map(make),
    "generator": lambda make: Dataset.from_generator(lambda: map(make, range(3))),
}


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("maker", MAKERS)
def test_user_code_may_fill_its_buffer_again(maker, kind):
    buffer = np.zeros(3)

    def fill(x):
        buffer[:] = x
        return VIEWS[kind](buffer)

    reusing, fresh = MAKERS[maker](fill), MAKERS[maker](lambda x: VIEWS[kind](np.full(3, float(x))))
    assert_elements_equal(list(reusing), list(fresh))
    assert_elements_equal(list(reusing.batch(3)), list(fresh.batch(3)))


@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("around", [lambda x: x, lambda x: (b"text", x), lambda x: (None, b"text", x)])
def test_a_function_may_return_numbers_first_and_later_a_buffer_that_it_fills_again(around, calls):
    buffer = np.zeros(3)

    def fill(x):
        buffer[:] = x
        return around(x if x < 40 else buffer)

    elements = list(Dataset.range(90).map(fill, num_parallel_calls=calls).prefetch(100))
    assert_elements_equal(elements[40:], [around(np.full(3, float(x))) for x in range(40, 90)])


def test_a_function_may_fill_the_record_again_of_which_it_returns_a_scalar():
    buffer = np.zeros(1, [("a", "i8")])

    def fill(x):
        buffer["a"] = x
        return buffer[0]

    assert [record["a"] for record in Dataset.range(90).map(fill)] == list(range(90))

"""inject_prefetch: batches are made while the consumer works, where nobody can notice it but by the clock."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dataset import Dataset, Options, TFRecordDataset, io
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_operator
from support.pipelines import fired, switched_on

ROWS = np.arange(24).reshape(12, 2)


def slices():
    return Dataset.from_tensor_slices(ROWS)


asked = partial(switched_on, "inject_prefetch")


def user(x):
    return abs(x)


FIRES = {
    "gather": lambda: slices().shuffle(5, seed=1).batch(2),
    "padded": lambda: slices().shuffle(5, seed=1).padded_batch(2),
    "rebatch": lambda: slices().shuffle(5, seed=1).batch(2).rebatch(3),
    "ops above the batch": lambda: slices().shuffle(5, seed=1).batch(2).take(3).repeat(2),
    "arithmetic": lambda: slices().map(lambda x: x + 1).batch(2),
}
NEVER = {
    "a prefetch": lambda: slices().batch(2).prefetch(1),
    "no batches": slices,
    "slices": lambda: slices().batch(2),
    "slices of slices": lambda: slices().skip(3).batch(2).take(3),
    "several inputs": lambda: Dataset.zip(slices().batch(2), slices().shuffle(5).batch(2)),
    "numbers": lambda: Dataset.range(12).shuffle(3, seed=1).batch(2),
    "counted": lambda: Dataset.counter().batch(2).take(5),
    "a function": lambda: slices().map(user).batch(2),
    "a function above": lambda: slices().batch(2).map(user),
    "a generator": lambda: Dataset.from_generator(lambda: iter(range(5))).batch(2),
}


@pytest.mark.parametrize("case", FIRES)
def test_fires_and_changes_nothing(case):
    off = Options()
    off.optimization.inject_prefetch = False
    assert "inject_prefetch" in fired(FIRES[case]())
    assert "inject_prefetch" not in fired(FIRES[case](), off)
    assert FIRES[case]().explain().count("prefetch(AUTOTUNE) once it pays") == 1
    assert_elements_equal(list(FIRES[case]()), list(FIRES[case]().with_options(off)))


def test_keeps_the_contract_of_operators_over_files(tmp_path):
    with io.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_all([b"%d" % number for number in range(12)])
    records = TFRecordDataset(tmp_path / "a.tfrecord").batch(5)
    assert "inject_prefetch" in fired(records)
    numbers = np.array([b"%d" % number for number in range(12)], object)
    check_operator(lambda: records, [numbers[:5], numbers[5:10], numbers[10:]])


@pytest.mark.parametrize("case", NEVER)
def test_does_not_fire(case):
    assert "inject_prefetch" not in fired(NEVER[case]())


@pytest.mark.parametrize("case", ["a function", "a function above", "a generator"])
def test_functions_are_called_ahead_only_where_the_user_says_so(case):
    assert "call your functions" in str(optimize(NEVER[case]().plan).missed[-1])
    assert "inject_prefetch" in fired(NEVER[case](), asked())


def test_fires_where_a_function_reads_what_belongs_to_a_number():
    def read(n):
        return Path(__file__).stat().st_size + n

    numbers = Dataset.range(20).map(read).batch(2)
    assert "prefetch(AUTOTUNE) once" in numbers.with_options(asked()).explain()
    assert "prefetch(AUTOTUNE) once" not in Dataset.range(20).batch(2).with_options(asked()).explain()

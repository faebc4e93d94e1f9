"""repeat_pushdown: short sources are repeated without being opened anew."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor
from dataset.ops.repeat_in_memory import PASS_MAX
from dataset.plan.structure import structure_of
from dataset.testing import assert_elements_equal, check_rule
from support.pipelines import as_written, unoptimized

SOURCES = {
    "range": (lambda: Dataset.range(5), "range(5)"),
    "scalars": (lambda: Dataset.from_tensor_slices(np.arange(5)), "from_tensor_slices"),
    "matrix": (lambda: Dataset.from_tensor_slices(np.arange(10).reshape(5, 2)), "from_tensor_slices"),
    "text": (lambda: Dataset.from_tensor_slices({"a": ["x", "y\0"], "b": ([1, 2], None)}), "from_tensor_slices"),
    "ragged": (lambda: Dataset.from_tensor_slices(RaggedTensor.from_rows([[1], [], [2]])), "from_tensor_slices"),
    "objects": (lambda: Dataset.from_tensor_slices(np.array([{1}, {2}, {3}], object)), "from_tensor_slices"),
    "one": (lambda: Dataset.from_tensors({"a": np.arange(3), "b": "text"}), "from_tensors"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_fires(name):
    make, source = SOURCES[name]
    check_rule("repeat_pushdown", lambda: make().repeat(3), f"repeat(3) <- {source}")
    check_rule("repeat_pushdown", lambda: make().repeat(3).repeat(2), f"repeat(2) <- repeat(3) <- {source}")
    if name not in {"ragged", "objects"}:  # which do not stack, or cannot be compared
        check_rule("repeat_pushdown", lambda: make().repeat(3).batch(4), f"batch(4) <- repeat(3) <- {source}")


NEVER = [lambda: Dataset.range(5).repeat(0), lambda: Dataset.range(0).repeat(), lambda: Dataset.range(0).repeat(3)]
NEVER += [lambda: Dataset.range(PASS_MAX + 1).repeat(2), lambda: Dataset.range(5).map(abs).repeat(2)]
NEVER += [lambda: Dataset.range(5).shuffle(3, 1).repeat(2), lambda: Dataset.range(5).batch(2).repeat(2)]
NEVER += [lambda: Dataset.range(5).cache().repeat(2), lambda: Dataset.range(5, output_type=np.float16).repeat(2)]


@pytest.mark.parametrize("make", NEVER)
def test_does_not_fire(make):
    check_rule("repeat_pushdown", make, as_written(make()))


@pytest.mark.parametrize("name", set(SOURCES) - {"ragged", "objects"})
def test_who_may_write_stays_as_it_was(name):
    def flags(elements):
        parts = (part for element in elements for part in structure_of(element).flatten(element))
        return [part.flags.writeable for part in parts if isinstance(part, np.ndarray)]

    repeated = SOURCES[name][0]().repeat(4)
    for dataset in (repeated, repeated.batch(2), repeated.batch(7)):
        assert flags(dataset) == flags(unoptimized(dataset))


def test_writing_into_a_batch_changes_no_later_one():
    for length, size in ((3, 6), (6, 6), (6, 4)):
        dataset = Dataset.range(length).repeat(9).batch(size)
        expected = [batch.copy() for batch in dataset]
        for batch, right in zip(dataset, expected, strict=True):
            assert_elements_equal([batch], [right])
            batch[:] = -1


def test_elements_of_an_array_that_is_written_to_meanwhile_are_seen():
    array = np.arange(4)
    iterator = iter(Dataset.from_tensor_slices(array).repeat(2))
    assert next(iterator) == 0
    array[:] = 7
    assert [int(x) for x in iterator] == [7] * 7


def test_skips_into_a_late_pass():
    assert list(Dataset.range(5).repeat(10**12).skip(5 * 10**12 - 2)) == [3, 4]
    assert "in memory" in Dataset.range(5).repeat(10**12).skip(5).explain()

"""skip_by_seeking: what skip leaves out is passed over instead of being made."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor
from dataset.testing import assert_elements_equal, check_operator, check_rule, no_leaks, outcomes
from support.pipelines import as_written, fired, only, unoptimized

ALONE = only("skip_by_seeking")
MANY = 10**13  # so many that making those that are skipped would never end


def numbers():
    return Dataset.range(MANY)


def rows():
    return Dataset.from_tensor_slices(np.arange(40).reshape(20, 2))


CASES = [
    lambda: rows().batch(3),
    lambda: rows().batch(3, drop_remainder=True).batch(2),
    lambda: rows().batch(3, num_parallel_calls=2),
    lambda: Dataset.range(9).enumerate(5),
    lambda: Dataset.zip(rows(), Dataset.range(9)),
    lambda: Dataset.range(4).concatenate(Dataset.range(5)),
    lambda: Dataset.range(9).repeat(3),
    lambda: Dataset.from_tensors({"a": [1, 2]}).repeat(9),
    lambda: Dataset.range(20).prefetch(2),
    lambda: rows().enumerate().select(1),
    lambda: Dataset.range(20).shard(2, 1),
    lambda: Dataset.range(20).take(9),
]


@pytest.mark.parametrize("make", CASES)
def test_fires_and_changes_nothing(make):
    below = as_written(make())
    for count in (1, 3, 4, 99):
        check_rule(
            "skip_by_seeking", lambda count=count: make().skip(count).skip(1), f"skip(1) <- skip({count}) <- {below}"
        )
        assert fired(make().skip(count), ALONE)
    assert "by seeking" in make().skip(1).with_options(ALONE).explain()
    check_operator(lambda: make().skip(2).with_options(ALONE))


NUMBERS = Dataset.range(9)
NEVER = [
    NUMBERS.batch(2).skip(0),
    NUMBERS.batch(2).skip(-1),
    NUMBERS.map(abs).skip(2),
    NUMBERS.map(abs).batch(2).skip(2),
]
NEVER += [Dataset.from_generator(lambda: [1, 2]).skip(1), NUMBERS.shuffle(4, seed=1).skip(2), Dataset.counter().skip(3)]
NEVER += [NUMBERS.cache().skip(2)]  # would leave what is skipped out of the cache
NEVER += [NUMBERS.batch(2, num_parallel_calls=2, deterministic=False).skip(2), NUMBERS.padded_batch(2).skip(2)]
NEVER += [NUMBERS.batch(2).batch(2).skip(1)]  # the last batch does not stack
NEVER += [Dataset.from_tensor_slices(RaggedTensor.from_rows([[1], [2, 3], [4]])).batch(2).skip(1)]
NEVER += [Dataset.from_tensor_slices(np.array([1, "a"], object)).batch(1).skip(1)]
NEVER += [NUMBERS.enumerate(2**63 - 4).skip(5), NUMBERS.repeat().enumerate(2**63 - 4).skip(5)]  # the numbers end
NEVER += [Dataset.range(9, output_type=np.float16).batch(2).skip(1), Dataset.zip(NUMBERS, NUMBERS.map(abs)).skip(2)]


@pytest.mark.parametrize("dataset", NEVER)
def test_does_not_fire(dataset):
    assert not fired(dataset, ALONE)


def test_a_failure_among_the_skipped_still_comes_out():
    dataset = Dataset.range(5).batch(2).batch(2).skip(3)  # of batches of 2 and 1 element
    assert_elements_equal(outcomes(iter(dataset)), outcomes(iter(unoptimized(dataset))))


@pytest.mark.parametrize(
    ("make", "first"),
    [
        (lambda: numbers().batch(10).skip(MANY // 10 - 1).map(lambda x: x[0]), MANY - 10),
        (lambda: Dataset.zip(numbers(), numbers()).skip(MANY - 1).map(lambda x, y: y), MANY - 1),
        (lambda: numbers().enumerate().skip(MANY - 1).map(lambda i, x: i), MANY - 1),
        (lambda: numbers().repeat().skip(3 * MANY + 7), 7),
        (lambda: Dataset.range(5).repeat().skip(MANY + 2), 2),
        (lambda: Dataset.range(5).repeat().enumerate().skip(2**70).map(lambda i, x: x), None),
        (lambda: Dataset.range(5).concatenate(numbers()).prefetch(3).skip(MANY), MANY - 5),
    ],
)
def test_takes_no_time_for_what_is_left_out(make, first):
    with no_leaks(), iter(make()) as iterator:
        assert next(iterator, None) == first

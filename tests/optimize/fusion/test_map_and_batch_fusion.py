"""map_and_batch_fusion: what a map makes stands in the batch's arrays from the start."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes
from support.pipelines import fired, unoptimized

BIG = 40  # times 40 float64: more than the 8 KB from which it pays


def picture(x):
    return np.full((BIG, BIG), float(bytes(str(x), "ascii"))), int(x)  # bytes() keeps it from running on columns


def uneven(*bad):
    def function(x):
        return np.zeros((BIG, BIG + (int(x) in bad)))

    return function


def fail_at(*bad):
    def function(x):
        if int(x) in bad:
            raise ValueError(f"element {int(x)}")
        return picture(x)

    return function


def numbers(function, calls=None, size=4, **kwargs):
    return Dataset.range(23).map(function, num_parallel_calls=calls, **kwargs).batch(size)


@pytest.mark.parametrize("calls", [None, 3])
def test_fires_and_changes_nothing(calls):
    check_rule("map_and_batch_fusion", lambda: numbers(picture, calls), "batch(4) <- map(picture) <- range(23)")
    assert fired(numbers(picture, calls)) == ["map_and_batch_fusion"]
    assert "into arrays" in numbers(picture, calls).explain()


def test_fires_for_a_generator():
    def build():
        return Dataset.from_generator(lambda: map(picture, range(23))).batch(4)

    check_rule("map_and_batch_fusion", build, "batch(4) <- from_generator(<lambda>)")
    assert "into arrays" in build().explain()


def test_does_not_fire_elsewhere():
    data = Dataset.range(23).map(picture)
    for other in (data, data.batch(1), data.take(9).batch(4), data.padded_batch(4), Dataset.range(23).batch(4)):
        assert "map_and_batch_fusion" not in fired(other)


FUNCTIONS = {
    "uneven": uneven(5),
    "uneven at the start of a batch": uneven(4),
    "dict": lambda x: {"image": np.full((BIG, BIG), x, np.uint8), "name": b"%d" % int(x)},
    "lists": lambda x: [b"a", b"%d" % int(x)] if x % 2 else [b"b", b"c"],
    "empty": lambda x: np.zeros((0, BIG)),
    "text": lambda x: np.array(["text"] * BIG * BIG),
    "another order in memory": lambda x: np.asfortranarray(np.arange(BIG * BIG).reshape(BIG, BIG) + int(x)),
    "dates": lambda x: np.full(BIG * BIG, np.datetime64(int(x), "D")),
    "another dtype": lambda x: np.full((BIG, BIG), x, np.float32 if x < 9 else np.float64),
}


@pytest.mark.parametrize("calls", [None, 1, 3])
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_outcomes_are_those_of_a_map_and_a_batch(calls, function):
    expected = outcomes(iter(unoptimized(numbers(function))))
    assert_elements_equal(outcomes(iter(numbers(function, calls))), expected)


@pytest.mark.parametrize("calls", [None, 3])
def test_keeps_the_contract_of_operators(calls):
    expected = outcomes(iter(unoptimized(numbers(fail_at(0, 6, 7, 22)))))
    check_operator(lambda: numbers(fail_at(0, 6, 7, 22), calls), expected, positions=6)


@pytest.mark.parametrize("calls", [None, 2])
def test_batches_are_writable_and_share_no_rows(calls):
    batches = list(numbers(picture, calls))
    for number, (images, _) in enumerate(batches):
        images[:] = -number
    for number, (images, _) in enumerate(batches):
        assert (images == -number).all()

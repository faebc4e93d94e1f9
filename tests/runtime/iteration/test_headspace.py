"""Tests of ``iterator.headspace()``, with a clock that only the pipeline and the loop advance."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.runtime.iteration.headspace import Headspace
from support.op_cases import fail_at
from support.overlap import Clock


class Pipeline:
    """An iterator that takes ``wait`` seconds for an element, ``first`` more for the first, and counts those taken."""

    def __init__(self, clock, wait, count=10**9, first=0.0):
        self.clock, self.wait, self.count, self.first, self.taken = clock, wait, count, first, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.taken == self.count:
            raise StopIteration
        self.clock.now += self.wait + (0.0 if self.taken else self.first)
        self.taken += 1
        return np.full(3, self.taken)


def measured(*, wait, step, free_step=None, seconds=10.0, count=10**9, first=0.0):
    clock = Clock()
    pipeline = Pipeline(clock, wait, count, first)
    headspace = Headspace(pipeline, seconds, clock)
    seen = []
    for element in headspace:
        replayed = len(seen) >= pipeline.taken
        clock.now += free_step if replayed and free_step is not None else step
        seen.append(int(element[0]))
    return headspace, pipeline, seen, clock


def test_waits_are_the_lost_time():
    headspace, _, _, clock = measured(wait=0.03, step=0.01)
    assert headspace.steps_per_second == pytest.approx(25)
    assert headspace.free_steps_per_second == pytest.approx(100)
    assert headspace.waiting == pytest.approx(0.75)
    assert headspace.lost == pytest.approx(0.75)
    assert clock.now == pytest.approx(10, abs=0.1)
    assert str(headspace) == (
        "25 steps/s with this pipeline, 100 steps/s with elements that cost nothing: 75% of the time is lost, "
        "75% in waits for elements, 0% in slower steps"
    )


def test_steps_that_the_pipeline_slows_down_are_lost_time_without_waits():
    headspace, *_ = measured(wait=0.0, step=0.02, free_step=0.015)
    assert headspace.waiting == 0
    assert headspace.lost == pytest.approx(0.25)
    assert str(headspace).endswith("0% in waits for elements, 25% in slower steps")


def test_a_long_first_wait_is_mentioned():
    headspace, *_ = measured(wait=0.0, step=0.01, first=90.0)
    assert str(headspace).endswith("; the wait for the first element, 90 s, is not counted")


def test_the_first_elements_are_replayed_and_no_others_are_taken():
    _, pipeline, seen, _ = measured(wait=0.25, step=0.25, seconds=20)
    assert seen[: pipeline.taken] == list(range(1, pipeline.taken + 1))
    replayed = seen[pipeline.taken :]
    assert replayed[:8] == list(range(1, 9))
    assert replayed == [replayed[index % 8] for index in range(len(replayed))]


def test_no_elements_at_all():
    headspace, _, seen, _ = measured(wait=1.0, step=1.0, count=0)
    assert seen == []
    assert headspace.lost is None
    assert str(headspace) == "headspace: too few steps were measured"


def test_a_loop_that_is_left_early_has_no_result_and_takes_no_more():
    pipeline = Pipeline(Clock(), 0.01)
    with Headspace(pipeline, 10, pipeline.clock) as headspace:
        for _ in headspace:
            break
    assert headspace.lost is None
    assert list(headspace) == []
    assert pipeline.taken == 1


def test_replayed_elements_are_as_the_pipeline_returned_them_even_if_the_loop_changes_them():
    clock = Clock()
    dataset = Dataset.range(40).batch(10).map(lambda x: {"x": x.astype(float), "ids": (x, x.sum())})
    headspace = Headspace(iter(dataset), 10, clock)
    seen = []
    for element in headspace:
        seen.append((element["x"].copy(), element["ids"][0].copy(), element["ids"][1]))
        element["x"] *= 0
        element["ids"][0][:] = -1
        clock.now += 0.5
    assert len(seen) > 12
    for position, (x, ids, total) in enumerate(seen):
        expected = np.arange(10) + 10 * (position % 4)
        np.testing.assert_array_equal(x, expected)
        np.testing.assert_array_equal(ids, expected)
        assert total == expected.sum()


@pytest.mark.parametrize("buffer", [0, 2])
def test_the_state_is_that_after_the_elements_of_the_first_half(buffer):
    dataset = Dataset.range(1000).shuffle(50, seed=1).batch(4).prefetch(buffer)
    clock, iterator = Clock(), iter(dataset)
    twin = iter(dataset)
    twin.load_state_dict(iterator.state_dict())
    seen = []
    for element in Headspace(iterator, 10, clock):
        seen.append(element)
        clock.now += 1
    real = next(index for index, element in enumerate(seen[1:], 1) if np.array_equal(element, seen[0]))
    for element in seen[:real]:
        np.testing.assert_array_equal(next(twin), element)
    resumed = iter(dataset)
    resumed.load_state_dict(iterator.state_dict())
    for expected in twin:
        np.testing.assert_array_equal(next(iterator), expected)
        np.testing.assert_array_equal(next(resumed), expected)


def test_an_element_that_fails_raises_in_its_place_and_the_measurement_continues():
    headspace = Headspace(iter(Dataset.range(1000).map(fail_at(3))), 10, Clock())
    seen = [next(headspace) for _ in range(3)]
    with pytest.raises(ValueError, match="bad 3"):
        next(headspace)
    seen.append(next(headspace))
    assert seen == [0, 1, 2, 4]


@pytest.mark.parametrize(
    ("seconds", "error"),
    [(0, ValueError), (-1, ValueError), (float("nan"), ValueError), ("1", TypeError), (True, TypeError)],
)
def test_wrong_times(seconds, error):
    with pytest.raises(error, match=r"headspace\(\): the time must be a"):
        iter(Dataset.range(3)).headspace(seconds)


def test_the_iterator_of_torch_gives_tensors():
    pytest.importorskip("torch")
    clock = Clock()
    headspace = Headspace(iter(Dataset.range(6).batch(2).to_torch()), 5, clock)
    seen = []
    for batch in headspace:
        seen.append(batch.tolist())
        batch.zero_()
        clock.now += 1
    assert seen[:6] == [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3], [4, 5]]
    assert type(iter(Dataset.range(6).to_torch()).headspace()) is Headspace

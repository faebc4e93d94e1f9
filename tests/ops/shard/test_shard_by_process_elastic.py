"""shard_by_process: resuming with as many processes, more or fewer, all of them run here side by side."""

import copy
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dataset import Dataset, Options, StateError
from dataset.testing import assert_elements_equal
from support.combinations import diagonals
from support.op_cases import ints
from support.resuming import from_json, resealed, to_json
from support.states import state_after

REMAINDERS = ["drop", "pad", "repeat", "keep"]


def rows(n):
    """A dataset of the numbers from 1 on; 0 is the padding."""
    return Dataset.from_tensor_slices(np.arange(1, n + 1))


def same(x):
    return copy.copy(x)


BELOW = {
    "arrays": rows,
    "shuffled": lambda n: rows(n).shuffle(5, seed=1),
    "shuffled whole": lambda n: rows(n).shuffle(None, seed=1),
    "mapped": lambda n: rows(n).shuffle(4, seed=1).map(int).map(same),
    "batched": lambda n: rows(n).shuffle(7, seed=2).map(int).batch(3),
    "batches of batches": lambda n: Dataset.range(1, n + 1).batch(2, drop_remainder=True).batch(2, drop_remainder=True),
    "zipped": lambda n: Dataset.zip(rows(n).map(same), rows(n)).map(lambda x, y: same(y)).batch(2),
    "numbered": lambda n: rows(n).shuffle(3, seed=1).enumerate().map(lambda i, x: same(x)),
    "skipped": lambda n: Dataset.range(n + 3).skip(1).take(n).shuffle(4, seed=1),
}

ABOVE = {
    "nothing": lambda dataset: dataset,
    "map": lambda dataset: dataset.map(same),
    "batch": lambda dataset: dataset.padded_batch(2),
    "prefetch": lambda dataset: dataset.map(same, num_parallel_calls=2).prefetch(3),
    "arithmetic": lambda dataset: dataset.map(lambda x: x + 0),
    "options": lambda dataset: dataset.map(same).with_options(Options()),
}


def flat(element):
    return [] if element is None else np.ravel(np.asarray(element)).tolist()


def numbers(elements):
    """All numbers in some elements, one by one, but 0."""
    return [int(x) for element in elements for x in flat(element) if x]


class World:
    """All processes, each with its iterator, in step."""

    def __init__(self, make, world_size, state=None):
        self.iterators = [iter(make(rank, world_size)) for rank in range(world_size)]
        for iterator in self.iterators if state is not None else ():
            iterator.load_state_dict(state)

    def steps(self, count):
        """The elements of this many steps; fewer if one process has reached the end."""
        returned = []
        for _ in range(count):
            for rank, iterator in enumerate(self.iterators):
                element = next(iterator, None)
                if element is None and not rank:
                    return returned, False
                returned.append(element)
        return returned, True

    def state(self, rank):
        return from_json(to_json(self.iterators[rank].state_dict()))

    def rest(self):
        """The remaining elements of each process."""
        return [list(iterator) for iterator in self.iterators]

    def rest_together(self):
        return [element for part in self.rest() for element in part]


def check_counts(found, whole, passes, remainder, slack):
    """Check how often each element was returned; ``slack`` per pass may be left out or returned again."""
    counts, expected = Counter(found), Counter(whole)
    assert set(counts) <= set(expected)
    missing = sum(max(0, passes * count - counts[x]) for x, count in expected.items())
    extra = sum(max(0, counts[x] - passes * count) for x, count in expected.items())
    assert missing <= (passes * slack if remainder == "drop" else 0), (missing, slack)
    assert extra <= (passes * slack if remainder == "repeat" else 0), (extra, slack)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    below=st.sampled_from(sorted(BELOW)),
    above=st.sampled_from(sorted(ABOVE)),
    remainder=st.sampled_from(REMAINDERS),
    optimized=st.booleans(),
    n=st.integers(1, 40),
    worlds=st.lists(st.integers(1, 6), min_size=2, max_size=4),
    data=st.data(),
)
def test_the_rest_of_a_pass_is_shared_by_the_processes_that_resume(below, above, remainder, optimized, n, worlds, data):
    assume(below != "zipped" or remainder in {"drop", "keep"})  # else the split is above its function, which may fail
    options = Options()
    options.optimization.enabled = optimized

    def make(rank, world_size):
        share = BELOW[below](n).shard_by_process(rank, world_size, remainder=remainder)
        return ABOVE[above](share).with_options(options)

    whole = numbers(BELOW[below](n))
    turn = max([1, *(len(flat(element)) for element in BELOW[below](n).take(1))])
    slack = max(worlds) * turn * (2 if above == "batch" else 1)
    found, state = [], None
    for world_size in worlds[:-1]:
        world = World(make, world_size, state)
        returned, continues = world.steps(data.draw(st.integers(0, 4)))
        found += numbers(returned)
        if not continues:
            check_counts(found + numbers(world.rest_together()), whole, 1, remainder, slack)
            return
        # With "keep" others may have reached the end before process 0, which has one more element.
        state = world.state(0 if remainder == "keep" else data.draw(st.integers(0, world_size - 1)))
    last = World(make, worlds[-1], state).rest()
    check_counts(found + numbers(itertools.chain(*last)), whole, 1, remainder, slack)
    if remainder in {"pad", "repeat"} or (remainder == "drop" and above != "batch"):
        assert len({len(part) for part in last}) == 1


IN_PASSES = {
    "batch, repeat": lambda dataset: dataset.batch(2).repeat(3),
    "repeat, batch": lambda dataset: dataset.repeat(3).batch(2),
    "later passes read ahead": lambda dataset: dataset.map(same, num_parallel_calls=2).repeat(3),
}


@pytest.mark.parametrize(("remainder", "size"), [("drop", 23), ("repeat", 23), ("repeat", 24)])
@pytest.mark.parametrize("passes", IN_PASSES)
def test_later_passes_run_as_without_an_interruption(remainder, size, passes):
    def make(rank, world_size):
        dataset = IN_PASSES[passes](rows(size).shuffle(6, seed=3).map(int))
        share = dataset.shard_by_process(rank, world_size, remainder=remainder)
        return share.map(same).prefetch(9) if "ahead" in passes else share

    for old, new, steps in diagonals(4, [1, 2, 4], [1, 2, 3, 4], [0, 1, 2, 3, 5, 9]):
        before = World(make, old)
        found, continues = before.steps(steps)
        if not continues:
            continue
        rest = World(make, new, before.state(steps % old)).rest()
        check_counts(numbers(found) + numbers(itertools.chain(*rest)), range(1, size + 1), 3, remainder, 8)
        assert len({len(part) for part in rest}) == 1
        if passes == "batch, repeat":
            plain = World(make, new).rest()
            per_pass = len(plain[0]) // 3
            for mine, uninterrupted in zip(rest, plain, strict=True):
                last = min(per_pass, len(mine))
                assert_elements_equal(mine[len(mine) - last :], uninterrupted[len(uninterrupted) - last :])


def test_a_pass_resumes_exactly_after_what_was_returned():
    def make(rank, world_size):
        return rows(20).shard_by_process(rank, world_size)

    before = World(make, 4)
    assert numbers(before.steps(2)[0]) == list(range(1, 9))
    expected = [ints(9, 12, 15, 18), ints(10, 13, 16, 19), ints(11, 14, 17, 20)]
    assert World(make, 3, before.state(1)).rest() == expected
    before.rest()
    assert World(make, 3, before.state(1)).rest() == [[], [], []]


@pytest.mark.parametrize("buffer_size", [0, 4])
def test_a_process_resumes_from_the_state_of_another_and_from_a_state_after_that_exactly(buffer_size):
    def make(rank, world_size):
        return rows(50).shuffle(9, seed=1).batch(2).repeat(2).shard_by_process(rank, world_size)

    def numbered(rank, world_size):
        return make(rank, world_size).enumerate().take(10).prefetch(buffer_size)

    world = World(numbered, 3)
    world.steps(4)
    states = [world.state(rank) for rank in range(3)]
    expected = world.rest()
    for state in states:
        for mine, uninterrupted in zip(World(numbered, 3, state).rest(), expected, strict=True):
            assert_elements_equal(mine, uninterrupted)
    before = World(make, 2)
    before.steps(3)
    after = World(make, 3, before.state(0))
    after.steps(1)
    states = [after.state(rank) for rank in range(3)]
    for state, rank, rest in zip(states, range(3), after.rest(), strict=True):
        assert_elements_equal(World(make, 3, state).rest()[rank], rest)


def test_places_and_random_numbers_among_all_elements_stay():
    def make(rank, world_size):
        dataset = rows(40).enumerate(100).random_map(lambda rng, i, x: (i, x, rng.integers(1000)), seed=5)
        return dataset.shard_by_process(rank, world_size, remainder="keep")

    expected = sorted(tuple(map(int, row)) for row in make(0, 1))
    assert [row[:2] for row in expected] == [(99 + x, x) for x in range(1, 41)]
    for old, new, newest in itertools.product([1, 3], [2, 8], [1, 2]):
        first = World(make, old)
        found, _ = first.steps(4)
        second = World(make, new, first.state(old - 1))
        found += second.steps(3)[0]
        found += World(make, newest, second.state(new - 1)).rest_together()
        assert sorted(tuple(map(int, row)) for row in found) == expected


# States that are refused


def assert_refused(make, words, old=(0, 2), new=(1, 3)):
    state = state_after(make(*old), 1)
    with pytest.raises(StateError, match=words):
        iter(make(*new)).load_state_dict(state)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda share: share.shuffle(4), r"because shuffle\(4\) from .* is above the split"),
        (lambda share: share.take(4), r"process 0 of 2, but this is process 1 of 3: .* take\(4\) from .* is above"),
        (lambda share: share.map(lambda x: x).cache(), "cache.* is above the split"),
        (lambda share: share.shard_by_process(0, 2), "shares are split again"),
    ],
)
def test_names_an_op_above_the_split_that_has_a_place_of_its_own(change, words):
    assert_refused(lambda rank, size: change(rows(20).shard_by_process(rank, size)), words)


def test_elements_of_unknown_number_and_files_stay_with_their_process(tmp_path):
    for name in "abcdef":
        (tmp_path / name).write_text("1\n2\n")

    def unknown(rank, world_size):
        return rows(20).filter(lambda x: True).shard_by_process(rank, world_size)

    def of_files(rank, world_size, remainder="keep"):
        names = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
        return names.flat_map(lambda name: Dataset.range(4)).shard_by_process(rank, world_size, remainder=remainder)

    for old in ((0, 2), (0, 3)):
        assert_refused(unknown, "the number of elements that shard_by_process divides is unknown", old)
    assert_refused(of_files, "process 0 of 2, this is process 1 of 3")
    assert_refused(of_files, "files are distributed", (0, 3))
    assert_refused(lambda rank, size: of_files(rank, size, "drop"), "files are distributed")


def test_another_pipeline_is_refused_whatever_the_processes():
    state = iter(rows(20).batch(2).shard_by_process(0, 2)).state_dict()
    for dataset, words in (
        (rows(20).batch(3).shard_by_process(0, 2), "another pipeline"),
        (rows(21).batch(2).shard_by_process(0, 3), r"another pipeline.*this is process 0 of 3"),
        (rows(20).batch(2), r"another pipeline.*this is an unshared pipeline"),
    ):
        with pytest.raises(StateError, match=words):
            iter(dataset).load_state_dict(state)


def test_a_rest_that_cannot_be_divided_evenly_is_refused_if_passes_rely_on_that():
    assert_refused(
        lambda rank, size: rows(24).repeat(2).batch(4).shard_by_process(rank, size, remainder="pad"),
        "12 of 24 elements have been consumed, and the rest cannot be divided evenly",
        old=(0, 3),
        new=(0, 2),
    )


@pytest.mark.parametrize(
    "damage", [{"turn": 0}, {"at": -5}, {"base": "x"}, {"elements": 19}, {"inputs": [None]}, {"read": None}]
)
def test_a_damaged_state_is_refused(damage):
    state = iter(rows(20).shard_by_process(0, 2)).state_dict()
    iterator = iter(rows(20).shard_by_process(1, 3))
    with pytest.raises(StateError):
        operator = state["operator"]
        changed = damage if damage.keys() <= {"at", "inputs"} else {"own": {**operator["own"], **damage}}
        iterator.load_state_dict(resealed(state, operator={**operator, **changed}))
    assert next(iterator) == 2

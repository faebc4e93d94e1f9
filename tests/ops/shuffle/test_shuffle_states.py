"""States of shuffles whose input has random access: how many have been given, and nothing of the buffer."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, Options, StateError, TFRecordDataset, set_random_seed
from dataset.io import TFRecordWriter
from dataset.optimize.driver import optimize
from dataset.runtime.context import open_plan
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.combinations import diagonals
from support.pipelines import unoptimized


def size_of(state):
    return len(json.dumps(state))  # and it is plain enough for that


def resumed(dataset, state):
    iterator = iter(dataset)
    iterator.load_state_dict(json.loads(json.dumps(state)))
    return iterator


def advanced(dataset, count):
    iterator = iter(dataset)
    for _ in range(count):
        next(iterator)
    return iterator


def square(x):
    return x * x


def as_text(x):
    return str(x)


ROWS = np.arange(60).reshape(30, 2)

SOURCES = {
    "range": lambda: Dataset.range(30),
    "strides": lambda: Dataset.range(100, 10, -3),
    "slices": lambda: Dataset.from_tensor_slices(ROWS),
    "dict": lambda: Dataset.from_tensor_slices({"a": ROWS, "b": ROWS[:, 0]}),
    "part": lambda: Dataset.from_tensor_slices(ROWS).skip(3).take(25).shard(2, 1),
    "repeated": lambda: Dataset.range(9).repeat(3),
    "endless": lambda: Dataset.from_tensor_slices(ROWS).repeat(),
    "concatenated": lambda: Dataset.range(9).concatenate(Dataset.range(13)),
    "zipped": lambda: Dataset.zip(Dataset.range(30), Dataset.from_tensor_slices(ROWS)),
    "numbered": lambda: Dataset.from_tensor_slices(ROWS).enumerate(5),
    "batches": lambda: Dataset.from_tensor_slices(ROWS).batch(4),
    "share": lambda: Dataset.range(31).shard_by_process(1, 3, remainder="drop"),
    "arithmetic": lambda: Dataset.range(30).map(square),
    "function": lambda: Dataset.range(30).map(as_text).map(int),
    "in parallel": lambda: Dataset.range(30).map(as_text, num_parallel_calls=2).map(int),
    "function over batches": lambda: Dataset.from_tensor_slices(ROWS).batch(4).map(np.sum),
    "batches of results": lambda: Dataset.range(30).map(as_text).batch(4),
    "results again and again": lambda: Dataset.range(7).map(as_text).repeat(4),
    "a part of results": lambda: Dataset.range(60).map(as_text).skip(3).shard(2, 1).take(20),
    "selected": lambda: Dataset.from_tensor_slices({"a": ROWS, "b": ROWS[:, 0]}).map(dict).select("b"),
    "shuffled": lambda: Dataset.range(30).shuffle(5, seed=1),
    "slices, shuffled": lambda: Dataset.from_tensor_slices(ROWS).shuffle(30, seed=1),
    "shuffled in epochs": lambda: Dataset.range(8).shuffle(4, seed=1).repeat(4),
    "shuffled and prefetched": lambda: Dataset.range(8).shuffle(9, seed=1).repeat(2).prefetch(2),
    "shuffled thrice": lambda: Dataset.range(30).shuffle(5, seed=1).shuffle(6, seed=2),
    "a shuffled part": lambda: Dataset.range(70).shuffle(9, seed=1).skip(5).take(60).shard(2, 1),
    "prefetched": lambda: Dataset.range(30).map(as_text).prefetch(2),
}


@pytest.mark.parametrize(
    ("source", "size", "optimized"),
    [*diagonals(2, SOURCES, [2, 7, 30, 100], [True, False]), ("slices", 1, False)],
)
def test_goes_on_at_each_element(source, size, optimized):
    def make():
        dataset = SOURCES[source]().shuffle(size, seed=3).take(40)
        return dataset if optimized else unoptimized(dataset)

    everything = list(make())
    iterator = iter(make())
    for position in range(len(everything)):
        if position % 3 == 1:
            next(iterator)
            continue
        state = iterator.state_dict()
        assert size_of(state) < 1500
        again = resumed(make(), state)
        assert_elements_equal([next(again)], everything[position : position + 1])
        later = resumed(make(), again.state_dict())
        assert_elements_equal(list(later), everything[position + 1 :])
        next(iterator)


@pytest.mark.parametrize("source", ["slices", "function", "batches of results", "results again and again", "numbered"])
@pytest.mark.parametrize("size", [3, 30])
def test_keeps_the_whole_contract(source, size):
    check_operator(lambda: SOURCES[source]().shuffle(size, seed=3).take(40), positions=12)


@pytest.mark.parametrize(
    ("size", "chain"),
    diagonals(3, [1, 10, 1000, 10**5, 10**6, None], ["range", "slices", "unoptimized", "map", "epochs", "batched"]),
)
def test_a_state_is_small_whatever_the_buffer(size, chain):
    count = 2_500_000 if (size or 0) >= 10**6 else 250_000
    rows = np.zeros((count, 1), np.uint8)
    dataset = {
        "range": lambda: Dataset.range(count).shuffle(size),
        "slices": lambda: Dataset.from_tensor_slices(rows).shuffle(size),
        "unoptimized": lambda: unoptimized(Dataset.from_tensor_slices(rows).shuffle(size)),
        "map": lambda: Dataset.range(min(count, 5000)).map(as_text).shuffle(min(size or 5000, 4000)),
        "epochs": lambda: Dataset.from_tensor_slices(rows).shuffle(size).repeat(),
        "batched": lambda: Dataset.from_tensor_slices(rows).shuffle(size).batch(10),
    }[chain]()
    iterator = advanced(dataset, 3)
    assert size_of(iterator.state_dict()) < 1000


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_resumed_chain_of_shuffles_is_the_uninterrupted_one(data):
    count = data.draw(st.integers(0, 40), "count")
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 5, 20, 39, 40, 41, None]), min_size=1, max_size=3), "sizes")
    steps = data.draw(
        st.lists(st.sampled_from(["repeat", "batch", "map", "take", "skip", "prefetch"]), max_size=3), "steps"
    )
    first = data.draw(st.sampled_from(["range", "slices", "map"]), "source")
    reshuffle = data.draw(st.booleans(), "reshuffle")
    seed = data.draw(st.sampled_from([None, 1]), "seed")
    optimized = data.draw(st.booleans(), "optimized")

    def make():
        dataset = Dataset.from_tensor_slices(np.arange(count)) if first == "slices" else Dataset.range(count)
        if first == "map":
            dataset = dataset.map(as_text).map(int)
        for place, size in enumerate(sizes):
            dataset = dataset.shuffle(size, seed, reshuffle)
            for step in steps[place : place + 1]:
                dataset = {
                    "repeat": lambda d: d.repeat(2),
                    "batch": lambda d: d.batch(3).unbatch(),
                    "map": lambda d: d.map(square),
                    "take": lambda d: d.take(33),
                    "skip": lambda d: d.skip(2),
                    "prefetch": lambda d: d.prefetch(2),
                }[step](dataset)
        return dataset if optimized else unoptimized(dataset)

    set_random_seed(5)
    iterator = iter(make())
    length = data.draw(st.integers(0, 100), "position")
    for _ in range(length):
        if next(iterator, None) is None:
            break
    state = iterator.state_dict()
    rest = list(iterator)
    set_random_seed(6)  # the state brings the seeds
    again = iter(make())
    again.load_state_dict(state)
    between = data.draw(st.integers(0, len(rest)), "between")
    assert_elements_equal([next(again) for _ in range(between)], rest[:between])
    last = iter(make())
    last.load_state_dict(again.state_dict())
    assert_elements_equal(list(last), rest[between:])
    set_random_seed(None)


@pytest.mark.parametrize("optimized", [True, False])
def test_epochs_that_were_over_when_the_state_was_taken_are_counted(optimized):
    """The upper shuffle holds all that is left, so the lower one's place is nowhere but in its number of epochs."""

    def make():
        dataset = Dataset.range(4).map(as_text).map(int).shuffle(4, seed=3).repeat(2).shuffle(5, seed=7).repeat(3)
        return dataset if optimized else unoptimized(dataset)

    everything = list(make())
    for position in range(len(everything) + 1):
        assert_elements_equal(_resumed(make(), advanced(make(), position).state_dict()), everything[position:])


@pytest.mark.parametrize(("demand", "size"), diagonals(3, [1, 5, 64], [1, 6, 30, 31]))
def test_what_was_drawn_ahead_is_not_taken_for_given(demand, size):
    def make():
        return Dataset.range(30).shuffle(size, seed=1).batch(demand).unbatch()

    everything = list(make())
    for position in range(30):
        state = advanced(make(), position).state_dict()
        assert_elements_equal(
            list(resumed(make(), state)) if demand == 1 else _resumed(make(), state), everything[position:]
        )


def _resumed(dataset, state):
    iterator = iter(dataset)
    iterator.load_state_dict(state)
    return list(iterator)


@pytest.mark.parametrize("size", [1, 3, 10, 20])
def test_behind_an_element_that_failed_the_buffer_is_saved(size):
    def fail(x):
        if x in {4, 8}:
            raise ValueError(f"bad {x}")
        return x

    check_operator(lambda: Dataset.range(10).map(fail).shuffle(size, seed=3).repeat(2))


def test_functions_are_called_again_when_the_next_element_is_wanted_and_not_before():
    calls = []

    def noted(x):
        calls.append(int(x))
        return str(x)

    def make():
        return Dataset.range(100).map(noted).shuffle(5, seed=1)

    iterator = advanced(make(), 40)
    state = iterator.state_dict()
    calls.clear()
    again = iter(make())
    again.load_state_dict(state)
    assert again.state_dict() == state
    assert calls == []
    expected = next(iterator)
    calls.clear()
    assert next(again) == expected
    # What is in the buffer, but for the one that was given, and the next of the input.
    assert len(calls) == 5
    assert sorted(set(calls)) == sorted(calls)


def test_an_element_that_cannot_be_made_again_says_so():
    broken = []

    def read(x):
        if broken:
            raise OSError("no such file")
        return str(x)

    def make():
        return Dataset.range(100).map(read).shuffle(5, seed=1)

    state = advanced(make(), 40).state_dict()
    broken.append(True)
    again = iter(make())
    again.load_state_dict(state)
    with pytest.raises(StateError, match=r"cannot be recomputed.*no such file"):
        next(again)
    assert list(again) == []  # and does not say so for ever


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_parallel_map_is_made_again_only_in_its_order(deterministic):
    options = Options()
    options.deterministic = deterministic

    def make():
        return Dataset.range(40).map(as_text, num_parallel_calls=2).shuffle(6, seed=1).with_options(options)

    iterator = advanced(make(), 11)
    state = iterator.state_dict()
    assert ("stage" in json.dumps(state, default=str)) is not deterministic
    again = iter(make())
    again.load_state_dict(state)
    rest = list(again)
    if deterministic:
        assert_elements_equal(rest, list(iterator))
    else:
        assert len(set(rest)) == 29


@pytest.mark.parametrize(("size", "skipped"), diagonals(2, [2, 7, 30, 31], [0, 1, 23, 24, 29, 30, 31]))
def test_what_is_skipped_behind_it_is_not_made(size, skipped):
    dataset = Dataset.range(30).shuffle(size, seed=3, reshuffle_each_iteration=False)
    assert_elements_equal(list(dataset.skip(skipped)), list(dataset)[skipped:])
    far = Dataset.range(10**15).shuffle(size, seed=3).skip(10**15 - 5)
    assert len(list(far)) == 5


@pytest.mark.parametrize("given", [-1, 31, 2**70])
def test_refuses_places_that_there_are_not(given):
    dataset = Dataset.range(30).shuffle(4, seed=1)
    coordinator, operator = open_plan(dataset.plan)
    state = operator.state_dict()
    with pytest.raises(StateError, match="out of range for the input"):
        operator.load_state_dict({**state, "given": given})
    coordinator.shut_down(operator.close, wait=True)


@pytest.mark.parametrize(
    ("size", "source", "optimized"),
    diagonals(2, [2, 4, 30, 100], ["range", "slices", "part", "endless", "share"], [True, False]),
)
def test_tells_states_behind_others_by_arithmetic(source, size, optimized):
    def make():
        dataset = SOURCES[source]().shuffle(size, seed=3)
        return dataset if optimized else unoptimized(dataset)

    def opened():
        plan = make().plan
        return open_plan(optimize(plan).plan if optimized else plan)

    coordinator, operator = opened()
    before = operator.state_dict()
    everything = []
    for _ in range(40):
        chunk = operator.pull(1)
        if chunk is None:
            break
        everything.append(chunk.only())
        after = operator.state_after(before, len(everything))
        assert after == operator.state_dict()
    if source != "endless":
        assert operator.state_after(before, len(everything) + 1) is None
        assert operator.state_after(after, 1) is None
    coordinator.shut_down(operator.close, wait=True)
    for position in (1, 5, len(everything) - 1):
        coordinator, operator = opened()
        operator.load_state_dict(operator.state_after(before, position))
        assert_elements_equal([operator.pull(1).only()], everything[position : position + 1])
        coordinator.shut_down(operator.close, wait=True)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("optimized", [True, False], ids=["optimized", "plain"])
def test_records_of_damaged_files(tmp_path, on_error, optimized):
    name = tmp_path / "records.tfrecord"
    with TFRecordWriter(str(name)) as writer:
        for number in range(40):
            writer.write(f"record {number:03}".encode())
    data = bytearray(name.read_bytes())
    for number in (7, 8, 30):
        data[number * 26 + 14] ^= 1
    name.write_bytes(bytes(data))

    for chain in (
        lambda d: d.shuffle(6, seed=2),
        lambda d: d.shard(2, 1).shuffle(6, seed=2),
        lambda d: d.shuffle(None, seed=2).repeat(2),
        lambda d: d.map(len).shuffle(6, seed=2),
        lambda d: d.shuffle(40, seed=2).batch(4),
    ):

        def make(chain=chain):
            dataset = chain(TFRecordDataset(str(name), index=True, on_error=on_error))
            return dataset if optimized else unoptimized(dataset)

        everything = outcomes(iter(make()))
        for position in range(0, len(everything), 3):
            iterator = iter(make())
            for _ in range(position):
                try:
                    next(iterator)
                except OSError:
                    continue
            again = iter(make())
            again.load_state_dict(iterator.state_dict())
            assert_elements_equal(outcomes(again), everything[position:])

"""shard_by_process: the share of each of several processes of one dataset, element by element."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chains.draw import rewritable_pipelines
from dataset import Dataset
from dataset.plan.node import walk
from dataset.testing import assert_elements_equal, check_laziness, check_operator, check_rule, outcomes
from support.combinations import diagonals
from support.libraries import Ours
from support.op_cases import fail_at, ints

REMAINDERS = ["drop", "pad", "repeat", "keep"]


def shares(dataset, world_size, **arguments):
    """The share of each process."""
    return [list(dataset.shard_by_process(rank, world_size, **arguments)) for rank in range(world_size)]


def in_turn(parts):
    """Elements of several lists, one from each in turn."""
    rounds = itertools.zip_longest(*parts, fillvalue=shares)
    return [element for turn in rounds for element in turn if element is not shares]


def expected(whole, world_size, remainder):
    """The elements of all processes in turn; None for padding."""
    rest = len(whole) % world_size
    missing = (world_size - rest) % world_size
    if remainder == "drop":
        return whole[: len(whole) - rest]
    if remainder == "keep" or not whole:
        return whole
    if remainder == "repeat":
        return [*whole, *itertools.islice(itertools.cycle(whole), missing)]
    return [*whole, *itertools.repeat(None, missing)]


def check_shares(make, world_size, remainder):
    """Check that each process has the correct share, equally many elements, and the correct cardinality if known."""
    parts = shares(make(), world_size, remainder=remainder)
    wanted = expected(list(make()), world_size, remainder)
    found = in_turn(parts)
    real = [element for element, like in zip(found, wanted, strict=True) if like is not None]
    assert_elements_equal(real, [element for element in wanted if element is not None])
    for element in found[len(real) :]:
        assert not np.any(element)
    if remainder != "keep":
        assert len(set(map(len, parts))) == 1
    for rank, part in enumerate(parts):
        dataset, known = make().shard_by_process(rank, world_size, remainder=remainder), make().cardinality()
        assert dataset.cardinality() == (len(part) if known >= 0 else known)


def numbers(n):
    return Dataset.range(n).random_map(lambda generator, x: 1 + x + generator.random(), seed=3)


PIPELINES = {
    "source": Dataset.range,
    "batch": lambda n: Dataset.range(n).map(lambda x: x + 1).batch(3),
    "whole batches": lambda n: Dataset.range(n).batch(2, drop_remainder=True),
    "batches of batches": lambda n: Dataset.range(n).batch(2, drop_remainder=True).batch(2).prefetch(1),
    "of unknown length": lambda n: Dataset.range(n).filter(lambda x: True).map(lambda x: x + 1).batch(2),
    "of long turns": lambda n: Dataset.range(30 * n).filter(lambda x: True).batch(70),
    "shuffled arrays": lambda n: Dataset.range(n).shuffle(n + 1, seed=1, reshuffle_each_iteration=False).batch(2),
    "numbered": lambda n: Dataset.range(n).map(lambda x: x + 1).enumerate(5).map(lambda i, x: i * 100 + x),
    "zipped": lambda n: Dataset.zip(Dataset.range(n).map(lambda x: x + 1), Dataset.range(n + 2)).map(np.multiply),
    "random numbers": numbers,  # those of an element's place among all
    "batches of random numbers": lambda n: numbers(n).batch(2),
}


@pytest.mark.parametrize(
    ("pipeline", "remainder"),
    [each for each in itertools.product(PIPELINES, REMAINDERS) if "random" not in each[0] or each[1] != "repeat"],
)
def test_the_processes_share_the_elements(pipeline, remainder):
    for size, world_size in diagonals(2, [0, 1, 2, 7, 12], [2, 3, 5]):
        check_shares(lambda: PIPELINES[pipeline](size), world_size, remainder)


def test_a_repeated_element_has_random_numbers_of_its_own():
    (first, _), (_, again) = shares(numbers(3), 2, remainder="repeat")
    assert int(first) == int(again) == 1
    assert first != again


@pytest.mark.parametrize(("pipeline", "workers", "remainder"), diagonals(4, PIPELINES, [2, 3], REMAINDERS))
def test_the_workers_of_each_process_share_its_elements(pipeline, workers, remainder):
    for size, rank in itertools.product([1, 5, 12], range(2)):
        share = PIPELINES[pipeline](size).shard_by_process(rank, 2, remainder=remainder)
        parts = shares(share, workers, remainder="keep", seed=9)
        assert_elements_equal(in_turn(parts), list(share))
        counts = [share.shard_by_process(w, workers, remainder="keep").cardinality() for w in range(workers)]
        assert share.cardinality() < 0 or counts == list(map(len, parts))


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(rewritable_pipelines(), st.integers(1, 4), st.sampled_from(REMAINDERS))
def test_the_processes_share_the_elements_of_any_pipeline(pipeline, world_size, remainder):
    whole = outcomes(iter(pipeline.make(Ours())))
    assume(not any(isinstance(outcome, Exception) for outcome in whole))
    parts = shares(pipeline.make(Ours()), world_size, remainder=remainder)
    wanted = expected(whole, world_size, remainder)
    found = in_turn(parts)
    if remainder != "keep":
        assert len(set(map(len, parts))) == 1
    if any(node.op == "repeat" for node in walk(pipeline.make(Ours()).plan)):
        return  # each of its passes is shared separately
    assert len(found) == len(wanted)
    assert_elements_equal(found[: len(whole)], wanted[: len(whole)])


@pytest.mark.parametrize("remainder", REMAINDERS)
def test_each_pass_of_repeat_is_shared_separately(remainder):
    one_pass = expected(list(range(1, 6)), 2, remainder)
    parts = shares(Dataset.range(5).map(lambda x: x + 1).repeat(3), 2, remainder=remainder)
    assert in_turn(parts) == 3 * [x or 0 for x in one_pass]  # with "keep", the same process has more in each pass
    endless = Dataset.range(5).map(lambda x: x).repeat().batch(2).take(6)
    assert {len(batch) for part in shares(endless, 2, remainder=remainder) for batch in part} == {2}


@pytest.mark.parametrize("remainder", ["drop", "pad", "repeat"])
@pytest.mark.parametrize("make", [Dataset.range, PIPELINES["of unknown length"], PIPELINES["shuffled arrays"]])
def test_no_process_ends_an_endless_repetition_before_the_others(make, remainder):
    for count, world_size in itertools.product(range(4), (2, 3, 4)):
        endless = make(count).repeat()
        whole = [endless.shard_by_process(rank, world_size, remainder=remainder) for rank in range(world_size)]
        assert len({len(list(part.take(7))) for part in whole}) == 1


WITH_STATES = ["source", "batch", "whole batches", "of unknown length", "numbered", "shuffled arrays", "zipped"]


@pytest.mark.parametrize(
    ("pipeline", "rank", "remainder"),
    [*diagonals(3, WITH_STATES, [0, 1, 2], REMAINDERS), *(("of long turns", 1, each) for each in REMAINDERS)],
)
def test_keeps_the_contract_of_operators(pipeline, rank, remainder):
    for size in (2, 10):
        check_operator(lambda: PIPELINES[pipeline](size).shard_by_process(rank, 3, remainder=remainder))


@pytest.mark.parametrize("remainder", ["pad", "repeat"])
def test_an_absent_element_may_wait_in_a_saved_state(remainder):
    dataset = Dataset.range(3).filter(lambda x: True).shard_by_process(1, 2, remainder=remainder).prefetch(4)
    check_operator(lambda: dataset, ints(1, 0))


# What is computed for other processes


def test_takes_no_more_than_shows_that_the_round_is_complete():
    for rank in (0, 2):
        check_laziness(lambda numbers: numbers.shard_by_process(rank, 3), lambda k: 3 * k, size=30)
    check_laziness(lambda numbers: numbers.batch(2).shard_by_process(0, 3), lambda k: 6 * k - 1 if k else 0, size=29)
    for remainder in ("keep", "pad", "repeat"):  # the last round is returned in any case
        check_laziness(
            lambda numbers: numbers.shard_by_process(1, 3, remainder=remainder),
            lambda k: 3 * k - 1 if k else 0,
            size=29,
        )


def test_calls_functions_for_its_own_elements_only():
    calls = []
    parts = shares(Dataset.range(20).map(lambda x: calls.append(int(x)) or x).batch(3).prefetch(2), 3)
    assert sorted(calls) == list(range(18))
    assert [part.tolist() for part in parts[1]] == [[3, 4, 5], [12, 13, 14]]


def test_rules_move_it_on_indices_and_leave_it_as_an_op():
    rows = Dataset.from_tensor_slices(np.arange(11))
    sharded = "shard_by_process(1 of 4, 'drop') <- range(11)"  # otherwise a state would fit as many processes only
    check_rule("slice_pushdown", lambda: Dataset.range(11).shard_by_process(1, 4), sharded)
    check_rule(
        "shuffle_before_gather",
        lambda: rows.shuffle(20, seed=1).batch(2).shard_by_process(0, 3),
        "batch(2) <- gather(from_tensor_slices) <- shard_by_process(0 of 3, 'drop', 2 at a time)"
        " <- shuffle(20, seed=1) <- range(11)",
    )
    counted = "shard_by_process(0 of 1, 'drop') <- range(11)"
    check_rule("noop_elimination", lambda: Dataset.range(11).shard_by_process(0, 1), counted)
    unknown = Dataset.range(11).unique()
    check_rule("noop_elimination", lambda: unknown.shard_by_process(0, 1), "unique <- range(11)")
    check_operator(lambda: Dataset.range(5).shard_by_process(0, 1), ints(*range(5)))


# Random elements


def unseeded():
    return (
        Dataset.sample_from_datasets(
            [Dataset.range(40).filter(lambda x: True).shuffle(7), Dataset.range(40, 80).shuffle(90)],
            rerandomize_each_iteration=True,
        )
        .random_map(lambda g, x: (x, g.random()))
        .batch(3)
    )


def component(batches, index=0):
    return np.concatenate([batch[index] for batch in batches]).tolist()


def test_processes_that_build_the_pipeline_separately_agree_and_epochs_differ():
    whole = list(unseeded().shard_by_process(0, 1))
    datasets = [unseeded().shard_by_process(rank, 3, remainder="keep") for rank in range(3)]
    first, second = (in_turn([list(dataset) for dataset in datasets]) for _ in range(2))
    assert_elements_equal(first, whole)
    assert sorted(component(first)) == sorted(component(second)) == list(range(80))
    assert len(set(component(whole, 1))) == 80
    assert component(first) != component(second)


def test_earlier_iterations_over_the_whole_dataset_do_not_count():
    dataset = Dataset.range(20).shuffle(20)
    list(dataset)
    one = dataset.shard_by_process(0, 2)
    list(dataset)
    two = dataset.shard_by_process(1, 2)
    assert sorted(list(one) + list(two)) == list(range(20))
    cached = Dataset.range(6).map(lambda x: x + 1).cache()
    list(cached)
    assert shares(cached, 2) == [[1, 3, 5], [2, 4, 6]]


def test_the_seed_determines_the_order_but_for_ops_with_a_seed_of_their_own():
    def order(seed, own=None):
        return [int(x) for x in Dataset.range(50).shuffle(50, seed=own).shard_by_process(0, 1, seed=seed)]

    assert order(1) == order(1) != order(2)
    assert order(1, own=5) == order(2, own=5) == [int(x) for x in Dataset.range(50).shuffle(50, seed=5)]


def test_workers_may_have_another_seed_than_the_processes():
    def share(rank, worker):
        return unseeded().shard_by_process(rank, 2).shard_by_process(worker, 2, remainder="keep", seed=10 + rank)

    found = component(batch for rank in range(2) for worker in range(2) for batch in share(rank, worker))
    assert len(found) == len(set(found)) == 78  # of 27 batches, 26 are returned


INNER = {
    "seeds": (lambda n: Dataset.range(n * 10, n * 11).shuffle(9, seed=3), None),
    "no seed": (lambda n: Dataset.range(n).shuffle(9), r"shuffle\(9\) from .*test_shard_by_process.py:\d+ has no seed"),
    "no order": (
        lambda n: Dataset.range(n).map(abs, num_parallel_calls=2, deterministic=False),
        r"map\(abs\) from .* has deterministic=False",
    ),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize(
    ("op", "arguments"), [("flat_map", {}), ("interleave", {}), ("interleave", {"num_parallel_calls": 2})], ids=str
)
def test_inner_datasets_without_a_seed_or_order_are_refused(op, arguments, inner):
    function, words = INNER[inner]
    dataset = getattr(Dataset.range(5), op)(function, **arguments)
    assert len(list(dataset)) == 10  # by itself it is correct
    if words is None:
        assert sorted(in_turn(shares(dataset, 2, remainder="keep"))) == sorted(dataset)
        return
    with pytest.raises(ValueError, match=words):
        list(dataset.shard_by_process(0, 2, by="elements"))


# Failures and padding


def test_a_failure_below_is_raised_in_all_processes_and_one_above_in_its_own():
    def source():
        yield from (0, 1, 2)
        raise ValueError("bad 3")

    dataset = Dataset.from_generator(source)
    for rank in (0, 1):
        assert_elements_equal(outcomes(iter(dataset.shard_by_process(rank, 2))), [*ints(rank), ValueError("bad 3")])
    failing = Dataset.range(6).map(fail_at(2))
    assert_elements_equal(outcomes(iter(failing.shard_by_process(0, 2))), [*ints(0), ValueError("bad 2"), *ints(4)])
    assert_elements_equal(outcomes(iter(failing.shard_by_process(1, 2))), ints(1, 3, 5))


@pytest.mark.parametrize("remainder", REMAINDERS)
def test_elements_of_a_turn_that_a_failure_interrupts_are_part_of_a_saved_state(remainder):
    failing = Dataset.range(14).map(fail_at(3, 7)).filter(lambda x: True).batch(2)
    for rank in range(3):
        check_operator(lambda rank=rank: failing.shard_by_process(rank, 3, remainder=remainder))


def test_no_function_is_called_for_padding_and_a_process_without_elements_has_zeros_too():
    parts = shares(Dataset.range(5).filter(lambda x: True).map(lambda x: x + 100).batch(2), 2, remainder="pad")
    assert [batch.tolist() for batch in parts[1]] == [[102, 103], [0, 0]]
    parts = shares(Dataset.range(3).map(lambda x: np.ones((2,)) + x).batch(2), 4, remainder="pad")
    assert_elements_equal(in_turn(parts)[2:], 2 * [np.zeros((2, 2))])

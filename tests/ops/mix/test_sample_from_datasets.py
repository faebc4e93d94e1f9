"""sample_from_datasets: datasets mixed at random, or in exact shares."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, SpecError, TensorSpec, set_random_seed
from dataset.testing import check_laziness, check_operator, outcomes
from support.combinations import diagonals
from support.op_cases import fail_at, ints

COUNTS = 20_000


def mix(sources, *args, **keywords):
    return Dataset.sample_from_datasets(sources, *args, **keywords)


def endless(count):
    return [Dataset.from_tensors(i).repeat() for i in range(count)]


def picked(dataset, count=COUNTS):
    return next(iter(dataset.batch(count)))


def weights_dataset(*rows):
    return Dataset.from_tensor_slices(np.array(rows, np.float64))


def assert_shares(picks, weights):
    """Chi-square against the weights; the bound holds for 999 of 1000 seeds, and the seeds are fixed."""
    expected = len(picks) * np.array(weights, float) / np.sum(weights)
    used = expected > 0
    got = np.bincount(picks, minlength=len(weights))
    assert not got[~used].any()
    square = ((got[used] - expected[used]) ** 2 / expected[used]).sum()
    assert square < {1: 1e-9, 2: 10.83, 3: 13.82, 4: 16.27}[int(used.sum())], (got, expected)


@pytest.mark.parametrize("weights", [None, [1, 1], [0.9, 0.1], (3, 1.0, 6), np.array([1, 0, 2.0, 1]), [1e-300, 1e-300]])
@pytest.mark.parametrize("seed", [0, 1])
def test_picks_in_proportion_of_the_weights(weights, seed):
    count = 2 if weights is None else len(weights)
    assert_shares(picked(mix(endless(count), weights, seed)), [1] * count if weights is None else weights)


def test_one_pick_tells_nothing_of_the_next():
    picks = picked(mix(endless(2), seed=4))
    assert_shares(picks[1:] * 2 + picks[:-1], [1, 1, 1, 1])


@pytest.mark.parametrize("seed", range(2))
def test_gives_every_element_once_and_each_dataset_in_its_order(seed):
    sources = [Dataset.range(30), Dataset.range(100, 105), Dataset.range(200, 200)]
    got = check_operator(lambda: mix(sources, seed=seed), positions=40)
    assert [x for x in got if x < 100] == list(range(30))
    assert [x for x in got if x >= 100] == list(range(100, 105))
    got = check_operator(lambda: mix(sources[:2], [0.2, 0.8], seed, stop_on_empty_dataset=True))
    assert [x for x in got if x >= 100] == list(range(100, 105))  # the second is the first to end
    assert [x for x in got if x < 100] == list(range(len(got) - 5))


def test_the_others_go_on_in_their_proportion_behind_the_end_of_one():
    sources = [Dataset.range(0), *endless(3)[1:]]
    picks = picked(mix(sources, [0.98, 0.015, 0.005], seed=2))
    assert_shares(picks - 1, [3, 1])
    picks = picked(mix([Dataset.range(50).map(lambda x: 0), *endless(3)[1:]], [2, 1, 1], seed=2))
    assert (picks == 0).sum() == 50
    assert_shares(picks[picks > 0] - 1, [1, 1])


def test_a_dataset_that_is_alone_is_handed_on_as_it_is():
    numbers = Dataset.range(3)
    for dataset in (mix([numbers]), mix([numbers], [0.3]), mix([Dataset.range(9), numbers], [0, 1.0])):
        check_operator(lambda dataset=dataset: dataset, ints(0, 1, 2))
        assert len(dataset) == 3
    check_operator(lambda: mix([numbers, numbers], [0.0, 0]), [])
    assert mix([numbers, numbers], [0.0, 0]).cardinality() == 0


def test_knows_its_cardinality():
    known, unknown = Dataset.range(3), Dataset.range(3).filter(lambda x: True)
    for stop in (True, False):
        for others, expected in [(known, -2), (unknown, -2), (known.repeat(), -1)]:
            assert mix([known, others], stop_on_empty_dataset=stop).cardinality() == expected
            varying = weights_dataset([1, 1]).repeat()
            assert mix([known, others], varying, stop_on_empty_dataset=stop).cardinality() == expected


def test_an_element_that_fails_keeps_its_place():
    sources = [Dataset.range(5).map(fail_at(0, 3)), Dataset.range(10, 15).map(fail_at(12, 14))]
    got = check_operator(lambda: mix(sources, seed=3))
    texts = [str(x) for x in got if isinstance(x, ValueError)]
    assert sorted(texts) == ["bad 0", "bad 12", "bad 14", "bad 3"]
    good = [x for x in got if not isinstance(x, ValueError)]
    assert [x for x in good if x < 10] == [1, 2, 4]
    assert [x for x in good if x >= 10] == [10, 11, 13]


def numbers_taken(start, taken, count=40):
    def numbers():
        for i in range(count):
            taken.append(i)
            yield start + i

    return Dataset.from_generator(numbers, output_signature=TensorSpec((), np.int64))


@pytest.mark.parametrize(("demand", "stop", "exact"), diagonals(2, [1, 3, 8, 100], [True, False], [True, False]))
def test_takes_no_element_that_it_does_not_give(demand, stop, exact):
    taken = [[], [], []]
    sources = [numbers_taken(100 * i, taken[i], count) for i, count in enumerate((40, 4, 30))]
    options = {"exact": True} if exact else {"seed": 3}
    iterator = iter(mix(sources, stop_on_empty_dataset=stop, **options).batch(demand))
    given = 0
    for _ in range(200 // demand):
        batch = next(iterator, None)
        if batch is None:
            break
        given += len(batch)
        assert sum(map(len, taken)) == given


def test_takes_an_element_for_each():
    check_laziness(lambda numbers: mix([numbers], weights_dataset([1.0]).repeat()), lambda k: k)


# Weights as a dataset


def test_a_dataset_of_weights_gives_each_element_its_own():
    two = [Dataset.range(4), Dataset.range(10, 14)]
    check_operator(lambda: mix(two, weights_dataset([1, 0], [0, 2], [0, 0.1], [1e300, 0])), ints(0, 10, 11, 1))
    check_operator(lambda: mix(two[:1], weights_dataset([1], [1])), ints(0, 1))
    whole = Dataset.from_tensor_slices([[1, 0], [0, 1]])
    check_operator(lambda: mix(two, whole), ints(0, 10))
    picks = picked(mix(endless(2), weights_dataset([0.9, 0.1], [0.3, 0.7]).repeat(), seed=1))
    assert_shares(picks[::2], [0.9, 0.1])
    assert_shares(picks[1::2], [0.3, 0.7])


def test_choices_of_a_dataset_that_has_ended_are_passed_by_or_end_it():
    two = [Dataset.range(1), Dataset.range(10, 14)]
    weights = weights_dataset([1, 0], [1, 0], [0, 1], [1, 0], [0, 1])
    check_operator(lambda: mix(two, weights), ints(0, 10, 11))
    check_operator(lambda: mix(two, weights, stop_on_empty_dataset=True), ints(0))


@pytest.mark.parametrize("wrong", [[0, 0], [-1, 1], [np.nan, 1], [np.inf, 1]])
def test_weights_that_are_none_fail_in_their_place(wrong):
    two = [Dataset.range(4), Dataset.range(10, 14)]
    got = check_operator(lambda: mix(two, weights_dataset([1, 0], wrong, [0, 1]), seed=1))
    assert [got[0], got[2]] == [0, 10]
    assert isinstance(got[1], SpecError)
    assert "weights 1 must be a vector of 2 finite numbers that are at least 0 and not all 0, got" in str(got[1])


@pytest.mark.parametrize("wrong", [[1.0], [1.0, 0.0, 0.0], 1.0, "text", (1.0, 0.0)])
def test_weights_of_another_shape_fail_in_their_place_where_only_running_shows_it(wrong):
    two = [Dataset.range(4), Dataset.range(10, 14)]
    weights = Dataset.range(2).map(lambda i: wrong)
    assert all(isinstance(x, SpecError) for x in outcomes(iter(mix(two, weights))))


def test_weights_that_fail_take_nothing_from_the_datasets():
    weights = Dataset.range(4).map(fail_at(1)).map(lambda x: np.array([1.0, 0.0]))
    check_operator(lambda: mix([Dataset.range(9)] * 2, weights), [np.int64(0), ValueError("bad 1"), *ints(1, 2)])


# Which passes are alike


def passes(make, **keywords):
    """Two passes over one dataset, one over another, and the two passes of a repeat."""

    def pairs():
        return mix([Dataset.range(30).map(lambda x: 0), Dataset.range(30).map(lambda x: 1)], **keywords)

    first = pairs()
    repeated = [int(x) for x in pairs().repeat(2)]
    return [[int(x) for x in part] for part in (first, first, pairs())] + [repeated[:60], repeated[60:]]


@pytest.mark.parametrize("rerandomize", [None, False])
def test_every_pass_is_alike_unless_it_is_told_otherwise(rerandomize):
    one, two, rebuilt, third, fourth = passes(mix, seed=5, rerandomize_each_iteration=rerandomize)
    assert one == two == rebuilt == third == fourth
    one, two, rebuilt, third, fourth = passes(mix, rerandomize_each_iteration=rerandomize)
    assert one == two != rebuilt
    assert third == fourth != one


def test_every_pass_is_another_if_it_is_told_so_and_a_rebuilt_dataset_repeats_them():
    one, two, rebuilt, third, fourth = passes(mix, seed=5, rerandomize_each_iteration=True)
    assert one == rebuilt == third
    assert one != two
    assert third != fourth
    check_operator(lambda: mix([Dataset.range(5)] * 2, seed=1, rerandomize_each_iteration=True).repeat(2))


def test_the_global_seed_makes_it_repeatable_too():
    def run(seed):
        set_random_seed(seed)
        return [picked(mix(endless(2)), 50).tolist() for _ in range(2)]

    try:
        assert run(1) == run(1) != run(2)
        assert run(1)[0] != run(1)[1]
    finally:
        set_random_seed(None)


# Exact shares


def counts_of(picks, size):
    return [list(accumulate(int(pick == i) for pick in picks)) for i in range(size)]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(st.integers(1, 50), st.floats(0.001, 1000), st.sampled_from([0.1, 0.3, 1 / 3, 1e-9, 1e12])),
        min_size=2,
        max_size=6,
    ),
    st.integers(1, 400),
)
def test_exact_shares_are_kept_to_within_one_element_at_every_prefix(weights, count):
    picks = picked(mix(endless(len(weights)), weights, exact=True), count)
    exact = [Fraction(repr(float(weight))) for weight in weights]
    for counts, weight in zip(counts_of(picks, len(weights)), exact, strict=True):
        share = weight / sum(exact)
        assert all(abs(got - (n + 1) * share) < 1 for n, got in enumerate(counts))


def test_exact_shares_repeat_after_as_many_elements_as_the_weights_have_in_whole_numbers():
    picks = picked(mix(endless(3), [0.5, 0.3, 0.2], exact=True), 100).tolist()
    assert picks[:10] == [0, 1, 0, 2, 0, 1, 0, 1, 0, 2]
    assert picks == picks[:10] * 10
    assert picked(mix(endless(2), np.array([0.7, 0.3], np.float32), exact=True), 10).sum() == 3


def test_exact_shares_are_counted_anew_behind_the_end_of_one():
    sources = [Dataset.range(2), Dataset.range(10, 16), Dataset.range(20, 30)]
    got = check_operator(lambda: mix(sources, [2, 1, 1], exact=True))
    assert [int(x) for x in got] == [0, 10, 1, 20, *(i for k in range(1, 6) for i in (10 + k, 20 + k)), 26, 27, 28, 29]
    stopped = mix(sources, [2, 1, 1], exact=True, stop_on_empty_dataset=True)
    check_operator(lambda: stopped, got[:4])


@pytest.mark.parametrize("weights", [[1, 3], [0.12345, 0.54321, 0.3]])
def test_exact_shares_resume_at_every_place(weights):
    sources = [Dataset.range(20 * (i + 1)) for i in range(len(weights))]
    check_operator(lambda: mix(sources, weights, exact=True), positions=12)
    check_operator(lambda: mix(sources[:1] * 2, exact=True).repeat(2), positions=1)


# Arguments


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"weights": [1.0]}, ValueError, r"one number per dataset \(2\), got 1"),
        ({"weights": []}, ValueError, "one number per dataset"),
        ({"weights": [[0.5, 0.5]]}, ValueError, "one number per dataset"),
        ({"weights": [-1.0, 1.0]}, ValueError, "finite and at least 0"),
        ({"weights": [np.nan, 1.0]}, ValueError, "finite and at least 0"),
        ({"weights": [np.inf, 1.0]}, ValueError, "finite and at least 0"),
        ({"weights": "ab"}, TypeError, "list of numbers or a Dataset"),
        ({"weights": {"a": 1, "b": 2}}, TypeError, "list of numbers or a Dataset"),
        ({"weights": ["1", "2"]}, TypeError, "must be numbers, got '1'"),
        ({"weights": [True, False]}, TypeError, "must be numbers, got True"),
        ({"weights": Dataset.range(3)}, TypeError, "vectors of 2 numbers"),
        ({"weights": Dataset.from_tensors([1.0, 2.0, 3.0])}, TypeError, "vectors of 2 numbers"),
        ({"weights": Dataset.from_tensors(("a", "b"))}, TypeError, "vectors of 2 numbers"),
        ({"seed": 1.5}, TypeError, "seed must be an int"),
        ({"seed": "a"}, TypeError, "seed must be an int"),
        ({"stop_on_empty_dataset": 1}, TypeError, "stop_on_empty_dataset must be True or False"),
        ({"rerandomize_each_iteration": 1}, TypeError, "rerandomize_each_iteration must be True or False"),
        ({"exact": 1}, TypeError, "exact must be True or False"),
        ({"exact": True, "seed": 1}, ValueError, "deterministic and takes no seed, got seed=1"),
        ({"exact": True, "weights": weights_dataset([1, 1])}, ValueError, "constant weights"),
    ],
)
def test_refuses_arguments_that_are_wrong(keywords, error, words):
    with pytest.raises(error, match=rf"sample_from_datasets\(\): .*{words}"):
        mix([Dataset.range(3), Dataset.range(3)], **keywords)


@pytest.mark.parametrize("datasets", [[], Dataset.range(3), [Dataset.range(3), 4], 3, [Dataset.range(1)] * 2 + ["a"]])
def test_refuses_what_is_no_list_of_datasets(datasets):
    with pytest.raises((TypeError, ValueError), match=r"sample_from_datasets\(\): datasets"):
        mix(datasets)
    with pytest.raises(TypeError, match="the same type"):
        mix([Dataset.range(3), Dataset.from_tensors("a")])

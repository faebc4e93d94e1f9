"""choose_from_datasets: elements of several datasets in the order of given choices."""

import numpy as np
import pytest

from dataset import Dataset, SparseTensor, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints


def choices(*numbers):
    return Dataset.from_tensor_slices(np.array(numbers, np.int64))


def three():
    return [Dataset.range(4), Dataset.range(10, 14), Dataset.range(20, 24)]


def generated(start, stop, taken):
    """A dataset of unknown length that notes what was taken from it."""

    def numbers():
        for i in range(start, stop):
            taken.append(i)
            yield i

    return Dataset.from_generator(numbers, output_signature=TensorSpec((), np.int64))


def mix(sources, picks, **keywords):
    return Dataset.choose_from_datasets(sources, picks, **keywords)


def test_gives_the_next_element_of_the_chosen_dataset():
    check_operator(lambda: mix(three(), choices(0, 1, 2, 2, 1, 0, 0)), ints(0, 10, 20, 21, 11, 1, 2))
    check_operator(lambda: mix(three()[:1], choices(0, 0)), ints(0, 1))
    check_operator(lambda: mix(three(), choices()), [])
    check_operator(lambda: mix(tuple(three()), choices(2)), ints(20))
    check_operator(lambda: mix(three(), Dataset.range(3).repeat()), ints(0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23))


def test_ends_with_the_first_dataset_that_is_chosen_and_has_ended():
    picks = choices(0, 1, 0, 1, 0, 1)
    check_operator(lambda: mix([Dataset.range(1), Dataset.range(10, 13)], picks), ints(0, 10))
    check_operator(lambda: mix([Dataset.range(0), Dataset.range(3)], choices(1, 1, 0, 1)), ints(0, 1))
    check_operator(lambda: mix([Dataset.range(2), Dataset.range(0)], choices(0, 0)), ints(0, 1))


def test_or_passes_such_choices_by():
    sources = [Dataset.range(1), Dataset.range(10, 13)]
    picks = choices(0, 1, 0, 1, 0, 1, 1, 1)
    check_operator(lambda: mix(sources, picks, stop_on_empty_dataset=False), ints(0, 10, 11, 12))
    seen = [source.map(lambda x: x + 0) for source in sources]  # read no further than certain
    check_operator(lambda: mix(seen, picks, stop_on_empty_dataset=False), ints(0, 10, 11, 12))
    endless = choices(0, 1).repeat()
    check_operator(lambda: mix(sources, endless, stop_on_empty_dataset=False), ints(0, 10, 11, 12))
    check_operator(lambda: mix(three()[:2], choices(0).repeat(9), stop_on_empty_dataset=False), ints(0, 1, 2, 3))
    check_operator(lambda: mix([Dataset.range(0)] * 2, endless, stop_on_empty_dataset=False), [])


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("wrong", [2, -1, 2**40])
def test_a_choice_out_of_range_fails_in_its_place(stop, wrong):
    got = check_operator(lambda: choose_wrong(stop, wrong))
    assert_elements_equal([got[0], got[2], got[4]], ints(0, 10, 1))
    for place in (1, 3):
        assert isinstance(got[place], ValueError)
        assert f"choice {wrong} for element {place} is out of range; there are 2 datasets" in str(got[place])


def choose_wrong(stop, wrong):
    sources = [Dataset.range(3), Dataset.range(10, 13)]
    return mix(sources, choices(0, wrong, 1, wrong, 0), stop_on_empty_dataset=stop)


@pytest.mark.parametrize("stop", [True, False])
def test_an_element_that_fails_keeps_its_place(stop):
    sources = [Dataset.range(6).map(fail_at(1, 4)), Dataset.range(10, 16).map(fail_at(10, 12))]
    picks = choices(0, 1, 0, 1, 0, 1, 0, 0, 0, 1)
    expected = [0, "bad 10", "bad 1", 11, 2, "bad 12", 3, "bad 4", 5, 13]
    expected = [ValueError(e) if isinstance(e, str) else np.int64(e) for e in expected]
    check_operator(lambda: mix(sources, picks, stop_on_empty_dataset=stop), expected)


def test_a_choice_that_fails_takes_nothing_from_the_datasets():
    picks = choices(0, 1, 0, 1, 0).enumerate().map(lambda i, choice: fail_at(1, 4)(i) * 0 + choice)
    expected = [np.int64(0), ValueError("bad 1"), np.int64(1), np.int64(10), ValueError("bad 4")]
    check_operator(lambda: mix(three(), picks), expected)


def test_what_is_no_choice_fails_in_its_place_where_only_running_shows_it():
    made = [0, 1.0, 1, (0, 1), np.int32(1), [1], 0]
    for wrong in made[1:2] + made[3:6]:
        picks = Dataset.range(3).map(lambda i, wrong=wrong: wrong if i == 1 else np.int64(0))
        got = outcomes(iter(mix(three(), picks)))
        assert_elements_equal([got[0], got[2]], ints(0, 1))
        assert isinstance(got[1], SpecError)

    def numbers():
        yield from [np.int64(0), np.array([1]), np.int64(1)]

    picks = Dataset.from_generator(numbers, output_signature=TensorSpec(None, np.int64))
    got = check_operator(lambda: mix(three(), picks))
    assert_elements_equal([got[0], got[2]], ints(0, 10))
    assert "choice 1 must be an int64 scalar, got array([1])" in str(got[1])


def test_takes_a_choice_and_an_element_for_each():
    check_laziness(lambda numbers: mix([numbers], choices(0).repeat()), lambda k: k)
    check_laziness(lambda numbers: mix([numbers, Dataset.range(99)], choices(0, 1).repeat()), lambda k: (k + 1) // 2)
    check_laziness(lambda numbers: mix(three(), numbers.map(lambda i: i % 3)), lambda k: min(13, k), size=12)


@pytest.mark.parametrize("demand", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("stop", [True, False])
def test_reads_no_dataset_past_the_end_of_another(demand, stop):
    first, second = [], []
    sources = [generated(0, 2, first), generated(0, 50, second)]
    picks = choices(1, 0, 1, 1, 0, 0, 1, 1, 1)  # the sixth meets the end
    list(mix(sources, picks, stop_on_empty_dataset=stop).batch(demand))
    assert first == [0, 1]
    assert second == list(range(3 if stop else 6))


@pytest.mark.parametrize("demand", [1, 2, 3, 20])
def test_reads_no_choice_past_the_end(demand):
    taken = []
    picks = generated(0, 50, taken).map(lambda i: i % 2)
    for lengths, read in [((3, 9), 7), ((9, 2), 6)]:
        for known in (True, False):
            taken.clear()
            sources = [Dataset.range(length) if known else generated(0, length, []) for length in lengths]
            list(mix(sources, picks).batch(demand))
            assert len(taken) == read
    taken.clear()
    list(mix([Dataset.range(3), Dataset.range(2)], picks, stop_on_empty_dataset=False).batch(demand))
    assert len(taken) == 7


def test_batches_of_endless_datasets_are_full():
    sources = [Dataset.range(5).repeat(), Dataset.range(10, 15).map(lambda x: x + 0).repeat()]
    batches = list(mix(sources, choices(0, 1, 1).repeat()).batch(100).take(3))
    mine = [batch[batch < 10].tolist() for batch in batches]
    assert [len(batch) for batch in batches] == [100] * 3
    assert [x for part in mine for x in part] == [i % 5 for i in range(100)]


def test_mixes_every_kind_of_element():
    def source(start):
        elements = {"a": (np.arange(start, start + 3), None), "s": [f"x{i}" for i in range(3)]}
        return Dataset.from_tensor_slices(elements)

    expected = [{"a": (np.int64(i), None), "s": f"x{i % 10}".encode()} for i in (0, 10, 11, 1, 12)]
    check_operator(lambda: mix([source(0), source(10)], choices(0, 1, 1, 0, 1)), expected)
    wide = [Dataset.from_tensors(np.zeros(2)).repeat(2), Dataset.from_tensors(np.zeros(3)).repeat(2)]
    check_operator(lambda: mix(wide, choices(0, 1, 0)), [np.zeros(2), np.zeros(3), np.zeros(2)])
    tensor = SparseTensor([[1]], [5], [3])
    sparse = Dataset.from_tensors(tensor).repeat(2)
    check_operator(lambda: mix([sparse, sparse], choices(0, 1)), [tensor, tensor])


def test_specs_are_merged():
    rows = Dataset.range(5)
    merged = mix([rows.batch(2, drop_remainder=True), rows.batch(3, drop_remainder=True)], choices(0))
    assert merged.element_spec == TensorSpec((None,), np.int64)
    assert mix([rows, rows.batch(2)], choices(0)).element_spec == TensorSpec(None, np.int64)


def test_a_mismatch_that_only_running_shows_is_raised_while_iterating():
    sources = [Dataset.range(3), Dataset.range(3).map(lambda x: (x, x))]
    with pytest.raises(SpecError, match="all datasets must have the same structure"):
        list(mix(sources, choices(0, 1)).batch(2))


def test_the_same_dataset_may_stand_twice():
    numbers = Dataset.range(9).shuffle(9, seed=1)
    got = check_operator(lambda: mix([Dataset.range(4), Dataset.range(4)], choices(0, 1, 1)), ints(0, 0, 1))
    got = list(mix([numbers, numbers], choices(0, 1).repeat()))
    assert sorted(got[::2]) == sorted(got[1::2]) == list(range(9))
    assert got[::2] != got[1::2]


@pytest.mark.parametrize(
    ("datasets", "picks", "error", "words"),
    [
        ([], choices(0), ValueError, "datasets must contain at least one"),
        (Dataset.range(3), choices(0), TypeError, "datasets must be a list"),
        (3, choices(0), TypeError, "datasets must be a list"),
        ([Dataset.range(3), 4], choices(0), TypeError, r"datasets\[1\] must be a Dataset, got 4"),
        ([Dataset.range(3)], [0, 1], TypeError, "choice_dataset must be a Dataset"),
        ([Dataset.range(3)], Dataset.range(3, output_type=np.int32), TypeError, "int64 scalars"),
        ([Dataset.range(3)], Dataset.range(3).batch(1), TypeError, "int64 scalars"),
        ([Dataset.range(3)], Dataset.zip((Dataset.range(3),)), TypeError, "int64 scalars"),
        ([Dataset.range(3), Dataset.from_tensors("a")], choices(0), TypeError, "the same type"),
        ([Dataset.range(3), Dataset.from_tensors((1, 2))], choices(0), TypeError, "the same structure"),
    ],
)
def test_refuses_what_does_not_go_together(datasets, picks, error, words):
    with pytest.raises(error, match=rf"choose_from_datasets\(\): .*{words}"):
        mix(datasets, picks)


@pytest.mark.parametrize("stop", [None, 1, "yes"])
def test_refuses_a_stop_that_is_no_bool(stop):
    with pytest.raises(TypeError, match="stop_on_empty_dataset must be True or False"):
        mix(three(), choices(0), stop_on_empty_dataset=stop)

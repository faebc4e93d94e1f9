"""bucket_by_sequence_length and group_by_window by ``len`` where nobody can notice when it is called.

Then many elements are sorted at once. What comes out, in which order, and where a state goes on must be what a function
of the user's gives, which is called for one element after the other.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor, SparseTensor, StateError, TensorSpec
from dataset.plan.packed import RaggedColumn
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.resuming import check_every_place, examples, to_json


def one_by_one(element):
    """What no proof goes through, so that it counts as a function that can be noticed."""
    return sum([len(element)])


def ragged(lengths, dtype=np.int64):
    """Rows that can be told apart."""
    return Dataset.from_tensor_slices(ragged_of(lengths, dtype))


def ragged_of(lengths, dtype=np.int64):
    return RaggedTensor.from_rows([np.arange(length) + 100 * i for i, length in enumerate(lengths)], dtype)


def ragged_of_pairs(lengths):
    return Dataset.from_tensor_slices(
        RaggedTensor.from_rows([np.full((length, 2), i) for i, length in enumerate(lengths)], np.int32)
    )


def ragged_twice(lengths):
    inner = RaggedTensor.from_rows([[i] * (i % 3) for i in range(sum(lengths))], np.int64)
    return Dataset.from_tensor_slices(RaggedTensor(inner, np.cumsum([0, *lengths])))


def text(lengths):
    return Dataset.from_tensor_slices([b"%d" % (i % 10) * length for i, length in enumerate(lengths)])


def shuffled(lengths):
    return ragged(lengths).shuffle(7, seed=1)


def several(lengths):
    """Batches of ragged rows, so that all components are ragged."""
    return ragged(lengths).ragged_batch(3)


def parts(lengths):
    """Dicts, whose length is the number of their parts."""
    return Dataset.from_tensor_slices({"a": ragged_of(lengths), "b": np.arange(len(lengths))})


def skipped(lengths):
    return ragged(lengths).skip(2).shard(2, 1)


def rows(lengths):
    return Dataset.from_tensor_slices(np.arange(3 * len(lengths)).reshape(-1, 3))


def sparse(lengths):
    count = max(len(lengths), 1)
    cells = np.arange(count)
    return Dataset.from_tensor_slices(SparseTensor(np.stack([cells, cells % 4], 1), cells, [count, 4]))


def numbers(lengths):
    return Dataset.from_tensor_slices(np.arange(len(lengths)))


SOURCES = [ragged, ragged_of_pairs, ragged_twice, text, shuffled, several, parts, skipped, rows, sparse, numbers]
LENGTHS = st.lists(st.integers(0, 9) | st.sampled_from([200, 400]), min_size=1, max_size=80)


@st.composite
def buckets(draw):
    boundaries = sorted(draw(st.sets(st.integers(-1, 12) | st.sampled_from([250, 2**70]), max_size=4)))
    sizes = draw(st.lists(st.integers(1, 12), min_size=len(boundaries) + 1, max_size=len(boundaries) + 1))
    return boundaries, sizes


def both(make):
    """The outcomes with a function of the user's, and with ``len``."""
    return outcomes(iter(make(one_by_one))), outcomes(iter(make(len)))


def without_name(found):
    """Outcomes whose errors do not say how the function is called."""
    return [str(one).replace("one_by_one", "len") if isinstance(one, Exception) else one for one in found]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
@given(lengths=LENGTHS, buckets=buckets(), drop_remainder=st.booleans())
@examples(25)
def test_batches_are_those_of_elements_that_come_one_by_one(source, lengths, buckets, drop_remainder):
    def make(function):
        return source(lengths).bucket_by_sequence_length(
            function, *buckets, no_padding=True, drop_remainder=drop_remainder
        )

    expected, found = both(make)
    assert_elements_equal(without_name(found), without_name(expected))


@pytest.mark.parametrize("source", [ragged, text, shuffled, rows], ids=lambda source: source.__name__)
@given(lengths=LENGTHS, size=st.integers(1, 20) | st.just(10**15))
@examples(20)
def test_windows_are_those_of_elements_that_come_one_by_one(source, lengths, size):
    def make(function):
        return source(lengths).group_by_window(function, lambda key, window: window.map(lambda x: (key, x)), size)

    expected, found = both(make)
    assert_elements_equal(found, expected)


@pytest.mark.parametrize("source", [ragged, ragged_of_pairs, text, shuffled], ids=lambda source: source.__name__)
@given(lengths=LENGTHS, buckets=buckets(), data=st.data())
@examples(12)
def test_goes_on_from_every_place(source, lengths, buckets, data):
    def make():
        return source(lengths).bucket_by_sequence_length(len, *buckets, no_padding=True)

    places = data.draw(st.sets(st.integers(0, len(lengths)), max_size=5))
    check_every_place(make, places)


def test_thousands_of_elements():
    lengths = np.random.default_rng(0).geometric(0.05, 9001).tolist()
    for source, sizes in ((ragged, [64, 3, 1000]), (shuffled, [1, 2, 3]), (text, [50, 50, 5000])):

        def make(function=len, source=source, sizes=sizes):
            return source(lengths).bucket_by_sequence_length(function, [12, 30], sizes, no_padding=True)

        assert_elements_equal(*both(make))
        check_every_place(make, [0, 13])


def test_keys_that_need_more_than_16_bits():
    lengths = [40_000, 1, 70_000, 40_000, 1, 70_000, 2]

    def make(function):
        return ragged(lengths).group_by_window(function, lambda key, window: window.ragged_batch(9), 2)

    expected, found = both(make)
    assert [batch.row_splits[1] for batch in found] == [40_000, 1, 70_000, 2]
    assert_elements_equal(found, expected)


def test_an_element_that_is_too_long_fails_in_its_place():
    lengths = [1, 2, 9, 3, 1, 2, 9, 9, 4, 4, 4, *[1, 3] * 20, 9]

    def make(function=len):
        return text(lengths).bucket_by_sequence_length(function, [3, 5], [2, 3, 1], pad_to_bucket_boundary=True)

    expected, found = both(make)
    assert_elements_equal(without_name(found), without_name(expected))
    errors = [one for one in found if isinstance(one, Exception)]
    assert [error.__notes__[0].rpartition(" ")[2] for error in errors] == ["2", "6", "7", "51"]
    assert all("must be below the last boundary, got 9" in str(error) for error in errors)
    assert found[1] is errors[0]  # the first batch, of elements 0 and 1, came before
    check_operator(make, positions=12)


def test_after_failures_the_rest_comes():
    lengths = [9 if i % 7 == 3 else 1 + i % 2 for i in range(3000)]
    batches = text(lengths).bucket_by_sequence_length(len, [2, 3], [8, 8, 1], pad_to_bucket_boundary=True)
    found = outcomes(iter(batches))
    assert sum(isinstance(one, ValueError) for one in found) == lengths.count(9)
    assert sum(len(one) for one in found if not isinstance(one, Exception)) == 3000 - lengths.count(9)
    assert sum(len(batch) for batch in batches.ignore_errors()) == 3000 - lengths.count(9)


def test_a_state_does_not_grow_with_what_is_read_ahead():
    def size(count):
        iterator = iter(ragged([3, 4] * count).bucket_by_sequence_length(len, [4], [3, 3], no_padding=True))
        for _ in range(count // 3):
            next(iterator)
        return len(to_json(iterator.state_dict()))

    assert size(3000) < size(9) + 50


def test_states_do_not_disturb():
    def make():
        return ragged([1, 5, 2, 2, 7] * 60).bucket_by_sequence_length(len, [3], [4, 5], no_padding=True)

    expected = list(make())
    iterator, found = iter(make()), []
    while True:
        again = iter(make())
        again.load_state_dict(iterator.state_dict())
        assert_elements_equal([next(again, None)], [expected[len(found)] if len(found) < len(expected) else None])
        try:
            found.append(next(iterator))
        except StopIteration:
            break
    assert_elements_equal(found, expected)


def test_states_beside_a_prefetch():
    def make():
        dataset = ragged([1, 5, 2, 2, 7] * 100).bucket_by_sequence_length(len, [3], [4, 5], no_padding=True)
        return dataset.map(RaggedTensor.to_tensor).prefetch(3)

    check_every_place(make, [0, 1, 7, 60, 119, 120])


def test_batches_are_the_users_own():
    source = ragged_of([3, 5, 3, 5, 3, 3])
    dataset = Dataset.from_tensor_slices(source).bucket_by_sequence_length(len, [4], [2, 2], no_padding=True)
    first = list(dataset)
    for batch in first:
        assert not np.shares_memory(batch.values, source.values)
        batch.values[:] = -1
    assert sorted(x for batch in dataset for x in batch.values.tolist()) == sorted(source.values.tolist())


def test_a_batch_holds_no_other():
    for batch in ragged([3, 5] * 500, np.int16).bucket_by_sequence_length(len, [4], [2, 2], no_padding=True):
        owner = batch.values
        while owner.base is not None:
            owner = owner.base
        assert owner.nbytes <= 20


def test_a_generator_is_not_hurried():
    made = []

    def generate():
        for i in range(600):
            made.append(i)
            yield np.zeros(1 + i % 2 * 3)

    source = Dataset.from_generator(generate, output_signature=TensorSpec((None,), np.float64))
    iterator = iter(source.bucket_by_sequence_length(len, [3], [4, 40]))
    counts = []
    for _ in range(10):
        next(iterator)
        counts.append(len(made))
    assert counts == [7, 15, 23, 31, 39, 47, 55, 63, 71, 79]


def test_few_large_elements_are_read_ahead(monkeypatch):
    from dataset.runtime.state.held_elements import ElementsOperator

    asked = []

    def pull(self, n, pull=ElementsOperator.pull):
        asked.append(n)
        return pull(self, n)

    monkeypatch.setattr(ElementsOperator, "pull", pull)
    list(ragged([100_000] * 20).bucket_by_sequence_length(len, [3], [4, 4], no_padding=True))
    assert set(asked) == {1}
    asked.clear()
    list(ragged([100] * 20_000).bucket_by_sequence_length(len, [3], [4, 4], no_padding=True))
    assert max(asked) * 800 <= 1 << 20


@pytest.mark.parametrize(
    "damage",
    [
        {"splits": np.array([0, 3, 2, 4])},
        {"splits": np.array([0, 2, 9, 9])},
        {"splits": np.array([1, 2, 3, 4])},
        {"splits": np.array([0, 4])},
        {"splits": np.array([0.0, 1.0, 2.0, 4.0])},
        {"splits": None},
        {"packed": None},
        {"packed": np.zeros(3)},
    ],
    ids=str,
)
def test_rows_that_do_not_fit_in_a_state_are_refused(damage):
    rows = RaggedColumn(np.arange(4), np.array([0, 1, 2, 4]))
    saved = save_chunk(Chunk(LEAF, 3, [rows]))
    assert [row.tolist() for row in load_chunk(saved, lambda: None).rows()] == [[0], [1], [2, 3]]
    (column,) = saved["columns"]
    with pytest.raises(StateError, match="saved elements"):
        load_chunk({**saved, "columns": [{**column, **damage}]}, lambda: None)


@given(lengths=st.lists(st.integers(0, 5) | st.just(300), min_size=1, max_size=30), data=st.data())
@examples(50)
def test_rows_that_are_taken_are_those_at_the_indices(lengths, data):
    column = RaggedColumn(np.arange(sum(lengths)) * 2, np.cumsum([0, *lengths]))
    start = data.draw(st.integers(0, len(lengths) - 1))
    part = column[start:]
    indices = np.array(data.draw(st.lists(st.integers(0, len(part) - 1), max_size=20)), np.intp)
    for found, expected in ((part.taken(indices), part.chosen(indices)), (part.copy(), list(part))):
        assert_elements_equal(list(found), expected)
        assert not np.shares_memory(found.values, column.values)

"""bucket_by_sequence_length and group_by_window by ``len``, if the caller cannot observe when it is called.

Then many elements are sorted at once. The elements, their order and where a state resumes must be those of a user's
function, which is called for one element after the other.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError, StateError, TensorSpec
from dataset.plan.packed import RaggedColumn
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.parallel import pool
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.controllers import AlwaysInline
from support.op_cases import Resumable
from support.resuming import check_every_place, examples, to_json


def one_by_one(element):
    """No proof succeeds for this, so it counts as a function whose calls can be observed."""
    return sum([len(element)])


def ragged_of(lengths, dtype=np.int64):
    """Rows that can be told apart."""
    return RaggedTensor.from_rows([np.arange(length) + 100 * i for i, length in enumerate(lengths)], dtype)


def ragged(lengths):
    return Dataset.from_tensor_slices(ragged_of(lengths))


def text(lengths):
    return Dataset.from_tensor_slices([b"%d" % (i % 10) * length for i, length in enumerate(lengths)])


def ragged_twice(lengths):
    inner = RaggedTensor.from_rows([[i] * (i % 3) for i in range(sum(lengths))], np.int64)
    return Dataset.from_tensor_slices(RaggedTensor(inner, np.cumsum([0, *lengths])))


def sparse(lengths):
    count = max(len(lengths), 1)
    cells = np.arange(count)
    return Dataset.from_tensor_slices(SparseTensor(np.stack([cells, cells % 4], 1), cells, [count, 4]))


SOURCES = {
    "ragged": ragged,
    "ragged twice": ragged_twice,
    "text": text,
    "shuffled": lambda lengths: ragged(lengths).shuffle(7, seed=1),
    "batches of ragged rows": lambda lengths: ragged(lengths).ragged_batch(3),
    "dicts": lambda lengths: Dataset.from_tensor_slices({"a": ragged_of(lengths), "b": np.arange(len(lengths))}),
    "skipped": lambda lengths: ragged(lengths).skip(2).shard(2, 1),
    "rows": lambda lengths: Dataset.from_tensor_slices(np.arange(3 * len(lengths)).reshape(-1, 3)),
    "sparse": sparse,
}
LENGTHS = st.lists(st.integers(0, 9) | st.sampled_from([200, 400]), min_size=1, max_size=80)


@st.composite
def buckets(draw):
    boundaries = sorted(draw(st.sets(st.integers(-1, 12) | st.sampled_from([250, 2**70]), max_size=4)))
    sizes = draw(st.lists(st.integers(1, 12), min_size=len(boundaries) + 1, max_size=len(boundaries) + 1))
    return boundaries, sizes


def both(make):
    """Check that ``len`` and a user's function have the same outcomes but for its name. Return those of ``len``."""
    expected, found = outcomes(iter(make(one_by_one))), outcomes(iter(make(len)))

    def without_name(one):
        return str(one).replace("one_by_one", "len") if isinstance(one, Exception) else one

    assert_elements_equal(list(map(without_name, found)), list(map(without_name, expected)))
    return found


@pytest.mark.parametrize("source", SOURCES)
@given(lengths=LENGTHS, buckets=buckets(), drop_remainder=st.booleans(), places=st.sets(st.integers(0, 80), max_size=3))
@examples(20)
def test_batches_are_those_of_elements_one_by_one_and_resume(source, lengths, buckets, drop_remainder, places):
    def make(function=len):
        return SOURCES[source](lengths).bucket_by_sequence_length(
            function, *buckets, no_padding=True, drop_remainder=drop_remainder
        )

    assert_elements_equal(check_every_place(make, places), both(make))


@pytest.mark.parametrize("source", ["ragged", "text", "shuffled", "rows"])
@given(lengths=LENGTHS, size=st.integers(1, 20) | st.just(10**15))
@examples(20)
def test_windows_are_those_of_elements_one_by_one(source, lengths, size):
    both(
        lambda function: SOURCES[source](lengths).group_by_window(
            function, lambda key, window: window.map(lambda x: (key, x)), size
        )
    )


@pytest.mark.parametrize(
    ("source", "sizes"), [("ragged", [64, 3, 1000]), ("shuffled", [9, 20, 30]), ("text", [50, 50, 2000])]
)
def test_thousands_of_elements(source, sizes):
    lengths = np.random.default_rng(0).geometric(0.05, 4501).tolist()

    def make(function=len):
        return SOURCES[source](lengths).bucket_by_sequence_length(function, [12, 30], sizes, no_padding=True)

    assert_elements_equal(check_every_place(make, [0, 13]), both(make))
    check_every_place(lambda: make().prefetch(3), [7])


def test_keys_that_need_more_than_16_bits():
    lengths = [40_000, 1, 70_000, 40_000, 1, 70_000, 2]
    found = both(
        lambda function: ragged(lengths).group_by_window(function, lambda key, window: window.ragged_batch(9), 2)
    )
    assert [batch.row_splits[1] for batch in found] == [40_000, 1, 70_000, 2]


def test_an_element_that_is_too_long_fails_in_its_place():
    lengths = [1, 2, 9, 3, 1, 2, 9, 9, 4, 4, 4, *[1, 3] * 20, 9]

    def make(function=len):
        return text(lengths).bucket_by_sequence_length(function, [3, 5], [2, 3, 1], pad_to_bucket_boundary=True)

    errors = [one for one in both(make) if isinstance(one, Exception)]
    assert [error.__notes__[0].rpartition(" ")[2] for error in errors] == ["2", "6", "7", "51"]
    assert all("must be below the last boundary, got 9" in str(error) for error in errors)
    check_operator(make, positions=12)


def test_a_state_does_not_grow_with_what_is_read_ahead():
    def size(count):
        iterator = iter(ragged([3, 4] * count).bucket_by_sequence_length(len, [4], [3, 3], no_padding=True))
        for _ in range(count // 3):
            next(iterator)
        return len(to_json(iterator.state_dict()))

    assert size(3000) < size(9) + 50


def test_batches_belong_to_the_user_and_hold_no_other():
    source = ragged_of([3, 5] * 100, np.int16)
    for batch in Dataset.from_tensor_slices(source).bucket_by_sequence_length(len, [4], [2, 2], no_padding=True):
        owner = batch.values
        while owner.base is not None:
            owner = owner.base
        assert owner.nbytes <= 20
        assert not np.shares_memory(batch.values, source.values)
        assert batch.values.flags.writeable


@pytest.mark.parametrize(
    "damage",
    [
        {"splits": np.array([0, 3, 2, 4])},
        {"splits": np.array([0, 2, 9, 9])},
        {"splits": np.array([1, 2, 3, 4])},
        {"splits": np.array([0.0, 1.0, 2.0, 4.0])},
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


# Elements that a parallel map has computed ----------------------------------------------------------------------------


def _row(x):
    if x == 17:
        raise ValueError("17")
    return np.full(x * 7 % 11, x), x


def _lengths_of_rows(rows, x):
    return len(rows)


def _lengths_in_steps(rows, x):
    return sum([len(rows)])


@pytest.mark.parametrize("length_func", [_lengths_of_rows, _lengths_in_steps])
@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("pad_to_bucket_boundary", [False, True])
def test_elements_that_are_ready_are_sorted_like_others(length_func, inline, pad_to_bucket_boundary, monkeypatch):
    if inline:
        monkeypatch.setattr(pool, "Controller", AlwaysInline)

    def make(calls):
        rows = Dataset.range(90).map(_row, num_parallel_calls=calls)
        return rows.bucket_by_sequence_length(
            length_func,
            [3, 6, 10],
            [4, 3, 2, 5],
            padded_shapes=([None], []),
            pad_to_bucket_boundary=pad_to_bucket_boundary,
        )

    check_operator(lambda: make(2), outcomes(iter(make(None))), positions=25)


# Elements of a generator ----------------------------------------------------------------------------------------------


def _arrays(lengths):
    return (np.arange(length) + i for i, length in enumerate(lengths))


def _one_buffer(lengths):
    buffer = np.zeros(max(lengths), np.int64)
    for i, length in enumerate(lengths):
        buffer += i
        yield buffer[:length]


def _of_several_kinds(lengths):
    kinds = [lambda n: [n] * n, np.zeros, lambda n: np.zeros(n, np.int64), lambda n: np.ones(n, np.int64)]
    return (kinds[i % 4](length) for i, length in enumerate(lengths))


def _ending(lengths):
    yield from _arrays(lengths)
    raise ValueError("the end")


INTS = TensorSpec([None], np.int64)
GENERATED = {
    "arrays": _arrays,
    "one buffer": _one_buffer,
    "lists and arrays": lambda lengths: ([i] * n if i % 3 else np.full(n, i) for i, n in enumerate(lengths)),
    "text": lambda lengths: ("ä" * length if i % 3 else b"a" * length for i, length in enumerate(lengths)),
    "of several kinds": _of_several_kinds,
    "dicts": lambda lengths: ({"a": [i] * length, "b": i} for i, length in enumerate(lengths)),
    "failing": lambda lengths: Resumable(ValueError(str(n)) if n % 4 == 3 else [i] * n for i, n in enumerate(lengths)),
    "ending": _ending,
}
SHAPES = {"text": [], "dicts": {"a": [None], "b": []}}
WITHOUT_SIGNATURE = ["arrays", "lists and arrays", "text", "dicts", "failing", "ending"]
WITH_SIGNATURE = ["arrays", "one buffer", "lists and arrays", "of several kinds", "ending"]


@pytest.mark.parametrize(
    ("kind", "signature"), [*((kind, None) for kind in WITHOUT_SIGNATURE), *((kind, INTS) for kind in WITH_SIGNATURE)]
)
@given(lengths=LENGTHS, buckets=buckets(), places=st.sets(st.integers(0, 80), max_size=3))
@examples(20)
def test_values_of_a_generator_are_those_of_elements_one_by_one_and_resume(kind, signature, lengths, buckets, places):
    def make(function=len):
        values = Dataset.from_generator(GENERATED[kind], args=(lengths,), output_signature=signature)
        shapes = None if signature else SHAPES.get(kind, [None])
        return values.bucket_by_sequence_length(function, *buckets, padded_shapes=shapes)

    assert_elements_equal(check_every_place(make, places), both(make))


def test_a_generator_is_run_on_if_the_function_changes():
    """Its lengths are looked up only as long as its global name ``len`` is the built-in function."""
    namespace = {}
    exec("def length_func(tokens): return len(tokens)", namespace)
    dataset = Dataset.from_generator(lambda: _arrays([2, 5] * 50), output_signature=INTS)
    iterator = iter(dataset.bucket_by_sequence_length(namespace["length_func"], [3], [4, 5]))
    assert [len(next(iterator)) for _ in range(3)] == [4, 5, 4]
    namespace["len"] = lambda tokens: 7
    assert [len(next(iterator)) for _ in range(3)] == [5, 5, 5]
    namespace["len"] = lambda tokens: 2.5
    with pytest.raises(SpecError, match=r"must return an int, got 2\.5"):
        next(iterator)

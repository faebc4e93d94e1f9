"""pack: rows of several sequences, compared with a slow packing in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, SpecError, StateError, TensorSpec
from dataset.ops.pack.best_fit import best_fit_decreasing
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at
from support.resuming import check_every_place, examples, resealed
from support.states import rest_of, state_after

LENGTHS = st.lists(st.integers(0, 12), max_size=30)
TOO_LONG = ("split", "truncate", "drop")


def sequences(lengths):
    """Return sequences of these lengths, whose tokens tell where they come from, with a label and a name each."""
    starts = np.cumsum([0, *lengths])
    elements = [
        {
            "tokens": np.arange(start, start + length) + 1,
            "types": np.full((length, 2), number, np.int8),
            "label": np.float32(number),
            "name": b"%d" % number,
        }
        for number, (start, length) in enumerate(zip(starts, lengths, strict=False))
    ]
    kinds = {
        "tokens": ([None], np.int64),
        "types": ([None, 2], np.int8),
        "label": ([], np.float32),
        "name": ([], bytes),
    }
    spec = {name: TensorSpec(*kind) for name, kind in kinds.items()}
    return Dataset.from_generator(lambda: iter(elements), output_signature=spec)


def packed(lengths, capacity, *, window=1000, too_long="split", max_sequences=None):
    """Return the rows of a slow packing: lists of (sequence, first token, number of tokens)."""
    rows = []
    for start in range(0, len(lengths), window):
        pieces = []
        for number, length in enumerate(lengths[start : start + window], start):
            if too_long == "split":
                pieces += [(number, at, min(capacity, length - at)) for at in range(0, length, capacity)]
            elif length and (length <= capacity or too_long == "truncate"):
                pieces.append((number, 0, min(length, capacity)))
        bins = []
        for piece in sorted(pieces, key=lambda piece: -piece[2]):
            rooms = [(capacity - sum(size for *_, size in held), place) for place, held in enumerate(bins)]
            fits = [
                (room, place)
                for room, place in rooms
                if room >= piece[2] and (max_sequences is None or len(bins[place]) < max_sequences)
            ]
            if fits:
                bins[min(fits)[1]].append(piece)
            else:
                bins.append([piece])
        rows += sorted(map(sorted, bins))
    return rows


@examples(80)
@given(LENGTHS, st.integers(1, 9), st.integers(1, 12), st.sampled_from(TOO_LONG), st.sampled_from([None, 1, 2, 3]))
def test_packs_as_a_slow_packing_does(lengths, capacity, window, too_long, max_sequences):
    dataset = sequences(lengths)
    starts = np.cumsum([0, *lengths])
    expected = []
    for row in packed(lengths, capacity, window=window, too_long=too_long, max_sequences=max_sequences):
        sizes = [size for *_, size in row]
        gap = capacity - sum(sizes)
        tokens = [starts[number] + at + place + 1 for number, at, size in row for place in range(size)]
        expected.append(
            {
                "tokens": np.array(tokens + [-1] * gap),
                "types": np.repeat(
                    np.array([[number] * 2 for number, *_ in row] + [[0, 0]], np.int8), [*sizes, gap], axis=0
                ),
                "label": np.array([number for number, *_ in row], np.float32),
                "name": np.array([b"%d" % number for number, *_ in row], object),
                "segment_ids": np.repeat(np.array([*range(1, len(row) + 1), 0], np.int32), [*sizes, gap]),
                "positions": np.array([i for size in sizes for i in range(size)] + [0] * gap, np.int32),
            }
        )
    settings = {"window": window, "too_long": too_long, "max_sequences": max_sequences, "pad": {"tokens": -1}}
    assert_elements_equal(list(dataset.pack(capacity, **settings)), expected)
    with_offsets = list(dataset.pack(capacity, boundaries="cu_seqlens", **settings))
    with_lengths = list(dataset.pack(capacity, boundaries="lengths", **settings))
    for row, offsets, counted in zip(expected, with_offsets, with_lengths, strict=True):
        sizes = np.bincount(row["segment_ids"], minlength=1)[1:]
        assert counted["lengths"].tolist() == sizes.tolist()
        ends = np.cumsum([0, *sizes]).tolist()
        assert offsets["cu_seqlens"].tolist() == ends + [capacity] * (ends[-1] < capacity)
        assert offsets["cu_seqlens"].dtype == counted["lengths"].dtype == np.int32
        assert_elements_equal([offsets["positions"], counted["tokens"]], [row["positions"], row["tokens"]])


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(50, 64), st.sampled_from([None, 1, 2, 5]))
def test_no_row_of_the_plan_is_too_full(lengths, capacity, sequences_max):
    rows = best_fit_decreasing(np.array(lengths), capacity, sequences_max)
    assert np.bincount(rows, lengths).max() <= capacity
    assert sequences_max is None or np.bincount(rows).max() <= sequences_max
    assert sorted(set(rows.tolist())) == list(range(rows.max() + 1))
    _, first = np.unique(rows, return_index=True)
    assert (np.diff(first) > 0).all()


@pytest.mark.parametrize("boundaries", ["segment_ids", "cu_seqlens", "lengths"])
@pytest.mark.parametrize("shuffle", [{}, {"shuffle": True, "seed": 3}])
def test_keeps_the_contract_of_an_op(boundaries, shuffle):
    lengths = [3, 0, 5, 1, 7, 2, 2, 9, 4, 1, 1, 6]
    check_operator(lambda: sequences(lengths).pack(6, window=5, boundaries=boundaries, **shuffle).repeat(2))


def test_adds_to_tuples_and_makes_one_of_an_array():
    spec = TensorSpec((None,), np.int64)
    arrays = Dataset.from_generator(lambda: [np.arange(2), np.arange(3)], output_signature=spec)
    rows = arrays.pack(4)
    assert rows.element_spec == (TensorSpec((4,), np.int64), *[TensorSpec((4,), np.int32)] * 2)
    pairs = Dataset.zip(arrays, arrays).pack(4, boundaries="lengths")
    assert [part.tolist() for part in next(iter(pairs))] == [[0, 1, 0, 0], [0, 1, 0, 0], [2]]


def test_shuffles_the_rows_of_a_window_anew_in_each_epoch():
    dataset = Dataset.range(24).map(lambda n: np.full(3, n)).pack(4, window=8, shuffle=True, seed=1)
    epochs = [[int(tokens[0]) for tokens, *_ in dataset] for _ in range(3)]
    for epoch in epochs:
        assert [sorted(epoch[start : start + 8]) for start in (0, 8, 16)] == [
            list(range(start, start + 8)) for start in (0, 8, 16)
        ]
        assert [n - 8 for n in epoch[8:16]] != epoch[:8]  # each window has its own order
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.parametrize(
    "calls", [{}, {"num_parallel_calls": 2}, {"num_parallel_calls": 1, "deterministic": False}], ids=str
)
def test_raises_a_failure_before_the_rows_of_its_window_and_goes_on(calls):
    rows = Dataset.range(8).map(fail_at(5)).map(lambda n: np.full(2, n), **calls).pack(4, window=4)
    found = check_operator(lambda: rows)
    tokens = [str(row) if isinstance(row, Exception) else row[0].tolist() for row in found]
    assert tokens == [[0, 0, 1, 1], [2, 2, 3, 3], "bad 5", [4, 4, 6, 6], [7, 7, 0, 0]]
    assert "map" in found[2].__notes__[0]


def test_after_a_resume_an_error_names_the_element_of_the_input():
    found = check_every_place(lambda: sequences([2, 4, 1, 3, 5]).pack(4, window=2, too_long="error"), range(5))
    assert "element 4 has 5 tokens, and a row only 4" in str(found[-1])


def test_token_features_must_agree():
    def element(n):
        return {"a": np.zeros(n), "b": np.zeros(n + (n == 2))}

    found = outcomes(iter(Dataset.range(1, 4).map(element).pack(4)))
    assert isinstance(found[0], SpecError)
    assert "in element 1 component 'a' has shape (2,), component 'b' has shape (3,)" in str(found[0])
    assert [row["a"].shape for row in found[1:]] == [(4,)]

    mixed = Dataset.range(1, 4).map(lambda n: np.zeros(n, np.int32 if n == 2 else np.int64))
    assert "one dtype" in str(outcomes(iter(mixed.pack(4, window=2)))[0])


def test_takes_a_window_and_no_more():
    check_laziness(lambda numbers: numbers.map(lambda n: np.full(4, n)).pack(4, window=10), lambda k: 10 * -(-k // 10))


def test_a_state_holds_no_elements():
    rows = Dataset.range(10_000).map(lambda n: np.full(100, n)).pack(128, window=5000)
    assert len(str(state_after(rows, 10))) < 3000


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
@pytest.mark.parametrize("is_batched", [False, True])
def test_processes_get_whole_windows(world_size, is_batched):
    """Each process packs its own windows, and no process reads the elements of another."""
    lengths = [3, 1, 5, 1, 7, 2, 2, 9, 4, 1, 1, 6, 2, 2, 2, 8, 1]
    seen, found = [], []

    def element(n):
        seen.append(int(n))
        return np.full(lengths[n], n)

    rows = Dataset.range(17).map(element).pack(6, window=3)
    whole = [tokens.tolist() for tokens, *_ in rows]
    seen.clear()
    for rank in range(world_size):
        share = rows.shard_by_process(rank, world_size, remainder="keep")
        found += [tokens.tolist() for tokens, *_ in (share.batch(2).unbatch() if is_batched else share)]
    assert sorted(found) == sorted(whole)
    assert sorted(seen) == list(range(17))


def test_endless_rows_are_dealt_by_windows():
    seen = []

    def element(n):
        seen.append(int(n))
        return np.full(4, n)

    share = Dataset.range(12).map(element).repeat().pack(4, window=3).shard_by_process(1, 2)
    assert [int(tokens[0]) for tokens, *_ in share.take(9)] == [3, 4, 5, 9, 10, 11, 3, 4, 5]
    assert set(seen) <= {3, 4, 5, 9, 10, 11}


def test_a_damaged_state_is_refused():
    rows = Dataset.range(9).map(lambda n: np.full(2, n)).filter(lambda _: True).pack(4, window=3)
    state = state_after(rows, 1)
    operator = state["operator"]
    for change in ({"at": -1}, *({"own": {**operator["own"], name: -1}} for name in ("given", "window"))):
        with pytest.raises(StateError):
            iter(rows).load_state_dict(resealed(state, operator={**operator, **change}))


@pytest.mark.parametrize("op", ["pack", "batch_by_tokens"])
def test_a_window_that_changes_before_a_resume_is_an_error(op):
    def build(weights=((0, [1, 1]),), longest=7):
        sources = [
            Dataset.range(start, start + 100).map(lambda x: np.full(int(x) % longest + 1, x)) for start in (0, 1000)
        ]
        mixed = Dataset.sample_from_datasets(sources, list(weights), seed=1)
        rows = mixed.pack(10, window=20) if op == "pack" else mixed.batch_by_tokens(10, window=20, seed=2)
        return rows.ignore_errors()  # which must not hide it

    state = state_after(build(), 3)
    assert_elements_equal(rest_of(build(), state), list(build())[3:])
    for changed in (build([(0, [1, 1]), (10, [1, 9])]), build(longest=6)):
        broken = iter(changed)
        broken.load_state_dict(state)
        for _ in range(2):
            with pytest.raises(StateError, match="window 0: its 20 elements from element 0 on have other lengths"):
                next(broken)
    assert len(rest_of(build([(0, [1, 1]), (20, [1, 9])]), state)) > 20

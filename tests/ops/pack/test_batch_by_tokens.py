"""batch_by_tokens: batches of sequences by their number of tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SpecError, TensorSpec
from dataset.testing import check_laziness, check_operator, outcomes
from support.resuming import examples

LENGTHS = st.lists(st.integers(0, 8), max_size=30)


def numbered(lengths):
    """Return sequences of these lengths, each of its number, and the number."""
    elements = [{"n": np.int64(n), "t": np.full(length, n)} for n, length in enumerate(lengths)]
    spec = {"n": TensorSpec((), np.int64), "t": TensorSpec((None,), np.int64)}
    return Dataset.from_generator(lambda: iter(elements), output_signature=spec)


@examples(60)
@given(LENGTHS, st.integers(1, 20), st.sampled_from([None, 4, (2, 5, 8)]), st.integers(1, 3), st.booleans())
def test_each_sequence_is_in_one_batch_that_is_not_too_large(lengths, window, pad_to, processes, shuffle):
    settings = {"window": window, "pad_to": pad_to, "across_processes": processes, "shuffle": shuffle, "pad": -1}
    batches = list(numbered(lengths).batch_by_tokens(16, **settings))
    seen = []
    for batch in batches:
        assert batch["t"].size <= 16
        width = batch["t"].shape[1]
        assert pad_to is None or (width % 4 == 0 if pad_to == 4 else width in pad_to)
        for n, row in zip(batch["n"].tolist(), batch["t"].tolist(), strict=True):
            assert row == [n] * lengths[n] + [-1] * (width - lengths[n])
            seen.append(n)
    assert sorted(seen) == list(range(len(lengths)))
    assert [n // window for n in seen] == sorted(n // window for n in seen)


@examples(40)
@given(LENGTHS, st.integers(1, 20), st.sampled_from(["ragged", "packed"]), st.integers(1, 3))
def test_layouts_without_padding(lengths, window, layout, processes):
    batches = list(
        numbered(lengths).batch_by_tokens(8, window=window, layout=layout, across_processes=processes, seed=1)
    )
    seen = []
    for batch in batches:
        if layout == "ragged":
            assert isinstance(batch["t"], RaggedTensor)
            values, splits = batch["t"].flat_values, batch["t"].row_splits
        else:
            values, splits = batch["t"], batch["cu_seqlens"]
            assert batch["positions"].tolist() == [i for size in np.diff(splits) for i in range(size)]
        assert len(values) <= 8
        assert values.tolist() == [n for n in batch["n"].tolist() for _ in range(lengths[n])]
        assert np.diff(splits).tolist() == [lengths[n] for n in batch["n"].tolist()]
        seen += batch["n"].tolist()
    expected = range(len(lengths)) if layout == "ragged" else np.flatnonzero(lengths)
    assert sorted(seen) == list(expected)


@pytest.mark.parametrize("layout", ["padded", "ragged", "packed"])
@pytest.mark.parametrize("more", [{"shuffle": False}, {"seed": 3}, {"seed": 1, "across_processes": 2, "length": len}])
def test_keeps_the_contract_of_an_op(layout, more):
    lengths = [3, 1, 5, 1, 7, 2, 2, 8, 4, 1, 1, 6]
    rows = numbered(lengths).select("t") if "length" in more else numbered(lengths)
    check_operator(lambda: rows.batch_by_tokens(9, window=5, layout=layout, **more).repeat(2))


def test_specs():
    dataset = Dataset.from_generator(lambda: iter(()), output_signature=TensorSpec((None, 2), np.int8))
    assert dataset.batch_by_tokens(9).element_spec == TensorSpec((None, None, 2), np.int8)
    assert dataset.batch_by_tokens(9, layout="ragged").element_spec == RaggedTensorSpec((None, None, 2), np.int8, 1)
    counts = TensorSpec((None,), np.int32)
    packed = dataset.batch_by_tokens(9, layout="packed").element_spec
    assert packed == (TensorSpec((None, 2), np.int8), counts, counts)


def test_a_length_function_decides():
    pairs = Dataset.range(8).map(lambda n: (np.full(n, n), np.full(8 - n, n)))
    for source, target in pairs.batch_by_tokens(16, length=lambda a, b: max(len(a), len(b))):
        assert source.shape[0] * max(source.shape[1], target.shape[1]) <= 16
    found = outcomes(iter(Dataset.range(3).map(np.zeros).batch_by_tokens(4, length=lambda a: 4 // len(a))))
    assert isinstance(found[0], ZeroDivisionError)
    assert "element 0" in found[0].__notes__[0]
    assert sum(len(batch) for batch in found[1:]) == 2


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
def test_processes_get_equally_many_batches_of_similar_size(world_size):
    lengths = np.random.default_rng(3).integers(1, 200, 3000)
    made = Dataset.range(3000).map(lambda n: np.full(lengths[n], n))
    batches = made.batch_by_tokens(4096, window=1000, seed=1, across_processes=world_size)
    shares = [list(batches.shard_by_process(rank, world_size)) for rank in range(world_size)]
    assert len({len(share) for share in shares}) == 1
    seen = [int(row.max()) for share in shares for batch in share for row in batch]
    assert sorted(seen) == list(range(3000))
    sizes = np.array([[batch.size for batch in share] for share in shares])
    spreads = (sizes.max(axis=0) - sizes.min(axis=0)) / sizes.max(axis=0)
    assert spreads.mean() < 0.05
    totals = sizes.sum(axis=1)
    assert totals.max() / totals.min() < 1.02


def test_batches_come_in_a_new_order_in_each_epoch_and_window():
    dataset = numbered([1] * 64).batch_by_tokens(1, window=32, seed=1)
    epochs = [[int(batch["n"][0]) for batch in dataset] for _ in range(2)]
    assert epochs[0] != epochs[1]
    assert epochs[0][:32] != [n - 32 for n in epochs[0][32:]]


def test_a_sequence_that_does_not_fit_is_an_error():
    found = outcomes(iter(numbered([3, 9, 2]).batch_by_tokens(8)))
    assert "element 1 has 9 tokens, and a batch can have from 0 to 8" in str(found[0])
    found = outcomes(iter(numbered([3, 9, 2]).batch_by_tokens(80, pad_to=[4, 8])))
    assert [type(outcome) for outcome in found] == [ValueError, dict]
    found = outcomes(iter(numbered([3, 5, 2]).batch_by_tokens(6, pad_to=4, shuffle=False)))
    assert "element 1 has 5 tokens, and a batch can have from 0 to 6 after padding" in str(found[0])
    assert [batch["t"].shape for batch in found[1:]] == [(1, 4), (1, 4)]


def test_a_batch_that_cannot_be_made_is_one_error():
    def build():
        dataset = Dataset.range(9).map(lambda n: np.zeros(3, "i4" if n == 2 else "i8"))
        return dataset.batch_by_tokens(6, window=8, shuffle=False)

    found = check_operator(build)
    assert [type(outcome) for outcome in found] == [np.ndarray, SpecError, *[np.ndarray] * 3]


def test_takes_a_window_and_no_more():
    def transform(numbers):
        return numbers.map(lambda n: np.zeros(4)).batch_by_tokens(8, window=10, shuffle=False)

    check_laziness(transform, lambda k: 10 * -(-k // 5))

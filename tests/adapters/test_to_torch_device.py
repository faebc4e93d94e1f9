"""Tests of to_torch(device=...): the devices of the tensors, and the safety of copies to CUDA.

The copies are also tested without CUDA, with a simulated card that copies as late as allowed to expose unsafe code.
"""

from __future__ import annotations

import contextlib

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from dataset import Dataset, RaggedTensor, SparseTensor
from dataset.adapters.torch.device import Card, Target
from dataset.adapters.torch.iterable import TorchIterableDataset
from dataset.testing import no_leaks, outcomes
from support.op_cases import fail_at
from support.states import rest_of, state_after

HAS_CUDA = torch.cuda.is_available()
needs_cuda = [
    pytest.mark.explore,
    pytest.mark.cuda,
    pytest.mark.skipif(not HAS_CUDA, reason="torch finds no CUDA device here"),
]
without_cuda = pytest.mark.skipif(HAS_CUDA, reason="it is about machines without CUDA")


@pytest.mark.parametrize("device", ["meta", torch.device("meta")])
def test_other_devices_take_a_plain_copy(device):
    dataset = Dataset.from_tensor_slices({"x": np.zeros((4, 2)), "t": ["a", "b", "c", "d"]}).batch(2)
    batches = list(dataset.to_torch(device=device))
    assert [(batch["x"].device.type, tuple(batch["x"].shape), batch["t"]) for batch in batches] == [
        ("meta", (2, 2), [b"a", b"b"]),
        ("meta", (2, 2), [b"c", b"d"]),
    ]


def test_an_invalid_device_is_refused_at_the_call():
    for device, kind in (("nothing", ValueError), (3.5, TypeError)):
        with pytest.raises(kind, match=r"to_torch\(\): device="):
            Dataset.range(3).to_torch(device=device)


@without_cuda
def test_without_cuda_its_device_is_refused_and_pinning_warns():
    with pytest.raises(ValueError, match=r"to_torch\(\): device='cuda', but torch finds no CUDA device"):
        Dataset.range(3).to_torch(device="cuda")
    with pytest.warns(UserWarning, match="pin_memory=True has no effect: torch finds no accelerator") as caught:
        tensors = Dataset.range(3).to_torch(pin_memory=True)
    assert [int(x) for x in tensors] == [0, 1, 2]
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (Target(torch.device("cuda"), pins=False), r"device='cuda' cannot be used in the workers of a DataLoader"),
        (Target(None, pins=True), r"pin_memory=True cannot be used in the workers .*: give it to the DataLoader"),
    ],
)
def test_workers_refuse_devices_and_pinning(target, words):
    tensors = TorchIterableDataset(Dataset.range(3), target)
    with pytest.raises(RuntimeError, match=words):
        list(DataLoader(tensors, batch_size=None, num_workers=1, multiprocessing_context="fork"))


class LateCard(Card):
    """Simulated card that copies page-locked memory only when an event is waited for."""

    def __init__(self, device):
        self.device = device
        self.copies = []  # all, in order
        self.done = 0
        self.buffers = []
        self.inside = False
        self.handed_over = []
        self.waits = True  # whether the computing stream waits immediately, or lags

    def buffer(self, nbytes):
        self.buffers.append(nbytes)
        return torch.empty(nbytes, dtype=torch.uint8)

    @contextlib.contextmanager
    def aside(self):
        self.inside = True
        yield
        self.inside = False

    def copy(self, host):
        assert self.inside
        copied = torch.ones_like(host)  # different from the final content
        self.copies.append((copied, host))
        return copied

    def mark(self):
        return Event(self, len(self.copies))

    def hand_over(self, copied, tensors):
        mine = {id(copy) for copy, _ in self.copies[: copied.count]}
        assert {id(tensor) for tensor in tensors} <= mine, "the event is not after all copies"
        self.handed_over.append(len(tensors))
        if self.waits:
            copied.synchronize()


class Event:
    def __init__(self, card, count):
        self.card, self.count = card, count

    def synchronize(self):
        for copied, host in self.card.copies[self.card.done : self.count]:
            copied.copy_(host)
        self.card.done = max(self.card.done, self.count)


@pytest.fixture
def card(monkeypatch):
    made = LateCard(torch.device("cuda", 0))
    monkeypatch.setattr("dataset.adapters.torch.iterable.Card", lambda device: made)
    return made


def on_card(dataset):
    return TorchIterableDataset(dataset, Target(torch.device("cuda"), pins=False))


def test_buffers_are_reused_after_their_copy_and_grow_with_the_elements(card):
    card.waits = False
    batches = list(on_card(Dataset.range(100).map(lambda x: np.full(8, x))))
    card.mark().synchronize()
    assert [set(batch.tolist()) for batch in batches] == [{number} for number in range(100)]
    assert card.buffers == [64, 64]
    assert card.handed_over == [1] * 100
    card.waits = True
    found = [tensor.tolist() for tensor in on_card(Dataset.range(12).map(np.arange))]
    assert found == [list(range(size)) for size in range(12)]


def test_values_of_all_kinds_go_to_the_card(card):
    def make(x):
        return {
            "scalar": x,
            "bf16": np.ones(2, ml_dtypes.bfloat16),
            "big": np.arange(3, dtype=">i2"),
            "back": np.arange(3)[::-1],
            "text": "abc",
            "none": None,
            "empty": np.zeros((0, 3)),
            "ragged": RaggedTensor.from_rows([[1.0], [2.0, 3.0]]),
        }

    (found,) = on_card(Dataset.range(1).map(make))
    assert (int(found["scalar"]), found["bf16"].dtype, found["bf16"].tolist()) == (0, torch.bfloat16, [1, 1])
    assert (found["big"].tolist(), found["back"].tolist()) == ([0, 1, 2], [2, 1, 0])
    assert [row.tolist() for row in found["ragged"].unbind()] == [[1], [2, 3]]
    assert (found["text"], found["none"], tuple(found["empty"].shape)) == (b"abc", None, (0, 3))


def test_exactly_one_element_is_computed_ahead(card):
    calls = []
    iterator = iter(on_card(Dataset.range(9).map(lambda x: calls.append(int(x)) or x)))
    assert calls == []
    for step in range(9):
        assert next(iterator) == step
        assert calls == list(range(min(step + 2, 9)))
    assert next(iterator, None) is None
    assert next(iterator, None) is None


def test_an_element_that_fails_has_its_place_on_the_way_to_the_card(card):
    times = Dataset.range(6).map(fail_at(1, 3)).map(lambda x: x if x != 4 else np.datetime64("2020"))
    found = outcomes(iter(on_card(times)))
    assert [int(found[index]) for index in (0, 2, 5)] == [0, 2, 5]
    for index, kind, words in (
        (1, ValueError, "bad 1"),
        (3, ValueError, "bad 3"),
        (4, TypeError, "no tensors of dtype"),
    ):
        assert isinstance(found[index], kind)
        assert words in str(found[index])


def test_an_abandoned_iterator_on_a_card_leaves_nothing_behind(card):
    list(on_card(Dataset.range(3)))
    with no_leaks():
        iterator = iter(on_card(Dataset.range(100).map(fail_at(1), num_parallel_calls=2).prefetch(2)))
        next(iterator)
        del iterator
        with iter(on_card(Dataset.range(100).prefetch(2))) as iterator:
            next(iterator)


@pytest.mark.parametrize("is_replayable", [True, False])
@pytest.mark.parametrize("stop", [0, 5, 129, 300])
def test_a_state_is_after_the_returned_elements_and_not_after_those_on_the_way(card, stop, is_replayable):
    def make():
        return on_card(Dataset.range(300).shuffle(50, seed=1))

    iterator = iter(make())
    # False as in pipelines without a deterministic order
    iterator._elements._root._context.input_is_replayable = is_replayable
    for _ in range(stop):
        next(iterator)
    state = iterator.state_dict()
    rest = [int(x) for x in iterator]
    assert len(rest) == 300 - stop
    resumed = iter(make())
    for each, expected in ((state, rest), (iterator.state_dict(), []), (state, rest)):
        resumed.load_state_dict(each)
        again = resumed.state_dict()
        assert [int(x) for x in resumed] == [int(x) for x in rest_of(make(), again)] == expected


@pytest.mark.parametrize("stop", [0, 3, 10])
def test_states_go_from_the_card_to_the_host_and_back(card, stop):
    dataset = Dataset.range(10).map(lambda x: x + 1).prefetch(2)
    state = state_after(on_card(dataset), stop)
    back = state_after(dataset.to_torch(), 0, state)
    for tensors, place in ((dataset.to_torch(), state), (on_card(dataset), back)):
        assert [int(x) for x in rest_of(tensors, place)] == list(range(stop + 1, 11))


class TestOnCuda:
    pytestmark = needs_cuda

    def test_batches_are_there_and_right(self):
        source = np.arange(4000.0).reshape(1000, 4)
        dataset = Dataset.from_tensor_slices({"x": source, "y": np.arange(1000), "t": ["a"] * 1000})
        batches = list(dataset.shuffle(1000, seed=1).batch(32).to_torch(device="cuda"))
        assert {batch["x"].device.type for batch in batches} == {"cuda"}
        for batch in batches:
            assert torch.equal(batch["x"][:, 0].cpu(), batch["y"].cpu() * 4.0)
            assert batch["t"] == [b"a"] * len(batch["y"])
        assert sorted(int(y) for batch in batches for y in batch["y"].cpu()) == list(range(1000))

    def test_memory_is_not_given_away_while_kernels_read_it(self):
        dataset = Dataset.range(200).map(lambda x: np.full(1 << 20, x, np.float32))
        sums = []
        for batch in dataset.to_torch(device="cuda"):
            torch.cuda._sleep(2_000_000)  # the device lags, so that copies would overwrite what it has not read
            sums.append(batch.sum())
            del batch
        assert [float(total) for total in sums] == [number * float(1 << 20) for number in range(200)]

    def test_tensors_are_ready_on_the_stream_that_is_current(self):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            totals = [x.sum() for x in Dataset.range(50).map(lambda x: np.full(1 << 18, x)).to_torch(device="cuda")]
        stream.synchronize()
        assert [int(total) for total in totals] == [number << 18 for number in range(50)]

    def test_numbers_ragged_and_sparse_values_are_there(self):
        values = [np.ones(3, dtype) for dtype in [*map(np.dtype, "?bBhHiIqQefdFD"), np.dtype(ml_dtypes.bfloat16)]]
        values += [RaggedTensor.from_rows([[1.0], [2.0, 3.0]]), SparseTensor([[0, 1]], [5.0], [2, 2])]
        ((*numbers, ragged, sparse),) = Dataset.range(1).map(lambda _: tuple(values)).to_torch(device="cuda")
        assert [number.cpu().tolist() for number in numbers] == [[1, 1, 1]] * 15
        assert [row.tolist() for row in ragged.unbind()] == [[1.0], [2.0, 3.0]]
        assert sparse.to_dense().tolist() == [[0, 5], [0, 0]]

    def test_pinned_tensors_are_pinned(self):
        dataset = Dataset.from_tensor_slices({"x": np.arange(8.0), "b": np.ones(8, ml_dtypes.bfloat16)}).batch(4)
        for batch in dataset.to_torch(pin_memory=True):
            assert batch["x"].is_pinned()
            assert batch["b"].is_pinned()
        assert all(x["x"].is_pinned() for x in DataLoader(dataset.to_torch(), batch_size=None, pin_memory=True))

    def test_the_device_is_the_current_one(self):
        (tensor,) = Dataset.from_tensors([1]).to_torch(device="cuda")
        assert tensor.device.index == torch.cuda.current_device()
        (tensor,) = Dataset.from_tensors([1]).to_torch(device=f"cuda:{torch.cuda.device_count() - 1}")
        assert tensor.device.index == torch.cuda.device_count() - 1

    def test_map_style_elements_are_there(self):
        tensors = Dataset.range(10).to_torch(device="cuda", map_style=True)
        assert tensors[3].device.type == "cuda"
        assert [int(x) for x in tensors.__getitems__([1, 2])] == [1, 2]

"""Weight schedules of sample_from_datasets, the policies for a dataset that ends, and the counts in stats()."""

import numpy as np
import pytest

from dataset import Dataset, StateError
from dataset.runtime.state import replay_log
from dataset.testing import check_operator
from support.states import rest_of, state_after


def endless(*values):
    return [Dataset.from_tensors(np.int64(value)).repeat() for value in values]


def sources_of(dataset, count):
    return np.array([int(x) for x in dataset.take(count)])


@pytest.mark.parametrize("kind", ["points", "function"])
def test_weights_change_at_their_element(kind):
    points = [(0, [1, 0, 0]), (100, [0, 1, 0]), (250, [0, 0, 2])]
    weights = points if kind == "points" else lambda n: points[(n >= 100) + (n >= 250)][1]
    mixed = Dataset.sample_from_datasets(endless(0, 1, 2), weights, seed=1)
    assert sources_of(mixed, 400).tolist() == [0] * 100 + [1] * 150 + [2] * 150
    together = [batch.tolist() for batch in mixed.batch(64).take(6)]
    assert [x for batch in together for x in batch] == sources_of(mixed, 384).tolist()


def test_linear_weights_go_from_one_to_the_next():
    points = [(0, [1, 0]), (20_000, [0, 1])]
    found = sources_of(Dataset.sample_from_datasets(endless(0, 1), points, seed=3, interpolation="linear"), 30_000)
    for start, share in [(0, 0.05), (9000, 0.5), (18_000, 0.95), (25_000, 1.0)]:
        assert abs(found[start : start + 2000].mean() - share) < 0.04


@pytest.mark.parametrize("on_empty", ["continue", "stop"])
@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_keeps_the_contract_of_an_op_and_the_order_of_each_source(interpolation, on_empty):
    how = {"seed": 2, "interpolation": interpolation, "on_empty": on_empty}
    for first, second in ((12, 10), (3, 20), (20, 3), (0, 5)):
        datasets = [Dataset.range(first), Dataset.range(100, 100 + second).filter(lambda _: True)]
        mixed = Dataset.sample_from_datasets(datasets, [(0, [1, 3]), (7, [1, 0]), (15, [2, 1])], **how)
        found = [int(x) for x in check_operator(lambda mixed=mixed: mixed)]
        ones, twos = [x for x in found if x < 100], [x - 100 for x in found if x >= 100]
        assert (ones, twos) == (list(range(len(ones))), list(range(len(twos))))
        assert len(ones) == first or (on_empty == "stop" and len(twos) == second)
        assert len(twos) == second or (on_empty == "stop" and len(ones) == first)


def test_a_dataset_that_ends_can_be_repeated():
    mixed = Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(10, 12)], seed=1, on_empty="repeat")
    assert mixed.cardinality() == -1
    found = sources_of(mixed, 200)
    assert found[found < 10].tolist() == (list(range(3)) * 100)[: (found < 10).sum()]


def test_a_function_that_fails_is_an_error_of_its_element():
    def weights(n):
        if n == 2:
            raise KeyError("no weights")
        return [1, 0] if n != 4 else [0, -1]

    def build():
        return Dataset.sample_from_datasets([Dataset.range(6), Dataset.range(6)], weights, seed=1).take(8)

    found = check_operator(build)
    shown = [int(x) if not isinstance(x, Exception) else type(x) for x in found[:6]]
    assert shown == [0, 1, KeyError, 2, ValueError, 3]
    assert "weights of element 2" in found[2].__notes__[0]
    assert "the weights of element 4 must be 2 finite numbers" in str(found[4])


@pytest.mark.parametrize("reads", ["rows", "stream", "batches ahead"])
def test_later_elements_may_have_other_weights_after_a_resume(reads):
    def build(weights):
        datasets = [Dataset.range(1000), Dataset.range(1000, 2000)]
        if reads != "rows":
            datasets = [dataset.filter(lambda _: True) for dataset in datasets]
        mixed = Dataset.sample_from_datasets(datasets, weights, seed=4)
        return mixed.batch(4).prefetch(3).unbatch() if reads == "batches ahead" else mixed

    for before in ([0.5, 0.5], [(0, [1, 1])]):
        rest = rest_of(build([(0, [1, 1]), (100, [9, 1])]), state_after(build(before), 100))
        assert sorted([*build(before).take(100), *rest]) == list(range(2000))
        assert np.mean([x < 1000 for x in rest[:400]]) > 0.8


def test_the_weights_of_elements_before_a_state_may_not_change():
    def build(weights):
        return Dataset.sample_from_datasets([Dataset.range(90), Dataset.range(90)], weights, seed=4)

    state = state_after(build([0.5, 0.5]), 30)
    for weights in ([0.9, 0.1], [(0, [1, 3]), (30, [2, 1])]):
        with pytest.raises(StateError, match=r"only weights of later elements may change, such as in weights=\[\(0, "):
            rest_of(build(weights), state)
    assert len(rest_of(build([3, 3]), state)) == 150


def test_choices_depend_on_the_element_number_alone():
    """So processes that each read a share of the mix agree on which source an element is from."""
    mixed = Dataset.sample_from_datasets(endless(0, 1), [(0, [1, 9]), (50, [9, 1])], seed=1).take(120)
    whole = [int(x) for x in mixed]
    for world_size in (1, 2, 3, 5):
        shares = [[int(x) for x in mixed.shard_by_process(rank, world_size)] for rank in range(world_size)]
        assert [x for step in zip(*shares, strict=True) for x in step] == whole


def test_stats_shows_the_counts_and_shares():
    iterator = iter(Dataset.sample_from_datasets([Dataset.range(75), Dataset.range(25)], seed=1))
    assert len(list(iterator)) == 100
    stats = iterator.stats()
    mix = stats.operators[0]
    assert mix.source_elements == (75, 25)
    assert mix.source_shares == (0.75, 0.25)
    assert "sources of sample_from_datasets(2 datasets): 75 (75.0%), 25 (25.0%)" in repr(stats)
    assert stats.to_dict()["operators"][0]["source_elements"] == [75, 25]


def test_weights_of_elements_between_the_state_of_the_mix_and_the_position_may_not_change(monkeypatch):
    monkeypatch.setattr(replay_log, "REST_FACTOR", 10**9)  # one mark, at the start

    def build(weights):
        streams = [Dataset.range(500).filter(lambda x: bool(str(x))), Dataset.range(500).map(lambda x: x)]
        return Dataset.sample_from_datasets(streams, weights, seed=4).prefetch(8)

    state = state_after(build([1, 1]), 60)
    assert state["operator"]["given"] == [[0, 60, 0]]
    for number in (1, 30, 59):
        with pytest.raises(StateError, match=rf"the weights of element {number} have changed"):
            rest_of(build([(0, [1, 1]), (number, [9, 1])]), state)
    assert len(rest_of(build([(0, [1, 1]), (60, [9, 1])]), state)) == 940

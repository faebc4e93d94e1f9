"""shuffle(clump=n): runs of neighbors in random order, whose elements are then shuffled in a buffer."""

import itertools

import numpy as np
import pytest

from dataset import DataLossError, Dataset, TFRecordDataset
from dataset.io.tfrecord.records_at import RecordsAt
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.runtime.random.permutation import LARGE, ClumpPermutation
from dataset.runtime.random.streams import Stream
from support.pipelines import unoptimized
from support.tfrecord_files import frames

COUNT = 101


def numbers(count=COUNT):
    return Dataset.from_tensor_slices(np.arange(count))


def records(path, count=COUNT, damaged=()):
    content = [bytearray(frame) for frame in (frames([str(i).encode()]) for i in range(count))]
    for number in damaged:
        content[number][12] ^= 1
    if not path.exists():
        path.write_bytes(b"".join(content))
    return TFRecordDataset(str(path), index=True)


def values(dataset):
    return [int(x) for x in dataset]


def runs(order):
    """Split an order into the runs of ascending neighbors in it."""
    return np.split(order, np.flatnonzero(np.diff(order) != 1) + 1)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 100, 1001, LARGE * 2 + 3])
@pytest.mark.parametrize("clump", [2, 3, 8, 1000, LARGE * 4])
def test_an_order_of_clumps_is_a_permutation_whose_clumps_keep_their_order(count, clump):
    order = ClumpPermutation(Stream(1, 2, 3), count, clump)
    items = order.run(0, count)
    assert len(order) == count
    assert np.array_equal(np.sort(items), np.arange(count))
    assert np.array_equal(order.from_on(count // 3), items[count // 3 :])
    starts = np.sort(items[np.flatnonzero(np.diff(items, prepend=-9) != 1)])  # where two clumps meet may be absent
    if len(starts) > 1:
        assert len(set((starts[1:] % clump).tolist())) == 1
    assert len(starts) <= count // clump + 2


def test_the_boundaries_of_clumps_differ_between_orders_and_each_is_possible():
    found = {int(runs(ClumpPermutation(Stream(seed), 40, 4).run(0, 40))[0][0]) % 4 for seed in range(50)}
    assert found == {0, 1, 2, 3}


def test_each_clump_is_equally_likely_at_each_place():
    counts = np.zeros((5, 5), int)
    for seed in range(6000):
        if Stream(seed).random(1)[0] < 1 / 4:  # otherwise the first clump is shorter
            counts[np.arange(5), ClumpPermutation(Stream(seed), 20, 4).run(0, 20)[::4] // 4] += 1
    assert counts.sum() > 5000
    assert np.abs(counts / counts.sum() * 25 - 1).max() < 0.3


def test_the_input_of_the_buffer_consists_of_whole_clumps():
    plan = numbers().shuffle(10, seed=1, clump=8)._plan
    assert [part.label() for part in (plan, plan.source)] == ["shuffle(10, seed=1)", "shuffle(clumps of 8, seed=1)"]
    order = values(Dataset(plan.source))
    assert sorted(order) == list(range(COUNT))
    assert len(runs(np.array(order))) <= COUNT // 8 + 2


def test_every_element_occurs_once_in_each_epoch_and_epochs_differ():
    dataset = numbers().shuffle(10, seed=1, clump=8)
    first, second = values(dataset), values(dataset)
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert first != second
    both = numbers().shuffle(10, seed=1, clump=8)
    assert [values(both), values(both)] == [first, second]
    passes = values(numbers().shuffle(10, seed=1, clump=8).repeat(2))
    assert passes[:COUNT] == first
    assert sorted(passes[COUNT:]) == list(range(COUNT))
    assert passes[COUNT:] != first
    once = numbers().shuffle(10, seed=1, reshuffle_each_iteration=False, clump=8)
    assert values(once) == values(once)
    assert values(numbers().shuffle(10, seed=2, clump=8)) != first


def test_elements_come_from_the_whole_input():
    first = [values(numbers(10_000).shuffle(100, seed=seed, clump=10))[:100] for seed in range(10)]
    assert min(max(order) for order in first) > 8000  # with a buffer only, below 200
    assert max(np.median(np.abs(np.diff(order))) for order in first) > 1000


@pytest.mark.parametrize("clump", [None, 1])
def test_a_clump_of_one_element_is_an_ordinary_shuffle(clump):
    plan = numbers().shuffle(10, seed=1, clump=clump)._plan
    assert type(plan) is Shuffle
    assert not isinstance(plan.source, Shuffle)
    assert values(Dataset(plan)) == values(numbers().shuffle(10, seed=1))


@pytest.mark.parametrize(("buffer_size", "clump"), [(10_000, 156), (128, 2), (127, 0), (1, 0)])
def test_by_default_a_clump_is_a_part_of_the_buffer(buffer_size, clump):
    plan = numbers().shuffle(buffer_size, clump="auto")._plan
    assert (plan.source.clump if isinstance(plan.source, Shuffle) else 0) == clump


@pytest.mark.parametrize("clump", [0, -1, "all", 2.0, True, [3]])
def test_refuses_other_clumps(clump):
    with pytest.raises((TypeError, ValueError), match=r"shuffle\(\): clump must be"):
        numbers().shuffle(10, clump=clump)


@pytest.mark.parametrize("buffer_size", [None, -2])
def test_refuses_a_buffer_of_all_elements(buffer_size):
    with pytest.raises(ValueError, match=r"clump requires a buffer_size.*omit clump"):
        numbers().shuffle(buffer_size, clump=4)


REFUSED = {
    "map": numbers().map(lambda x: x),
    "filter": numbers().filter(lambda x: x > 3),
    "batch": numbers().batch(2),
    "shuffle": numbers().shuffle(4),
    "clumps": numbers().shuffle(4, clump=2),
    "repeat": numbers().repeat(),
    "generator": Dataset.from_generator(lambda: iter(range(4))),
    "files": TFRecordDataset("a"),
    "concatenate": numbers().concatenate(numbers()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_an_input_that_cannot_be_read_by_position(name):
    with pytest.raises(ValueError, match=r"clump requires an input of known length .*call shuffle\(\) before map"):
        REFUSED[name].shuffle(4, clump=2)


INPUTS = {
    "slices": lambda _: numbers(),
    "range": lambda _: Dataset.range(COUNT),
    "records": records,
    "skip": lambda path: records(path).skip(7),
    "take": lambda path: records(path).take(70),
    "shard": lambda path: records(path).shard(2, 1),
    "repeat": lambda path: records(path).repeat(2),
    "empty": lambda _: numbers(0),
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("size", [1, 5, 70, 500])
def test_the_order_does_not_depend_on_the_optimizer(tmp_path, name, size):
    shuffled = lambda: INPUTS[name](tmp_path / "a").shuffle(size, seed=3, clump=6)
    found = values(shuffled().repeat(2))
    assert found == values(unoptimized(shuffled().repeat(2)))
    assert sorted(found) == sorted(2 * values(INPUTS[name](tmp_path / "a")))


DOWNSTREAM = {
    "alone": lambda d: d,
    "repeat": lambda d: d.repeat(2),
    "batch": lambda d: d.batch(3).prefetch(2),
    "skip": lambda d: d.skip(13).take(9),
    "shuffle": lambda d: d.shuffle(4, seed=8),
}


@pytest.mark.parametrize("name", ["slices", "range", "records", "repeat"])
@pytest.mark.parametrize("downstream", DOWNSTREAM)
@pytest.mark.parametrize("optimized", [True, False])
def test_resumes_exactly_at_every_position(tmp_path, name, downstream, optimized):
    def dataset():
        source = INPUTS[name](tmp_path / "a") if name in {"records", "repeat"} else INPUTS[name](None).take(40)
        found = DOWNSTREAM[downstream](source.take(40).shuffle(9, seed=3, clump=6))
        return found if optimized else unoptimized(found)

    def plain(elements):
        return [np.asarray(element).astype(np.int64).tolist() for element in elements]

    iterator, expected = iter(dataset()), plain(dataset())
    for given in range(len(expected) + 1):
        resumed = iter(dataset())
        resumed.load_state_dict(iterator.state_dict())
        assert plain(resumed) == expected[given:]
        if given < len(expected):
            next(iterator)


def test_a_state_does_not_hold_elements_that_can_be_read_again():
    wide = Dataset.from_tensor_slices(np.zeros((1000, 1000))).shuffle(500, seed=1, clump=8)
    iterator = iter(wide)
    next(iterator)
    assert len(repr(iterator.state_dict())) < 5000


def test_each_clump_of_records_is_read_at_once(tmp_path, monkeypatch):
    reads, read = [], RecordsAt._read
    monkeypatch.setattr(RecordsAt, "_read", lambda *given: reads.append(given[1:]) or read(*given))
    (tmp_path / "a").write_bytes(frames([b"0" * 4] * 6000))
    dataset = TFRecordDataset(str(tmp_path / "a"), index=True, buffer_size=8000)  # the bytes of 400 records
    assert len(list(dataset.shuffle(1000, seed=1, clump=300).batch(7))) == 858
    assert len(reads) <= 6000 // 300 + 2
    assert sum(size for _, size in reads) == 6000 * 20


def test_failed_records_fail_alone(tmp_path):
    def outcomes(dataset):
        found, iterator = [], iter(dataset)
        while True:
            try:
                found.append(int(next(iterator)))
            except DataLossError as error:
                found.append(f"record {error.record}")
            except StopIteration:
                return found

    dataset = lambda: records(tmp_path / "a", damaged=(30, 31, 100)).shuffle(10, seed=1, clump=8)
    found = outcomes(dataset())
    assert sorted(x for x in found if type(x) is int) == [i for i in range(COUNT) if i not in {30, 31, 100}]
    assert {x for x in found if type(x) is str} == {"record 30", "record 31", "record 100"}
    assert found == outcomes(unoptimized(dataset()))
    skipped = TFRecordDataset(str(tmp_path / "a"), index=True, on_error="skip").shuffle(10, seed=1, clump=8)
    assert sorted(values(skipped)) == sorted(x for x in found if type(x) is int)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 12, 16, 101])
@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
@pytest.mark.parametrize("batch", [None, 1, 3])
@pytest.mark.parametrize("remainder", ["drop", "keep", "repeat"])
def test_processes_divide_the_elements(count, world_size, batch, remainder):
    dataset = numbers(count).shuffle(5, seed=1, clump=3)
    dataset = dataset if batch is None else dataset.batch(batch)
    shares = [dataset.shard_by_process(rank, world_size, remainder=remainder) for rank in range(world_size)]
    steps = [list(share) for share in shares]
    assert [len(mine) for mine in steps] == [share.cardinality() for share in shares]
    parts = [[int(x) for step in mine for x in np.atleast_1d(step)] for mine in steps]
    found = list(itertools.chain(*parts))
    if remainder == "repeat":
        assert set(found) == set(range(count))
        assert len(set(map(len, parts))) <= 1 or batch
        return
    assert len(set(found)) == len(found)
    if remainder == "keep":
        assert sorted(found) == list(range(count))
    else:
        assert {len(part) for part in parts} == {count // world_size}
        assert len(set(map(len, steps))) == 1


@pytest.mark.parametrize("remainder", ["drop", "keep"])
def test_each_process_reads_the_elements_of_its_own_clumps(remainder):
    shuffled = numbers(1000).shuffle(30, seed=1, clump=10)
    for rank in range(4):
        share = shuffled.shard_by_process(rank, 4, remainder=remainder)
        assert len(runs(np.sort(values(share)))) <= 27  # of 250 elements


def test_the_parts_of_processes_differ_between_epochs():
    share = numbers(1000).shuffle(30, seed=1, clump=10).repeat(2).shard_by_process(0, 4)
    found = values(share)
    assert len(found) == 500
    assert len(set(found[:250])) == len(set(found[250:])) == 250
    assert set(found[:250]) != set(found[250:])


def test_a_share_resumes_at_every_position():
    share = lambda: numbers(100).shuffle(7, seed=1, clump=5).batch(3).shard_by_process(1, 3)
    iterator, expected = iter(share()), [x.tolist() for x in share()]
    for given in range(len(expected)):
        resumed = iter(share())
        resumed.load_state_dict(iterator.state_dict())
        assert [x.tolist() for x in resumed] == expected[given:]
        next(iterator)


def test_has_no_random_access():
    with pytest.raises(TypeError, match="shuffle"):
        numbers().shuffle(4, clump=2)[0]


def test_a_shuffle_of_a_mix_of_rows_and_their_shuffle_resumes():
    """The optimizer gathers the shuffled rows, but not the others, so both have the spec of rows only above it."""
    rows = Dataset.from_tensor_slices((np.arange(5), np.ones((5, 3))))
    mixed = Dataset.sample_from_datasets([rows, rows.shuffle(3, seed=4)], [0.5, 0.5], seed=2).shuffle(3, seed=4)
    iterator = iter(mixed)
    given = [int(next(iterator)[0]) for _ in range(4)]
    resumed = iter(mixed)
    resumed.load_state_dict(iterator.state_dict())
    rest = [int(number) for number, _ in iterator]
    assert [int(number) for number, _ in resumed] == rest
    assert sorted(given + rest) == sorted([*range(5), *range(5)])

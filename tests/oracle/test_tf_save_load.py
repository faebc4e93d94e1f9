"""Tests of save and load against tf.data's."""

import multiprocessing
from typing import NamedTuple

import numpy as np
import pytest
from compare import Ours, assert_both_raise, assert_both_refuse, assert_same, attempt, in_both, programs, same, theirs

from dataset import SpecError, TensorSpec
from dataset.ops.interleave.interleave import DEFAULT_CYCLE_LENGTH


@pytest.fixture(autouse=True)
def _same_cycle(monkeypatch):
    """tf.data reads as many shards in parallel as there are cores."""
    monkeypatch.setattr(multiprocessing, "cpu_count", lambda: DEFAULT_CYCLE_LENGTH)


@pytest.fixture
def place(tmp_path):
    for name in ("dataset", "tf.data"):
        (tmp_path / name).mkdir()
    return lambda lib, name="saved": str(tmp_path / lib.name / name)


TEXTS = np.array([b"a\0", b"", b"\xff", b"\0"], object)
DATASETS = programs(
    numbers="range(7)",
    empty="range(0)",
    batches="range(7).batch(3)",
    full_batches="range(7).batch(3, drop_remainder=True)",
    vectors="range(5).map(lambda x: fill([x], x))",
    images="from_tensor_slices(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))",
    halves="from_tensor_slices(np.array([1.5, np.inf, -0.0], np.float16))",
    complex="from_tensor_slices(np.array([1 + 2j], np.complex64))",
    bools="from_tensor_slices(np.array([True, False]))",
    text="from_tensor_slices(TEXTS)",
    matrix_of_text="from_tensors(TEXTS.reshape(2, 2))",
    tuples="range(3).map(lambda x: (x, (x + 1, x * 2)))",
    dicts="from_tensor_slices({'b': np.arange(2), 'a': (np.zeros((2, 0)), np.ones(2))})",
    none="range(3).map(lambda x: (x, None))",
    ragged="from_tensors(ragged([[1, 2], [], [3]])).repeat(2)",
    sparse="from_tensors(sparse([[0, 1]], np.array([5]), [2, 3])).repeat(2)",
    no_rows="from_tensors(np.zeros((0, 3), np.float32))",
)


def loaded(lib, place, source, *spec, compression=None, shard_func=None, reader_func=None):
    """Return what is loaded after ``source`` was saved; ``place`` is the folder."""
    source.save(place, compression=compression, shard_func=shard_func)
    return lib.load(place, *spec, compression=compression, reader_func=reader_func)


# One library derives varying sizes from its graphs, the other one from the elements.
test_round_trips = pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")(  # tf.data warns about None
    same(
        "loaded(place(), source, compression=compression)",
        source=DATASETS,
        compression=[None, "GZIP"],
        fixture="place",
        spec=lambda source, _: "compatible" if source == "vectors" else "equal",
    )
)
SHARDS = {
    "one": lambda x: x * 0,
    "three": lambda x: x % 3,
    "runs": lambda x: x // 4,
    "many": lambda x: x,
    "sparse numbers": lambda x: 1000 - 100 * x,
    "negative": lambda x: x % 3 - 1,
}


def flat(shards):
    return shards.flat_map(lambda shard: shard)


READERS = {
    "default": None,
    "one after the other": flat,
    "in blocks": lambda shards: shards.interleave(lambda shard: shard, cycle_length=2, block_length=2),
    "the first": lambda shards: flat(shards.take(1)),
    "in batches": lambda shards: flat(shards).batch(3).unbatch(),
    "each twice": lambda shards: shards.flat_map(lambda shard: shard.take(1).repeat(2)),
}
test_orders_of_shards = same(
    "loaded(place(), range(10), shard_func=shards, reader_func=reader)",
    shards=SHARDS,
    reader=READERS,
    fixture="place",
)
test_what_is_loaded = same(
    {
        "saving again replaces": "[loaded(place(), range(n), shard_func=SHARDS['three']) for n in (9, 4)][1]",
        "a wider spec": "loaded(place(), from_tensors(np.zeros(2)), lib.TensorSpec((None,), np.float64))",
        "like any dataset": "loaded(place(), range(10), shard_func=SHARDS['three']).repeat(2).skip(3).batch(4)",
    },
    fixture="place",
)


def test_what_cannot_be_loaded(place):
    another = lambda lib: loaded(lib, place(lib), lib.range(3), lib.TensorSpec((), np.float32))
    assert_both_refuse(another, ValueError)
    assert_both_refuse(lambda lib: lib.load(place(lib, "nowhere")), FileNotFoundError)
    assert_both_refuse(lambda lib: lib.load(place(lib), reader_func=3), TypeError)


def test_what_cannot_be_saved(place):
    for function in (lambda x: x > 3, lambda x: x / 2, lambda x: (x, x)):
        assert_both_raise(lambda lib, function=function: lib.range(4).save(place(lib), shard_func=function), Exception)
        assert isinstance(attempt(lambda lib: lib.load(place(lib)), Ours()), Exception)
    for path in (3, None):
        assert_both_raise(lambda lib, path=path: lib.range(4).save(path), (TypeError, ValueError))
        assert_both_raise(lambda lib, path=path: lib.load(path), (TypeError, ValueError))


def test_named_tuples_keep_their_names(place):
    class Pair(NamedTuple):
        one: object
        two: object

    def described(lib):
        (element,) = loaded(lib, place(lib), lib.from_tensors(Pair(np.int64(1), np.int64(2))))
        assert type(element) is not Pair
        return type(element).__name__, element._fields, [int(part) for part in element]

    ours, expected = in_both(described)
    assert ours == expected


# cache(filename) and snapshot(path)


def assert_same_again(build, **options):
    """Compare a pipeline when it writes its files, and when it reads them."""
    assert_same(build, **options)
    assert_same(lambda lib: build(lib).repeat(2), **options)


test_caches = same(
    "source.cache(place())",
    source=DATASETS | programs(failing="failing(2, size=6)"),
    fixture="place",
    by=assert_same_again,
    spec="compatible",
)
test_snapshots_of_all_kinds = same(
    "source.snapshot(place(), compression='GZIP')",
    source=DATASETS,
    fixture="place",
    by=assert_same_again,
    spec="compatible",
)
test_snapshots = same(
    "range(10).snapshot(place(), reader_func=reader, shard_func=shards)",
    shards={"default": None, **SHARDS},
    reader=READERS,
    fixture="place",
    by=assert_same_again,
    cardinality=False,
)


@pytest.mark.parametrize(
    "other", programs(["range(6).map(lambda x: cast(x, np.float32))", "failing(2, size=6)"]).values()
)
def test_a_cache_of_another_pipeline(other, place):
    def build(lib):
        list(lib.range(4).cache(place(lib)))
        return other.run(lib).cache(place(lib))

    with pytest.raises(SpecError, match="another pipeline"):
        next(iter(build(Ours())))

    def check(lib):
        if other.run(Ours()).element_spec.dtype == np.int64:
            assert list(build(lib).as_numpy_iterator()) == [0, 1, 2, 3]  # of the pipeline that filled it
        else:
            with pytest.raises(Exception, match=r"float|type"):
                next(iter(build(lib)))

    theirs(check)


@pytest.mark.parametrize("taken", [1, 3])
def test_a_partial_pass_of_a_cache(taken, place):
    def build(lib):
        assert len(list(lib.range(6).cache(place(lib)).take(taken))) == taken
        return lib.range(6).map(lambda x: x + 10).cache(place(lib))

    assert_same(build, spec="compatible")


def test_a_second_iterator_during_a_pass(place):
    def check(lib):
        dataset = lib.range(6).cache(place(lib))
        first = iter(dataset)
        assert int(next(first)) == 0
        with pytest.raises(Exception, match="cach"):
            next(iter(dataset))
        assert int(next(first)) == 1

    in_both(check)


def test_a_cache_under_no_directory(place):
    assert_both_raise(lambda lib: next(iter(lib.range(3).cache(place(lib, "no/where/at/all")))), Exception)


def test_snapshots_of_a_pipeline_that_fails(place):
    for _ in range(2):
        assert_same(lambda lib: lib.failing(2, size=6).snapshot(place(lib)), spec="compatible")


def test_snapshots_are_used_once_they_are_whole(place):
    def check(lib):
        calls = []

        def count(x):
            calls.append(int(x))
            return x

        dataset = lib.range(5).map(lib.call(count, TensorSpec((), np.int64))).snapshot(place(lib))
        assert len(list(dataset.take(2))) == 2
        calls.clear()
        for _ in range(3):
            assert [int(x) for x in dataset] == [0, 1, 2, 3, 4]
        assert len(calls) == 5

    in_both(check)

"""Tests of save and load against tf.data's."""

import multiprocessing
from typing import NamedTuple

import numpy as np
import pytest
from cases import failing
from compare import Ours, assert_both_raise, assert_both_refuse, assert_same, attempt, in_both, same, theirs

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


def text(*values):
    return np.array(values, object)


DATASETS = {
    "numbers": lambda lib: lib.range(7),
    "empty": lambda lib: lib.range(0),
    "batches": lambda lib: lib.range(7).batch(3),
    "full batches": lambda lib: lib.range(7).batch(3, drop_remainder=True),
    "vectors": lambda lib: lib.range(5).map(lambda x: lib.fill([x], x)),
    "images": lambda lib: lib.from_tensor_slices(np.arange(24, dtype=np.uint8).reshape(2, 3, 4)),
    "halves": lambda lib: lib.from_tensor_slices(np.array([1.5, np.inf, -0.0], np.float16)),
    "complex": lambda lib: lib.from_tensor_slices(np.array([1 + 2j], np.complex64)),
    "bools": lambda lib: lib.from_tensor_slices(np.array([True, False])),
    "text": lambda lib: lib.from_tensor_slices(text(b"a\0", b"", b"\xff")),
    "matrix of text": lambda lib: lib.from_tensors(text(b"a\0", b"", b"\0", b"b").reshape(2, 2)),
    "tuples": lambda lib: lib.range(3).map(lambda x: (x, (x + 1, x * 2))),
    "dicts": lambda lib: lib.from_tensor_slices({"b": np.arange(2), "a": (np.zeros((2, 0)), np.ones(2))}),
    "none": lambda lib: lib.range(3).map(lambda x: (x, None)),
    "ragged": lambda lib: lib.from_tensors(lib.ragged([[1, 2], [], [3]])).repeat(2),
    "sparse": lambda lib: lib.from_tensors(lib.sparse([[0, 1]], np.array([5]), [2, 3])).repeat(2),
    "no rows": lambda lib: lib.from_tensors(np.zeros((0, 3), np.float32)),
}


def saved(lib, place, source, compression):
    source(lib).save(place(lib), compression=compression)
    return lib.load(place(lib), compression=compression)


# One library derives varying sizes from its graphs, the other one from the elements.
test_round_trips = pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")(  # tf.data warns about None
    same(
        saved,
        DATASETS,
        [None, "GZIP"],
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


def in_shards(lib, place, shards, reader):
    lib.range(10).save(place(lib), shard_func=shards)
    return lib.load(place(lib), reader_func=reader)


def saved_again(lib, place):
    lib.range(9).save(place(lib), shard_func=lambda x: x % 3)
    lib.range(4).batch(2).save(place(lib))
    return lib.load(place(lib))


def with_a_wider_spec(lib, place):
    lib.from_tensor_slices(np.zeros((3, 2))).save(place(lib))
    return lib.load(place(lib), lib.TensorSpec((None,), np.float64))


test_orders_of_shards = same(in_shards, SHARDS, READERS, fixture="place")
test_what_is_loaded = same(
    {
        "saving again replaces": saved_again,
        "a spec may be wider": with_a_wider_spec,
        "like any dataset": lambda lib, place: in_shards(lib, place, lambda x: x % 2, None).repeat(2).skip(3).batch(4),
    },
    fixture="place",
)


def test_what_cannot_be_loaded(place):
    def with_another_spec(lib):
        lib.range(3).save(place(lib))
        return lib.load(place(lib), lib.TensorSpec((), np.float32))

    assert_both_refuse(with_another_spec, ValueError)
    assert_both_refuse(lambda lib: lib.load(place(lib, "nowhere")), FileNotFoundError)
    assert_both_refuse(lambda lib: lib.load(place(lib), reader_func=3), TypeError)


@pytest.mark.parametrize(
    "function", [lambda x: x > 3, lambda x: x / 2, lambda x: (x, x)], ids=["bool", "float", "tuple"]
)
def test_what_is_no_shard_function(function, place):
    assert_both_raise(lambda lib: lib.range(4).save(place(lib), shard_func=function), Exception)
    assert isinstance(attempt(lambda lib: lib.load(place(lib)), Ours()), Exception)


@pytest.mark.parametrize("path", [3, None], ids=repr)
def test_what_is_no_path(path):
    assert_both_raise(lambda lib: lib.range(4).save(path), (TypeError, ValueError))
    assert_both_raise(lambda lib: lib.load(path), (TypeError, ValueError))


def test_named_tuples_keep_their_names(place):
    class Pair(NamedTuple):
        one: object
        two: object

    def loaded(lib):
        lib.from_tensors(Pair(np.int64(1), np.int64(2))).save(place(lib))
        (element,) = lib.load(place(lib))
        assert type(element) is not Pair
        return type(element).__name__, element._fields, [int(part) for part in element]

    ours, expected = in_both(loaded)
    assert ours == expected


# cache(filename) and snapshot(path)


def six(lib):
    return failing(lib, 2, size=6)


@pytest.mark.parametrize("source", [*DATASETS, "failing"])
def test_caches(source, place):
    build = lambda lib: {**DATASETS, "failing": six}[source](lib).cache(place(lib) + "-cache")
    assert_same(build, spec="compatible")  # creates the cache
    assert_same(lambda lib: build(lib).repeat(2), spec="compatible")  # reads the cache


@pytest.mark.parametrize("other", [lambda lib: lib.range(6).map(lambda x: lib.cast(x, np.float32)), six])
def test_a_cache_of_another_pipeline(other, place):
    def build(lib):
        for _ in lib.range(4).cache(place(lib)):
            pass
        return other(lib).cache(place(lib))

    with pytest.raises(SpecError, match="another pipeline"):
        next(iter(build(Ours())))

    def check(lib):
        if other(Ours()).element_spec.dtype == np.int64:
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


@pytest.mark.parametrize("shards", [None, *SHARDS])
@pytest.mark.parametrize("reader", ["default", "one after the other", "in blocks", "the first"])
def test_snapshots(shards, reader, place):
    def build(lib):
        function = None if shards is None else SHARDS[shards]
        return lib.range(10).snapshot(place(lib), reader_func=READERS[reader], shard_func=function)

    assert_same(build)  # writes
    assert_same(build, cardinality=False)  # reads


@pytest.mark.parametrize("source", DATASETS)
def test_snapshots_of_all_kinds(source, place):
    build = lambda lib: DATASETS[source](lib).snapshot(place(lib), compression="GZIP")
    assert_same(build, spec="compatible")
    assert_same(build, spec="compatible")


def test_snapshots_of_a_pipeline_that_fails(place):
    for _ in range(2):
        assert_same(lambda lib: six(lib).snapshot(place(lib)), spec="compatible")


def test_snapshots_are_used_once_they_are_whole(place):
    def check(lib):
        calls = []

        def count(x):
            calls.append(int(x))
            return x

        mapped = lib.range(5).map(lib.call(count, TensorSpec((), np.int64)))
        dataset = mapped.snapshot(place(lib))
        assert len(list(dataset.take(2))) == 2
        calls.clear()
        for _ in range(3):
            assert [int(x) for x in dataset] == [0, 1, 2, 3, 4]
        assert len(calls) == 5

    in_both(check)

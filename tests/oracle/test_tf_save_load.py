"""Tests of save and load against tf.data's."""

import multiprocessing
from typing import NamedTuple

import numpy as np
import pytest
from compare import assert_both_refuse, assert_same, attempt, oracle

from dataset import SpecError, TensorSpec
from dataset.ops.interleave.interleave import DEFAULT_CYCLE_LENGTH
from support.libraries import Ours, fail_at


@pytest.fixture(autouse=True)
def _same_cycle(monkeypatch):
    """tf.data reads as many shards in parallel as there are cores."""
    monkeypatch.setattr(multiprocessing, "cpu_count", lambda: DEFAULT_CYCLE_LENGTH)


@pytest.fixture
def place(tmp_path):
    return lambda lib, name="saved": str(tmp_path / lib.name / name)


def text(*values):
    return np.array(values, object)


DATASETS = {
    "numbers": lambda lib: lib.Dataset.range(7),
    "empty": lambda lib: lib.Dataset.range(0),
    "batches": lambda lib: lib.Dataset.range(7).batch(3),
    "full batches": lambda lib: lib.Dataset.range(7).batch(3, drop_remainder=True),
    "vectors": lambda lib: lib.Dataset.range(5).map(lambda x: lib.fill([x], x)),
    "images": lambda lib: lib.Dataset.from_tensor_slices(np.arange(24, dtype=np.uint8).reshape(2, 3, 4)),
    "halves": lambda lib: lib.Dataset.from_tensor_slices(np.array([1.5, np.inf, -0.0], np.float16)),
    "complex": lambda lib: lib.Dataset.from_tensor_slices(np.array([1 + 2j], np.complex64)),
    "bools": lambda lib: lib.Dataset.from_tensor_slices(np.array([True, False])),
    "text": lambda lib: lib.Dataset.from_tensor_slices(text(b"a\0", b"", b"\xff")),
    "matrix of text": lambda lib: lib.Dataset.from_tensors(text(b"a\0", b"", b"\0", b"b").reshape(2, 2)),
    "tuples": lambda lib: lib.Dataset.range(3).map(lambda x: (x, (x + 1, x * 2))),
    "dicts": lambda lib: lib.Dataset.from_tensor_slices({"b": np.arange(2), "a": (np.zeros((2, 0)), np.ones(2))}),
    "none": lambda lib: lib.Dataset.range(3).map(lambda x: (x, None)),
    "ragged": lambda lib: lib.Dataset.from_tensors(lib.ragged([[1, 2], [], [3]])).repeat(2),
    "sparse": lambda lib: lib.Dataset.from_tensors(lib.sparse([[0, 1]], np.array([5]), [2, 3])).repeat(2),
    "no rows": lambda lib: lib.Dataset.from_tensors(np.zeros((0, 3), np.float32)),
}


@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")  # tf.data warns about None
@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize("source", DATASETS)
def test_round_trips(source, compression, place):
    def build(lib):
        DATASETS[source](lib).save(place(lib), compression=compression)
        return lib.Dataset.load(place(lib), compression=compression)

    # One library derives varying sizes from its graphs, the other one from the elements.
    assert_same(build, spec="compatible" if source == "vectors" else "equal")


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


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("shards", SHARDS)
def test_orders_of_shards(shards, reader, place):
    def build(lib):
        lib.Dataset.range(10).save(place(lib), shard_func=SHARDS[shards])
        return lib.Dataset.load(place(lib), reader_func=READERS[reader])

    assert_same(build)


def test_saving_again_replaces(place):
    def build(lib):
        lib.Dataset.range(9).save(place(lib), shard_func=lambda x: x % 3)
        lib.Dataset.range(4).batch(2).save(place(lib))
        return lib.Dataset.load(place(lib))

    assert_same(build)


def test_what_was_loaded_can_be_used_like_any_dataset(place):
    def build(lib):
        lib.Dataset.range(9).save(place(lib), shard_func=lambda x: x % 2)
        return lib.Dataset.load(place(lib)).repeat(2).skip(3).batch(4)

    assert_same(build)


def test_a_spec_may_be_given_and_may_be_wider(place):
    def build(lib):
        lib.Dataset.from_tensor_slices(np.zeros((3, 2))).save(place(lib))
        return lib.Dataset.load(place(lib), lib.TensorSpec((None,), np.float64))

    assert_same(build)


def test_what_cannot_be_loaded(place):
    def other(spec):
        def build(lib):
            lib.Dataset.range(3).save(place(lib))
            return lib.Dataset.load(place(lib), spec(lib))

        return build

    assert_both_refuse(other(lambda lib: lib.TensorSpec((), np.float32)), ValueError)
    assert_both_refuse(lambda lib: lib.Dataset.load(place(lib, "nowhere")), FileNotFoundError)
    assert_both_refuse(lambda lib: lib.Dataset.load(place(lib), reader_func=3), TypeError)


@pytest.mark.parametrize(
    "function", [lambda x: x > 3, lambda x: x / 2, lambda x: (x, x)], ids=["bool", "float", "tuple"]
)
def test_what_is_no_shard_function(function, place):
    for lib in (oracle(), Ours()):
        save = lambda lib: lib.Dataset.range(4).save(place(lib), shard_func=function) or "saved"
        assert isinstance(attempt(save, lib), Exception)
        assert isinstance(attempt(lambda lib: lib.Dataset.load(place(lib)), lib), Exception) or lib.name == "tf.data"


@pytest.mark.parametrize("path", [3, None], ids=repr)
def test_what_is_no_path(path):
    for lib in (oracle(), Ours()):
        assert isinstance(attempt(lambda lib: lib.Dataset.range(4).save(path), lib), (TypeError, ValueError))
        assert isinstance(attempt(lambda lib: lib.Dataset.load(path), lib), (TypeError, ValueError))


def test_named_tuples_keep_their_names(place):
    class Pair(NamedTuple):
        one: object
        two: object

    found = []
    for lib in (oracle(), Ours()):
        lib.Dataset.from_tensors(Pair(np.int64(1), np.int64(2))).save(place(lib))
        loaded = lib.Dataset.load(place(lib))
        (element,) = loaded
        found.append((type(element).__name__, element._fields, [int(part) for part in element]))
        assert type(element) is not Pair
    assert found[0] == found[1]


# cache(filename) and snapshot(path)


def failing(lib):
    return lib.Dataset.range(6).map(lib.call(fail_at(2), TensorSpec((), np.int64)))


@pytest.mark.parametrize("source", [*DATASETS, "failing"])
def test_caches(source, place):
    make = {**DATASETS, "failing": failing}[source]

    def build(lib):
        return make(lib).cache(place(lib) + "-cache")

    prepare(place)
    assert_same(build, spec="compatible")  # creates the cache
    assert_same(lambda lib: build(lib).repeat(2), spec="compatible")  # reads the cache


def prepare(place):
    from pathlib import Path

    for lib in (oracle(), Ours()):
        Path(place(lib)).parent.mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("other", [lambda lib: lib.Dataset.range(6).map(lambda x: lib.cast(x, np.float32)), failing])
def test_a_cache_of_another_pipeline(other, place):
    prepare(place)

    def build(lib):
        for _ in lib.Dataset.range(4).cache(place(lib)):
            pass
        return other(lib).cache(place(lib))

    with pytest.raises(SpecError, match="another pipeline"):
        next(iter(build(Ours())))
    if other(Ours()).element_spec.dtype == np.int64:
        assert list(build(oracle()).as_numpy_iterator()) == [0, 1, 2, 3]  # of the pipeline that filled it
    else:
        with pytest.raises(Exception, match=r"float|type"):
            next(iter(build(oracle())))


@pytest.mark.parametrize("taken", [1, 3])
def test_a_partial_pass_of_a_cache(taken, place):
    prepare(place)

    def build(lib):
        assert len(list(lib.Dataset.range(6).cache(place(lib)).take(taken))) == taken
        return lib.Dataset.range(6).map(lambda x: x + 10).cache(place(lib))

    assert_same(build, spec="compatible")


def test_a_second_iterator_during_a_pass(place):
    prepare(place)
    for lib in (oracle(), Ours()):
        dataset = lib.Dataset.range(6).cache(place(lib))
        first = iter(dataset)
        assert int(next(first)) == 0
        with pytest.raises(Exception, match="cach"):
            next(iter(dataset))
        assert int(next(first)) == 1


def test_a_cache_under_no_directory(place):
    assert_both_refuse_to_iterate(lambda lib: lib.Dataset.range(3).cache(place(lib, "no/where/at/all")))


def assert_both_refuse_to_iterate(build):
    for lib in (oracle(), Ours()):
        assert isinstance(attempt(lambda lib: next(iter(build(lib))), lib), Exception)


@pytest.mark.parametrize("shards", [None, *SHARDS])
@pytest.mark.parametrize("reader", ["default", "one after the other", "in blocks", "the first"])
def test_snapshots(shards, reader, place):
    def build(lib):
        function = None if shards is None else SHARDS[shards]
        return lib.Dataset.range(10).snapshot(place(lib), reader_func=READERS[reader], shard_func=function)

    assert_same(build)  # writes
    assert_same(build, cardinality=False)  # reads


@pytest.mark.parametrize("source", DATASETS)
def test_snapshots_of_all_kinds(source, place):
    build = lambda lib: DATASETS[source](lib).snapshot(place(lib), compression="GZIP")
    assert_same(build, spec="compatible")
    assert_same(build, spec="compatible")


def test_snapshots_of_a_pipeline_that_fails(place):
    for _ in range(2):
        assert_same(lambda lib: failing(lib).snapshot(place(lib)), spec="compatible")


def test_snapshots_are_used_once_they_are_whole(place):
    for lib in (oracle(), Ours()):
        calls = []

        def count(x, calls=calls):
            calls.append(int(x))
            return x

        mapped = lib.Dataset.range(5).map(lib.call(count, TensorSpec((), np.int64)))
        dataset = mapped.snapshot(place(lib))
        assert len(list(dataset.take(2))) == 2
        calls.clear()
        for _ in range(3):
            assert [int(x) for x in dataset] == [0, 1, 2, 3, 4]
        assert len(calls) == 5

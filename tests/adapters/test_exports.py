"""What every export to a framework promises: passes, laziness, failures, private memory, and threads that end."""

import collections
import gc
import re

import numpy as np
import pytest

from adapters.aligned_arrays import aligned
from dataset import ClosedError, Dataset, TensorSpec
from support.libraries import fail_at
from support.op_cases import Sample
from support.pipelines import Pair, Record

EXPORTS = {
    "torch": (lambda dataset: dataset.to_torch(), 0),
    "jax": (lambda dataset: dataset.to_jax(prefetch=0), 0),
    "jax, ahead": (lambda dataset: dataset.to_jax(prefetch=2), 2),
    "jax, far ahead": (lambda dataset: dataset.to_jax(prefetch=5), 5),
    "tf": (lambda dataset: dataset.to_tf(), 0),
    "tf, unknown length": (lambda dataset: dataset.filter(lambda x: True).to_tf(), 0),
}
"""How a dataset is exported, and how many elements are computed before they are requested."""


def exports(*frameworks):
    """Parametrize a test by the exports of these frameworks."""
    return pytest.mark.parametrize(
        ("export", "ahead"),
        [
            pytest.param(*export, id=name, marks=pytest.mark.explore if name.startswith("tf") else ())
            for name, export in EXPORTS.items()
            if name.split(",")[0] in frameworks
        ],
    )


every_export = exports("torch", "jax", "tf")


STRUCTURES = {
    "bare": lambda x: x,
    "tuple": lambda x: (x, (x + 1, x + 2)),
    "named tuple": lambda x: Pair(x, {"deep": x}),
    "dict": lambda x: {"b": x, "a": (x, None)},
    "ordered dict": lambda x: collections.OrderedDict(b=x, a=x + 1),
    "dataclass": lambda x: Record(x, (x,)),
    "attrs": lambda x: (Sample(x, x + 1), {"y": x}),
    "nothing beside": lambda x: (None, x, ()),
}


@pytest.mark.parametrize("make", STRUCTURES.values(), ids=STRUCTURES)
@exports("torch", "jax")
def test_structures_are_kept(export, ahead, make):
    dataset = Dataset.range(3).map(make)
    for ours, theirs in zip(dataset, export(dataset), strict=True):
        assert re.sub(r"(tensor|Array)\((\d)[^)]*\)", r"np.int64(\2)", repr(theirs)) == repr(ours)


@every_export
def test_each_pass_is_a_new_one_and_an_unknown_length_is_an_error_of_len_only(export, ahead):
    shuffled = export(Dataset.range(100).shuffle(100, seed=1))
    first, second = ([int(x) for x in shuffled] for _ in range(2))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(100))
    for unknown in (Dataset.range(3).repeat(), Dataset.range(3).filter(lambda x: x > 0)):
        converted = export(unknown)
        with pytest.raises(TypeError):
            len(converted)


@every_export
def test_it_takes_no_more_elements_than_it_returns_and_prefetches(export, ahead):
    taken = []

    def numbers():
        for number in range(100):
            taken.append(number)
            yield number

    iterator = iter(export(Dataset.from_generator(numbers, output_signature=TensorSpec((), np.int64))))
    assert not taken
    for given in range(1, 8):
        next(iterator)
        assert len(taken) == given + ahead


@every_export
def test_an_exception_takes_the_place_of_its_element(export, ahead):
    found, iterator = [], iter(export(Dataset.range(5).map(fail_at(1, 3))))
    for _ in range(5):
        try:
            found.append(int(next(iterator)))
        except Exception as error:
            found.append(f"{error!r}: {error} {getattr(error, '__notes__', '')}")
    assert found[::2] == [0, 2, 4]
    for bad in (1, 3):
        assert all(words in found[bad] for words in ("BadElementError", "in map(check)", f"element {bad}"))


@pytest.mark.parametrize("how", ["close", "drop", "end"])
@every_export
def test_the_end_of_an_iteration_ends_its_threads_without_the_garbage_collector(export, ahead, how, pipeline_threads):
    gc.disable()
    try:
        iterator = iter(export(Dataset.range(50).map(lambda x: x + 1, num_parallel_calls=2).prefetch(2)))
        next(iterator)
        threads = pipeline_threads()
        assert threads
        if how == "end":
            assert len(list(iterator)) == 49
        elif how == "close" and hasattr(iterator, "close"):
            with iterator:
                pass
            with pytest.raises(ClosedError):
                next(iterator)
        else:
            del iterator
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    finally:
        gc.enable()


# Memory. JAX and TensorFlow share aligned memory of NumPy, so every source here is aligned.

BIG = (64, 256, 64)  # large enough that a copy made after the call would be late
SOURCES = {
    "from_tensors": Dataset.from_tensors,
    "slices": Dataset.from_tensor_slices,
    "batch": lambda array: Dataset.from_tensor_slices(array).batch(32),
    "skip, batch": lambda array: Dataset.from_tensor_slices(array).skip(1).batch(20),
    "window of all": lambda array: Dataset.from_tensor_slices(array).batch(64).unbatch(),
    "map": lambda array: Dataset.range(2).map(lambda _: array),
    "map to a view": lambda array: Dataset.range(2).map(lambda _: array[::2]),
    "generator": lambda array: Dataset.from_generator(lambda: iter([array, array])),
    "prefetch": lambda array: Dataset.from_tensor_slices(array).batch(32).prefetch(2),
}


def test_jax_shares_memory_where_it_can():
    """Otherwise the tests below would prove nothing."""
    import jax

    array = aligned((16, 16))
    converted = jax.device_put(array, may_alias=False).block_until_ready()
    array[:] = 2
    assert converted[0, 0] == 2


@pytest.mark.explore
def test_tensorflow_shares_memory_where_it_can(tf):
    array = aligned((16, 16))
    signature = (tf.TensorSpec((16, 16), tf.float32),)
    ((tensor,),) = tf.data.Dataset.from_generator(lambda: iter([(array,)]), output_signature=signature)
    array[:] = 2
    assert tensor[0, 0] == 2


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("offset", [0, 4], ids=["aligned", "unaligned"])
@exports("jax", "tf")
def test_a_tensor_does_not_change_with_the_source_array(export, ahead, make, offset):
    memory = aligned((int(np.prod(BIG)) + 1,))
    first = next(iter(export(make(memory[offset // 4 :][: int(np.prod(BIG))].reshape(BIG)))))
    memory[:] = 2
    assert (np.asarray(first) == 1).all()


@exports("jax", "tf")
def test_a_reused_buffer_becomes_different_tensors(export, ahead):
    buffer = aligned((64, 64))

    def fill(number):
        buffer[:] = number
        return buffer

    for dataset in (Dataset.from_generator(lambda: map(fill, range(6))), Dataset.range(6).map(fill)):
        assert [int(array[0, 0]) for array in list(export(dataset))] == list(range(6))

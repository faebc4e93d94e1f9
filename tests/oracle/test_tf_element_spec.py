"""Tests of element_spec against tf.data's, for every kind of element and op."""

import numpy as np
import pytest
from cases import ELEMENTS, NUMBERS, Point
from compare import as_known, compare_specs, oracle

from dataset import TensorSpec
from support.libraries import Ours, spec_from_tensorflow


def assert_same_spec(build, how="equal"):
    ours = build(Ours())
    compare_specs(ours.element_spec, oracle().spec(build(oracle()).element_spec), as_known(ours, how))


@pytest.mark.parametrize("element", ELEMENTS)
def test_elements(element):
    def start(lib):
        return lib.Dataset.from_tensors(ELEMENTS[element](lib))

    assert_same_spec(start)
    assert_same_spec(lambda lib: start(lib).repeat().take(2).skip(1).shuffle(2).cache().prefetch(1))
    assert_same_spec(lambda lib: start(lib).enumerate())
    assert_same_spec(lambda lib: lib.Dataset.zip((start(lib), {"b": start(lib), "a": start(lib)})))
    assert_same_spec(lambda lib: start(lib).concatenate(start(lib)))
    assert_same_spec(lambda lib: start(lib).filter(lambda *args: True))
    assert_same_spec(lambda lib: start(lib).map(lambda *args: args))
    assert_same_spec(lambda lib: start(lib).map(lambda *args: {"b": args[0], "a": (args[-1],)}))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_dtypes(dtype):
    assert_same_spec(lambda lib: lib.Dataset.from_tensors((np.ones((2, 0), dtype), np.dtype(dtype).type(1))))
    assert_same_spec(lambda lib: lib.Dataset.range(3).map(lambda x: lib.cast(x, dtype)))


@pytest.mark.parametrize(
    ("first", "second"), [((2,), (3,)), ((2, 3), (2, 4)), ((2,), (2, 3)), ((), (1,)), ((0,), (0,)), ((2, 3), (2, 3))]
)
def test_two_shapes_together(first, second):
    assert_same_spec(
        lambda lib: lib.Dataset.from_tensors(np.zeros(first)).concatenate(lib.Dataset.from_tensors(np.zeros(second)))
    )


SPECS = [
    TensorSpec((), np.int64),
    (TensorSpec((None, 2), np.float32), TensorSpec((3,), bytes)),
    {"b": TensorSpec((), bytes), "a": (TensorSpec((None,), bool), TensorSpec((2, 0), np.uint8))},
    Point(TensorSpec((1,), np.float64), {"x": TensorSpec((), np.complex64)}),
]


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_a_declared_spec(spec):
    tf = oracle().tf

    def component(one):
        return tf.TensorSpec(one.shape, tf.string if one.dtype == np.dtype("S") else one.dtype)

    theirs = oracle().Dataset.from_generator(lambda: iter(()), output_signature=tf.nest.map_structure(component, spec))
    ours = Ours.Dataset.from_generator(lambda: iter(()), output_signature=spec)
    compare_specs(ours.element_spec, spec_from_tensorflow(tf, theirs.element_spec), "equal")


def test_it_is_a_property_that_cannot_be_set():
    for lib in (Ours(), oracle()):
        with pytest.raises(AttributeError):
            lib.Dataset.range(3).element_spec = None

"""Tests of element_spec against tf.data's, for every kind of element and op."""

import numpy as np
import pytest
from cases import ELEMENTS, NUMBERS, Point
from compare import Ours, as_known, assert_both_raise, compare_specs, in_both, same, theirs

from dataset import TensorSpec
from support.libraries import map_plain


def assert_same_spec(build):
    ours = build(Ours())
    compare_specs(ours.element_spec, theirs(lambda lib: build(lib).element_spec), as_known(ours, "equal"))


def start(lib, element):
    return lib.from_tensors(element(lib))


test_elements = same(
    [
        start,
        lambda lib, e: start(lib, e).repeat().take(2).skip(1).shuffle(2).cache().prefetch(1),
        lambda lib, e: start(lib, e).enumerate(),
        lambda lib, e: lib.zip((start(lib, e), {"b": start(lib, e), "a": start(lib, e)})),
        lambda lib, e: start(lib, e).concatenate(start(lib, e)),
        lambda lib, e: start(lib, e).filter(lambda *args: True),
        lambda lib, e: start(lib, e).map(lambda *args: args),
        lambda lib, e: start(lib, e).map(lambda *args: {"b": args[0], "a": (args[-1],)}),
    ],
    ELEMENTS,
    by=assert_same_spec,
)
test_dtypes = same(
    [
        lambda lib, dtype: lib.from_tensors((np.ones((2, 0), dtype), np.dtype(dtype).type(1))),
        lambda lib, dtype: lib.range(3).map(lambda x: lib.cast(x, dtype)),
    ],
    NUMBERS,
    by=assert_same_spec,
)
test_two_shapes_together = same(
    lambda lib, shapes: lib.from_tensors(np.zeros(shapes[0])).concatenate(lib.from_tensors(np.zeros(shapes[1]))),
    [((2,), (3,)), ((2, 3), (2, 4)), ((2,), (2, 3)), ((), (1,)), ((0,), (0,)), ((2, 3), (2, 3))],
    by=assert_same_spec,
)
SPECS = [
    TensorSpec((), np.int64),
    (TensorSpec((None, 2), np.float32), TensorSpec((3,), bytes)),
    {"b": TensorSpec((), bytes), "a": (TensorSpec((None,), bool), TensorSpec((2, 0), np.uint8))},
    Point(TensorSpec((1,), np.float64), {"x": TensorSpec((), np.complex64)}),
]


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_a_declared_spec(spec):
    def declared(lib):
        signature = map_plain(lambda one: lib.TensorSpec(one.shape, one.dtype), spec)
        return lib.from_generator(lambda: iter(()), output_signature=signature).element_spec

    compare_specs(*in_both(declared), "equal")


def test_it_is_a_property_that_cannot_be_set():
    assert_both_raise(lambda lib: setattr(lib.range(3), "element_spec", None), AttributeError)

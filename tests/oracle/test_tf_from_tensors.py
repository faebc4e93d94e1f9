"""Tests of from_tensors against tf.data's."""

import numpy as np
from cases import ELEMENTS, NUMBERS
from compare import refused, same

test_elements = same("from_tensors(element)", element=ELEMENTS)
test_dtypes = same(
    ["from_tensors(np.ones(shape, dtype))", "from_tensors(const(np.ones(shape), dtype))"],
    dtype=NUMBERS,
    shape=[(), (2,), (0,), (2, 0, 1)],
)
EXTREMES = [np.float64("nan"), np.float32("-inf"), np.uint64(2**64 - 1), np.int64(-(2**63)), np.float64(-0.0)]
LAYOUTS = [np.arange(6).reshape(2, 3)[:, ::-1], np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(3.5)]
LAYOUTS += [np.array(["a", "bc"], "S"), np.array([b"a\x00", b"bc"], "S4"), [np.array([1, 2]), np.array([3, 4])]]
LAYOUTS += [np.str_("ü"), np.bytes_(b"x")]
test_extreme_values_and_arrays_of_every_layout = same("from_tensors(value)", value=EXTREMES + LAYOUTS)
UNEVEN = [[[1, 2], [3]], ["a", ["b"]], [np.zeros(2), np.zeros(3)]]
NOTHING = [None, (), {}, (None,), {"a": None}, ((), None)]
test_what_is_refused = refused({(TypeError, ValueError): UNEVEN, ValueError: NOTHING}, "from_tensors(case)")
test_a_name = same("from_tensors(tensors=int64(1), name=name)", name=[None, "label"])

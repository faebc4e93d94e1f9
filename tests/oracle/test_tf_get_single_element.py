"""Tests of get_single_element and fingerprint against tf.data's."""

import pytest
from cases import failing
from compare import assert_both_raise, in_both

from dataset.testing import assert_elements_equal

ONE = {
    "scalar": lambda lib: lib.range(3, 4),
    "nested": lambda lib: lib.range(1).map(lambda x: (x, {"a": x + 1, "b": (x,)})),
    "text": lambda lib: lib.from_tensors(lib.const("text", bytes)),
    "batch": lambda lib: lib.range(5).batch(9),
    "taken": lambda lib: lib.range(5).repeat().take(1),
    "ragged": lambda lib: lib.from_tensors(lib.ragged([[1], [2, 3]])),
}

OTHERS = {
    "empty": lambda lib: lib.range(0),
    "two": lambda lib: lib.range(2),
    "endless": lambda lib: lib.range(2).repeat(),
    "failing": lambda lib: failing(lib, 0, size=1),
    "failing second": lambda lib: failing(lib, 1, size=2),
}


@pytest.mark.parametrize("case", ONE)
def test_one_element(case):
    ours, theirs = in_both(lambda lib: ONE[case](lib).get_single_element())
    assert_elements_equal([ours], [theirs])


@pytest.mark.parametrize("case", OTHERS)
def test_anything_else_fails(case):
    assert_both_raise(lambda lib: OTHERS[case](lib).get_single_element(), Exception)


PAIRS = {
    "range": lambda lib, n: lib.range(3 + n),
    "data": lambda lib, n: lib.from_tensor_slices(lib.const([1, 2, n], "int64")),
    "text": lambda lib, n: lib.from_tensor_slices(lib.const(["a", "b" * (n + 1)], bytes)),
    "function": lambda lib, n: lib.range(3).map([lambda x: x + 1, lambda x: x + 2][n]),
    "batch": lambda lib, n: lib.range(3).batch(2 + n),
    "order": lambda lib, n: [lib.range(9).take(3).skip(1), lib.range(9).skip(1).take(3)][n],
}


@pytest.mark.parametrize("case", PAIRS)
def test_fingerprints_are_equal_where_tf_datas_are(case):
    def check(lib):
        first, again, other = (int(PAIRS[case](lib, n).fingerprint()) for n in (0, 0, 1))
        assert first == again
        assert first != other

    in_both(check)

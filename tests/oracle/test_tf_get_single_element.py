"""Tests of get_single_element and fingerprint against tf.data's."""

from compare import assert_both_raise, in_both, same

from dataset.testing import assert_elements_equal


def assert_same_element(build):
    ours, theirs = in_both(lambda lib: build(lib).get_single_element())
    assert_elements_equal([ours], [theirs])


def assert_no_element(build):
    assert_both_raise(lambda lib: build(lib).get_single_element(), Exception)


ONE = ["range(1).map(lambda x: (x, {'a': x + 1, 'b': (x,)}))", "from_tensors('text')", "range(5).batch(9)"]
ONE += ["range(5).repeat().take(1)", "from_tensors(ragged([[1], [2, 3]]))"]
test_one_element = same(ONE, by=assert_same_element)
OTHERS = ["range(0)", "range(2)", "range(2).repeat()", "failing(0, size=1)", "failing(1, size=2)"]
test_anything_else_fails = same(OTHERS, by=assert_no_element)


def assert_other_fingerprint(build):
    def check(lib):
        first, again, other = (int(one.fingerprint()) for one in (build(lib)[0], *build(lib)))
        assert first == again != other

    in_both(check)


test_fingerprints_are_equal_where_tf_datas_are = same(
    {
        "range": "range(3), range(4)",
        "data": "[from_tensor_slices(const([1, 2, n], 'int64')) for n in (0, 1)]",
        "text": "[from_tensor_slices(const(['a', 'b' * n], bytes)) for n in (1, 2)]",
        "function": "range(3).map(lambda x: x + 1), range(3).map(lambda x: x + 2)",
        "batch": "range(3).batch(2), range(3).batch(3)",
        "order": "range(9).take(3).skip(1), range(9).skip(1).take(3)",
    },
    by=assert_other_fingerprint,
)

"""padded_batch: batches of components of different sizes."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import rows


def test_fills_up_to_the_largest_in_the_batch():
    check_operator(lambda: rows().padded_batch(2), [np.array([[1, 0], [2, 2]]), np.array([[3, 3, 3]])])
    check_operator(lambda: rows().padded_batch(2, None, -1, drop_remainder=True), [np.array([[1, -1], [2, 2]])])
    assert_elements_equal(list(rows().padded_batch(9)), [np.array([[1, 0, 0], [2, 2, 0], [3, 3, 3]])])
    assert_elements_equal(list(rows(1).padded_batch(2)), [])


def test_takes_whole_batches_and_no_more():
    check_laziness(lambda numbers: numbers.map(np.zeros).padded_batch(4), lambda k: 4 * k)


@pytest.mark.parametrize("shape", [[4], (4,), np.array([4])])
def test_fills_up_to_a_given_shape(shape):
    assert_elements_equal(list(rows(3).padded_batch(2, shape)), [np.array([[1, 0, 0, 0], [2, 2, 0, 0]])])


@pytest.mark.parametrize("shape", [[None], [-1], (None,), None])
def test_none_and_minus_one_mean_the_largest(shape):
    assert_elements_equal(list(rows(3).padded_batch(2, shape)), [np.array([[1, 0], [2, 2]])])


def test_fills_up_in_every_dimension():
    dataset = Dataset.range(1, 4).map(lambda n: np.full((n, 4 - n), n))
    expected = np.zeros((3, 3, 3), np.int64)
    expected[0, :1, :3], expected[1, :2, :2], expected[2, :3, :1] = 1, 2, 3
    assert_elements_equal(list(dataset.padded_batch(3)), [expected])
    wide = np.zeros((3, 3, 5), np.int64)
    wide[:, :, :3] = expected
    check_operator(lambda: dataset.padded_batch(3, padded_shapes=[None, 5]), [wide])


@pytest.mark.parametrize(
    ("values", "filled"),
    [
        ([[1.5], []], np.array([[1.5], [0.0]])),
        ([["a"], ["b\x00", "c"]], np.array([[b"a", b""], [b"b\x00", b"c"]], object)),
        ([[True], [True, True]], np.array([[True, False], [True, True]])),
        ([np.ones(1, "f2"), np.ones(2, "f2")], np.array([[1, 0], [1, 1]], "f2")),
        ([np.ones(1, "u8"), np.ones(2, "u8")], np.array([[1, 0], [1, 1]], "u8")),
        ([np.zeros(0, "i4"), np.zeros(0, "i4")], np.zeros((2, 0), "i4")),
        ([1, 2], np.array([1, 2])),
        (["a", "b\x00"], np.array([b"a", b"b\x00"], object)),
        ([np.zeros((1, 0)), np.zeros((2, 3))], np.zeros((2, 2, 3))),
    ],
    ids=repr,
)
def test_fills_every_dtype_with_its_zero(values, filled):
    signature = TensorSpec(None, np.asarray(values[0]).dtype) if np.size(values[0]) else TensorSpec(None, filled.dtype)
    dataset = Dataset.from_generator(lambda: values, output_signature=signature)
    got = list(dataset.padded_batch(2, padded_shapes=[None] * (filled.ndim - 1)))
    assert_elements_equal(got, [filled])


def test_each_component_has_its_shape_and_value():
    dataset = Dataset.range(1, 3).map(lambda n: {"a": np.full(n, n), "b": (["x"] * int(n), n)})
    expected = {
        "a": np.array([[1, -1, -1], [2, 2, -1]]),
        "b": (np.array([[b"x", b"?"], [b"x", b"x"]], object), np.array([1, 2])),
    }
    shapes = {"b": ([None], []), "a": [3]}
    values = {"b": ("?", None), "a": -1}
    check_operator(lambda: dataset.padded_batch(2, shapes, values), [expected])


def test_one_value_goes_for_all_components():
    dataset = Dataset.range(1, 3).map(lambda n: (np.full(n, n), np.full(n, 2 * n)))
    expected = (np.array([[1, 9], [2, 2]]), np.array([[2, 9], [4, 4]]))
    assert_elements_equal(list(dataset.padded_batch(2, padding_values=9)), [expected])


def test_knows_spec_and_cardinality():
    static = Dataset.from_generator(list, output_signature=TensorSpec((None,), np.int64))
    assert static.padded_batch(3).element_spec == TensorSpec((None, None), np.int64)
    assert static.padded_batch(3, [4], drop_remainder=True).element_spec == TensorSpec((3, 4), np.int64)
    assert rows().padded_batch(2).cardinality() == 2
    assert rows().padded_batch(2, drop_remainder=True).cardinality() == 1
    assert rows().repeat().padded_batch(2).cardinality() == -1


def test_a_component_larger_than_its_shape_is_an_error_while_iterating():
    got = outcomes(iter(rows().padded_batch(2, padded_shapes=[2])))
    assert_elements_equal(got[:1], [np.array([[1, 0], [2, 2]])])
    assert isinstance(got[1], SpecError)
    assert "padded_batch" in str(got[1])
    assert "element 2" in str(got[1])


def test_a_known_component_larger_than_its_shape_is_an_error():
    with pytest.raises(ValueError, match="padded"):
        list(Dataset.from_tensor_slices(np.zeros((2, 3))).padded_batch(2, padded_shapes=[2]))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([np.zeros(2, "f4"), np.zeros(3, "f8")], "dtype"),
        ([np.zeros(2), np.zeros((2, 2))], "rank"),
        ([np.zeros(2), ["a"]], "dtype|type"),
    ],
)
def test_dtypes_and_ranks_must_agree(values, words):
    with pytest.raises(SpecError, match=words):
        list(Dataset.from_generator(lambda: values).padded_batch(2))


@pytest.mark.parametrize("value", [RaggedTensor([1], [0, 1]), SparseTensor([[0]], [1], [2])], ids=["ragged", "sparse"])
def test_ragged_and_sparse_are_refused_with_a_way_out(value):
    with pytest.raises((TypeError, ValueError), match=r"use batch\(\)"):
        list(Dataset.from_tensors(value).padded_batch(2))
    with pytest.raises((TypeError, ValueError), match=r"use batch\(\)"):
        list(Dataset.range(2).map(lambda x: value).padded_batch(2))


@pytest.mark.parametrize("value", [0.5, "x", 2**70, np.nan])
def test_a_padding_value_that_the_dtype_cannot_hold_is_an_error(value):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        list(rows().padded_batch(3, padding_values=value))


def test_a_negative_padding_value_for_unsigned_numbers_is_an_error():
    dataset = Dataset.range(1, 4).map(lambda n: np.ones(n, np.uint8))
    with pytest.raises((TypeError, ValueError, OverflowError)):
        list(dataset.padded_batch(3, padding_values=-1))


def test_a_padding_value_of_another_kind_is_refused_at_construction_where_the_spec_is_known():
    static = Dataset.from_generator(list, output_signature=TensorSpec((None,), np.int64))
    for value in (0.5, "x"):
        with pytest.raises((TypeError, ValueError), match="padding_values"):
            static.padded_batch(2, padding_values=value)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0,), ValueError, "batch_size must be at least 1, got 0"),
        ((2.0,), TypeError, "batch_size must be an int"),
        ((2, [4, 4]), ValueError, r"padded shape \(4, 4\) does not fit"),
        ((2, ([4], [4])), (TypeError, ValueError), "padded_shapes"),
        ((2, {"a": [4]}), (TypeError, ValueError), "padded_shapes"),
        ((2, None, (1, 2)), (TypeError, ValueError), "padding_values"),
        ((2, None, None, 3), TypeError, "drop_remainder must be True or False"),
    ],
)
def test_refuses_wrong_arguments_at_construction(arguments, error, words):
    static = Dataset.from_generator(list, output_signature=TensorSpec((None,), np.int64))
    with pytest.raises(error, match=words):
        static.padded_batch(*arguments)


def test_exceptions_take_what_their_batch_had_so_far():
    def fail(n):
        if n == 2:
            raise ValueError("bad")
        return np.full(n, n)

    dataset = Dataset.range(1, 6).map(fail)
    expected = [ValueError("bad"), np.array([[3, 3, 3, 0], [4, 4, 4, 4]]), np.array([[5] * 5])]
    check_operator(lambda: dataset.padded_batch(2), expected)


def test_batches_are_the_users():
    kept = list(rows().padded_batch(1))
    for batch in kept:
        batch[:] = 9
    assert_elements_equal(list(rows().padded_batch(1))[:1], [np.array([[1]])])
    source = np.zeros((2, 2))
    for batch in Dataset.from_tensor_slices(source).padded_batch(2):
        if batch.flags.writeable:
            batch[:] = 1
    assert not source.any()


# Where tf.data has no Python numbers of its own width, or no way at all


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "c8"])
def test_a_python_number_goes_for_every_dtype_that_can_hold_it(dtype):
    static = Dataset.from_generator(
        lambda: [np.ones(1, dtype), np.ones(2, dtype)], output_signature=TensorSpec((None,), dtype)
    )
    assert_elements_equal(list(static.padded_batch(2, padding_values=7)), [np.array([[1, 7], [1, 1]], dtype)])


@pytest.mark.parametrize(
    ("dtype", "value"), [("i8", True), ("?", 1), ("i8", np.int32(1)), ("f4", np.float64(1)), ("f4", 1j)]
)
def test_a_value_of_another_dtype_is_refused(dtype, value):
    static = Dataset.from_generator(list, output_signature=TensorSpec((None,), dtype))
    with pytest.raises(TypeError, match=r"padding_values has .* for the element, which is not a value of dtype"):
        static.padded_batch(2, padding_values=value)


def test_a_component_without_room_is_named_with_its_element_and_both_shapes():
    dataset = Dataset.range(1, 4).map(lambda n: {"a": np.zeros(n), "b": np.zeros((1, n))})
    got = outcomes(iter(dataset.padded_batch(3, {"a": [None], "b": [None, 2]})))
    assert isinstance(got[0], SpecError)
    assert "component 'b' has shape (1, 3) in element 2, which does not fit into (1, 2)" in str(got[0])


def test_a_padded_shape_too_small_for_what_is_known_is_refused_at_construction():
    for shape in ([2], [0]):
        with pytest.raises(ValueError, match=r"padded shape \(\d,\) does not fit the element of shape \(3,\)"):
            Dataset.from_tensor_slices(np.zeros((2, 3))).padded_batch(2, shape)


def test_none_is_structure_here_too():
    check_operator(
        lambda: Dataset.from_tensors(([1], None)).repeat(2).padded_batch(2, ([2], None)),
        [(np.array([[1, 0], [1, 0]]), None)],
    )


def test_rows_of_a_ragged_tensor_can_be_padded():
    ragged = RaggedTensor([1, 2, 3], [0, 1, 1, 3])
    check_operator(lambda: Dataset.from_tensor_slices(ragged).padded_batch(3), [np.array([[1, 0], [0, 0], [2, 3]])])


def test_text_that_ends_in_zero_bytes_fills_up_as_it_is():
    dataset = Dataset.from_tensor_slices(["a", "b"]).map(lambda text: np.array([text] * (1 + (text == b"a")), object))
    expected = [np.array([[b"a", b"a"], [b"b", b"z\0"]], object)]
    check_operator(lambda: dataset.padded_batch(2, padding_values="z\0"), expected)

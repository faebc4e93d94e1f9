"""Tests of from_generator against tf.data's. Casts are stricter here where tf.data would silently change a value."""

import numpy as np
import pytest
from cases import NUMBERS, Point  # noqa: F401  # programs use Point
from compare import assert_same, programs, refused, same

from support.libraries import BadElementError


def generated(lib, values, signature):
    return lib.from_generator(lambda: iter(values), output_signature=signature)


def i64(lib, *shape):
    return lib.TensorSpec(shape, np.int64)


test_signatures = same(
    {
        "scalar": "generated([1, np.int64(2), np.array(3), np.int32(4)], i64())",
        "nothing": "generated([], i64())",
        "float": "generated([1, 2.5, np.float64(3), np.float16(4)], TensorSpec((), np.float32))",
        "ints that fit": "generated([0, 255, np.int64(7)], TensorSpec((), np.uint8))",
        "bool": "generated([True, np.False_], TensorSpec((), np.bool_))",
        "bool as number": "generated([(True, False)], (i64(), TensorSpec((), np.float64)))",
        "complex": "generated([1, 2.5, 3j], TensorSpec((), np.complex64))",
        "text": "generated(['käse', b'a\\0\\0', '', np.str_('x'), np.bytes_(b'y')], TensorSpec((), bytes))",
        "array of text": "generated([['a', 'ü'], np.array([b'a\\0'], object)], TensorSpec((None,), bytes))",
        "vector": "generated([[1, 2], (3, 4), np.array([5, 6]), [np.int64(7), 8]], i64(2))",
        "vector of unknown size": "generated([[1], [], [1, 2, 3], np.zeros(0, np.int64)], i64(None))",
        "matrix": "generated([np.eye(2), [[1, 2]], np.zeros((0, 2))], TensorSpec((None, 2), np.float64))",
        "unknown rank": "generated([1, [1, 2], [[]], np.zeros((1, 0, 2))], TensorSpec(None, np.float32))",
        "tuple": "generated([(1, [2]), (3, (4, 5))], (i64(), i64(None)))",
        "tuple of one": "generated([(1,), (2,)], (i64(),))",
        "nested": "generated([(1, {'a': ([2],), 'b': 3})], (i64(), {'b': i64(), 'a': (i64(1),)}))",
        "dict out of order": "generated([{'a': 1, 'b': 2}, {'b': 3, 'a': 4}], {'b': i64(), 'a': i64()})",
        "named tuple": "generated([Point(1, 2), Point(3, 4)], Point(i64(), i64()))",
        "twice": "generated([1, 2], i64()).repeat(2).take(3)",
    }
)
test_dtypes = same("generated([np.ones(2, dtype), np.ones(2, dtype).tolist()], TensorSpec((2,), dtype))", dtype=NUMBERS)
test_ragged_sparse_and_datasets = same(
    "generated([case[0]] * 2, case[1])",
    case=programs(
        ragged="ragged([[1], [2, 3]]), RaggedTensorSpec((2, None), np.int64)",
        ragged_of_unknown_rows="ragged([[1], []]), RaggedTensorSpec((None, None), np.int64)",
        ragged_twice="ragged([[[1], [2, 3]], []]), RaggedTensorSpec((2, None, None), np.int64)",
        sparse="sparse([[1]], int64([5]), [3]), SparseTensorSpec((3,), np.int64)",
        sparse_of_unknown_shape="sparse([[1, 0]], int64([5]), [3, 2]), SparseTensorSpec((None, None), np.int64)",
        beside="{'r': ragged([[1], [2]]), 'x': 1}, {'r': RaggedTensorSpec((2, None), np.int64), 'x': i64()}",
        dataset="range(3), DatasetSpec(i64())",
        ragged_of_another_size="ragged([[1]]), RaggedTensorSpec((2, None), np.int64)",
        ragged_of_another_dtype="ragged([[1]], np.int32), RaggedTensorSpec((1, None), np.int64)",
        dense_for_ragged="[[1]], RaggedTensorSpec((1, None), np.int64)",
        dense_for_sparse="[1], SparseTensorSpec((1,), np.int64)",
        sparse_of_another_shape="sparse([[1]], int64([5]), [3]), SparseTensorSpec((4,), np.int64)",
    ),
)
WRONG = {  # the specs, what they do not accept, and perhaps what they do
    "text for a number": ("i64()", "x", 1),
    "a number for text": ("TensorSpec((), bytes)", 3, b"x"),
    "None": ("i64()", None, 1),
    "a vector for a scalar": ("i64()", [1]),
    "a scalar for a vector": ("i64(None)", 1, [1]),
    "too long": ("i64(2)", [1, 2, 3]),
    "a matrix for a vector": ("i64(None)", [[1]]),
    "no rectangle": ("i64(None, None)", [[1], [2, 3]], [[1]]),
    "a list for a tuple": ("(i64(), i64())", [1, 2]),
    "a longer tuple": ("(i64(), i64())", (1, 2, 3)),
    "a shorter tuple": ("(i64(), i64())", (1,)),
    "a bare value for a tuple of one": ("(i64(),)", 1),
    "a dict for a tuple": ("(i64(), i64())", {"a": 1, "b": 2}),
    "a dict for a value": ("i64()", {"a": 1}),
    "other keys": ("{'a': i64()}", {"b": 1}),
    "too few keys": ("{'a': i64(), 'b': i64()}", {"a": 1}),
    "too many keys": ("{'a': i64()}", {"a": 1, "b": 2}),
}
SPECS = programs({name: spec for name, (spec, *_) in WRONG.items()})


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_value_fails_alone(case, place):
    _, wrong, *good = WRONG[case]
    values = good * 2
    values.insert(place, wrong)
    assert_same(lambda lib: generated(lib, values, SPECS[case].run(lib)))


def fails_after(count):
    yield from range(count)
    raise BadElementError


class GoesOn:
    """An iterator that goes on behind its exceptions."""

    def __init__(self):
        self.numbers = iter(range(1, 6))

    def __iter__(self):
        return self

    def __next__(self):
        number = next(self.numbers)
        if number in {1, 3}:
            raise BadElementError
        return number


class Iterable:
    def __iter__(self):
        return iter([1, 2])


test_a_generator_that_raises = same(
    [
        f"from_generator(lambda: fails_after(count), output_signature=i64()){call}"
        for call in ("", ".repeat(2)", ".take(2)")
    ],
    count=[0, 1, 3],
)
test_what_can_be_the_generator = same(
    "from_generator(source, output_signature=i64())",
    source=[GoesOn, Iterable, lambda: [1, 2], lambda: range(3), lambda: iter(()), lambda: np.arange(3), list],
)
TYPES = {
    "one": (np.int64, None, [1, [2, 3]]),
    "one with a shape": (np.int64, (2,), [[1, 2]]),
    "a list for a shape": (np.int64, [2], [[1, 2]]),
    "a scalar": (np.int64, (), [1]),
    "tuple": ((np.int64, np.float32), None, [(1, [2.5])]),
    "tuple with shapes": ((np.int64, np.float32), ((), (None,)), [(1, [2.5])]),
    "lists for shapes": ((np.int64, np.float32), ([], [None]), [(1, [2.5])]),
    "tuple with an unknown shape": ((np.int64, np.int64), ((), None), [(1, [2])]),
    "nested": ((np.int64, {"b": np.int64, "a": np.float32}), ((), {"a": (None,), "b": ()}), [(1, {"a": [1], "b": 2})]),
    "dict": ({"b": np.int64, "a": np.float64}, None, [{"a": 1.5, "b": 2}]),
}
test_output_types = pytest.mark.filterwarnings("ignore::DeprecationWarning")(
    same("from_generator(lambda: iter(case[2]), *case[:2])", case=TYPES)
)


def count(*numbers):
    yield len(numbers)
    yield from numbers


def describe(value):
    yield f"{type(value).__name__} {getattr(value, 'dtype', None)} {value!r}"


test_args = same("from_generator(count, args=args, output_signature=i64())", args=[(), (3,), (5, 2), [4]])
test_what_becomes_of_an_argument = same(
    "from_generator(describe, args=(argument,), output_signature=TensorSpec((), bytes))",
    argument=["ü", b"a\x00", True, np.float32(1), np.eye(2), ["a", b"b"], np.array([1, 2]), [[True], [False]]],
)
NO_TYPES = [
    "output_types=np.int64, output_signature=i64()",
    "output_shapes=(), output_signature=i64()",
    "output_signature=[i64()]",
    "output_shapes=()",
    "output_types='no such type'",
    "output_types=[np.int64, np.int64]",
    "output_signature=3",
    "output_signature=np.int64",
    "args=3, output_signature=i64()",
    "args=np.arange(2), output_signature=i64()",
]
NO_VALUES = [
    "output_types=(np.int64, np.int64), output_shapes=((),)",
    "output_types={'a': np.int64}, output_shapes={'b': ()}",
    "output_types=np.int64, output_shapes=(-1,)",
    "output_signature=()",
    "output_signature=(None,)",
]
NO_GENERATORS = ["None", "3", "[1, 2]", "iter([1])", "np.arange(3)"]
test_what_is_refused = refused(
    {
        TypeError: [f"from_generator({generator}, output_signature=i64())" for generator in NO_GENERATORS]
        + [f"from_generator(list, {arguments})" for arguments in NO_TYPES],
        ValueError: [f"from_generator(list, {arguments})" for arguments in NO_VALUES],
    }
)

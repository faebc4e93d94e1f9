"""Tests of from_generator against tf.data's. Casts are stricter here where tf.data would silently change a value."""

import numpy as np
import pytest
from cases import NUMBERS, Point, int64
from compare import assert_both_refuse, assert_same

from support.libraries import BadElementError


def generated(lib, values, signature, **arguments):
    return lib.Dataset.from_generator(lambda: iter(values), output_signature=signature, **arguments)


def i64(lib, *shape):
    return lib.TensorSpec(shape, np.int64)


SIGNATURES = {
    "scalar": (i64, [1, np.int64(2), np.array(3), np.int32(4)]),
    "nothing": (i64, []),
    "float": (lambda lib: lib.TensorSpec((), np.float32), [1, 2.5, np.float64(3), np.float16(4)]),
    "ints that fit": (lambda lib: lib.TensorSpec((), np.uint8), [0, 255, np.int64(7)]),
    "bool": (lambda lib: lib.TensorSpec((), np.bool_), [True, np.False_]),
    "bool as number": (lambda lib: (i64(lib), lib.TensorSpec((), np.float64)), [(True, False)]),
    "complex": (lambda lib: lib.TensorSpec((), np.complex64), [1, 2.5, 3j]),
    "text": (lambda lib: lib.TensorSpec((), bytes), ["käse", b"a\x00\x00", "", np.str_("x"), np.bytes_(b"y")]),
    "array of text": (lambda lib: lib.TensorSpec((None,), bytes), [["a", "ü"], np.array([b"a\x00"], object)]),
    "vector": (lambda lib: i64(lib, 2), [[1, 2], (3, 4), np.array([5, 6]), [np.int64(7), 8]]),
    "vector of unknown size": (lambda lib: i64(lib, None), [[1], [], [1, 2, 3], np.zeros(0, np.int64)]),
    "matrix": (lambda lib: lib.TensorSpec((None, 2), np.float64), [np.eye(2), [[1, 2]], np.zeros((0, 2))]),
    "unknown rank": (lambda lib: lib.TensorSpec(None, np.float32), [1, [1, 2], [[]], np.zeros((1, 0, 2))]),
    "tuple": (lambda lib: (i64(lib), i64(lib, None)), [(1, [2]), (3, (4, 5))]),
    "tuple of one": (lambda lib: (i64(lib),), [(1,), (2,)]),
    "nested": (lambda lib: (i64(lib), {"b": i64(lib), "a": (i64(lib, 1),)}), [(1, {"a": ([2],), "b": 3})]),
    "dict out of order": (lambda lib: {"b": i64(lib), "a": i64(lib)}, [{"a": 1, "b": 2}, {"b": 3, "a": 4}]),
    "named tuple": (lambda lib: Point(i64(lib), i64(lib)), [Point(1, 2), Point(3, 4)]),
}


@pytest.mark.parametrize("case", SIGNATURES)
def test_signatures(case):
    signature, values = SIGNATURES[case]
    assert_same(lambda lib: generated(lib, values, signature(lib)))
    assert_same(lambda lib: generated(lib, values, signature(lib)).repeat(2).take(3))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_dtypes(dtype):
    assert_same(
        lambda lib: generated(lib, [np.ones(2, dtype), np.ones(2, dtype).tolist()], lib.TensorSpec((2,), dtype))
    )
    assert_same(lambda lib: generated(lib, [np.ones((), dtype)], lib.TensorSpec((), dtype)))


SPECIAL = {
    "ragged": lambda lib: (lib.ragged([[1], [2, 3]]), lib.RaggedTensorSpec((2, None), np.int64)),
    "ragged of unknown rows": lambda lib: (lib.ragged([[1], []]), lib.RaggedTensorSpec((None, None), np.int64)),
    "ragged twice": lambda lib: (lib.ragged([[[1], [2, 3]], []]), lib.RaggedTensorSpec((2, None, None), np.int64)),
    "sparse": lambda lib: (lib.sparse([[1]], int64([5]), [3]), lib.SparseTensorSpec((3,), np.int64)),
    "sparse of unknown shape": lambda lib: (
        lib.sparse([[1, 0]], int64([5]), [3, 2]),
        lib.SparseTensorSpec((None, None), np.int64),
    ),
    "beside others": lambda lib: (
        {"r": lib.ragged([[1], [2, 3]]), "x": 1},
        {"r": lib.RaggedTensorSpec((2, None), np.int64), "x": i64(lib)},
    ),
    "a dataset": lambda lib: (lib.Dataset.range(3), lib.DatasetSpec(i64(lib))),
    "ragged, of another size": lambda lib: (lib.ragged([[1]]), lib.RaggedTensorSpec((2, None), np.int64)),
    "ragged, of another dtype": lambda lib: (lib.ragged([[1]], np.int32), lib.RaggedTensorSpec((1, None), np.int64)),
    "dense where ragged is declared": lambda lib: ([[1]], lib.RaggedTensorSpec((1, None), np.int64)),
    "dense where sparse is declared": lambda lib: ([1], lib.SparseTensorSpec((1,), np.int64)),
    "sparse, of another shape": lambda lib: (lib.sparse([[1]], int64([5]), [3]), lib.SparseTensorSpec((4,), np.int64)),
}


@pytest.mark.parametrize("case", SPECIAL)
def test_ragged_sparse_and_datasets(case):
    def build(lib):
        value, signature = SPECIAL[case](lib)
        return generated(lib, [value, value], signature)

    assert_same(build)


WRONG = {
    "text for a number": (i64, "x"),
    "a number for text": (lambda lib: lib.TensorSpec((), bytes), 3),
    "None": (i64, None),
    "a vector for a scalar": (i64, [1]),
    "a scalar for a vector": (lambda lib: i64(lib, None), 1),
    "too long": (lambda lib: i64(lib, 2), [1, 2, 3]),
    "a matrix for a vector": (lambda lib: i64(lib, None), [[1]]),
    "no rectangle": (lambda lib: i64(lib, None, None), [[1], [2, 3]]),
    "a list for a tuple": (lambda lib: (i64(lib), i64(lib)), [1, 2]),
    "a longer tuple": (lambda lib: (i64(lib), i64(lib)), (1, 2, 3)),
    "a shorter tuple": (lambda lib: (i64(lib), i64(lib)), (1,)),
    "a bare value for a tuple of one": (lambda lib: (i64(lib),), 1),
    "a dict for a tuple": (lambda lib: (i64(lib), i64(lib)), {"a": 1, "b": 2}),
    "a dict for a value": (i64, {"a": 1}),
    "other keys": (lambda lib: {"a": i64(lib)}, {"b": 1}),
    "too few keys": (lambda lib: {"a": i64(lib), "b": i64(lib)}, {"a": 1}),
    "too many keys": (lambda lib: {"a": i64(lib)}, {"a": 1, "b": 2}),
}

RIGHT = {"a number for text": b"x", "no rectangle": [[1]], "a scalar for a vector": [1]}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_value_fails_alone(case, place):
    signature, value = WRONG[case]
    good = None if case not in {"text for a number", "None", *RIGHT} else RIGHT.get(case, 1)
    values = [value] if good is None else [good, good]
    values[place:place] = [] if good is None else [value]
    assert_same(lambda lib: generated(lib, values, signature(lib)))


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_generator_that_raises(after):
    def generate():
        yield from range(after)
        raise BadElementError

    assert_same(lambda lib: lib.Dataset.from_generator(generate, output_signature=i64(lib)))
    assert_same(lambda lib: lib.Dataset.from_generator(generate, output_signature=i64(lib)).repeat(2))
    assert_same(lambda lib: lib.Dataset.from_generator(generate, output_signature=i64(lib)).take(2))


def test_an_iterator_that_goes_on_behind_its_exception():
    class Source:
        def __init__(self):
            self.number = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.number += 1
            if self.number in {1, 3}:
                raise BadElementError
            if self.number == 6:
                raise StopIteration
            return self.number

    assert_same(lambda lib: lib.Dataset.from_generator(Source, output_signature=i64(lib)))


def test_what_can_be_the_generator():
    class Source:
        def __iter__(self):
            return iter([1, 2])

    for source in (Source, lambda: [1, 2], lambda: range(3), lambda: iter(()), lambda: np.arange(3), list):
        assert_same(lambda lib, source=source: lib.Dataset.from_generator(source, output_signature=i64(lib)))


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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", TYPES)
def test_output_types(case):
    types, shapes, values = TYPES[case]
    assert_same(lambda lib: lib.Dataset.from_generator(lambda: iter(values), types, shapes))


@pytest.mark.parametrize("args", [(), (3,), (5, 2), [4]], ids=repr)
def test_args(args):
    def count(*numbers):
        yield len(numbers)
        yield from numbers

    assert_same(lambda lib: lib.Dataset.from_generator(count, args=args, output_signature=i64(lib)))


@pytest.mark.parametrize(
    "argument", ["ü", b"a\x00", True, np.float32(1), np.eye(2), ["a", b"b"], int64([1, 2]), [[True], [False]]], ids=repr
)
def test_what_becomes_of_an_argument(argument):
    def describe(value):
        yield f"{type(value).__name__} {getattr(value, 'dtype', None)} {value!r}"

    assert_same(
        lambda lib: lib.Dataset.from_generator(describe, args=(argument,), output_signature=lib.TensorSpec((), bytes))
    )


@pytest.mark.parametrize("args", [3, np.arange(2)], ids=repr)
def test_what_is_no_args(args):
    assert_both_refuse(lambda lib: lib.Dataset.from_generator(iter, args=args, output_signature=i64(lib)), TypeError)


@pytest.mark.parametrize("generator", [None, 3, [1, 2], iter([1]), range(3)], ids=lambda value: type(value).__name__)
def test_what_is_no_generator(generator):
    assert_both_refuse(lambda lib: lib.Dataset.from_generator(generator, output_signature=i64(lib)), TypeError)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (lambda lib: {"output_shapes": ()}, TypeError),
        (lambda lib: {"output_types": np.int64, "output_signature": i64(lib)}, TypeError),
        (lambda lib: {"output_shapes": (), "output_signature": i64(lib)}, TypeError),
        (lambda lib: {"output_types": (np.int64, np.int64), "output_shapes": ((),)}, ValueError),
        (lambda lib: {"output_types": {"a": np.int64}, "output_shapes": {"b": ()}}, ValueError),
        (lambda lib: {"output_types": np.int64, "output_shapes": (-1,)}, ValueError),
        (lambda lib: {"output_types": "no such type"}, TypeError),
        (lambda lib: {"output_types": [np.int64, np.int64]}, TypeError),
        (lambda lib: {"output_signature": 3}, TypeError),
        (lambda lib: {"output_signature": np.int64}, TypeError),
        (lambda lib: {"output_signature": [i64(lib)]}, TypeError),
        (lambda lib: {"output_signature": ()}, ValueError),
        (lambda lib: {"output_signature": (None,)}, ValueError),
    ],
)
def test_what_is_no_signature(arguments, error):
    assert_both_refuse(lambda lib: lib.Dataset.from_generator(lambda: iter([1]), **arguments(lib)), error)

"""Tests of from_generator against tf.data's. Casts are stricter here where tf.data would silently change a value."""

import numpy as np
import pytest
from cases import NUMBERS, Point, int64
from compare import assert_same, refused, same

from support.libraries import BadElementError


def generated(lib, values, signature):
    return lib.from_generator(lambda: iter(values), output_signature=signature)


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


test_signatures = same(
    {
        "once": lambda lib, case: generated(lib, case[1], case[0](lib)),
        "twice": lambda lib, case: generated(lib, case[1], case[0](lib)).repeat(2).take(3),
    },
    SIGNATURES,
)
test_dtypes = same(
    {
        "vectors": lambda lib, dtype: generated(
            lib, [np.ones(2, dtype), np.ones(2, dtype).tolist()], lib.TensorSpec((2,), dtype)
        ),
        "scalars": lambda lib, dtype: generated(lib, [np.ones((), dtype)], lib.TensorSpec((), dtype)),
    },
    NUMBERS,
)


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
    "a dataset": lambda lib: (lib.range(3), lib.DatasetSpec(i64(lib))),
    "ragged, of another size": lambda lib: (lib.ragged([[1]]), lib.RaggedTensorSpec((2, None), np.int64)),
    "ragged, of another dtype": lambda lib: (lib.ragged([[1]], np.int32), lib.RaggedTensorSpec((1, None), np.int64)),
    "dense where ragged is declared": lambda lib: ([[1]], lib.RaggedTensorSpec((1, None), np.int64)),
    "dense where sparse is declared": lambda lib: ([1], lib.SparseTensorSpec((1,), np.int64)),
    "sparse, of another shape": lambda lib: (lib.sparse([[1]], int64([5]), [3]), lib.SparseTensorSpec((4,), np.int64)),
}


def twice(lib, case):
    value, signature = case(lib)
    return generated(lib, [value, value], signature)


test_ragged_sparse_and_datasets = same(twice, SPECIAL)

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
    {
        "once": lambda lib, count: lib.from_generator(lambda: fails_after(count), output_signature=i64(lib)),
        "twice": lambda lib, count: lib.from_generator(lambda: fails_after(count), output_signature=i64(lib)).repeat(2),
        "taken": lambda lib, count: lib.from_generator(lambda: fails_after(count), output_signature=i64(lib)).take(2),
    },
    [0, 1, 3],
)
test_what_can_be_the_generator = same(
    lambda lib, source: lib.from_generator(source, output_signature=i64(lib)),
    [GoesOn, Iterable, lambda: [1, 2], lambda: range(3), lambda: iter(()), lambda: np.arange(3), list],
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
    same(lambda lib, case: lib.from_generator(lambda: iter(case[2]), *case[:2]), TYPES)
)


def count(*numbers):
    yield len(numbers)
    yield from numbers


def describe(value):
    yield f"{type(value).__name__} {getattr(value, 'dtype', None)} {value!r}"


test_args = same(
    lambda lib, args: lib.from_generator(count, args=args, output_signature=i64(lib)), [(), (3,), (5, 2), [4]]
)
test_what_becomes_of_an_argument = same(
    lambda lib, argument: lib.from_generator(describe, args=(argument,), output_signature=lib.TensorSpec((), bytes)),
    ["ü", b"a\x00", True, np.float32(1), np.eye(2), ["a", b"b"], int64([1, 2]), [[True], [False]]],
)
test_what_is_no_args = refused(
    {TypeError: [3, np.arange(2)]}, lambda lib, args: lib.from_generator(iter, args=args, output_signature=i64(lib))
)
test_what_is_no_generator = refused(
    {TypeError: [None, 3, [1, 2], iter([1]), range(3)]},
    lambda lib, generator: lib.from_generator(generator, output_signature=i64(lib)),
)
NO_TYPES = [{"output_shapes": ()}, {"output_types": "no such type"}, {"output_types": [np.int64, np.int64]}]
NO_TYPES += [{"output_signature": 3}, {"output_signature": np.int64}]
NO_VALUES = [{"output_types": (np.int64, np.int64), "output_shapes": ((),)}, {"output_signature": ()}]
NO_VALUES += [{"output_types": {"a": np.int64}, "output_shapes": {"b": ()}}, {"output_signature": (None,)}]
NO_VALUES += [{"output_types": np.int64, "output_shapes": (-1,)}]
test_what_is_no_signature = refused(
    {
        TypeError: [
            lambda lib: {"output_types": np.int64, "output_signature": i64(lib)},
            lambda lib: {"output_shapes": (), "output_signature": i64(lib)},
            lambda lib: {"output_signature": [i64(lib)]},
            *(lambda lib, arguments=arguments: arguments for arguments in NO_TYPES),
        ],
        ValueError: [lambda lib, arguments=arguments: arguments for arguments in NO_VALUES],
    },
    lambda lib, arguments: lib.from_generator(lambda: iter([1]), **arguments(lib)),
)

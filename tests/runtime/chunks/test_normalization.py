"""Tests of the normalization of user values, and of the ownership of arrays."""

import enum
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError
from dataset.plan.structure import StructureMismatchError
from dataset.runtime.chunks.normalization import canonical_array, canonical_component, chunk_of_rows
from dataset.testing import assert_elements_equal, outcomes


class Colour(enum.IntEnum):
    RED = 3


class Text(str):
    __slots__ = ()


class Mine(np.ndarray):
    pass


class Foreign:
    """An array type of another library."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype, copy=copy)


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")


def text(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


CASES = [
    (True, np.bool_(True)),
    (3, np.int64(3)),
    (-(2**63), np.int64(-(2**63))),
    (2**64 - 1, np.uint64(2**64 - 1)),
    (2.5, np.float64(2.5)),
    (2j, np.complex128(2j)),
    ("ä", "ä".encode()),
    (b"a\0", b"a\0"),
    (bytearray(b"a\0"), b"a\0"),
    (Text("t"), b"t"),
    (Colour.RED, np.int64(3)),
    (np.str_("ä"), "ä".encode()),
    (np.bytes_(b"ab"), b"ab"),
    (np.float16(1), np.float16(1)),
    (np.datetime64(5, "s"), np.datetime64(5, "s")),
    (np.array(7, np.int8), np.int8(7)),
    (np.array("x"), b"x"),
    (np.array(b"x", object), b"x"),
    ([1, 2], np.array([1, 2])),
    ([], np.zeros(0)),
    (range(3), np.arange(3)),
    ([[1.0], [2.0]], np.array([[1.0], [2.0]])),
    (["a", "bc"], text(b"a", b"bc")),
    (RaggedTensor(np.array(["a", "ä"]), [0, 2]), RaggedTensor(text(b"a", "ä".encode()), [0, 2])),
    (RaggedTensor(RaggedTensor(text("a"), [0, 1]), [0, 1]), RaggedTensor(RaggedTensor(text(b"a"), [0, 1]), [0, 1])),
    (SparseTensor([[1]], np.array(["a"]), [2]), SparseTensor([[1]], text(b"a"), [2])),
    ([b"a\0", b"\0"], text(b"a\0", b"\0")),
    (np.array(["a", "ä"]), text(b"a", "ä".encode())),
    (np.array([b"a\0b", b"c"]), text(b"a\0b", b"c")),
    (text("a", b"b"), text(b"a", b"b")),
    (np.zeros((2, 0), np.uint8), np.zeros((2, 0), np.uint8)),
    ([np.zeros(2, np.float32), np.ones(2, np.float32)], np.array([[0, 0], [1, 1]], np.float32)),
    (np.zeros((2, 2)).view(Mine), np.zeros((2, 2))),
    (Foreign([1, 2]), np.array([1, 2])),
    (Foreign(3), np.int64(3)),
]


@pytest.mark.parametrize(("value", "expected"), CASES)
def test_a_value_of_every_kind_has_one_canonical_form(value, expected):
    assert_elements_equal([canonical_component(value)], [expected])


@pytest.mark.parametrize(("value", "expected"), CASES)
def test_the_form_is_the_same_from_a_generator_a_function_a_source_and_in_company(value, expected):
    expected = [expected] * 3
    assert_elements_equal(list(Dataset.from_generator(lambda: iter([value] * 3))), expected)
    if type(value) is not list:  # a list at the top level of a function's result is a tuple
        assert_elements_equal(list(Dataset.range(3).map(lambda x: value)), expected)
    assert_elements_equal(list(Dataset.from_tensors(value).repeat(3)), expected)
    assert_elements_equal([e[1] for e in Dataset.range(3).map(lambda x: (x, value))], expected)
    assert_elements_equal([e["v"] for e in Dataset.range(3).map(lambda x: {"v": value}).prefetch(2)], expected)


def test_a_list_that_a_function_returns_at_the_top_is_a_tuple():
    (element,) = Dataset.range(1).map(lambda x: [x, [1, 2]])
    assert_elements_equal([element], [(np.int64(0), np.array([1, 2]))])


@pytest.mark.parametrize("first", range(0, len(CASES), 3))
def test_the_form_does_not_depend_on_the_company_that_a_value_is_in(first):
    values = [value for value, _ in CASES[first:] + CASES[:first]]
    together = chunk_of_rows([(value,) for value in values]).rows()
    assert_elements_equal(together, [(canonical_component(value),) for value in values])


def test_large_integers_do_not_change_the_dtype_of_small_ones_beside_them():
    values = [1, 2**63]
    alone = [next(iter(Dataset.from_tensors(value))).dtype for value in values]
    together = [element.dtype for element in chunk_of_rows(values).rows()]
    assert together == alone == [np.int64, np.uint64]


def test_integers_beyond_64_bits_are_refused():
    for value in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match=f"integers must fit into 64 bits, got {value}"):
            canonical_component(value)


def test_an_integer_that_is_too_large_fails_at_its_place():
    results = outcomes(iter(Dataset.range(3).map(lambda x: 2**70 if x == 1 else 5).prefetch(2)))
    assert results[::2] == [5, 5]
    assert isinstance(results[1], ValueError)


def test_nested_lists_that_are_not_rectangular_are_refused():
    with pytest.raises(ValueError, match="inhomogeneous"):
        canonical_array([[1, 2], [3]])


def test_any_other_object_is_handed_on_as_it_is():
    thing = object()
    assert canonical_component(thing) is thing
    assert next(iter(Dataset.from_tensors((thing, 1))))[0] is thing


def test_an_exception_while_a_value_becomes_an_array_comes_at_its_place():
    dataset = Dataset.range(4).map(lambda x: Broken() if x == 2 else x)
    for results in (
        outcomes(iter(dataset)),
        outcomes(iter(dataset.batch(1).unbatch())),
        outcomes(iter(dataset.prefetch(4))),
    ):
        assert [r if isinstance(r, np.int64) else type(r) for r in results] == [0, 1, RuntimeError, 3]


def test_batches_of_subclasses_of_arrays_are_arrays_of_numbers():
    dataset = Dataset.range(4).map(lambda x: np.full(2, x, np.float32).view(Mine)).batch(4)
    (batch,) = dataset
    assert type(batch) is np.ndarray
    assert batch.dtype == np.float32
    assert batch.shape == (4, 2)


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        ((1, 2), (1, (2, 3))),
        ((1, 2), (1, None)),
        ((1, 2), (1, {"a": 2})),
        ({"a": 1}, {"a": {"b": 1}}),
        (1, (1, 2)),
        (1, {"a": 1}),
        (1, sys.version_info),
    ],
)
def test_structure_in_the_place_of_a_component_is_another_structure(usual, odd):
    with pytest.raises(StructureMismatchError):
        chunk_of_rows([usual, odd])
    results = outcomes(iter(Dataset.range(3).map(lambda x: odd if x == 1 else usual)))
    assert isinstance(results[1], SpecError)
    assert len(results) == 3


def test_a_named_tuple_after_a_bare_component_is_another_structure():
    import collections

    pair = collections.namedtuple("pair", "a b")  # noqa: PYI024  # as users write them
    results = outcomes(iter(Dataset.range(3).map(lambda x: pair(1, 2) if x == 1 else 1)))
    assert [type(result) for result in results] == [np.int64, SpecError, np.int64]


# Ownership of arrays.

KEPT = [
    ("bare", lambda array: array),
    ("in a tuple", lambda array: (1, array)),
    ("in a dict", lambda array: {"a": array, "b": 1}),
    ("a view", lambda array: array[:2]),
    ("reshaped", lambda array: array.reshape(2, 2)),
    ("twice", lambda array: (array, array)),
    ("ragged", lambda array: RaggedTensor(array, [0, 1, 4])),
    ("sparse", lambda array: SparseTensor([[0], [1], [2], [3]], array, [9])),
    ("foreign", Foreign),
]


def flat(element):
    if isinstance(element, dict | tuple):
        return [value for part in (element.values() if isinstance(element, dict) else element) for value in flat(part)]
    return [element.values] if isinstance(element, RaggedTensor | SparseTensor) else [element]


@pytest.mark.parametrize(
    ("how", "wrap", "through"),
    [
        (how, wrap, through)
        for how, wrap in KEPT
        for through in ["map", "generator", "map in batches", "generator in batches"]
        if how != "sparse" or "batches" not in through  # a row of a sparse batch is a new sparse tensor
    ],
)
def test_an_array_that_a_function_keeps_and_fills_again_is_copied(how, wrap, through):
    kept = np.zeros(4)

    def fill(x):
        kept[:] = x
        return wrap(kept)

    def generate():
        for x in range(5):
            yield fill(x)

    dataset = Dataset.from_generator(generate) if "generator" in through else Dataset.range(5).map(fill)
    if "batches" in through:
        dataset = dataset.batch(5).unbatch()
    for number, element in enumerate(list(dataset)):
        arrays = [array for array in flat(element) if isinstance(array, np.ndarray)]
        assert arrays
        assert all((array == number).all() for array in arrays)
    if through == "map":
        for array in flat(next(iter(dataset))):
            assert not np.shares_memory(array, kept)


FRESH = [
    ("bare", lambda: np.zeros(4)),
    ("in a tuple", lambda: (1, np.zeros(4))),
    ("in a dict", lambda: {"a": np.zeros(4), "b": np.ones(4)}),
    ("reshaped", lambda: np.zeros(4).reshape(2, 2)),
    ("from bytes", lambda: np.frombuffer(b"abcd", np.uint8)),
]


@pytest.mark.parametrize(("how", "make"), FRESH, ids=[how for how, _ in FRESH])
@pytest.mark.parametrize("count", [1, 3])
def test_an_array_that_nobody_else_holds_is_not_copied(how, make, count):
    places = []

    def fresh(x):
        element = make()
        for array in flat(element):
            if isinstance(array, np.ndarray):
                places.append(array.__array_interface__["data"][0])
            del array
        return element

    iterator = iter(Dataset.range(count).map(fresh).prefetch(count))
    elements = list(iterator)
    found = [a.__array_interface__["data"][0] for e in elements for a in flat(e) if isinstance(a, np.ndarray)]
    assert found == places


@pytest.mark.parametrize(
    "function",
    [lambda x: x, lambda x: x[1:], lambda x: (x, 1), lambda x: {"a": x.reshape(-1)}, lambda x: x[None], lambda x: x.T],
)
def test_views_of_the_input_are_handed_on_without_a_copy(function):
    array = np.arange(12.0).reshape(3, 4)
    for element in Dataset.from_tensor_slices(array).map(function):
        assert any(np.shares_memory(part, array) for part in flat(element) if isinstance(part, np.ndarray))


def test_what_shares_memory_with_a_source_is_read_only():
    array, listed = np.arange(6).reshape(3, 2), RaggedTensor(np.arange(3), [0, 1, 3])
    rows = [
        next(iter(Dataset.from_tensor_slices(array))),
        next(iter(Dataset.from_tensors(array))),
        next(iter(Dataset.from_tensor_slices(array).batch(2))),
        next(iter(Dataset.from_tensor_slices(array).map(lambda x: x[:1]))),
        next(iter(Dataset.from_tensor_slices(listed))),
        next(iter(Dataset.from_tensors(listed))).values,
    ]
    for row in rows:
        owner = array if np.shares_memory(row, array) else listed.values
        if np.shares_memory(row, owner):
            assert not row.flags.writeable


def test_what_was_made_for_the_user_is_writable():
    array = np.arange(8).reshape(4, 2)
    made = [
        next(iter(Dataset.from_tensor_slices(array).shuffle(4, seed=1).batch(2))),
        next(iter(Dataset.from_tensor_slices(array).map(lambda x: x + 1))),
        next(iter(Dataset.range(4).batch(2))),
        next(iter(Dataset.range(4).map(lambda x: np.zeros(2)).batch(2))),
    ]
    for element in made:
        np.add(element, 1, out=element)
    assert array.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_writing_into_an_element_changes_no_other():
    dataset = Dataset.range(6).map(lambda x: np.full(2, x)).batch(3).unbatch().prefetch(3)
    seen = []
    for element in dataset:
        seen.append(element.tolist())
        if element.flags.writeable:
            element[:] = -1
    assert seen == [[i, i] for i in range(6)]


@given(
    st.lists(
        st.one_of(st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(), st.binary()), min_size=1
    )
)
def test_mixed_values_are_each_what_they_would_be_alone(values):
    together = chunk_of_rows([(value,) for value in values]).rows()
    assert_elements_equal(together, [(canonical_component(value),) for value in values])

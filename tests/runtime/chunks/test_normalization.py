"""Tests of the normalization of user values, and of the ownership of arrays."""

import enum
import queue

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor, SparseTensor
from dataset.plan.structure import structure_of
from dataset.runtime.chunks.normalization import canonical_array, canonical_component, chunk_of_rows
from dataset.testing import assert_elements_equal, outcomes
from support.pipelines import Pair


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
    ([2**63, 2**53 + 1], np.array([2**63, 2**53 + 1], np.uint64)),
    ([[2**63, 0.5]], np.array([[2.0**63, 0.5]])),
    ([], np.zeros(0)),
    (range(3), np.arange(3)),
    ([[1.0], [2.0]], np.array([[1.0], [2.0]])),
    (["a", "bc"], text(b"a", b"bc")),
    (RaggedTensor(np.array(["a", "ä"]), [0, 2]), RaggedTensor(text(b"a", "ä".encode()), [0, 2])),
    (RaggedTensor(RaggedTensor(text("a"), [0, 1]), [0, 1]), RaggedTensor(RaggedTensor(text(b"a"), [0, 1]), [0, 1])),
    (SparseTensor([[1]], np.array(["a"]), [2]), SparseTensor([[1]], text(b"a"), [2])),
    ([b"a\0", b"\0"], text(b"a\0", b"\0")),
    (np.array(["a", "ä"]), text(b"a", "ä".encode())),
    (np.array(["a", "ä\0"], np.dtypes.StringDType()), text(b"a", "ä\0".encode())),
    (np.array("x", np.dtypes.StringDType()), b"x"),
    (np.array([b"a\0b", b"c"]), text(b"a\0b", b"c")),
    (text("a", b"b"), text(b"a", b"b")),
    (np.zeros((2, 0), np.uint8), np.zeros((2, 0), np.uint8)),
    ([np.zeros(2, np.float32), np.ones(2, np.float32)], np.array([[0, 0], [1, 1]], np.float32)),
    (np.zeros((2, 2)).view(Mine), np.zeros((2, 2))),
    (Foreign([1, 2]), np.array([1, 2])),
    (Foreign(3), np.int64(3)),
]


@pytest.mark.parametrize(("value", "expected"), CASES)
def test_a_value_has_one_canonical_form_alone_from_a_generator_a_function_and_a_source_and_in_company(value, expected):
    assert_elements_equal([canonical_component(value)], [expected])
    expected = [expected] * 3
    assert_elements_equal(list(Dataset.from_generator(lambda: iter([value] * 3))), expected)
    if type(value) is not list:  # a list at the top level of a function's result is a tuple
        assert_elements_equal(list(Dataset.range(3).map(lambda x: value)), expected)
    assert_elements_equal(list(Dataset.from_tensors(value).repeat(3)), expected)
    assert_elements_equal([e["v"][0] for e in Dataset.range(3).map(lambda x: {"v": (value, x)}).prefetch(2)], expected)


def test_a_list_that_a_function_returns_at_the_top_is_a_tuple():
    (element,) = Dataset.range(1).map(lambda x: [x, [1, 2]])
    assert_elements_equal([element], [(np.int64(0), np.array([1, 2]))])


def test_integers_beyond_64_bits_and_lists_that_are_not_rectangular_are_refused():
    for value in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match=f"integers must fit into 64 bits, got {value}"):
            canonical_component(value)
    with pytest.raises(ValueError, match="must all fit into int64 or uint64"):
        canonical_array([2**63, -1])
    with pytest.raises(ValueError, match="inhomogeneous"):
        canonical_array([[1, 2], [3]])


def test_any_other_object_is_passed_on_as_it_is():
    thing = object()
    assert next(iter(Dataset.from_tensors((thing, 1))))[0] is canonical_component(thing) is thing


@pytest.mark.parametrize(("bad", "error"), [(Broken(), RuntimeError), (2**70, ValueError)])
def test_an_exception_while_a_value_becomes_an_array_comes_at_its_place(bad, error):
    dataset = Dataset.range(4).map(lambda x: bad if x == 2 else x)
    for variant in (dataset, dataset.batch(1).unbatch(), dataset.prefetch(4)):
        assert [type(r) for r in outcomes(iter(variant))] == [np.int64, np.int64, error, np.int64]


# Ownership of arrays.


def arrays_in(element):
    components = structure_of(element).flatten(element)
    values = [part.values if isinstance(part, RaggedTensor | SparseTensor) else part for part in components]
    return [value for value in values if isinstance(value, np.ndarray)]


@pytest.mark.parametrize("add", [lambda row: row, lambda row: (row, 1), lambda row: {"row": row}])
def test_an_array_that_a_function_adds_to_its_argument_is_not_copied(add):
    made = []

    def extend(row):
        row["b"] = np.zeros(3)
        made.append(row["b"].__array_interface__["data"][0])
        return add(row)

    elements = list(Dataset.range(3).map(lambda x: {"a": x}).map(extend))
    assert [address for element in elements for address in addresses(element)] == made


FRESH = [
    lambda: np.zeros(4),
    lambda: ({"a": np.zeros(4), "b": 1}, np.ones(4)),
    lambda: {"a": (1, np.zeros(4)), "b": {"c": np.ones(4)}},
    lambda: Pair(np.zeros(4), (np.ones(4), 1)),
    lambda: (1, np.zeros(4)),
    lambda: {"a": np.zeros(4), "b": np.ones(4)},
    lambda: np.zeros(4).reshape(2, 2),
    lambda: np.frombuffer(b"abcd", np.uint8),
]


def addresses(element):
    return [array.__array_interface__["data"][0] for array in arrays_in(element)]


@pytest.mark.parametrize("make", FRESH)
@pytest.mark.parametrize("way", ["map", "prefetched map", "scan", "queue"])
def test_an_array_without_other_references_is_not_copied(make, way):
    made = []

    def fresh(x):
        element = make()
        made.extend(addresses(element))
        return element

    numbers = Dataset.range(3)
    if way == "queue":
        elements = queue.Queue()
        for x in range(3):
            elements.put(fresh(x))
        dataset = Dataset.from_queue(elements).take(3)
    elif way == "scan":
        dataset = numbers.scan(0, lambda count, x: (count + 1, fresh(x)))
    else:
        dataset = numbers.map(fresh).prefetch(3) if way == "prefetched map" else numbers.take(1).map(fresh)
    assert [address for element in list(dataset) for address in addresses(element)] == made


@pytest.mark.parametrize("join", [lambda a, b: (a, b), lambda a, b: {"a": a, "b": b}, lambda a, b: ({"a": a}, b)])
def test_an_array_after_one_that_is_copied_is_not_copied(join):
    kept, made = np.zeros(3), []

    def fresh(x):
        element = join(kept, np.full(3, x))
        made.append(addresses(element)[1])
        return element

    elements = list(Dataset.range(3).map(fresh).prefetch(3))
    assert [addresses(element)[1] for element in elements] == made


@pytest.mark.parametrize("function", [lambda x: x, lambda x: (x[1:], 1), lambda x: {"a": x.reshape(-1)}, lambda x: x.T])
def test_views_of_the_input_are_passed_on_without_a_copy(function):
    array = np.arange(12.0).reshape(3, 4)
    for element in Dataset.from_tensor_slices(array).map(function):
        assert any(np.shares_memory(part, array) for part in arrays_in(element))


@pytest.mark.parametrize("make", [lambda x: x, lambda x: (x, 1), lambda x: {"a": {"b": (x,)}}])
@pytest.mark.parametrize("memory", [bytes, memoryview])
def test_parts_of_different_lengths_are_passed_on_without_a_copy_whoever_owns_the_memory(make, memory):
    array = np.frombuffer(memory(np.arange(3000.0).tobytes())).reshape(300, 10)
    rows = Dataset.from_tensor_slices(array).map(make)

    def part(x):
        while not isinstance(x, np.ndarray):
            x = next(iter(x.values() if isinstance(x, dict) else x))
        return x[2:][: int(x[0]) // 10 % 7 + 1], str(x)

    for i, (row, _) in enumerate(rows.map(part if make(0) != (0, 1) else lambda x, _: part(x))):
        assert np.array_equal(row, array[i, 2 : 3 + i % 7])
        assert np.shares_memory(row, array)


@pytest.mark.parametrize("part", [lambda kept, x: kept, lambda kept, x: kept[: int(x[0]) % 3 + 1]])
def test_an_array_of_the_user_is_copied_although_the_argument_is_an_array_too(part):
    kept, array = np.zeros((3, 2)), np.arange(40.0).reshape(20, 2)

    def keep(x):
        kept[:] = x
        return {"x": part(kept, x), "text": str(x)}

    rows = Dataset.from_tensor_slices(array).map(keep)
    padded = rows.padded_batch(7, {"x": (3, 2), "text": ()}).unbatch()
    for dataset in (rows, padded):
        for element, x in zip(list(dataset), array, strict=True):
            assert (element["x"][0] == x).all()


ARRAY = np.arange(8).reshape(4, 2)
RAGGED = RaggedTensor(np.arange(3), [0, 1, 3])


@pytest.mark.parametrize(
    ("dataset", "source"),
    [
        (Dataset.from_tensor_slices(ARRAY), ARRAY),
        (Dataset.from_tensors(ARRAY), ARRAY),
        (Dataset.from_tensor_slices(ARRAY).batch(2), ARRAY),
        (Dataset.from_tensor_slices(ARRAY).map(lambda x: x[:1]), ARRAY),
        (Dataset.from_tensor_slices(RAGGED), RAGGED.values),
        (Dataset.from_tensors(RAGGED), RAGGED.values),
        (Dataset.from_tensor_slices(ARRAY).shuffle(4, seed=1).batch(2), None),
        (Dataset.from_tensor_slices(ARRAY).map(lambda x: x + 1), None),
        (Dataset.range(4).batch(2), None),
        (Dataset.range(4).map(lambda x: np.zeros(2)).batch(2), None),
    ],
)
def test_what_shares_memory_with_a_source_is_read_only_and_anything_else_is_writable(dataset, source):
    (row,) = arrays_in(next(iter(dataset)))
    shared = any(np.shares_memory(row, owner) for owner in (ARRAY, RAGGED.values))
    assert row.flags.writeable != shared
    assert source is not None or not shared


@given(
    st.lists(
        st.one_of(st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(), st.binary()), min_size=1
    )
)
def test_mixed_values_are_each_what_they_would_be_alone(values):
    together = chunk_of_rows([(value,) for value in values]).rows()
    assert_elements_equal(together, [(canonical_component(value),) for value in values])

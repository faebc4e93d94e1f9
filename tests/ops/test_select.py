"""select: some parts of each element."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError, TensorSpec
from dataset.testing import check_laziness, check_operator, outcomes
from support.op_cases import Sample, ints
from support.pipelines import Point, Record

DICT = {
    "id": 7,
    "pair": (1, "a"),
    "point": Point(2, None),
    "example": Record([1.5, 2.5], 3),
    "attrs": Sample(4, 5),
    "ragged": RaggedTensor.from_rows([[1], [2, 3]]),
    "sparse": SparseTensor([[0]], [1], [3]),
    "none": None,
    "3": 8,
}


def canonical(value):
    (element,) = Dataset.from_tensors(value)
    return element


BIG = Dataset.from_tensors(DICT).repeat(3)


@pytest.mark.parametrize("key", [key for key in DICT if key != "none"])
def test_one_key_gives_the_bare_part(key):
    check_operator(lambda: BIG.select(key), [canonical(DICT[key])] * 3)
    assert BIG.select(key).element_spec == BIG.element_spec[key]


@pytest.mark.parametrize("keys", [("pair", "id"), tuple(DICT)[::-1]], ids=repr)
def test_several_keys_give_a_tuple_in_the_order_given(keys):
    expected = tuple(None if DICT[key] is None else canonical(DICT[key]) for key in keys)
    check_operator(lambda: BIG.select(*keys), [expected] * 3)
    assert BIG.select(*keys).element_spec == tuple(BIG.element_spec[key] for key in keys)


TUPLE = ([1, 2], (["a", "b"], [3, 4]), {"z": [5, 6]})


@pytest.mark.parametrize(
    ("rows", "keys", "expected"),
    [
        (TUPLE, [np.int64(-1), 0], [({"z": np.int64(n)}, np.int64(n - 4)) for n in (5, 6)]),
        (Point([1], ([2], [3])), ["y"], [tuple(ints(2, 3))]),
        (Record([[0.0]], [3]), ["label", "image"], [(np.int64(3), np.zeros(1))]),
        (Sample([4], [5]), ["_label"], ints(5)),
        ({(0, 1): [1], (0, 2): [2]}, [(0, 2)], ints(2)),
    ],
    ids=repr,
)
def test_positions_names_and_keys_of_every_type(rows, keys, expected):
    check_operator(lambda: Dataset.from_tensor_slices(rows).select(*keys), expected)


def test_keeps_the_cardinality_and_spec_without_running():
    def never():
        raise AssertionError

    pairs = Dataset.from_generator(never, output_signature=(TensorSpec((), np.int8), TensorSpec((None, 2), bytes)))
    assert pairs.select(1).element_spec == TensorSpec((None, 2), bytes)
    assert pairs.select(1, 0).element_spec == (TensorSpec((None, 2), bytes), TensorSpec((), np.int8))
    for source in (Dataset.range(3), Dataset.range(3).repeat(), Dataset.range(3).filter(lambda x: True)):
        assert source.enumerate().select(0).cardinality() == source.cardinality()
    check_laziness(lambda numbers: numbers.enumerate().select(1), lambda k: k)


def test_selected_twice_is_two_arrays():
    source = np.zeros((4, 2))
    dataset = Dataset.from_tensor_slices({"x": source}).batch(2)
    check_operator(lambda: dataset.select("x", "x"), [(np.zeros((2, 2)), np.zeros((2, 2)))] * 2)
    fresh = Dataset.range(4).map(lambda i: {"x": np.full(2, i)})
    ragged = Dataset.range(2).map(lambda i: {"x": RaggedTensor.from_rows([[i], [i, i]])}).select("x", "x")
    made = ragged.map(lambda a, b: (a.flat_values, b.flat_values))
    for pairs in (fresh.select("x", "x"), fresh.batch(2).select("x", "x"), fresh.select("x", "x").batch(2), made):
        for first, second in pairs:
            first[:] = 99
            assert 99 not in second


IMAGE = {"image": 1, "label": 2}


@pytest.mark.parametrize(
    ("source", "keys", "words"),
    [
        (IMAGE, ("lable",), r"have no key 'lable'; their keys are 'image', 'label'; did you mean 'label'\?"),
        (IMAGE, ("image", "x"), r"select\(\): the elements have no key 'x'; their keys are 'image', 'label'$"),
        (IMAGE, (0,), "no key 0; their keys are 'image', 'label'$"),
        ((1, 2), (2,), r"no key 2; their keys are 0, 1$"),
        ((1, 2), (True,), r"no key True; their keys are 0, 1$"),
        ((1, 2), (1.0,), r"no key 1.0; their keys are 0, 1$"),
        (Point(1, 2), ("z",), "no key 'z'; their keys are 'x', 'y'"),
        (5, (0,), r"single components, \*, without key 0"),
        ({"a": None, "b": 1}, ("a",), "no components under 'a'"),
    ],
)
def test_a_wrong_key_is_an_error_at_once_where_the_keys_are_known(source, keys, words):
    with pytest.raises(ValueError, match=words):
        Dataset.from_tensors(source).select(*keys)


def test_a_wrong_key_is_an_error_of_each_element_where_only_running_tells():
    dataset = Dataset.range(3).map(lambda x: {"image": x, "label": x}).select("lable")
    got = check_operator(lambda: dataset)
    assert len(got) == 3
    assert all(isinstance(error, SpecError) and "did you mean 'label'?" in str(error) for error in got)
    notes = [error.__notes__[-1] for error in outcomes(iter(dataset))]
    assert all(note.startswith("in select('lable') from test_select.py:") for note in notes)
    assert [note.rpartition(" ")[2] for note in notes] == ["0", "1", "2"]
    assert dataset.cardinality() == 3

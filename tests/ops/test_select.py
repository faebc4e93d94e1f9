"""select: some parts of each element."""

import dataclasses

import attrs
import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError, StateError, TensorSpec
from dataset.plan.structure import structure_of
from dataset.testing import assert_elements_equal, check_laziness, check_operator, no_leaks, outcomes
from support.op_cases import fail_at, ints
from support.pipelines import Point


@dataclasses.dataclass
class Example:
    image: object
    label: object


@attrs.define
class Pair:
    left: object
    _right: object


ELEMENT = {
    "id": 7,
    "pair": (1, "a"),
    "point": Point(2, None),
    "example": Example([1.5, 2.5], 3),
    "attrs": Pair(4, 5),
    "ragged": RaggedTensor.from_rows([[1], [2, 3]]),
    "sparse": SparseTensor([[0]], [1], [3]),
    "none": None,
    3: 8,
}


def canonical(value):
    (element,) = Dataset.from_tensors(value)
    return element


def text_keys(element):
    return {str(key): value for key, value in element.items()}


DICT = text_keys(ELEMENT)
BIG = Dataset.from_tensors(DICT).repeat(3)


@pytest.mark.parametrize("key", [key for key in DICT if key != "none"])
def test_one_key_gives_the_bare_part(key):
    expected = canonical(DICT[key])
    check_operator(lambda: BIG.select(key), [expected] * 3)
    assert BIG.select(key).element_spec == BIG.element_spec[key]


@pytest.mark.parametrize(
    "keys",
    [("id", "pair"), ("pair", "id"), ("3", "example", "none"), ("ragged", "sparse"), tuple(DICT)[::-1]],
    ids=repr,
)
def test_several_keys_give_a_tuple_in_the_order_given(keys):
    expected = tuple(None if DICT[key] is None else canonical(DICT[key]) for key in keys)
    check_operator(lambda: BIG.select(*keys), [expected] * 3)
    assert BIG.select(*keys).element_spec == tuple(BIG.element_spec[key] for key in keys)


def test_of_tuples_by_position():
    tuples = Dataset.from_tensor_slices(([1, 2], (["a", "b"], [3, 4]), {"z": [5, 6]}))
    check_operator(lambda: tuples.select(0), ints(1, 2))
    check_operator(lambda: tuples.select(1), [(b"a", np.int64(3)), (b"b", np.int64(4))])
    check_operator(lambda: tuples.select(-1), [{"z": np.int64(5)}, {"z": np.int64(6)}])
    check_operator(lambda: tuples.select(np.int64(2), 0), [({"z": np.int64(n)}, np.int64(n - 4)) for n in (5, 6)])
    check_operator(lambda: Dataset.from_tensor_slices(([1, 2],)).select(0), ints(1, 2))


def test_of_records_by_name():
    point = Dataset.from_tensors(Point(1, (2, 3)))
    check_operator(lambda: point.select("y"), [tuple(ints(2, 3))])
    example = Dataset.from_tensors(Example(np.zeros(2), 3))
    check_operator(lambda: example.select("label", "image"), [(np.int64(3), np.zeros(2))])
    pair = Dataset.from_tensors(Pair(4, 5))
    check_operator(lambda: pair.select("_right"), ints(5))


def test_of_dicts_by_any_key():
    check_operator(lambda: Dataset.from_tensor_slices({2: [1, 2], 10: [3, 4]}).select(10), ints(3, 4))
    check_operator(lambda: Dataset.from_tensor_slices({(0, 1): [1], (0, 2): [2]}).select((0, 2)), ints(2))


def test_a_chain_of_selects_goes_down():
    check_operator(lambda: BIG.select("pair").select(1), [b"a"] * 3)
    check_operator(lambda: BIG.select("pair", "id").select(0).select(0), ints(1, 1, 1))


def test_works_on_batches_and_leaves_them_as_they_are():
    batches = Dataset.from_tensor_slices({"a": np.arange(5), "b": ["x"] * 5}).batch(2).select("a")
    check_operator(lambda: batches, [np.array([0, 1]), np.array([2, 3]), np.array([4])])


def test_lets_unbatch_know_how_many_rows_there_are():
    batches = Dataset.from_tensor_slices({"a": np.arange(6), "b": np.arange(6)}).batch(3, drop_remainder=True)
    assert batches.select("a").unbatch().cardinality() == 6


def test_a_state_of_other_keys_is_refused():
    pairs = Dataset.from_tensor_slices((np.arange(3), np.arange(3)))
    with pytest.raises(StateError, match="another pipeline"):
        iter(pairs.select(1)).load_state_dict(iter(pairs.select(0)).state_dict())


def test_takes_what_it_gives():
    check_laziness(lambda numbers: numbers.enumerate().select(1), lambda k: k)


def test_keeps_the_cardinality_and_spec_without_running():
    def never():
        raise AssertionError

    pairs = Dataset.from_generator(never, output_signature=(TensorSpec((), np.int8), TensorSpec((None, 2), bytes)))
    assert pairs.select(1).element_spec == TensorSpec((None, 2), bytes)
    assert pairs.select(1, 0).element_spec == (TensorSpec((None, 2), bytes), TensorSpec((), np.int8))
    for source in (Dataset.range(3), Dataset.range(3).repeat(), Dataset.range(3).filter(lambda x: True)):
        assert source.enumerate().select(0).cardinality() == source.cardinality()


def test_selected_twice_is_two_arrays():
    source = np.zeros((4, 2))
    dataset = Dataset.from_tensor_slices({"x": source}).batch(2)
    check_operator(lambda: dataset.select("x", "x"), [(np.zeros((2, 2)), np.zeros((2, 2)))] * 2)
    fresh = Dataset.range(4).map(lambda i: {"x": np.full(2, i)})
    ragged = Dataset.range(2).map(lambda i: {"x": RaggedTensor.from_rows([[i], [i, i]])}).select("x", "x")
    check_operator(lambda: ragged, [(row, row) for row in (RaggedTensor.from_rows([[i], [i, i]]) for i in range(2))])
    made = ragged.map(lambda a, b: (a.flat_values, b.flat_values))
    for pairs in (fresh.select("x", "x"), fresh.batch(2).select("x", "x"), fresh.select("x", "x").batch(2), made):
        for first, second in pairs:
            first[:] = 99
            assert 99 not in second


def test_failures_of_the_input_pass():
    expected = [np.int64(0), ValueError("bad 1"), np.int64(2)]
    check_operator(lambda: Dataset.range(3).map(fail_at(1)).map(lambda x: {"x": x}).select("x"), expected)


@pytest.mark.parametrize(
    ("source", "keys", "words"),
    [
        (
            {"image": 1, "label": 2},
            ("lable",),
            r"select\(\): the elements have no key 'lable'; their keys are 'image', 'label'; did you mean 'label'\?",
        ),
        ({"image": 1, "label": 2}, ("image", "x"), r"no key 'x'; their keys are 'image', 'label'$"),
        ({"image": 1, "label": 2}, (0,), "no key 0; their keys are 'image', 'label'$"),
        ((1, 2), (2,), r"no key 2; their keys are 0, 1$"),
        ((1, 2), (-3,), r"no key -3; their keys are 0, 1$"),
        ((1, 2), ("a",), r"no key 'a'; their keys are 0, 1$"),
        ((1, 2), (True,), r"no key True; their keys are 0, 1$"),
        ((1, 2), (1.0,), r"no key 1.0; their keys are 0, 1$"),
        (Point(1, 2), ("z",), "no key 'z'; their keys are 'x', 'y'"),
        (5, (0,), r"single components, \*, without key 0"),
        ([5, 6], (0,), "single components"),
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
    with no_leaks(), pytest.raises(SpecError):
        next(iter(dataset))
    assert dataset.cardinality() == 3


def test_where_only_running_tells_right_keys_are_found_by_running():
    made = Dataset.range(3).map(lambda x: {"image": x, "label": str(x)})
    check_operator(lambda: made.select("label"), [b"0", b"1", b"2"])
    assert made.select("label").element_spec == TensorSpec((), bytes)


def test_tells_which_components_it_keeps():
    element = {"b": (1, (2, 3)), "a": 4, "c": None, "d": Point(5, 6)}
    selection = Dataset.from_tensors(element).select("d", "b", "c").plan.selection(structure_of(element))
    assert selection.components == (4, 5, 1, 2, 3)
    assert repr(selection.structure) == "(Point(x=*, y=*), (*, (*, *)), None)"


@pytest.mark.parametrize(
    ("keys", "words"), [((), "at least one key"), ((["a", "b"],), r"got \['a', 'b'\]; pass keys one by one")]
)
def test_refuses_what_is_no_key(keys, words):
    with pytest.raises(TypeError, match=words):
        Dataset.from_tensors({"a": 1, "b": 2}).select(*keys)


def test_shows_its_keys_in_plans():
    _, first, *_ = Dataset.range(3).enumerate().select(1, 0, name="swap").explain().splitlines()
    assert first.startswith("  select(1, 0) 'swap'")
    assert "3 elements" in first
    assert_elements_equal(list(Dataset.range(2).enumerate(5).select(1, 0)), [tuple(ints(0, 5)), tuple(ints(1, 6))])

"""Nested elements and flat lists of components: what goes in comes out again."""

import collections
import dataclasses
import pickle
import types
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset
from dataset.plan.structure import (
    LEAF,
    NONE,
    StructureMismatchError,
    from_plain,
    map_structure,
    structure_of,
    to_plain,
    tuple_of,
)
from support.pipelines import Point


class Nothing(NamedTuple):
    pass


@dataclasses.dataclass(frozen=True)
class Frozen:
    image: Any
    label: Any
    area: Any = dataclasses.field(init=False, default=7)


@dataclasses.dataclass(kw_only=True)
class KeywordOnly:
    a: Any
    b: Any


@dataclasses.dataclass
class Fieldless:
    pass


@attrs.frozen
class FrozenAttrs:
    x: Any
    y: Any


@attrs.define
class PrivateAttrs:
    _hidden: Any
    shown: Any
    derived: Any = attrs.field(init=False, default=3)


@attrs.define
class AliasedAttrs:
    inside: Any = attrs.field(alias="outside")
    other: Any


class Pair(tuple):  # noqa: SLOT001  # as users write them
    """A subclass of tuple without named fields, such as torch.Size."""


class Config(dict):
    """A subclass of dict."""


def nested(components):
    def grow(inner):
        keys = st.sampled_from(["a", "b", "c", "d"])
        return st.one_of(
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=3),
            st.dictionaries(keys, inner, max_size=3).map(collections.OrderedDict),
            st.dictionaries(keys, inner, max_size=3).map(Config),
            st.dictionaries(keys, inner, max_size=3).map(lambda d: collections.defaultdict(int, d)),
            st.builds(Point, inner, inner),
            st.builds(Frozen, inner, inner),
            st.builds(FrozenAttrs, inner, inner),
            st.builds(lambda a, b: PrivateAttrs(hidden=a, shown=b), inner, inner),
        )

    return st.recursive(st.one_of(components, st.none()), grow, max_leaves=8)


ELEMENTS = nested(st.one_of(st.integers(), st.binary(max_size=3), st.lists(st.integers(), max_size=2)))


def same(a, b):
    """Equal, and of the same classes all the way down."""
    return type(a) is type(b) and a == b and repr(a) == repr(b)


@given(ELEMENTS)
def test_flattening_and_unflattening_gives_the_element_back(element):
    structure = structure_of(element)
    components = structure.flatten(element)
    assert len(components) == structure.num_components == len(structure.paths())
    assert same(structure.unflatten(components), element)


@given(ELEMENTS, ELEMENTS)
def test_a_mapper_applies_a_function_to_each_component(element, other):
    structure = structure_of(element)
    mapped = structure.mapper([lambda part, index=index: (index, part) for index in range(structure.num_components)])
    assert same(mapped(element), structure.unflatten(list(enumerate(structure.flatten(element)))))
    try:
        components = structure.flatten(other)
    except StructureMismatchError:
        with pytest.raises(StructureMismatchError):
            mapped(other)
    else:
        assert same(mapped(other), structure.unflatten(list(enumerate(components))))


@given(ELEMENTS, st.integers(1, 4))
def test_rows_become_columns_and_rows_again(element, count):
    structure = structure_of(element)
    columns = structure.columns([element] * count)
    assert len(columns) == structure.num_components
    assert all(len(column) == count for column in columns)
    assert all(same(row, element) for row in structure.rows(columns, count))


@given(ELEMENTS, ELEMENTS)
def test_structures_are_equal_exactly_when_one_takes_apart_the_element_of_the_other(first, second):
    mine, theirs = structure_of(first), structure_of(second)
    if mine == theirs:
        assert hash(mine) == hash(theirs)
        assert len(mine.flatten(second)) == theirs.num_components
    else:
        with pytest.raises(StructureMismatchError):
            _strictly(mine, second)


def _strictly(structure, element):
    """Take ``element`` apart, and see to it that no component is structure itself."""
    for component in structure.flatten(element):
        if structure_of(component) is not LEAF:
            raise StructureMismatchError


@given(ELEMENTS)
def test_the_children_of_a_tuple_replace_its_components(element):
    structure = structure_of(element)
    pairs = structure.substitute([tuple_of(LEAF, LEAF)] * structure.num_components)
    assert pairs.num_components == 2 * structure.num_components
    assert pairs == structure_of(map_structure(lambda c: (c, c), element))


@given(ELEMENTS)
def test_plain_data_and_a_pickle_give_the_structure_back(element):
    structure = structure_of(element)
    plain = to_plain(structure)  # None if there is no plain form
    assert plain is None or from_plain(plain) == structure
    copied = pickle.loads(pickle.dumps(structure))  # our own bytes
    assert copied == structure
    assert copied.num_components == structure.num_components
    assert structure not in {LEAF, NONE} or copied is structure


@pytest.mark.parametrize(
    "data",
    [None, "?", 3, [], "**", {"tuple": "*"}, *[{"dict": ["*"] * n, "keys": ["a"] * m} for n, m in [(1, 0), (2, 2)]]],
)
def test_other_plain_data_is_refused(data):
    with pytest.raises(ValueError, match="invalid structure"):
        from_plain(data)


def test_a_list_or_a_class_is_data_and_none_is_structure_without_components():
    assert structure_of([1, (2, 3)]) is structure_of(Frozen) is structure_of(FrozenAttrs) is LEAF
    assert structure_of(([1, 2], [3])).num_components == 2
    assert structure_of(None) is NONE
    structure = structure_of((None, 1, {"a": None}))
    assert structure.flatten((None, 5, {"a": None})) == [5]
    assert structure.unflatten([6]) == (None, 6, {"a": None})
    with pytest.raises(StructureMismatchError):
        structure.flatten((0, 5, {"a": None}))


@pytest.mark.parametrize("element", [(), {}, Nothing(), Fieldless()])
def test_structures_without_components_give_rows_that_are_objects_of_their_own(element):
    first, second = structure_of(element).rows([], 2)
    assert first == second == element
    assert first is not second or element == ()
    assert structure_of((element, 1)).unflatten([2]) == (element, 2)
    assert structure_of((1,)).unflatten([2]) == (2,)


def test_components_of_a_dict_are_ordered_by_key_and_it_comes_back_in_the_order_in_which_it_was_filled():
    first, second = structure_of({"b": 1, "a": 2}), structure_of({"a": 1, "b": 2})
    assert first.flatten({"b": 1, "a": 2}) == [2, 1]
    assert first.paths() == ["['a']", "['b']"]
    assert first == second
    assert hash(first) == hash(second)
    assert first.columns([{"b": 1, "a": 2}, {"a": 4, "b": 3}]) == [[2, 4], [1, 3]]
    assert list(first.unflatten([10, 20]).items()) == [("b", 20), ("a", 10)]


@pytest.mark.parametrize("cls", [collections.UserDict, types.MappingProxyType])
def test_other_mappings_become_dicts(cls):
    element = cls({"b": 1, "a": cls({"c": 2})})
    structure = structure_of(element)
    assert structure == structure_of({"b": 1, "a": {"c": 2}})
    assert structure.columns([element, {"a": cls({"c": 4}), "b": 3}]) == [[2, 4], [1, 3]]
    assert same(structure.unflatten([2, 1]), {"b": 1, "a": {"c": 2}})
    with pytest.raises(StructureMismatchError):
        structure.columns([cls({"b": 1})])
    with pytest.raises(StructureMismatchError):
        structure_of(collections.OrderedDict(a=1)).columns([cls({"a": 1})])


def test_keys_need_not_be_strings_but_must_be_sortable():
    structure = structure_of({2: "b", 1: "a"})
    assert structure.flatten({1: "a", 2: "b"}) == ["a", "b"]
    assert structure.paths() == ["[1]", "[2]"]
    with pytest.raises(TypeError, match=r"keys of a dict element must be sortable, got \[1, 'a'\]"):
        structure_of({1: 0, "a": 0})


def test_a_subclass_of_tuple_without_field_names_is_taken_apart():
    structure = structure_of(Pair((1, 2)))
    assert structure.flatten(Pair((1, 2))) == [1, 2]
    assert [tuple(e) for e in Dataset.range(2).map(lambda x: Pair((x, x)))] == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (Frozen(1, 2), Frozen(3, 4)),  # a field with init=False is not a component
        (KeywordOnly(a=1, b=2), KeywordOnly(a=3, b=4)),
        (AliasedAttrs(outside=1, other=2), AliasedAttrs(outside=3, other=4)),
    ],
)
def test_dataclasses_and_attrs_classes_are_rebuilt_through_their_constructor(element, expected):
    structure = structure_of(element)
    assert structure.flatten(element) == [1, 2]
    assert structure.unflatten([3, 4]) == expected


@pytest.mark.parametrize(
    ("structure", "row"),
    [
        ((1, 2), (1, 2, 3)),
        ((1, 2), 1),
        ((1, 2), None),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": 1, "b": 1}, {"a": 1}),
        (None, 1),
        (Point(1, 2), Frozen(1, 2)),
        (Frozen(1, 2), FrozenAttrs(1, 2)),
        ((1, (2, 3)), (1, 2)),
        ((1, None), (1, 2)),
    ],
)
def test_a_row_of_another_structure_does_not_pass_unnoticed(structure, row):
    with pytest.raises(StructureMismatchError):
        structure_of(structure).columns([structure, row])


def test_component_names_say_where_a_component_is_and_a_structure_reads_like_its_element():
    nested_structure = structure_of(({"mask": 1, "image": Point(1, 2)}, Frozen(3, 4)))
    paths = ["[0]['image'].x", "[0]['image'].y", "[0]['mask']", "[1].image", "[1].label"]
    assert nested_structure.paths() == paths
    assert nested_structure.component_name(2) == "component [0]['mask']"
    assert structure_of({"image": 1}).component_name(0) == "component 'image'"
    assert structure_of((1, 2)).component_name(1) == "component 1"
    assert structure_of(5).component_name(0) == "the element"
    element = {"a": (1, None), "b": Point(2, (3,))}
    assert repr(structure_of(element)) == "{'a': (*, None), 'b': Point(x=*, y=(*,))}"
    assert map_structure(lambda x: x + 1, element) == {"a": (2, None), "b": Point(3, (4,))}

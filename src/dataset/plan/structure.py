"""Structures: how elements are nested, and conversion between nested elements and flat lists of components.

An element is a component, or a tuple, named tuple, dict, dataclass or attrs instance of elements. Other mappings become
dicts. A list is data, not structure; ``None`` is structure without components. Dict components are ordered by sorted
key, so that two dicts with the same keys have the same structure, whatever their insertion order (as in ``tf.nest``).

Nothing here looks inside a component: plan/spec.py defines what components may be, and
runtime/chunks/normalization.py converts a user's values to components.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from dataset.plan.lazy import lazy_property

S = TypeVar("S")


class StructureMismatchError(Exception):
    """Internal error: a row does not have the structure of the others. Callers raise a public error instead."""


class Structure:
    """Structure of an element: its nesting, without its components. Immutable, hashable, comparable."""

    children: tuple[Structure, ...] = ()

    @lazy_property
    def num_components(self) -> int:
        """The number of components of an element."""
        return sum(child.num_components for child in self.children)

    @lazy_property
    def is_immutable(self) -> bool:
        """Whether the containers of an element are immutable, that is, tuples."""
        return all(child.is_immutable for child in self.children)

    def flatten(self, element: Any) -> list[Any]:
        """Return the components of one element, in order."""
        return [column[0] for column in self.columns([element])]

    def unflatten(self, components: Sequence[Any]) -> Any:
        """Return the element with these components; the inverse of ``flatten``."""
        parts, start = [], 0
        for child in self.children:
            if child is LEAF:
                parts.append(components[start])
                start += 1
            else:
                stop = start + child.num_components
                parts.append(child.unflatten(components[start:stop]))
                start = stop
        return self._element(parts)

    def mapper(self, functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        """Return a function of elements that applies ``functions``, one for each component, and nests the results.

        It raises StructureMismatchError for an element of another structure. It is for elements that come one by one:
        what depends only on the structure is computed once.
        """
        flatten, unflatten = self.flatten, self.unflatten
        return lambda element: unflatten([function(part) for function, part in zip(functions, flatten(element))])  # noqa: B905  # it is slow

    def _mappers(self, functions: Sequence[Callable[[Any], Any]]) -> list[Callable[[Any], Any]]:
        """Return the ``mapper`` of each child."""
        remaining = iter(functions)
        return [child.mapper(list(itertools.islice(remaining, child.num_components))) for child in self.children]

    def columns(self, rows: Sequence[Any]) -> list[Sequence[Any]]:
        """Return for each component the list of its values in ``rows``.

        Raises:
            StructureMismatchError: if a row has a different structure.
        """
        parts = self._split(rows)
        return [column for child, part in zip(self.children, parts, strict=True) for column in child.columns(part)]

    def rows(self, columns: Sequence[Any], count: int) -> list[Any]:
        """Return the ``count`` elements with the components in ``columns``; the inverse of ``columns``."""
        parts, start = [], 0
        for child in self.children:
            stop = start + child.num_components
            parts.append(child.rows(columns[start:stop], count))
            start = stop
        return self._join(parts, count)

    def substitute(self, structures: Sequence[Structure]) -> Structure:
        """Return this structure with each component replaced by a structure."""
        parts, start = [], 0
        for child in self.children:
            stop = start + child.num_components
            parts.append(child.substitute(structures[start:stop]))
            start = stop
        return dataclasses.replace(self, children=tuple(parts)) if dataclasses.is_dataclass(self) else self

    def paths(self) -> list[str]:
        """Return a readable path for each component, such as ``['image']`` or ``[0].mask``; empty for a leaf."""
        return [name + rest for name, child in zip(self._names(), self.children, strict=True) for rest in child.paths()]

    def child_keys(self) -> tuple[Any, ...]:
        """Return the keys of ``children``: positions in a tuple, keys of a dict, names of fields."""
        return ()

    def component_name(self, index: int) -> str:
        """Return how error messages name component ``index``: ``component 'image'``, ``component [0]['x']``."""
        path = self.paths()[index]
        if not path:
            return "the element"
        top_level = len(self.children) == self.num_components
        return f"component {path[1:-1] if top_level and path.startswith('[') else path}"

    def _split(self, rows: Sequence[Any]) -> Sequence[Sequence[Any]]:
        raise NotImplementedError

    def _join(self, parts: list[list[Any]], count: int) -> list[Any]:
        raise NotImplementedError

    def _element(self, parts: Sequence[Any]) -> Any:
        """Return the element with these parts, one for each child."""
        raise NotImplementedError

    def _names(self) -> list[str]:
        return []


class _Leaf(Structure):
    num_components = 1

    def flatten(self, element: Any) -> list[Any]:
        return [element]

    def unflatten(self, components: Sequence[Any]) -> Any:
        return components[0]

    def mapper(self, functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        return functions[0]

    def columns(self, rows: Sequence[Any]) -> list[Sequence[Any]]:
        return [rows]

    def rows(self, columns: Sequence[Any], count: int) -> list[Any]:  # noqa: ARG002  # count is the length
        return list(columns[0])

    def paths(self) -> list[str]:
        return [""]

    def substitute(self, structures: Sequence[Structure]) -> Structure:
        return structures[0]

    def __repr__(self) -> str:
        return "*"

    def __reduce__(self) -> str:
        return "LEAF"


class _None(Structure):
    def columns(self, rows: Sequence[Any]) -> list[Sequence[Any]]:
        if any(row is not None for row in rows):
            raise StructureMismatchError
        return []

    def rows(self, columns: Sequence[Any], count: int) -> list[Any]:  # noqa: ARG002  # there are none
        return [None] * count

    def _element(self, parts: Sequence[Any]) -> Any:  # noqa: ARG002  # there are none
        return None

    def __repr__(self) -> str:
        return "None"

    def __reduce__(self) -> str:
        return "NONE"


LEAF: Structure = _Leaf()
NONE: Structure = _None()


def _is_plain_tuple(cls: type[Any]) -> bool:
    """Return whether values are tuples without field names; a subclass of tuple counts as one."""
    return cls is tuple or (issubclass(cls, tuple) and not hasattr(cls, "_fields"))


@dataclasses.dataclass(frozen=True)
class _Tuple(Structure):
    children: tuple[Structure, ...]

    def _split(self, rows: Sequence[Any]) -> Sequence[Sequence[Any]]:
        if not all(map(_is_plain_tuple, set(map(type, rows)))) or set(map(len, rows)) != {len(self.children)}:
            raise StructureMismatchError
        return list(zip(*rows, strict=True))

    # Flat tuples have a fast path: the elements of most training loops are flat tuples.

    def unflatten(self, components: Sequence[Any]) -> Any:
        return tuple(components) if self._is_flat else super().unflatten(components)

    def _element(self, parts: Sequence[Any]) -> Any:
        return tuple(parts)

    def mapper(self, functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        parts, count, other = self._mappers(functions), len(self.children), super().mapper(functions)

        def mapped(element: Any) -> Any:
            if type(element) is not tuple or len(element) != count:
                return other(element)
            return tuple([part(value) for part, value in zip(parts, element)])  # noqa: B905  # as above

        return mapped

    def columns(self, rows: Sequence[Any]) -> list[Sequence[Any]]:
        return list(self._split(rows)) if self._is_flat else super().columns(rows)

    def rows(self, columns: Sequence[Any], count: int) -> list[Any]:
        return list(zip(*columns, strict=True)) if columns and self._is_flat else super().rows(columns, count)

    @lazy_property
    def _is_flat(self) -> bool:
        return all(child is LEAF for child in self.children)

    def _join(self, parts: list[list[Any]], count: int) -> list[Any]:
        return list(zip(*parts, strict=True)) if parts else [()] * count

    def child_keys(self) -> tuple[Any, ...]:
        return tuple(range(len(self.children)))

    def _names(self) -> list[str]:
        return [f"[{index}]" for index in range(len(self.children))]

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.children))
        return f"({inner},)" if len(self.children) == 1 else f"({inner})"


class _Fields(Structure):
    """Structure of a class that its constructor rebuilds from fields."""

    cls: type[Any]

    def _names(self) -> list[str]:
        return [f".{name}" for name in self.child_keys()]

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={child!r}" for name, child in zip(self.child_keys(), self.children, strict=True))
        return f"{self.cls.__name__}({inner})"


@dataclasses.dataclass(frozen=True, repr=False)
class _NamedTuple(_Fields):
    cls: type[Any]
    children: tuple[Structure, ...]

    def _split(self, rows: Sequence[Any]) -> Sequence[Sequence[Any]]:
        if set(map(type, rows)) != {self.cls}:
            raise StructureMismatchError
        return list(zip(*rows, strict=True))

    def _join(self, parts: list[list[Any]], count: int) -> list[Any]:
        return [self.cls(*values) for values in zip(*parts, strict=True)] if parts else [self.cls()] * count

    def _element(self, parts: Sequence[Any]) -> Any:
        return self.cls(*parts)

    def child_keys(self) -> tuple[Any, ...]:
        return tuple(self.cls._fields)


@dataclasses.dataclass(frozen=True, eq=False)
class _Dict(Structure):
    """Structure of a dict: ``keys`` in insertion order, ``children`` in the order of ``sorted_keys``."""

    cls: type[Any]
    keys: tuple[Any, ...]
    sorted_keys: tuple[Any, ...]
    children: tuple[Structure, ...]
    factory: Callable[[], Any] | None = None  # of a defaultdict
    is_immutable = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Dict) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return (self.cls, self.sorted_keys, self.children)

    def _element(self, parts: Sequence[Any]) -> Any:
        items = {key: parts[place] for key, place in self._places}
        return items if self.cls is dict else self._make(items)

    def mapper(self, functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        other = super().mapper(functions)
        if self.cls is not dict:
            return other
        by_key = dict(zip(self.sorted_keys, self._mappers(functions), strict=True))
        parts, expected = [(key, by_key[key]) for key in self.keys], by_key.keys()

        def mapped(element: Any) -> Any:
            if type(element) is not dict or element.keys() != expected:
                return other(element)
            return {key: part(element[key]) for key, part in parts}

        return mapped

    @lazy_property
    def _places(self) -> list[tuple[Any, int]]:
        """Each key with the index of its child."""
        numbers = {key: number for number, key in enumerate(self.sorted_keys)}
        return [(key, numbers[key]) for key in self.keys]

    def _split(self, rows: Sequence[Any]) -> Sequence[Sequence[Any]]:
        kinds = set(map(type, rows))
        if kinds != {self.cls} and not (
            self.cls is dict and all(kind is dict or _becomes_dict(kind) for kind in kinds)
        ):
            raise StructureMismatchError
        if set(map(len, rows)) != {len(self.keys)}:
            raise StructureMismatchError
        if self.factory is not None and any(key not in row for row in rows for key in self.keys):
            raise StructureMismatchError  # reading a missing key would insert it
        try:
            return [[row[key] for row in rows] for key in self.sorted_keys]
        except KeyError:
            raise StructureMismatchError from None

    def _join(self, parts: list[list[Any]], count: int) -> list[Any]:
        by_key = dict(zip(self.sorted_keys, parts, strict=True))
        ordered = [by_key[key] for key in self.keys]
        if not ordered:
            return [self._make({}) for _ in range(count)]
        keys = self.keys
        dicts = [dict(zip(keys, values, strict=True)) for values in zip(*ordered, strict=True)]
        return dicts if self.cls is dict else list(map(self._make, dicts))

    def _make(self, items: dict[Any, Any]) -> Any:
        if issubclass(self.cls, collections.defaultdict):
            return self.cls(self.factory, items)
        return self.cls(items)

    def child_keys(self) -> tuple[Any, ...]:
        return self.sorted_keys

    def _names(self) -> list[str]:
        return [f"[{key!r}]" for key in self.sorted_keys]

    def __repr__(self) -> str:
        by_key = dict(zip(self.sorted_keys, self.children, strict=True))
        return "{" + ", ".join(f"{key!r}: {by_key[key]!r}" for key in self.keys) + "}"


@dataclasses.dataclass(frozen=True, repr=False)
class _Record(_Fields):
    """Structure of a dataclass or an attrs class, rebuilt by its constructor with keyword arguments."""

    cls: type[Any]
    names: tuple[str, ...]
    keywords: tuple[str, ...]  # of the constructor; they may differ from ``names``
    children: tuple[Structure, ...]
    is_immutable = False

    def _split(self, rows: Sequence[Any]) -> Sequence[Sequence[Any]]:
        if set(map(type, rows)) != {self.cls}:
            raise StructureMismatchError
        return [[getattr(row, name) for row in rows] for name in self.names]

    def _join(self, parts: list[list[Any]], count: int) -> list[Any]:
        if not parts:
            return [self.cls() for _ in range(count)]
        return list(map(self._element, zip(*parts, strict=True)))

    def _element(self, parts: Sequence[Any]) -> Any:
        return self.cls(**dict(zip(self.keywords, parts, strict=True)))

    def child_keys(self) -> tuple[Any, ...]:
        return self.names


@cache
def record_fields(cls: Hashable) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the fields of a dataclass or attrs class and their constructor arguments; None for any other class.

    A dataclass that is itself a component, such as a component spec, has an attribute ``is_component = True``.
    """
    if getattr(cls, "is_component", False):
        return None
    if dataclasses.is_dataclass(cls):
        names = tuple(field.name for field in dataclasses.fields(cls) if field.init)
        return names, names
    attributes = getattr(cls, "__attrs_attrs__", None)  # attrs' own protocol, so that attrs need not be installed
    if attributes is None:
        return None
    given = [attribute for attribute in attributes if attribute.init]
    # Before attrs had aliases, it removed leading underscores.
    keywords = [getattr(attribute, "alias", None) or attribute.name.lstrip("_") for attribute in given]
    return tuple(attribute.name for attribute in given), tuple(keywords)


@cache
def _becomes_dict(cls: Any) -> bool:
    """Return whether values are mappings, such as the results of a tokenizer, but not dicts."""
    return issubclass(cls, Mapping) and not issubclass(cls, dict)


def structure_of(element: Any) -> Structure:
    """Return the structure of one element.

    Raises:
        TypeError: if the keys of a dict cannot be sorted.

    >>> structure_of({"image": 1, "label": (2, None)})
    {'image': *, 'label': (*, None)}
    >>> structure_of([1, 2])
    *
    """
    if element is None:
        return NONE
    cls = type(element)
    if isinstance(element, tuple):
        children = tuple(map(structure_of, element))
        return _NamedTuple(cls, children) if hasattr(cls, "_fields") else _Tuple(children)
    if isinstance(element, dict) or _becomes_dict(cls):  # type: ignore[arg-type]  # as below
        try:
            keys = tuple(sorted(element))
        except TypeError:
            raise TypeError(f"the keys of a dict element must be sortable, got {list(element)!r}") from None
        factory = element.default_factory if isinstance(element, collections.defaultdict) else None
        children = tuple(structure_of(element[key]) for key in keys)
        return _Dict(cls if issubclass(cls, dict) else dict, tuple(element), keys, children, factory)
    fields = record_fields(cls)  # type: ignore[arg-type]  # mypy does not know that type[Any] is hashable
    if fields is not None:
        names, keywords = fields
        return _Record(cls, names, keywords, tuple(structure_of(getattr(element, name)) for name in names))
    return LEAF


def tuple_of(*children: Structure) -> Structure:
    """Return the structure of a plain tuple of elements with these structures."""
    return _Tuple(children)


def is_tuple(structure: Structure) -> bool:
    """Return whether elements are plain tuples, which are passed to a user's function as separate arguments."""
    return isinstance(structure, _Tuple)


def is_dict(structure: Structure) -> bool:
    """Return whether elements are plain dicts, not instances of a subclass."""
    return isinstance(structure, _Dict) and structure.cls is dict


def to_plain(structure: Structure) -> Any:
    """Return the structure as plain data for saved states, or None if it contains a user's class."""
    if structure is LEAF:
        return "*"
    if structure is NONE:
        return "none"
    children = [to_plain(child) for child in structure.children]
    if None in children:
        return None
    if isinstance(structure, _Tuple):
        return {"tuple": children}
    if isinstance(structure, _Dict) and structure.cls is dict and all(isinstance(key, str) for key in structure.keys):
        return {"dict": children, "keys": list(structure.keys)}
    return None


def from_plain(data: Any) -> Structure:
    """Return the inverse of ``to_plain``.

    Raises:
        ValueError: if ``data`` is not a result of ``to_plain``.
    """
    match data:
        case "*":
            return LEAF
        case "none":
            return NONE
        case {"tuple": list(children)}:
            return _Tuple(tuple(map(from_plain, children)))
        case {"dict": list(children), "keys": list(keys)} if len(children) == len(set(keys)) == len(keys):
            return _Dict(dict, tuple(keys), tuple(sorted(keys)), tuple(map(from_plain, children)))
    raise ValueError(f"invalid structure: {data!r}")


def map_structure(function: Callable[[Any], S], element: Any) -> Any:
    """Apply ``function`` to each component of ``element``, and return the nested result."""
    structure = structure_of(element)
    return structure.unflatten([function(component) for component in structure.flatten(element)])

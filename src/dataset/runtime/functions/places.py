"""Places: where a function finds what it reads outside of its arguments, as steps from the function itself.

A value is looked up without running user code: a property, a ``__getattr__``, a mapping of the user or a class with a
metaclass of its own ends the way. A place is relative to the function, so it is valid for each function with the same
code.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dataset.runtime.functions.bytecode import UNBOUND
from dataset.runtime.functions.column_operations import NUMBERS

Place: TypeAlias = tuple[Any, ...]
"""The steps to a value: each a ``Variable`` of a function or a ``Step``."""

_GET_ATTRIBUTE: Any = (object.__getattribute__, tuple.__getattribute__)  # that of named tuples, too
_SLOTS = frozenset({MemberDescriptorType, type(vars(NamedTuple("_One", [("first", int)]))["first"])})
"""Types of the descriptors of slots and of the fields of named tuples, which run no user code."""

_CONTAINERS = frozenset({tuple, list, dict})
_PYTHON = frozenset({int, float, bool})
_SCALARS = frozenset(dtype.type for dtype in NUMBERS)


def kind_of(value: Any) -> Any:
    """Return the kind of a number, or of an array or list of numbers, which are interchangeable. None for all else."""
    kind = type(value)
    if kind is int:
        return int if -(2**63) <= value < 2**64 else None  # NumPy converts larger ints to objects
    if kind is float or kind is bool:
        return kind
    if kind is np.ndarray or kind in _SCALARS:
        return (kind, value.dtype, value.ndim) if value.dtype in NUMBERS else None
    if kind is list and value and all(type(item) in _PYTHON and kind_of(item) for item in value):
        return (list, *map(type, value))
    return None


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python."""
    return kind_of(value) in _PYTHON


def has_fixed_truth(value: Any) -> bool:
    """Return whether the truth of a value runs no user code, and is the same for all elements."""
    return is_number(value) or type(value) in _CONTAINERS


@dataclass(frozen=True, slots=True)
class Step:
    """Part of a place: how a value is found from the one before."""

    kind: str
    name: Any = None

    def value_in(self, owner: Any) -> Any:
        """Return the value; UNBOUND if there is none, or if user code could run to compute it."""
        try:
            required, look_up = _LOOKUPS[self.kind]
            return look_up(owner, self.name) if required is object or type(owner) is required else UNBOUND
        except (AttributeError, LookupError, TypeError):  # an empty slot; a function without keyword defaults
            return UNBOUND


def _item(owner: Any, key: Any) -> Any:
    return owner[key] if type(owner) in _CONTAINERS else UNBOUND


def attribute_of(owner: Any, name: str) -> Any:
    """Return an attribute that is stored in a module, an object or its class."""
    kind = type(owner)
    if kind is ModuleType:
        members = vars(owner)
        if name not in members and str(members.get("__name__")).partition(".")[0] == "dataset":
            getattr(owner, name, None)  # it may import the attribute, but runs no user code
        return members.get(name, UNBOUND)
    if kind is type:
        found, own = _in_class(owner, name), {}
    elif kind is not SimpleNamespace and _looks_up_otherwise(kind):
        return UNBOUND
    else:
        found, own = _in_class(kind, name), members_of(owner)
    if type(found) in _SLOTS and kind is not type:
        return found.__get__(owner, kind)
    # A property or a method is not an attribute of this kind.
    return UNBOUND if _in_class(type(found), "__get__") is not UNBOUND else own.get(name, found)


def _looks_up_otherwise(cls: Any) -> bool:
    """Return whether a class looks up attributes in a way of its own."""
    found = _in_class(cls, "__getattribute__")
    return all(found is not known for known in _GET_ATTRIBUTE)


def method_of(owner: Any, name: str) -> Any:
    """Return what the class of an object has under the name of a method, unless the object hides it."""
    kind = type(owner)
    is_special = name.startswith("__")  # these are looked up in the class only
    if _looks_up_otherwise(kind) or (not is_special and name in members_of(owner)):
        return UNBOUND
    return _in_class(kind, name)


def _static_method(owner: Any, name: str) -> Any:
    """Return the function of a static method, or of a class that is not called through an object."""
    found = _in_class(owner, name) if type(owner) is type else method_of(owner, name)
    if type(found) is staticmethod:
        return found.__func__
    return found if type(owner) is type else UNBOUND


def _class_method(owner: Any, name: str) -> Any:
    """Return the function of a class method."""
    found = _in_class(owner, name) if type(owner) is type else method_of(owner, name)
    return found.__func__ if type(found) is classmethod else UNBOUND


def _keys(owner: Any, _: Any) -> Any:
    """Return a description of the length of a sequence, or of the keys of another container in their order.

    Equal ones are one object.
    """
    kind = type(owner)
    if kind is list or kind is tuple:
        return sys.intern(f"{kind.__name__} {len(owner)}")
    is_plain = kind in {dict, set, frozenset} and {*map(type, owner)} <= {str, int, bytes}
    return sys.intern(f"{kind.__name__} {(*owner,)!r}") if is_plain else UNBOUND


def _in_class(cls: Any, name: str) -> Any:
    """Return what a class or one of its bases stores under a name, without running code of its metaclass."""
    for base in type.__getattribute__(cls, "__mro__"):
        members = type.__getattribute__(base, "__dict__")
        if name in members:
            return members[name]
    return UNBOUND


def _fields(cls: Any, _: Any) -> Any:
    """Return the names of the fields of a named tuple that is used as a plain tuple, without code of the user."""
    bases, names = type.__getattribute__(cls, "__mro__"), _in_class(cls, "_fields")
    members = frozenset[str]().union(*(type.__getattribute__(base, "__dict__") for base in bases[:-2]))
    is_plain = (
        bases[-2:] == (tuple, object)
        and members.isdisjoint(_USED)
        and type(names) is tuple
        and {*map(type, names)} == {str}
    )
    return names if is_plain and all(type(_in_class(cls, name)) in _SLOTS for name in names) else UNBOUND


_USED = frozenset({"__init__", "__iter__", "__len__", "__getitem__", "__getattribute__", "__getattr__", "__del__"})
"""Methods of tuples that a class may replace."""


def class_name(cls: Any) -> str:
    """Return the name of a class, without running code of its metaclass."""
    return str(type.__getattribute__(cls, "__name__"))


def members_of(owner: Any) -> Any:
    """Return the attributes that an object stores itself."""
    is_plain = type(owner) is SimpleNamespace or type(_in_class(type(owner), "__dict__")) is GetSetDescriptorType
    return vars(owner) if is_plain else {}


_LOOKUPS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "attribute": (object, attribute_of),
    "item": (object, _item),
    "method": (object, method_of),
    "static": (object, _static_method),
    "class method": (object, _class_method),
    "class": (object, lambda owner, _: type(owner)),
    "fields": (type, _fields),
    "keys": (object, _keys),
    "code": (FunctionType, lambda function, _: function.__code__),
    "keyword default": (FunctionType, lambda function, name: function.__kwdefaults__[name]),
    "function": (MethodType, lambda method, _: method.__func__),
    "self": (MethodType, lambda method, _: method.__self__),
    "called": (functools.partial, lambda partial, _: partial.func),
    "given": (functools.partial, lambda partial, position: partial.args[position]),
    "keyword": (functools.partial, lambda partial, name: partial.keywords[name]),
    "names": (functools.partial, lambda partial, _: sys.intern(f"{len(partial.args)} {' '.join(partial.keywords)}")),
    "exactly": (int, lambda value, _: sys.intern(repr(value))),
    "truth": (object, lambda value, _: ("false", "true")[bool(value)] if has_fixed_truth(value) else UNBOUND),
}
"""For each kind of step, the type that the owner must have, and a function that returns the value."""


def value_at(place: Place, found: dict[Place, Any]) -> Any:
    """Return the current value at a place, and add it to ``found``, which holds values at other places."""
    if place in found:
        return found[place]
    owner = value_at(place[:-1], found)
    value = UNBOUND if owner is UNBOUND else place[-1].value_in(owner)
    found[place] = value
    return value

"""Traits: what a node declares about itself, for the optimizer, random access, sharding and saved states."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

NO_USER_CODE = "__dataset_no_user_code__"
"""Attribute that is True in functions of this library that call no user code, and in classes whose objects call none.

Subclasses may call user code.
"""


def calls_no_user_code(function: Any) -> bool:
    """Return whether a function, class or callable object is marked with ``NO_USER_CODE``."""
    holder = function if isinstance(function, FunctionType | type) else type(function)
    return bool(vars(holder).get(NO_USER_CODE, False))


@dataclass(frozen=True, slots=True)
class Traits:
    """Declared properties of a node. A subclass of Node sets them as class keywords, or overrides ``Node.traits``.

    Attributes:
        pure: running it calls no user function and iterates no user object, so read-ahead is unobservable.
        computes: the user functions that it calls are proved to only compute: they wait for nothing.
        static_spec: its spec follows from those of its inputs; False if it is only known by running user code.
        counted: the number of its elements follows from those of its inputs; by default, it has as many as its input.
        gatherable: its operator is an IndexedOperator, and a position determines an element of this source.
        seekable: its operator can continue at any position by arithmetic, if those of its inputs can.
        indexable: its method ``element`` returns any element directly, without opening an operator.
        aligned: element ``i`` is made from element ``i`` of each input, and each input element or failure yields one.
        exact: if its inputs are exact, it has exactly ``cardinality()`` elements, and none of them can fail.
        infallible: none of its elements can fail if none of its inputs' can, whatever their order and number.
        only_reorders: its elements are unchanged elements of its inputs: some or all, in any order, or combined in
            tuples.
        stable: each iteration returns the same elements in the same order, if those of its inputs do and user functions
            depend only on their arguments.
        permutes: its elements are all elements of its input, a failed one counting as one, in another order.
        passes: how often it iterates its input, -1 for infinitely. If not 1, its elements are those of its input.
        positional: it selects and orders elements by their positions alone, which costs less on row numbers. If it is
            also ``aligned``, it counts only elements that do not fail.
        generated: a source of numbers that it computes, not of data that it holds or reads.
        views: its elements, or the rows of its batches, are views of arrays that it holds or of elements of its input,
            so they cost almost nothing.
        rows: how many rows each component of an element has, if it is known independently of the spec.
        batches: its elements are batches of the elements, or of the rows, of its input.
        stacks: how many elements it stacks into arrays, for which all must have equal shapes; 0 if it does not.
        takes_packed: stacking elements whose values are contiguous gives the same as stacking single ones.
        gathers: its elements are rows of data that it holds or reads, with the numbers that are the elements of its
            input. They cannot fail if it is ``infallible``.
        prefetches: it only computes the elements of its input ahead.
        steady: whether its arrays are writable does not depend on how many elements are requested at once.
        reads_files: it reads or writes files named by a parameter or by an element of its input, or may make such a
            node.
        waits: it may wait for a server, even if it calls no user function.
        separable: processes that each run it on a part of its input together produce the output of the whole, up to
            the order and the grouping into batches. Its result for an element does not depend on other elements.
        elastic: its state can be loaded in any number of processes that share the elements of its input. Its elements
            correspond to those of its input one to one or by a fixed batch size, and its state counts no element of
            another process.
        keeps_pass: it keeps the elements of its first pass for later ones, in which elements that failed are missing.
        remote: other processes run its input, and optimize it themselves.
        expands_elements: each element of its input, such as the name of a file, is opened as a dataset of many
            elements.
        proved_spec: the element spec that a rule has derived from a user function; None if no rule has.
    """

    pure: bool = True
    computes: bool = False
    static_spec: bool = True
    counted: bool = True
    gatherable: bool = False
    seekable: bool = False
    indexable: bool = False
    aligned: bool = False
    exact: bool = False
    infallible: bool = False
    only_reorders: bool = False
    stable: bool = True
    permutes: bool = False
    passes: int = 1
    positional: bool = False
    generated: bool = False
    views: bool = False
    rows: int | None = None
    batches: bool = False
    stacks: int = 0
    takes_packed: bool = False
    gathers: bool = False
    prefetches: bool = False
    steady: bool = False
    reads_files: bool = False
    waits: bool = False
    separable: bool = False
    elastic: bool = False
    keeps_pass: bool = False
    remote: bool = False
    expands_elements: bool = False
    proved_spec: Any = None

    def having(self, **changes: Any) -> Traits:
        """Return these traits with some changed."""
        if all(getattr(self, name) is value for name, value in changes.items()):
            return self
        try:
            return _changed(self, **changes)
        except TypeError:  # a spec that cannot be hashed
            return replace(self, **changes)


@functools.lru_cache  # a node is created for each dataset that a function returns, and a copy costs more than that
def _changed(traits: Traits, **changes: Any) -> Traits:
    return replace(traits, **changes)

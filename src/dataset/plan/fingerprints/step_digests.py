"""Step digests: one digest per operation of a plan, to check whether a pipeline is the one that filled a cache.

They detect changed operations, arguments, seeds and data, and edits of functions: of their code, of captured values,
and of the functions and values of their own module that they name. They must never differ if nothing was edited, or a
valid cache would be rejected. So anything that can change on its own is excluded:

- Objects of other packages (models, random generators) and of the standard library count by their class, except
  immutable values such as dates and regexes. Cached properties do not count.
- An operation whose digest changes while the pipeline runs, such as a function that appends to a captured list, is
  left out: ``stable_digests`` compares the digests before and after.
- Bytecode is not compared between different versions of Python: ``PYTHON`` identifies the version.
- An array of more than 64 MiB is sampled at 4096 values. An operation of more than a million values is left out.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from dataset.plan.fingerprints.content import Content, Parts, full_name
from dataset.plan.node import Node, walk

PYTHON = f"{sys.implementation.cache_tag}-{sys.flags.optimize}"
"""The version and flags of Python that bytecode depends on."""

_ARRAY_BYTES_MAX = 1 << 26
_SAMPLES = 4096
_VALUES_MAX = 1_000_000  # per operation, takes about a second

Digests = list[list[str]]
"""For each operation, from the last to the first: its text and its digest, "" if it has none."""


class _StepContent(Content):
    """Digest of what determines the elements, without anything that may change other than by an edit."""

    def __init__(self) -> None:
        super().__init__()
        self._values = itertools.count()  # shared with the contents of items of sets

    def add(self, value: Any) -> None:
        if next(self._values) > _VALUES_MAX:
            raise OverflowError(f"more than {_VALUES_MAX} values")
        super().add(value)

    def _parts(self, value: Any) -> Parts:
        kind, parts = super()._parts(value)
        if kind != full_name(type(value)) or isinstance(value, list | tuple | dict):
            return kind, parts
        return kind, parts if _is_own(str(type(value).__module__).partition(".")[0]) else []

    def _add_array(self, array: np.ndarray[Any, Any]) -> None:
        if array.nbytes > _ARRAY_BYTES_MAX and not array.dtype.hasobject:
            self._put(f"array{array.dtype.str}{array.shape}")
            places = np.linspace(0, array.size - 1, _SAMPLES).astype(np.int64)
            array = array[np.unravel_index(places, array.shape)]
        super()._add_array(array)


@functools.cache
def _is_own(package: str) -> bool:
    """Return whether a package is the user's or this library, not another installed package or part of Python."""
    if package in {"dataset", "__main__", "__mp_main__"}:
        return True
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return package not in sys.stdlib_module_names and "site-packages" not in file and "dist-packages" not in file


def step_digests(plan: Node) -> Digests:
    """Return the current digest of each operation of a plan."""
    found = []
    for part in walk(plan):
        content = _StepContent()
        try:
            content.add([part.op, len(part.inputs), part.fingerprint_fields()])
            digest = f"{content.digest():016x}"
        except Exception:  # noqa: BLE001  # a user's class may raise anything; the cache works without a digest
            digest = ""
        found.append([part.label(), digest])
    return found


def stable_digests(plan: Node, before: Digests) -> Digests:
    """Return the digests of a plan that has run since ``before``; digests that have changed are empty."""
    now = step_digests(plan)
    if len(now) != len(before):
        return []
    return [
        [name, digest if digest == earlier else ""] for (name, digest), (_, earlier) in zip(now, before, strict=True)
    ]


def difference(stored: Any, mine: Digests) -> str:
    """Return a description of how a pipeline differs from the one that filled a cache; empty if it does not.

    Args:
        stored: the result of ``stable_digests`` from a file; data in any other form is ignored.
        mine: the digests of the pipeline.
    """
    if not _is_digests(stored) or not stored:
        return ""
    if len(stored) != len(mine):
        return f"it was filled by {_chain(stored)}, this pipeline is {_chain(mine)}"
    for (old, digest), (new, found) in zip(reversed(stored), reversed(mine), strict=True):
        if digest and found and digest != found:
            return f"{new} has changed" if old == new else f"it was filled by {old} where this pipeline has {new}"
    return ""


def _is_digests(stored: Any) -> bool:
    return isinstance(stored, list) and all(
        isinstance(one, list) and len(one) == 2 and all(type(text) is str for text in one) for one in stored
    )


def _chain(digests: Sequence[Sequence[str]]) -> str:
    return " -> ".join(name for name, _ in reversed(digests))

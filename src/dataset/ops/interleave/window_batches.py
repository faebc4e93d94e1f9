"""Batches of windows, as slices: what flat_map does with windows if its function is known to only batch them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dataset.ops.batch.batch import Batch
from dataset.ops.zip import Zip
from dataset.plan.nested import is_dataset
from dataset.plan.node import Node
from dataset.plan.structure import LEAF, Structure, structure_of
from dataset.runtime.chunks.batching import ColumnMismatchError
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.functions.plan_functions import PlanFunction, looked_into, plan_function


class WindowFunction:
    """User function of windows, called in its place. The first call shows what it does with any windows.

    Args:
        function: the user function.
        proof: the proof that it only combines datasets.
        size: the number of elements in a full window.
    """

    def __init__(self, function: Callable[..., Any], proof: PlanFunction, size: int) -> None:
        self._function = function
        self._proof: PlanFunction | None = proof
        self._size = size
        self._batches: WindowBatches | None = None

    @classmethod
    def of(cls, function: Callable[..., Any], size: int) -> WindowFunction | None:
        """Return the function if it is proved to only combine the datasets that it is given; otherwise None."""
        proof = plan_function(function)
        return None if proof is None else cls(function, proof, size)

    def __call__(self, *windows: Any) -> Any:
        """Call the function, and note what it does with the windows."""
        if self._proof is None:
            return self._function(*windows)
        plans = [dataset.plan for dataset in structure_of(windows).flatten(windows)]
        used = looked_into(plans)
        result = self._function(*windows)
        self._batches = _batches_of(result.plan, plans, self._size) if is_dataset(result) and not used() else None
        if self._batches is None:
            self._proof = None
        return result

    def known(self, n: int) -> WindowBatches | None:
        """Return what the function does with any windows, if it returns at most ``n`` elements.

        None if it must be called to know.
        """
        batches = self._batches
        if batches is None or not 0 < batches.most <= n:
            return None
        if self._proof is not None and self._proof.holds():
            return batches
        self._batches, self._proof = None, plan_function(self._function)
        return None


@dataclass(frozen=True)
class WindowBatches:
    """What such a function returns: a dataset of batches, whose components are batches of some windows.

    Attributes:
        structure: the structure of a batch.
        size: the number of elements in a batch.
        drop_remainder: whether smaller ones at the end of a window are left out.
        parts: for each component, the window, and a function that stacks its elements.
        most: the number of batches of a full window.
    """

    structure: Structure
    size: int
    drop_remainder: bool
    parts: tuple[tuple[int, Callable[[Column], Any]], ...]
    most: int

    def of(self, windows: Chunk) -> tuple[Chunk, int]:
        """Return the batches of these windows, and of how many: all before the first that cannot be stacked."""
        pieces = [column.pieces for column in windows.columns()]  # type: ignore[union-attr]  # each is a WindowColumn
        if set(map(len, pieces[0])) == {self.size}:  # the usual case: each window is a batch
            with contextlib.suppress(ColumnMismatchError):
                batches: list[Column] = [list(map(stack, pieces[place])) for place, stack in self.parts]
                return Chunk(self.structure, windows.length, batches), windows.length
        found: list[list[Any]] = [[] for _ in self.parts]
        length = 0
        for number in range(windows.length):
            try:
                for (place, stack), values in zip(self.parts, found, strict=True):
                    values.extend(map(stack, self._cut(pieces[place][number])))
            except ColumnMismatchError:
                for values in found:
                    del values[length:]
                return Chunk(self.structure, length, found), number
            length = len(found[0])
        return Chunk(self.structure, length, found), windows.length

    def _cut(self, piece: Column) -> Sequence[Column]:
        stop = len(piece) - len(piece) % self.size if self.drop_remainder else len(piece)
        return [piece[start : start + self.size] for start in range(0, stop, self.size)]


def _batches_of(plan: Node, windows: Sequence[Node], size: int) -> WindowBatches | None:
    """Return what the plan of a dataset does with these windows of ``size`` elements, if it only batches them."""
    places = {id(window): place for place, window in enumerate(windows)}
    structure, batches = (plan.structure, plan.sources) if isinstance(plan, Zip) else (LEAF, (plan,))
    structures: list[Structure] = []
    sizes: set[tuple[int, bool]] = set()
    parts: list[tuple[int, Callable[[Column], Any]]] = []
    for batch in batches:
        if type(batch) is not Batch or batch.num_parallel_calls is not None:
            return None
        zipped = batch.source
        inner, sources = (zipped.structure, zipped.sources) if isinstance(zipped, Zip) else (LEAF, (zipped,))
        if not all(id(source) in places for source in sources):
            return None
        structures.append(inner)
        sizes.add((batch.batch_size, batch.drop_remainder))
        parts += [(places[id(source)], partial(batch.stack, index)) for index, source in enumerate(sources)]
    if len(sizes) != 1:
        return None
    batch_size, drop_remainder = sizes.pop()
    most = size // batch_size if drop_remainder else -(-size // batch_size)
    return WindowBatches(structure.substitute(structures), batch_size, drop_remainder, tuple(parts), most)

"""Node and operator of pack(length): several sequences of tokens in each row of a fixed length.

The sequences of a window are placed by best-fit-decreasing (best_fit.py). Within a row, they are in the order of the
input. All rows of a window are made at once: per token feature, one concatenation of the sequences and the padding.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.ops.pack.best_fit import best_fit_decreasing
from dataset.ops.pack.token_features import (
    Lengths,
    SequencesNode,
    SequencesOperator,
    static_features,
    with_entries,
)
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.checks import require_int, require_one_of
from dataset.plan.node import Sharding
from dataset.plan.packed import RaggedColumn
from dataset.plan.spec import BYTES
from dataset.plan.values import filled, object_column, row_offsets
from dataset.runtime.chunks.chunk import Chunk, Column, concatenate_columns, lineage_of, take_column
from dataset.runtime.chunks.lineage import Lineage, joined
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator

_TOO_LONG = ("split", "truncate", "error", "drop")
_BOUNDARIES = {
    "segment_ids": ("segment_ids", "positions"),
    "cu_seqlens": ("cu_seqlens", "positions"),
    "lengths": ("lengths",),
}
_TOKENS_AT_ONCE = 1 << 15
_PER_TOKEN = {"segment_ids", "positions"}


@dataclass(frozen=True, eq=False)
class Pack(SequencesNode, separable=True):
    """Node that packs the sequences of each window of ``window`` elements into rows of ``length`` tokens."""

    op: ClassVar[str] = "pack"
    length: int
    window: int = 1000
    key: Any = None
    too_long: str = "split"
    boundaries: str = "segment_ids"
    pad: Any = 0
    max_sequences: int | None = None
    shuffle: bool = False
    seed: InitVar[int | None] = None

    def __post_init__(self, seed: int | None) -> None:
        self._set("length", require_int(self.op, "length", self.length, minimum=1))
        require_one_of(self.op, "too_long", self.too_long, _TOO_LONG)
        require_one_of(self.op, "boundaries", self.boundaries, _BOUNDARIES)
        if self.max_sequences is not None:
            self._set("max_sequences", require_int(self.op, "max_sequences", self.max_sequences, minimum=1))
        self._set_window(seed)

    def _element_spec(self) -> Any:
        features, specs = static_features(self, self.key)
        for index in features.tokens:
            self.padding(features, index, specs[index].dtype)
        sizes = {name: self.length if name in _PER_TOKEN else None for name in _BOUNDARIES[self.boundaries]}
        return self.packed_spec(features, specs, self.length, sizes)

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self | None:
        """Give each process whole windows, if processes may get different numbers of rows, or rows never end."""
        if shard.in_order or shard.turn > 1:
            return None
        if shard.remainder != "keep" and self.source.cardinality() != INFINITE_CARDINALITY:
            return None
        windows = dataclasses.replace(shard, remainder="keep", turn=self.window, least=1, otherwise=None)
        return self.with_inputs([below(self.source, windows)])

    def label(self) -> str:
        return f"{self.op}({self.length}, window={self.window})"

    def lower(self, context: ExecutionContext) -> Operator:
        return PackOperator(context, context(self.source), self)


class _RowLayout(NamedTuple):
    """The rows of a window as runs: the pieces of sequences, and the padding at the end of each row, in output order.

    Attributes:
        owners: the sequence of each piece.
        begins: its first token in that sequence.
        sizes: the number of tokens of each run; that of the padding may be 0.
        numbers: the number of each run in its row, from 1; 0 for padding. int32.
        starts: where each run begins in its row. int32.
        ends: the number of runs up to the end of each row, from 0 rows on.
    """

    owners: Lengths
    begins: Lengths
    sizes: Lengths
    numbers: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    ends: Lengths


class PackOperator(SequencesOperator):
    """Operator that packs a window at a time."""

    node: Pack

    def __init__(self, context: ExecutionContext, source: Operator, node: Pack) -> None:
        super().__init__(context, source, node, node.window)
        self.key = node.key
        self._inner: dict[int, tuple[int, ...]] = {}  # the shape of a token, per token feature
        self._ramp = np.arange(node.length, dtype=np.int32)

    def accepts(self, lengths: Lengths, fits: npt.NDArray[np.bool_], position: int) -> npt.NDArray[np.bool_]:
        node = self.node
        accepted = super().accepts(lengths, fits, position)
        if node.too_long in {"drop", "error"}:
            too_long = fits & (lengths > node.length)
            if node.too_long == "error":
                for place in np.flatnonzero(too_long).tolist():
                    self.fail(
                        ValueError(
                            f"{node}: element {position + place} has {lengths[place]:,} tokens, and a row only "
                            f'{node.length:,}; pass too_long="split", "truncate" or "drop"'
                        )
                    )
            accepted &= ~too_long
        return accepted

    def plan(self, parts: list[Chunk], *, is_last: bool) -> int:  # noqa: ARG002  # no sequence is carried over
        if not parts:
            return 0
        structure = self.features.structure
        count, added = structure.num_components, _BOUNDARIES[self.node.boundaries]
        numbers = dict(zip(added, range(count, count + len(added)), strict=True))
        try:
            self._structure, self._order = with_entries(self.node.op, structure, range(count), numbers)
        except ValueError as error:
            raise SpecError(f"{self.node}: {error}") from None
        self._layout = layout = self._layout_of(self._window_lengths)
        self._lineage = lineage_of(parts)
        self._runs: dict[int, list[npt.NDArray[Any]]] = {}
        self._values: dict[int, Column] = {}
        for index in range(count):
            columns = [part.columns()[index] for part in parts]
            if index in self.features.tokens:
                self._runs[index] = self._runs_of(index, columns)
            else:
                joined = concatenate_columns(columns)
                values = joined if isinstance(joined, np.ndarray) else object_column(joined)
                self._values[index] = _ragged(values[layout.owners], np.diff(layout.ends) - 1)
        return len(layout.ends) - 1

    @property
    def rows_at_once(self) -> int:
        return max(1, _TOKENS_AT_ONCE // self.node.length)

    def make(self, start: int, stop: int) -> Chunk:
        first, last = self._layout.ends[[start, stop]].tolist()
        columns = [
            self._values[index][start:stop]
            if index in self._values
            else np.concatenate(self._runs[index][first:last]).reshape(
                stop - start, self.node.length, *self._inner[index]
            )
            for index in range(self.features.structure.num_components)
        ]
        columns += self._boundaries(start, stop)
        return Chunk(
            self._structure,
            stop - start,
            [columns[index] for index in self._order],
            lineage=self._lineage_in(start, stop),
        )

    def _lineage_in(self, start: int, stop: int) -> Lineage | None:
        if self._lineage is None:
            return None
        places = (self._layout.ends[start : stop + 1] - np.arange(start, stop + 1)).tolist()  # of pieces
        owners = self._layout.owners
        return [joined(take_column(self._lineage, owners[a:b])) for a, b in itertools.pairwise(places)]

    def _layout_of(self, lengths: Lengths) -> _RowLayout:
        node, capacity = self.node, self.node.length
        owners = np.arange(len(lengths))
        begins = np.zeros(len(lengths), np.int64)
        sizes = np.minimum(lengths, capacity)
        if node.too_long == "split" and lengths.max() > capacity:
            pieces = -(-lengths // capacity)
            owners = np.repeat(owners, pieces)
            begins = (np.arange(len(owners)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * capacity
            sizes = np.minimum(lengths[owners] - begins, capacity)
        rows = best_fit_decreasing(sizes, capacity, node.max_sequences)
        if node.shuffle:
            rows = self.permutation(int(rows.max()) + 1)[rows]
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows)
        before = np.cumsum(counts) - counts
        numbers = np.arange(1, len(rows) + 1) - np.repeat(before, counts)
        gaps = capacity - np.add.reduceat(sizes[order], before)
        runs = _with_last(sizes[order], counts, gaps)
        return _RowLayout(
            owners[order],
            begins[order],
            runs,
            _with_last(numbers, counts, np.zeros_like(gaps)).astype(np.int32),
            ((np.cumsum(runs) - runs) % capacity).astype(np.int32),
            row_offsets(counts + 1),
        )

    def _runs_of(self, index: int, columns: Sequence[Column]) -> list[npt.NDArray[Any]]:
        """Return the runs of a token feature."""
        values = self.values_of(index, columns)
        first = values[0]
        node, layout = self.node, self._layout
        self._inner[index] = first.shape[1:]
        dtype = BYTES if first.dtype == object else first.dtype
        padding = filled((node.length, *first.shape[1:]), node.padding(self.features, index, dtype), first.dtype)
        pieces = zip(layout.owners.tolist(), layout.begins.tolist(), strict=True)
        runs = []
        for size, number in zip(layout.sizes.tolist(), layout.numbers.tolist(), strict=True):
            if number:
                owner, begin = next(pieces)
                value = values[owner]
                runs.append(value if len(value) == size else value[begin : begin + size])
            else:
                runs.append(padding[:size])
        return runs

    def _boundaries(self, start: int, stop: int) -> list[Column]:
        """Return the arrays that describe the sequences of some rows."""
        kind, length, layout = self.node.boundaries, self.node.length, self._layout
        first, last = layout.ends[[start, stop]].tolist()
        sizes, numbers, starts = (runs[first:last] for runs in (layout.sizes, layout.numbers, layout.starts))
        counts = np.diff(layout.ends[start : stop + 1])
        if kind == "lengths":
            return [_ragged(sizes[numbers > 0].astype(np.int32), counts - 1)]
        # In place, as new memory costs more than the arithmetic.
        positions = np.repeat(starts, sizes).reshape(stop - start, length)
        np.subtract(self._ramp, positions, out=positions)
        for row, used in zip(positions, starts[numbers == 0].tolist(), strict=True):
            if used:
                row[used:] = 0
        if kind == "segment_ids":
            return [np.repeat(numbers, sizes).reshape(stop - start, length), positions]
        is_kept = sizes > 0  # without the padding of full rows
        entries = np.add.reduceat(is_kept, layout.ends[start:stop] - first)
        offsets = _with_last(starts[is_kept], entries, np.full(stop - start, length)).astype(np.int32)
        return [_ragged(offsets, entries + 1), positions]


def _ragged(values: npt.NDArray[Any], counts: Lengths) -> Column:
    """Split values into groups of these sizes."""
    return list(RaggedColumn(values, row_offsets(counts)))


def _with_last(values: npt.NDArray[Any], counts: Lengths, last: Lengths) -> Lengths:
    """Insert a value at the end of each group of values."""
    found = np.empty(len(values) + len(counts), np.int64)
    ends = np.cumsum(counts + 1) - 1
    is_last = np.zeros(len(found), np.bool_)
    is_last[ends] = True
    found[ends], found[~is_last] = last, values
    return found

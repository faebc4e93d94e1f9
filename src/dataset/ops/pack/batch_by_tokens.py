"""Node and operator of batch_by_tokens(max_tokens): batches of sequences whose size in tokens is limited.

The sequences of a window are sorted by length and cut into batches, which are then shuffled. For several processes, the
limit of a window is lowered until the number of batches is a multiple of the number of processes. Batches of similar
size follow each other, so that the processes have equal work in each step.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.ops.batch.padded_batch import PaddedBatch
from dataset.ops.batch.ragged_batch import RaggedBatch
from dataset.ops.group.integer_keys import as_integer
from dataset.ops.pack.best_fit import best_fit_decreasing
from dataset.ops.pack.token_features import (
    Lengths,
    SequencesNode,
    SequencesOperator,
    TokenFeatures,
    lengths_of,
    rank_of,
    static_features,
    with_entries,
)
from dataset.plan.checks import require_callable, require_int, require_one_of
from dataset.plan.lazy import lazy_property
from dataset.plan.node import spec_is_static
from dataset.plan.spec import BYTES, TensorSpec, flatten_spec
from dataset.plan.structure import LEAF, tuple_of
from dataset.plan.traits import Traits
from dataset.runtime.chunks.batching import ColumnMismatchError, pad_column, stack_column
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.chunks.lineage import joined
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.resources.exceptions import concerns_iteration, with_location
from dataset.world.interrupts import call

_LAYOUTS = ("padded", "ragged", "packed")


@dataclass(frozen=True, eq=False)
class BatchByTokens(SequencesNode, separable=True):
    """Node that batches the sequences of each window of ``window`` elements by their numbers of tokens."""

    op: ClassVar[str] = "batch_by_tokens"
    max_tokens: int
    length: Callable[..., Any] | None = None
    window: int = 1000
    layout: str = "padded"
    pad_to: Any = None  # a multiple or ascending lengths, as a tuple
    pad: Any = 0
    processes: int = 1
    shuffle: bool = True
    seed: InitVar[int | None] = None

    def __post_init__(self, seed: int | None) -> None:
        self._set("max_tokens", require_int(self.op, "max_tokens", self.max_tokens, minimum=1))
        if self.length is not None:
            require_callable(self.op, "length", self.length)
        require_one_of(self.op, "layout", self.layout, _LAYOUTS)
        self._set("pad_to", self._checked_sizes(self.pad_to))
        self._set_window(seed)

    def _checked_sizes(self, pad_to: Any) -> int | tuple[int, ...] | None:
        if pad_to is None:
            return None
        if self.layout != "padded":
            raise ValueError(f'{self.op}(): pad_to={pad_to!r} has no effect with layout="{self.layout}"')
        if not isinstance(pad_to, list | tuple | np.ndarray):
            return require_int(self.op, "pad_to", pad_to, minimum=1)
        sizes = tuple(require_int(self.op, f"pad_to[{i}]", size, minimum=1) for i, size in enumerate(pad_to))
        if not sizes or any(later <= earlier for earlier, later in itertools.pairwise(sizes)):
            raise ValueError(f"{self.op}(): pad_to must be a multiple, or ascending lengths, got {list(pad_to)}")
        return sizes

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(pure=self.length is None)

    def padded_length(self, length: int) -> int | None:
        """Return the length to which sequences are padded if the longest has this one; None if that is too long."""
        if self.pad_to is None:
            return length
        if isinstance(self.pad_to, int):
            return -(-length // self.pad_to) * self.pad_to
        place = bisect_left(self.pad_to, length)
        return self.pad_to[place] if place < len(self.pad_to) else None

    def _element_spec(self) -> Any:
        features, specs = static_features(self, None)
        if self.layout == "ragged":
            return RaggedBatch(self.source, 1, origin=self.origin).element_spec
        for index in features.tokens:
            self.padding(features, index, specs[index].dtype)
        if self.layout == "padded":
            return PaddedBatch(self.source, 1, origin=self.origin).element_spec
        return self.packed_spec(features, specs, None, {"cu_seqlens": None, "positions": None})

    def label(self) -> str:
        return f"{self.op}({self.max_tokens}, window={self.window})"

    def lower(self, context: ExecutionContext) -> Operator:
        return BatchByTokensOperator(context, context(self.source), self)

    def batches_of(self, lengths: Lengths) -> list[npt.NDArray[np.intp]]:
        """Return the batches of a window as the positions of their sequences, before they are shuffled.

        Args:
            lengths: of all sequences; each fits into a batch of its own.
        """
        batches = self._within(lengths, self.max_tokens)
        target = -(-len(batches) // self.processes) * self.processes
        if self.processes > 1:
            low, high = self.size_of(lengths, np.array([int(lengths.argmax())])), self.max_tokens
            while low < high:  # the lowest limit that needs at most ``target`` batches
                middle = (low + high) // 2
                low, high = (low, middle) if len(self._within(lengths, middle)) <= target else (middle + 1, high)
            batches = self._within(lengths, high)
            while len(batches) % self.processes:
                largest = max(range(len(batches)), key=lambda number: len(batches[number]))
                if len(batches[largest]) < 2:
                    break  # there are fewer sequences than processes
                half = len(batches[largest]) // 2
                batches[largest : largest + 1] = [batches[largest][:half], batches[largest][half:]]
        return sorted(batches, key=lambda batch: -self.size_of(lengths, batch))

    def size_of(self, lengths: Lengths, batch: npt.NDArray[np.intp]) -> int:
        """Return the size of a batch in tokens, with padding."""
        if self.layout != "padded":
            return int(lengths[batch].sum())
        longest = self.padded_length(int(lengths[batch].max()))
        assert longest is not None  # longer sequences were not accepted
        return longest * len(batch)

    def _within(self, lengths: Lengths, limit: int) -> list[npt.NDArray[np.intp]]:
        """Return batches of at most this size, as few as possible if they are padded."""
        if self.layout != "padded":
            rows = best_fit_decreasing(lengths, limit, None)
            return np.split(np.argsort(rows, kind="stable"), np.cumsum(np.bincount(rows))[:-1])
        order = np.argsort(-lengths, kind="stable")
        batches, start = [], 0
        while start < len(order):
            longest = self.padded_length(int(lengths[order[start]]))
            assert longest is not None  # longer sequences were not accepted
            stop = start + max(1, limit // max(1, longest))
            batches.append(order[start:stop])
            start = stop
        return batches


def _rotated(step: list[npt.NDArray[np.intp]], number: int) -> list[npt.NDArray[np.intp]]:
    """Return the batches of a step so that the same process does not always get the largest."""
    start = number % len(step)
    return step[start:] + step[:start]


class BatchByTokensOperator(SequencesOperator):
    """Operator that makes the batches of a window. Its parts are pairs of a length and an element."""

    node: BatchByTokens

    def __init__(self, context: ExecutionContext, source: Operator, node: BatchByTokens) -> None:
        super().__init__(context, source, node, node.window)
        self._elements = Chunk(LEAF, 0, [[]])  # of the window
        self._batches: list[npt.NDArray[np.intp]] = []
        self._ragged = RaggedBatch(node.source, 1, origin=node.origin).operator(source)

    def part_spec(self) -> Any:
        return TensorSpec((), np.int64), self.node.source.element_spec

    def accept(self, chunk: Chunk, position: int) -> Chunk | None:
        if self.node.layout == "packed":
            accepted = super().accept(chunk, position)
            if accepted is None:
                return None
            chunk = accepted
        found = self._lengths(chunk, position)
        for place, length in enumerate(found):
            if isinstance(length, int) and not self._fits(length):
                found[place] = ValueError(
                    f"{self.node}: element {position + place} has {length:,} tokens, and a batch can have from 0 to "
                    f"{self.node.max_tokens:,} after padding; raise max_tokens, or cut such elements in map()"
                )
            if isinstance(found[place], Exception):
                self.fail(found[place])
        kept = [place for place, outcome in enumerate(found) if isinstance(outcome, int)]
        if not kept:
            return None
        lengths = np.array([found[place] for place in kept], np.int64)
        elements = chunk if len(kept) == chunk.length else chunk.take(np.array(kept))
        return Chunk(
            tuple_of(LEAF, chunk.structure), len(kept), [lengths, *elements.columns()], lineage=elements.lineage
        )

    def _fits(self, length: int) -> bool:
        padded = self.node.padded_length(length) if length >= 0 else None
        return padded is not None and padded <= self.node.max_tokens

    def _lengths(self, chunk: Chunk, position: int) -> list[Any]:
        """Return the lengths of elements, and exceptions in the places of those without one."""
        function = self.node.length
        if function is None:
            columns = chunk.columns()
            try:
                features = TokenFeatures.of(chunk.structure, [rank_of(column) for column in columns], None)
            except ValueError as error:
                return [SpecError(f"{self.node}: {error}") for _ in range(chunk.length)]
            lengths = lengths_of(columns[features.key]).tolist()
            name = features.name(features.key)
            return [
                length
                if length >= 0
                else SpecError(f"{self.node}: {name} is not an array in element {position + place}")
                for place, length in enumerate(lengths)
            ]
        found: list[Any] = []
        for place, values in enumerate(zip(*chunk.arguments(), strict=True)):
            try:
                found.append(as_integer(self.node, "length", call(function, *values)))
            except Exception as error:
                if concerns_iteration(error):
                    raise
                found.append(with_location(error, self.node, position + place))
        return found

    def lengths_in(self, parts: list[Chunk]) -> Lengths:
        return np.concatenate([part.columns()[0] for part in parts])

    def plan(self, parts: list[Chunk], *, is_last: bool) -> int:  # noqa: ARG002  # no sequence is carried over
        if not parts:
            return 0
        if any(part.structure != parts[0].structure for part in parts):
            raise SpecError(f"{self.node}: all elements of a window must have the same structure")
        joined = Chunk.concatenate(parts)
        lengths, *columns = joined.columns()
        assert isinstance(lengths, np.ndarray)
        self._elements = Chunk(parts[0].structure.children[1], joined.length, columns, lineage=joined.lineage)
        node = self.node
        batches = node.batches_of(lengths)
        if node.shuffle:
            steps = [batches[start : start + node.processes] for start in range(0, len(batches), node.processes)]
            last = steps.pop() if len(steps[-1]) < node.processes else []
            order = self.permutation(len(steps)).tolist()
            batches = [batch for step in order for batch in _rotated(steps[step], step)] + last
        self._batches = [np.sort(batch) for batch in batches]
        return len(batches)

    def make(self, start: int, stop: int) -> Chunk:
        return Chunk.concatenate([self._batch(self._elements.take(batch)) for batch in self._batches[start:stop]])

    def _batch(self, elements: Chunk) -> Chunk:
        if self.node.layout == "ragged":
            return self._ragged.stacked(elements)
        columns = elements.columns()
        features = TokenFeatures.of(elements.structure, [rank_of(column) for column in columns], None)
        stack = self._padded if self.node.layout == "padded" else self._joined
        batched: list[Column] = []
        for index, column in enumerate(columns):
            try:
                batched.append([stack(features, index, column) if index in features.tokens else stack_column(column)])
            except ColumnMismatchError as error:
                raise SpecError(
                    f"{self.node}: {features.name(index)} has {error.what} {error.got} in one element of a batch and "
                    f"{error.before} in another; all elements of a batch must have the same {error.what}"
                ) from None
        structure = elements.structure
        if self.node.layout == "packed":
            lengths = lengths_of(columns[features.key])
            starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            positions = np.arange(starts[-1], dtype=np.int32) - np.repeat(starts[:-1], lengths)
            added: dict[str, Column] = {"cu_seqlens": [starts], "positions": [positions]}
            try:
                structure, batched = with_entries(self.node.op, structure, batched, added)
            except ValueError as error:
                raise SpecError(str(error)) from None
        lineage = None if elements.lineage is None else [joined(elements.lineage)]
        return Chunk(structure, 1, batched, lineage=lineage)

    def _padded(self, features: TokenFeatures, index: int, column: Column) -> Any:
        first = column[0]
        room = self.node.padded_length(int(lengths_of(column).max())) if self._is_padded(index) else None
        dtype = BYTES if first.dtype.hasobject else first.dtype
        return pad_column(column, (room, *[None] * (first.ndim - 1)), self.node.padding(features, index, dtype))

    def _is_padded(self, index: int) -> bool:
        """Whether ``pad_to`` applies to a component: not if all elements are known to have one length."""
        if not spec_is_static(self.node.source):
            return True
        shape = flatten_spec(self.node.source.element_spec)[1][index].shape
        return shape is None or shape[0] is None

    def _joined(self, features: TokenFeatures, index: int, column: Column) -> Any:  # noqa: ARG002  # as _padded
        return np.concatenate(self.values_of(index, [column]))

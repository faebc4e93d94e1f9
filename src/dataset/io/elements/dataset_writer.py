"""Writer of elements: groups the elements of chunks into records of the right size, separately for each shard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dataset.errors import SpecError
from dataset.io.elements.codec import RECORD_BYTES, RECORD_ELEMENTS, column_kind, encode
from dataset.io.elements.dataset_shards import ShardNumbers
from dataset.io.elements.decoding import decode
from dataset.io.elements.metadata import Metadata
from dataset.io.elements.write_session import RunWriter
from dataset.ops.cache.caching import RefusedElementError
from dataset.plan.skeleton import skeleton_of, spec_from_plain, spec_to_plain
from dataset.plan.spec import BYTES, ComponentSpec, TensorSpec, flatten_spec
from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Chunk

_WAITING_BYTES_MAX = 1 << 26  # total of all shards; beyond it, small records are written, too


class _Waiting:
    """Buffer of elements of one shard that do not fill a record yet."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.length = 0
        self.nbytes = 0

    def add(self, chunk: Chunk, nbytes: int) -> None:
        self.chunks.append(chunk)
        self.length += chunk.length
        self.nbytes += nbytes

    @property
    def is_full(self) -> bool:
        """Return whether another element of that size would not fit into the record."""
        return self.nbytes * (self.length + 1) > RECORD_BYTES * self.length or self.length >= RECORD_ELEMENTS


class ElementsWriter:
    """Writer of one run of elements.

    Args:
        run: the run to write to; not shared.
        shards: returns the shard numbers of elements; None for a single shard.
    """

    def __init__(self, run: RunWriter, shards: ShardNumbers | None = None) -> None:
        self.run = run
        self._shards = shards
        self._structure: Structure | None = None
        self._kinds: list[tuple[Any, ...]] = []
        self._components: list[ComponentSpec] | None = None
        self._skeleton: Any = None  # the skeleton of the elements written by an earlier process
        self._waiting: dict[int, _Waiting] = {}
        self._waiting_bytes = 0
        self.count = 0  # accepted elements
        self.refused = 0

    def add(self, chunk: Chunk) -> None:
        """Add elements. Their arrays must not be modified afterwards.

        Raises:
            RefusedElementError: an element cannot be written; those before it were added.
            OSError: writing failed.
        """
        try:
            self._add(chunk)
        except RefusedElementError:
            self.refused += 1
            raise

    def _add(self, chunk: Chunk) -> None:
        if not self._fits(chunk):
            for index in range(chunk.length if chunk.length > 1 else 0):
                if not self._fits(chunk.slice(index, index + 1)):
                    self._add_fitting(chunk.slice(0, index), index)
                    chunk = chunk.slice(index, index + 1)
                    raise RefusedElementError(index, self._refusal(chunk))
            if chunk.length == 1:
                raise RefusedElementError(0, self._refusal(chunk))
            for index in range(chunk.length):  # each fits alone but not all together, such as scalars and vectors
                self._add_fitting(chunk.slice(index, index + 1), index)
            return
        self._add_fitting(chunk, 0)

    def _fits(self, chunk: Chunk) -> bool:
        """Return whether all elements can be written and match the earlier ones. The first elements define the kind."""
        try:
            kinds = [column_kind(column) for column in chunk.columns()]
        except TypeError:
            return False
        if None in kinds:
            return False
        if self._structure is None:
            self._structure, self._kinds = chunk.structure, kinds  # type: ignore[assignment]  # just tested
            return True
        same = chunk.structure is self._structure or chunk.structure == self._structure
        return same and kinds == self._kinds

    def _refusal(self, chunk: Chunk) -> Exception:
        """Return the reason why one element cannot be written."""
        for index, column in enumerate(chunk.columns()):
            try:
                column_kind(column)
            except TypeError as error:
                return TypeError(f"{chunk.structure.component_name(index)}: {error}")
        assert self._structure is not None
        if chunk.structure != self._structure:
            return SpecError(
                f"all elements that are written must have the same structure, got {chunk.structure!r} after "
                f"{self._structure!r}"
            )
        for index, (column, kind) in enumerate(zip(chunk.columns(), self._kinds, strict=True)):
            if column_kind(column) != kind:
                name = chunk.structure.component_name(index)
                return SpecError(
                    f"all elements that are written must have the same kind and dtype, got "
                    f"{_shown(column_kind(column))} for {name} after {_shown(kind)}; convert it in map()"
                )
        raise AssertionError("an element that fits")

    def _add_fitting(self, chunk: Chunk, before: int) -> None:
        """Add elements that can be written; ``before`` elements of their chunk precede them."""
        if not chunk.length:
            return
        numbers: Sequence[int] = [0]
        if self._shards is not None:
            try:
                numbers = self._shards(chunk, self.count)
            except RefusedElementError as refused:
                if refused.index:
                    self._add_fitting(chunk.slice(0, refused.index), before)
                raise RefusedElementError(before + refused.index, refused.error) from None
        self.count += chunk.length
        if len(set(numbers)) == 1:
            self._put(numbers[0], chunk)
            return
        found = np.array(numbers, object) if max(numbers) >= 2**63 else np.array(numbers, np.int64)
        for number in dict.fromkeys(numbers):
            self._put(number, chunk.take(np.flatnonzero(found == number)))

    def _put(self, number: int, chunk: Chunk) -> None:
        waiting = self._waiting.get(number)
        if waiting is None:
            waiting = self._waiting[number] = _Waiting()
        nbytes = chunk.nbytes
        waiting.add(chunk, nbytes)
        self._waiting_bytes += nbytes
        if waiting.is_full:
            self._write(number, waiting, everything=False)
        elif self._waiting_bytes > _WAITING_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Write all buffered elements."""
        for number, waiting in self._waiting.items():
            if waiting.chunks:
                self._write(number, waiting, everything=True)

    def _write(self, number: int, waiting: _Waiting, *, everything: bool) -> None:
        """Write the full records, or all."""
        chunk = Chunk.concatenate(waiting.chunks)
        self._waiting_bytes -= waiting.nbytes
        per_record = max(1, min(RECORD_ELEMENTS, RECORD_BYTES * chunk.length // max(waiting.nbytes, 1)))
        start = 0
        while start + (1 if everything else per_record) <= chunk.length:
            stop = min(start + per_record, chunk.length)
            self._write_record(number, chunk.slice(start, stop))
            start = stop
        rest_bytes = waiting.nbytes * (chunk.length - start) // chunk.length
        self._waiting[number] = rest = _Waiting()
        if start < chunk.length:
            rest.add(chunk.slice(start, chunk.length), rest_bytes)
            self._waiting_bytes += rest_bytes

    def _write_record(self, number: int, chunk: Chunk) -> None:
        columns = chunk.columns()
        record = encode(columns, chunk.length, self.run.next_record(number))
        self.run.write(number, record, chunk.length)
        if all(isinstance(column, np.ndarray) for column in columns):
            self._generalize([TensorSpec(c.shape[1:], BYTES if c.dtype == object else c.dtype) for c in columns])  # type: ignore[union-attr]  # just tested
        else:
            self._generalize(decode(record, len(columns))[1])

    def _generalize(self, found: Sequence[ComponentSpec]) -> None:
        if self._components is None:
            self._components = list(found)
        elif self._components != list(found):
            pairs = zip(self._components, found, strict=True)
            joined = [mine.most_general_with(other) for mine, other in pairs]
            if None in joined:  # only possible if an interrupted save continues
                raise SpecError(f"elements have {found!r}, but those written before have {self._components!r}")
            self._components = [spec for spec in joined if spec is not None]

    def finish(
        self, spec: Any, about: dict[str, Any], *, may_replace: Callable[[], bool] = lambda: True
    ) -> Metadata | None:
        """Write the buffered elements, and make the run the content of its directory.

        Args:
            spec: the spec of the elements if it is known statically; otherwise None.
            about: plain data for the metadata.
            may_replace: see RunWriter.finish.
        """
        self.flush()
        skeleton, components = self._found_skeleton(), self._components
        if spec is not None:
            structure, declared = flatten_spec(spec)
            skeleton, components = skeleton_of(structure), list(declared)
        found = None if components is None else tuple(components)
        return self.run.finish(skeleton, found, about, may_replace=may_replace)

    def _found_skeleton(self) -> Any:
        return self._skeleton if self._structure is None else skeleton_of(self._structure)

    def place(self) -> dict[str, Any]:
        """Write the buffered elements; return plain data from which ``go_to`` continues."""
        self.flush()
        components = None if self._components is None else [spec_to_plain(spec) for spec in self._components]
        return {
            "run": self.run.place(),
            "count": self.count,
            "structure": self._found_skeleton(),
            "components": components,
        }

    def go_to(self, place: dict[str, Any]) -> None:
        """Continue after ``place``; the run has been opened there."""
        self.count = int(place["count"])
        self._skeleton = place["structure"]
        if place["components"] is not None:
            self._components = list(map(spec_from_plain, place["components"]))

    def discard(self) -> None:
        """Remove the run."""
        self._waiting = {}
        self.run.discard()


def _shown(kind: tuple[Any, ...] | None) -> str:
    """Return a kind of codec.column_kind as text: ``int64``, ``ragged float32``."""
    words = [] if kind is None else [part for part in kind if isinstance(part, tuple | np.dtype | str)]
    shown = [_shown(part) if isinstance(part, tuple) else "bytes" if part == BYTES else str(part) for part in words]
    return " ".join(shown[1:] if words and words[0] == "tensor" else shown)

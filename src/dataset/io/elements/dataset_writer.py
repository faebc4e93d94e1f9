"""Writer of elements: groups the elements of chunks into records of the right size, separately for each shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dataset.amounts import HELD_BYTES
from dataset.errors import SpecError
from dataset.io.elements.codec import RECORD_BYTES, RECORD_ELEMENTS, column_kind, encode
from dataset.io.elements.dataset_shards import ShardNumbers
from dataset.io.elements.decoding import decode
from dataset.io.elements.write_session import RunWriter
from dataset.ops.cache.caching import RefusedElementError
from dataset.plan.node import Node, spec_is_static
from dataset.plan.skeleton import skeleton_of, spec_from_plain, spec_to_plain
from dataset.plan.spec import BYTES, ComponentSpec, TensorSpec, flatten_spec
from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Chunk


@dataclass
class _Waiting:
    """Buffer of elements of one shard that do not fill a record yet."""

    chunks: list[Chunk] = field(default_factory=list)
    length: int = 0
    nbytes: int = 0


class ElementsWriter:
    """Writer of one run of elements.

    Args:
        run: the run to write to; not shared.
        spec: the spec of the elements if it is known statically; otherwise None.
        shards: returns the shard numbers of elements; None for a single shard.
        place: the result of ``place`` in an earlier process, if ``run`` continues its run.
    """

    def __init__(
        self, run: RunWriter, spec: Any, shards: ShardNumbers | None = None, place: dict[str, Any] | None = None
    ) -> None:
        self.run = run
        self._spec = spec
        self._shards = shards
        self._structure: Structure | None = None
        self._kinds: list[Any] = []
        self._components: list[ComponentSpec] | None = None
        self._skeleton: Any = None
        self._waiting: dict[int, _Waiting] = {}
        self._waiting_bytes = 0
        self.count = 0  # accepted elements
        self.refused = 0
        if place is not None:
            self.count, self._skeleton = int(place["count"]), place["structure"]
            if place["components"] is not None:
                self._components = list(map(spec_from_plain, place["components"]))

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
        if self._refusal(chunk) is None:
            self._add_fitting(chunk, 0)
            return
        for index in range(chunk.length):  # each may fit alone but not all together, such as scalars and vectors
            one = chunk.slice(index, index + 1)
            if (refusal := self._refusal(one)) is not None:
                raise RefusedElementError(index, refusal)
            self._add_fitting(one, index)

    def _refusal(self, chunk: Chunk) -> Exception | None:
        """Return why the elements cannot be written together; None if they can. The first ones define the kinds."""
        names, kinds = chunk.structure.component_name, []
        for index, column in enumerate(chunk.columns()):
            try:
                kinds.append(column_kind(column))
            except TypeError as error:
                return TypeError(f"{names(index)}: {error}")
        if self._structure is None and None not in kinds:
            self._structure, self._kinds, self._skeleton = chunk.structure, kinds, skeleton_of(chunk.structure)
        if chunk.structure is not self._structure and chunk.structure != self._structure:
            return SpecError(
                f"all elements that are written must have the same structure, got {chunk.structure!r} after "
                f"{self._structure!r}"
            )
        for index, (found, kind) in enumerate(zip(kinds, self._kinds, strict=True)):
            if found != kind:
                return SpecError(
                    f"all elements that are written must have the same kind and dtype, got {_shown(found)} for "
                    f"{names(index)} after {_shown(kind)}; convert it in map()"
                )
        return None

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
        waiting = self._waiting.setdefault(number, _Waiting())
        nbytes = chunk.nbytes
        waiting.chunks.append(chunk)
        waiting.length += chunk.length
        waiting.nbytes += nbytes
        self._waiting_bytes += nbytes
        if waiting.nbytes * (waiting.length + 1) > RECORD_BYTES * waiting.length or waiting.length >= RECORD_ELEMENTS:
            self._write(number)  # another element of that size would not fit
        elif self._waiting_bytes > HELD_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Write all buffered elements."""
        for number in list(self._waiting):
            self._write(number)

    def _write(self, number: int) -> None:
        """Write the buffered elements of a shard, in records of about the same size."""
        waiting = self._waiting.pop(number)
        chunk = Chunk.concatenate(waiting.chunks)
        self._waiting_bytes -= waiting.nbytes
        per_record = max(1, min(RECORD_ELEMENTS, RECORD_BYTES * chunk.length // max(waiting.nbytes, 1)))
        records = -(-chunk.length // per_record)
        for record in range(records):
            start, stop = (chunk.length * place // records for place in (record, record + 1))
            self._write_record(number, chunk.slice(start, stop))

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

    def publish(self, about: dict[str, Any], *, replace: bool = True) -> None:
        """Write the buffered elements, and make the run the content of its directory.

        Args:
            about: plain data for the metadata.
            replace: see RunWriter.publish.
        """
        self._flush()
        skeleton, components = self._skeleton, self._components
        if self._spec is not None:
            structure, declared = flatten_spec(self._spec)
            skeleton, components = skeleton_of(structure), list(declared)
        self.run.publish(skeleton, None if components is None else tuple(components), about, replace=replace)

    def place(self) -> dict[str, Any]:
        """Write the buffered elements; return plain data from which a later process continues."""
        self._flush()
        components = None if self._components is None else [spec_to_plain(spec) for spec in self._components]
        return {**self.run.place(), "count": self.count, "structure": self._skeleton, "components": components}

    def discard(self) -> None:
        """Remove the run, unless it was published."""
        self._waiting = {}
        self.run.discard()


def _shown(kind: tuple[Any, ...] | None) -> str:
    """Return a kind of codec.column_kind as text: ``int64``, ``ragged float32``."""
    words = [] if kind is None else [part for part in kind if isinstance(part, tuple | np.dtype | str)]
    shown = [_shown(part) if isinstance(part, tuple) else "bytes" if part == BYTES else str(part) for part in words]
    return " ".join(shown[1:] if words and words[0] == "tensor" else shown)


def static_spec(op: str, plan: Node) -> Any:
    """Return the spec of a plan if it is known without running user code, else None.

    Raises:
        TypeError: elements of this spec cannot be written.
    """
    if not spec_is_static(plan):
        return None
    structure, components = flatten_spec(plan.element_spec)
    for index, component in enumerate(components):
        try:
            spec_to_plain(component)
        except TypeError as error:
            raise TypeError(f"{op}(): {structure.component_name(index)}: {error}") from None
    return plan.element_spec

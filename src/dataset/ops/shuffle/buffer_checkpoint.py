"""Checkpoint of a shuffle buffer: elements are saved by reference to a file and position if possible, else by value.

A saved reference consists of a file, a mark in it, and the number of elements after the mark. The file is identified by
its path and by the node that reads it, which is identified by its index among the file-reading nodes of the plan. If
the node is in a dataset that a function returned, the function is called again with its saved argument. Nested datasets
need several such calls.

Names in a state are only compared. A file is opened by the name that the input of its node yields, and a function is
called with an argument that its node's input yields, if the argument contains text (own_elements.py).

Loading opens each file once and reads the required elements from mark to mark before ``load_state_dict`` returns. A
missing or modified file is therefore detected there, not later between elements. The state contains digests of some
elements, because not every format detects reading at a wrong position.
"""

from __future__ import annotations

import bisect
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.amounts import ENDLESS, FAILURES_MAX, STEP_ELEMENTS
from dataset.errors import StateError
from dataset.plan.nested import is_dataset
from dataset.plan.node import Node, inputs_first, walk
from dataset.plan.structure import structure_of
from dataset.redaction import redacted
from dataset.runtime.chunks.chunk import Chunk, Outcome, references_of
from dataset.runtime.chunks.file_trace import FileTrace, Mark, Opening, OpensDatasets, ReadsFiles, RereadFile
from dataset.runtime.chunks.lineage import load_lineage, save_lineage
from dataset.runtime.chunks.provenance import ELEMENT_BITS, ELEMENTS_MAX, NOWHERE, Numbers, References
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.state.own_elements import REMEDY, OwnElements, key_of, name_of, names_in, saved_key
from dataset.runtime.state.saved_chunks import digest, load_chunk, load_error, save_chunk, save_error, save_value

_BY_VALUE_MAX = 256  # elements; up to this many by value, the state is still small
_DIGESTS_MAX = 16

Array = npt.NDArray[Any]


class BufferCheckpoint:
    """Checkpoint of the elements that an op holds. Must be created before the input is opened.

    Args:
        context: the execution context that opens the input. Sets its ``provenance`` if elements may have references.
        source: the input.
    """

    def __init__(self, context: ExecutionContext, source: Node) -> None:
        self.source = source
        self._context = context
        self._by_value = 0  # arrived elements without references
        self.may_refer = any(isinstance(node, ReadsFiles | OpensDatasets) for node in walk(source))
        """Whether elements may have references; whether they do is known when they arrive."""
        if self.may_refer:
            context.provenance = context.provenance or ()
        self._depth = len(context.provenance or ())

    def arrive(self, chunk: Chunk) -> None:
        """Record elements that will be held: many elements without references are expensive to save."""
        if chunk.references is None and self.may_refer and self._by_value <= _BY_VALUE_MAX:
            self._by_value += chunk.length
            if self._by_value > _BY_VALUE_MAX:
                self._context.mark_not_replayable(repeats=True)

    def save(self, parts: Sequence[Outcome | None]) -> dict[str, Any]:
        """Return chunks of elements of one structure, and exceptions, as plain data."""
        chunks = [part for part in parts if isinstance(part, Chunk)]
        references = references_of(chunks)
        if references is None:
            return {"parts": [_by_value(part) for part in parts], "files": None}
        writer = _Writer(self.source, self._depth)
        known = writer.write(references, chunks)
        saved, at = [], 0
        for part in parts:
            if isinstance(part, Chunk):
                saved.append(_referring(part, known[at : at + part.length]))
                at += part.length
            else:
                saved.append(_by_value(part))
        return {"parts": saved, "files": writer.state}

    def load(self, state: dict[str, Any]) -> list[Outcome | None]:
        """Load what ``save`` returned.

        Raises:
            StateError: if ``state`` is invalid, or elements cannot be read again.
        """
        try:
            parts, files = list(state["parts"]), state["files"]
            counts = [_count_referred(part) for part in parts]
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the saved elements are damaged: {error!r}") from error
        found = None if files is None else self._read_again(files, sum(counts))
        if found is None and any(counts):
            raise StateError("the saved elements refer to files that the state does not contain")
        loaded, at = [], 0
        for part, count in zip(parts, counts, strict=True):
            loaded.append(self._loaded(part, found.slice(at, at + count) if found is not None and count else None))
            at += count
        return loaded

    def _loaded(self, part: Any, found: Chunk | None) -> Outcome | None:
        if part is None:
            return None
        if "error" in part:
            return load_error(part)
        if found is None:
            return load_chunk(part, self._spec)
        loaded = self._with_others(part, found)
        if "lineage" in part:
            loaded.lineage = load_lineage(part["lineage"], loaded.length)
        return loaded

    def _with_others(self, part: Any, found: Chunk) -> Chunk:
        others = load_chunk(part["others"], self._spec)
        if others is None:
            return found
        if others.structure != found.structure:
            raise StateError(f"the saved elements differ in structure: {others.structure!r} and {found.structure!r}")
        known = np.unpackbits(part["mask"], count=found.length + others.length).astype(np.bool_)
        order = np.argsort(np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)]))
        return Chunk.concatenate([found, others]).take(order)

    def _spec(self) -> Any:
        return self.source.element_spec

    def _read_again(self, files: Any, count: int) -> Chunk | None:
        try:
            reader = _CheckpointReader(files, self._context, self.source, count)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise StateError(f"the saved references to files are damaged: {error!r}") from error
        reader.close()
        return reader.read()


def _by_value(part: Outcome | None) -> Any:
    return save_error(part) if isinstance(part, BaseException) else save_chunk(part)


def _referring(chunk: Chunk, known: npt.NDArray[np.bool_]) -> Any:
    """Return the saved form of a chunk whose ``known`` elements are saved by reference, and the others by value."""
    others = np.flatnonzero(~known)
    if len(others) == chunk.length:
        return save_chunk(chunk)
    lineage = {} if chunk.lineage is None else {"lineage": save_lineage(chunk.lineage)}
    if not len(others):
        return {"referred": chunk.length, "others": None, **lineage}
    found = chunk.length - len(others)
    return {"referred": found, "mask": np.packbits(known), "others": save_chunk(chunk.take(others)), **lineage}


def _count_referred(part: Any) -> int:
    """Return how many elements of a saved part are saved by reference."""
    if part is None or "referred" not in part:
        return 0
    count, others = part["referred"], part["others"]
    if type(count) is not int or count < 1:
        raise ValueError(f"invalid number of elements: {count!r}")
    if others is not None:
        length, mask = count + others["length"], part["mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.uint8 or mask.shape != (-(-length // 8),):
            raise ValueError(f"invalid mask for {length} elements: {mask!r:.100}")
        if int(np.unpackbits(mask, count=length).sum()) != count:
            raise ValueError(f"the mask does not select {count} elements")
    return count


# Nodes of a plan by index. No optimizer rule reorders the nodes that read files.


def _nodes_of(kind: type[Any], plan: Node) -> list[Node]:
    return [node for node in walk(plan) if isinstance(node, kind)]


def _index(nodes: Sequence[Node], wanted: Node) -> int | None:
    return next((index for index, node in enumerate(nodes) if node is wanted), None)


def _repeated_input(plan: Node, node: Node) -> Node:
    """Return the input of a node of the plan, repeated as often as the plan runs the node."""
    found = {node: node.inputs[0]}
    for part in inputs_first(plan):
        below = next((found[source] for source in part.inputs if source in found), None)
        if below is not None:
            found[part] = below if part.traits.passes == 1 else part.with_inputs([below])
    return found[plan]


class _Writer:
    """Writer of references to elements of the plan ``root``, nested ``depth`` datasets deep, as plain data."""

    def __init__(self, root: Node, depth: int) -> None:
        self._root = root
        self._depth = depth
        self._openings: list[Any] = []
        self._opening_numbers: dict[int, int | None] = {}
        self._numbers: dict[tuple[type[Any], int], list[Node]] = {}
        self._files: list[Any] = []
        self._marks: list[Array] = []  # one matrix per file, with one row per mark
        self.state: dict[str, Any] | None = None

    def write(self, references: References, chunks: Sequence[Chunk]) -> npt.NDArray[np.bool_]:
        """Set ``state``, and return which elements it refers to. All elements of ``chunks`` have ``references``."""
        numbers = references.numbers
        order = np.argsort(numbers)
        in_order = numbers[order]
        owners = in_order >> ELEMENT_BITS
        starts = np.flatnonzero(np.diff(owners, prepend=NOWHERE - 1))
        file = np.full(len(numbers), NOWHERE, np.int64)
        element = np.zeros(len(numbers), np.int64)
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(numbers)], strict=True):
            trace = references.files.get(int(owners[start]))
            entry = None if trace is None else self._entry(trace)
            if trace is None or entry is None:
                continue
            at = order[start:stop]
            file[at] = len(self._files)
            self._files.append(entry)
            element[at] = self._mark(trace, in_order[start:stop] & (ELEMENTS_MAX - 1))
        known: npt.NDArray[np.bool_] = file >= 0
        if known.any():
            self.state = self._state(file, element, known, order, chunks)
        return known

    def _entry(self, trace: FileTrace) -> Any:
        """Return the identification of the file; None if it cannot be identified."""
        opening: int | None = NOWHERE
        plan = self._root
        for part in trace.provenance[self._depth :]:
            opening = self._opening(plan, part, opening)
            if opening is None:
                return None
            plan = part.plan
        index = _index(self._nodes(ReadsFiles, plan), trace.node)
        return None if index is None else [opening, index, redacted(trace.path)]

    def _opening(self, plan: Node, part: Opening, parent: int | None) -> int | None:
        if id(part) not in self._opening_numbers:
            number = None
            index = _index(self._nodes(OpensDatasets, plan), part.node)
            holds_dataset = any(is_dataset(column[0]) for column in part.argument.columns() if isinstance(column, list))
            if index is not None and not holds_dataset:
                number = len(self._openings)
                names = names_in(part.argument)
                saved = save_chunk(part.argument) if names is None else {"names": names}
                self._openings.append([parent, index, saved])
            self._opening_numbers[id(part)] = number
        return self._opening_numbers[id(part)]

    def _nodes(self, kind: type[Any], plan: Node) -> list[Node]:
        key = (kind, id(plan))
        if key not in self._numbers:
            self._numbers[key] = _nodes_of(kind, plan)
        return self._numbers[key]

    def _mark(self, trace: FileTrace, elements: Numbers) -> Numbers:
        """Keep the marks needed to find ``elements``, which ascend. Return the elements counted from the first mark."""
        marks = np.array(list(trace.marks), np.int64)
        before = np.searchsorted(marks[:, 0].copy(), elements, "right") - 1
        needed = before[np.flatnonzero(np.diff(before, prepend=NOWHERE))]  # each mark once, since elements ascend
        base = marks[needed[0], 0]
        chosen = marks[needed]
        chosen[:, 0] -= base
        self._marks.append(np.column_stack([np.full(len(needed), len(self._files) - 1), chosen]))
        counted: Numbers = elements - base
        return counted

    def _state(
        self,
        file: Numbers,
        element: Numbers,
        known: npt.NDArray[np.bool_],
        order: npt.NDArray[np.intp],
        chunks: Sequence[Chunk],
    ) -> dict[str, Any]:
        marks = np.concatenate(self._marks)
        places = np.cumsum(known) - 1  # index among the known elements
        sampled = order[known[order]]
        sampled = sampled[np.linspace(0, len(sampled) - 1, min(_DIGESTS_MAX, len(sampled))).astype(np.intp)]
        return {
            "openings": self._openings,
            "paths": self._files,
            "marks": dict(zip(("file", "element", "offset", "number"), map(_small, marks.T), strict=True)),
            "file": _small(file[known]),
            "element": _small(element[known]),
            "digests": [[int(places[at]), _digest_at(chunks, int(at))] for at in sampled],
        }


def _small(values: Numbers) -> Array:
    """Return non-negative numbers in the smallest dtype that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _digest_at(chunks: Sequence[Chunk], at: int) -> str:
    for chunk in chunks:
        if at < chunk.length:
            return _digest(chunk, at)
        at -= chunk.length
    raise IndexError(at)


def _digest(chunk: Chunk, index: int) -> str:
    """Return the digest of one element, independent of the form of the chunk."""
    return digest([save_value(column[0]) for column in chunk.slice(index, index + 1).columns()])


class _CheckpointReader:
    """Reader of the elements of saved references. It raises an error for any invalid reference.

    Args:
        state: the saved references.
        context: the execution context of the op.
        root: the input of the op.
        count: the expected number of references.
    """

    def __init__(self, state: Any, context: ExecutionContext, root: Node, count: int) -> None:
        self._context = context
        self._own: dict[Node, OwnElements] = {}  # by the node that reads the elements
        self._openings: list[tuple[tuple[Opening, ...], Node]] = []
        for parent, index, argument in state["openings"]:
            self._open(*self._within(parent, context, root), index, argument)
        self._file = _integers(state["file"], "file")
        self._element = _integers(state["element"], "element")
        if not len(self._file) == len(self._element) == count:
            raise ValueError(f"{len(self._file)} files and {len(self._element)} positions for {count} elements")
        self._digests = {int(at): str(text) for at, text in state["digests"]}
        columns = [_integers(state["marks"][key], key) for key in ("file", "element", "offset", "number")]
        marks = np.column_stack(columns)
        if (np.diff(marks[:, 0]) < 0).any():
            raise ValueError("the marks are not sorted")
        self._traces = []
        for number, (opening, index, path) in enumerate(state["paths"]):
            start, stop = np.searchsorted(marks[:, 0], [number, number + 1]).tolist()
            mine = [Mark(*row) for row in marks[start:stop, 1:].tolist()]
            if not mine or any(later.element <= mark.element for mark, later in itertools.pairwise(mine)):
                raise ValueError(f"the marks of file {number} are not sorted")
            within, plan = self._within(opening, context, root)
            node = _numbered(_nodes_of(ReadsFiles, plan), index)
            self._traces.append(FileTrace(within, node, self._own_path(plan, node, path), mine))
        if count and (int(self._file.max()) >= len(self._traces) or int(self._element.max()) >= ELEMENTS_MAX):
            raise ValueError("a position is out of range")

    def _within(self, opening: Any, context: ExecutionContext, root: Node) -> tuple[tuple[Opening, ...], Node]:
        if opening == NOWHERE:
            return context.provenance or (), root
        if type(opening) is not int or opening < 0:
            raise ValueError(f"invalid dataset index: {opening!r}")
        return self._openings[opening]

    def _open(self, within: tuple[Opening, ...], plan: Node, index: Any, saved: Any) -> None:
        """Call a function again to recreate its dataset."""
        node = _numbered(_nodes_of(OpensDatasets, plan), index)
        assert isinstance(node, OpensDatasets)
        argument = self._own_argument(plan, node, saved)
        if argument is None or argument.length != 1:
            raise ValueError(f"expected one argument for {node.op}, got {argument!r}")
        (values,) = zip(*argument.arguments(), strict=True)
        made = node.function(*values)
        if not is_dataset(made):
            raise StateError(f"{node}: the function returned {made!r}, but returned a dataset when the state was saved")
        self._openings.append(((*within, Opening(node, argument, made.plan)), made.plan))

    def _own_path(self, plan: Node, node: Node, path: Any) -> str:
        """Return the name of a file as the input of ``node`` yields it."""
        name = name_of(path, self._context)
        found = self._elements(plan, node, _path_of).get(name)
        if found is None:
            raise StateError(
                f"{node}: the state refers to elements of {name!r:.500}, which is not among the files of "
                f"the input; {REMEDY}"
            )
        return _text(found)

    def _own_argument(self, plan: Node, node: Node, saved: Any) -> Chunk | None:
        """Return the argument of the function of ``node``: an element of its input if it may name a file."""
        if type(saved) is not dict or "names" not in saved:
            argument = load_chunk(saved, lambda: node.inputs[0].element_spec)
            if argument is not None and names_in(argument) is not None:
                raise StateError("the state is damaged: it holds an argument that may name a file by value")
            return argument
        found = self._elements(plan, node, key_of).get(saved_key(saved["names"], self._context))
        if found is None:
            raise StateError(
                f"{node}: the state refers to elements of the dataset of {saved['names']!r:.500}, which the "
                f"input does not contain; {REMEDY}"
            )
        return found

    def _elements(self, plan: Node, node: Node, key: Callable[[Chunk], Any]) -> OwnElements:
        if node not in self._own:
            self._own[node] = OwnElements(self._context, _repeated_input(plan, node), key)
        return self._own[node]

    def close(self) -> None:
        """Close the inputs in which names were looked up."""
        for own in self._own.values():
            own.close()

    def read(self) -> Chunk | None:
        """Return all elements, in the order of the references."""
        if not len(self._file):
            return None
        wanted, order = np.unique((self._file << ELEMENT_BITS) | self._element, return_inverse=True)
        owners = wanted >> ELEMENT_BITS
        starts = np.flatnonzero(np.diff(owners, prepend=NOWHERE)).tolist()
        found = []
        for start, stop in zip(starts, [*starts[1:], len(wanted)], strict=True):
            trace = self._traces[int(owners[start])]
            found += _reread(trace, wanted[start:stop] & (ELEMENTS_MAX - 1), self._context)
        if any(chunk.structure != found[0].structure for chunk in found):
            raise StateError("the saved references refer to elements of different structures")
        chunk = Chunk.concatenate(found).take(order.reshape(-1))
        self._verify(chunk)
        return chunk

    def _verify(self, chunk: Chunk) -> None:
        for at, text in self._digests.items():
            if not 0 <= at < chunk.length:
                raise StateError(f"the saved references have a digest for element {at}, out of {chunk.length}")
            if _digest(chunk, at) != text:
                trace = self._traces[int(self._file[at])]
                raise _lost(trace, int(self._element[at]), "a different element is there now")


def _text(name: Chunk) -> str:
    """Return a chunk of one file name as text."""
    return os.fsdecode(name.rows()[0])


def _path_of(name: Chunk) -> str | None:
    return redacted(_text(name)) if isinstance(name.rows()[0], bytes) else None


def _integers(values: Any, name: str) -> Numbers:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or values.ndim != 1:
        raise TypeError(f"{name} must be integers, got {values!r:.100}")
    if len(values) and not 0 <= int(values.min()) <= int(values.max()) < ENDLESS:
        raise ValueError(f"{name} is out of range: {values!r:.100}")
    return values.astype(np.int64)


def _numbered(nodes: list[Node], index: Any) -> Node:
    if type(index) is not int or not 0 <= index < len(nodes):
        raise ValueError(f"node index {index!r} is out of range: the plan has {len(nodes)} such nodes")
    return nodes[index]


def _lost(trace: FileTrace, element: int, words: str) -> StateError:
    mark = _mark_before(trace, element)
    return StateError(
        f"{trace.node}: the state refers to element {element - mark.element} after byte or group "
        f"{mark.offset} of {redacted(trace.path)}, which cannot be read again: {words}. Restore the file as it "
        "was when the state was saved, or continue without this state"
    )


def _mark_before(trace: FileTrace, element: int) -> Mark:
    return trace.marks[max(0, bisect.bisect_right(trace.marks, element, key=lambda mark: mark.element) - 1)]


def _reread(trace: FileTrace, wanted: Numbers, context: ExecutionContext) -> list[Chunk]:
    """Read the elements of one file with these numbers, which ascend."""
    node = trace.node
    assert isinstance(node, ReadsFiles)
    lineage = source_lineage(context, node, redacted(trace.path)) if node.counts_elements else None
    if int(wanted[0]) < trace.marks[0].element:
        raise StateError("the saved references refer to elements before the first mark")
    structure = structure_of(node.element_spec)
    found = []
    element = int(wanted[0])
    file: RereadFile | None = None
    try:
        file = node.open_file(trace.path)
        for mark, part in _stretches(trace, wanted, node.read_on_max):
            file.seek(mark.offset, mark.number)
            at, last = mark.element, int(part[-1])
            while at <= last:
                element = int(part[np.searchsorted(part, at)])
                columns = _columns(file, min(last + 1 - at, STEP_ELEMENTS))
                length = len(columns[0])
                start, stop = np.searchsorted(part, [at, at + length])
                if stop > start:
                    chunk = Chunk(structure, length, columns).take(part[start:stop] - at)
                    chunk.references = trace.references(part[start:stop])
                    if lineage is not None:
                        chunk.lineage = lineage.of(node.numbers_of(file, length)[part[start:stop] - at])
                    found.append(chunk)
                at += length
    except Exception as error:
        raise _lost(trace, element, f"{type(error).__name__}: {error}") from error
    finally:
        if file is not None:
            file.close()
    return found


def _stretches(trace: FileTrace, wanted: Numbers, read_on_max: int) -> Iterator[tuple[Mark, Numbers]]:
    """Yield the marks to seek to, each with the elements to read from there."""
    elements = np.array([mark.element for mark in trace.marks], np.int64)
    before = np.searchsorted(elements, wanted, "right") - 1
    offsets = np.array([mark.offset for mark in trace.marks], np.int64)[before]
    starts = [0, *(np.flatnonzero(np.diff(offsets) > read_on_max) + 1).tolist(), len(wanted)]
    for start, stop in itertools.pairwise(starts):
        yield trace.marks[before[start]], wanted[start:stop]


def _columns(file: RereadFile, n: int) -> Sequence[Any]:
    """Return the next columns. Failures are skipped: they also failed before the state was saved."""
    for _ in range(FAILURES_MAX):
        try:
            columns = file.columns(n)
        except OSError:
            raise
        except Exception:  # noqa: BLE001, S112  # it replaced an element
            continue
        if columns is None:
            raise EOFError("the file ends before this element")
        return columns
    raise ValueError(f"{FAILURES_MAX:,} consecutive errors precede this element")

"""Base classes of all file sources: file names, the sequence of files, and parallel reads.

A format consists of a codec, which reads elements from one open file (``ElementFile``), and a node, a ``FileSource``,
which opens files and defines their element_spec. This module contains the operator that drives the codec.
"""

from __future__ import annotations

import contextlib
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from dataset.amounts import BLOCK_BYTES, FEW_ELEMENTS
from dataset.errors import SpecError, StateError
from dataset.io.files.compression import compression_name
from dataset.io.files.list_files import note_pattern
from dataset.io.files.opening import path_string
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.paths import filesystem_of, is_remote
from dataset.ops.interleave.interleave import Interleave
from dataset.ops.sources.select_positions import Gatherer
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.checks import require_int, require_parallelism
from dataset.plan.lazy import lazy_property
from dataset.plan.nested import dataset_of, is_dataset
from dataset.plan.node import Node, UnaryNode, spec_is_static
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import structure_of
from dataset.plan.traits import NO_USER_CODE, Traits
from dataset.redaction import redacted, redacted_error
from dataset.runtime.chunks.chunk import Array, Chunk, Column
from dataset.runtime.chunks.file_trace import FileTrace
from dataset.runtime.chunks.lineage import LineageWriter
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import HoldingOperator, Operator
from dataset.runtime.parallel.buffered_operator import BufferedOperator
from dataset.runtime.position import Position, counts_in
from dataset.runtime.state.held_elements import run_through
from dataset.runtime.state.own_elements import REMEDY, OwnElements, holds_values, name_of
from dataset.runtime.state.replay_log import ReplayLog
from dataset.world.interrupts import call

READ_ON_BYTES = 2 * BLOCK_BYTES  # reading them takes no longer than reopening a file

T = TypeVar("T")


class ElementFile(Protocol):
    """Reader of the elements of one file, in order. The first read opens the file."""

    @property
    def path(self) -> str:
        """The path of the file, as given by the user."""

    def columns(self, n: int) -> Sequence[Column] | None:
        """Return the next 1 to ``n`` elements, one column per component; None at the end, and on every later call.

        Raises:
            OSError: the file is missing, can't be read or is damaged. The rest of it is given up.
            Exception: any other exception replaces one element; the next call continues after it.
        """

    def tell(self) -> tuple[int, int]:
        """Return the position of the next element: its byte or group in the file, and its index from 0."""

    def seek(self, offset: int, number: int) -> None:
        """Continue at a position that ``tell`` returned."""

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""


@dataclass(frozen=True, eq=False)
class FileSource(UnaryNode, expands_elements=True, reads_files=True, separable=True, counted=False):
    """Base class of the nodes that read all elements of the files that ``source`` names, one file after another."""

    counts_elements: ClassVar[bool] = True
    """Whether ``numbers_of`` knows the numbers of several elements that were read together."""

    holds_blocks: ClassVar[bool] = False
    """Whether its files find all elements of a block at once.

    They have ``held``, which is how many elements of the last block are left, and ``tell(before)``, which returns the
    position ``before`` elements of the last block earlier.
    """

    packs: ClassVar[bool] = False
    """Whether its files have an attribute ``packed``, which lets them return a BytesColumn."""

    has_index: ClassVar[bool] = False
    """Whether the reader takes ``index=True``, for files that are not compressed."""

    compression_type: str | None = field(default=None, kw_only=True)

    @lazy_property
    def traits(self) -> Traits:
        names = self.source.tensors if isinstance(self.source, TensorSlices) else ()
        return super().traits.having(waits=any(is_remote(os.fsdecode(name)) for name in names[:1]))

    @abstractmethod
    def open_file(self, path: str) -> ElementFile:
        """Return a reader of one file, without reading from it."""

    def open_index(self, path: str) -> Any:
        """Return the ``RecordIndex`` of a file, if the reader ``has_index``. It is built if it does not exist."""
        raise NotImplementedError

    def indexed(self, indexes: tuple[Any, ...], run_bytes: int) -> Node:
        """Return the node that reads records by number, if the reader ``has_index``. Arguments as in IndexedFiles."""
        raise NotImplementedError

    def opener(self, context: ExecutionContext) -> Callable[[str], ElementFile]:  # noqa: ARG002  # used by overrides
        """Return the function that opens the files of one iteration, by default ``open_file``."""
        return self.open_file

    def numbers_of(self, file: Any, length: int) -> Array:
        """Return the numbers of the ``length`` elements that were read last from one of the files."""
        return np.arange(-length, 0) + int(file.tell()[1])

    @property
    def read_on_max(self) -> int:
        """The distance between offsets of ``tell`` up to which reading forward is cheaper than ``seek``.

        In a compressed file it always is, because ``seek`` reads such a file from its beginning.
        """
        return sys.maxsize if self.compression_type else READ_ON_BYTES

    def over(self, path: bytes) -> Self:
        """Return a copy of this node that reads only one file."""
        return self.with_inputs([TensorSlices(np.array([path], object))])

    def lower(self, context: ExecutionContext) -> Operator:
        return FilesOperator(context, self, self.opener(context))


@dataclass(frozen=True, eq=False)
class BlockFileSource(FileSource):
    """Base class of the nodes whose files are read in blocks.

    Attributes:
        buffer_size: the number of bytes to read at once; None, and 0 except for TFRecord files, mean 256 KiB.
    """

    buffer_min: ClassVar[int] = 0
    """The minimum of ``buffer_size``."""

    buffer_size: int | None = None

    def __post_init__(self) -> None:
        self._set("compression_type", compression_name(self.compression_type, reading=True))
        if self.buffer_size is not None:
            require_int(self.op, "buffer_size", self.buffer_size, minimum=self.buffer_min)


class FilesOperator(BufferedOperator, HoldingOperator):
    """Operator of a ``FileSource``. A file that fails raises once, in place; reading continues with the next file.

    Closing the iterator waits for the thread that runs this operator, which may be waiting for a server. Therefore the
    operator registers an interrupt with the coordinator when it opens the first remote file.

    Upstream of a streaming shuffle, elements carry references to their positions in the files.

    Args:
        context: builds the input, which produces the file names.
        node: the node.
        open_file: opens one file.
    """

    node: FileSource

    def __init__(self, context: ExecutionContext, node: FileSource, open_file: Callable[[str], ElementFile]) -> None:
        super().__init__(node)
        self.source = context(node.source)
        self._context = context
        self._names = ReplayLog(self.source, node.op)
        self._own: OwnElements | None = None  # set if a saved state contains names by value
        self._place = 0  # position of the last file's name in the replay log
        self._name: str | None = None
        self._is_given = False  # whether the input was positioned after the name on resume
        self.structure = structure_of(node.element_spec)
        self._open_file = open_file
        self._coordinator = context.iteration.coordinator
        self._packs = node.packs and context.may_be_packed
        self._packed = False  # whether the present request is large enough for a BytesColumn
        self._within = context.provenance
        self._trace: FileTrace | None = None  # of the open file, if references are requested
        self._lineage: LineageWriter | None = None  # of the open file, if it is recorded
        self._is_numbered_singly = context.is_traced and not node.counts_elements
        self._interruption: CancellationToken | None = None  # set once a remote file has been opened
        self._waits = False  # whether reading from the open file may block for long
        self.file: ElementFile | None = None

    def pull(self, n: int) -> Chunk | None:
        self._packed = self._packs and n >= FEW_ELEMENTS
        if self._waits:
            return super().pull(n)  # elements that have arrived do not wait for others
        return self.outbox.collect(self.produce, n)

    @property
    def held(self) -> int:
        """The number of elements left in the last block."""
        file: Any = self.file
        if file is None or not self.node.holds_blocks or self._waits or self.outbox:
            return 0
        return 0 if self._context.is_traced or self._trace is not None else int(file.held)

    def produce(self, n: int) -> Chunk | None:
        """Return up to ``n`` elements of one block."""
        if self._is_numbered_singly:
            n = 1
        while self.file is not None or self._next_file():
            file, trace = self.file, self._trace
            assert file is not None  # it is open now
            if self._packs:
                file.packed = self._packed  # type: ignore[attr-defined]  # as the node says
            if trace is not None:
                trace.step(file)
            if self._waits:
                columns = self._ask(lambda file: file.columns(n))
            else:
                try:
                    columns = file.columns(n)
                except Exception as error:
                    self._note(error)
                    raise
            if columns is not None:
                chunk = Chunk(self.structure, len(columns[0]), columns)
                if trace is not None:
                    chunk.references = trace.refer(chunk.length, n)
                if self._lineage is not None:
                    chunk.lineage = self._lineage.of(self.node.numbers_of(file, chunk.length))
                return chunk
            self._close_file()
        return None

    def _next_file(self) -> bool:
        """Open the next file; return False if there is none."""
        names = self._names
        if self._context.input_is_replayable:
            names.step()
        if names.is_behind:
            names.go_on()
        place = names.position
        try:
            found = names.pull(1)
        except Exception:
            self._name = None  # the position is now after the failure, not before the last name
            raise
        if found is None:
            return False
        self._is_given = False
        names.forget(place)
        self.file = self._open(self._take(found.rows()[0], place))
        return True

    def _take(self, name: Any, place: int) -> str:
        """Return the path of the next file, whose name is at position ``place`` of the input."""
        self._place, self._name = place, None
        if not isinstance(name, bytes):
            raise SpecError(f"{self.node}: a file name must be text, got {name!r} of {type(name).__name__}")
        path = path_string(name)
        if self._own is not None:
            path = self._own_name(self._own, redacted(path))
        self._name = path
        return path

    def _ask(self, question: Callable[[Any], T]) -> T:
        """Call ``question`` with the file and return the result. Close the file if it is given up."""
        try:
            if not self._waits or self.file is None:
                return question(self.file)
            return self._ask_and_wait(self.file, question)
        except Exception as error:
            self._note(error)
            raise

    def _note(self, error: Exception) -> None:
        """Note where an exception of the file comes from, and close the file if it is given up."""
        if self._name is not None:
            redacted_error(error, self._name)
            note_pattern(error, self.node.op, self._name)
        error.add_note(f"in {self.node}")
        if self._gives_up(error):
            self._close_file()

    def _ask_and_wait(self, file: ElementFile, question: Callable[[Any], T]) -> T:
        """Do the same for a file that may block for long. After an interrupt, reopen it at the same position."""
        place = file.tell()
        try:
            if self._interruption is None:
                return call(question, file)
            with self._interruption.current():  # the call may open or reopen the file
                return call(question, file)
        except Exception:
            raise
        except BaseException:
            with contextlib.suppress(Exception):  # the file may be in any state
                file.close()
            self.file = self._open_file(file.path)
            self.file.seek(*place)
            raise

    def _gives_up(self, error: Exception) -> bool:
        """Return whether the file that raised this error is given up."""
        return isinstance(error, OSError)

    def _open(self, path: str) -> ElementFile:
        self._waits = is_remote(path) or not Path(path).is_file()  # such as a pipe
        if is_remote(path):
            self._expect_waits(path)
        with contextlib.nullcontext() if self._interruption is None else self._interruption.current():
            file = self._open_file(path)
        self._trace = None if self._within is None else FileTrace(self._within, self.node, path)
        self._lineage = source_lineage(self._context, self.node, redacted(path))
        return file

    def _expect_waits(self, path: str) -> None:
        """Let the coordinator interrupt reads of remote files."""
        filesystem_of(path)  # raises for a missing library, once and in the place of the file
        if self._interruption is None:
            self._interruption = CancellationToken(self._context.iteration.options.files)
            self._coordinator.register(self._interruption, self._interruption.set)

    def _close_file(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def save(self) -> Position:
        """Return the position of the input before the name of the last file, so that it produces the name again.

        If the input cannot repeat it, the position is after the name, which is looked up among the input's names.
        """
        return self._save_at(None if self.file is None else self.file.tell())

    def save_before(self, count: int) -> Position:
        file: Any = self.file
        return self._save_at(file.tell(count))

    def _save_at(self, place: tuple[int, int] | None) -> Position:
        """Return the position at a place in the open file, if one is open."""
        file = None
        if self._name is not None:
            offset, number = (None, None) if place is None else place
            file = {"path": redacted(self._name), "offset": offset, "number": number}
        names = self._names
        first = self._first_name() if file is None and not names.position else None
        if file is None:
            position = names.present()
        elif self._context.input_is_replayable and not self._is_given:
            position = names.place(self._place)
        else:
            position = Position(self.op, inputs=(self.source.save(),))
            file["is_given"] = True
        return position.having(held=super().save().held, own={"file": file, "first": first})

    def _first_name(self) -> str | None:
        """Return the first name of the input if names can be taken by position, else None."""
        names = self.node.source
        gather = Gatherer.of(names, self._context) if names.cardinality() > 0 else None
        if gather is None:
            return None
        try:
            return name_in(gather(np.zeros(1, np.int64)))
        finally:
            gather.close()

    def load(self, position: Position) -> None:
        super().load(position)
        self._names.load(position)
        if holds_values(position.source):
            self._own = self._own_names()
        file, saved_first = position.own["file"], position.own["first"]
        if file is None:
            first = self._first_name()
            if first is not None and saved_first is not None and first != name_of(saved_first, self._context):
                raise StateError(
                    f"{self.node}: the first file of the state is {saved_first!r:.500}, but the "
                    f"first file of this dataset is {first!r}; {REMEDY}"
                )
            return
        saved = name_of(file["path"], self._context)
        self._is_given = "is_given" in file
        place = 0
        if self._is_given:
            self._own = self._own_names()
            found = self._own.get(saved)
        else:
            self._names.go_on()
            place = self._names.read
            found = self._names.pull(1)
        if found is None:
            where = "" if self._is_given else " at this position"
            raise StateError(f"{self._differs(saved)}, but the input has no such file{where} now; {REMEDY}")
        path = self._take(found.rows()[0], place)
        if redacted(path) != saved:
            raise StateError(f"{self._differs(saved)}, but the input has {redacted(path)!r} at this position; {REMEDY}")
        if file["offset"] is not None:
            self.file = self._open(path)
            self.file.seek(*counts_in(file, "offset", "number"))

    def _own_names(self) -> OwnElements:
        return OwnElements(self._context, self.node.source, name_in)

    def _differs(self, saved: str) -> str:
        return f"{self.node}: the state was saved while reading {saved!r}"

    def _own_name(self, own: OwnElements, name: str) -> str:
        """Return the input's own form of a name that may come from a saved state."""
        found = own.get(name) or own.get(name_of(name, self._context))
        if found is None:
            raise StateError(
                f"{self.node}: the state contains the file name {name!r}, which the input does not contain; {REMEDY}"
            )
        return path_string(found.rows()[0])

    def close(self) -> None:
        self._close_file()
        if self._own is not None:
            self._own.close()
        if self._interruption is not None:
            self._coordinator.unregister(self._interruption)
        self.source.close()
        super().close()


def name_in(element: Chunk) -> str | None:
    """Return the lookup key of an element that is a file name: the name without secrets."""
    name = element.rows()[0]
    return redacted(path_string(name)) if isinstance(name, bytes) else None


def file_names(op: str, filenames: Any) -> Node:
    """Return a plan that produces file names as ``bytes``.

    Args:
        op: the name of the operator for messages.
        filenames: a path, a list of paths, or a Dataset of paths.

    Raises:
        TypeError: a name is not a path, or the elements of the dataset are not paths.
    """
    if is_dataset(filenames):
        spec = filenames.plan.element_spec if spec_is_static(filenames.plan) else None
        if spec is not None and not (isinstance(spec, TensorSpec) and spec.is_compatible_with(TensorSpec((), bytes))):
            raise TypeError(f"{op}(): filenames must be a dataset of paths, got one of {spec!r}")
        return filenames.plan
    if isinstance(filenames, str | bytes | os.PathLike):
        filenames = [filenames]
    if not isinstance(filenames, Iterable):
        raise TypeError(
            f"{op}(): filenames must be a path, a list of paths or a Dataset of paths, got {filenames!r} of "
            f"type {type(filenames).__name__}"
        )
    names = [os.fsencode(name) if isinstance(name, os.PathLike | str) else name for name in filenames]
    return TensorSlices(np.array([_require_name(op, name) for name in names], object))


def known_names(op: str, files: Node) -> list[str]:
    """Run a plan of file names and return all names, for callers that need them before reading.

    Raises:
        ValueError: the plan is infinite.
        TypeError: a name is not a path.
    """
    if files.cardinality() == INFINITE_CARDINALITY:
        raise ValueError(f"{op}(): the dataset of file names is infinite; limit it with take()")
    found: list[str] = []
    for part in run_through(files):
        if isinstance(part, Exception):
            raise part
        found += [path_string(_require_name(op, name)) for name in part.rows()]
    return found


def _require_name(op: str, name: Any) -> bytes:
    if not isinstance(name, bytes):
        raise TypeError(f"{op}(): a file name must be a path, got {name!r} of type {type(name).__name__}")
    return name


def read_files(
    source: FileSource,
    num_parallel_reads: int | None,
    *,
    around: Callable[[Node], Node] = lambda node: node,
    deterministic: bool | None = None,
) -> Node:
    """Return the plan that reads the files of ``source``, one after another or interleaved.

    Args:
        source: the node that reads the files.
        num_parallel_reads: how many files to read at once, in background threads; None for one after another. AUTOTUNE
            is a cycle of 4 files.
        around: wraps the source, or, if files are interleaved, the source of each file.
        deterministic: as in ``interleave``.

    Raises:
        TypeError: num_parallel_reads is not an int.
        ValueError: num_parallel_reads is less than 1.
    """
    if num_parallel_reads is None:
        return around(source)
    require_parallelism(source.op, num_parallel_reads, None)
    return Interleave(
        source.source,
        reader_of_one_file(source, around),
        num_parallel_reads,
        1,
        num_parallel_calls=num_parallel_reads,
        deterministic=deterministic,
        name=source.name,
    )


def reader_of_one_file(
    source: FileSource, around: Callable[[Node], Node] = lambda node: node
) -> Callable[[bytes], Any]:
    """Return the function that an interleave of files calls: it returns the dataset of one file."""

    def read_one_file(path: bytes) -> Any:
        return dataset_of(around(source.over(path)))

    setattr(read_one_file, NO_USER_CODE, True)
    return read_one_file

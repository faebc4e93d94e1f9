"""What all sources of files share: the file names, moving from file to file, and reading several at once.

A format is two files beside this one: a codec, which reads elements out of one open file (``ElementFile``), and a node,
a ``FileSource``, which says how to open a file and what its elements are. Here the codec and the operators meet.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from dataset.errors import SpecError, StateError
from dataset.io.files.opening import path_string
from dataset.io.files.remote.cancellation import CancellationToken
from dataset.io.files.remote.paths import filesystem_of, is_remote
from dataset.ops.interleave.interleave import DEFAULT_CYCLE_LENGTH, Interleave
from dataset.ops.tensor_slices import TensorSlices
from dataset.options import AUTOTUNE
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.checks import require_parallelism
from dataset.plan.nested import dataset_of, is_dataset
from dataset.plan.node import Node, UnaryNode, spec_is_static
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import structure_of
from dataset.redaction import redacted, redacted_error
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.chunks.file_trace import FileTrace
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.parallel.pending import Pending
from dataset.runtime.resources.interrupts import call
from dataset.runtime.state.elements import run_through
from dataset.runtime.state.own_elements import REMEDY, OwnElements, holds_values, name_of
from dataset.runtime.state.replay_log import ReplayLog

READ_ON_BYTES = 1 << 19  # two blocks: reading them takes no longer than opening a file anew

T = TypeVar("T")


class ElementFile(Protocol):
    """The elements of one file, from its first to its last. It is opened by the first read."""

    @property
    def path(self) -> str:
        """The file, as the user named it."""

    def columns(self, n: int) -> Sequence[Column] | None:
        """The next 1 to ``n`` elements, one column for each component; None at the end, and ever after.

        Raises:
            OSError: the file is missing, can't be read or is damaged. What is left of it is given up.
            Exception: any other takes the place of one element; the next call goes on behind that.
        """

    def tell(self) -> tuple[int, int]:
        """Where the next element stands: a byte or a group in the file, and the element's number from 0."""

    def seek(self, offset: int, number: int) -> None:
        """Continue at a place that ``tell`` gave."""

    def close(self) -> None:
        """Give the file back. A second time does nothing."""


@dataclass(frozen=True, eq=False)
class FileSource(UnaryNode):
    """All elements of the files that ``source`` names, file after file. Formats derive from it."""

    opens_elements: ClassVar[bool] = True
    reads_files: ClassVar[bool] = True

    @abstractmethod
    def open_file(self, path: str) -> ElementFile:
        """The elements of one file. Nothing is read yet."""

    def opener(self, build: ExecutionContext) -> Callable[[str], ElementFile]:  # noqa: ARG002  # for those that count
        """What opens the files of one iteration, where that is more than ``open_file``."""
        return self.open_file

    @property
    def read_on_max(self) -> int:
        """Up to which distance between offsets that ``tell`` gives reading on costs less than ``seek``.

        A compressed file is read from its beginning by ``seek``, so there it always does.
        """
        return sys.maxsize if getattr(self, "compression_type", None) else READ_ON_BYTES

    @property
    def rows_per_element(self) -> int | None:
        return None

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    @property
    def separates(self) -> bool:
        return True

    def over(self, path: bytes) -> Self:
        """The same for one file."""
        return dataclasses.replace(self, source=TensorSlices(np.array([path], object)))

    def lower(self, build: ExecutionContext) -> Operator:
        return FilesOperator(build, self, self.opener(build))


class FilesOperator(UnaryOperator):
    """Holds the open file. One that fails raises once, at the place of the failure; the next is read after it.

    Who closes the iterator waits for the thread that is in here, and that one perhaps for a server. So the coordinator
    is told how to interrupt it, as soon as there is a remote file.

    Below a streaming shuffle the elements say where they can be read again.

    Args:
        build: opens the input, which gives the names.
        node: the files.
        open_file: opens one.
    """

    def __init__(self, build: ExecutionContext, node: FileSource, open_file: Callable[[str], ElementFile]) -> None:
        super().__init__(build(node.source))
        self._build = build
        self._names = ReplayLog(self.source)
        self._own: OwnElements | None = None  # where a saved state holds names by value
        self._place = 0  # of the name of the last file, as the trail counts; behind all where there is none
        self._name: str | None = None
        self._is_given = False  # whether the input was set to a place behind the name
        self.node = node
        self.structure = structure_of(node.element_spec)
        self._open_file = open_file
        self._coordinator = build.coordinator
        self._within = build.within
        self._trace: FileTrace | None = None  # of the file that is open, where somebody wants references
        self._interruption: CancellationToken | None = None  # of remote files, from the first of them on
        self._waits = False  # whether the bytes of the open file may be long in coming
        self.file: ElementFile | None = None
        self._pending = Pending()  # an exception behind elements that came first

    def pull(self, n: int) -> Chunk | None:
        if self._pending:
            return self._pending.give(n)
        return self._pending.collect(self._read, n, drops_traceback=True)

    def _read(self, n: int) -> Chunk | None:
        """Up to ``n`` elements of one block."""
        while self.file is not None or self._next_file():
            trace = self._trace
            if trace is not None and self.file is not None:
                trace.step(self.file)
            columns = self._ask(lambda file: file.columns(n))
            if columns is not None:
                chunk = Chunk(self.structure, len(columns[0]), columns)
                if trace is not None:
                    chunk.references = trace.refer(chunk.length, n)
                return chunk
            self._close_file()
        return None

    def _next_file(self) -> bool:
        """Take the next file; False if there is none."""
        names = self._names
        if self._build.repeats_input:
            names.step()
        if names.is_behind:
            names.go_on()
        place = max(names.read, names.given)
        try:
            found = names.pull(1)
        except Exception:
            self._name = None  # the place is behind the failure, not before the last name
            raise
        if found is None:
            return False
        self._is_given = False
        names.forget(place)
        self.file = self._open(self._take(found.rows()[0], place))
        return True

    def _take(self, name: Any, place: int) -> str:
        """The path of the next file, whose name has a place among those of the input."""
        self._place, self._name = place, None
        if not isinstance(name, bytes):
            raise SpecError(f"{self.node.located()}: a file name must be text, got {name!r} of {type(name).__name__}")
        path = path_string(name)
        if self._own is not None:
            path = self._own_name(self._own, redacted(path))
        self._name = path
        return path

    def _ask(self, question: Callable[[Any], T]) -> T:
        """What the file answers. One that is given up is closed."""
        try:
            if not self._waits or self.file is None:
                return question(self.file)
            return self._ask_and_wait(self.file, question)
        except Exception as error:
            if self._name is not None:
                redacted_error(error, self._name)
            error.add_note(f"in {self.node.located()}")
            if self._gives_up(error):
                self._close_file()
            raise

    def _ask_and_wait(self, file: ElementFile, question: Callable[[Any], T]) -> T:
        """What a file answers whose bytes may be long in coming. An interrupt has it opened again, where it was."""
        place = file.tell()
        try:
            if self._interruption is None:
                return call(question, file)
            with self._interruption.current():  # a file is opened by the first question, and again behind a failure
                return call(question, file)
        except Exception:
            raise
        except BaseException:
            with contextlib.suppress(Exception):  # it may be in any state
                file.close()
            self.file = self._open_file(file.path)
            self.file.seek(*place)
            raise

    def _gives_up(self, error: Exception) -> bool:
        """Whether nothing more is read from the file, which raised this."""
        return isinstance(error, OSError)

    def _open(self, path: str) -> ElementFile:
        self._waits = is_remote(path) or not Path(path).is_file()  # but, say, a pipe
        if is_remote(path):
            self._expect_waits(path)
        file = self._open_file(path)
        self._trace = None if self._within is None else FileTrace(self._within, self.node, path)
        return file

    def _expect_waits(self, path: str) -> None:
        """Have the coordinator interrupt what is read of a remote file."""
        filesystem_of(path)  # a library that is missing is said here, at the place of the file and once
        if self._interruption is None:
            self._interruption = CancellationToken()
            self._coordinator.register(self._interruption, self._interruption.set)

    def _close_file(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def state_dict(self) -> State:
        """Where the input was before it gave the name of the last file, so that it gives the name again.

        Where it would not, the place is behind that name, which is looked up among those that the input gives.
        """
        file = None
        if self._name is not None:
            offset, number = (None, None) if self.file is None else self.file.tell()
            file = {"path": redacted(self._name), "offset": offset, "number": number}
        names = self._names
        first = self._first_name() if file is None and not max(names.read, names.given) else None
        if file is None:
            place = {"source": self.source.state_dict(), "behind": max(0, names.given - names.read)}
        elif self._build.repeats_input and not self._is_given:
            place = names.place(self._place)
        else:
            place = {"source": self.source.state_dict(), "behind": 0}
            file["is_given"] = True
        return {"op": self.node.op, **place, "file": file, "first": first, "pending": self._pending.save()}

    def _first_name(self) -> str | None:
        """The name that the input is going to give first, where it tells at once; None where it does not."""
        if not (self.source.picks and self.node.source.cardinality() > 0):
            return None
        return name_in(self.source.pick(np.zeros(1, np.int64)))

    def load_state_dict(self, state: State) -> None:
        self._names.load(state)
        self._pending.load(state["pending"], lambda: self.node.element_spec)
        if holds_values(state["source"]):
            self._own = self._own_names()
        file = state["file"]
        if file is None:
            first = self._first_name()
            if first is not None and state["first"] is not None and first != name_of(state["first"], self._build):
                raise StateError(
                    f"{self.node.located()}: the state is of files that begin with {state['first']!r:.500}, and these "
                    f"begin with {first!r}; {REMEDY}"
                )
            return
        saved = name_of(file["path"], self._build)
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
            where = "" if self._is_given else " there"
            raise StateError(f"{self._differs(saved)}, and the input gives no such file{where} now; {REMEDY}")
        path = self._take(found.rows()[0], place)
        if redacted(path) != saved:
            raise StateError(f"{self._differs(saved)}, and the input gives {redacted(path)!r} there; {REMEDY}")
        if file["offset"] is not None:
            self.file = self._open(path)
            self.file.seek(int(file["offset"]), int(file["number"]))

    def _own_names(self) -> OwnElements:
        return OwnElements(self._build, self.node.source, name_in)

    def _differs(self, saved: str) -> str:
        return f"{self.node.located()}: the state was saved when {saved!r} was read"

    def _own_name(self, own: OwnElements, name: str) -> str:
        """The input's own form of a name that may come out of a saved state."""
        found = own.get(name) or own.get(name_of(name, self._build))
        if found is None:
            raise StateError(
                f"{self.node.located()}: the state holds the file name {name!r}, which the input does not give; "
                f"{REMEDY}"
            )
        return path_string(found.rows()[0])

    def close(self) -> None:
        self._close_file()
        if self._own is not None:
            self._own.close()
        if self._interruption is not None:
            self._coordinator.unregister(self._interruption)
        super().close()


def name_in(element: Chunk) -> str | None:
    """What a file's name, an element of its own, is looked up by: the name without secrets."""
    name = element.rows()[0]
    return redacted(path_string(name)) if isinstance(name, bytes) else None


def file_names(op: str, filenames: Any) -> Node:
    """A plan that gives file names as ``bytes``.

    Args:
        op: who asks, for messages.
        filenames: a path, a list of paths, or a Dataset of them.

    Raises:
        TypeError: if a name is no path, or the dataset is one of something else.
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
            f"{op}(): filenames must be a path, a list of paths or a Dataset of them, got {filenames!r} of "
            f"type {type(filenames).__name__}"
        )
    names = [os.fsencode(name) if isinstance(name, os.PathLike | str) else name for name in filenames]
    return TensorSlices(np.array([_require_name(op, name) for name in names], object))


def known_names(op: str, files: Node) -> list[str]:
    """The file names that a plan gives now, for those who have to know them before anything is read.

    Raises:
        ValueError: if there is no end to them.
        TypeError: if one is no path.
    """
    if files.cardinality() == INFINITE_CARDINALITY:
        raise ValueError(f"{op}(): there is no end to the file names; take() some")
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
    """The plan that reads the files of ``source``: one after the other, or an element from each of several in turn.

    Args:
        source: the files, and how to read them.
        num_parallel_reads: how many at once, in background threads; None for one after the other. AUTOTUNE is a cycle
            of 4 files.
        around: what is put around the source, or around that of each file where several are read at once.
        deterministic: as of ``interleave``.

    Raises:
        TypeError: if it is no int.
        ValueError: if it is less than 1.
    """
    if num_parallel_reads is None:
        return around(source)
    require_parallelism(source.op, num_parallel_reads, None)
    return Interleave(
        source.source,
        reader_of_one_file(source, around),
        cycle_length_of(num_parallel_reads),
        1,
        num_parallel_calls=num_parallel_reads,
        deterministic=deterministic,
        name=source.name,
    )


def cycle_length_of(num_parallel_reads: int) -> int:
    """How many files have their turn, where so many are read at once."""
    return DEFAULT_CYCLE_LENGTH if num_parallel_reads == AUTOTUNE else num_parallel_reads


def reader_of_one_file(
    source: FileSource, around: Callable[[Node], Node] = lambda node: node
) -> Callable[[bytes], Any]:
    """The function that an interleave of files is given: it makes the dataset of one."""

    def read_one_file(path: bytes) -> Any:
        return dataset_of(around(source.over(path)))

    return read_one_file

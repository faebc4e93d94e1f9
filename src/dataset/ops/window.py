"""window(size, shift, stride): datasets of consecutive elements. By key instead of place: group_by_window.py."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.plan.cardinality import map_known
from dataset.plan.checks import require_bool, require_int
from dataset.plan.nested import dataset_of
from dataset.plan.node import Node, UnaryNode, spec_is_static
from dataset.plan.spec import DatasetSpec, flatten_spec, map_spec
from dataset.plan.structure import LEAF
from dataset.runtime.chunk import Chunk, Column, read_only
from dataset.runtime.elements import Elements
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.sliding import SlidingBuffer
from dataset.runtime.state import load_pending, save_pending


@dataclass(frozen=True, eq=False)
class Window(UnaryNode):
    """Datasets of ``size`` elements, every ``stride``-th, that start ``shift`` elements apart.

    The windows of an element with several components are several datasets, in its structure. At the end they get
    shorter, unless ``drop_remainder``.
    """

    op: ClassVar[str] = "window"
    size: int
    shift: int | None = None
    stride: int = 1
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        self._set("size", require_int("window", "size", self.size, minimum=1))
        shift = self.size if self.shift is None else require_int("window", "shift", self.shift, minimum=1)
        self._set("shift", shift)
        self._set("stride", require_int("window", "stride", self.stride, minimum=1))
        self._set("drop_remainder", require_bool("window", "drop_remainder", self.drop_remainder))

    @property
    def span(self) -> int:
        """How many elements of the input a full window reaches over."""
        return (self.size - 1) * self.stride + 1

    def _element_spec(self) -> Any:
        return map_spec(DatasetSpec, self.source.element_spec)

    def cardinality(self) -> int:
        assert self.shift is not None
        shift, span = self.shift, self.span
        if self.drop_remainder:
            return map_known(lambda n: max(0, (n - span) // shift + 1), self.source.cardinality())
        return map_known(lambda n: -(-n // shift), self.source.cardinality())

    def described(self) -> str:
        parts = [str(self.size)]
        parts += [f"shift={self.shift}"] if self.shift != self.size else []
        parts += [f"stride={self.stride}"] if self.stride != 1 else []
        parts += ["drop_remainder"] if self.drop_remainder else []
        return f"window({', '.join(parts)})"

    def lower(self, build: Build) -> Operator:
        return WindowOperator(build(self.source), self)


class WindowOperator(UnaryOperator):
    """Holds the elements that the next windows share with the last.

    An element that fails stays with the others until the windows have passed it: each window that it would be in fails,
    as in tf.data. Those between windows are passed only when the next window is asked for.
    """

    def __init__(self, source: Operator, node: Window) -> None:
        super().__init__(source)
        self.node = node
        assert node.shift is not None
        self.shift = node.shift
        self._buffer = SlidingBuffer()
        self._failures: list[tuple[int, Exception]] = []  # with their places among all that is held
        self._gap = 0  # how many to pass before the next window
        self._static = spec_is_static(node.source)
        self._specs: list[Callable[[], Any]] = []

    def pull(self, n: int) -> Chunk | None:
        self._pass_gap()
        span = self.node.span
        ended = self._collect((n - 1) * self.shift + span, span)
        held = self._held
        count = (held - span) // self.shift + 1 if held >= span else 0
        if ended and not self.node.drop_remainder:
            count = -(-held // self.shift)
        if not count:
            return None
        return self._windows(min(n, count))

    @property
    def _held(self) -> int:
        return self._buffer.length + len(self._failures)

    def _pass_gap(self) -> None:
        while self._gap:
            try:
                chunk = self.source.pull(self._gap)
            except Exception:  # noqa: BLE001  # of an element that is in no window, as in tf.data
                self._gap -= 1
                continue
            self._gap = 0 if chunk is None else self._gap - chunk.length

    def _collect(self, wanted: int, needed: int) -> bool:
        """Hold ``needed`` elements, at most ``wanted``; True if the input ended before."""
        while (held := self._held) < needed:
            try:
                chunk = self.source.pull(wanted - held)
            except Exception as error:  # noqa: BLE001  # raised by the windows that it is in
                self._failures.append((held, error))
                continue
            if chunk is None:
                return True
            if self._buffer.length and chunk.structure != self._buffer.structure:
                raise self._different_structure(chunk)
            self._buffer.append(chunk)
        return False

    def _different_structure(self, chunk: Chunk) -> SpecError:
        """What is held is dropped; the next window begins where the structure changes."""
        error = SpecError(
            f"{self.node.located()}: all elements of a window need one structure, got {self._buffer.structure!r} and "
            f"{chunk.structure!r}"
        )
        self._buffer, self._failures = SlidingBuffer(), []
        self._buffer.append(chunk)
        return error

    def _windows(self, count: int) -> Chunk:
        """The next ``count`` windows, or those before the first that fails."""
        windows: list[list[Column]] = []
        for index in range(count):
            start = index * self.shift
            stop = min(start + self.node.span, self._held)
            if self._failures and (failed := self._failed(start, stop)) is not None:
                if not windows:
                    self._raise(failed)
                break
            windows.append(self._columns(start, stop))
        structure = self._buffer.structure
        self._advance(len(windows))
        columns = [self._datasets(index, pieces) for index, pieces in enumerate(zip(*windows, strict=True))]
        return Chunk(structure, len(windows), columns)

    def _failed(self, start: int, stop: int) -> Exception | None:
        """The exception of the first element of a window that has one."""
        picked = range(start, stop, self.node.stride)
        return next((error for place, error in self._failures if place in picked), None)

    def _raise(self, error: Exception) -> None:
        self._advance(1)
        if any(later is error for _, later in self._failures):  # of the next window, too
            error = _twin(error)
        try:
            raise error
        finally:
            del error  # see runtime/operator.py on exceptions that are kept

    def _columns(self, start: int, stop: int) -> list[Column]:
        if not self._failures:
            return self._buffer.columns(start, stop, self.node.stride)
        picked = np.arange(start, stop, self.node.stride)
        before = np.searchsorted([place for place, _ in self._failures], picked)
        return [read_only(column) for column in self._buffer.columns_at(picked - before)]

    def _advance(self, windows: int) -> None:
        passed = min(windows * self.shift, self._held)
        self._gap = windows * self.shift - passed
        later = [(place - passed, error) for place, error in self._failures if place >= passed]
        self._buffer.drop(passed - (len(self._failures) - len(later)))
        self._failures = later

    def _datasets(self, index: int, pieces: tuple[Column, ...]) -> Column:
        """A dataset of each piece of component ``index``."""
        while index >= len(self._specs):
            self._specs.append(partial(_component_spec, self.node.source, len(self._specs)))
        spec, static, origin = self._specs[index], self._static, self.node.origin
        return [dataset_of(Elements(Chunk(LEAF, len(piece), [piece]), spec, static, origin=origin)) for piece in pieces]

    def state_dict(self) -> State:
        items: list[Chunk | BaseException] = []
        start = 0
        for number, (place, error) in enumerate(self._failures):
            if place - number > start:
                items.append(self._buffer.chunk(start, place - number))
            items.append(error)
            start = place - number
        if self._buffer.length > start:
            items.append(self._buffer.chunk(start, self._buffer.length))
        return {**super().state_dict(), "held": save_pending(items), "gap": self._gap}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._gap = int(state["gap"])
        for item in load_pending(state["held"], lambda: self.node.source.element_spec):
            if isinstance(item, Chunk):
                self._buffer.append(item)
            else:
                assert isinstance(item, Exception)
                self._failures.append((self._held, item))


def _component_spec(node: Node, index: int) -> Any:
    return flatten_spec(node.element_spec)[1][index]


def _twin(error: Exception) -> Exception:
    """Another exception like this one. One that has been raised holds the frames that it went through."""
    try:
        twin = copy.copy(error)
    except Exception:  # noqa: BLE001  # its constructor takes something else than its args
        twin = type(error).__new__(type(error), *error.args)
        vars(twin).update(vars(error))
    notes = getattr(error, "__notes__", None)
    if notes is not None:
        twin.__notes__ = list(notes)
    return twin.with_traceback(error.__traceback__)

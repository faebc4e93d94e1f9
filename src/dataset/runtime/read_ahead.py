"""An iterator that converts elements, a few of them before they are asked for: how a framework's devices are fed.

It has no thread. Whoever asks for an element waits for the conversion of one further ahead to be begun, so this suits
conversions that go on by themselves, such as a copy to a device. To make the elements themselves in the background is
what ``prefetch`` is for.

The state belongs to the element that was handed out last. What was read ahead stands in it by value, as what operators
hold does, and is converted again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Self

from dataset.closing import Closing
from dataset.errors import ClosedError, StateError
from dataset.plan.structure import structure_of
from dataset.runtime.chunk import Chunk
from dataset.runtime.iterator import DatasetIterator
from dataset.runtime.operator import State
from dataset.runtime.state import SpecGetter, digest, load_pending, save_pending
from dataset.runtime.statistics import PipelineStatistics, TuningLog

STATE_VERSION = 1
_KEYS = {"version", "iterator", "ahead", "digest"}

Convert = Callable[[Any], tuple[Any, Any]]
"""Takes an element, returns what to hand out for it, and the element to keep until then, for a saved state."""

Item = tuple[Any, Any] | Exception
"""What ``Convert`` returned, or the exception in the place of an element."""


class ReadAhead(Closing, Iterator[Any]):
    """An iterator over converted elements, of which up to ``count`` are converted before they are asked for.

    An exception stands for the element at its place, wherever it came up; the next call goes on behind it. Background
    threads and files are let go at the end of the data, by ``close()``, at the end of a ``with`` block, or when the
    iterator is dropped.

    Args:
        iterator: over the elements; it is this one's from now on.
        convert: called in the thread that asks for an element; user code it must not be.
        count: how many more elements may be asked for than were handed out.
        spec: gives the spec of the elements, for those in a saved state that are of user classes.
    """

    def __init__(self, iterator: DatasetIterator[Any], convert: Convert, count: int, spec: SpecGetter) -> None:
        self._iterator = iterator
        self._convert = convert
        self._count = count
        self._spec = spec
        self._lock = threading.RLock()  # guards all below: one call of next at a time
        self._items: deque[Item] = deque()
        self._source = _items(iterator, convert)
        self._ended = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        with self._lock:
            while not self._ended and len(self._items) <= self._count:
                self._read()
            if not self._items:
                raise StopIteration
            item = self._items.popleft()
        if not isinstance(item, Exception):
            return item[0]
        try:
            raise item
        finally:
            del item  # see runtime/operator.py on exceptions that are kept

    def _read(self) -> None:
        try:
            self._items.append(next(self._source))
        except StopIteration:
            self._ended = True
        except BaseException:  # an interrupt, or ClosedError: they stand for no element, and end the generator
            self._source = _items(self._iterator, self._convert)
            raise

    def state_dict(self) -> State:
        """The place behind the last element that was handed out, as plain data, with the elements read ahead in it.

        Raises:
            ClosedError: after ``close()``.
            StateError: if an operator holds elements that are no plain data.
        """
        with self._lock:
            iterator = self._iterator.state_dict()
            ahead = save_pending([item if isinstance(item, Exception) else _chunk(item[1]) for item in self._items])
        return {"version": STATE_VERSION, "iterator": iterator, "ahead": ahead, "digest": digest(ahead)}

    def load_state_dict(self, state: State) -> None:
        """Go to the place that ``state`` describes, from wherever the iterator stands.

        Raises:
            ClosedError: after ``close()``.
            StateError: if the state is of another pipeline or version, or is damaged; the iterator stays where it was.
        """
        _check(state)
        with self._lock:
            ahead = load_pending(state["ahead"], self._spec)
            self._iterator.load_state_dict(state["iterator"])
            self._items.clear()
            self._ended = False
            self._source = _items(self._iterator, self._convert)
            for item in ahead:
                self._items.append(self._converted(item) if isinstance(item, Chunk) else item)  # type: ignore[arg-type]

    def _converted(self, chunk: Chunk) -> Item:
        try:
            return self._convert(chunk.only())
        except Exception as error:  # noqa: BLE001  # raised at its place
            return error

    def stats(self) -> PipelineStatistics:
        """What each operator has done so far: that of the iterator below."""
        return self._iterator.stats()

    def tuning_log(self) -> TuningLog:
        """What the autotuner has decided so far: that of the iterator below."""
        return self._iterator.tuning_log()

    def close(self) -> None:
        """Stop background threads, wait for them, let go of files and of what was read ahead. May be called twice."""
        self._iterator.close()
        with self._lock:
            self._items.clear()
            self._ended = False  # to be told by the iterator that it is closed


def _items(iterator: DatasetIterator[Any], convert: Convert) -> Iterator[Item]:
    """The converted elements, and exceptions in the places of elements.

    A generator on purpose. An exception that waits for its turn refers to the frames that it came through, and they to
    those who called them, up to the user's loop, which holds the iterator: it could not be dropped. A generator that
    waits has no caller.
    """
    while True:
        found: list[Item] = []  # emptied before it waits: its frame must not hold such an exception
        try:
            found.append(convert(next(iterator)))
        except StopIteration:
            return
        except ClosedError:
            raise  # that stands for no element
        except Exception as error:  # noqa: BLE001  # raised at its place
            found.append(error)
        yield found.pop()


def _chunk(element: Any) -> Chunk:
    return Chunk(structure_of(element), 1, rows=[element])


def _check(state: Any) -> None:
    if type(state) is not dict or set(state) != _KEYS:
        raise StateError(f"expected what state_dict() returned, a dict of {sorted(_KEYS)}, got {state!r:.100}")
    if type(state["version"]) is not int or state["version"] != STATE_VERSION:
        raise StateError(f"the state has version {state['version']!r}, this library reads version {STATE_VERSION}")
    if type(state["ahead"]) is not list or state["digest"] != digest(state["ahead"]):
        raise StateError("the state is damaged: its content does not fit its digest")

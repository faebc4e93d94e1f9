"""Fault injection: makes the library fail the k-th time that its code allocates memory or calls a function.

with injected("np.concatenate", 3) as fault:
consume(dataset)
assert fault.has_fired
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from dataset.io.tfrecord import reader
from dataset.ops.interleave import reader_pool, subdatasets
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.parallel import outcome_queue, pool
from dataset.runtime.resources import coordinator
from support.seeds import rng

HANDLERS = frozenset({"fail", "_report_fault", "stop", "raise_failure", "_finish_if_last", "shut_down"})
"""Code that handles faults and the end of a run is exempt, with all that it calls: it cannot work without memory."""


ENTRIES = frozenset({"_run", "_work", "_run_counted"})
"""The functions that a thread enters first: before their first line, no exception can be caught."""


class Fault:
    """Counter that raises an error the k-th time that ``count`` is called.

    Attributes:
        error: the error that was raised.
        calls: how often ``count`` was called.
    """

    def __init__(self, k: int, error: BaseException) -> None:
        self.error = error
        self.calls = 0
        self._k = k
        self._lock = threading.Lock()

        self.has_fired = False

    def count(self) -> None:
        with self._lock:
            self.calls += 1
            fires = self.calls >= self._k and not self.has_fired and not _handles_fault()
            self.has_fired = self.has_fired or fires
        if fires:
            raise self.error


Point = Callable[[Fault], contextlib.AbstractContextManager[Any]]
"""Makes a fault count the uses of something in a block."""


def _handles_fault() -> bool:
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name in HANDLERS:
            return True
        frame = frame.f_back
    return False


def _calls_of(owner: Any, name: str, counts: Callable[..., bool] = lambda *_: True) -> Point:
    """Return a point at the calls of a function; ``counts`` may leave some out, by their arguments."""

    def patch(fault: Fault) -> contextlib.AbstractContextManager[Any]:
        function = getattr(owner, name)

        def failing(*args: Any, **keywords: Any) -> Any:
            if counts(*args):
                fault.count()
            return function(*args, **keywords)

        return mock.patch.object(owner, name, failing)

    return patch


def _is_librarys(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("dataset.")


def _numpy(name: str) -> Point:
    """Return a point at the calls of a function of NumPy by the library."""
    return _calls_of(np, name, lambda *_: _is_librarys(sys._getframe(2)))


@contextlib.contextmanager
def _queues(fault: Fault) -> Iterator[None]:
    class Failing(deque[Any]):
        def append(self, item: Any) -> None:
            fault.count()
            super().append(item)

    with contextlib.ExitStack() as stack:
        for module in (coordinator, subdatasets, pool, outcome_queue, reader_pool):
            stack.enter_context(mock.patch.object(module, "deque", Failing))
        yield


@contextlib.contextmanager
def _calls(fault: Fault) -> Iterator[None]:
    """Count every call of a function of the library in one of its threads."""

    def trace(frame: Any, event: str, _: Any) -> None:
        is_call = event == "call" and _is_librarys(frame) and frame.f_code.co_name not in ENTRIES
        if is_call and threading.current_thread().name.startswith("dataset-"):
            fault.count()

    before = threading.gettrace()
    threading.settrace(trace)
    try:
        yield
    finally:
        threading.settrace(before)  # type: ignore[arg-type]


MAKERS = ("array", "asarray", "ascontiguousarray", "concatenate", "empty", "empty_like", "frombuffer", "full", "stack")


@contextlib.contextmanager
def _arrays(fault: Fault) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in MAKERS:
            stack.enter_context(_numpy(name)(fault))
        for name in ("find_frames", "cut_frames"):  # which allocate what a block of a TFRecord file is taken apart into
            stack.enter_context(_calls_of(reader, name)(fault))
        yield


def covering(pairs: Sequence[tuple[str, str]], *key: object) -> set[tuple[str, str]]:
    """Return a few of the pairs, drawn by the seed, in which every first and every second part occurs."""
    draw, found = rng(*key), set[tuple[str, str]]()
    for side in (1, 0):
        for part in dict.fromkeys(draw.sample([pair[side] for pair in pairs], len(pairs))):
            if all(part != pair[side] for pair in found):
                possible = [pair for pair in pairs if pair[side] == part]
                new = [pair for pair in possible if all(pair[1 - side] != other[1 - side] for other in found)]
                found.add(draw.choice(new or possible))
    return found


POINTS: dict[str, Point] = {
    **{f"np.{name}": _numpy(name) for name in ("empty", "stack", "concatenate", "copyto")},
    "Chunk": _calls_of(Chunk, "__init__"),
    "deque.append": _queues,
    "Thread.start": _calls_of(threading.Thread, "start", lambda thread: thread.name.startswith("dataset-")),
    "any call in a thread": _calls,
}


@contextlib.contextmanager
def _arrays_and_chunks(fault: Fault) -> Iterator[None]:
    with _arrays(fault), POINTS["Chunk"](fault):
        yield


GROUPS: dict[str, Point] = {"any array": _arrays, "any array or chunk": _arrays_and_chunks}
"""Groups of several points."""


@contextlib.contextmanager
def injected(point: str, k: int) -> Iterator[Fault]:
    """Make the ``k``-th use of a point or group fail: with RuntimeError for threads, otherwise with MemoryError."""
    error = RuntimeError("can't start new thread") if point == "Thread.start" else MemoryError("injected")
    fault = Fault(k, error)
    with (POINTS | GROUPS)[point](fault), _finalizers_may_swallow(error):
        yield fault


@contextlib.contextmanager
def _finalizers_may_swallow(error: BaseException) -> Iterator[None]:
    """Do not report ``error`` where Python cannot raise it: in a finalizer, such as that of a dropped generator."""
    report = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.exc_value is not error:
            report(unraisable)

    with mock.patch.object(sys, "unraisablehook", hook):
        yield

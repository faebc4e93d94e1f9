"""SIGINT for a running pipeline: at a given bytecode of the main thread, or from another thread at a random time.

CPython handles a signal when a function starts, after a call, and at the end of a loop's body. A trace function is
called at each of these moments, and calls the handler at the given one. So an interrupt can be reproduced.
"""

from __future__ import annotations

import contextlib
import dis
import faulthandler
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from dataset import Dataset
from dataset.errors import ClosedError, StateError
from dataset.testing import outcomes

HARNESS = {__file__, str(Path(__file__).parents[1] / "test_interrupts.py"), contextlib.__file__}
ENDINGS = ("continue", "resume", "close")
_CHECKED = {"RESUME", "CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD"}


def collect(iterator: Any, found: list[Any]) -> None:
    """Add all outcomes to the list. An element is in the list before a signal can be handled."""
    while True:
        try:
            for element in iterator:
                found.append(element)  # noqa: PERF402  # extend() would not handle signals
            return
        except ClosedError:
            raise
        except Exception as error:
            found.append(error)


def keep(function: Callable[[], Any], found: list[Any]) -> None:
    """Add a result to the list. It is in the list before a signal can be handled."""
    found.append(function())


class AtMoment:
    """Trace function that calls the handler of SIGINT at the moment with a given number; without one it counts them."""

    def __init__(self, number: int | None = None, signum: int = signal.SIGINT) -> None:
        self.number = number
        self._signum = signum
        self.moments = 0
        self.interruptible: list[int] = []  # the numbers of the moments at which the handler would run immediately
        self.fired = False
        self._checked: dict[CodeType, set[int]] = {}

    def __str__(self) -> str:
        return f"signal {self._signum} at moment {self.number}"

    def __enter__(self) -> None:
        sys.settrace(self._enter)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename in HARNESS or frame.f_code.co_name == "<module>":
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _stop(self, frame: FrameType) -> None:
        """Stop tracing. From here on, no Python code runs in which a signal that is sent again would be handled."""
        sys.settrace(None)
        outer: FrameType | None = frame
        while outer is not None:
            outer.f_trace = None
            outer = outer.f_back

    def _step(self, frame: FrameType, event: str, _: Any) -> Any:
        if event != "opcode" or self.fired:
            return self._step
        places = self._checked.get(frame.f_code)
        if places is None:
            places = self._checked[frame.f_code] = _moments_of(frame.f_code)
        if frame.f_lasti in places:
            if self.number is None and not _is_held(frame):
                self.interruptible.append(self.moments)
            if self.moments == self.number:
                self.fired = True
                self._stop(frame)
                handler = signal.getsignal(self._signum)
                assert callable(handler)
                handler(self._signum, frame)
            self.moments += 1
        return self._step


def _is_held(frame: FrameType) -> bool:
    interrupts = sys.modules.get("dataset.world.interrupts")
    return interrupts is not None and interrupts._is_held(frame)


def _moments_of(code: CodeType) -> set[int]:
    """Return the offsets of the instructions before which CPython checks for signals."""
    found, after = set(), False
    for instruction in dis.get_instructions(code):
        if after:
            found.add(instruction.offset)
        after = instruction.opname in _CHECKED
    return found


class AtRandom:
    """Send SIGINT from another thread, once, after at most this many seconds, and not after the block."""

    def __init__(self, seconds: float, chance: random.Random) -> None:
        self._seconds = chance.random() * seconds
        self._lock = threading.Lock()
        self._over = False
        self.fired = False
        self._main = threading.get_ident()
        self._thread = threading.Thread(target=self._send, name="sender")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over = True
        self._thread.join()

    def _send(self) -> None:
        until = time.perf_counter() + self._seconds
        while time.perf_counter() < until and not self._over:
            time.sleep(0)
        with self._lock:
            if not self._over:
                self.fired = True
                signal.pthread_kill(self._main, signal.SIGINT)

    def __str__(self) -> str:
        return f"SIGINT after {self._seconds:.6f} s"


class RefusedError(Exception):
    """The library refused an operation."""


def interrupt(build: Callable[[], Dataset[Any]], how: Any, ending: str) -> tuple[bool, list[Any]]:
    """Run a pipeline, interrupt it, and end as ``ending`` says.

    Return whether the interrupt was raised, and all outcomes.

    Raises:
        RefusedError: if the library raises StateError.
    """
    found: list[Any] = []
    made = build()
    iterator, came_out = None, False
    try:
        try:
            with how:
                iterator = iter(made)
                collect(iterator, found)
        except KeyboardInterrupt:
            came_out = True
        if came_out and iterator is not None:
            if ending == "continue":
                collect(iterator, found)
            elif ending == "resume":
                found += resumed(build, iterator)
        elif came_out and ending != "close":
            found = outcomes(iter(build()))
        return came_out, found
    finally:
        if iterator is not None:
            iterator.close()


def resumed(build: Callable[[], Dataset[Any]], iterator: Any) -> list[Any]:
    try:
        state = iterator.state_dict()
    except StateError as error:
        raise RefusedError(str(error)) from error
    iterator.close()
    with iter(build()) as other:
        other.load_state_dict(state)
        return outcomes(other)


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """Print the stacks of all threads and end the process if the block takes longer."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()

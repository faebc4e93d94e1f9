"""Signal handling: a signal that arrives inside the library is held until the pipeline is in a consistent state.

Python runs signal handlers in the main thread, between any two bytecodes of whatever function is running. A handler
that raises there, as that of Ctrl-C does, can leave an element taken from one queue and not yet in the next, or a
thread started and not counted. No ``try`` statement prevents that: there is always one bytecode before it.

So a handler of this module runs in the place of the program's own, while an iterator is open. It looks at the stack of
the code that it interrupts, from the innermost function outwards, and the first function that bears a mark decides:

- ``guarded``: an entry to the library, such as ``next(iterator)``. The signal is held, and the program's handler runs
  when the entry returns, where the pipeline is consistent. The mark costs one test of a list.
- ``protected``: the signal is held, too, and the guarded entry around it handles it.
- ``deferring``: a finalizer is running, in which an exception would go nowhere. The signal is sent again until that
  has returned.
- ``interruptible``: user code, or a wait, is running. The program's handler runs at once, so what it raises comes out
  of the user's function or of the wait. Such a function computes only what may be thrown away, and its caller, which is
  protected, puts back what it has taken before the exception goes on.

Where no function bears a mark, the program's handler runs at once. Nothing is added to the code between the marks. The
idea of a handler that looks for a mark on the stack is that of trio (trio/_core/_ki.py).

Code that computes for long without an entry, such as filling a large buffer, calls ``check`` between two steps.

A handler that was installed later than the last iterator was opened is not replaced, and ``PyThreadState_SetAsyncExc``
asks nobody. ``was_stray`` tells such an exception by its traceback; the iterator then refuses to continue.
"""

from __future__ import annotations

import _thread
import dis
import functools
import signal
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, ClassVar, ParamSpec, Self, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

Handler: TypeAlias = Callable[[int, FrameType | None], Any]

HELD: list[int] = []
"""The signals that were held and not yet handled. It is true only for a moment, so testing it costs next to nothing."""

_SIGNALS = [
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGBREAK")
    if hasattr(signal, name)  # which of them there are depends on the platform
]

_holds: dict[CodeType, bool | None] = {}
"""The marked functions, by their code: whether a signal is held inside; None if it is sent again."""

_UNMARKED = object()

_handlers: dict[int, Handler] = {}
"""The program's own handlers, by the signals for which ours are installed."""

_RAISES = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE")}


def interruptible(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function in which signals are handled at once: it calls user code, or waits."""
    _mark(function.__code__, holds=False)
    return function


def protected(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function in which signals are held, although it is called by an interruptible one."""
    _mark(function.__code__, holds=True)
    return function


def deferring(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a finalizer: signals are sent again and again until it has returned.

    An exception in a finalizer goes nowhere, so what a handler raised there would be swallowed.
    """
    _mark(function.__code__, holds=None)
    return function


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function an entry to the library: signals are held inside, and handled when it returns or raises."""

    @functools.wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            if HELD:
                deliver(sys._getframe(1))  # noqa: SLF001  # the documented way to the caller

    return protected(entry)


def _mark(code: CodeType, *, holds: bool | None) -> None:
    _holds[code] = holds
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # a comprehension, which is a function of its own before Python 3.12
            _mark(constant, holds=holds)


@interruptible
def call(function: Callable[..., R], /, *args: Any) -> R:
    """Call a function of the user."""
    return function(*args)


@interruptible
def check() -> None:
    """Handle the signals that were held, at a place inside an entry where the pipeline is consistent."""
    if HELD:
        deliver(None)


def deliver(caller: FrameType | None) -> None:
    """Handle the signals that were held, unless the ``caller`` of the entry is inside another one.

    Raises:
        BaseException: whatever the program's handlers raise. Signals that are then left stay held.
    """
    if may_deliver(caller):
        _handle_held(caller)


def may_deliver(caller: FrameType | None) -> bool:
    """Whether an entry that returns to ``caller`` is to handle the signals that were held."""
    return threading.current_thread() is threading.main_thread() and not _is_held(caller)


def _handle_held(caller: FrameType | None) -> None:
    while HELD:
        _handlers[HELD[0]](HELD.pop(0), caller)


def _is_held(frame: FrameType | None) -> bool:
    return _innermost(frame) is not False


def _innermost(frame: FrameType | None) -> bool | None:
    """What the innermost function that is marked, from ``frame`` outwards, does with signals; False if none is."""
    while frame is not None:
        holds = _holds.get(frame.f_code, _UNMARKED)
        if holds is not _UNMARKED:
            return holds  # type: ignore[return-value]  # it is a mark
        frame = frame.f_back
    return False


def _handle(signum: int, frame: FrameType | None) -> None:
    """What is installed in the place of the program's handlers."""
    holds = _innermost(frame)
    if holds is None:
        # The loop itself makes the call, without a bytecode that would handle the signal at once.
        for _ in map(_thread.interrupt_main, [signum]):  # type: ignore[arg-type]  # any number will do
            return
    elif not holds:
        _handlers[signum](signum, frame)
    elif signum not in HELD:
        HELD.append(signum)


def install() -> None:
    """Put our handler in the place of each that is a Python function. Outside the main thread it does nothing."""
    if threading.current_thread() is not threading.main_thread():
        return
    for signum in _SIGNALS:
        handler = signal.getsignal(signum)
        if callable(handler) and handler is not _handle:
            _handlers[signum] = handler
            signal.signal(signum, _handle)


def uninstall() -> None:
    """Put the program's handlers back once nothing is open, as the last step of an entry.

    Those stay that the program has installed since. Outside the main thread it does nothing.
    """
    if Finalizer.alive or threading.current_thread() is not threading.main_thread():
        return
    for signum, handler in _handlers.items():
        if signal.getsignal(signum) is _handle:
            signal.signal(signum, handler)


class Finalizer(weakref.ref[Any]):
    """Calls a function when an object is dropped: ``weakref.finalize``, but no signal is lost in it."""

    alive: ClassVar[set[object]] = set()
    """Those that are still to be called."""

    def __new__(cls, owner: Any, function: Callable[[], None]) -> Self:  # noqa: ARG004  # __init__ takes it
        return super().__new__(cls, owner, _finalize)

    def __init__(self, owner: Any, function: Callable[[], None]) -> None:
        super().__init__(owner, _finalize)  # type: ignore[call-arg]  # typeshed knows __new__ only
        self._function: Callable[[], None] | None = function
        self.alive.add(self)

    __hash__ = object.__hash__  # by identity, as the owner need not be hashable
    __eq__ = object.__eq__

    def detach(self) -> Callable[[], None] | None:
        """The function, if it is still to be called, which it is not any more."""
        function, self._function = self._function, None
        self.alive.discard(self)
        return function

    def finalize(self) -> None:
        """Call the function, if that is still to be done."""
        function = self.detach()
        if function is not None:
            function()


@deferring
def _finalize(reference: Finalizer) -> None:
    reference.finalize()


for _class in (weakref.WeakSet, weakref.WeakValueDictionary, weakref.WeakKeyDictionary):
    for _constant in _class.__init__.__code__.co_consts:
        if isinstance(_constant, CodeType):  # the callback, which forgets an object that was dropped
            _mark(_constant, holds=None)
_mark(weakref.finalize.__call__.__code__, holds=None)


class Condition(threading.Condition):
    """A condition variable whose ``wait`` a signal can end without breaking its lock.

    ``threading.Condition.wait`` may be interrupted while the lock is released, or before it is noted that it is. Here
    only the wait itself is interruptible.
    """

    # Of threading.Condition; typeshed does not know them.
    _waiters: deque[Any]
    _release_save: Callable[[], Any]
    _acquire_restore: Callable[[Any], None]

    def wait(self, timeout: float | None = None) -> bool:
        """As in the class above."""
        waiter = threading.Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        saved = self._release_save()
        told = False
        try:
            told = _acquire(waiter, -1 if timeout is None else max(0.0, timeout))
        finally:
            self._acquire_restore(saved)
            if not told:
                self._forget(waiter)
        return told

    def wait_held(self) -> None:
        """Wait without being interruptible, for what comes soon or must not be left half done."""
        super().wait()

    def _forget(self, waiter: Any) -> None:
        try:
            self._waiters.remove(waiter)
        except ValueError:  # it was told, and then interrupted: another one may need to know
            self.notify()


@interruptible
def _acquire(waiter: Any, timeout: float) -> bool:
    told: bool = waiter.acquire(True, timeout)
    return told


def was_stray(error: BaseException) -> bool:
    """Whether an exception came up inside the library between two bytecodes, where it may have broken something.

    It did not if it came out of an interruptible function, or of a ``raise`` statement that is not in a signal handler.
    """
    innermost = None  # of the library's functions: whether it was at a raise statement
    traceback, frames = error.__traceback__, []
    while traceback is not None:
        frames.append((traceback.tb_frame, traceback.tb_lasti))
        traceback = traceback.tb_next
    if frames and _is_raised(*frames[-1]) and frames[-1][0].f_code not in _codes_of_handlers():
        return False
    for frame, place in reversed(frames):
        if innermost is None and str(frame.f_globals.get("__name__")).startswith("dataset."):
            innermost = _is_raised(frame, place)
        if frame.f_code in _holds:
            return _holds[frame.f_code] is not False and innermost is False
    return False


def _is_raised(frame: FrameType, place: int) -> bool:
    """Whether a function was at a raise statement."""
    return frame.f_code.co_code[place] in _RAISES


def _codes_of_handlers() -> set[CodeType]:
    """The code of the handlers that are installed and are Python functions, methods or objects that can be called."""
    found = set()
    for handler in map(signal.getsignal, _SIGNALS):
        for name in ("__code__", "__func__", "__call__"):
            function = getattr(handler, name, None)
            code = getattr(function, "__code__", function)
            if isinstance(code, CodeType):
                found.add(code)
    return found

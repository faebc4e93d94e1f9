"""Signal handling: a signal that arrives inside the library is held until the pipeline is in a consistent state.

Python runs signal handlers in the main thread, between any two bytecodes of the running function. A handler that raises
an exception, such as that of Ctrl-C, can leave an element that was taken from one queue and not put into the next, or a
thread that was started and not counted. A ``try`` statement cannot prevent that: there is always one bytecode before
it.

So while an iterator is open, a handler of this module replaces the program's own. It searches the stack of the
interrupted code, from the innermost function outwards. The first marked function determines what happens:

- ``guarded``: an entry point of the library, such as ``next(iterator)``. The signal is held, and the program's handler
  runs when the entry point returns, when the pipeline is consistent. The mark costs one test of a list.
- ``handing_over``: an entry point that removes what it returns from a queue. A held signal is sent again at its end, so
  the program's handler runs in its caller, which has the element by then.
- ``protected``: the signal is held, and the enclosing guarded entry point handles it.
- ``deferring``: a finalizer is running, in which exceptions are ignored. The signal is sent again until the finalizer
  has returned.
- ``interruptible``: user code, or a wait, is running. The program's handler runs at once, so its exception is raised
  from the user's function or from the wait. An interruptible function only computes what may be discarded. Its
  protected caller puts back what it has taken before the exception propagates.

If no function is marked, the program's handler runs at once. The code between the marks is unchanged. A handler that
searches the stack for marks is an idea of trio (trio/_core/_ki.py).

Code that computes for a long time without an entry point, such as filling a large buffer, calls ``check`` between
steps.

A handler that was installed after the last iterator was opened is not replaced, and ``PyThreadState_SetAsyncExc`` does
not call handlers. ``was_stray`` detects such an exception by its traceback; the iterator then refuses to continue.
"""

from __future__ import annotations

import _thread
import contextlib
import dis
import functools
import signal
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, ClassVar, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

Handler: TypeAlias = Callable[[int, FrameType | None], Any]

HELD: list[int] = []
"""The signals that were held and not handled yet. Almost always empty; testing it costs next to nothing."""

_SIGNALS = [
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGBREAK")
    if hasattr(signal, name)  # the set depends on the platform
]

_holds: dict[CodeType, bool | None] = {}
"""The marked functions by their code: True if signals are held, False if not, None if they are sent again."""

_UNMARKED = object()

_handlers: dict[int, Handler] = {}
"""The program's own handlers for the signals whose handlers are replaced."""

_RAISES = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE")}


def interruptible(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function in which signals are handled at once: it calls user code, or waits."""
    _mark(function.__code__, holds=False)
    return function


def protected(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function in which signals are held, even if an interruptible function calls it."""
    _mark(function.__code__, holds=True)
    return function


def deferring(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a finalizer: signals are sent again until it has returned.

    Python ignores exceptions in finalizers, so an exception raised by a signal handler would be lost.
    """
    _mark(function.__code__, holds=None)
    return function


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function an entry point: signals are held inside, and handled when it returns or raises."""

    @functools.wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            if HELD:
                deliver(sys._getframe(1))  # noqa: SLF001  # the documented way to the caller

    return protected(entry)


def handing_over(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function an entry point whose result must not be lost: signals are held inside, and sent again at its end.

    So they are handled in its caller, which has the result by then.
    """

    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            if HELD and threading.current_thread() is threading.main_thread():
                again, HELD[:] = HELD[:], []
                for _ in map(_thread.interrupt_main, again):  # type: ignore[arg-type]  # as in _handle
                    pass

    protected(function)
    return functools.wraps(function)(deferring(entry))


def _mark(code: CodeType, *, holds: bool | None) -> None:
    _holds[code] = holds
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # a comprehension, which is a separate function before Python 3.12
            _mark(constant, holds=holds)


@interruptible
def call(function: Callable[..., R], /, *args: Any) -> R:
    """Call a user function."""
    return function(*args)


@interruptible
def check() -> None:
    """Handle the held signals, at a point inside an entry point where the pipeline is consistent."""
    if HELD:
        deliver(None)


def deliver(caller: FrameType | None) -> None:
    """Handle the held signals, unless the ``caller`` of the entry point is inside another one.

    Raises:
        BaseException: whatever the program's handlers raise. The remaining signals stay held.
    """
    if may_deliver(caller):
        _handle_held(caller)


def may_deliver(caller: FrameType | None) -> bool:
    """Return whether an entry point that returns to ``caller`` must handle the held signals."""
    return threading.current_thread() is threading.main_thread() and not _is_held(caller)


def _handle_held(caller: FrameType | None) -> None:
    while HELD:
        _handlers[HELD[0]](HELD.pop(0), caller)


def _is_held(frame: FrameType | None) -> bool:
    return _innermost(frame) is not False


def _innermost(frame: FrameType | None) -> bool | None:
    """Return the mark of the innermost marked function from ``frame`` outwards; False if there is none."""
    while frame is not None:
        holds = _holds.get(frame.f_code, _UNMARKED)
        if holds is not _UNMARKED:
            return holds  # type: ignore[return-value]  # it is a mark
        frame = frame.f_back
    return False


def _handle(signum: int, frame: FrameType | None) -> None:
    """Handle a signal in the place of the program's handler."""
    holds = _innermost(frame)
    if holds is None:
        # map makes the call without executing a bytecode, which would handle the signal at once.
        for _ in map(_thread.interrupt_main, [signum]):  # type: ignore[arg-type]  # any signal number is accepted
            return
    elif not holds:
        _handlers[signum](signum, frame)
    elif signum not in HELD:
        HELD.append(signum)


def install() -> None:
    """Replace all handlers that are Python functions. Outside the main thread, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        return
    for signum in _SIGNALS:
        handler = signal.getsignal(signum)
        if callable(handler) and handler is not _handle:
            _handlers[signum] = handler
            signal.signal(signum, _handle)


def uninstall() -> None:
    """Restore the program's handlers once no iterator is open; the last step of an entry point.

    Handlers that the program has installed meanwhile are kept. Outside the main thread, do nothing.
    """
    if Finalizer.alive or threading.current_thread() is not threading.main_thread():
        return
    for signum, handler in _handlers.items():
        if signal.getsignal(signum) is _handle:
            signal.signal(signum, handler)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Replace the handlers inside an entry point that needs it before an iterator is open."""
    owner = object()
    install()
    Finalizer.alive.add(owner)
    try:
        yield
    finally:
        Finalizer.alive.discard(owner)
        uninstall()


class Finalizer:
    """Calls a function when an object is dropped, like ``weakref.finalize``, but without losing signals."""

    alive: ClassVar[set[object]] = set()
    """The finalizers that were not called yet."""
    _is_over = staticmethod(sys.is_finalizing)
    """Whether the interpreter is shutting down. Its exit functions have ended all threads and removed temporary files
    by then, and names of modules, such as ``sys``, may be None."""

    def __init__(self, owner: Any, function: Callable[[], None]) -> None:
        self._function: Callable[[], None] | None = function
        self.alive.add(self)
        self._reference: weakref.ref[Any] | None = weakref.ref(owner, self._finalize)

    def detach(self) -> Callable[[], None] | None:
        """Deactivate the finalizer; return the function if it was not called yet."""
        function, self._function = self._function, None
        # Without its reference, the callback does not run after ``uninstall``, when it would lose signals.
        self._reference = None
        self.alive.discard(self)
        return function

    @deferring
    def _finalize(self, _: weakref.ref[Any]) -> None:
        function = self.detach()
        if function is not None and not self._is_over():
            function()


for _class in (weakref.WeakSet, weakref.WeakValueDictionary, weakref.WeakKeyDictionary):
    for _constant in _class.__init__.__code__.co_consts:
        if isinstance(_constant, CodeType):  # the callback that removes a dropped object
            _mark(_constant, holds=None)
_mark(weakref.finalize.__call__.__code__, holds=None)


class Condition(threading.Condition):
    """A condition variable whose ``wait`` can be ended by a signal without breaking its lock.

    ``threading.Condition.wait`` may be interrupted while the lock is released, or before this is recorded. Here only
    the wait itself is interruptible.
    """

    # Attributes of threading.Condition that typeshed does not declare.
    _waiters: deque[Any]
    _release_save: Callable[[], Any]
    _acquire_restore: Callable[[Any], None]

    def wait(self, timeout: float | None = None) -> bool:
        """Wait as ``threading.Condition.wait`` does."""
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
        """Wait without being interruptible, for short waits and those that must not be left unfinished."""
        super().wait()

    def _forget(self, waiter: Any) -> None:
        try:
            self._waiters.remove(waiter)
        except ValueError:  # notified and then interrupted: pass the notification on
            self.notify()


@interruptible
def _acquire(waiter: Any, timeout: float) -> bool:
    told: bool = waiter.acquire(True, timeout)
    return told


def was_stray(error: BaseException) -> bool:
    """Return whether an exception was raised between two bytecodes of the library, where it may have broken something.

    Exceptions from interruptible functions are harmless, as are those of ``raise`` statements outside of signal
    handlers.
    """
    innermost = None  # whether the innermost library function was at a raise statement
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
    """Return whether a function was at a raise statement."""
    return frame.f_code.co_code[place] in _RAISES


def _codes_of_handlers() -> set[CodeType]:
    """Return the code objects of the installed handlers that are Python functions, methods or callable objects."""
    found = set()
    for handler in map(signal.getsignal, _SIGNALS):
        for name in ("__code__", "__func__", "__call__"):
            function = getattr(handler, name, None)
            code = getattr(function, "__code__", function)
            if isinstance(code, CodeType):
                found.add(code)
    return found

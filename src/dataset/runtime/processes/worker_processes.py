"""Process pool: the worker processes of one parallel operator.

A call of ``run`` takes an idle worker, or starts one if the limit allows it, and waits for its reply. Each worker is
used by one call at a time, so threads share only the lists of workers here.

**Shutdown.** ``stop`` wakes waiting calls. A worker that has a task is waited for as long as starting another one would
take, because the next pool needs one. ``close`` also waits for the calls, ends the workers that have not finished, and
lets the launcher and the idle workers rest (resting_groups.py). A pool that is dropped without ``close``, or is still
open when the program ends, makes the launcher kill all workers. The launcher detects the end of the user's process in
any case, because the sockets of a killed process are closed. A forked child closes its copies of the sockets at once
and leaves everything else alone.

**Worker death.** The death of a worker is detected by the end of its socket. The count of elements that it started
tells which element killed it. That element gets the error; the elements before and after it are processed by other
workers.

If a launcher dies, its workers die with it. Each element in progress gets the error, and the next worker is started by
a new launcher. A worker that is killed before it is ready is restarted once per task. A worker that exits on its own
before it is ready is not restarted.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

from dataset.errors import ClosedError
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.processes.exit_status import Ending, worker_died
from dataset.runtime.processes.resting_groups import keep, take
from dataset.runtime.processes.transport.channel import Alarm, EndedError
from dataset.runtime.processes.transport.connection import SharedValue, UnreadableError, UnsendableError
from dataset.runtime.processes.transport.encoding import Encoded, encode
from dataset.runtime.processes.worker import HangingError, Worker
from dataset.runtime.resources.coordinator import PATIENCE_SECONDS
from dataset.runtime.resources.exceptions import CANNOT_CONTINUE, copy_exception
from dataset.world import register_at_fork, subprocess, threading
from dataset.world.interrupts import deferring

Work: TypeAlias = Callable[..., list[Outcome]]

_READY, _RESTED, _NEW = "ready", "rested", "new"  # states of a worker that is taken

_live: weakref.WeakSet[WorkerProcesses] = weakref.WeakSet()


class _Job(NamedTuple):
    inputs: Chunk
    position: int
    context: Any

    def part(self, start: int, stop: int) -> _Job:
        return _Job(self.inputs.slice(start, stop), self.position + start, self.context)


class WorkerProcesses:
    """Pool of up to ``count`` worker processes that run ``work``.

    Args:
        work: called in a worker as ``work(inputs, position, context, started)``. It returns the outcomes for the
            elements of the chunk ``inputs`` in order; an exception takes the place of one element. It calls
            ``started()`` just before each element.
        count: the maximum number of processes. They are started when ``run`` needs them, or earlier by ``start``.
        label: the name of the operation in errors, such as ``map(decode) from train.py:41``.
        modules: the library modules that ``work`` needs; imported once by the launcher, not in every process.

    Raises:
        NotImplementedError: on systems without Unix sockets.
        ImportError: if cloudpickle is not installed.
        TypeError: if ``work`` cannot be pickled.
    """

    def __init__(self, work: Work, count: int, label: str, modules: Sequence[str] = ()) -> None:
        require_unix('executor="process"', '; use executor="thread" on this system')
        self._count = count
        self._label = label
        # Reentrant: the garbage collector may call stop() in a thread that holds the lock.
        self._changed = threading.Condition(threading.RLock())  # guards all fields below; notified of every change
        self._idle: list[int] = []
        self._running = 0  # calls of run() and start()
        self._failure: Exception | None = None  # why workers cannot be started
        self._stopped = self._closed = self._forked = False
        self._is_kept = True  # False once the processes were killed
        with contextlib.ExitStack() as undo:
            self._work = SharedValue(encoded_work(work, label))
            undo.callback(self._work.close)
            self._alarm = Alarm()
            undo.callback(self._alarm.close)
            self._group = take(count, modules)
            undo.pop_all()
        self._unloaded = list(self._group.workers)  # workers that were resting
        _live.add(self)

    def run(self, inputs: Chunk, position: int, context: Any = None) -> list[Outcome]:
        """Return the outcomes for ``inputs``, which begin at element number ``position``. Blocks; thread-safe.

        Args:
            inputs: the elements.
            position: the number of the first element.
            context: further data for ``work``.

        Raises:
            ClosedError: if the processes have been stopped.
            WorkerDiedError: if no worker lives long enough to begin.
            Exception: any exception from loading ``work`` in a new process, or raised by ``work`` itself.
        """
        with self._in_use():
            return self._outcomes(_Job(inputs, position, context))

    def start(self) -> None:
        """Start a process and wait until it has loaded the work, unless all are in use. Raises what ``run`` does."""
        with self._in_use():
            if len(self._group.workers) - len(self._unloaded) < self._count:
                self._give_back(self._take(fresh=True)[0])

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        self._check_usable()  # without the lock: in a forked child, no thread may be left to release it
        with self._changed:
            self._check_usable()
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _outcomes(self, job: _Job) -> list[Outcome]:
        outcomes: list[Outcome] = []
        done = 0
        while done < job.inputs.length:
            some, count = self._attempt(job.part(done, job.inputs.length))
            outcomes += some
            done += count
        return outcomes

    def _attempt(self, job: _Job, *, again: bool = False) -> tuple[list[Outcome], int]:
        """Return the outcomes for the first elements, and their number: all, or up to one that killed a worker.

        ``again``: whether a worker died before it began with this task.
        """
        number, worker = self._take(fresh=again)
        try:
            kind, value = worker.call(*job)
        except (EndedError, HangingError):
            return self._after_death(job, worker.started, self._ending_of(number), again=again)
        except (UnsendableError, UnreadableError) as error:
            self._give_back(number)
            return self._one_by_one(job, error.__cause__ or error), job.inputs.length
        except BaseException:  # an interrupt: the reply will arrive later and must not be read by another call
            self._discard(number)
            raise
        self._give_back(number)
        if kind == "outcomes":
            return value, job.inputs.length
        try:
            if kind == "unreadable":
                return self._one_by_one(job, value), job.inputs.length
            raise value
        finally:
            del value  # see runtime/contract.py on exceptions that are kept

    def _one_by_one(self, job: _Job, reason: BaseException) -> list[Outcome]:
        """Process each element of a task on its own, so that only those fail that cannot be sent or read."""
        try:
            if job.inputs.length == 1:
                if isinstance(reason, MemoryError):
                    return [reason]
                error = TypeError(f"element or result cannot be sent between processes: {reason}")
                error.__cause__ = reason
                return [error]
            outcomes = [self._outcomes(job.part(index, index + 1)) for index in range(job.inputs.length)]
            return [outcome for element in outcomes for outcome in element]
        finally:
            del reason

    def _after_death(self, job: _Job, started: int, ending: Ending, *, again: bool) -> tuple[list[Outcome], int]:
        """Return the outcomes of a task whose worker died, up to the last of the ``started`` elements."""
        if not started:
            if not again:  # perhaps it was killed while idle
                return self._attempt(job, again=True)
            raise worker_died(self._label, f"before it started element {job.position}", ending)
        fatal = min(started, job.inputs.length) - 1
        error = worker_died(self._label, f"while it worked on element {job.position + fatal}", ending)
        before = self._outcomes(job.part(0, fatal)) if fatal else []
        return [*before, error], fatal + 1

    def _take(self, *, fresh: bool) -> tuple[int, Worker]:
        """Return an idle worker, or one that has just loaded the work."""
        may_be_killed = True  # only once: otherwise workers that keep being killed would be started forever
        while True:
            with self._changed:
                self._check_usable()
                if self._idle and not fresh:
                    number, step = self._idle.pop(), _READY
                elif len(self._group.workers) - len(self._unloaded) >= self._count:
                    self._changed.wait()  # for a worker to be given back or to end
                    continue
                elif self._unloaded:
                    number, step = self._unloaded.pop(), _RESTED
                else:
                    if self._failure is not None:
                        raise copy_exception(self._failure)
                    number, step = self._group.start(), _NEW
                worker = self._group.workers[number]
            if step is _READY or self._load(number, worker, has_rested=step is _RESTED, may_be_killed=may_be_killed):
                if self._stopped:
                    self._give_back(number)
                    self._check_usable()
                return number, worker
            may_be_killed = may_be_killed and step is _RESTED

    def _load(self, number: int, worker: Worker, *, has_rested: bool, may_be_killed: bool) -> bool:
        """Make a worker load the work; return False if it had died before, or if it or the launcher was killed."""
        try:
            worker.load(self._work, None, self._alarm)
        except (EndedError, HangingError):
            ending = self._ending_of(number)
            if has_rested or (ending.was_killed and may_be_killed):
                return False
            self._fail(worker_died(self._label, "while it loaded the function", ending), lasts=not ending.was_killed)
        except Exception as error:  # noqa: BLE001  # such as an ImportError
            self._discard(number)
            error.add_note(f"in {self._label}, while a worker process loaded the function")
            self._fail(error)
        except BaseException:
            self._discard(number)
            raise
        return True

    def _fail(self, error: Exception, *, lasts: bool = True) -> NoReturn:
        """Raise an error because no worker can be started; if permanent, store it so that later tasks do not try."""
        if lasts:
            error.add_note(f"no worker process can be started: {CANNOT_CONTINUE}")
            with self._changed:
                self._failure = copy_exception(error)
        try:
            raise error
        finally:
            del error  # see runtime/contract.py on exceptions that are kept

    def _give_back(self, number: int) -> None:
        with self._changed:
            self._idle.append(number)
            self._changed.notify_all()

    def _ending_of(self, number: int) -> Ending:
        """End a worker and return how it ended; raise ClosedError if stop() ended it."""
        with self._changed:
            self._check_usable()
            worker = self._group.workers[number]
            worker.close()
        ending = worker.end()
        with self._changed:
            del self._group.workers[number]
            self._changed.notify_all()
            self._check_usable()  # otherwise the launcher may have been stopped in between
        return ending

    def _discard(self, number: int) -> None:
        """End a worker that cannot be used any more."""
        with contextlib.suppress(ClosedError):
            self._ending_of(number)

    def _check_usable(self) -> None:
        if self._forked:
            raise ClosedError(f"{self._label}: its worker processes belong to the parent of this process")
        if self._stopped:
            raise ClosedError(f"{self._label}: its worker processes have been stopped")

    def stop(self) -> None:
        """End all work in progress: every ``run`` raises ClosedError, or returns if it is nearly done. Does not wait.

        May be called from any thread, and by the garbage collector.
        """
        self._stop(kill=False)

    def _stop(self, *, kill: bool) -> None:
        if self._forked:
            return
        with self._changed:
            self._stopped = True
            self._alarm.set()
            if kill and not self._closed:
                self._is_kept = False
                self._group.stop()
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, and wait until all processes, descriptors and memory are released, except memory of arrays in use.

        Idle processes rest, with a socket to each.
        """
        self._close(None)

    def _close(self, timeout: float | None) -> None:
        if self._forked:
            return
        self.stop()
        with self._changed:
            if not self._changed.wait_for(lambda: not self._running, timeout):
                return
            if self._closed:
                return
            self._closed = True
        self._work.close()
        self._alarm.close()
        group = self._group
        if self._is_kept and self._failure is None:
            keep(group, {*self._idle, *self._unloaded})
        else:
            group.close(timeout)
        del self._group  # objects that refer to the pool must not keep the memory of the workers alive

    @deferring
    def __del__(self) -> None:
        # The creator should close the pool; this handles the case that it did not. Killed processes end within
        # milliseconds.
        if hasattr(self, "_group"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._stop(kill=True)
                self._close(PATIENCE_SECONDS)

    def _forget(self) -> None:
        """In a forked child: release everything without telling the processes."""
        self._forked = True
        self._work.close()


def require_unix(what: str, instead: str = "") -> None:
    """Raise NotImplementedError on systems without Unix sockets, which ``what`` needs."""
    if os.name != "posix":
        raise NotImplementedError(f"{what} requires Linux or macOS{instead}")


def encoded_work(work: Work, label: str) -> Encoded:
    """Return the work, encoded by cloudpickle."""
    try:
        return encode(work, by_value=True)
    except ImportError:
        raise
    except Exception as error:
        raise TypeError(
            f"{label}: the function cannot be sent to worker processes: {error}; open files and create locks "
            'inside the function or in a module that it imports, or use executor="thread"'
        ) from error


def _close_all() -> None:
    for processes in list(_live):
        processes._stop(kill=True)  # noqa: SLF001  # its own class
    for processes in list(_live):
        try:
            processes._close(PATIENCE_SECONDS)  # noqa: SLF001  # its own class
        except subprocess.TimeoutExpired:
            continue


def _forget_all() -> None:
    for processes in list(_live):
        processes._forget()  # noqa: SLF001


atexit.register(_close_all)
register_at_fork(after_in_child=_forget_all)

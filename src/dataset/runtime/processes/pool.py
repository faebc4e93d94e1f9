"""WorkerProcesses: the worker processes of one parallel operator.

A call of ``run`` takes a worker that is idle, or starts one if there may be more, and waits for its reply. A worker is
in the hands of one call at a time, so all that is shared between threads is the lists of workers here.

How they end. ``stop`` shuts the sockets down, which wakes the calls that wait, and has the launcher kill the workers.
``close`` also waits, for the calls and for the launcher, which reaps the workers first. A process that is killed
closes its sockets, so the launcher sees the end of the user's process, however it came. A forked child closes its
copies at once and leaves everything else alone.

Where there is an owner, ``stop`` leaves the launcher and the idle workers alone, and ``close`` ends the other workers
and has the rest kept (keeping.py), for whoever is the next to do work for that owner.

A worker that dies is found by the end of its socket. The count of elements that it started says which one killed it:
that gets the error. The elements before and behind it are done by other workers.

A launcher that dies takes its workers with it. Each element that they worked on gets the error; the next worker that
is needed is started by a new launcher. What is killed before it is ready is started once more for each task; what
ends before by itself is not.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

from dataset.errors import ClosedError
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.processes.channel import EndedError
from dataset.runtime.processes.connection import SharedValue, UnreadableError, UnsendableError
from dataset.runtime.processes.encoding import Encoded, encode
from dataset.runtime.processes.exit_status import Ending, worker_died
from dataset.runtime.processes.keeping import PATIENCE_SECONDS, keep, kept
from dataset.runtime.processes.pool_key import PoolKey
from dataset.runtime.processes.worker import Worker
from dataset.runtime.processes.worker_group import WorkerGroup
from dataset.runtime.resources.exceptions import CANNOT_CONTINUE, twin_of
from dataset.runtime.resources.interrupts import deferring

Work: TypeAlias = Callable[..., list[Outcome]]

_READY, _RESTED, _NEW = "ready", "rested", "new"  # what a worker may be that is taken

_live: weakref.WeakSet[WorkerProcesses] = weakref.WeakSet()


class _Job(NamedTuple):
    inputs: Chunk
    position: int
    context: Any

    def part(self, start: int, stop: int) -> _Job:
        return _Job(self.inputs.slice(start, stop), self.position + start, self.context)


class WorkerProcesses:
    """Up to ``count`` worker processes that do ``work``.

    Args:
        work: called in a worker as ``work(inputs, position, context, started)``; returns the outcomes for the elements
            of the chunk ``inputs``, in order, exceptions standing for one element each. It calls ``started()`` just
            before each element.
        count: how many processes there may be. They are started when ``run`` needs them.
        label: how errors name the operation, such as ``map(decode) from train.py:41``.
        owner: for whom the processes are kept behind the end.
        modules: those of the library that ``work`` is from; imported once, not in every process.

    Raises:
        NotImplementedError: on systems without Unix sockets.
        ImportError: if cloudpickle is not installed.
        TypeError: if ``work`` cannot be pickled.
    """

    def __init__(
        self, work: Work, count: int, label: str, owner: PoolKey | None = None, modules: Sequence[str] = ()
    ) -> None:
        _require_unix()
        self._count = count
        self._label = label
        self._owner = None if owner is None else weakref.ref(owner)
        # Reentrant, because the garbage collector may call stop() in a thread that is inside.
        self._changed = threading.Condition(threading.RLock())  # guards all fields below; told of every change
        self._idle: list[int] = []
        self._running = 0  # calls of run()
        self._failure: Exception | None = None  # why workers cannot be started
        self._spared: set[int] = set()  # workers that had nothing to do when all was stopped
        self._stopped = self._closed = self._forked = False
        self._is_kept = True  # unless all were killed
        self._work = SharedValue(_encoded(work, label))
        try:
            self._crew = (None if owner is None else kept(owner)) or WorkerGroup(modules)
        except BaseException:
            self._work.close()
            raise
        self._unloaded = list(self._crew.workers)  # those that have rested
        _live.add(self)

    def run(self, inputs: Chunk, position: int, context: Any = None) -> list[Outcome]:
        """The outcomes for ``inputs``, the first of which is element number ``position``. Blocks; from any thread.

        Args:
            inputs: the elements.
            position: the number of the first.
            context: whatever else ``work`` wants to know.

        Raises:
            ClosedError: if the processes have been stopped.
            WorkerDiedError: if no worker lives long enough to begin.
            Exception: whatever loading ``work`` in a new process raises, or ``work`` itself.
        """
        self._check_usable()  # without the lock: in a forked child nobody may be there to release it
        with self._changed:
            self._check_usable()
            self._running += 1
        try:
            return self._outcomes(_Job(inputs, position, context))
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
        """The outcomes for the first elements: all, or those up to one that killed a worker; and how many that is.

        ``again``: a worker died before it began with this task.
        """
        number, worker = self._take(fresh=again)
        try:
            kind, value = worker.call(*job)
        except EndedError:
            return self._after_death(job, worker.started, self._ending_of(number), again=again)
        except (UnsendableError, UnreadableError) as error:
            self._give_back(number)
            return self._one_by_one(job, error.__cause__ or error), job.inputs.length
        except BaseException:  # an interrupt: the reply is still to come, and nobody will read it
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
        """A task that could not be sent, or its results not be read: each element by itself, so one fails alone."""
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
        """The outcomes of a task whose worker died after it had started so many elements, up to the last of those."""
        if not started:
            if not again:  # killed while it was idle, perhaps
                return self._attempt(job, again=True)
            raise worker_died(self._label, f"before it began with element {job.position}", ending)
        fatal = min(started, job.inputs.length) - 1
        error = worker_died(self._label, f"while it worked on element {job.position + fatal}", ending)
        before = self._outcomes(job.part(0, fatal)) if fatal else []
        return [*before, error], fatal + 1

    def _take(self, *, fresh: bool) -> tuple[int, Worker]:
        """An idle worker, or one that has just loaded the work."""
        may_be_killed = True  # once: what is killed again and again would be started for ever
        while True:
            with self._changed:
                self._check_usable()
                if self._idle and not fresh:
                    number, step = self._idle.pop(), _READY
                elif self._unloaded:
                    number, step = self._unloaded.pop(), _RESTED
                elif len(self._crew.workers) < self._count:
                    self._check_startable()
                    number, step = self._crew.start(), _NEW
                else:
                    self._changed.wait()  # for a worker that is given back or ends
                    continue
                self._check_usable()  # again, since stop() has spared this one if it came in between
                worker = self._crew.workers[number]
            if step is _READY or self._load(number, worker, has_rested=step is _RESTED, may_be_killed=may_be_killed):
                return number, worker
            may_be_killed = may_be_killed and step is _RESTED

    def _load(self, number: int, worker: Worker, *, has_rested: bool, may_be_killed: bool) -> bool:
        """Have a worker load the work; False if it had died before, or if it, or the launcher, was killed."""
        try:
            worker.load(self._work)
        except EndedError:
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
        """No worker can be started; if that lasts, remember it, so that the next tasks do not try."""
        if lasts:
            error.add_note(f"no worker process can be started: {CANNOT_CONTINUE}")
            with self._changed:
                self._failure = twin_of(error)
        try:
            raise error
        finally:
            del error  # see runtime/contract.py on exceptions that are kept

    def _give_back(self, number: int) -> None:
        with self._changed:
            self._idle.append(number)
            self._changed.notify_all()

    def _ending_of(self, number: int) -> Ending:
        """End a worker and say how it ended; raises ClosedError where that was stop()."""
        with self._changed:
            self._check_usable()
            worker = self._crew.workers[number]
            worker.close()
        ending = worker.end()
        with self._changed:
            del self._crew.workers[number]
            self._changed.notify_all()
            self._check_usable()  # else the launcher may have been stopped in between
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

    def _check_startable(self) -> None:
        if self._failure is not None:
            raise twin_of(self._failure)

    def stop(self) -> None:
        """End all work in progress: every ``run`` raises ClosedError. Does not wait.

        From any thread, and from a callback of the garbage collector.
        """
        self._stop(kill=self._owner is None or self._owner() is None)

    def _stop(self, *, kill: bool) -> None:
        if self._forked:
            return
        with self._changed:
            if not self._stopped:
                self._stopped = True
                self._spared = {*self._idle, *self._unloaded}
                for number, worker in self._crew.workers.items():
                    if number not in self._spared:
                        worker.shut_down()
            if kill and not self._closed:
                self._is_kept = False
                self._crew.stop()
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, and wait until nothing is left: no process, no descriptor, no memory but what arrays in use lie in.

        Where there is an owner, idle processes may be left, and a socket to each.
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
        crew = self._crew
        owner = None if self._owner is None else self._owner()
        if owner is None or not self._is_kept or self._failure is not None:
            crew.close(timeout)
        else:
            keep(crew, self._spared, owner)
        del self._crew  # whoever keeps this object keeps no memory of theirs

    @deferring
    def __del__(self) -> None:
        # Whoever made it closes it. This is for the case that nobody did; killed processes end within milliseconds.
        if hasattr(self, "_crew"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._stop(kill=True)
                self._close(PATIENCE_SECONDS)

    def _forget(self) -> None:
        """In a forked child: let go of everything, without a word to the processes."""
        self._forked = True
        self._work.close()


def _require_unix() -> None:
    if os.name != "posix":
        raise NotImplementedError(
            'executor="process" needs Linux or macOS; use executor="thread", which this system has, too'
        )


def _encoded(work: Work, label: str) -> Encoded:
    """The work, by cloudpickle."""
    try:
        return encode(work, by_value=True)
    except ImportError:
        raise
    except Exception as error:
        raise TypeError(
            f"{label}: the function cannot be sent to worker processes: {error}; open files, locks and their like "
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
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forget_all)

"""Main loop of the launcher: the process that imports the library once, forks the workers, and reaps them.

Importing NumPy and the required part of the library takes a sixth of a second of CPU time; forking a process that has
done so takes milliseconds. The launcher is a fresh interpreter with one thread, so forking is safe there, unlike in the
user's process. It executes the parent's commands one at a time:

    "start", number, with the worker's socket and started count     no reply
    "end", number          kill the worker if it still runs; the reply is the number, and the result of waitpid, or why
                           it never started
    "rest", seconds        reply with 0 and None, then end unless another command arrives within this many seconds
    "wake", 0              reply with 0 and None

When the parent ends, in whatever way, the socket ends. The launcher then kills the remaining workers and ends.

On macOS, system libraries do not survive a fork, so each worker is a fresh interpreter there.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import sys
from collections.abc import Callable
from typing import NoReturn

from dataset.runtime.processes import worker_main
from dataset.runtime.processes.bootstrap import command
from dataset.runtime.processes.transport.channel import Channel, EndedError, close_all
from dataset.runtime.processes.transport.shared_memory import StartedCount
from dataset.world import signal, socket

_STARTS_AFRESH = sys.platform == "darwin"
_PR_SET_PDEATHSIG = 1  # from Linux's <sys/prctl.h>


def main(descriptor: int) -> None:
    """Run the launcher."""
    # Until here, these signals end this process. From now on there may be workers, which must be reaped.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # the workers' collectors then do not touch the shared pages, so they stay shared
    control = Channel(socket.socket(fileno=descriptor))
    workers: dict[int, int | str] = {}  # number -> process id, or why it was not started
    try:
        while True:
            _obey(control, workers)
    except EndedError:
        pass
    finally:
        for worker in workers.values():
            _end(worker)
        os.killpg(0, signal.SIGKILL)  # kills this process, too, without interpreter shutdown


def _obey(control: Channel, workers: dict[int, int | str]) -> None:
    message, descriptors = control.receive()
    verb, number = pickle.loads(message)
    if verb == "end":
        control.send(pickle.dumps((number, _end(workers.pop(number, "it has been ended")))))
        return
    if verb in {"rest", "wake"}:
        control.send(pickle.dumps((0, None)))
        if verb == "rest" and not control.has_more(within=number):
            raise EndedError
        return
    try:
        workers[number] = _start(*descriptors)
    except OSError as error:
        workers[number] = f"no process could be started: {error}"
    finally:
        close_all(descriptors)


def _end(worker: int | str) -> int | str:
    """Kill and reap a worker; return its exit code as in ``subprocess``: negative for a signal."""
    if isinstance(worker, str):
        return worker
    os.kill(worker, signal.SIGKILL)  # no effect on a process that has ended and is not reaped yet
    with contextlib.suppress(OSError):  # its group is empty
        os.killpg(worker, signal.SIGKILL)  # the processes it has started
    _, status = os.waitpid(worker, 0)
    return os.waitstatus_to_exitcode(status)


def _start(end: int, started: int) -> int:
    launcher = os.getpid()
    worker = os.fork()
    if not worker:
        _leave(lambda: _be_worker(launcher, end, started))
    _lead_group(worker)  # in both processes, since either may need it first
    return worker


def _be_worker(launcher: int, end: int, started: int) -> None:
    _lead_group(0)
    _die_with(launcher)
    if _STARTS_AFRESH:
        _start_afresh(end, started)
    _work(end, started)


def _lead_group(worker: int) -> None:
    """Put a worker (0 for this process) and the processes it will start into a process group of its own."""
    with contextlib.suppress(OSError):  # it has called exec, and so has done this itself
        os.setpgid(worker, worker)


def _leave(run: Callable[[], None]) -> NoReturn:
    """Run a function, then end this process without returning to the code of the process it was forked from."""
    code = 1
    try:
        run()
        code = 0
    except BaseException:  # noqa: BLE001  # like the top level of a program
        sys.excepthook(*sys.exc_info())
    finally:
        worker_main.flush()
        os._exit(code)


def _die_with(launcher: int) -> None:
    """Make the system kill this process when the launcher is killed, if the system supports it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:  # the launcher ended before prctl
            os._exit(1)


def _start_afresh(end: int, started: int) -> NoReturn:
    for descriptor in (end, started):
        os.set_inheritable(descriptor, True)
    line = command(__name__, "fresh_worker", [end, started])
    os.execv(line[0], line)


def fresh_worker(end: int, started: int) -> None:
    """Run a worker in a fresh interpreter."""
    for descriptor in (end, started):
        os.set_inheritable(descriptor, False)
    _leave(lambda: _work(end, started))


def _work(end: int, started: int) -> None:
    count = StartedCount(started)
    os.close(started)
    worker_main.main(socket.socket(fileno=end), count)

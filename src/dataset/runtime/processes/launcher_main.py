"""What runs in the launcher: the process that imports the library once, forks the workers, and reaps them.

Importing NumPy and what is needed of the library takes a sixth of a second of computing. A fork of a process that has
done so takes milliseconds. The launcher is a fresh interpreter with one thread, so forking is safe there, which it is
not in the user's process. It does one thing after another, as the parent tells it:

    "start", number, with the worker's socket and started count     no reply
    "end", number          kill the worker if it still runs; the reply is the number, and what waitpid says, or why it
                           never started
    "rest", seconds        reply with 0 and None, then end if there is no other command within so many seconds
    "wake", 0              reply with 0 and None

When the parent has gone, by whichever way, the socket ends; then the launcher kills what is left and ends.

On macOS system libraries do not survive a fork, so a worker is a fresh interpreter there.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

from dataset.runtime.processes import worker_main
from dataset.runtime.processes.bootstrap import command
from dataset.runtime.processes.channel import Channel, EndedError, close_all
from dataset.runtime.processes.memory import StartedCount

_STARTS_AFRESH = sys.platform == "darwin"
_PR_SET_PDEATHSIG = 1  # from Linux's <sys/prctl.h>


def main(descriptor: int) -> None:
    """Be the launcher."""
    # Until here SIGTERM ends this process. From now on there may be workers, which have to be reaped.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    gc.freeze()  # the workers' collectors leave what is shared with them alone, so it stays shared
    control = Channel(socket.socket(fileno=descriptor))
    workers: dict[int, int | str] = {}  # number -> process id, or why there is none
    try:
        while True:
            _obey(control, workers)
    except EndedError:
        pass
    finally:
        for worker in workers.values():
            _end(worker)
        os.killpg(0, signal.SIGKILL)  # this process, without the rest of an interpreter's end


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
    """Kill and reap; the exit code as in ``subprocess``: negative for a signal."""
    if isinstance(worker, str):
        return worker
    os.kill(worker, signal.SIGKILL)  # changes nothing for one that has ended and waits to be reaped
    with contextlib.suppress(OSError):  # there is nobody else in its group
        os.killpg(worker, signal.SIGKILL)  # whatever it has started
    _, status = os.waitpid(worker, 0)
    return os.waitstatus_to_exitcode(status)


def _start(end: int, started: int) -> int:
    launcher = os.getpid()
    worker = os.fork()
    if not worker:
        _leave(lambda: _be_worker(launcher, end, started))
    _lead_group(worker)  # here, too, since either process may be the first to need it
    return worker


def _be_worker(launcher: int, end: int, started: int) -> None:
    _lead_group(0)
    _die_with(launcher)
    if _STARTS_AFRESH:
        _start_afresh(end, started)
    _work(end, started)


def _lead_group(worker: int) -> None:
    """Put a worker, 0 for this process, into a process group of its own: what it starts will be there, too."""
    with contextlib.suppress(OSError):  # it has replaced its program, and so has done it itself
        os.setpgid(worker, worker)


def _leave(run: Callable[[], None]) -> NoReturn:
    """Run, then end this process without coming back into the code of the one it was forked from."""
    code = 1
    try:
        run()
        code = 0
    except BaseException:  # noqa: BLE001  # as at the top of a program
        sys.excepthook(*sys.exc_info())
    finally:
        worker_main.flush()
        os._exit(code)


def _die_with(launcher: int) -> None:
    """Have the system kill this process when the launcher is killed, where the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:  # it was before that
            os._exit(1)


def _start_afresh(end: int, started: int) -> NoReturn:
    for descriptor in (end, started):
        os.set_inheritable(descriptor, True)
    line = command(__name__, "fresh_worker", [end, started])
    os.execv(line[0], line)


def fresh_worker(end: int, started: int) -> None:
    """Be a worker in an interpreter of its own."""
    for descriptor in (end, started):
        os.set_inheritable(descriptor, False)
    _leave(lambda: _work(end, started))


def _work(end: int, started: int) -> None:
    count = StartedCount(started)
    os.close(started)
    worker_main.main(socket.socket(fileno=end), count)

"""What runs in a worker process: load the work, then do it for one task after another.

It is sent work (something to call), tasks (tuples), and None, when it shall forget the work because the iteration is
over. The replies are pairs of a word and a value:

    "ready", process id        the work has been loaded, or forgotten
    "outcomes", list           of a task: chunks, and Failures in the places of elements
    "raised", Failure          the work itself raised, such as KeyboardInterrupt or SystemExit
    "unreadable", Failure      what was sent could not be unpickled here
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.processes.channel import Channel, EndedError
from dataset.runtime.processes.connection import Connection, UnreadableError, UnsendableError
from dataset.runtime.processes.encoding import encode
from dataset.runtime.processes.failures import Failure
from dataset.runtime.processes.memory import StartedCount


def main(end: socket.socket, started: StartedCount) -> None:
    """Be a worker until the parent has gone, or does not want one any more."""
    _set_up()
    connection = Connection(Channel(end))
    worker = _Worker(connection, started.incrementer())
    with contextlib.closing(connection), contextlib.suppress(EndedError):
        while True:
            worker.heed()


def _set_up() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not faulthandler.is_enabled() and sys.stderr is not None:
        faulthandler.enable()  # a crash in native code shows the Python line that it came from
    np.random.seed()  # noqa: NPY002  # or all workers, being forks of one process, would draw the same numbers


class _Worker:
    def __init__(self, connection: Connection, started: Callable[[], None]) -> None:
        self._connection = connection
        self._started = started
        self._work: Callable[..., Any] | None = None

    def heed(self) -> None:
        """Do what the next message wants."""
        try:
            message = self._connection.receive()
        except UnreadableError as error:
            self._connection.send(("unreadable", Failure.of(error.__cause__ or error)))
            return
        if isinstance(message, tuple):
            inputs, position, context = message
            del message
            reply = self._done(inputs, position, context)
            del inputs  # its memory goes back with the reply
            flush()  # what was printed stands before the results
            _reply(self._connection, reply)
            return
        self._work = message
        if message is None:
            self._connection.reset()
            gc.collect()
        self._connection.send(("ready", os.getpid()))

    def _done(self, inputs: Chunk, position: int, context: Any) -> tuple[str, Any]:
        assert self._work is not None  # it comes first
        try:
            return "outcomes", [_sent(outcome) for outcome in self._work(inputs, position, context, self._started)]
        except BaseException as error:  # noqa: BLE001  # raised again in the parent
            return "raised", Failure.of(error)


def _reply(connection: Connection, reply: tuple[str, Any]) -> None:
    try:
        connection.send(reply)
    except UnsendableError:
        kind, outcomes = reply
        assert kind == "outcomes"  # Failures can always be sent
        connection.send((kind, [part for outcome in outcomes for part in _sendable(outcome)]))
    except OSError as error:  # no memory, no descriptor
        connection.send(("raised", Failure.of(error)))


def _sent(outcome: Outcome) -> Chunk | Failure:
    return Failure.of(outcome) if isinstance(outcome, BaseException) else outcome


def _sendable(outcome: Chunk | Failure) -> list[Chunk | Failure]:
    """The elements one by one, with failures in the places of those that cannot be pickled."""
    if isinstance(outcome, Failure):
        return [outcome]
    return [_sendable_element(outcome.slice(index, index + 1)) for index in range(outcome.length)]


def _sendable_element(element: Chunk) -> Chunk | Failure:
    try:
        encode(element)
    except Exception as error:  # noqa: BLE001  # whatever the user's own code for pickling raises
        problem = TypeError(f"the result cannot be sent from a worker process: {error}")
        problem.__cause__ = error
        return Failure.of(problem)
    return element


def flush() -> None:
    """Write out what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed by the user, or replaced by something else
            stream.flush()

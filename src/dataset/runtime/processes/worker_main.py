"""Main loop of a worker process: load the work, then run it for one task after another.

The parent sends work (a callable), tasks (tuples), and, if the iteration has ended, a number: the worker must forget
the work, and end if it gets no other within this many seconds. The replies are pairs of a word and a value:

    "ready", seconds           the work has been loaded, or forgotten; the CPU time of the process so far
    "outcomes", list           of a task: chunks, and Failures in the places of elements
    "raised", Failure          the work itself raised, such as KeyboardInterrupt or SystemExit
    "unreadable", Failure      the message could not be unpickled here
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.processes.resting_groups import end_resting
from dataset.runtime.processes.transport.channel import Channel, EndedError
from dataset.runtime.processes.transport.connection import Connection, UnreadableError, UnsendableError
from dataset.runtime.processes.transport.encoding import encode
from dataset.runtime.processes.transport.sent_exceptions import Failure
from dataset.runtime.processes.transport.shared_memory import StartedCount
from dataset.runtime.resources.memory import keep_freed_memory
from dataset.world import signal, socket, time


def main(end: socket.socket, started: StartedCount) -> None:
    """Run a worker until the parent has ended or closes the connection."""
    _set_up()
    connection = Connection(Channel(end))
    worker = _Worker(connection, started.incrementer())
    with contextlib.closing(connection), contextlib.suppress(EndedError):
        while True:
            worker.heed()


def _set_up() -> None:
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not faulthandler.is_enabled() and sys.stderr is not None:
        faulthandler.enable()  # a crash in native code then prints the Python stack
    np.random.seed()  # noqa: NPY002  # workers are forks of one process and would all draw the same numbers


class _Worker:
    def __init__(self, connection: Connection, started: Callable[[], None]) -> None:
        self._connection = connection
        self._started = started
        self._work: Callable[..., Any] | None = None
        self._frozen_modules = 0  # how many modules there were at the last freeze

    def heed(self) -> None:
        """Process the next message."""
        try:
            message = self._connection.receive()
        except UnreadableError as error:
            self._connection.send(("unreadable", Failure.of(error.__cause__ or error)))
            return
        if isinstance(message, tuple):
            inputs, position, context = message
            del message
            reply = self._done(inputs, position, context)
            del inputs  # its memory is returned with the reply
            flush()  # printed text appears before the results
            _reply(self._connection, reply)
            return
        rests = isinstance(message, float)
        self._work = None if rests else message
        if rests:
            self._connection.reset()
            self._collect()
            end_resting()  # processes of pipelines that the work has run
        self._connection.send(("ready", time.process_time()))
        if rests and not self._connection.has_more(within=message):
            raise EndedError

    def _collect(self) -> None:
        """Collect what the work has left, and freeze the modules that were imported for it.

        A collection that includes the modules of torch takes 0.2 s, for which each further iteration would wait.
        """
        gc.collect()
        if len(sys.modules) != self._frozen_modules:
            gc.freeze()
            self._frozen_modules = len(sys.modules)

    def _done(self, inputs: Chunk, position: int, context: Any) -> tuple[str, Any]:
        assert self._work is not None  # the work is sent first
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
    except OSError as error:  # out of memory or descriptors
        connection.send(("raised", Failure.of(error)))


def _sent(outcome: Outcome) -> Chunk | Failure:
    return Failure.of(outcome) if isinstance(outcome, BaseException) else outcome


def _sendable(outcome: Any) -> list[Any]:
    """Return the elements one by one, with failures in the places of those that cannot be pickled."""
    if not isinstance(outcome, Chunk):
        return [outcome]
    return [_sendable_element(outcome.slice(index, index + 1)) for index in range(outcome.length)]


def _sendable_element(element: Chunk) -> Chunk | Failure:
    try:
        encode(element)
    except Exception as error:  # noqa: BLE001  # the user's pickling code may raise anything
        problem = TypeError(f"the result cannot be sent from a worker process: {error}")
        problem.__cause__ = error
        return Failure.of(problem)
    return element


def flush() -> None:
    """Flush stdout and stderr."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed or replaced by the user
            stream.flush()

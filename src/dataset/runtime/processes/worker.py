"""Worker handle: a worker process as seen from the user's process. The worker runs worker_main.py."""

from __future__ import annotations

import os
from typing import Any

from dataset.runtime.processes.exit_status import Ending
from dataset.runtime.processes.launcher import Launcher
from dataset.runtime.processes.transport.channel import EndedError, new_pair
from dataset.runtime.processes.transport.connection import Connection, SharedValue
from dataset.runtime.processes.transport.sent_exceptions import Failure
from dataset.runtime.processes.transport.shared_memory import StartedCount, allocate


class HangingError(Exception):
    """Internal: the process neither replies nor reports that it has started an element."""


class Worker:
    """Handle of one worker process. Used by one thread at a time, except for ``shut_down``."""

    def __init__(self, launcher: Launcher, number: int) -> None:
        self._launcher = launcher
        self._number = number
        counter = allocate(StartedCount.SIZE)
        try:
            self._started = StartedCount(counter)
            with new_pair() as (channel, descriptor):
                launcher.start(number, [descriptor, counter])
        finally:
            os.close(counter)
        self._connection = Connection(channel)
        self._rests = False  # if true, the reply to rest() was not received yet

    def load(self, work: SharedValue, patience: float | None = None) -> None:
        """Wait until the process has started and loaded ``work``; raise what loading it raised.

        Args:
            work: the work.
            patience: how many seconds to wait for a sign of life; None for no limit.

        Raises:
            EndedError: if the process has died.
            HangingError: if it shows no sign of life.
        """
        if self._rests:
            self._await(patience)
            self._receive_ready()
            self._rests = False
        self._connection.send_shared(work)
        self._await(patience)
        self._receive_ready()

    def _await(self, patience: float | None) -> None:
        """Wait for the reply while the process starts elements."""
        before = -1
        while patience is not None and not self._connection.has_more(patience):
            if self.started == before:
                raise HangingError
            before = self.started

    def _receive_ready(self) -> None:
        kind, value = self._connection.receive()
        if kind != "ready":
            raise value.exception()

    def rest(self) -> bool:
        """Make the idle process forget its work, without waiting for that; return False if it has died."""
        if not self._rests:
            try:
                self._connection.send(None)
            except EndedError:
                return False
            self._connection.reset()
            self._rests = True
        return True

    def call(self, inputs: Any, position: int, context: Any, patience: float | None = None) -> tuple[str, Any]:
        """Run a task and wait for its reply, which is documented in worker_main.py.

        Args:
            inputs: the first argument of the work, usually a chunk.
            position: the second.
            context: the third.
            patience: how many seconds to wait for the reply or the next started element; None for no limit.

        Raises:
            HangingError: if the process is not seen to start an element within ``patience``, twice.
            UnsendableError: if ``inputs`` cannot be pickled.
            UnreadableError: if the results cannot be unpickled.
            EndedError: if the process has died.
        """
        self._started.reset()
        self._connection.send((inputs, position, context))
        self._await(patience)
        kind, value = self._connection.receive()
        if kind == "outcomes":
            return kind, [part.exception() if isinstance(part, Failure) else part for part in value]
        return kind, value.exception()

    @property
    def started(self) -> int:
        """How many elements of the last task were started; also available after the death of the process."""
        return self._started.value

    def end(self) -> Ending:
        """End the process if it is still running, and return how it ended."""
        try:
            answer = self._launcher.end(self._number)
        except EndedError:
            return Ending(launcher_code=self._launcher.exit_code)
        return Ending(reason=answer) if isinstance(answer, str) else Ending(answer)

    def shut_down(self) -> None:
        """Make ``load`` and ``call`` raise EndedError. May be called from any thread."""
        self._connection.shut_down()

    def close(self) -> None:
        """Release the socket and the memory, even if this object stays alive, for example in an exception's frames."""
        self._connection.close()
        self._started.close()

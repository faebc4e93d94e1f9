"""Worker handle: a worker process as seen from the user's process. The worker runs worker_main.py."""

from __future__ import annotations

import os
from typing import Any

from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.processes.exit_status import Ending
from dataset.runtime.processes.launcher import Launcher
from dataset.runtime.processes.transport.channel import EndedError, new_pair
from dataset.runtime.processes.transport.connection import Connection, SharedValue
from dataset.runtime.processes.transport.sent_exceptions import Failure
from dataset.runtime.processes.transport.shared_memory import StartedCount, allocate


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

    def load(self, work: SharedValue) -> None:
        """Wait until the process has started and loaded ``work``; raise what loading it raised.

        Raises:
            EndedError: if the process has died.
        """
        if self._rests:
            self._receive_ready()
            self._rests = False
        self._connection.send_shared(work)
        self._receive_ready()

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

    def call(self, inputs: Chunk, position: int, context: Any) -> tuple[str, Any]:
        """Run a task and wait for its reply, which is documented in worker_main.py.

        Raises:
            UnsendableError: if ``inputs`` cannot be pickled.
            UnreadableError: if the results cannot be unpickled.
            EndedError: if the process has died.
        """
        self._started.reset()
        self._connection.send((inputs, position, context))
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

"""Worker handle: a worker process as seen from the user's process. The worker runs worker_main.py."""

from __future__ import annotations

import os
from typing import Any

from dataset.runtime.processes.exit_status import Ending
from dataset.runtime.processes.launcher import Launcher
from dataset.runtime.processes.transport.channel import Alarm, EndedError, new_pair
from dataset.runtime.processes.transport.connection import Connection, SharedValue
from dataset.runtime.processes.transport.sent_exceptions import Failure
from dataset.runtime.processes.transport.shared_memory import StartedCount, allocate
from dataset.runtime.resources.coordinator import PATIENCE_SECONDS


class HangingError(Exception):
    """Internal: the process neither replies nor reports that it has started an element, or is not waited for."""


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
        self._alarm: Alarm | None = None
        self._replacing_seconds = 0.0  # what starting it has cost, without the launcher
        self._rests = False  # if true, the reply to rest() was not received yet

    def load(self, work: SharedValue, patience: float | None = None, alarm: Alarm | None = None) -> None:
        """Wait until the process has started and loaded ``work``; raise what loading it raised.

        Args:
            work: the work.
            patience: how many seconds to wait for a sign of life; None for no limit.
            alarm: after it, no reply is waited for longer than another process would take to start.

        Raises:
            EndedError: if the process has died.
            HangingError: if it shows no sign of life, or the wait after the alarm is over.
        """
        self._alarm = alarm
        if self._rests:
            self._receive_ready(patience)
            self._rests = False
        self._connection.send_shared(work)
        self._receive_ready(patience)

    def _await(self, patience: float | None) -> None:
        """Wait for the reply while the process starts elements."""
        before = -1
        while not self._connection.has_more(patience, self._alarm):
            if self._alarm is not None and self._alarm.is_set:
                if self._connection.has_more(self._replacing_seconds):
                    return
                raise HangingError
            if self.started == before:
                raise HangingError
            before = self.started

    def _receive_ready(self, patience: float | None) -> None:
        self._await(patience)
        kind, value = self._connection.receive()
        if kind != "ready":
            raise value.exception()
        self._replacing_seconds = self._replacing_seconds or min(value, PATIENCE_SECONDS)

    def rest(self, seconds: float) -> bool:
        """Make the idle process forget its work, and end after ``seconds`` without other work, unless it already rests.

        Does not wait. Return False if it has ended.
        """
        if self._rests:
            return not self._connection.has_ended
        try:
            self._connection.send(seconds)
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
            HangingError: if the process is not seen to start an element within ``patience``, twice, or as in ``load``.
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

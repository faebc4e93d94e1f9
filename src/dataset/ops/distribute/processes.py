"""Engine of distribute() with worker processes on this machine, over runtime/processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dataset.ops.distribute.engine import Start, StoppableEngine, WorkerLostError, received
from dataset.ops.distribute.share_runner import ShareRunner
from dataset.runtime.processes.exit_status import Ending, ending_words
from dataset.runtime.processes.resting_groups import keep, take
from dataset.runtime.processes.transport.channel import Alarm, EndedError
from dataset.runtime.processes.transport.connection import SharedValue
from dataset.runtime.processes.worker import HangingError, Worker
from dataset.runtime.processes.worker_processes import encoded_work, require_unix

_LOAD_PATIENCE = 60.0
"""How long a new process may take to import modules and to load the plan, in seconds."""


class ProcessEngine(StoppableEngine):
    """Starts processes that run shares.

    Args:
        runner: what the processes run.
        label: names the operation in errors.
        patience: the heartbeat deadline in seconds.
    """

    def __init__(self, runner: ShareRunner, label: str, patience: float) -> None:
        super().__init__(label, patience)
        require_unix('distribute(engine="processes")')
        with contextlib.ExitStack() as undo:
            self._work = SharedValue(encoded_work(runner, label))
            undo.callback(self._work.close)
            self.alarm = Alarm()
            undo.callback(self.alarm.close)
            self._group = take(runner.division.workers, runner.modules)
            undo.pop_all()
        self._resting = list(self._group.workers)

    def start(self) -> ProcessWorker:
        while True:
            with self.lock:
                self.check_usable()
                has_rested = bool(self._resting)
                number = self._resting.pop() if has_rested else self._group.start()
                worker = self._group.workers[number]
            try:
                return ProcessWorker(self, number, worker, self._work)
            except WorkerLostError:
                if not has_rested:  # otherwise it may have been killed while it rested
                    raise

    def ended(self, number: int, worker: Worker) -> Ending:
        """End a worker, and return how it ended."""
        with self.lock:
            self._group.workers.pop(number, None)
        worker.close()
        ending = worker.end()
        self.check_usable()
        return ending

    def stop(self) -> None:
        self.stopped = True
        self.alarm.set()

    def close(self) -> None:
        self.stop()
        self._work.close()
        self.alarm.close()
        keep(self._group, self._group.workers.keys())


class ProcessWorker:
    """One worker process. The constructor waits until it has loaded the runner, and raises as ``call`` does."""

    node = ""

    def __init__(self, engine: ProcessEngine, number: int, worker: Worker, work: SharedValue) -> None:
        self._engine = engine
        self._number = number
        self._worker = worker
        with self._calling("loaded the plan"):
            worker.load(work, _LOAD_PATIENCE, engine.alarm)

    def call(self, message: Start | int) -> list[Any]:
        with self._calling("worked"):
            outcomes: list[Any] = received(self, self._worker.call(message, 0, None, self._engine.patience)[1])
            return outcomes

    @contextlib.contextmanager
    def _calling(self, doing: str) -> Iterator[None]:
        """Surround a call of the worker."""
        engine = self._engine
        engine.check_usable()
        try:
            yield
        except EndedError:
            ending = engine.ended(self._number, self._worker)
            code = ending.code if ending.launcher_code is None else ending.launcher_code
            how = ending.reason if code is None else ending_words(code)
            raise WorkerLostError(f"{how} while it {doing}", code) from None
        except HangingError:
            self.end()
            raise WorkerLostError(f"gave no sign of life for {engine.patience:g} s while it {doing}") from None

    def end(self) -> None:
        self._engine.ended(self._number, self._worker)

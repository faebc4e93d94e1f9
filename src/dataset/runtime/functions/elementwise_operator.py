"""Elementwise operators: the base class of map, filter and others that call a function for each element."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

from dataset.runtime.chunks.chunk import Outcome
from dataset.runtime.functions.remote_twin import RemoteCalls
from dataset.runtime.functions.replay_skip import ReplaySkip
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.parallel.row_writer import RowWriter
from dataset.runtime.parallel.tasks import PushedInput, Task, Worker, outcomes_of


class ElementwiseOperator(ReplaySkip):
    """Operator that calls a function for each element; ``finish`` of the subclass turns the results into outputs.

    Its work divides into tasks. If it is ``one_to_one``, several workers may run them (parallel/pool.py), in threads or
    in processes (remote_twin.py).
    """

    _remote: RemoteCalls | None = None

    def next_task(self, n: int) -> Task | None:
        if self.outbox:
            return Task(None, self.position, len(self.outbox), self.outbox.take_all())
        inputs = self.next_inputs(n)
        if inputs is None:
            return None
        task = Task(inputs, self.position, inputs.length)
        self.position += inputs.length
        return task

    def worker(self) -> Worker:
        copied = self.worker_copy()
        return lambda task: copied.do(task, self.task_context())

    def remote_worker(self) -> Worker:
        remote = self._remote
        assert remote is not None  # open_processes has been called
        return lambda task: remote.run(task, self.task_context())

    def worker_copy(self) -> Self:
        """Return a copy of this operator for a worker; its inputs are pushed to it."""
        copied = copy.copy(self)
        copied.source, copied.outbox = PushedInput(), OutcomeQueue()
        copied.ahead = None
        copied.write_into_batch = False  # the parallel operator writes into batches
        copied._writer = RowWriter()  # noqa: SLF001  # its own class
        copied._remote = None  # noqa: SLF001  # its own class
        return copied

    def task_context(self) -> Any:
        """Return what a worker must know about the elements computed so far."""
        return None

    def begin(self, task: Task, context: Any) -> None:  # noqa: ARG002  # used by subclasses
        """Prepare for a task."""
        self._begin(task.position)

    def push(self, task: Task) -> None:
        """Make the inputs of a task the next inputs; only in a worker's copy."""
        assert isinstance(self.source, PushedInput)
        assert task.inputs is not None  # or it would have failed before
        self.source.push(task.inputs)

    def do(self, task: Task, context: Any) -> list[Outcome]:
        """Call the function for the inputs of a task and return the outcomes."""
        self.push(task)
        self.begin(task, context)
        self._writer.begin(task.block, task.position - task.row)
        return outcomes_of(self.pull, task.count, self._skip)

    def _skip(self) -> list[Outcome]:
        """Skip the element whose function raised KeyboardInterrupt or the like; return the outcomes before it."""
        before = self.outbox.take_all()
        self._todo.give(1)
        self.position += 1
        return before

    def open_processes(self, count: int) -> None:
        self._remote = RemoteCalls(self.worker_copy(), self.node, count)

    def interrupt_tasks(self) -> None:
        if self._remote is not None:
            self._remote.stop()

    def count_calls(self, started: Callable[[], None]) -> None:
        """Call ``started`` before each call of the function."""

        def counting(function: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*given: Any) -> Any:
                started()
                return function(*given)

            return counted

        self.wrap(counting)

    def close(self) -> None:
        if self._remote is not None:
            self._remote.close()
        super().close()

"""Remote twin: the part of an elementwise operator that runs its tasks in worker processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dataset.plan.node import Node
from dataset.runtime import processes
from dataset.runtime.chunks.chunk import Chunk, Outcome, descended
from dataset.runtime.parallel.blocks import Block
from dataset.runtime.parallel.tasks import Task
from dataset.runtime.resources.exceptions import concerns_iteration, copy_exception


class _Operator(Protocol):
    """The methods of an elementwise operator that a worker process uses."""

    node: Any

    def count_calls(self, started: Callable[[], None]) -> None: ...
    def do(self, task: Task, context: Any) -> list[Outcome]: ...


class RemoteCalls:
    """Worker processes of an elementwise operator.

    Args:
        operator: a copy of the operator, which is sent to the workers.
        node: the operator's node.
        count: the maximum number of processes.
    """

    def __init__(self, operator: _Operator, node: Node, count: int) -> None:
        modules = [type(operator).__module__]
        self._processes = processes.WorkerProcesses(RemoteTwin(operator, node), count, str(node), modules)

    def run(self, task: Task, context: Any) -> list[Outcome]:
        """Run a task in a worker process and return its outcomes; raises only errors of the whole iteration."""
        assert task.inputs is not None  # or it would have failed before
        try:
            outcomes = self._processes.run(task.inputs, task.position, context)
            return outcomes if task.inputs.lineage is None else _descended(outcomes, task.inputs)
        except Exception as error:
            if concerns_iteration(error):
                raise
            return [error, *(copy_exception(error) for _ in range(1, task.count))]
        except BaseException as error:  # noqa: BLE001  # such as SystemExit in the function
            return [error]

    def start(self) -> None:
        """Start a process before a task needs it."""
        self._processes.start()

    def stop(self) -> None:
        """Make the tasks in progress end soon. May be called from any thread."""
        self._processes.stop()

    def close(self) -> None:
        """End the work. Idle processes rest."""
        self._processes.close()


def _descended(outcomes: list[Outcome], inputs: Chunk) -> list[Outcome]:
    """Return the outcomes of a task with the lineage of its inputs, which processes do not send."""
    start = 0
    for outcome in outcomes:
        stop = start + (outcome.length if isinstance(outcome, Chunk) else 1)
        if isinstance(outcome, Chunk):
            descended(outcome, inputs.slice(start, stop))
        start = stop
    return outcomes


class NodeLabel:
    """Label of a node for messages in a worker. The node itself is not sent: it holds the plan, which may hold data."""

    def __init__(self, node: Node) -> None:
        self._label, self._text = node.label(), str(node)

    def label(self) -> str:
        """Return the label of the node."""
        return self._label

    def __str__(self) -> str:
        return self._text


class RemoteTwin:
    """Remote twin of an elementwise operator: runs its tasks in a worker process."""

    def __init__(self, operator: _Operator, node: Node) -> None:
        operator.node = NodeLabel(node)  # a worker uses nothing else of the node
        self._operator = operator
        self._counts = False

    def __call__(self, inputs: Chunk, position: int, context: Any, started: Callable[[], None]) -> list[Outcome]:
        if not self._counts:
            self._operator.count_calls(started)
            self._counts = True
        outcomes = self._operator.do(Task(inputs, position, inputs.length), context)
        # One array for all elements is sent faster than many arrays.
        return Block(inputs.length).write_all(0, outcomes) if inputs.length > 1 else outcomes

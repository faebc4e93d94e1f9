"""Node and operator of from_queue(queue): the elements that other threads or processes put into a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.errors import DataLossError, SpecError, StateError
from dataset.ops.sources.queue_readers import (
    AsyncQueueReader,
    ElementQueueReader,
    ProcessQueueReader,
    QueueReader,
    SimpleQueueReader,
    ThreadQueueReader,
    running_loop,
)
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.plan.spec import flatten_spec
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.chunks.ownership import own
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.signature_rows import SignatureRows
from dataset.runtime.parallel.buffered_operator import BufferedOperator
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.position import Position
from dataset.runtime.resources.exceptions import with_location
from dataset.runtime.state.saved_chunks import load_pending
from dataset.world import multiprocessing
from dataset.world import queue as thread_queues


@dataclass(frozen=True, eq=False)
class FromQueue(Node, pure=False, stable=False):
    """Source node over the elements of a queue. Each is taken once, by one of its readers."""

    op: ClassVar[str] = "from_queue"
    queue: Any
    signature: Any = None
    open_log: Callable[[Callable[[Any], list[Outcome]]], Any] | None = field(default=None, repr=False)
    """Opens the log of what was taken (io/elements/element_log.py), if there is one."""
    loop: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.signature is None:
            self._set("signature", getattr(self.queue, "element_spec", None))
        if self.signature is not None:
            flatten_spec(self.signature)
        if _kind_of_reader(self.queue) is AsyncQueueReader:
            self._set("loop", running_loop())

    def reader(self) -> QueueReader:
        """Return a new reader of the queue."""
        kind = _kind_of_reader(self.queue)
        return kind(self.queue) if self.loop is None else AsyncQueueReader(self.queue, self.loop)

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(static_spec=self.signature is not None)

    def parameters(self) -> dict[str, Any]:
        return {"queue": self.queue, "signature": repr(self.signature), "is_logged": self.open_log is not None}

    def fingerprint_fields(self) -> Any:
        return repr(self.signature)

    def _element_spec(self) -> Any:
        if self.signature is None:
            raise SpecError(f"{self}: the spec of elements that are yet to come is unknown; pass element_spec")
        return self.signature

    def label(self) -> str:
        return f"{self.op}({type(self.queue).__name__})"

    def lower(self, context: ExecutionContext) -> Operator:
        if self.open_log is not None:
            return LoggedQueueOperator(self, context)
        context.mark_not_replayable()
        return FromQueueOperator(self, context)


def _kind_of_reader(queue: Any) -> type[QueueReader]:
    if hasattr(queue, "take_available"):
        return ElementQueueReader
    if isinstance(queue, thread_queues.Queue):
        return ThreadQueueReader
    if isinstance(queue, thread_queues.SimpleQueue):
        return SimpleQueueReader
    if isinstance(queue, multiprocessing.queues.Queue | multiprocessing.queues.SimpleQueue):
        return ProcessQueueReader
    if isinstance(queue, asyncio.Queue):
        return AsyncQueueReader
    raise TypeError(
        "from_queue(): queue must be one of dataset.queues, queue, multiprocessing or asyncio, got "
        f"{queue!r:.100} of type {type(queue).__name__}"
    )


class FromQueueOperator(BufferedOperator):
    """Operator that takes what was requested, and never waits for more than one element.

    A saved state holds the elements that were taken and not returned.
    """

    saved = ("_ended",)

    node: FromQueue

    def __init__(self, node: FromQueue, context: ExecutionContext) -> None:
        super().__init__(node)
        self._reader = node.reader()
        self._coordinator = context.iteration.coordinator
        self._coordinator.register(self, self._reader.close)  # before it waits for threads, which may wait here
        self._rows = SignatureRows(f"{node.label()} received", node.signature, "element_spec")
        self._ended = False

    def produce(self, n: int) -> Chunk | None:
        while not self._ended:
            try:
                self._refill(n)
            except EOFError:
                self._ended = True
            if self.outbox:
                return self.outbox.give(n)
        return None

    def _refill(self, n: int) -> None:
        """Wait for an element; put it into the outbox, and up to ``n - 1`` more if they need no waiting.

        An exception takes the place of an element; StopIteration is the end.
        """
        rows: list[Any] = []
        values = self._reader.take(n)
        values.reverse()
        while values:
            if not isinstance(values[-1], BaseException):
                rows.append(values.pop() if self._reader.hands_over else own(values.pop()))
                continue
            self._convert(rows)
            rows, value = [], values.pop()
            if isinstance(value, StopIteration):
                self._ended = True
                return
            self._put(value)
        self._convert(rows)

    def _convert(self, rows: list[Any]) -> None:
        outcomes = self._rows.outcomes(rows) if rows else []
        while outcomes:  # no variable keeps an exception, see runtime/contract.py
            self._put(outcomes.pop(0))

    def _put(self, outcome: Any) -> None:
        if isinstance(outcome, Chunk):
            self.outbox.put(outcome)
            self.at += outcome.length
        else:
            self.outbox.put(with_location(outcome, self.node, self.at))
            self.at += 1

    def close(self) -> None:
        self._coordinator.unregister(self)
        self._reader.close()
        super().close()


class LoggedQueueOperator(FromQueueOperator):
    """Operator that first reads what is in the log, and then takes elements, which go into the log before the outbox.

    A saved state holds a position in the log.
    """

    def __init__(self, node: FromQueue, context: ExecutionContext) -> None:
        super().__init__(node, context)
        self._log: Any = None
        self._unlogged = OutcomeQueue()  # taken, but not in the log yet, because writing failed
        self._place: Any = None  # where the record begins in the log that was put into the outbox last
        self._run = 0  # the number of its outcomes

    def _opened(self) -> Any:
        if self._log is None:
            assert self.node.open_log is not None  # or ``lower`` would have returned another operator
            self._log = self.node.open_log(lambda plain: load_pending(plain, lambda: self.node.element_spec))
        return self._log

    def produce(self, n: int) -> Chunk | None:
        if self._unlogged:
            self._write()
            return self.outbox.give(n)
        return super().produce(n)

    def _refill(self, n: int) -> None:
        try:
            if self._read():
                return
        except DataLossError:
            self._ended = True  # nothing may be appended to a damaged log
            raise
        super()._refill(n)
        if self.outbox:
            self._unlogged.take_from(self.outbox)
            self._write()

    def _read(self) -> bool:
        """Put the next record of the log into the outbox; return False at the end."""
        log = self._opened()
        place = log.place()
        outcomes = log.read()
        if outcomes is None:
            return False
        self._put_record(place, outcomes)
        self.at += self._run
        return True

    def _write(self) -> None:
        log = self._opened()
        place = log.place()
        saved = self._unlogged.save()
        if self.node.signature is None and any(part.get("structure", "") is None for part in saved):
            raise SpecError(
                f"{self.node}: the elements are instances of a class, which a log does not name; pass element_spec, to "
                "from_queue or to the queue"
            )
        log.append(saved)
        self._put_record(place, self._unlogged.take_all())

    def _put_record(self, place: Any, outcomes: list[Outcome]) -> None:
        self._place = place
        while outcomes:  # no variable keeps an exception, see runtime/contract.py
            self.outbox.put(outcomes.pop(0))
        self._run = len(self.outbox)

    def save(self) -> Position:
        waiting = len(self.outbox)
        place = None if self._log is None else self._place if waiting else self._log.place()
        behind = self._run - waiting if waiting else 0
        own = {"log": place, "behind": behind, "_ended": self._ended}
        return Position(self.op, self.at - waiting - len(self._unlogged), own=own)

    def load(self, position: Position) -> None:
        behind = position.count("behind")
        self.at, self._ended = position.at - behind, position.like("_ended", False)
        if position.own["log"] is None:
            return
        self._opened().go_to(position.own["log"])
        if behind and not (self._read() and 0 < behind <= self._run):
            raise StateError(f"{self.node}: the state is damaged: it is within a record that the log does not contain")
        while behind:
            try:
                chunk = self.outbox.give(behind)
            except Exception:  # noqa: BLE001  # it was raised before the state was saved
                behind -= 1
            else:
                assert chunk is not None  # the outbox has at least ``behind`` outcomes
                behind -= chunk.length

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
        self._unlogged.clear()
        super().close()

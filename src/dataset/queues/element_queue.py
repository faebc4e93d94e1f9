"""Element queue: the base class of all queues; it moves elements between waiting producers and consumers.

Callers are served first come, first served, as by the queues of TensorFlow. A call that needs many elements, or room
for many, takes what there is and waits for the rest, and no later call overtakes it. So a call may move more elements
than the capacity.
"""

from __future__ import annotations

import contextlib
import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from dataset.errors import CancelledError, OutOfRangeError, SpecError
from dataset.plan.checks import require_int
from dataset.plan.spec import flatten_spec, map_spec
from dataset.plan.structure import StructureMismatchError, map_structure, structure_of
from dataset.queues.owned_elements import owner_of, unknown
from dataset.runtime.chunks.batching import ColumnMismatchError, empty_component, stack_column
from dataset.runtime.chunks.chunk import Column
from dataset.runtime.chunks.normalization import canonical_component
from dataset.runtime.chunks.ownership import copied_component
from dataset.runtime.chunks.slicing import rows_of_components
from dataset.runtime.functions.signature_rows import SignatureRows
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.world import threading, time
from dataset.world.interrupts import Condition, guarded, handing_over


class Caller(Protocol):
    """Something whose calls can be cancelled from another thread: a reader, or a peer of a server.

    The calls of a peer do not wait. They are assigned to its ``call``, and when one is done, its ``on_done`` is called,
    with the lock of the queue held, perhaps by another thread. It then takes the outcome, and withdraws the call.
    """

    is_closed: bool


_caller: ContextVar[Any] = ContextVar("caller", default=None)


class WaitingCall:
    """A call that waits: for room for its ``rows``, or for elements, which it collects in ``rows``.

    Args:
        calls: where it waits: the enqueues or the dequeues of a queue.
        lock: the lock of the queue.
        timeout: how many seconds it waits.
        rows: the elements to enqueue.
        count: how many elements to dequeue.
        minimum: how many suffice if no more can come.
        result: makes the result of the elements, none of which has failed; by default, it is the list of them all.
    """

    def __init__(
        self,
        calls: deque[WaitingCall],
        lock: threading.RLock,
        timeout: float | None,
        rows: Sequence[Any] = (),
        count: int = 0,
        minimum: int = 0,
        result: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        self.calls = calls
        self.timeout = timeout
        self.rows = deque(rows)
        self.count = count or len(rows)
        self.minimum = minimum
        self.result = result
        self.caller = _caller.get()
        self.is_done = self.is_cancelled = False
        self.peer = self.caller if hasattr(self.caller, "on_done") else None
        self._lock = lock
        self._changed: Condition | None = None  # most calls do not wait, and creating it takes longer than the rest

    def finish(self) -> None:
        """Let ``wait`` return. The lock is held."""
        self.is_done = True
        if self._changed is not None:
            self._changed.notify()
        if self.peer is not None:
            self.peer.on_done(self)

    def wait(self, deadline: float | None) -> None:
        """Wait until the call is finished or the deadline has passed. The lock is held before and afterwards."""
        while not self.is_done:
            self._changed = self._changed or Condition(self._lock)
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and not left > 0:  # or it is not a number
                return
            self._changed.wait(left)


class FailedElement:
    """An exception in the place of an element."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class ElementQueue(ABC):
    """A bounded queue of dataset elements, for any number of producing and consuming threads.

    A subclass defines which element comes next.

    Args:
        capacity: how many elements the queue holds at most, at least 1.
        element_spec: the structure, dtypes and shapes of the elements. By default, the first element determines the
            structure of all.
        name: a name for error messages; default: that of the class.
    """

    def __init__(self, capacity: int, element_spec: Any = None, *, name: str | None = None) -> None:
        self.capacity = require_int(type(self).__name__, "capacity", capacity, minimum=1)
        self.element_spec = element_spec
        self._specs: Sequence[Any] = () if element_spec is None else flatten_spec(element_spec)[1]
        self._rows: Any = deque()
        self.name = type(self).__name__ if name is None else str(name)
        self._lock = threading.RLock()
        self._enqueues: deque[WaitingCall] = deque()
        self._dequeues: deque[WaitingCall] = deque()
        self._lent: set[WaitingCall] = set()
        self._is_closed = False
        self._converter = SignatureRows(f"{self.name} received", element_spec, "element_spec")
        self._owned = unknown if element_spec is None else owner_of(*flatten_spec(element_spec))

    # Producers

    @guarded
    def enqueue(self, element: Any, timeout: float | None = None) -> None:
        """Append an element; wait while the queue is full.

        Args:
            element: a structure of components. An exception takes an element's place: ``dequeue`` raises it.
            timeout: how many seconds to wait; default: without a limit.

        Raises:
            CancelledError: if the queue is closed, or ``close(cancel_pending_enqueues=True)`` was called meanwhile.
            SpecError: if the element does not match ``element_spec``, or has another structure than earlier ones.
            TimeoutError: if the queue stayed full.
        """
        rows = [FailedElement(element)] if isinstance(element, BaseException) else self._converted([element])
        self._run(WaitingCall(self._enqueues, self._lock, timeout, rows))

    @guarded
    def enqueue_many(self, elements: Any, timeout: float | None = None) -> None:
        """Append several elements, given as a batch: each component has a leading axis of the same length.

        The elements enter in order, as room becomes available; elements of other calls do not come between them. If the
        call fails, those that have entered stay.

        Args:
            elements: components with a leading axis, in the structure of an element.
            timeout: as for ``enqueue``, for all elements together.

        Raises:
            CancelledError, TimeoutError: as for ``enqueue``.
            SpecError: as for ``enqueue``, or if the lengths differ.
        """
        rows = self.rows_of_batch(elements)
        if rows:
            self._run(WaitingCall(self._enqueues, self._lock, timeout, self._converted(rows)))

    # Consumers

    @handing_over
    def dequeue(self, timeout: float | None = None) -> Any:
        """Remove and return the next element; wait while there is none.

        Args:
            timeout: how many seconds to wait; default: without a limit.

        Raises:
            OutOfRangeError: if the queue is closed, and no element is left.
            TimeoutError: if no element came in time.
        """
        return self._run(WaitingCall(self._dequeues, self._lock, timeout, (), 1, 1, lambda rows: rows[0]))

    @handing_over
    def dequeue_many(self, n: int, timeout: float | None = None) -> Any:
        """Remove ``n`` elements, waiting for them, and return them as a batch: components with a leading axis.

        Elements are removed as they come, so ``n`` may be above the capacity. If the call fails, they are put back.

        Args:
            n: how many elements; 0 needs an ``element_spec``.
            timeout: how many seconds to wait for all of them; default: without a limit.

        Raises:
            OutOfRangeError: if the queue is closed, with fewer elements. They stay in the queue.
            SpecError: if the elements cannot be stacked. They stay in the queue.
            TimeoutError: if not all elements came in time.
        """
        return self._batched(n, timeout, n)

    @handing_over
    def dequeue_up_to(self, n: int, timeout: float | None = None) -> Any:
        """Do as ``dequeue_many``, but if the queue is closed with fewer than ``n`` elements, return these.

        Raises:
            OutOfRangeError: if the queue is closed, and no element is left.
            SpecError, TimeoutError: as for ``dequeue_many``.
        """
        return self._batched(n, timeout, 1)

    def _batched(self, n: int, timeout: float | None, minimum: int) -> Any:
        n = require_int(self.name, "n", n, minimum=0)
        if not n and self.element_spec is None:
            raise ValueError(f"{self.name}: a batch of 0 elements needs a queue with an element_spec")
        if not n:
            return map_spec(lambda spec: empty_component(spec.batched(0)), self.element_spec)
        return self._run(WaitingCall(self._dequeues, self._lock, timeout, (), n, minimum, self._batch))

    def _batch(self, rows: list[Any]) -> Any:
        structure = structure_of(rows[0])
        return structure.unflatten(list(itertools.starmap(self._stacked, enumerate(structure.columns(rows)))))

    def _stacked(self, index: int, column: Column) -> Any:  # noqa: ARG002  # for PaddingFIFOQueue
        try:
            return stack_column(column)
        except ColumnMismatchError as error:
            raise SpecError(
                f"{self.name}: elements of one batch must have the same {error.what}, got {error.before} and "
                f"{error.got}; dequeue them one by one, or use a PaddingFIFOQueue"
            ) from None

    def take_available(self, n: int) -> list[Any]:
        """Wait for an element; then remove and return it and up to ``n - 1`` more that need no waiting.

        An exception is returned in the place of an element that failed.

        Raises:
            CancelledError: if ``cancel`` was called.
            OutOfRangeError: if the queue is closed, and no element is left.
        """
        with self._lock:
            rows: list[Any] = self._run(WaitingCall(self._dequeues, self._lock, None, (), 1, 1))
            while len(rows) < n and not self._dequeues and self._available():
                rows.append(self._take())
            self._serve()
        return [row.error if isinstance(row, FailedElement) else row for row in rows]

    @staticmethod
    @contextlib.contextmanager
    def calling_as(caller: Caller) -> Iterator[None]:
        """Make the calls in this block cancellable by ``cancel(caller)``."""
        token = _caller.set(caller)
        try:
            yield
        finally:
            _caller.reset(token)

    def cancel(self, caller: Caller) -> None:
        """End the waiting calls of a caller, whose ``is_closed`` must be set. They raise CancelledError."""
        with self._lock:
            for call in [call for call in (*self._enqueues, *self._dequeues) if call.caller is caller]:
                call.is_cancelled = True
                self.withdraw(call)
                call.finish()

    # Both

    def _run(self, call: WaitingCall) -> Any:
        """Let a call wait in its place, and return its result. If that fails, withdraw it."""
        deadline = None if call.timeout is None else time.monotonic() + call.timeout
        with self._lock:
            if call.caller is not None and call.caller.is_closed:
                raise CancelledError(f"{self.name}: the caller was closed")
            if call.calls is self._enqueues and self._is_closed:
                raise CancelledError(f"{self.name}: it is closed, and takes no more elements")
            call.calls.append(call)
            try:
                self._serve()
                if call.peer is not None:
                    call.peer.call = call
                    return None
                call.wait(deadline)
            except BaseException:
                self.withdraw(call)
                raise
        result = self.outcome(call)
        if isinstance(result, FailedElement):
            try:
                raise result.error
            finally:
                del result, call  # the exception refers to this frame
        return result

    def outcome(self, call: WaitingCall) -> Any:
        """Return the result of a call, or a FailedElement in its place. Before an exception, withdraw the call.

        Raises:
            CancelledError: if it was cancelled.
            OutOfRangeError: if too few elements were left.
            SpecError: if the elements cannot be stacked.
            TimeoutError: if it was not finished.
        """
        with self._lock:
            rows = list(call.rows)
            try:
                self._require_success(call, len(rows))
            except Exception:
                self.withdraw(call)
                raise
            for index, row in enumerate(rows if call.result else ()):
                if isinstance(row, FailedElement):
                    call.rows = deque([row])
                    self._restore(rows[:index] + rows[index + 1 :])
                    self._serve()
                    return row
        try:
            return call.result(rows) if call.result else rows
        except BaseException:
            self.withdraw(call)
            raise

    def _require_success(self, call: WaitingCall, count: int) -> None:
        if call.is_cancelled:
            raise CancelledError(f"{self.name}: the caller was closed")
        if call.calls is self._enqueues and count:
            left = f"with {count} of {call.count} elements left to enqueue"
            if call.is_done:
                raise CancelledError(f"{self.name}: closed with cancel_pending_enqueues=True, {left}")
            raise TimeoutError(f"{self.name}: full for {call.timeout} s, {left}")
        if not call.is_done:
            raise TimeoutError(f"{self.name}: {count} of {call.count} elements came in {call.timeout} s")
        if count < call.minimum:
            raise OutOfRangeError(f"{self.name}: closed, with fewer than {call.minimum} elements left")

    def withdraw(self, call: WaitingCall) -> None:
        """End a call, and put the elements that it still has back, so that they come next."""
        with self._lock:
            if call in call.calls:
                call.calls.remove(call)
            if call.calls is self._dequeues:
                self._restore(call.rows)
                call.rows.clear()
            self._lent.discard(call)
            self._serve()

    def _serve(self) -> None:
        """Move elements for the calls that wait, in the order of the calls, as far as possible."""
        while self._serve_enqueues() or self._serve_dequeues():
            pass

    def _serve_enqueues(self) -> bool:
        if not self._enqueues or len(self) >= self.capacity:
            return False
        call = self._enqueues[0]
        while call.rows and len(self) < self.capacity:
            self._put(call.rows.popleft())
        if not call.rows:
            self._enqueues.popleft().finish()
        return True

    def _serve_dequeues(self) -> bool:
        if not self._dequeues:
            return False
        call, available = self._dequeues[0], self._available()
        for _ in range(min(available, call.count - len(call.rows))):
            call.rows.append(self._take())
        is_last = self._is_at_end and not (len(self) or self._lent)  # what is lent may come back
        if is_last and len(call.rows) < call.minimum:  # the next call may need fewer
            self._restore(call.rows)
            call.rows.clear()
        if is_last or len(call.rows) == call.count:
            if call.rows and call.peer is not None:
                self._lent.add(call)
            self._dequeues.popleft().finish()
            return True
        return available > 0

    @property
    def _is_at_end(self) -> bool:
        """Whether no element can enter any more."""
        return self._is_closed and not self._enqueues

    def size(self) -> int:
        """Return how many elements are in the queue."""
        with self._lock:
            return len(self)

    def close(self, cancel_pending_enqueues: bool = False) -> None:
        """Close the queue: from now on, ``enqueue`` raises CancelledError. Elements in the queue can be dequeued.

        A second call has an effect only if it cancels. Unlike TensorFlow's, the method does not wait for pending calls.

        Args:
            cancel_pending_enqueues: whether calls that wait for room fail, too. By default they succeed as soon as
                there is room.
        """
        with self._lock:
            self._is_closed = True
            if cancel_pending_enqueues:
                while self._enqueues:
                    self._enqueues.popleft().finish()
            self._serve()

    def is_closed(self) -> bool:
        """Return whether ``close`` was called."""
        return self._is_closed

    def __len__(self) -> int:
        return len(self._rows)

    @abstractmethod
    def _put(self, row: Any) -> None:
        """Add an element."""

    @abstractmethod
    def _take(self) -> Any:
        """Remove and return the next element."""

    @abstractmethod
    def _restore(self, rows: Iterable[Any]) -> None:
        """Put elements back that were taken, in this order, so that they come next."""

    def _available(self) -> int:
        """Return how many elements may be taken now."""
        return len(self)

    # Conversion

    def _converted(self, rows: list[Any]) -> list[Any]:
        """Return elements as the queue holds them: canonical, and with memory of their own."""
        converted: list[Any] = []
        for row in rows:
            try:
                converted.append(self._owned(row))
                continue
            except StructureMismatchError:
                pass  # the error below is raised without this one as its context
            converted.append(self._converted_one(row))
        return converted

    def _converted_one(self, row: Any) -> Any:
        """Return an element as the queue holds it; if it is the first, it determines the structure of all."""
        with self._lock:
            outcomes = OutcomeQueue()
            outcomes.extend(self._converter.outcomes([row]))
            element = map_structure(copied_component, outcomes.give(1).only())  # type: ignore[union-attr]  # or it raises
            if self._owned is unknown:
                self._owned = owner_of(structure_of(element))
        return element

    def rows_of_batch(self, elements: Any) -> list[Any]:
        """Return the elements of a batch: components with a leading axis."""
        structure = structure_of(elements)
        components = list(map(self._component, structure.flatten(elements)))
        if not components:
            raise SpecError(f"{self.name}: the batch for enqueue_many() has no components: {elements!r:.100}")
        return structure.rows(*rows_of_components(f"{self.name}: enqueue_many()", structure, components))

    def _component(self, value: Any) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], tuple | dict):
            raise SpecError(
                f"{self.name}: enqueue_many() takes components with a leading axis, as batch() returns them, got a "
                f"list of elements: {value!r:.100}; call enqueue() for each"
            )
        return canonical_component(value)

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        return f"<{self.name}: {len(self)} of {self.capacity} elements{state}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self.name} belongs to this process; serve it to others with dataset.queues.serve()")

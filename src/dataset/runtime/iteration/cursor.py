"""Cursor: the position of an iterator, and the elements between its operators and its consumer.

Elements are pulled one by one, or several at once if that is unobservable. A replay log knows the position after each
of several elements. Signals that arrive in the middle of a step are handled before or after it, so that no element is
lost.
"""

from __future__ import annotations

import functools
import itertools
import sys
import weakref
from collections.abc import Callable, Container, Iterator, Mapping
from operator import length_hint
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

import numpy as np

from dataset.amounts import AHEAD_BYTES, FAR, STEP_ELEMENTS
from dataset.closing import Closing
from dataset.errors import ClosedError, StateError
from dataset.options import Options
from dataset.plan.cardinality import is_known
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, has_random_access, inputs_first
from dataset.plan.structure import Structure, is_dict
from dataset.runtime import iteration
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.chunks.lineage import Lineage
from dataset.runtime.context import Moved, Reader
from dataset.runtime.contract import HoldingOperator, farthest
from dataset.runtime.iteration.lifecycle import Lifecycle, OpenedPlan
from dataset.runtime.metrics.background import BackgroundOperator
from dataset.runtime.metrics.profile import OpenObserver
from dataset.runtime.position import AHEAD, Position
from dataset.runtime.random.streams import EpochLedger
from dataset.runtime.resources.coordinator import PATIENCE_SECONDS
from dataset.runtime.resources.exceptions import concerns_iteration, shorten_traceback
from dataset.runtime.state.replay_log import ReplayLog
from dataset.runtime.state.saved_chunks import load_pending, save_pending
from dataset.world import threading, time
from dataset.world.interrupts import (
    HELD,
    check,
    deliver,
    install,
    may_deliver,
    protected,
    uninstall,
    was_stray,
)

if TYPE_CHECKING:
    from dataset.runtime.metrics.statistics import PipelineStatistics

T_co = TypeVar("T_co", covariant=True)
_Cursor = TypeVar("_Cursor", bound="Cursor[Any]")

P = ParamSpec("P")
R = TypeVar("R")


def entry(method: Callable[Concatenate[_Cursor, P], R]) -> Callable[Concatenate[_Cursor, P], R]:
    """Wrap a Cursor method as ``guarded`` does, and note exceptions that may have broken the iterator."""

    @functools.wraps(method)
    def wrapper(self: _Cursor, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except BaseException as error:
            self._note(error)
            raise
        finally:
            uninstall()
            if HELD:
                deliver(sys._getframe(1))  # noqa: SLF001  # the documented way to the caller

    return protected(wrapper)


class Cursor(Lifecycle, Closing, Iterator[T_co], Generic[T_co]):
    """The position of an iterator."""

    _callbacks: tuple[iteration.StatisticsCallback, ...] = ()

    def __init__(self, plan: Node, options: Options, open_observer: OpenObserver, reader: Reader | None) -> None:
        super().__init__(plan, options, open_observer, reader)
        self._lock = threading.RLock()  # guards the operators: one pull at a time
        self._exhausted = False

    def _take_over(self, opened: OpenedPlan, elements: int = 0) -> None:
        self._is_fresh = True  # until the first element is requested or a state is loaded
        self._before = elements  # elements handed out before the position that was loaded
        self._skipped = 0
        self._left = 0  # pulls until the next check of the clock or the end
        self._ahead: Iterator[Any] = _NOTHING  # elements that were pulled but not handed out yet
        self._pulled: Chunk | None = None  # after an interrupt: pulled, but not in ``_ahead`` yet
        self._unread: Outcome | None = None  # if the log does not count it: the content of ``_ahead``
        self._structure: Structure | None = None  # of the last element
        self._has_arrays = False  # whether that element has components other than scalars and bytes
        self._lineage: Lineage | None = None  # of the last element that was pulled, if it is recorded
        self._own(opened)

    def _own(self, opened: OpenedPlan) -> None:
        super()._own(opened)
        self._is_holder = isinstance(self._root, HoldingOperator)
        self._log = ReplayLog(self._root, AHEAD)
        self._step = 1  # elements per pull; if more, the log counts them
        self._stores_read = -1  # how many caches were being read when ``_step`` was last reconsidered

    def __iter__(self) -> Self:
        return self

    @protected
    def __next__(self) -> T_co:
        element: T_co
        chunk: Chunk | None = None
        ahead = _NOTHING if self._coordinator.forked else self._ahead
        try:
            for element in ahead:  # noqa: B007  # it is handed out below
                break
            else:
                element, ahead, chunk = self._next_pulled()
        except BaseException as error:
            self._leave_with(error, sys._getframe(1))  # noqa: SLF001  # the documented way to the caller
            raise
        # No call is made between this test and the return, so no signal is handled there.
        if HELD and may_deliver(sys._getframe(1)):  # noqa: SLF001
            element = self._interrupted_before(element, ahead, chunk, sys._getframe(1))  # noqa: SLF001
        return element

    def _next_pulled(self) -> tuple[T_co, Iterator[Any], Chunk | None]:
        """Pull elements; return the first, those after it, and its chunk if it was pulled alone."""
        if self._coordinator.forked:
            self._coordinator.check_usable()
        with self._lock:
            for element in self._ahead:  # another thread has pulled them
                return element, self._ahead, None
            steps, began = 0, 0.0
            if self._left <= 0:
                self._look()
                steps, began = self._left, time.perf_counter()  # this one is measured for all of them
            if self._step > 1:
                ahead = self._read_ahead()
                self._add_wait(steps, began, length_hint(ahead))
                return next(ahead), ahead, None
            count = self._held() if self._is_holder else 1
            self._left -= 1
            try:
                chunk = self._root.pull(count)
            except BaseException as error:
                self._require_no_fault(error)
                self._left += not isinstance(error, Exception)
                raise
            if steps:
                self._add_wait(steps, began, count)
            if chunk is None:
                self._end(1)
                raise StopIteration
            if count > 1:
                self._left -= chunk.length - 1
                ahead = self._ahead = iter(chunk.rows())
                self._unread = None
                return next(ahead), ahead, None
            self._lineage = chunk.lineage
            element = chunk.only()
            if chunk.structure is not self._structure:
                self._structure = chunk.structure
                self._has_arrays = any(map(_is_mutable, chunk.structure.flatten(element)))
            return element, self._ahead, chunk

    def _held(self) -> int:
        """Return how many elements to take from the root, a HoldingOperator, at once: those that it holds, or one."""
        held: int = self._root.held  # type: ignore[attr-defined]  # isinstance() of an abstract class takes long
        return max(1, min(held, self._left, STEP_ELEMENTS)) if held else 1

    def _add_wait(self, steps: int, began: float, count: int) -> None:
        """Count ``steps`` waits that are as long as the mean of ``count`` elements, whose time was measured."""
        if steps:
            each = (time.perf_counter() - began) / max(1, count)
            self._profile.waits.add(steps, began, began + each)

    def _interrupted_before(self, element: Any, ahead: Iterator[Any], chunk: Chunk | None, caller: FrameType) -> Any:
        """Handle the held signals as if they had arrived before the element that was about to be handed out."""
        with self._lock:
            unread = self._unread if chunk is None else chunk
            if ahead is not self._ahead or (unread is not None and self._not_handed_out()):
                return element  # another thread has taken more elements; its next call handles the signals
            self._unread, self._ahead = unread, iter([element, *self._ahead])
        deliver(caller)
        return next(self)

    def _leave_with(self, error: BaseException, caller: FrameType) -> None:
        """Note an exception that ``next`` raises, and handle the held signals as if they had arrived before it."""
        self._note(error)
        if isinstance(error, Exception):
            shorten_traceback(error)
        if isinstance(error, StopIteration):
            uninstall()
        if not (HELD and may_deliver(caller)):
            return
        if isinstance(error, Exception) and not isinstance(error, StopIteration | ClosedError):
            with self._lock:
                if not self._not_handed_out():
                    self._ahead, self._unread = _Failure(error), error
        deliver(caller)
        if self._unread is error:  # it is being raised now
            self._ahead, self._unread = _NOTHING, None

    def _note(self, error: BaseException) -> None:
        """Note an exception that leaves the iterator and may have broken it."""
        if isinstance(error, Exception) or self._interruption is not None or self._exhausted or not was_stray(error):
            return
        self._interruption = error.with_traceback(None)
        self._ahead, self._pulled, self._unread, self._left = _NOTHING, None, None, 0

    def _read_ahead(self) -> Iterator[Any]:
        """Pull elements for future calls, and return an iterator over them; raise StopIteration at the end.

        Most of the cost of an element is the call chain through the operators. Each element still goes to one caller,
        because the lock is held. A replay log knows the position after each element.
        """
        chunk, log, left = self._pulled, self._log, self._left
        if chunk is None:
            log.forget(log.read)
            log.step()
            self._left -= 1
            try:
                chunk = self._pulled = log.pull(max(1, min(left, self._step)))
            except BaseException as error:
                self._require_no_fault(error)
                self._left += not isinstance(error, Exception)
                raise
            if chunk is None:
                self._end(1)
                raise StopIteration
            self._step = max(2, min(2 * self._step, STEP_ELEMENTS, AHEAD_BYTES * chunk.length // max(1, chunk.nbytes)))
            self._left -= chunk.length - 1
        self._ahead, self._unread = iter(chunk.rows()), None
        self._pulled = None
        return self._ahead

    def _may_read_ahead(self) -> bool:
        """Return whether pulling elements for future calls is unobservable, and calls no constructor of the user."""
        if self._reader is not None or isinstance(self._root, BackgroundOperator) or self._structure is None:
            return False
        if self._context.is_traced:
            return False
        if not self._context.input_is_replayable:
            return False
        nodes = inputs_first(self._plan, without=self._context.iteration.read_from_store)
        if not all(node.traits.pure and not node.traits.reads_files for node in nodes):
            return False
        if self._has_arrays and _may_vary(self._plan, self._context.iteration.read_from_store):
            return False
        return _calls_no_constructor(self._structure)

    def _not_handed_out(self) -> int:
        return length_hint(self._ahead) + (0 if self._pulled is None else self._pulled.length)

    def _require_no_fault(self, error: BaseException | None = None) -> None:
        """Raise the failure of the library itself, if there is one; no element and no end of data follows it.

        Args:
            error: the exception that an operator has just raised; it may be such a failure.
        """
        coordinator = self._coordinator
        if not coordinator.failed and isinstance(error, MemoryError) and concerns_iteration(error):
            coordinator.fail(error, "the thread that asks for elements")
        if not coordinator.failed:
            return
        try:
            self._left = 0
            self._ahead, self._pulled = _NOTHING, None
            self._let_go(wait=False)
            coordinator.join(PATIENCE_SECONDS)
            coordinator.raise_failure()
        finally:
            del error  # see runtime/contract.py on exceptions that are kept

    def _end(self, in_vain: int) -> None:
        """End the iteration; ``in_vain`` of the requested elements do not exist."""
        self._require_no_fault()
        self._exhausted = True
        self._stop_counting(in_vain)
        self._let_go(wait=False)
        self._coordinator.join(PATIENCE_SECONDS)  # a thread may be blocked in user code whose result is not needed
        for callback in self._callbacks:
            callback.look(self._statistics, is_last=True)

    def _look(self) -> None:
        """Do the checks that are not needed before each element."""
        self._is_fresh = False
        self._check_usable()
        if self._exhausted:
            raise StopIteration
        self._require_no_fault()
        self._left = self._profile.look(self._left)
        self._log.go_on()
        stores = len(self._context.iteration.read_from_store)
        if self._step == 1 and stores != self._stores_read and self._structure is not None:
            self._stores_read = stores
            if self._may_read_ahead():
                self._step, self._log = 2, ReplayLog(self._root, AHEAD)
        for callback in self._callbacks:
            callback.look(self._statistics)

    def _stop(self) -> None:
        """Close the operators, and forget the elements that were pulled but not handed out."""
        self._stop_counting(self._not_handed_out())
        self._ahead, self._pulled = _NOTHING, None
        self._let_go(wait=True)

    def _stop_counting(self, in_vain: int) -> None:
        self._profile.count(self._left + in_vain)
        self._left = 0

    def _start(self) -> None:
        """Begin to compute the first element in a thread."""
        begun = threading.Event()
        run = functools.partial(_compute_first, weakref.ref(self), self._lock, begun)
        self._coordinator.start(run, _do_nothing, "first element")
        begun.wait()  # until the thread has the lock, so that next() does not come before it

    def _skip(self, count: int) -> int:
        """Skip up to ``count`` elements; return how many."""
        with self._lock:
            begun = self._skipped
            self._skip_ahead(count)
            self._log.go_on()
            while (left := count - (self._skipped - begun)) and not self._exhausted:
                check()
                jumped = self._jump(left)
                if left > jumped and not self._exhausted:
                    # Another jump may be possible from a later position, such as after the end of a pass.
                    self._pass_over(1 if jumped >= FAR else left)
            if self._step > 1 and not self._not_handed_out():
                self._log = ReplayLog(self._root, AHEAD)  # the former one did not count what was skipped
            return self._skipped - begun

    def _skip_ahead(self, count: int) -> None:
        """Skip up to ``count`` of the elements that were pulled, but not handed out yet."""
        if self._pulled is not None:
            self._ahead, self._pulled = iter(self._pulled.rows()), None
        if self._unread is not None:
            passed = min(count, self._not_handed_out())
            if passed:
                self._ahead, self._unread = _NOTHING, None
        else:
            passed = sum(1 for _ in itertools.islice(self._ahead, count))
        self._skipped += passed
        self._left += passed  # they are not handed out

    def _jump(self, count: int) -> int:
        """Skip up to ``count`` elements without computing them; return how many, 0 if this is not possible."""
        if isinstance(self._root, BackgroundOperator) and count <= self._root.buffered()[0]:
            return 0  # they are computed already, or being computed
        available = self._plan.cardinality()
        if self._is_fresh and has_random_access(self._plan) and is_known(available) and available <= count:
            self._is_fresh = False
            self._skipped += available
            self._end(0)
            return available
        try:
            place = self._root.save()
        except StateError:  # an operator holds something that is not plain data
            return 0
        passed, after = farthest(self._root, place, count)
        if passed:
            end_former = self._go_to(after)
            self._skipped += passed
            end_former()
        return passed

    def _go_to(self, place: Position) -> Callable[[], None]:
        """Go to a place known to be valid within the same iteration; return a function that closes what was open."""
        if self._is_fresh:
            self._is_fresh = False
            self._root.load(place)
            return _do_nothing
        opened = self._open_with(self._profile, self._observer, EpochLedger(instead_of=self._epochs))
        try:
            opened.root.load(place)
        except BaseException:
            opened.coordinator.shut_down(opened.root.close, wait=True)
            raise
        former, close, finalizer = self._coordinator, self._root.close, self._finalizer
        self._own(opened)
        return functools.partial(former.shut_down, close, wait=True) if finalizer.detach() else _do_nothing

    def _pass_over(self, count: int) -> None:
        """Compute and discard up to ``count`` elements."""
        self._is_fresh = False
        try:
            passed = self._root.skip(count)
        except Exception as error:
            self._require_no_fault(error)
            if self._closed or concerns_iteration(error):
                raise
            passed = 1
        self._skipped += passed
        if not passed:
            self._end(0)

    def _statistics(self) -> PipelineStatistics:
        got = self._profile.elements_until(self._left) - self._not_handed_out() - self._is_waited_for()
        statistics: PipelineStatistics = self._observer.measured(max(0, got)).statistics()  # the first counts later
        return statistics

    def _is_waited_for(self) -> bool:
        """Whether another thread is inside ``next``."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return False
        return True

    def _position(self, ahead: int) -> Position | None:
        """Return the position after the last element handed out; None after the end.

        Args:
            ahead: how many elements were pulled, but not handed out.
        """
        held: list[Outcome] = []
        if ahead and self._unread is not None and self._step == 1:
            held = [self._unread]
        if held and self._reader is not None:
            raise StateError(
                "the iterator was interrupted while it handed out an element that is not plain data: take this element "
                "with next() before saving the state, or continue from an earlier state"
            )
        position = Position(AHEAD)
        if ahead and self._step > 1:
            position = self._log.place(self._log.read - ahead)
        elif ahead and self._unread is None and isinstance(self._root, HoldingOperator):
            position = Position(AHEAD, inputs=(self._root.save_before(ahead),))
        elif not self._exhausted:
            position = self._log.present()
        if held or position.given:
            return position.with_held(element=save_pending(held))
        return position.source if position.inputs else None

    def _load(
        self, state: dict[str, Any], moved: Moved | Mapping[str, str] | None, *, from_start: bool = False
    ) -> None:
        """Go to the position that ``state`` describes, or to the beginning of the iteration in which it was saved."""
        install()  # the end of the data has restored the program's handlers
        state = self._envelope.open(state)
        mapping = iteration.mapping_of(moved)
        position, unread = state["operator"], list[Outcome]()
        if position is None or position.op != AHEAD:
            position = Position(AHEAD, inputs=() if position is None else (position,))
        with self._lock:
            begun = self._skipped + self._profile.elements_until(self._left) > self._not_handed_out()
            epochs = EpochLedger(instead_of=self._epochs)
            self._envelope.resume(state, epochs)
            fresh = self._open(epochs, mapping)
            log = ReplayLog(fresh.root, AHEAD)
            try:
                if not from_start:
                    unread = load_pending(position.held.get("element", []), lambda: self._plan.element_spec)
                if position.inputs and not from_start:
                    if state["shares"] != iteration.resharding.shares(self._plan):
                        _require_no_element(unread)
                        position = iteration.resharding.reshard_position(position, state["shares"], self._plan)
                    log.load(position)
            except BaseException as error:
                fresh.coordinator.shut_down(fresh.close, wait=True)
                if isinstance(error, StateError) or not isinstance(error, Exception):
                    raise
                raise StateError(f"the pipeline cannot restore the saved position: {error!r:.500}") from error
            self._exhausted = not (position.inputs or from_start)
            former, finish, finalizer = self._coordinator, self._finish, self._finalizer
            self._take_over(fresh, 0 if from_start else state["elements"])
            self._log = log
            self._envelope.go_on(state, self._epochs, begun=begun)
            self._is_fresh = False
            for outcome in unread:
                self._unread = outcome
                self._ahead = iter(outcome.rows()) if isinstance(outcome, Chunk) else _Failure(outcome)
            if finalizer.detach():
                former.shut_down(finish, wait=True)
            if self._exhausted:
                self._let_go(wait=True)

    @lazy_property
    def _envelope(self) -> iteration.Envelope:
        return iteration.Envelope(self._plan)


_NOTHING: Iterator[Any] = iter([])


def _compute_first(reference: weakref.ref[Cursor[Any]], lock: threading.RLock, begun: threading.Event) -> None:
    """Pull the first element, unless that was done meanwhile. Does not keep the iterator alive while it pulls."""
    with lock:
        begun.set()
        iterator = reference()
        if iterator is None or not iterator._is_fresh:  # noqa: SLF001  # its own module
            return
        iterator._look()  # noqa: SLF001
        iterator._left -= 1  # noqa: SLF001
        root = iterator._root  # noqa: SLF001
        del iterator
        outcome: Outcome | None
        try:
            outcome = root.pull(1)
        except Exception as error:  # noqa: BLE001  # raised by next()
            outcome = error
        iterator = reference()
        if iterator is not None and outcome is None:
            iterator._left += 1  # noqa: SLF001  # next() finds the end
        elif iterator is not None and outcome is not None:
            iterator._unread = outcome  # noqa: SLF001
            iterator._ahead = iter(outcome.rows()) if isinstance(outcome, Chunk) else _Failure(outcome)  # noqa: SLF001


class _Failure(Iterator[Any]):
    """Raises, once, an exception that was not handed out yet."""

    def __init__(self, error: BaseException) -> None:
        self._errors = [error]

    def __next__(self) -> Any:
        if self._errors:
            raise self._errors.pop()
        raise StopIteration

    def __length_hint__(self) -> int:
        return len(self._errors)


def _require_no_element(unread: list[Outcome]) -> None:
    if unread:
        raise StateError(
            "the state holds an element that was being handed out when an interrupt arrived, and such a state "
            "cannot be loaded with another number of processes: continue from an earlier state"
        )


def _do_nothing() -> None:
    """Do nothing: no plan was open."""


def _is_mutable(component: Any) -> bool:
    return not isinstance(component, np.generic | bytes)


def _may_vary(plan: Node, without: Container[Node]) -> bool:
    """Return whether arrays are views or copies, of which only copies are writable, by how many elements are requested.

    This is so for ops that join elements. The inputs of ops in ``without`` are not read.
    """
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if node.inputs and not node.traits.steady and node not in without:
            if not node.traits.aligned:
                return True
            waiting += node.inputs
    return False


def _calls_no_constructor(structure: Structure) -> bool:
    """Return whether building elements calls no constructor of a user class."""
    return structure.is_immutable or (is_dict(structure) and all(child.is_immutable for child in structure.children))

"""The dataset iterator: opens a plan's operators, hands out elements, saves and restores its position."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from operator import length_hint
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

import numpy as np

from dataset import live
from dataset.closing import Closing
from dataset.errors import ClosedError, OutOfRangeError, SpecError, StateError
from dataset.options import Options
from dataset.plan.cardinality import is_known
from dataset.plan.checks import require_int
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, has_random_access, inputs_first
from dataset.plan.spec import map_spec, spec_of, without_sizes
from dataset.plan.structure import Structure, is_dict
from dataset.runtime import iteration
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.chunks.lineage import Lineage, joined, records_of
from dataset.runtime.chunks.source_records import Provenance
from dataset.runtime.context import ExecutionContext, Moved, Reader, open_plan, unmoved
from dataset.runtime.contract import HoldingOperator, Operator, farthest
from dataset.runtime.metrics.background import BackgroundOperator
from dataset.runtime.metrics.profile import Observer, OpenObserver, PipelineProfile
from dataset.runtime.position import AHEAD, Position
from dataset.runtime.random.streams import EpochLedger
from dataset.runtime.resources.coordinator import PATIENCE_SECONDS, Coordinator
from dataset.runtime.resources.exceptions import concerns_iteration, shorten_traceback
from dataset.runtime.resources.garbage import ScheduledCollection
from dataset.runtime.resources.interrupts import (
    HELD,
    Finalizer,
    check,
    deliver,
    guarded,
    install,
    may_deliver,
    protected,
    uninstall,
    was_stray,
)
from dataset.runtime.state.replay_log import ReplayLog
from dataset.runtime.state.saved_chunks import load_pending, save_pending

if TYPE_CHECKING:
    from dataset.live.feed import SnapshotFeed
    from dataset.live.page_server import LivePage
    from dataset.runtime.metrics.statistics import PipelineStatistics
    from dataset.runtime.metrics.tuning_log import TuningLog

T_co = TypeVar("T_co", covariant=True)
_Iterator = TypeVar("_Iterator", bound="DatasetIterator[Any]")

P = ParamSpec("P")
R = TypeVar("R")

_FAR = 64  # elements that are worth a jump


def _entry(method: Callable[Concatenate[_Iterator, P], R]) -> Callable[Concatenate[_Iterator, P], R]:
    """Wrap a DatasetIterator method as ``guarded`` does, and note exceptions that may have broken the iterator."""

    @functools.wraps(method)
    def entry(self: _Iterator, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except BaseException as error:
            self._note(error)
            raise
        finally:
            uninstall()
            if HELD:
                deliver(sys._getframe(1))  # noqa: SLF001  # the documented way to the caller

    return protected(entry)


class DatasetIterator(Closing, Iterator[T_co], Generic[T_co]):
    """One pass over a dataset, as returned by ``iter(dataset)``.

    Each element goes to exactly one caller of ``next``, even when several threads share the iterator. An exception
    raised by ``next`` takes the place of one element; the next call continues after it. Only a failure of the library
    itself, such as a MemoryError outside of any user function, ends the iteration: the exception has a note that says
    so, and every later call raises ClosedError. Background threads and files are released at the end of the data, by
    ``close()``, at the end of a ``with`` block, or when the iterator is dropped.

    >>> from dataset import Dataset
    >>> with iter(Dataset.range(10).prefetch(2)) as iterator:
    ...     first = next(iterator)
    >>> first
    np.int64(0)
    """

    _page: LivePage | None = None
    _shown_by: tuple[iteration.LiveSource, ...] = ()
    _callbacks: tuple[iteration.StatisticsCallback, ...] = ()

    @guarded
    def __init__(
        self,
        plan: Node,
        options: Options,
        open_observer: OpenObserver,
        reader: Reader | None = None,
        epochs: EpochLedger | None = None,
    ) -> None:
        self._plan = plan
        self._options = options
        self._reader = reader
        self._open_observer = open_observer
        self._lock = threading.RLock()  # guards the operators: one pull at a time
        self._closed = False
        self._exhausted = False
        self._interruption: BaseException | None = None  # an exception raised in the middle of a step
        install()
        self._take_over(self._open(EpochLedger() if epochs is None else epochs))
        try:
            if setting := os.environ.get("DATASET_LIVE"):
                self._show_on(live.shown_by_environment(setting))
            check()
        except BaseException:
            self.close()
            raise

    def _open(self, epochs: EpochLedger, moved: Moved = unmoved) -> _Opened:
        profile = PipelineProfile(self._plan)
        if self._options.garbage_collection:
            profile.garbage = ScheduledCollection(self._options.garbage_collection)
        observer = self._open_observer(profile, self._options)
        profile.observe(observer)
        return self._open_with(profile, observer, epochs, moved)

    def _open_with(
        self, profile: PipelineProfile, observer: Observer, epochs: EpochLedger, moved: Moved = unmoved
    ) -> _Opened:
        contexts: list[ExecutionContext] = []

        def read(context: ExecutionContext, plan: Node) -> Operator:
            contexts.append(context)
            return context(plan) if self._reader is None else self._reader(context, plan)

        coordinator, root = open_plan(
            self._plan, self._options, profile=profile, epochs=epochs, reader=read, moved=moved
        )
        return _Opened(coordinator, root, contexts[0], profile, observer, epochs)

    def _take_over(self, opened: _Opened, elements: int = 0) -> None:
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

    def _own(self, opened: _Opened) -> None:
        """Take ownership of the opened plan, and make sure that it is closed when the iterator is dropped."""
        self._coordinator, self._root = opened.coordinator, opened.root
        self._is_holder = isinstance(self._root, HoldingOperator)
        self._profile, self._observer = opened.profile, opened.observer
        self._epochs = opened.epochs
        self._finish = opened.close
        self._context = opened.context
        self._log = ReplayLog(self._root, AHEAD)
        self._step = 1  # elements per pull; if more, the log counts them
        self._stores_read = -1  # how many caches were being read when ``_step`` was last reconsidered
        install()
        # Bound to what must be closed, not to self: otherwise self would never be dropped.
        self._finalizer = Finalizer(self, functools.partial(self._coordinator.shut_down, self._finish, wait=False))
        for source in self._shown_by:
            source.follow(self._profile, self._observer)

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
        return max(1, min(held, self._left, _STEP_MAX)) if held else 1

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
            self._step = max(2, min(2 * self._step, _STEP_MAX, _STEP_BYTES * chunk.length // max(1, chunk.nbytes)))
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

    def _check_usable(self) -> None:
        if self._closed or self._coordinator.forked:
            self._coordinator.check_usable()
        if self._interruption is not None:
            raise ClosedError(
                f"this iterator was interrupted in the middle of a step by {self._interruption!r:.200} and may have "
                "lost elements: create a new iterator and load the last state saved before the interrupt"
            ) from self._interruption

    def _stop_counting(self, in_vain: int) -> None:
        self._profile.count(self._left + in_vain)
        self._left = 0

    @_entry
    def start(self) -> None:
        """Begin to compute the first element in a thread, so that the first ``next`` waits less.

        Operators that read ahead, such as ``prefetch``, begin to fill their buffers. Call it before a model is built or
        loaded, for example. The elements, their order and saved states are the same. After the first ``next``, or for
        an iterator that continues from a state, this does nothing.

        Raises:
            ClosedError: after ``close()``.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(10).prefetch(2))
        >>> iterator.start()
        >>> next(iterator)
        np.int64(0)
        """
        self._check_usable()
        if self._is_fresh:
            begun = threading.Event()
            run = functools.partial(_compute_first, weakref.ref(self), self._lock, begun)
            self._coordinator.start(run, _do_nothing, "first element")
            begun.wait()  # until the thread has the lock, so that next() does not come before it

    @_entry
    def get_next(self) -> T_co:
        """Return the next element, like ``tf.data.Iterator.get_next``.

        Raises:
            OutOfRangeError: at the end, where ``next`` raises StopIteration.
            Exception: as ``next``, in the place of an element that fails.

        >>> from dataset import Dataset
        >>> iter(Dataset.range(3)).get_next()
        np.int64(0)
        """
        optional = self.get_next_as_optional()
        if not optional.has_value():
            raise OutOfRangeError("get_next(): the iterator has no more elements; iter(dataset) starts another pass")
        return optional.get_value()

    def get_next_as_optional(self) -> iteration.Optional[T_co]:
        """Return the next element in an Optional, which is empty at the end.

        Raises:
            Exception: as ``next``, in the place of an element that fails.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(1))
        >>> iterator.get_next_as_optional(), iterator.get_next_as_optional().has_value()
        (Optional(np.int64(0)), False)
        """
        for element in self:
            return iteration.Optional(element)
        return iteration.Optional()

    def skip(self, count: int) -> int:
        """Skip elements, without computing them where the plan allows it.

        Elements are not computed if arithmetic gives the position after them: over arrays, ranges and indexed files,
        however they are shuffled, batched, zipped or sharded, and whatever functions ``map`` calls for each element.
        These functions are not called for skipped elements, so they cannot fail; an element that would have failed
        still counts for batches and counts. In all other cases elements are computed and discarded. One that fails
        counts as one element, as it does for ``next``, and its exception is not raised.

        Afterwards, the iterator is positioned as after that many calls of ``next``. Elements that were computed ahead
        and skipped are discarded. ``stats()`` counts only what ``next`` returns.

        Args:
            count: how many elements, at least 0.

        Returns:
            How many elements were skipped: fewer than ``count`` if the data ended before.

        Raises:
            TypeError: if ``count`` is not an int.
            ValueError: if ``count`` is negative.
            ClosedError: after ``close()``.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(1_000_000_000).map(lambda x: x + 1))
        >>> iterator.skip(999_999_997), next(iterator)
        (999999997, np.int64(999999998))
        >>> iterator.skip(5)
        2
        """
        count = require_int("skip", "count", count, minimum=0)
        self._check_usable()
        with self._lock:
            begun = self._skipped
            self._skip_ahead(count)
            self._log.go_on()
            while (left := count - (self._skipped - begun)) and not self._exhausted:
                check()
                jumped = self._jump(left)
                if left > jumped and not self._exhausted:
                    # Another jump may be possible from a later position, such as after the end of a pass.
                    self._pass_over(1 if jumped >= _FAR else left)
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

    @_entry
    def stats(self) -> PipelineStatistics:
        """Return what each operator has done so far, how long it took, and which one is the bottleneck.

        May be called at any time, also after the end. Measuring takes about 1% of the time. If elements are produced
        quickly, only some of them are timed, and the figures are extrapolated.

        Returns:
            An object that prints as a table; ``to_dict()`` gives the same as plain data.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(1000).shuffle(100).batch(10))
        >>> batches = list(iterator)
        >>> stats = iterator.stats()
        >>> stats.elements, [operator.name for operator in stats.operators]
        (100, ['batch(10)', 'shuffle(100)', 'range(1000)'])
        """
        if self._coordinator.forked:
            self._coordinator.check_usable()
        return self._statistics()

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

    @_entry
    def serve(self, port: int = 0) -> LivePage:
        """Open a page for a browser on this machine that shows this iterator while it runs.

        The page draws the plan from the source at the top to the consumer at the bottom, with the rates, the work and
        the buffers of all operators, the bottleneck, the waits of the consumer, memory, and the autotuner's decisions.
        The same figures are at ``/snapshot`` as JSON, at ``/events`` as server-sent events, and at ``/metrics`` for
        Prometheus. Only this machine can connect; from another one, use ``ssh -L 8080:localhost:8080``.

        After the end of the data, the page shows the final figures until the iterator is closed or dropped. The
        environment variable ``DATASET_LIVE=8080`` opens a page without a call, which always shows the newest iterator
        of the process.

        Args:
            port: the port; 0 for any free one. If the iterator has an open page already, that is returned.

        Returns:
            A LivePage with the attributes ``url`` and ``port``, and a method ``close()``.

        Raises:
            OSError: if the port is in use.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(10))
        >>> iterator.serve().url
        'http://127.0.0.1:.../'
        >>> iterator.close()
        """
        require_int("serve", "port", port, minimum=0)
        if self._coordinator.forked or self._closed:
            self._coordinator.check_usable()
        if self._page is None or self._page.closed:
            feed = live.SnapshotFeed()
            self._page = live.LivePage(port, feed)
            weakref.finalize(self, self._page.stop)
            self._show_on(feed)
        return self._page

    def _show_on(self, feed: SnapshotFeed | None) -> None:
        if feed is not None:
            source = iteration.LiveSource(feed, self._statistics)
            self._shown_by = (*self._shown_by, source)
            source.follow(self._profile, self._observer)

    @_entry
    def on_statistics(self, callback: Callable[[PipelineStatistics], object], every: float = 10.0) -> None:
        """Call a function with ``stats()`` at intervals, for example to log them.

        It is called by the loop itself, in ``next``: no thread is started. It is also called at the end of the data. If
        it raises an exception, that is logged, and the loop continues. Several functions may be registered.

        Args:
            callback: takes the statistics.
            every: seconds between two calls, at least. While no element is requested, there is no call.

        Raises:
            TypeError: if ``callback`` is not callable, or ``every`` is not a number.
            ValueError: if ``every`` is not positive.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(100))
        >>> iterator.on_statistics(lambda stats: print(stats.elements, "elements"))
        >>> for element in iterator:
        ...     pass
        100 elements
        """
        self._callbacks = (*self._callbacks, iteration.StatisticsCallback(callback, every))

    def export_telemetry(self, every: float = 10.0) -> None:
        """Send the statistics to OpenTelemetry at intervals, as ``on_statistics`` does.

        Only ``opentelemetry-api`` is used. Nothing is sent until the application has configured an SDK. The metrics are
        those of the live page for Prometheus, such as ``dataset.elements`` and ``dataset.operator.busy_ratio``. Those
        of operators have the attributes ``operator`` and ``index``, and all have ``rank`` if ``RANK`` is in the
        environment.

        Args:
            every: seconds between two updates, at least.

        Raises:
            ImportError: if opentelemetry-api is not installed.
            TypeError: if ``every`` is not a number.
            ValueError: if ``every`` is not positive.
        """
        telemetry = live.Telemetry()
        self.on_statistics(lambda stats: telemetry.send(stats.to_dict()), every)

    def headspace(self, seconds: float = 10.0) -> iteration.Headspace[T_co]:
        """Measure how fast your loop would be if its elements cost nothing. Loop over the result instead of over this.

        In the first half of the time, the loop gets the next elements of this iterator, whose position moves on as with
        ``next``. In the second half, it gets copies of the first few of these elements again and again, which costs no
        time and does not move the position. A training step trains with all of them, so measure before the training, or
        drop the model afterwards. The first tenth of each half is not counted. A step must last until its work is done:
        with a GPU, end it with an operation that waits, such as reading the loss.

        Args:
            seconds: how long the loop takes, unless it takes fewer than three steps in each half of this time.

        Returns:
            An iterator with the results: ``steps_per_second``, ``free_steps_per_second``, ``lost``, the share of the
            time that the loop loses because of the pipeline, and ``waiting``, the share in which it waits for elements.
            It prints as a sentence. As a context manager, it releases the copies at the end of the block.

        Raises:
            TypeError: if ``seconds`` is not a number.
            ValueError: if ``seconds`` is not positive.

        >>> import time
        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(10**9).batch(10))
        >>> with iterator.headspace(seconds=0.1) as batches:
        ...     for batch in batches:
        ...         time.sleep(0.001)
        >>> batches.steps_per_second > 0, 0 <= batches.lost < 1
        (True, True)
        """
        return iteration.Headspace(self, seconds)

    @_entry
    def tuning_log(self) -> TuningLog:
        """Return the autotuner's decisions so far, as a list of ``Decision`` that prints as lines of text.

        The list is a copy. It has the first 100 and the last 400 decisions of this iteration; its attribute ``omitted``
        is the number of those between them. Saved states do not contain decisions.

        >>> from dataset import Dataset
        >>> iter(Dataset.range(10)).tuning_log()
        TuningLog: nothing was decided
        """
        log: TuningLog = self._observer.tuning_log()
        return log

    @_entry
    def provenance(self) -> Provenance:
        """Return the source records that the last element, such as a batch, was made from.

        The iterator must record them: set the option ``provenance``. Recording changes no element. ``next`` then takes
        a little longer, and states that hold elements by value also hold their provenance. Without the option, nothing
        is recorded and nothing is paid.

        Returns:
            The records of the last element that ``next`` returned, in order: a sequence of ``SourceRecord`` that prints
            as one line per record. Records are unknown after ops whose elements are not made from single elements of
            their input.

        Raises:
            ValueError: if the option ``provenance`` is not set, or ``next`` has not returned an element since the
                iterator was created or a state was loaded.
            ClosedError: after ``close()``.

        >>> from dataset import Dataset, Options
        >>> options = Options()
        >>> options.provenance = True
        >>> letters = Dataset.from_tensor_slices([b"a", b"b", b"c", b"d"], name="letters").shuffle(4, seed=1).batch(2)
        >>> iterator = iter(letters.with_options(options))
        >>> next(iterator)
        array([b'b', b'd'], dtype=object)
        >>> print(iterator.provenance())
        letters:1
        letters:3
        """
        self._check_usable()
        if not self._context.is_traced:
            raise ValueError(
                "provenance(): this iterator does not record provenance: set options.provenance = True and pass the "
                "options to with_options(), or use checkpoint.records() on a saved state"
            )
        if self._structure is None:
            raise ValueError("provenance(): call next() first; it describes the last element that next() returned")
        return Provenance(records_of(None if self._lineage is None else joined(self._lineage)))

    @_entry
    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last element handed out, as plain data.

        Returns:
            A dict of numbers, strings, bytes, arrays, lists and dicts. Its content is private to the library.

        Raises:
            ClosedError: after ``close()``, and after a failure of the library itself.
            StateError: if an operator holds elements that are not plain data, such as objects of user classes.

        >>> from dataset import Dataset
        >>> dataset = Dataset.range(100).shuffle(10, seed=1).batch(4)
        >>> iterator = iter(dataset)
        >>> _ = next(iterator), next(iterator)
        >>> state = iterator.state_dict()
        >>> resumed = iter(dataset)
        >>> resumed.load_state_dict(state)
        >>> bool((next(resumed) == next(iterator)).all())
        True
        """
        self._check_usable()
        with self._lock:
            if self._coordinator.failed:
                self._coordinator.check_usable()
            ahead = self._not_handed_out()
            position = self._position(ahead)
            elements = self._before + self._skipped + self._profile.elements_until(self._left) - ahead
        return self._envelope.seal(position, elements, self._epochs)

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

    @_entry
    def load_state_dict(self, state: dict[str, Any], *, moved: Moved | Mapping[str, str] | None = None) -> None:
        """Go to the position that ``state`` describes, from any position.

        Iterators opened later over the same Dataset count on from the state: after a state of the fifth epoch, the next
        iterator shuffles as the sixth.

        A state contains file names only for comparison. The files that are opened are those of the pipeline's own
        inputs.

        Args:
            state: a result of ``state_dict`` for the same pipeline, from this or another process, or its conversion by
                ``checkpoint.to_json``.
            moved: the new names of files that were renamed after the state was saved: a dict from old name prefixes to
                new ones, such as ``{"/old/disk/": "s3://bucket/"}``, or a function that takes an old name (without any
                secrets of a URL) and returns the new one.

        Raises:
            ClosedError: after ``close()``.
            StateError: if the state is from another pipeline or version, names other files, or is damaged. The position
                of the iterator is then unchanged.
            TypeError: if ``moved`` is neither a dict of strings nor a function.
        """
        self._check_usable()
        self._load(state, moved)

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

    @_entry
    def close(self) -> None:
        """Stop background threads, wait for them, and release files. May be called twice."""
        self._closed = True
        self._stop_counting(self._not_handed_out())
        self._ahead, self._pulled = _NOTHING, None
        self._let_go(wait=True)
        if self._page is not None:
            self._page.close()

    def _let_go(self, *, wait: bool) -> None:
        if self._finalizer.detach():
            self._coordinator.shut_down(self._finish, wait=wait)
        elif wait:
            self._coordinator.join()


_NOTHING: Iterator[Any] = iter([])

_STEP_MAX = 1024  # elements that are pulled ahead
_STEP_BYTES = 64 * 1024


def _compute_first(reference: weakref.ref[DatasetIterator[Any]], lock: threading.RLock, begun: threading.Event) -> None:
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


@dataclass(frozen=True)
class _Opened:
    """A plan that is open."""

    coordinator: Coordinator
    root: Operator
    context: ExecutionContext
    profile: PipelineProfile
    observer: Observer
    epochs: EpochLedger

    def close(self) -> None:
        """Close the operators and the profile; called by the coordinator after the threads have ended."""
        self.root.close()
        self.profile.close()


def probed_spec(node: Node) -> Any:
    """Return the element spec of a node whose output is only known by running user code: that of its first element.

    The kinds, dtypes and ranks of components are those of the first element. Its sizes say nothing about those of later
    elements, so every dimension is None.

    Raises:
        SpecError: if the plan has no elements.
    """
    found = probe(node, spec_of)
    if not found:
        raise SpecError(
            f"{node}: the element spec can only be determined by computing an element, and there is none; "
            "pass output_signature to from_generator to declare it"
        )
    return map_spec(without_sizes, found[0])


_PROBE_FAILURES_MAX = 100


@guarded
def probe(plan: Node, look: Callable[[Any], Any] = lambda element: element) -> list[Any]:
    """Return ``look(element)`` for the first element of a plan in a list, or an empty list. Uses up no shuffle order.

    If the element or ``look`` fails, for example on the spec of an inner dataset without elements, the next element is
    tried. If all fail, or too many, the last exception is raised.
    """
    coordinator, operator = open_plan(plan, probing=True)
    failure: Exception | None = None
    try:
        for failures in itertools.count(1):
            try:
                chunk = operator.pull(1)
                if chunk is not None:
                    return [look(chunk.only())]
                break
            except Exception as error:
                if failures == _PROBE_FAILURES_MAX:
                    raise
                failure = error
        if failure is not None:
            raise failure
        return []
    finally:
        del failure  # see runtime/contract.py on exceptions that are kept
        coordinator.shut_down(operator.close, wait=True)

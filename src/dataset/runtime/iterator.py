"""The iterator over a dataset: opens a plan's operators, hands out elements, saves and restores its place."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import Any, Generic, Self, TypeVar

from dataset.closing import Closing
from dataset.errors import SpecError, StateError
from dataset.options import Options
from dataset.plan.cardinality import UNKNOWN_CARDINALITY, is_known
from dataset.plan.checks import require_int
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.plan.spec import spec_of
from dataset.plan.structure import Structure, is_dict
from dataset.runtime import elastic
from dataset.runtime.coordinator import PATIENCE_SECONDS, Coordinator
from dataset.runtime.envelope import Envelope
from dataset.runtime.observation import Observation, Observer, OpenObserver
from dataset.runtime.operator import Operator, Reader, State, open_plan, trusting
from dataset.runtime.rng import EpochLedger
from dataset.runtime.stages import Stage
from dataset.runtime.statistics import PipelineStatistics, TuningLog

T_co = TypeVar("T_co", covariant=True)

_FAR = 64  # elements, which are worth to go there


class DatasetIterator(Closing, Iterator[T_co], Generic[T_co]):
    """One pass over a dataset, as ``iter(dataset)`` gives it.

    Each element goes to exactly one caller of ``next``, also when several threads share the iterator. An exception
    raised by ``next`` stands for the element at that place; the next call goes on behind it. Background threads and
    files are let go at the end of the data, by ``close()``, at the end of a ``with`` block, or when the iterator is
    dropped.

    >>> from dataset import Dataset
    >>> with iter(Dataset.range(10).prefetch(2)) as iterator:
    ...     first = next(iterator)
    >>> first
    np.int64(0)
    """

    def __init__(self, plan: Node, options: Options, open_observer: OpenObserver, reader: Reader | None = None) -> None:
        self._plan = plan
        self._options = options
        self._reader = reader
        self._open_observer = open_observer
        self._lock = threading.RLock()  # guards the operators: one pull at a time
        self._closed = False
        self._exhausted = False
        self._take_over(self._open(EpochLedger()))

    def _open(self, epochs: EpochLedger) -> _Opened:
        observation = Observation(self._plan)
        observer = self._open_observer(observation, self._options)
        observation.observe(observer)
        coordinator, root = open_plan(
            self._plan, self._options, observation=observation, epochs=epochs, reader=self._reader
        )
        return _Opened(coordinator, root, observation, observer, epochs)

    def _take_over(self, opened: _Opened, elements: int = 0) -> None:
        self._is_fresh = True  # until it is asked for an element, or goes to a saved place
        self._before = elements  # handed out up to the place that was gone to
        self._skipped = 0
        self._left = 0  # pulls before it is time to look at the clock, or at the end
        self._lent: Iterator[Any] = _NOTHING  # elements that were pulled and are not handed out
        self._own(opened)

    def _own(self, opened: _Opened) -> None:
        """Hold what is open, and see to it that it is closed when the iterator is dropped."""
        self._coordinator, self._root = opened.coordinator, opened.root
        self._observation, self._observer = opened.observation, opened.observer
        self._epochs = opened.epochs
        self._finish = opened.close
        # Bound to what must end, not to self, which would then never be dropped.
        self._finalizer = weakref.finalize(self, self._coordinator.shut_down, self._finish, wait=False)
        self._finalizer.atexit = False  # the coordinator sees to that, with a bounded wait

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        if self._coordinator.forked:
            self._coordinator.check_usable()
        element: T_co
        with self._lock:
            for element in self._lent:
                return element
            if self._left <= 0:
                self._look()
            if self._left > 1 and self._root.lends > 1:
                self._lend()
                return next(self._lent)  # type: ignore[no-any-return]  # of a plan, which has no type
            self._left -= 1
            chunk = self._root.pull(1)
            if chunk is None:
                self._end(1)
                raise StopIteration
        element = chunk.only()
        return element

    def _lend(self) -> None:
        """Pull elements for the next calls, too, where nobody notices; raises StopIteration at the end.

        Most of what an element costs is the way through the operators. Each is handed out to one caller: the lock is
        held. Whatever else is done with the iterator begins with ``_give_back``.
        """
        root = self._root
        before, left = root.pulled(), self._left
        self._left -= 1
        try:
            chunk = root.pull(min(left, root.lends))
            if chunk is not None:
                if chunk.length > 1 and not _can_be_lent(chunk.structure):
                    root.go_back(before + 1)
                    chunk = chunk.slice(0, 1)
                self._lent = iter(chunk.rows())
                self._left -= chunk.length - 1
                return
        except BaseException as error:
            if not isinstance(error, Exception):  # KeyboardInterrupt and its like: nothing is lost
                self._lent, self._left = _NOTHING, left
                root.go_back(before)
            raise
        self._end(1)
        raise StopIteration

    def _give_back(self) -> None:
        """Have the operators stand behind what was handed out."""
        count = self._not_handed_out()
        if count:
            self._root.go_back(self._root.pulled() - count)
            self._lent = _NOTHING
            self._left += count

    def _not_handed_out(self) -> int:
        return length_hint(self._lent)

    def _end(self, in_vain: int) -> None:
        """There are no more elements; so many were asked for that are not there."""
        self._exhausted = True
        self._stop_counting(in_vain)
        self._let_go(wait=False)
        self._coordinator.join(PATIENCE_SECONDS)  # one may be blocked in user code that nobody needed

    def _look(self) -> None:
        """What need not be asked before each element."""
        self._is_fresh = False
        if self._closed:
            self._coordinator.check_usable()
        if self._exhausted:
            raise StopIteration
        self._left = self._observation.look(self._left)

    def _stop_counting(self, in_vain: int) -> None:
        self._observation.count(self._left + in_vain)
        self._left = 0

    def skip(self, count: int) -> int:
        """Go forward over elements that are not wanted, without making them where the plan allows it.

        It does where the place behind them is a matter of arithmetic: over arrays, ranges and files with an index,
        however they are shuffled, batched, zipped or dealt out, and whatever functions ``map`` calls for each element.
        These are not called for what is jumped over, so nothing of it fails; an element that would have is not left out
        of a batch or a count. Elsewhere elements are made and thrown away; one that fails there counts as one, as it
        does for ``next``, and is not raised.

        The iterator then stands where as many calls of ``next`` would have brought it. What it has made ahead, and
        jumps over, is thrown away. ``stats()`` counts only what ``next`` gives.

        Args:
            count: how many elements, at least 0.

        Returns:
            How many there were: less than ``count`` where the end came before.

        Raises:
            TypeError: if ``count`` is no int.
            ValueError: if it is negative.
            ClosedError: after ``close()``.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(1_000_000_000).map(lambda x: x + 1))
        >>> iterator.skip(999_999_997), next(iterator)
        (999999997, np.int64(999999998))
        >>> iterator.skip(5)
        2
        """
        count = require_int("skip", "count", count, minimum=0)
        if self._closed or self._coordinator.forked:
            self._coordinator.check_usable()
        left = count
        with self._lock:
            self._give_back()
            while left and not self._exhausted:
                jumped = self._jump(left)
                left -= jumped
                if left and not self._exhausted:
                    # Behind the end of a pass, say, there may be a place to jump from again.
                    left -= self._pass_over(1 if jumped >= _FAR else left)
            self._skipped += count - left
        return count - left

    def _jump(self, count: int) -> int:
        """Go forward over elements without making them: how many, at most ``count``; 0 where that cannot be done."""
        if isinstance(self._root, Stage) and count <= self._root.buffered()[0]:
            return 0  # they have been made, or are being made
        if self._is_fresh and self._plan.random_access and self._plan.cardinality() != UNKNOWN_CARDINALITY:
            return self._seek(count)
        try:
            place = self._root.state_dict()
        except StateError:  # it holds what is no plain data
            return 0
        with trusting():
            passed = _largest(count, lambda many: self._root.state_after(place, many) is not None)
            after = self._root.state_after(place, passed) if passed else None
        if after is not None:
            self._go_to(after)
        return passed

    def _seek(self, count: int) -> int:
        self._is_fresh = False
        available = self._plan.cardinality()
        if is_known(available) and available <= count:
            self._end(0)
            return available
        self._root.seek(count)
        return count

    def _go_to(self, place: State) -> None:
        """Go to a place that is known to be right, within the same iteration."""
        if self._is_fresh:
            self._is_fresh = False
            self._root.load_state_dict(place)
            return
        epochs = EpochLedger(instead_of=self._epochs)
        coordinator, root = open_plan(
            self._plan, self._options, observation=self._observation, epochs=epochs, reader=self._reader
        )
        try:
            root.load_state_dict(place)
        except BaseException:
            coordinator.shut_down(root.close, wait=True)
            raise
        if self._finalizer.detach() is not None:
            self._coordinator.shut_down(self._root.close, wait=True)
        self._own(_Opened(coordinator, root, self._observation, self._observer, epochs))

    def _pass_over(self, count: int) -> int:
        """Go forward over elements that are made: how many, at most ``count``."""
        self._is_fresh = False
        try:
            passed = self._root.pass_over(count)
        except Exception:
            if self._closed:
                raise
            return 1
        if not passed:
            self._end(0)
        return passed

    def stats(self) -> PipelineStatistics:
        """What each operator has done so far, how long it took, and which one holds up the others.

        May be called at any time, also after the end. Measuring takes about a hundredth of the time: where elements
        come quickly only some are timed, and the figures stand for all.

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
        asked = self._observation.elements_until(self._left) - self._not_handed_out()
        statistics: PipelineStatistics = self._observer.stats(asked - self._is_waited_for())
        return statistics

    def _is_waited_for(self) -> bool:
        """Whether another thread is inside ``next``."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return False
        return True

    def tuning_log(self) -> TuningLog:
        """What the autotuner has decided so far, when and why: a list of ``Decision`` that prints as lines of text.

        >>> from dataset import Dataset
        >>> iter(Dataset.range(10)).tuning_log()
        TuningLog: nothing was decided
        """
        log: TuningLog = self._observer.tuning_log()
        return log

    def state_dict(self) -> State:
        """The place behind the last element that was handed out, as plain data.

        Returns:
            Numbers, strings, bytes, arrays, lists and dicts; the content is the library's business.

        Raises:
            ClosedError: after ``close()``.
            StateError: if an operator holds elements that are no plain data, such as objects of user classes.

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
        if self._closed or self._coordinator.forked:
            self._coordinator.check_usable()
        with self._lock:
            self._give_back()
            place = None if self._exhausted else self._root.state_dict()
            elements = self._before + self._skipped + self._observation.elements_until(self._left)
        return self._envelope.seal(place, elements, self._epochs)

    def load_state_dict(self, state: State) -> None:
        """Go to the place that ``state`` describes, from wherever the iterator stands.

        Iterators that are opened afterwards over the same Dataset count on from there: the one after a state of the
        fifth epoch shuffles as the sixth.

        Args:
            state: what ``state_dict`` gave, for the same pipeline, in this process or another; or what
                ``checkpoint.to_json`` made of it.

        Raises:
            ClosedError: after ``close()``.
            StateError: if the state is of another pipeline or version, or is damaged; the iterator stays where it was.
        """
        if self._closed or self._coordinator.forked:
            self._coordinator.check_usable()
        state = self._envelope.open(state)
        place = state["operator"]
        with self._lock:
            self._give_back()
            begun = self._skipped + self._observation.elements_until(self._left) > 0
            fresh = self._open(EpochLedger(instead_of=self._epochs))
            try:
                if place is not None and state["shares"] != elastic.shares(self._plan):
                    place = elastic.moved(place, state["shares"], self._plan)
                if place is not None:
                    fresh.root.load_state_dict(place)
            except BaseException as error:
                fresh.coordinator.shut_down(fresh.close, wait=True)
                if isinstance(error, StateError) or not isinstance(error, Exception):
                    raise
                raise StateError(f"the pipeline cannot go to the saved place: {error!r:.500}") from error
            self._let_go(wait=True)
            self._take_over(fresh, state["elements"])
            self._envelope.go_on(state, self._epochs, begun=begun)
            self._is_fresh = False
            self._exhausted = place is None
            if self._exhausted:
                self._let_go(wait=True)

    @lazy_property
    def _envelope(self) -> Envelope:
        return Envelope(self._plan)

    def close(self) -> None:
        """Stop background threads, wait for them, let go of files. May be called twice."""
        self._closed = True
        lent, self._lent = self._lent, _NOTHING
        self._stop_counting(length_hint(lent))
        self._let_go(wait=True)

    def _let_go(self, *, wait: bool) -> None:
        if self._finalizer.detach() is not None:
            self._coordinator.shut_down(self._finish, wait=wait)
        elif wait:
            self._coordinator.join()


def _largest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to ``most`` of which something holds that holds of all smaller ones; 0 if of none."""
    if holds(most):
        return most
    if not holds(1):
        return 0
    first, stop = 1, most
    while stop - first > 1:
        middle = (first + stop) // 2
        first, stop = (middle, stop) if holds(middle) else (first, middle)
    return first


_NOTHING: Iterator[Any] = iter([])


def _can_be_lent(structure: Structure) -> bool:
    """Whether elements can be put together before they are wanted: it calls no constructor of the user's."""
    return structure.is_immutable or (is_dict(structure) and all(child.is_immutable for child in structure.children))


@dataclass(frozen=True)
class _Opened:
    """A plan that is open."""

    coordinator: Coordinator
    root: Operator
    observation: Observation
    observer: Observer
    epochs: EpochLedger

    def close(self) -> None:
        """What the coordinator calls when all is over."""
        self.root.close()
        self.observation.close()


def probed_spec(node: Node) -> Any:
    """The spec of what comes out where only running user code tells: that of the first element.

    Raises:
        SpecError: if there is no element.
    """
    found = probe(node, spec_of)
    if not found:
        raise SpecError(
            f"{node.located()}: what comes out can only be told by making an element, and there is none; "
            "from_generator can declare it with output_signature"
        )
    return found[0]


_PROBE_FAILURES_MAX = 100


def probe(plan: Node, look: Callable[[Any], Any] = lambda element: element) -> list[Any]:
    """What ``look`` says of the first element of a plan, in a list, or an empty list. Uses up no shuffle order.

    An element that fails says nothing, nor does one of which ``look`` cannot tell anything, such as the spec of an
    empty dataset in it: so the next is tried. The exception comes out where all fail, or many.
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
        del failure  # see runtime/operator.py on exceptions that are kept
        coordinator.shut_down(operator.close, wait=True)

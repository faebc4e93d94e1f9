"""The iterator over a dataset: opens a plan's operators, hands out elements, saves and restores its place."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, Self, TypeVar

from dataset.closing import Closing
from dataset.errors import SpecError, StateError
from dataset.options import Options
from dataset.plan.fingerprint import fingerprint
from dataset.plan.node import Node
from dataset.plan.spec import spec_of
from dataset.runtime.coordinator import PATIENCE_SECONDS, Coordinator
from dataset.runtime.observation import Observation, Observer, OpenObserver
from dataset.runtime.operator import Operator, State, open_plan
from dataset.runtime.state import digest
from dataset.runtime.statistics import PipelineStatistics, TuningLog

T_co = TypeVar("T_co", covariant=True)

STATE_VERSION = 1


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

    def __init__(self, plan: Node, options: Options, open_observer: OpenObserver) -> None:
        self._plan = plan
        self._options = options
        self._open_observer = open_observer
        self._lock = threading.RLock()  # guards the operators: one pull at a time
        self._closed = False
        self._exhausted = False
        self._open()

    def _open(self) -> None:
        observation = Observation(self._plan)
        observer = self._open_observer(observation, self._options)
        observation.observe(observer)
        coordinator, root = open_plan(self._plan, self._options, observation=observation)
        self._take_over(coordinator, root, observation, observer)

    def _take_over(
        self, coordinator: Coordinator, root: Operator, observation: Observation, observer: Observer
    ) -> None:
        self._coordinator, self._root = coordinator, root
        self._observation, self._observer = observation, observer
        self._left = 0  # pulls before it is time to look at the clock, or at the end
        self._finish = _closing(root, observation)
        # Bound to what must end, not to self, which would then never be dropped.
        self._finalizer = weakref.finalize(self, coordinator.shut_down, self._finish, wait=False)
        self._finalizer.atexit = False  # the coordinator sees to that, with a bounded wait

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        if self._coordinator.forked:
            self._coordinator.check_usable()
        with self._lock:
            if self._left <= 0:
                self._look()
            self._left -= 1
            chunk = self._root.pull(1)
            if chunk is None:
                self._exhausted = True
                self._stop_counting(1)  # it was asked for one that is not there
                self._let_go(wait=False)
                self._coordinator.join(PATIENCE_SECONDS)  # one may be blocked in user code that nobody needed
                raise StopIteration
        element: T_co = chunk.only()
        return element

    def _look(self) -> None:
        """What need not be asked before each element."""
        if self._closed:
            self._coordinator.check_usable()
        if self._exhausted:
            raise StopIteration
        self._left = self._observation.look(self._left)

    def _stop_counting(self, in_vain: int) -> None:
        self._observation.count(self._left + in_vain)
        self._left = 0

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
        asked = self._observation.elements_until(self._left)
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
            place = None if self._exhausted else self._root.state_dict()
        return {
            "version": STATE_VERSION,
            "fingerprint": fingerprint(self._plan),
            "operator": place,
            "digest": digest(place),
        }

    def load_state_dict(self, state: State) -> None:
        """Go to the place that ``state`` describes, from wherever the iterator stands.

        Args:
            state: what ``state_dict`` gave, for the same pipeline, in this process or another.

        Raises:
            StateError: if the state is of another pipeline or version, or is damaged; the iterator stays where it was.
        """
        if self._closed or self._coordinator.forked:
            self._coordinator.check_usable()
        self._check_state(state)
        with self._lock:
            fresh = type(self)(self._plan, self._options, self._open_observer)
            try:
                if state["operator"] is not None:
                    fresh._root.load_state_dict(state["operator"])  # noqa: SLF001  # its own class
            except Exception as error:
                fresh.close()
                if isinstance(error, StateError):
                    raise
                raise StateError(f"the pipeline cannot go to the saved place: {error!r}") from error
            self._let_go(wait=True)
            fresh._finalizer.detach()  # noqa: SLF001
            self._take_over(fresh._coordinator, fresh._root, fresh._observation, fresh._observer)  # noqa: SLF001
            self._exhausted = state["operator"] is None
            if self._exhausted:
                self._let_go(wait=True)

    def _check_state(self, state: Any) -> None:
        keys = {"version", "fingerprint", "operator", "digest"}
        if type(state) is not dict or set(state) != keys:
            raise StateError(f"expected what state_dict() returned, a dict of {sorted(keys)}, got {state!r:.100}")
        version, mine = state["version"], fingerprint(self._plan)
        if type(version) is not int or version != STATE_VERSION:
            raise StateError(f"the state has version {version!r}, this library reads version {STATE_VERSION}")
        if type(state["fingerprint"]) is not str or state["fingerprint"] != mine:
            raise StateError(
                f"the state belongs to another pipeline (fingerprint {state['fingerprint']!r}, this one has {mine!r}); "
                "build the pipeline exactly as it was when the state was saved"
            )
        if type(state["digest"]) is not str or state["digest"] != digest(state["operator"]):
            raise StateError("the state is damaged: its content does not fit its digest")

    def close(self) -> None:
        """Stop background threads, wait for them, let go of files. May be called twice."""
        self._closed = True
        self._stop_counting(0)
        self._let_go(wait=True)

    def _let_go(self, *, wait: bool) -> None:
        if self._finalizer.detach() is not None:
            self._coordinator.shut_down(self._finish, wait=wait)
        elif wait:
            self._coordinator.join()


def _closing(root: Operator, observation: Observation) -> Callable[[], None]:
    def close() -> None:
        root.close()
        observation.close()

    return close


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

"""Controller of a parallel stage: who does the work, how many elements a task has, and how many calls run at once.

The consumer computes the first elements itself. From the second pull on it is known whether the function waits, is so
cheap that no thread could help, or computes:

- If it **waits**, for files or servers, workers take over at once. The number of calls is doubled as long as the rate
  grows.
- If it is **cheap**, the consumer keeps the work.
- Otherwise, the consumer and the workers are compared (runtime/choice.py). If the consumer is faster and worker
  processes are allowed, those are compared with it, too.

Comparisons are repeated, less and less often. If the time per element has changed for a while, the work is judged anew.
In between, the tuner makes small changes of the number of calls (autotune/tuner.py), within bounds: work that computes
for a share of its time cannot keep more calls busy than the cores divided by that share.

A comparison covers what matters to the consumer: the time that passes until it has the elements. A consumer that does
something else between its requests, such as a training step, *has gaps*. Segments then span whole requests, because
workers make elements during the gaps; only a way that is much slower is given up within a request.

All of this is arithmetic. The operator reports what was done, and the clock is an argument, so that tests run in
virtual time.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from dataset.ramp import NEEDED, Ramp
from dataset.runtime.choice import (
    CLEAR,
    INLINE,
    PROCESSES,
    SEGMENT_SECONDS,
    Action,
    Choice,
    Learned,
    Segment,
    Watch,
)
from dataset.runtime.metrics.background import Tunable
from dataset.world import time

try:
    from resource import RUSAGE_THREAD, getrusage

    def _switches() -> int:
        return getrusage(RUSAGE_THREAD).ru_nvcsw

except ImportError:  # not on macOS and Windows

    def _switches() -> int:
        return time.perf_counter_ns()  # any pull may have waited; its CPU time tells


T = TypeVar("T")

THREADS = "threads"

TASK_SECONDS = 12e-3
"""Target duration of a task.

Handing one over costs about 20 microseconds, and several times that while other threads hold the interpreter lock: two
threads that decoded photos, 0.9 ms each, had 5 to 12% less throughput with tasks of 4 ms.
"""

REMOTE_TASK_SECONDS = 5e-3
"""Target duration of a task for another process; handing one over costs about 200 microseconds."""

SIZE_MAX = 32
"""Maximum elements of a task if the consumer requests fewer; this many are computed although not requested."""

CHEAP_SECONDS = 2.5e-4
"""A task of the maximum size that takes less than this, input included, is not worth handing over."""

LEASE = 16
"""How many inline pulls like the last one the consumer may make before it measures again."""

LEASE_SECONDS = 5e-3
"""How long they may take."""

CALLS_FIRST = 16
"""How many calls a function that only waits begins with."""

PROCESS_SECONDS = 1e-4
"""The cost of an element from which processes are tried; handing over a task costs about 200 microseconds."""

_HANDOVER_SECONDS = 2.5e-4  # minimum time between two handovers: a task takes at least this long for each call
_WAITING = 0.8  # of the time: a function that uses the processor less than this waits for something
_WORKING = 0.5  # of the time: workers that work less than this are limited by their input or their consumer
_CROWD = 4  # threads that may take turns with the interpreter lock: one of them computes for at least a quarter
_PROBE_SECONDS = 2e-3  # of inline work before it is judged: the first pulls are small, and their fixed cost is high
_PULLS = 3
_STEP_SECONDS = 1e-2  # the shortest step of the ramp
_LOOK_SECONDS = 5e-2  # of work in the accepted way between two looks at it
_IDLE = 0.1  # cores: less may be the work of others
_BUSY = 0.75  # cores: a process that uses more does not only wait
_GAP = 0.05  # of the time: a consumer that does more than this between requests is measured by whole requests
_DEARER = 4  # cheap work is judged anew if it becomes this many times as expensive
_SAMPLES = 7


class Clock(NamedTuple):
    """What a controller reads of the machine.

    Attributes:
        now: returns the time in seconds.
        cpu_seconds: returns the CPU time of the process.
        switches: returns how often the current thread has waited for something.
        thread_seconds: returns the CPU time of the current thread.
    """

    now: Callable[[], float] = time.perf_counter
    cpu_seconds: Callable[[], float] = time.process_time
    switches: Callable[[], int] = _switches
    thread_seconds: Callable[[], float] = time.thread_time


class _Mark(NamedTuple):
    """A moment: what the clock says, and how many elements there were."""

    now: float
    cpu_seconds: float
    elements: int
    switches: int = 0
    thread_seconds: float = 0.0


class Controller:
    """Decides who does the work of a stage, from reports of what was done.

    Args:
        calls: the number of concurrent calls, which the controller sets if the function waits.
        cores: how many cores the work may keep busy.
        ways: who may do the work, the safest first.
        way: who does the first of it.
        clock: the clock.

    Attributes:
        size: the number of elements of the next task.
        choice: the choice between the consumer, threads and processes.
        actions: the decisions that the log has not been told yet.
        each: seconds per element when the consumer does the work; 0 if unknown.
        may_compare: returns whether no other stage compares ways to do its work.
        resting_processes: returns how many worker processes rest.
        wants_processes: whether processes should be started, because they may be tried soon.
        has_processes: whether they are ready.
    """

    def __init__(
        self,
        calls: Tunable,
        cores: float,
        *,
        ways: tuple[str, ...] = (INLINE, THREADS),
        way: str = THREADS,
        clock: Clock = Clock(),  # noqa: B008  # it has no state
    ) -> None:
        self.size = 1
        self.choice: Choice[str] = Choice(ways, way, unseen=(PROCESSES,))
        self.actions: deque[Action] = deque(maxlen=64)
        self.each = 0.0
        self.may_compare: Callable[[], bool] = lambda: True
        self.resting_processes: Callable[[], int] = int
        self.wants_processes = self.has_processes = way == PROCESSES
        self._calls = calls
        self._most = calls.maximum
        self._cores = cores
        self._clock = clock
        self._is_judged = len(ways) == 1  # whether it is known whether the function waits, is cheap, or computes
        self._is_first = True  # the first pull, which opens files, fills buffers and imports modules
        self._calls_made: list[Segment] = []  # the calls of the function by the consumer, before that is known
        self._start_seconds = 0.0  # of these, with their inputs
        self._pull: _Mark | None = None  # the beginning of the consumer's pull
        self._input = _Mark(0.0, 0.0, 0)  # what reading the inputs took in this pull
        self._bound = 0.0  # seconds per element above which cheap work is judged anew
        self._work: deque[float] = deque(maxlen=_SAMPLES)  # seconds per element of tasks
        self._tasks = 0  # in the segment
        self._made = 0  # elements
        self._wait_seconds = 0.0  # of the consumer, in the segment
        self._work_seconds = 0.0  # of the workers, in the segment, without waiting for inputs
        self._waited_until = 0.0  # the end of what is counted of its waits
        self._ramp: Ramp | None = None
        self._segment: _Mark | None = None  # its beginning
        self._made_before = 0  # elements before it
        self._busy_seconds = 0.0  # of the consumer in the segment, while it works or waits in this stage
        self._has_gaps = False  # whether the consumer does something else for a noticeable time
        self._waits = False  # whether the function waits for something
        self._is_saving = False  # whether there are fewer calls than cores because the consumer needs no more
        self._only_computes = False  # whether the consumer did not wait for anything in its last segment
        self._watch = Watch()
        self._cpu_watch = Watch()  # the same for the CPU time of the process

    # What the operator asks

    @property
    def inline(self) -> bool:
        """Whether the consumer should do the work itself."""
        return self.choice.way == INLINE

    @property
    def in_processes(self) -> bool:
        """Whether processes should do the work."""
        return self.choice.way == PROCESSES

    @property
    def is_starting(self) -> bool:
        """Whether the consumer does the work because nothing is known about it yet."""
        return self.inline and not self._is_judged

    @property
    def is_comparing(self) -> bool:
        """Whether ways are compared, or the number of calls is raised."""
        return self.choice.is_trying or self._ramp is not None

    @property
    def is_settled(self) -> bool:
        """Whether the work was judged and nothing is being compared."""
        return self._is_judged and not self.is_comparing

    @property
    def measures(self) -> bool:
        """Whether the consumer must report each request."""
        return not self._is_judged or self.choice.is_trying

    @property
    def pull_max(self) -> int:
        """How many elements the consumer may compute inline at once: few during a comparison."""
        if not (self.measures and self.each):
            return sys.maxsize
        return max(1, int(SEGMENT_SECONDS / self.each))

    @property
    def learned(self) -> Learned | None:
        """What the next stage that does the same work may begin with; None if nothing is known yet."""
        if not self._is_judged:
            return None
        choice, now = self.choice, self._clock.now()
        numbers = self._calls.value, self._watch.usual, self._bound, choice.patience, choice.rest(now), choice.debt(now)
        return Learned(choice.accepted, *numbers, waits=self._waits, has_gaps=self._has_gaps)

    def warm_start(self, learned: Learned) -> None:
        """Begin as the last stage that did the same work ended."""
        way = learned.way
        if way not in self.choice.ways or (way == INLINE and self._calls.is_fixed and not learned.patience):
            return
        self._is_judged, self._is_first = True, False
        self._bound, self._watch = learned.bound, Watch(learned.each)
        self._waits, self._has_gaps = learned.waits, learned.has_gaps
        if learned.patience and not learned.waits:
            self._bound_calls(1.0)
            if learned.each and way != INLINE:
                self._set_first_size(learned.each * self._calls.value)
        self.choice.accept(way)
        self.wants_processes = self.in_processes
        now = self._clock.now()
        self.choice.resume(learned.patience, now + learned.rest, now + learned.debt)

    def exclude(self, way: str) -> None:
        """Never use a way again: it is not possible here."""
        if way in self.choice.ways:
            self.choice.exclude(way)
            self._begin_segment(None)

    # The consumer's requests, while they are measured

    def requested(self, given: int) -> None:
        """Note that the consumer requests more; all of the ``given`` elements that it requested before were given."""
        if self._by_requests and not (self.inline and self._pull is None):  # else it may be given what workers made
            self._look(self._clock.now(), given)

    def waited(self, since: float, until: float) -> None:
        """Note that the consumer has waited for the workers."""
        seconds = max(0.0, until - max(since, self._waited_until))
        self._waited_until = until
        self._wait_seconds += seconds
        self._busy_seconds += seconds

    # The consumer's work

    def begin_inline(self) -> None:
        """Note that the consumer begins to compute elements itself."""
        clock = self._clock
        if self._is_judged and (self._segment is not None or self._by_requests):
            self._pull = _Mark(clock.now(), 0.0, 0)
            return
        self._input = _Mark(0.0, 0.0, 0)
        self._pull = _Mark(clock.now(), clock.cpu_seconds(), self._made, clock.switches(), clock.thread_seconds())
        if self._segment is None:
            self._begin_segment(self._pull)

    def read_input(self, pull: Callable[[int], T], n: int) -> T:
        """Return ``pull(n)``, and note how long it takes, which is not the time of the function."""
        clock, before = self._clock, self._input
        now, own, switches = clock.now(), clock.thread_seconds(), clock.switches()
        try:
            return pull(n)
        finally:
            seconds, switches = clock.now() - now, clock.switches() - switches
            own = before.thread_seconds + clock.thread_seconds() - own
            self._input = _Mark(before.now + seconds, 0.0, 0, before.switches + switches, own)

    def end_inline(self, count: int, size_max: int) -> float:
        """Note that the consumer has computed ``count`` elements; return the seconds.

        A task may have up to ``size_max`` elements.
        """
        pull = self._pull
        assert pull is not None  # it has begun
        now = self._clock.now()
        self._made += count
        self._busy_seconds += now - pull.now
        self.each = (now - pull.now) / count
        if not self._is_judged:
            self._note_start(pull, count, now, size_max)
        else:
            self._look_within(now)
        return now - pull.now

    def lease(self, count: int, seconds: float) -> int:
        """Return how many elements may be pulled without a report, which are counted; the last pull had ``count``."""
        if not (self.inline and self.is_settled):
            return 0
        pulls = min(LEASE, int(LEASE_SECONDS / max(seconds, 1e-9)))
        self._made += pulls * count
        self._busy_seconds += pulls * seconds
        return pulls * count

    def _note_start(self, pull: _Mark, count: int, now: float, size_max: int) -> None:
        if self._is_first:
            self._is_first, self._segment = False, None
            return
        seconds = max(1e-9, now - pull.now - self._input.now)
        has_waited = self._clock.switches() - pull.switches > self._input.switches
        used = self._seconds_used(pull, seconds) if has_waited else seconds
        self._calls_made.append(Segment(count, seconds, used))
        self._start_seconds += now - pull.now
        if self._start_seconds < _PROBE_SECONDS:
            return
        calls = Segment(*map(sum, zip(*self._calls_made, strict=True)))
        whole = Segment(calls.elements, self._start_seconds, self._start_seconds - calls.seconds + calls.cpu_seconds)
        self._calls_made, self._start_seconds = [], 0.0
        self._is_judged = self._only_computes = True
        self.each = whole.each
        self._bound_calls(min(calls.cores, 1.0))
        cheap = CHEAP_SECONDS / size_max
        if calls.cores < _WAITING:
            self._call_many(now, calls.cores, int(CALLS_FIRST * max(1, calls.each / SEGMENT_SECONDS)), calls.each)
        elif whole.each <= cheap:
            self._bound = _DEARER * cheap
        else:
            self._compare(THREADS, now, whole if whole.each > SEGMENT_SECONDS else None)  # the first calls are slower
        self._begin_segment(None)

    def _seconds_used(self, pull: _Mark, seconds: float) -> float:
        """Return for how long the function has computed in a pull in which it has waited for something.

        If other threads compute, it may have waited for the lock only. Then it has got a part of that time itself.
        """
        own = self._clock.thread_seconds() - pull.thread_seconds - self._input.thread_seconds
        if _CROWD * own < _WAITING * seconds:
            return own
        return min(seconds, self._clock.cpu_seconds() - pull.cpu_seconds)

    # The workers' work

    def add(self, count: int, seconds: float, size_max: int, now: float, waiting_since: float) -> None:
        """Note that workers have computed a task of ``count`` elements in ``seconds``, which ended at ``now``.

        The next task may have up to ``size_max`` elements. ``waiting_since`` is when the consumer began to wait; 0 if
        it does not wait.
        """
        if waiting_since:
            self.waited(waiting_since, now)
        self._work.append(seconds / count)
        self._tasks += 1
        self._work_seconds += seconds
        self._made += count
        if self._ramp is None:
            self._resize(size_max)
        if self.inline:
            return  # the task had begun before
        if waiting_since or not self.choice.is_trying:
            self._look_within(now)

    def _resize(self, size_max: int) -> None:
        if self.in_processes:
            target = REMOTE_TASK_SECONDS
        else:
            target = max(TASK_SECONDS if self.is_settled else SEGMENT_SECONDS, self._calls.value * _HANDOVER_SECONDS)
        wanted = max(1, min(size_max, self.size * 4, int(target / max(_median(self._work), 1e-9))))
        if len(self._work) < _PULLS and (wanted > self.size or self.in_processes):
            # A finished element waits for the others of its task, so larger tasks need a reason. The first task in a
            # process loads what it needs, which is no reason for smaller ones.
            return
        if wanted >= self.size * 2 or wanted <= self.size // 2 or (wanted == size_max != self.size):
            self.size = wanted
            self._work.clear()

    def _set_first_size(self, each: float) -> None:
        self.size = max(1, min(SIZE_MAX, int(SEGMENT_SECONDS / max(each, 1e-9))))
        self._work.clear()

    # Segments

    def _begin_segment(self, mark: _Mark | None) -> None:
        self._segment, self._made_before = mark, self._made
        self._tasks = 0
        self._wait_seconds = self._work_seconds = self._busy_seconds = 0.0

    def _look_within(self, now: float) -> None:
        """Look at what was made, in the course of a request."""
        if not self._by_requests:
            self._look(now, self._made)
        elif (begun := self._segment) is not None:
            made = self._made - self._made_before
            if self.choice.is_much_slower(made, now - begun.now):
                self._look(now, begun.elements + made)

    def _look(self, now: float, count: int) -> None:
        """End the segment if it is long enough. ``count`` is the number of elements so far."""
        begun = self._segment
        if begun is None:
            self._begin_segment(_Mark(now, self._clock.cpu_seconds(), count, self._clock.switches()))
            return
        if count <= begun.elements or now - begun.now < self._least_seconds or not self._is_whole:
            return
        cpu_seconds = self._clock.cpu_seconds()
        if self.inline and self.wants_processes and not self.has_processes:  # their start takes a core away
            self._begin_segment(_Mark(now, cpu_seconds, count, self._clock.switches()))
            return
        segment = Segment(count - begun.elements, now - begun.now, cpu_seconds - begun.cpu_seconds)
        if self._ramp is not None:  # calls that began together end together, perhaps a moment before the segment does
            most = self._calls.value * segment.elements / max(self._work_seconds, 1e-9) * segment.seconds
            segment = segment._replace(elements=min(segment.elements, math.ceil(most)))
        # If the workers wait for inputs, the consumer waits for those, and not for the work.
        is_busy = self._work_seconds > _WORKING * self._calls.value * segment.seconds
        waited = self._wait_seconds / segment.seconds if is_busy else 0.0
        if self._wait_seconds < NEEDED * segment.seconds and self.choice.accepted == THREADS and self.is_settled:
            self._save_calls(now, max(1, math.ceil(self._work_seconds / segment.seconds)))
        busy_seconds = self._busy_seconds
        has_gaps = busy_seconds < (1 - _GAP) * segment.seconds
        switches = self._clock.switches() if self.inline else 0
        tolerated = 0 if has_gaps else segment.elements // 2  # what the consumer does in the gaps may wait
        self._only_computes = self.inline and switches - begun.switches <= tolerated
        self._begin_segment(_Mark(now, cpu_seconds, count, switches))
        way = self.choice.way
        if has_gaps and not self._has_gaps:
            self._has_gaps = True
            if self.choice.accepted != INLINE:
                self.choice.give_up()  # that the consumer does something else only makes workers more useful
            elif (verdict := self.choice.verdict) is None or verdict.ratio * segment.seconds > busy_seconds:
                self.choice.restart(now)  # else the refused way alone takes longer than inline work and the gaps
        else:
            self._end(segment, now, waited)
        if self.choice.way != way or not self._is_judged:
            self._begin_segment(None)
            self._pull = None
            self._work.clear()

    @property
    def _by_requests(self) -> bool:
        """Whether segments end where a request begins: the consumer is compared with what it does in between."""
        return self._has_gaps and self.choice.is_trying

    @property
    def _least_seconds(self) -> float:
        if self._ramp is not None:
            return _STEP_SECONDS
        return self.choice.segment_seconds if self.measures else max(_LOOK_SECONDS, self.choice.segment_seconds)

    @property
    def _is_whole(self) -> bool:
        """Whether the segment ends where it began: workers that start together finish together for a while."""
        calls = self._calls.value
        if self.inline:
            return True
        if self._ramp is not None or self.is_settled:
            return self._tasks >= max(_SAMPLES, calls)  # those in progress have passed through
        return self._tasks >= 2 * calls and (self._by_requests or not self._tasks % calls)

    def _end(self, segment: Segment, now: float, waited: float) -> None:
        if self._ramp is not None:
            self._climb(self._ramp, segment, now, waited)
        elif self.choice.is_trying:
            way = self.choice.accepted
            self.choice.report(self._undisturbed(segment) if self.inline else segment, now)
            if self.choice.verdict is not None:
                self.actions.append(self.choice.verdict.action)
                if self.choice.way != way:
                    self._watch, self._cpu_watch = Watch(), Watch()
        elif not self._is_judged:  # workers were given the first elements
            if self._is_first:
                self._is_first = False
                return
            self._is_judged = True
            self._judge(segment, now, waited)
        else:
            self._reconsider(segment, now, waited)

    def _reconsider(self, segment: Segment, now: float, waited: float) -> None:
        """Look at a segment of work in the accepted way."""
        may_compare = self.choice.is_due if self._waits else self.choice.is_paid
        if self._has_changed(segment) and may_compare(now):
            self._watch, self._cpu_watch = Watch(), Watch()
            self.actions.append(Action(now, "look again", None, None, "the work or the consumer has changed"))
            self._judge_anew(segment, now, waited)
        elif self.choice.is_due(now) or (self.choice.patience == 1 and (self._needs_processes or self.has_processes)):
            self._explore(segment, now, waited)  # threads have lost; processes need not wait for what that has cost

    def _judge(self, segment: Segment, now: float, waited: float) -> None:
        """Decide what to do about work whose way may be wrong."""
        if segment.cores < _WAITING and waited > _WAITING:
            self._call_many(now, segment.cores, self._calls.value, self._usual_of_work)
        elif segment.cores > _BUSY and INLINE in self.choice.ways:
            self._compare(THREADS if self.inline else INLINE, now, segment)

    def _has_changed(self, segment: Segment) -> bool:
        cpu_each = max(segment.cores, _IDLE) * segment.each
        if self._waits:  # the tuner follows the waits; how many calls are useful depends on what else they do
            return self._watch.has_changed(cpu_each)
        uses_more = self._cpu_watch.has_changed(cpu_each)
        takes_longer = self._watch.has_changed(segment.each)
        return uses_more or (takes_longer and not self._only_computes)  # else other programs take the core away

    @property
    def _usual_of_work(self) -> float:
        return _median(self._work) if self._work else 0.0

    def _judge_anew(self, segment: Segment, now: float, waited: float) -> None:
        if self._waits:
            self.choice.postpone(now)  # work that waits now and then keeps many calls for longer and longer
        else:
            self.choice.patience = 0
        self._waits = self._has_gaps = False
        if self.in_processes:
            self._compare(INLINE, now, segment)
        elif INLINE not in self.choice.ways or self._calls.is_fixed:
            self._judge(segment, now, waited)
        else:
            self._probe()

    def _probe(self) -> None:
        """Let the consumer do the work until it is known again whether the function waits."""
        self._is_judged, self._bound = False, 0.0
        self.each = self._usual_of_work or self.each
        if self._is_saving:
            self._is_saving = False
            self._calls.value = max(self._calls.value, min(self._calls.maximum, math.ceil(self._cores)))
        self.choice.accept(INLINE)

    def _explore(self, segment: Segment, now: float, waited: float) -> None:
        """Compare the accepted way with another one again, if that may be better."""
        if self.inline:
            if self._bound:  # cheap
                if self.each > self._bound:
                    self._is_judged, self._bound = False, 0.0
            elif segment.cores < _WAITING and not (self._only_computes or self._calls.is_fixed):
                self._probe()  # it has begun to wait
            else:
                self._challenge_inline(now, segment)
        elif INLINE not in self.choice.ways or self._waits:
            return
        elif segment.cores <= _BUSY:
            if waited > _WAITING and not (self._calls.is_fixed or self.in_processes):
                self._probe()
        elif self.each > (CLEAR - 1 + waited) * segment.each:  # inline work is known to be slower
            self.choice.postpone(now)
        else:
            self._compare(INLINE, now, segment)

    def _challenge_inline(self, now: float, segment: Segment) -> None:
        if self._needs_processes:
            self.wants_processes = True  # the consumer continues while they start
        else:
            may_move = self.has_processes and self.choice.patience % 2
            self._compare(PROCESSES if may_move else THREADS, now, segment)

    @property
    def _needs_processes(self) -> bool:
        """Whether the consumer does work that processes may do faster, and there are none yet.

        An element must cost a fifth if some processes rest, which need not be started.
        """
        if not self.inline or self.wants_processes or PROCESSES not in self.choice.ways:
            return False
        return self.each >= (PROCESS_SECONDS / 5 if self.resting_processes() else PROCESS_SECONDS)

    def _compare(self, way: str, now: float, before: Segment | None) -> None:
        """Begin a comparison, unless another stage is in one; then the next look begins it.

        ``before`` is a segment of the accepted way that has just ended.
        """
        if way not in self.choice.ways or not self.may_compare():
            return
        self.choice.challenge(way, now, self._undisturbed(before) if before and self.inline else before)
        each = self.each if before is None else before.each
        if way != INLINE and each:
            self._set_first_size(each)

    def _undisturbed(self, segment: Segment) -> Segment:
        """Return a segment of inline work with a time less dependent on other programs, which may take the core away.

        Work that computes would take its CPU time on a core of its own. The passed time counts, too, by a third: on a
        machine that others use, several threads get a larger part of it than one.
        """
        if not self._only_computes:
            return segment
        seconds, own = segment.seconds, min(segment.seconds, segment.cpu_seconds)
        return segment._replace(seconds=math.cbrt(seconds * own * own))

    def _save_calls(self, now: float, needed: int) -> None:
        """Do without calls that are not needed by a consumer that hardly waits; they may take a core away from it.

        If it then waits, the tuner tries more. So this is done once until the work is judged anew.
        """
        knob = self._calls
        if needed < knob.value and not (self._waits or self._is_saving or knob.is_fixed):
            self._is_saving = True
            self.actions.append(Action(now, "save", knob.value, needed, "the consumer hardly waits"))
            knob.value = needed

    # Functions that wait

    def _bound_calls(self, share: float) -> None:
        """Bound the number of calls of a function that computes for this share of its time, unless it waits."""
        knob = self._calls
        if not knob.is_fixed:
            needed = math.ceil(self._cores / share) if share >= _WAITING else self._most
            knob.maximum = max(knob.minimum, min(self._most, needed))
            knob.value = min(knob.value, knob.maximum)

    def _call_many(self, now: float, share: float, calls: int, each: float) -> None:
        """Call the function many times at once, since it computes for only this share of its time."""
        self.choice.accept(THREADS)
        self._waits = True
        knob = self._calls
        self._bound_calls(share)
        before, most = knob.value, min(knob.maximum, int(2 * self._cores / max(share, 1 / sys.maxsize)))
        if knob.is_fixed or most <= before:
            return
        self._ramp = Ramp(max(before, min(calls, most // 2)), most)
        knob.value = self._ramp.value
        self._set_first_size(each)
        reason = f"the function computes for {share:.0%} of its time and waits for the rest"
        self.actions.append(Action(now, "raise", before, knob.value, reason))

    def _climb(self, ramp: Ramp, segment: Segment, now: float, waited: float) -> None:
        before = self._calls.value
        goes_on = ramp.report(segment.elements / segment.seconds, waited)
        self._calls.value = ramp.value
        if not goes_on:
            self._ramp = None
            reason = f"{ramp.gained:.1f} times the rate of the first step was measured"
            self.actions.append(Action(now, "keep", before, ramp.value, reason))


def _median(values: deque[float]) -> float:
    return sorted(values)[len(values) // 2]

"""Choice: which of several ways to do the same work is the fastest, found out by trying them for a bounded price.

A parallel map may call its function in the consumer's thread, in worker threads or in processes. A prefetch may have a
thread or none. All ways give the same elements, so what matters is only how long they take.

**Comparison.** The accepted way and a challenger take turns in short *segments*, in the order A B B A A B. Neighbours
are compared, because other programs slow both of them down alike. The first segment of the challenger is not counted:
threads start in it, and caches are cold. It counts only if the challenger is busy and much slower, even without what
its start may take. A comparison ends as soon as it is clear, or with the median of three pairs.
If the pairs contradict one another, the accepted way stays, and the segments of the next comparison are twice as long.

**CPU time.** The rate is the number of busy cores, divided by the CPU time per element. Threads never need clearly less
CPU time than the consumer alone. So if the consumer keeps a core busy, and threads keep no more than that busy, they
cannot be faster. That ends a comparison with the first pair, whatever the counts of elements suggest: these depend on
where a segment happens to end. If the threads keep far fewer cores busy, the elements of that segment have waited, and
one pair proves nothing.

**Price.** A segment is a few milliseconds of work. After a comparison the accepted way stays for at least ``_REST``
seconds, twice as long each time, and until the comparison is *paid*: its cost, the time or the CPU time that it has
wasted, is ``_PRICE`` of the time since then.
Work that seems to have changed, and the next iteration over the same work, must wait for that, too.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Generic, NamedTuple, TypeVar

from dataset.ramp import GAIN

T = TypeVar("T")

INLINE = "inline"
"""The way that takes no thread: the consumer does the work itself."""

PROCESSES = "processes"

_ACTIONS: dict[object, str] = {INLINE: "run inline", PROCESSES: "run in processes"}  # all other ways run in threads

SEGMENT_SECONDS = 4e-3
"""The shortest segment: hundreds of cheap elements, and many times the few microseconds that a handover takes."""

CLEAR = 1.4
"""A factor that a single pair proves if the CPU time agrees, and more than one core was busy for a gain."""

_PAIRS = 3
_TURNS = (False, True, True, False, False, True)  # whether it is the challenger's: each pair of neighbours is compared
_REST = 0.4
_PRICE = 0.025
_CHANGED = 1.7  # a factor by which the time per element differs if the work has changed
_CHANGED_SEGMENTS = 3


class Segment(NamedTuple):
    """Some consecutive elements that were computed in one way.

    Attributes:
        elements: the number of elements.
        seconds: the time that passed, including what the consumer did between its requests.
        cpu_seconds: the CPU time of the process.
    """

    elements: int
    seconds: float
    cpu_seconds: float

    @property
    def each(self) -> float:
        """Seconds per element."""
        return self.seconds / self.elements

    @property
    def cpu_each(self) -> float:
        """CPU seconds per element."""
        return self.cpu_seconds / self.elements

    @property
    def cores(self) -> float:
        """The mean number of cores that the process kept busy."""
        return self.cpu_seconds / self.seconds


class Action(NamedTuple):
    """A decision of a stage, for the tuning log (runtime/metrics/tuning_log.py)."""

    now: float
    action: str
    before: int | None
    after: int | None
    reason: str


class Comparison(NamedTuple):
    """Result of a comparison.

    Attributes:
        accepted, refused: the ways.
        ratio: the time per element of the accepted way, relative to the refused one.
        seconds: how long the comparison took.
        ended: when it ended.
        cores: how many times as many cores the refused way kept busy, if that shows that it cannot be faster.
    """

    accepted: object
    refused: object
    ratio: float
    seconds: float
    ended: float
    cores: float | None

    @property
    def action(self) -> Action:
        """The result for the tuning log, with its evidence and its cost."""
        evidence = f"{self.accepted} took {self.ratio:.2f} times as long as {self.refused}"
        if self.cores is not None:
            evidence = f"{self.refused} kept only {self.cores:.2f} times as many cores busy as {self.accepted}"
        reason = f"{evidence}; the comparison took {self.seconds * 1e3:.0f} ms"
        return Action(self.ended, _ACTIONS.get(self.accepted, "run in background"), None, None, reason)


class Choice(Generic[T]):
    """Choice between ways to do the same work, the safest one first.

    The owner does the work in the current ``way`` and reports segments of it. It calls ``challenge`` when another way
    may be better.

    Args:
        ways: the ways, the safest one first.
        accepted: the way to begin with; the safest one by default.
        unseen: the ways whose CPU time the segments do not tell, so that the busy cores cannot decide.

    Attributes:
        way: the way to use now.
        accepted: the way that is the best as far as is known.
        segment_seconds: the shortest segment; twice as long after pairs that have contradicted one another.

    Example:
        >>> choice = Choice(["inline", "threads"])
        >>> choice.challenge("threads", now=0.0)
        >>> now = 0.0
        >>> while (verdict := choice.verdict) is None:
        ...     seconds = 2e-3 if choice.way == "threads" else 4e-3
        ...     now += seconds
        ...     choice.report(Segment(10, seconds, 4e-3), now)
        >>> choice.accepted, round(verdict.ratio, 1)
        ('threads', 0.5)
    """

    def __init__(self, ways: Sequence[T], accepted: T | None = None, *, unseen: Container[T] = ()) -> None:
        self.ways = tuple(ways)
        self._unseen = unseen
        self.accepted = self.way = self.ways[0] if accepted is None else accepted
        self.segment_seconds = SEGMENT_SECONDS
        self.verdict: Comparison | None = None
        self.patience = 0
        self._challenger: T | None = None
        self._turn = 0
        self._is_first = False  # whether the challenger's first segment comes next, which does not count
        self._pairs: list[tuple[Segment, Segment]] = []
        self._before: Segment | None = None  # the first of a pair
        self._challenge_began = 0.0
        self._due = 0.0
        self._paid = 0.0  # when the comparisons are paid

    @property
    def is_trying(self) -> bool:
        """Whether a comparison is going on."""
        return self._challenger is not None

    def is_due(self, now: float) -> bool:
        """Return whether another comparison may begin."""
        return now >= self._due and self.is_paid(now)

    def is_paid(self, now: float) -> bool:
        """Return whether another comparison may begin if there is a reason for it."""
        return self._challenger is None and now >= self._paid

    def challenge(self, way: T, now: float, before: Segment | None = None) -> None:
        """Begin a comparison with another way; ``before`` is a segment of the accepted way that has just ended."""
        self.verdict = None
        self._challenger, self._pairs, self._before = way, [], before
        self._challenge_began = now
        self._turn, self._is_first = (0 if before is None else 1), True
        self._take_turn()

    def _take_turn(self) -> None:
        assert self._challenger is not None  # there is a comparison
        self.way = self._challenger if _TURNS[self._turn] else self.accepted

    def is_much_slower(self, elements: int, seconds: float) -> bool:
        """Return whether the challenger has been so slow since its segment began that its end need not be awaited."""
        if self.way != self._challenger:
            return False
        accepted = self._before or self._pairs[-1][0]
        return seconds - SEGMENT_SECONDS > CLEAR**2 * accepted.each * elements

    def report(self, segment: Segment, now: float) -> None:
        """Note a segment of the current way during a comparison. This may change the way, or end the comparison."""
        if self._challenger is None:
            return
        if self._is_first and self.way == self._challenger:
            self._is_first = False
            assert self._before is not None  # a segment of the accepted way comes first
            is_busy = segment.cores * CLEAR >= self._before.cores
            if not (is_busy and self.is_much_slower(segment.elements, segment.seconds)):
                return
        if self._before is None:
            self._before = segment
        else:
            pair = self._before, segment
            self._pairs.append(pair if _TURNS[self._turn] else pair[::-1])
            self._before = None
            if self._conclude(now):
                return
        self._turn += 1
        self._take_turn()

    def _conclude(self, now: float) -> bool:
        """End the comparison if the result is known; return False if more segments are needed."""
        gains = [accepted.each / challenger.each for accepted, challenger in self._pairs]
        last, challenger = self._pairs[-1]
        assert self._challenger is not None  # see report
        is_safer = self.ways.index(self._challenger) < self.ways.index(self.accepted)
        safe, other = (challenger, last) if is_safer else (last, challenger)
        is_seen = self.accepted not in self._unseen and self._challenger not in self._unseen
        differs = is_seen and other.cores * CLEAR < safe.cores  # threads that compute keep a core busy; these waited
        if is_seen and not differs and safe.cores * CLEAR > 1 and other.cores < GAIN * safe.cores:
            return self._end(gains[-1], now, is_better=is_safer, cores=other.cores / safe.cores)
        is_cheap = not differs and challenger.cpu_each <= GAIN * GAIN * last.cpu_each
        if is_cheap and (gains[-1] < 1 / CLEAR**2 or (gains[-1] > CLEAR and challenger.cores > GAIN)):
            gain = gains[-1]
        elif len(gains) > 1 and (min(gains) > GAIN * GAIN or max(gains) < 1 / GAIN):
            gain = math.sqrt(gains[-1] * gains[-2])
        elif len(gains) < _PAIRS:
            return False
        elif min(gains) * GAIN < 1 < max(gains) / GAIN:  # they are shorter than the bursts of the input, or of others
            self.segment_seconds *= 2
            return self._end(1.0, now, is_better=False)
        else:
            gain = sorted(gains)[_PAIRS // 2]
        return self._end(gain, now, is_better=gain > (1.0 if is_safer else GAIN))

    def _end(self, gain: float, now: float, *, is_better: bool, cores: float | None = None) -> bool:
        former, challenger = self.accepted, self._challenger
        assert challenger is not None  # see report
        last, other = (segment.cpu_each for segment in self._pairs[-1])
        worse = (1 - 1 / gain) if is_better else max(1 - gain, (other - last) / max(other, 1e-9))  # in time, or in CPU
        seconds = now - self._challenge_began
        self._paid = max(now, self._paid) + max(GAIN - 1, worse) * seconds / _PRICE
        accepted, refused, ratio = (challenger, former, 1 / gain) if is_better else (former, challenger, gain)
        self.verdict = Comparison(accepted, refused, ratio, seconds, now, cores)
        self.accept(accepted)
        self.postpone(now)
        return True

    def postpone(self, now: float) -> None:
        """Begin no comparison for a while, twice as long as the last time."""
        self._due = now + _REST * 2**self.patience
        self.patience += 1

    def restart(self, now: float) -> None:
        """Begin the comparison again, or let the next one begin at once, because segments mean something else now."""
        self._due = self._paid = now
        if self._challenger is not None:
            self.challenge(self._challenger, now)

    def give_up(self) -> None:
        """End a comparison without a result: something else has changed meanwhile."""
        self.accept(self.accepted)

    def accept(self, way: T) -> None:
        """Use a way that needs no comparison."""
        self._challenger = None
        self.accepted = self.way = way

    def exclude(self, way: T) -> None:
        """Never use a way again."""
        self.ways = tuple(other for other in self.ways if other != way)
        self.give_up()
        if self.accepted == way:
            self.accept(self.ways[-1])

    def rest(self, now: float) -> float:
        """Return the seconds until another comparison may begin without a reason."""
        return max(0.0, self._due - now)

    def debt(self, now: float) -> float:
        """Return the seconds until the comparisons are paid."""
        return max(0.0, self._paid - now)

    def resume(self, patience: int, due: float, paid: float = 0.0) -> None:
        """Continue with the comparisons of a former choice."""
        self.patience, self._due, self._paid = patience, due, paid


class Watch:
    """Notices that work has changed: its time per element differs in several consecutive segments.

    What is usual is the median of the first segments, because the very first one may be cold or disturbed.

    Args:
        usual: seconds per element, if they are known.
    """

    def __init__(self, usual: float = 0.0) -> None:
        self.usual = usual  # seconds per element; 0 if unknown
        self._first = [usual] * _CHANGED_SEGMENTS if usual else []
        self._surprises = 0

    def has_changed(self, each: float) -> bool:
        """Note the seconds per element of a segment, 0 if unknown; return whether the work has changed."""
        if not each:
            return False
        if len(self._first) < _CHANGED_SEGMENTS:
            self._first.append(each)
            self.usual = sorted(self._first)[len(self._first) // 2]
            return False
        differs = not 1 / _CHANGED < each / self.usual < _CHANGED
        self._surprises = self._surprises + 1 if differs else 0
        if not differs:
            self.usual += (each - self.usual) / 8  # slow drifts are not surprises
        return self._surprises >= _CHANGED_SEGMENTS


class Learned(NamedTuple):
    """What is remembered of a stage for the next one that does the same work.

    Attributes:
        way: the accepted way.
        value: the number of calls or the size of the buffer.
        each: seconds per element; 0 if unknown.
        bound: seconds per element at which a way that was accepted without a comparison is judged anew; 0 if it was
            compared.
        patience: how many comparisons there have been.
        rest: seconds until the next one.
        debt: seconds until they are paid.
        waits: whether the function waits for something.
        has_gaps: whether the consumer does something else between its requests.
    """

    way: str
    value: int
    each: float = 0.0
    bound: float = 0.0
    patience: int = 0
    rest: float = 0.0
    debt: float = 0.0
    waits: bool = False
    has_gaps: bool = False

"""Task sizing: how large tasks are, and whether handing them over pays off. Pure arithmetic; pool.py measures.

A task should be long enough to be worth handing over, and short enough to balance the load and to finish soon. If the
work is cheap, or if threads gain nothing because the function holds the interpreter lock, the consumer is faster doing
the work itself, *inline*. This is suspected when a single worker was about as fast as all of them together, or when
together they used about the CPU time of one core: a worker that waits for the lock seems to be slow. It is also
suspected when the work is a small part of what the consumer does, and when the whole process, with the consumer, used
about one core. Inline work is then tried for as many elements as the workers were measured with, and kept only if the
same elements take less time. That is the whole time, with what the consumer does between its requests: it may also be
slowed down by workers that hold the interpreter lock. The trial ends early if its first elements take much longer.

The first elements may be computed inline, too, until it is known whether they are cheap. Starting threads and sharing
the interpreter lock with them takes longer than the first batch of a cheap function.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import NamedTuple

TASK_SECONDS = 12e-3
"""Target duration of a task.

Handing one over costs about 20 microseconds, and several times that while other threads hold the interpreter lock: two
threads that decoded photos, 0.9 ms each, had 5 to 12% less throughput with tasks of 4 ms.
"""

REMOTE_TASK_SECONDS = 5e-3
"""Target duration of a task for another process; handing one over costs about 200 microseconds."""

SIZE_MAX = 32
"""Maximum elements of a task if the consumer requests fewer; this many are computed although not requested."""

HANDOVER_SECONDS = 5e-4
"""Minimum time between two handovers: a task takes at least this long for each concurrent call."""

CHEAP_SECONDS = 2.5e-4
"""A task of the maximum size that takes less than this, input included, is not worth handing over."""

LEASE = 16
"""How many inline pulls the consumer may make before it measures again. Measuring takes up to 40 microseconds."""

LEASE_SECONDS = 5e-3
"""How long these pulls may take."""

_SAMPLES = 7
_SAMPLES_MIN = 3
_CHEAP_SIZE_MIN = 8  # the duration of smaller tasks is mostly overhead
_DEARER = 4  # the consumer stops working inline if elements become this many times as expensive
_WINDOW_SECONDS = 0.01  # minimum waiting time before it is compared with the work
_WINDOW_SECONDS_MAX = 0.05  # of a window in which the consumer hardly waits
_RATES_MIN = 2  # windows of this epoch before a trial; the first is warm-up
_WINDOW_TASKS = 8  # minimum number of tasks in that time, so that one slow task does not decide
_EVIDENCE_SECONDS = 2e-3  # of inline work before it is judged: the first pulls are small, and their fixed cost is high
_START_SECONDS = 1e-3  # one of the first pulls that takes longer calls the workers at once
_CLEARLY = 0.95  # inline must take at most this share of the workers' time to be clearly faster
_AS_FAST = 1.05  # the same, if there is a reason to expect that it is faster, since a short trial is not exact
_GAIN = 1.5  # fastest task over waiting time, per element; above this ratio the workers share the work
_SHARE = 0.25  # of the whole time: a trial may take this much longer if workers do not slow down the consumer
_ONE_CORE = 0.7, 1.45  # CPU time over elapsed time of threads that may be no faster than one of them
_GAIN_OF_ONE_CORE = 4.0  # replaces _GAIN for these; above this ratio their tasks wait for a device, not for the lock
_FIRST_PULL = 1 / 64  # of a trial
_SHORT_PULL_SECONDS = 4e-3  # of the next pulls of a trial, so that it can end early
_LOST = 1.4  # times the accepted time of an element: inline work that takes longer than this ends
_LOOK_SECONDS = 0.5  # the interval in which this is checked after the trial
_CLOSE = 0.8  # done part of a trial, above which the consumer alone may be as fast, and is tried more often
_COMPUTING = 0.25  # CPU time over duration, above which tasks wait for the interpreter lock rather than for a device
_FORGETTING = 1.25  # growth of the remembered minimum of tasks and windows, per window
_AGAIN_SECONDS = 0.5  # of inline work before workers are tried again; doubled each time
_AGAIN_SECONDS_MAX = 64.0
_MOVE_SECONDS = 0.2  # of inline work before processes are tried


class Learned(NamedTuple):
    """What a task sizer has learned, for the next operator of the same op.

    Attributes:
        bound: the time per element above which the consumer stops working inline; None if it does not work inline.
        usual: the whole time per element in the trial that showed that inline is faster; None if elements are cheap.
        patience: windows between two trials.
        windows: how many of them have passed.
        again_seconds: seconds of inline work before workers are tried again.
        left_seconds: the rest of them.
    """

    bound: float | None = None
    usual: float | None = None
    patience: int = 2
    windows: int = 0
    again_seconds: float = _AGAIN_SECONDS
    left_seconds: float = _AGAIN_SECONDS


class _Pull(NamedTuple):
    elements: int
    seconds: float

    @property
    def each(self) -> float:
        return self.seconds / self.elements


class TaskSizer:
    """Determines the size of the next task, and who runs it, from the tasks that are done.

    It uses the median of the last few tasks, and the mean of the consumer's last few pulls without the most expensive
    one, because a thread that waits for the interpreter lock, or a single slow element, is not representative.

    Attributes:
        size: elements in the next task.
        inline: whether the consumer should do the work itself.
        may_inline: whether it ever may.
        calls: the maximum number of concurrent tasks.
    """

    def __init__(
        self, task_seconds: float = TASK_SECONDS, *, may_inline: bool = True, starts_inline: bool = False
    ) -> None:
        self._task_seconds = task_seconds
        self.size = 1
        self.inline = starts_inline
        self.may_inline = may_inline
        self.calls = 1
        self._work: deque[float] = deque(maxlen=_SAMPLES)  # seconds per element
        self._all: deque[float] = deque(maxlen=_SAMPLES)  # the same, including reading the inputs
        self._pulls: deque[_Pull] = deque(maxlen=_SAMPLES)  # of the consumer, inline
        self._began: float | None = None  # when the window or the trial began
        self._tasks = 0  # in the window
        self._quickest = float("inf")  # seconds per element of a task, inputs included
        self._wait_seconds = 0.0  # waiting time of the consumer in the window
        self._busy_seconds = 0.0  # duration of the tasks in the window
        self._cpu_seconds = 0.0  # CPU time of the workers in the window
        self._process_began = 0.0, 0.0  # the time, and the CPU time of the process, after the first task of the window
        self._is_serial = False  # whether the process used one core in the last window, and did not wait for a device
        self._done = 0  # elements in the window or the trial
        self._trying = False  # whether working inline is being tried
        self._usual: float | None = None  # whole seconds per element in the last trial, if it has succeeded
        self._again_seconds = self._left_seconds = _AGAIN_SECONDS  # see Learned
        self._bound = 0.0  # seconds per element above which the consumer stops working inline; 0 until one is known
        self._waited = float("inf")  # seconds of waiting per element with workers, the minimum of recent windows
        self._rates: deque[float] = deque(maxlen=_SAMPLES)  # seconds per element with workers, in the last windows
        self._elapsed = float("inf")  # their median, which a single slow or fast window does not change
        self._inline_seconds = 0.0
        self._trial = 0  # how many elements the next trial has
        self._windows = 0  # since the last trial
        self._patience = 2  # windows until the next trial, more after each failure; the first window is warm-up

    # While workers run the tasks.

    def add(
        self,
        count: int,
        seconds: float,
        input_seconds: float,
        cpu_seconds: float,
        size_max: int,
        now: float,
        process_seconds: float,
    ) -> None:
        """Note that a worker's task of ``count`` elements took ``seconds`` after its inputs were read.

        It took ``cpu_seconds`` of CPU time, inputs included, and ended at ``now``, when the process had used
        ``process_seconds``, or 0 if another process did the task. The next task may have up to ``size_max`` elements.
        """
        if self.inline:
            return  # the task had begun before
        if self._began is None:
            self._began = now - seconds - input_seconds
            self._process_began = now, process_seconds
        self._work.append(seconds / count)
        self._all.append((seconds + input_seconds) / count)
        self._quickest = min(self._quickest, self._all[-1])
        self._busy_seconds += seconds + input_seconds
        self._cpu_seconds += cpu_seconds
        self._tasks += 1
        self._done += count
        if self.may_inline and len(self._all) >= _SAMPLES_MIN:
            cheap = CHEAP_SECONDS / size_max
            if self.size >= min(_CHEAP_SIZE_MIN, size_max) and _median(self._all) < cheap:
                self._go_inline(_DEARER * cheap)
                return
            elapsed = now - self._began
            is_over = self._wait_seconds > _WINDOW_SECONDS or elapsed > _WINDOW_SECONDS_MAX
            if is_over and self._tasks >= _WINDOW_TASKS:
                self._look_at_window(elapsed, now, process_seconds)
                return
        self._resize(size_max)

    def waited(self, seconds: float) -> None:
        """Note that the consumer waited ``seconds`` for the workers."""
        self._wait_seconds += seconds

    def _resize(self, size_max: int) -> None:
        task_seconds = max(self._task_seconds, self.calls * HANDOVER_SECONDS)
        fitting = int(task_seconds / max(_median(self._work), 1e-9))
        wanted = max(1, min(size_max, self.size * 4, fitting))
        if wanted > self.size and len(self._work) < _SAMPLES_MIN:
            return  # a finished element waits for the others of its task, so larger tasks need a reason
        if wanted >= self.size * 2 or wanted <= self.size // 2 or (wanted == size_max != self.size):
            if wanted > self.size:
                self._begin_window()  # small tasks overestimate the duration per element of large ones
            self.size = wanted
            self._forget()

    def _look_at_window(self, elapsed: float, now: float, process_seconds: float) -> None:
        """Try working inline if one thread seems to be about as fast as several."""
        since, before = self._process_began
        process = (process_seconds - before) / (now - since) if now > since else 0.0
        self._is_serial = _ONE_CORE[0] < process < _ONE_CORE[1] and self._cpu_seconds > _COMPUTING * self._busy_seconds
        self._windows += 1
        self._waited = min(self._waited, self._wait_seconds / self._done)
        self._rates.append(elapsed / self._done)
        self._elapsed = sorted(self._rates)[(len(self._rates) - 1) // 2]  # of two the lower: the first is warm-up
        self._trial = self._done
        gain = _GAIN_OF_ONE_CORE if _ONE_CORE[0] < self._cpu_seconds / elapsed < _ONE_CORE[1] else _GAIN
        bound = max(gain * self._waited, self._waited + _SHARE * self._elapsed)
        is_due = self._windows >= self._patience and len(self._rates) >= min(self._patience, _RATES_MIN)
        if is_due and (self._is_serial or self._quickest < bound):
            self._try_inline(_AS_FAST if self._is_serial else _CLEARLY)
        else:
            self._quickest *= _FORGETTING
            self._waited *= _FORGETTING
            self._begin_window(now)

    def _try_inline(self, share: float) -> None:
        """Work inline, and stay with it if it takes less than this share of the time with the workers."""
        self._trying = True
        self._go_inline(share * self._elapsed)

    @property
    def gained_nothing(self) -> bool:
        """Whether the consumer alone was faster than the workers, and has worked for a while since."""
        return self.inline and self._usual is not None and self._inline_seconds > _MOVE_SECONDS

    @property
    def learned(self) -> Learned | None:
        """What the next epoch or iteration of the same dataset may begin with; None if nothing is known yet."""
        if self.is_starting:
            return None
        bound = self._bound if self.inline and not self._trying else None
        return Learned(bound, self._usual, self._patience, self._windows, self._again_seconds, self._left_seconds)

    def warm_start(self, learned: Learned | None) -> None:
        """Begin with what the previous operator has learned.

        The result of a trial is not tried again at once: the first elements of an epoch take longer, because files are
        opened and buffers are filled. If it has learned nothing, begin with workers: in many short epochs, starting
        inline might never end.
        """
        if self.is_starting:
            self._leave_inline()
        if learned is None:
            return
        bound, self._usual, self._patience, self._windows, self._again_seconds, self._left_seconds = learned
        if bound is not None and self.may_inline:
            self._go_inline(bound)

    def _forget(self) -> None:
        self._work.clear()
        self._all.clear()
        self._pulls.clear()

    def _begin_window(self, now: float | None = None) -> None:
        self._began = now
        self._wait_seconds = self._busy_seconds = self._cpu_seconds = self._inline_seconds = 0.0
        self._done = self._tasks = 0

    # While the consumer works inline.

    @property
    def is_starting(self) -> bool:
        """Whether the consumer does the work because nothing is known about it yet."""
        return self.inline and not self._bound

    def lease(self) -> int:
        """Return how many pulls the consumer may make without measuring them. They count as pulls like the last one."""
        if not (self.inline and self._pulls and self._pulls[-1].each <= self._bound):
            return 0
        count, seconds = self._pulls[-1]
        pulls = min(LEASE, int(LEASE_SECONDS / max(seconds, 1e-9)))
        self._done += pulls * count
        self._inline_seconds += pulls * seconds
        self._left_seconds -= pulls * seconds
        return pulls

    @property
    def pull_max(self) -> int:
        """How many elements the consumer may compute inline at once: few when a trial begins, which may end early."""
        if not self._trying or self._has_evidence:
            return sys.maxsize
        if not self._pulls:
            return max(1, int(_FIRST_PULL * self._trial))
        return max(1, int(_SHORT_PULL_SECONDS / max(self._pulls[-1].each, 1e-9)))

    @property
    def _has_evidence(self) -> bool:
        return len(self._pulls) >= _SAMPLES_MIN and self._inline_seconds >= _EVIDENCE_SECONDS

    def _go_inline(self, bound: float) -> None:
        self.inline = True
        self._bound = bound
        self._forget()
        self._begin_window()

    def add_inline(self, count: int, seconds: float, size_max: int, now: float) -> None:
        """Note that the consumer took ``seconds`` for ``count`` elements, inputs included, up to ``now``.

        A task may have up to ``size_max`` elements.
        """
        if self.is_starting and seconds > _START_SECONDS:
            self._leave_inline()
            return
        if self._began is None:
            self._began = now  # the first pull does not count: it may open files or fill the buffer of a shuffle
            return
        self._pulls.append(_Pull(count, seconds))
        self._done += count
        self._inline_seconds += seconds
        self._left_seconds -= seconds
        if self._trying:
            self._go_on_trying(now - self._began)
        elif not self._has_evidence:
            return
        elif self.is_starting:
            self._judge_start(CHEAP_SECONDS / size_max)
        elif _mean(self._pulls) > self._bound:
            self._leave_inline()
        elif self._usual is not None and (self._left_seconds < 0 or self._is_slower(now, self._began, self._usual)):
            self._patience = 1
            self._again_seconds = min(2 * self._again_seconds, _AGAIN_SECONDS_MAX)
            self._leave_inline()

    def _judge_start(self, cheap: float) -> None:
        if _mean(self._pulls) > cheap:
            self._leave_inline()
        else:
            self._bound = _DEARER * cheap

    def _is_slower(self, now: float, began: float, usual: float) -> bool:
        """Return whether the elements of an interval took longer than those of the trial, and begin the next interval.

        It is False during an interval. The consumer may have become slower, for example.
        """
        if now - began < _LOOK_SECONDS:
            return False
        is_slower = now - began > _LOST * usual * self._done
        self._began, self._done = now, 0
        return is_slower

    def _go_on_trying(self, elapsed: float) -> None:
        slow = _LOST * self._bound
        is_lost = self._has_evidence and elapsed > slow * self._done and _mean(self._pulls) > slow
        if is_lost or elapsed > self._bound * max(self._done, self._trial):
            self._leave_inline()
        elif self._done >= self._trial:
            self._trying = False
            self._usual = elapsed / self._done
            self._bound = _DEARER * _mean(self._pulls)

    def _leave_inline(self) -> None:
        self.inline, self._usual = False, None
        self._windows = 0
        self._waited = self._elapsed = float("inf")
        self._rates.clear()
        self._left_seconds = self._again_seconds
        if self._trying:
            self._trying = False
            is_close = self._is_serial and self._done > _CLOSE * self._trial
            self._patience += 1 if is_close else self._patience  # a close trial costs little
        self._forget()
        self._begin_window()


def _median(values: deque[float]) -> float:
    return sorted(values)[len(values) // 2]


def _mean(pulls: deque[_Pull]) -> float:
    """Return the seconds per element, without the most expensive pull: a single slow element is not representative."""
    kept = sorted(pulls, key=lambda pull: pull.each)[: max(1, len(pulls) - 1)]
    return sum(pull.seconds for pull in kept) / sum(pull.elements for pull in kept)

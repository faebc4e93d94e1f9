"""How large tasks are, and whether it pays to hand them over at all. Only numbers; pool.py measures and obeys.

A task should be long enough to be worth handing over, and short enough to share the work and to come soon. Where the
work is cheap, or where threads gain nothing because the function holds the interpreter's lock, the consumer is served
sooner by doing it itself, *inline*. That is first guessed, where one worker alone has been about as quick as all
together, and then tried: it stays so only if the consumer gets its elements sooner.
"""

from __future__ import annotations

from collections import deque

TASK_SECONDS = 4e-3
"""What a task should take. Handing one over costs some 20 microseconds, and while others hold the interpreter's lock a
multiple of that: two threads that decoded photos, 0.5 ms each, gave a fifth less with tasks of 1 ms."""

REMOTE_TASK_SECONDS = 5e-3
"""What a task should take that goes to another process, which costs some 200 microseconds."""

SIZE_MAX = 32
"""Elements in a task where the consumer asks for fewer; so much is made ahead although nobody has asked for it."""

CALLS_AT_EASE = 8
"""With more calls at once than these, tasks are longer, so that workers hand over no more often all together."""

CHEAP_SECONDS = 2.5e-4
"""Where a task of the largest size takes less than this, input included, it is not worth handing over."""

LEASE = 16
"""How often the consumer does the work itself before the time is taken again."""

_SAMPLES = 7
_SAMPLES_MIN = 3
_CHEAP_SIZE_MIN = 8  # what smaller tasks take is mostly the handing over
_DEARER = 4  # by how much elements must have become dearer for the consumer to stop doing them itself
_WINDOW_SECONDS = 0.03  # of waiting, at least, before it is compared with the work
_WINDOW_TASKS = 16  # in that time, so that one that takes long says nothing
_TRIAL_SECONDS = 0.03
_CLEARLY = 0.95  # what inline must take of the time of workers, or less, to be quicker beyond doubt
_GAIN = 1.5  # the quickest task over the waiting, per element: above, workers share the work
_FORGETTING = 1.25  # of the quickest task, and of the quickest window, from window to window
_AGAIN_SECONDS = 0.5  # of work inline, before several workers get another chance; each time twice as long
_AGAIN_SECONDS_MAX = 8.0


class TaskSizer:
    """Learns from the tasks that are done how many elements the next should have, and who should do it.

    The median of the last few counts: a thread that waits for the interpreter's lock, or an element that takes long,
    says nothing about the others.

    Attributes:
        size: elements in the next task.
        inline: whether the consumer should do the work itself.
        may_inline: whether it ever may.
        calls: how many tasks are worked on at once, at most.
    """

    def __init__(self, task_seconds: float = TASK_SECONDS, *, may_inline: bool = True) -> None:
        self._task_seconds = task_seconds
        self.size = 1
        self.inline = False
        self.may_inline = may_inline
        self.calls = 1
        self._work: deque[float] = deque(maxlen=_SAMPLES)  # seconds per element
        self._all: deque[float] = deque(maxlen=_SAMPLES)  # the same, with what it took to read the inputs
        self._tasks = 0  # in the window
        self._quickest = float("inf")  # seconds per element of a task, inputs included
        self._wait_seconds = 0.0  # of the consumer, in the window
        self._done = 0  # elements of the tasks in the window
        self._trying = False  # whether it pays to do the work inline
        self._tried = False  # and it did
        self._again_seconds = _AGAIN_SECONDS
        self._bound = 0.0  # seconds per element above which the consumer should not do them itself
        self._waited = float("inf")  # seconds per element for workers, the least of the windows since the last trial
        self._inline_seconds = 0.0
        self._inline_count = 0
        self._windows = 0  # since the last trial
        self._patience = 2  # windows until the next one, doubled by each that fails; the first is for the beginning

    # While workers do the tasks.

    def add(self, count: int, seconds: float, input_seconds: float, size_max: int) -> None:
        """A worker's task of ``count`` elements took ``seconds`` behind its inputs. The next may have ``size_max``."""
        self._work.append(seconds / count)
        self._all.append((seconds + input_seconds) / count)
        self._quickest = min(self._quickest, self._all[-1])
        self._tasks += 1
        self._done += count
        if self.may_inline and len(self._all) >= _SAMPLES_MIN and not self.inline:
            cheap = CHEAP_SECONDS / size_max
            if self.size >= min(_CHEAP_SIZE_MIN, size_max) and _median(self._all) < cheap:
                self._go_inline(_DEARER * cheap)
                return
            if self._wait_seconds > _WINDOW_SECONDS and self._tasks >= _WINDOW_TASKS:
                self._look_at_window()
                return
        self._resize(size_max)

    def waited(self, seconds: float) -> None:
        """The consumer waited ``seconds`` for what the workers were doing."""
        self._wait_seconds += seconds

    def _resize(self, size_max: int) -> None:
        task_seconds = self._task_seconds * max(1, self.calls / CALLS_AT_EASE)
        fitting = int(task_seconds / max(_median(self._work), 1e-9))
        wanted = max(1, min(size_max, self.size * 4, fitting))
        if wanted > self.size and len(self._work) < _SAMPLES_MIN:
            return  # an element that is done waits for the others of its task, so larger ones need a reason
        if wanted >= self.size * 2 or wanted <= self.size // 2 or (wanted == size_max != self.size):
            self.size = wanted
            self._forget()  # what small tasks take says too much about large ones

    def _look_at_window(self) -> None:
        """Try it inline where it looks as if one thread could do as much as several."""
        self._windows += 1
        self._waited = min(self._waited, self._wait_seconds / self._done)
        if self._windows >= self._patience and self._quickest < _GAIN * self._waited:
            self._try_inline()
        else:
            self._quickest *= _FORGETTING
            self._waited *= _FORGETTING
            self._begin_window()

    def _try_inline(self) -> None:
        """Stay inline if that takes less time than workers have taken."""
        self._trying = True
        self._go_inline(_CLEARLY * self._waited)

    @property
    def learned(self) -> tuple[float | None, int]:
        """What workers have taken for an element, if the last trial has shown that inline is quicker; and the patience.

        Both are for the next iteration of the same dataset, and only these trials are worth to be remembered.
        """
        return self._waited if self.inline and self._tried else None, self._patience

    def begin_with(self, learned: tuple[float | None, int]) -> None:
        """Begin with what was learned in the iteration before. Inline is tried again before it is believed."""
        waited, self._patience = learned
        if waited is not None and self.may_inline:
            self._waited = waited
            self._try_inline()

    def _forget(self) -> None:
        self._work.clear()
        self._all.clear()

    def _begin_window(self) -> None:
        self._wait_seconds = self._inline_seconds = 0.0
        self._done = self._tasks = self._inline_count = 0

    # While the consumer does them.

    @property
    def is_settled(self) -> bool:
        """Whether the last look left no doubt that the consumer should do the work."""
        return self.inline and not self._trying and bool(self._all) and self._all[-1] <= self._bound

    def _go_inline(self, bound: float) -> None:
        self.inline = True
        self._bound = bound
        self._forget()
        self._begin_window()

    def add_inline(self, count: int, seconds: float) -> None:
        """The consumer took ``seconds`` for ``count`` elements, inputs included."""
        self._all.append(seconds / count)
        self._inline_seconds += seconds
        self._inline_count += count
        if len(self._all) < _SAMPLES_MIN or (self._trying and self._inline_seconds < _TRIAL_SECONDS):
            return
        mean = self._inline_seconds / self._inline_count
        if (mean if self._trying else _median(self._all)) > self._bound:
            self._leave_inline()
        elif self._trying:
            self._trying = False
            self._tried = True
            self._bound = _DEARER * _median(self._all)
        elif self._tried and self._inline_seconds > self._again_seconds:
            self._patience = 1
            self._again_seconds = min(2 * self._again_seconds, _AGAIN_SECONDS_MAX)
            self._leave_inline()

    def _leave_inline(self) -> None:
        self.inline = self._tried = False
        self._windows = 0
        self._waited = float("inf")
        if self._trying:
            self._trying = False
            self._patience *= 2
        self._forget()
        self._begin_window()


def _median(values: deque[float]) -> float:
    return sorted(values)[len(values) // 2]

"""Share runner: what a worker of distribute() runs. It opens a share of the plan, and computes its elements.

The share is optimized and tuned in the worker like any pipeline. Its random numbers are those that the plan would have
drawn in the user's process: the draws of each op are sent with the plan.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dataset.amounts import STEP_BYTES
from dataset.ops.distribute.engine import ShareReport, Start
from dataset.options import Options
from dataset.plan.epochs import random_states
from dataset.plan.node import Node, inputs_first
from dataset.plan.plain import nbytes_of_plain
from dataset.plan.random_state import RandomState
from dataset.runtime.chunks.chunk import Outcome
from dataset.runtime.chunks.lineage import save_lineage
from dataset.runtime.context import ExecutionContext, Moved, open_plan
from dataset.runtime.contract import Operator, farthest
from dataset.runtime.metrics.profile import OpenObserver, PipelineProfile
from dataset.runtime.position import Position, skipping
from dataset.runtime.random.streams import Draws, derived_seed
from dataset.runtime.resources.coordinator import Coordinator
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.resources.memory import resident_bytes
from dataset.runtime.state.replay_log import ReplayLog
from dataset.world import threading, time

_REPLY_SECONDS = 5e-3  # of work per reply, which amortizes the cost of sending it
_PULL_SECONDS = 1e-3
_SAVE_SHARE = 20  # a state is saved after this many times its own duration: at most 5% of the time
# It is also sent only after elements of as many bytes as the last one: half of the bytes at most, unless states grow.
_BEATS = 5  # per heartbeat deadline


Division: TypeAlias = Any
"""How a plan is divided among workers: a WorkerDivision (optimize/sharding/among_workers.py), a later package."""


@dataclass(eq=False)
class ShareRunner:
    """Runs shares of a plan, one at a time. It is sent to the workers, which call it with messages.

    Attributes:
        division: the plan and its division.
        open_observer: creates the observer that tunes a share.
        options: the options of the whole pipeline.
        draws: what the random numbers of each op depend on.
        above: the place of the op in the user's process, for lineage (``Iteration.above``).
        moved: maps the names of files in a state to current names.
        patience: the heartbeat deadline in seconds.
    """

    division: Division
    open_observer: OpenObserver
    options: Options
    draws: dict[RandomState, Draws]
    above: tuple[tuple[int, ...], int]
    moved: Moved
    patience: float
    _coordinator: Coordinator | None = None
    _beating: threading.Event | None = None

    @property
    def modules(self) -> list[str]:
        """The modules that a worker needs, which the launcher imports once for all workers."""
        nodes = {type(node).__module__ for node in inputs_first(self.division.share(0))}
        observer = getattr(self.open_observer, "__module__", "")
        return sorted({__name__, type(self.division).__module__, observer, *nodes} - {""})

    def __call__(
        self, message: Start | int, _position: int, _context: Any, started: Callable[[], None] | None
    ) -> list[Any]:
        """Handle a message, as ``EngineWorker.call`` describes. ``started`` is called regularly as a heartbeat."""
        if self._beating is None and started is not None:
            self._beating = threading.Event()
            threading.Thread(target=_beat, args=(self._beating, self.patience / _BEATS, started), daemon=True).start()
        if isinstance(message, Start):
            self._open(message)
            return []
        return self._next(message)

    def _open(self, start: Start) -> None:
        self.close()
        plan = self.division.among(start.workers).optimized(start.rank, self.options)
        profile = self._profile = PipelineProfile(plan)
        profile.observe(self.open_observer(profile, self.options))
        draws = [list(self.draws[random]) for random in random_states(plan)]
        if self.division.way == "files":  # each share has other random numbers
            draws = [[derived_seed(key, start.rank), *rest] for key, *rest in draws]

        def begin(context: ExecutionContext, plan: Node) -> Operator:
            self._context = context
            context.replays = True  # the elements of a lost worker are computed again
            context.iteration.above = self.above
            return context.from_beginning(plan, draws)

        self._coordinator, self._root = open_plan(plan, self.options, profile=profile, reader=begin, moved=self.moved)
        self._log = ReplayLog(self._root, "share")
        self._left, self._step, self._save_due = 0, 1, 0.0
        self._state_bytes = self._unsaved_bytes = 0  # of the last state, and of the elements since then
        source, skip = start.source, start.skip
        if source is None and skip and start.is_counted:
            passed, source = farthest(self._root, self._root.save(), skip)
            skip -= passed
        if source is None:
            self._log.given = skip
        else:
            self._log.load(Position("share", inputs=(source,), given=skipping(skip)))
        self._log.go_on()

    def _next(self, count: int) -> list[Any]:
        assert self._coordinator is not None  # opened before
        replies: list[Outcome] = []
        interrupts: list[Outcome] = []
        began, cpu_began = time.perf_counter(), time.process_time()
        count = count if self._context.iteration.repeats else 1
        made = nbytes = 0
        ended = False
        while made < count and nbytes < STEP_BYTES and (before := time.perf_counter()) <= began + _REPLY_SECONDS:
            if self._left <= 0:
                self._left = self._profile.look(self._left)
            try:
                chunk = self._root.pull(min(self._step, count - made))
            except BaseException as error:
                if self._coordinator.failed or concerns_iteration(error):
                    self._coordinator.raise_failure()
                    raise
                if not isinstance(error, Exception):
                    interrupts.append(error)
                    break
                replies.append(error)
                made += 1
                continue
            if chunk is None:
                ended = True
                break
            replies.append(chunk)
            made += chunk.length
            self._left -= chunk.length
            nbytes += chunk.nbytes
            seconds = time.perf_counter() - before
            self._step = 2 * self._step if seconds < _PULL_SECONDS / 2 else max(1, self._step // 2)
        if self._coordinator.failed:
            self._coordinator.raise_failure()
        now = time.perf_counter()
        seconds, cpu_seconds = now - began, time.process_time() - cpu_began
        self._unsaved_bytes += nbytes + made  # elements may have no bytes
        position, repeats = None if interrupts else self._position(now), self._context.iteration.repeats
        lineages = [
            None if (rows := getattr(part, "lineage", None)) is None else save_lineage(rows) for part in replies
        ]
        report = ShareReport(position, ended, repeats, seconds, cpu_seconds, resident_bytes(), lineages)
        return [*replies, *interrupts, report]

    def _position(self, now: float) -> Position | None:
        """Return the present position, if it is time for one and it is plain data."""
        is_due = now >= self._save_due and self._unsaved_bytes >= self._state_bytes
        if not is_due and self._context.iteration.repeats:
            return None
        position = None
        with contextlib.suppress(Exception):  # it holds objects of user classes
            position = self._root.save()
        self._state_bytes = 0 if position is None else nbytes_of_plain(position.to_plain())
        self._unsaved_bytes = 0
        ended = time.perf_counter()
        self._save_due = ended + _SAVE_SHARE * (ended - now)
        return position

    def close(self) -> None:
        """Close the share that is open."""
        if self._coordinator is not None:
            self._coordinator.shut_down(self._finish, wait=True)
            self._coordinator = None

    def _finish(self) -> None:
        self._root.close()
        self._profile.close()

    def __del__(self) -> None:
        if getattr(self, "_beating", None) is not None:
            self._beating.set()  # type: ignore[union-attr]  # just checked
        self.close()


def _beat(over: threading.Event, period: float, beat: Callable[[], None]) -> None:
    while not over.wait(period):
        beat()

"""Proposals: which knobs to change, from the counts of a window.

More calls or larger buffers if the consumer waits, fewer if they are not used, and fewer calls if more cores are busy
than allowed. Whether a change is worth it is found out by trying it (tuner.py).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from dataset.autotune.queues import buffer_needed
from dataset.autotune.windows import CountWindow, StageDelta
from dataset.runtime.metrics.background import Tunable
from dataset.runtime.metrics.op_record import OpRecord

WAITED = 0.03
"""The share of the time that the consumer may wait before anything is added."""

LONG_SECONDS = 0.5
"""The shortest window that shows what is not needed."""

_MARGIN = 1.1  # times the allowed cores: above, workers are removed; below the inverse, cores are left for more
_STEP_MAX = 4.0  # the largest factor by which calls grow at once
_RESTED = 0.1  # of the time: a producer that waits less for room gains little from a larger buffer
_SPARE = 1.25  # workers, relative to the number that is busy: times vary
_WORTH_SAVING = 8  # the smallest value that is reduced; an idle thread costs little


@dataclass(frozen=True, eq=False)
class Setting:
    """Setting of a knob.

    Attributes:
        delta: what the stage counted with the value before.
        value: the new value.
        reason: why it should be set.
    """

    delta: StageDelta
    value: int
    reason: str

    @property
    def record(self) -> OpRecord:
        return self.delta.record

    @property
    def knob(self) -> Tunable:
        return self.delta.stage.knob


def additions(window: CountWindow, cores: float) -> Iterator[list[Setting]]:
    """Yield settings that take more threads or memory, to be tried together; nothing if the consumer hardly waits."""
    if window.waited < WAITED or window.cores_used * _MARGIN > cores:
        return
    growing = [d for d in window if d.value < d.stage.knob.maximum and not d.refusals and not d.stage.inline]
    factor = min(_STEP_MAX, max(2.0, _SPARE / max(1 - window.waited, 1e-9)))  # what the consumer needs
    # A stage that is left out has enough workers for that.
    yield [
        Setting(d, value, f"{d.busy:.1f} of its {d.value} workers are busy and compute {d.computing:.0%} of that time")
        for d in growing
        if not d.stage.relays and factor * d.busy > d.value and (value := _more_calls(d, factor, cores)) > d.value
    ]
    rooms = [d for d in growing if d.stage.relays and d.waited_for >= WAITED and d.rested >= _RESTED]
    for d in sorted(rooms, key=lambda d: -d.waited_for):
        yield [_more_room(d)]


def _more_calls(delta: StageDelta, factor: float, cores: float) -> int:
    """Return ``factor`` times the number of calls, at most as many as can keep the cores busy."""
    useful = round(cores / delta.computing) if delta.computing > 0 else sys.maxsize
    return min(math.ceil(factor * delta.value), delta.stage.knob.maximum, useful)


def _more_room(delta: StageDelta) -> Setting:
    """Return a larger buffer for a stage whose buffer was both empty and full, so too small for the variation.

    The variation of the consumer's times is unknown; it is assumed to equal that of the elements' times.
    """
    reason = (
        f"it was empty for {delta.waited_for:.0%} of the time and full for {delta.rested:.0%}: "
        "times vary more than it can absorb"
    )
    makes = delta.work_seconds / max(1, delta.elements)
    takes = (delta.seconds - delta.wait_seconds) / max(1, delta.taken)
    needed = buffer_needed(takes, makes, delta.variation, WAITED)
    return Setting(delta, min(delta.stage.knob.maximum, max(2 * delta.value, needed)), reason)


def savings(window: CountWindow) -> Iterator[list[Setting]]:
    """Yield settings that free threads or memory, one at a time."""
    for delta in window if window.seconds >= LONG_SECONDS else ():
        stage, value = delta.stage, delta.value
        if value <= stage.knob.minimum or stage.inline or not delta.elements:
            continue
        reading = min(1.0, delta.input_seconds / delta.seconds)  # done by one worker at a time
        needed, reason = math.ceil(_SPARE * (delta.busy + reading)), f"{delta.busy:.1f} of its {value} workers are busy"
        if stage.relays:
            unused = min(value, stage.counters.least_ready) if delta.taken >= 16 * value else 0
            needed, reason = max(2, value - unused + 1), f"never fewer than {unused} elements were ready"
        needed = max(1, stage.knob.minimum, needed)
        if needed <= value // 2 and value >= _WORTH_SAVING:
            yield [Setting(delta, needed, reason)]


def holding_back(window: CountWindow, cores: float) -> Setting | None:
    """Return a setting with fewer workers for the stage that computes most; None if the cores suffice."""
    able = [delta for delta in window if delta.cpu_seconds and delta.value > _least(delta)]
    if not able or not is_over_budget(window, cores):
        return None
    largest = max(able, key=lambda delta: delta.cpu_seconds)
    share = max(0.0, 1 - (window.cores_used - cores) * window.seconds / largest.cpu_seconds)
    value = max(_least(largest), min(largest.value - 1, math.ceil(share * largest.busy)))
    return Setting(largest, value, f"{window.cores_used:.1f} cores were busy, of {cores:g} allowed")


def is_over_budget(window: CountWindow, cores: float) -> bool:
    """Return whether clearly more cores are busy than allowed."""
    return window.cores_used > _MARGIN * cores


def _least(delta: StageDelta) -> int:
    """Return the fewest workers that a stage may get; its current value if it has no workers."""
    stage = delta.stage
    return delta.value if stage.relays or stage.inline else max(1, stage.knob.minimum)

"""Tuning log: the decisions of the autotuner, as ``iterator.tuning_log()`` returns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Decision:
    """A tuning decision made while a pipeline ran.

    Attributes:
        seconds: the time since the first element was requested.
        operator: the operator concerned.
        action: what was done: "run inline", "run in background" and "run in processes" after a comparison; "raise" for
            functions that wait; "save" calls that the consumer does not need; "try", "keep", "take back", "hold back",
            "settle" and "look again" by the tuner.
        knob: the argument that was set, or "".
        before, after: its values.
        reason: why, with the numbers.
    """

    seconds: float
    operator: str
    action: str
    knob: str
    before: int | None
    after: int | None
    reason: str

    def __str__(self) -> str:
        change = "" if self.before is None else f" {self.knob} {self.before} -> {self.after}"
        return f"{self.seconds:8.2f} s  {self.operator}: {self.action}{change}: {self.reason}"


DECISIONS_FIRST = 100
"""How many decisions from the beginning of an iteration its log keeps."""

DECISIONS_LAST = 400
"""How many of the most recent decisions it keeps, so that an iteration of weeks does not fill the memory."""


class TuningLog(list[Decision]):
    """Tuning decisions in the order in which they were made. Prints as lines of text.

    Only the first 100 and the last 400 decisions of an iteration are kept.

    Attributes:
        advice: if nothing could be decided: what to write so that it can; otherwise empty.
        omitted: how many decisions were made between the first ones and the last ones, and are not kept.
    """

    advice = ""
    omitted = 0

    def add(self, decision: Decision) -> None:
        """Add a decision. If there are too many, the oldest one after the first ones is dropped."""
        self.append(decision)
        if len(self) > DECISIONS_FIRST + DECISIONS_LAST:
            del self[DECISIONS_FIRST]
            self.omitted += 1

    def __repr__(self) -> str:
        advice = self.advice and f"; {self.advice}"
        lines = list(map(str, self))
        if self.omitted:
            lines.insert(DECISIONS_FIRST, f"... {self.omitted:,} decisions are not kept ...")
        return "\n".join(lines) or f"TuningLog: nothing was decided{advice}"

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the same as plain data, for JSON."""
        return [dict(vars(decision)) for decision in self]

"""From runs to results: medians, spread, who is the fastest, and what is wrong. Values only; nothing runs here.

A result is what results.json holds, so that tables can be made again without measuring.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OURS = "dataset"
FLOOR = "numpy"

Result = dict[str, Any]


def base(library: str) -> str:
    """The library of a variant: ``"tf.data, batched"`` is ``"tf.data"``."""
    return library.partition(",")[0]


def compared(epochs: Sequence[Sequence[float]], reference: Sequence[Sequence[float]], tolerance: float) -> str:
    """What is wrong with the elements of two epochs, next to those of the reference. Empty if nothing is."""
    count, digest = reference[0]
    for number, (its_count, its_digest) in enumerate(epochs, 1):
        if its_count != count:
            return f"wrong: {its_count:,} elements in epoch {number}, not {count:,}"
        if abs(its_digest - digest) > tolerance * max(abs(its_digest), abs(digest)):
            return f"wrong: other elements in epoch {number}: their digest is {its_digest!r}, not {digest!r}"
    return ""


def spread(values: Iterable[float | None]) -> dict[str, float] | None:
    """Median, smallest and largest."""
    known = [value for value in values if value is not None]
    return {"median": statistics.median(known), "min": min(known), "max": max(known)} if known else None


def of_runs(runs: Sequence[Result]) -> Result:
    """What tables show of the runs of one library."""
    return {
        "elements_per_s": spread(run["elements"] / run["seconds"] for run in runs),
        "first_batch_ms": spread(_ms(run["first_batch_s"]) for run in runs),
        "second_first_batch_ms": spread(_ms(run["second_first_batch_s"]) for run in runs),
        "construction_ms": spread(_ms(run["construction_s"]) for run in runs),
        "cpu_s_per_million": spread(1e6 * run["cpu_s"] / run["elements"] for run in runs),
        "peak_mb": spread(run["peak_bytes"] / 1e6 for run in runs),
        "made_mb": spread(run["made_bytes"] / 1e6 for run in runs),
    }


def of_limit(runs: Sequence[Result]) -> Result:
    return {"elements_per_s": spread(run["elements"] / run["seconds"] for run in runs)}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def wrong_run(run: Result, expected: int) -> str:
    """What is wrong with the number of elements of a pass, which says nothing where it was cut short."""
    if run["complete"] and run["elements"] != run["passes"] * expected:
        return f"wrong: {run['elements'] / run['passes']:,.0f} elements in a whole pass, not {expected:,}"
    if not run["elements"]:
        return "failed: no elements before the time was up"
    return ""


@dataclass(frozen=True)
class Standing:
    """How a workload came out: our fastest, that of peers and of loops by hand, and the limit that counts."""

    ours: str | None
    peer: str | None
    floor: str | None
    limit: str | None
    speeds: Mapping[str, float]
    limits: Mapping[str, float]

    @property
    def speed(self) -> float | None:
        return self.speeds[self.ours] if self.ours else None

    def times(self, other: str | None) -> float | None:
        """How many times as fast as another we are."""
        return self.speed / self.speeds[other] if self.speed and other else None

    @property
    def share(self) -> float | None:
        """Our share of what the machine could do."""
        return self.speed / self.limits[self.limit] if self.speed and self.limit else None

    @property
    def remarks(self) -> list[str]:
        """Where we fall short."""
        if not self.ours:
            return ["no result of ours"]
        found = []
        if (times := self.times(self.peer)) is not None and times < 1:
            found.append("not the fastest")
        if (times := self.times(self.floor)) is not None and times < 1:
            found.append("slower than the loop")
        if (share := self.share) is not None and share < 1 / 4:
            found.append("below a quarter of the limit")
        return found


def standing(workload: Result) -> Standing:
    speeds = {
        library: result["elements_per_s"]["median"]
        for library, result in workload["libraries"].items()
        if result["outcome"] == "ok"
    }
    limits = {
        step: result["elements_per_s"]["median"]
        for step, result in workload["limits"].items()
        if result["outcome"] == "ok"
    }

    last = next(reversed(workload["limits"]), None)

    def fastest(wanted: Iterable[str]) -> str | None:
        return max(wanted, key=speeds.__getitem__, default=None)

    return Standing(
        fastest(name for name in speeds if base(name) == OURS),
        fastest(name for name in speeds if base(name) not in {OURS, FLOOR}),
        fastest(name for name in speeds if base(name) == FLOOR),
        last if last in limits else None,
        speeds,
        limits,
    )

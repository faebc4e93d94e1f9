"""The list of flaky tests, tests/flaky.txt: they do not run in the gate for 14 days after their date.

A line is the id of a test, a date and a reason; an id without parameters stands for all of them. After 14 days, the
test runs and blocks again.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import NamedTuple

import pytest

PATH = Path(__file__).parents[1] / "flaky.txt"
DAYS = dt.timedelta(days=14)
_LINE = re.compile(r"(?P<test>\S.*?)\s+(?P<date>\d{4}-\d\d-\d\d)\s+(?P<reason>\S.*)")


class Flaky(NamedTuple):
    """A line of the list."""

    test: str
    date: dt.date
    reason: str

    def names(self, nodeid: str) -> bool:
        return nodeid == self.test or nodeid.startswith(f"{self.test}[")


def listed(path: Path = PATH) -> list[Flaky]:
    """Return the lines of the list.

    Raises:
        ValueError: if one is not a test, a date and a reason.
    """
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            if (match := _LINE.fullmatch(line.strip())) is None:
                raise ValueError(f"{path.name}: not a test, a date and a reason: {line}")
            found.append(Flaky(match["test"], dt.date.fromisoformat(match["date"]), match["reason"]))
    return found


def resting(today: dt.date, path: Path = PATH) -> list[Flaky]:
    """Return the lines whose tests do not run on this day."""
    return [flaky for flaky in listed(path) if today < flaky.date + DAYS]


def header(today: dt.date, path: Path = PATH) -> list[str]:
    """Return the line for the header of pytest's report, if any."""
    found = resting(today, path)
    until = max((flaky.date + DAYS for flaky in found), default=None)
    return [f"flaky: {len(found)} of {path.name} do not run, until {until} at the latest"] * bool(found)


def deselect(config: pytest.Config, items: list[pytest.Item], today: dt.date, path: Path = PATH) -> None:
    """Remove the tests that do not run on this day."""
    lines = resting(today, path)
    removed = [item for item in items if any(flaky.names(item.nodeid) for flaky in lines)]
    if removed:
        config.hook.pytest_deselected(items=removed)
        items[:] = [item for item in items if item not in removed]

"""Plugin for programs that run pytest: it records outcomes, selects tests, and ends a run in time.

    RECORD=outcomes.jsonl python -m pytest -p recording tests/io

It needs no other module, so that it also works in the tree of another commit. Environment variables:

RECORD: the file to which it appends a JSON object per outcome, with "test", "outcome" and "text". The outcome "started"
    without another one after it shows the test that ended the process. A file of tests that cannot be imported fails
    under its path.
RECORD_ONLY: a file with the ids of the tests to run, one in each line. Ids that do not exist are no error.
RECORD_UNTIL: the time, in seconds since the epoch, after which no test starts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ENDED = "the process ended in this test"
_reports: dict[str, tuple[str, str]] = {}


def _record(test: str, outcome: str, text: str = "") -> None:
    with Path(os.environ["RECORD"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "outcome": outcome, "text": text}) + "\n")


def read(path: Path) -> list[dict[str, str]]:
    """Return the outcomes in a file; a test that ended the process has failed."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found: dict[str, dict[str, str]] = {}
    for outcome in map(json.loads, lines):
        found[outcome["test"]] = outcome
    for outcome in found.values():
        if outcome["outcome"] == "started":
            outcome |= {"outcome": "failed", "text": ENDED}
    return list(found.values())


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.nodeid.endswith(".py"):
        _record(report.nodeid, report.outcome if report.failed else "collected", report.longreprtext)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "RECORD_ONLY" in os.environ:
        selected = set(Path(os.environ["RECORD_ONLY"]).read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in selected])
        items[:] = [item for item in items if item.nodeid in selected]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    _record(item.nodeid, "started")
    _reports[item.nodeid] = "passed", ""
    result = yield
    _record(item.nodeid, *_reports.pop(item.nodeid))
    if time.time() > float(os.environ.get("RECORD_UNTIL", "inf")):
        item.session.shouldstop = "the time is over"
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed and _reports[report.nodeid][0] != "failed":
        _reports[report.nodeid] = "failed", report.longreprtext
    elif report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        _reports[report.nodeid] = "skipped", reason

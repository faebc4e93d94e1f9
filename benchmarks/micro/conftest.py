"""Options and the table of nanoseconds per element."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=7, help="timed passes of each operator; one more comes before")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    session = getattr(config, "_benchmarksession", None)
    if session is None or not session.benchmarks:
        return
    terminalreporter.section("nanoseconds per element (operators behind range: compare with range)")
    terminalreporter.line(f"{'operator':<58} {'median':>10} {'fastest':>10} {'spread':>8}")
    for benchmark in session.benchmarks:
        if benchmark.has_error:
            continue
        elements, stats = benchmark.extra_info["elements"], benchmark.stats
        median, fastest = stats.median / elements * 1e9, stats.min / elements * 1e9
        terminalreporter.line(
            f"{benchmark.params['name']:<58} {median:>10,.0f} {fastest:>10,.0f} {stats.iqr / stats.median:>8.0%}"
        )

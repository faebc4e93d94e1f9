"""Tests of the progress line: it is drawn rarely, and drawing never fails a command."""

from __future__ import annotations

import io
import sys

import pytest

from dataset.io.tfrecord import progress_line
from dataset.io.tfrecord.progress_line import ProgressLine


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress_line.time, "monotonic", lambda: now[0])
    return now


def terminal_for(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)  # not in a fixture: pytest replaces it after them
    return terminal


def test_it_is_drawn_on_a_terminal_ten_times_a_second_at_most(clock, monkeypatch):
    terminal = terminal_for(monkeypatch)
    with ProgressLine("copy", 100) as line:
        for _ in range(50):
            clock[0] += 0.01
            line.add(1, 1000)
    drawn = terminal.getvalue().split("\r")[1:]
    assert 5 <= len(drawn) <= 6
    assert drawn[-1] == "copy:  50%, 50 of 100 records, 100/s, 50 kB [##########          ]\n"


@pytest.mark.parametrize("show", [None, True, False])
def test_without_a_console_or_with_one_that_goes_away_nobody_is_stopped(monkeypatch, clock, show):
    terminal = terminal_for(monkeypatch)
    with ProgressLine("copy", 100, show) as line:
        terminal.close()
        for _ in range(3):
            clock[0] += 1
            line.add(1, 1)
    monkeypatch.setattr(sys, "stderr", None)
    with ProgressLine("copy", 100, show) as line:
        line.add(1, 1)

"""Tests of the progress line: it is drawn rarely, and drawing never fails a command."""

from __future__ import annotations

import io
import sys

import pytest

from dataset.io.tfrecord import progress_line
from dataset.io.tfrecord.progress_line import ProgressLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress_line.time, "monotonic", lambda: now[0])
    return now


def test_it_is_drawn_on_a_terminal_ten_times_a_second_at_most(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressLine("copy", 100) as line:
        for _ in range(50):
            clock[0] += 0.01
            line.add(1, 1000)
    drawn = terminal.getvalue().split("\r")[1:]
    assert 5 <= len(drawn) <= 6
    assert drawn[-1] == "copy:  50%, 50 of 100 records, 100/s, 50 kB [##########          ]\n"


def test_a_shorter_line_wipes_out_a_longer_one(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressLine("copy") as line:
        clock[0] = 0.2
        line.add(1000, 999)
        clock[0] = 1000
    first, last = terminal.getvalue().split("\r")[1:]
    assert len(last.rstrip("\n")) >= len(first)


def test_it_fits_a_narrow_terminal(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "20")
    with ProgressLine("copy", 1_000_000) as line:
        line.add(1, 1)
    assert terminal.getvalue() == "\rcopy:   0%, 1 of 1,\n"


@pytest.mark.parametrize("show", [None, True, False])
def test_without_a_console_it_says_nothing(monkeypatch, show):
    monkeypatch.setattr(sys, "stderr", None)
    with ProgressLine("copy", 100, show) as line:
        line.add(1, 1)


def test_a_console_that_goes_away_stops_nobody(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressLine("copy", 100) as line:
        terminal.close()
        for _ in range(3):
            clock[0] += 1
            line.add(1, 1)


def test_more_than_was_announced_is_no_more_than_all(clock):
    line = ProgressLine("copy", 10, show=False)
    line.add(12, 5)
    assert line.text(0, 80) == "copy: 100%, 12 of 10 records, 0/s, 5 B [####################]"
    assert ProgressLine("copy", 0, show=False).text(1, 80) == "copy: 0 records, 0/s, 0 B"


@pytest.mark.parametrize("columns", [1, 20, 34, 38, 44, 80])
def test_the_bar_takes_what_room_there_is(clock, columns):
    line = ProgressLine("copy", 100, show=False)
    line.add(20, 1)
    text = line.text(1, columns)
    assert len(text) <= columns
    assert text.startswith("copy:  20%, 20 of 100 records, 20/s, 1 B"[:columns])
    assert ("[" in text) == (columns >= 48)

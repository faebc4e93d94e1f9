"""Tests of ``progress(live=True)``: in a terminal, in a notebook and in a file, which never see a wall clock."""

import contextlib
import io
import re
import sys
import types

import pytest

from dataset import Dataset

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def ticking(monkeypatch):
    """Let each look at the clock of the progress take a second."""
    now = iter(range(10**6))
    monkeypatch.setattr("dataset.adapters.live_progress.time", types.SimpleNamespace(perf_counter=lambda: next(now)))
    monkeypatch.setattr("dataset.adapters.live_progress.REST_FACTOR", 1)


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "20")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def test_a_terminal_shows_the_table_in_place(terminal, ticking):
    progress = Dataset.range(40).batch(4).progress("reading", live=True, file=terminal)
    assert len(list(progress)) == len(progress) == 10
    text = terminal.getvalue()
    assert text.count("reading: ") > 2
    assert "\x1b[1A" in text  # the cursor moves up
    assert text.endswith("\x1b[?25h")  # and is visible at the end
    last = CONTROL.sub("", text[text.rindex("reading: ") :]).splitlines()
    assert last[0].startswith("reading: 10 elements in ")
    assert [line.split()[0] for line in last[1:4]] == ["operator", "batch(4)", "range(40)"]


def test_lines_that_are_too_wide_are_cut(terminal, ticking, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    list(Dataset.range(40).batch(4).progress(live=True, file=terminal))
    assert max(map(len, CONTROL.sub("\n", terminal.getvalue()).splitlines())) <= 30


def test_a_file_gets_lines_and_the_table_at_the_end(ticking):
    file = io.StringIO()
    list(Dataset.range(100).progress("reading", live=True, file=file))
    lines = file.getvalue().splitlines()
    table = next(index for index, line in enumerate(lines) if line.startswith("operator"))
    assert table > 2
    assert all(re.match(r"reading: [\d,]+ elements in .*/s; the consumer waited", line) for line in lines[:table])
    assert lines[table - 1].startswith("reading: 100 elements in ")
    assert "\x1b" not in file.getvalue()


def test_without_time_only_the_final_table_is_printed():
    file = io.StringIO()
    list(Dataset.range(5).progress(live=True, file=file, mininterval=1000))
    assert file.getvalue().count("elements in ") == 1


@pytest.mark.parametrize("is_error", [False, True])
def test_the_display_and_the_iterator_end_with_the_loop(terminal, is_error):
    with contextlib.suppress(LookupError):
        for x in Dataset.range(10).prefetch(2).progress(live=True, file=terminal):
            if x == 3 and is_error:
                raise LookupError
            if x == 3:
                break
    assert terminal.getvalue().endswith("\x1b[?25h")
    assert "4 elements" in terminal.getvalue()


def test_an_element_that_fails_is_raised_after_the_table(ticking):
    file = io.StringIO()
    with pytest.raises(ZeroDivisionError):
        list(Dataset.range(10).map(lambda x: 1 // (int(x) - 3)).progress(live=True, file=file))
    assert "map(<lambda>)" in file.getvalue()


def test_a_notebook_updates_one_output_of_the_cell(monkeypatch, ticking):
    shown = []

    class Handle:
        def update(self, data, *, raw):
            assert raw
            shown[-1] = data

    def display(data, *, raw, display_id):
        assert raw
        assert display_id
        shown.append(data)
        return Handle()

    ipython = types.ModuleType("IPython")
    compiler = types.SimpleNamespace(format_code_name=lambda name: None)
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object(), compile=compiler)
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    list(Dataset.range(40).batch(4).progress("reading", live=True))
    [output] = shown
    assert list(output) == ["text/plain"]
    assert output["text/plain"].startswith("reading: 10 elements in ")


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"progress\(live=True\) takes no argument 'unit'"):
        Dataset.range(5).progress(live=True, unit="row")
    with pytest.raises(TypeError, match=r"progress\(\): live must be True or False"):
        Dataset.range(5).progress(live="yes")

"""Tests of progress() with the real tqdm, which writes to a StringIO."""

import contextlib
import io
import sys

import numpy as np
import pytest
from tqdm.auto import tqdm

from dataset import Dataset


@pytest.fixture
def terminal():
    return io.StringIO()


def last_line(terminal):
    """Return the final text of the bar."""
    return terminal.getvalue().rstrip("\n").split("\r")[-1]


def test_the_bar_has_the_total_and_counts_batches(terminal):
    progress = Dataset.range(10).batch(4).progress("reading", file=terminal)
    assert len(progress) == 3
    assert [batch.tolist() for batch in progress] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert last_line(terminal).startswith("reading: 100%|")
    assert "| 3/3 [" in last_line(terminal)
    assert "batch/s" in last_line(terminal)


@pytest.mark.parametrize(
    ("make", "unit"),
    [
        (lambda: Dataset.range(4), "element"),
        (lambda: Dataset.range(4).batch(2).map(lambda x: x).prefetch(2), "batch"),
        (lambda: Dataset.range(4).batch(2).unbatch(), "element"),
        (lambda: Dataset.range(4).batch(2).flat_map(Dataset.from_tensors), "element"),
        (lambda: Dataset.from_tensor_slices(np.zeros((4, 2))).padded_batch(2), "batch"),
        (lambda: Dataset.zip(Dataset.range(2), Dataset.range(2)), "element"),
    ],
)
def test_the_unit_says_what_the_elements_are(terminal, make, unit):
    list(make().progress(file=terminal))
    assert f"{unit}/s]" in last_line(terminal)


@pytest.mark.parametrize(
    "make", [lambda: Dataset.counter().take_while(lambda x: x < 7), lambda: Dataset.range(3).repeat()]
)
def test_without_a_known_length_there_is_no_total(terminal, make):
    progress = make().progress(file=terminal)
    for count, _ in enumerate(progress):
        if count == 6:
            break
    assert "%" not in terminal.getvalue()
    assert last_line(terminal).startswith(("6element", "7element"))
    with pytest.raises(TypeError, match="length"):
        len(progress)
    assert progress  # without computing its length


def test_tqdm_receives_the_arguments(terminal):
    data = Dataset.range(6).filter(lambda x: True)
    form = {"bar_format": "{n}/{total} {unit}{postfix}", "postfix": {"loss": 1.5}}
    list(data.progress(file=terminal, total=6, unit="row", **form))
    assert last_line(terminal) == "6/6 row, loss=1.5"
    off = io.StringIO()
    assert len(list(data.progress(file=off, disable=True))) == 6
    assert not off.getvalue()


def test_an_argument_that_tqdm_does_not_have_is_refused_at_once():
    with pytest.raises(TypeError, match=r"progress\(\): tqdm takes no argument 'totl'; it takes .*total"):
        Dataset.range(3).progress(totl=3)
    with pytest.raises(TypeError, match="'iterable'"):
        Dataset.range(3).progress(iterable=[1])


def bars():
    return len(getattr(tqdm, "_instances", ()))


@pytest.mark.parametrize("is_error", [False, True])
def test_a_break_or_an_error_in_the_loop_closes_the_bar_and_the_iterator(terminal, pipeline_threads, is_error):
    with contextlib.suppress(LookupError):
        for number in Dataset.range(1000).prefetch(2).progress(file=terminal):
            if number == 3 and is_error:
                raise LookupError
            if number == 3:
                break
    assert not bars()
    assert not pipeline_threads()
    assert terminal.getvalue().endswith("\n")


def test_an_error_in_the_pipeline_is_raised_and_closes_the_bar(terminal, pipeline_threads):
    seen = []
    inverses = Dataset.range(-2, 3).map(lambda x: 1 // int(x)).prefetch(1)
    with pytest.raises(ZeroDivisionError) as caught:
        seen.extend(inverses.progress(file=terminal))
    assert any("in map(" in note for note in caught.value.__notes__)
    assert not bars()
    assert not pipeline_threads()
    assert "2/5 [" in last_line(terminal)


def test_nothing_is_read_ahead(terminal):
    made = []
    numbers = Dataset.range(5).map(lambda x: made.append(x) or x)
    progress = numbers.progress(file=terminal)
    assert made == []
    assert [len(made) for _ in progress] == [1, 2, 3, 4, 5]


def test_without_tqdm_the_error_names_the_extra(monkeypatch):
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "dataset-combinators\[progress\]"'):
        Dataset.range(3).progress()

"""Tests of progress() with the real tqdm, which writes to a StringIO."""

import io
import subprocess
import sys

import numpy as np
import pytest

from dataset import Dataset

tqdm = pytest.importorskip("tqdm.auto").tqdm


@pytest.fixture
def terminal():
    return io.StringIO()


def last_line(terminal):
    """Return the final text of the bar."""
    return terminal.getvalue().rstrip("\n").split("\r")[-1]


def test_the_bar_knows_the_end_and_counts_batches(terminal):
    batches = [batch.tolist() for batch in Dataset.range(10).batch(4).progress("reading", file=terminal)]
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert last_line(terminal).startswith("reading: 100%|")
    assert "| 3/3 [" in last_line(terminal)
    assert "batch/s" in last_line(terminal)


def test_each_iteration_is_one_of_the_dataset_with_a_bar_of_its_own(terminal):
    orders = Dataset.range(50).shuffle(50, seed=1).progress(file=terminal)
    first, second = list(orders), list(orders)
    assert sorted(first) == sorted(second)
    assert first != second
    assert terminal.getvalue().count("50/50") == 2


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
def test_the_unit_is_what_the_elements_are(terminal, make, unit):
    list(make().progress(file=terminal))
    assert f"{unit}/s]" in last_line(terminal)


@pytest.mark.parametrize(
    "make", [lambda: Dataset.counter().take_while(lambda x: x < 7), lambda: Dataset.range(3).repeat()]
)
def test_there_is_no_total_where_there_is_no_known_end(terminal, make):
    progress = make().progress(file=terminal)
    for count, _ in enumerate(progress):
        if count == 6:
            break
    assert "%" not in terminal.getvalue()
    assert last_line(terminal).startswith(("6element", "7element"))
    with pytest.raises(TypeError, match="length"):
        len(progress)
    assert progress  # without computing its length


def test_the_length_is_that_of_the_dataset():
    assert len(Dataset.range(10).batch(4).progress()) == 3


def test_tqdm_gets_the_arguments(terminal):
    data = Dataset.range(6).filter(lambda x: True)
    list(
        data.progress(
            file=terminal, total=6, unit="row", postfix={"loss": 1.5}, bar_format="{n}/{total} {unit}{postfix}"
        )
    )
    assert last_line(terminal) == "6/6 row, loss=1.5"


def test_a_bar_can_be_switched_off(terminal):
    assert len(list(Dataset.range(3).progress(file=terminal, disable=True))) == 3
    assert not terminal.getvalue()


def test_an_argument_that_tqdm_has_not_is_refused_at_once():
    with pytest.raises(TypeError, match=r"progress\(\): tqdm takes no argument 'totl'; it takes .*total"):
        Dataset.range(3).progress(totl=3)
    with pytest.raises(TypeError, match="'iterable'"):
        Dataset.range(3).progress(iterable=[1])


def bars():
    return len(getattr(tqdm, "_instances", ()))


def test_a_break_closes_the_bar_and_the_iterator(terminal, pipeline_threads):
    for number in Dataset.range(1000).prefetch(2).progress(file=terminal):
        if number == 3:
            break
    assert not bars()
    assert not pipeline_threads()
    assert terminal.getvalue().endswith("\n")


def test_an_error_in_the_loop_closes_the_bar_and_the_iterator(terminal, pipeline_threads):
    def loop():
        for number in Dataset.range(1000).prefetch(2).progress(file=terminal):
            assert number < 3

    with pytest.raises(AssertionError):
        loop()
    assert not bars()
    assert not pipeline_threads()


def test_an_error_in_the_pipeline_comes_out_and_closes_the_bar(terminal, pipeline_threads):
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


def test_without_tqdm_the_extra_is_named():
    code = (
        "import sys\n"
        "sys.modules['tqdm'] = None\n"
        "from dataset import Dataset\n"
        "try:\n"
        "    Dataset.range(3).progress()\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert 'pip install "dataset-combinators[progress]"' in done.stdout

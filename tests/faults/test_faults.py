"""Tests of every kind of fault in every kind of pipeline: see the package."""

import os
import sys

import pytest

from faults.columns import CELLS, COLUMNS, SHORTCOMINGS, Absence, cell
from faults.page import PAGE, table, written_part
from faults.rows import ROWS
from faults.runner import Zygote
from support.fault_injection import covering
from support.seeds import SEED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")

IS_THOROUGH = os.environ.get("FAULTS") == "all"
RUN = [pair for pair in CELLS if not isinstance(cell(*pair), Absence) and pair not in SHORTCOMINGS]
GATE = covering(RUN, "faults")
"""At least one cell of every row and of every column. ``make explore`` and ``make faults`` run all cells."""


@pytest.fixture(scope="module")
def zygotes():
    """Start zygotes when they are needed, by whether they import torch."""
    found = {}
    yield found
    for zygote in found.values():
        zygote.close()


@pytest.mark.timeout(600 if IS_THOROUGH else 120)
@pytest.mark.parametrize(
    ("row", "column"),
    [pytest.param(*pair, id="-".join(pair), marks=[pytest.mark.explore] * (pair not in GATE)) for pair in RUN],
)
def test_cell(zygotes, row, column):
    needs_torch = ROWS[row].needs_torch
    if needs_torch not in zygotes:
        zygotes[needs_torch] = Zygote(torch=needs_torch)
    for number in range(COLUMNS[column].runs if IS_THOROUGH else 1):
        seed = f"{SEED}.{number}"
        problem = zygotes[needs_torch].run(row, column, seed, is_thorough=IS_THOROUGH)
        assert not problem, f"{row}, {column}, SEED={SEED} run {number}\n{problem}"


def test_every_pair_is_shown_or_says_why_not():
    assert len(CELLS) == len(ROWS) * len(COLUMNS) == 220
    assert len(GATE) < 30
    for pair in CELLS:
        found = cell(*pair)
        assert found.reason if isinstance(found, Absence) else found.outcome and found.steps


def test_the_page_shows_the_matrix():
    assert written_part(PAGE.read_text(encoding="utf-8")) == table(), "run make faults"

"""Random search for states that resume inexactly, with the cases of tests/seed: see support/resume_search.py.

A failure prints the seed of the case, its pipeline, and the command that runs it again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.resume_search import Totals, case, search
from support.seeds import SEED

CASES = 300
BLOCKS = 3
CASES_OF_BLOCK = CASES // BLOCKS


@pytest.mark.timeout(600)  # a case that hangs is stopped and reported after a minute
@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_case_resumes_inexactly(block: int, case_files: Path):
    first = CASES * SEED + block * CASES_OF_BLOCK  # the cases belong to the seed of the tests
    print(f"seeds {first} to {first + CASES_OF_BLOCK - 1}")  # noqa: T201  # shown with a failure
    totals = Totals()
    search(iter(range(first, first + CASES_OF_BLOCK)), case_files, totals)
    assert not totals.failures
    assert totals.resumes >= CASES_OF_BLOCK, f"most cases were skipped or refused: {totals}"


def test_a_case_depends_only_on_its_seed():
    assert [str(case(seed)) for seed in range(100)] == [str(case(seed)) for seed in range(100)]
    assert len({str(case(seed)) for seed in range(100)}) == 100

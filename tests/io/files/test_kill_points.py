"""Tests of kill -9 at each step of a writer: old or new files stay intact, and the next run cleans up."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.kill_points import KINDS

PROGRAM = Path(__file__).parents[2] / "support" / "kill_points.py"


@pytest.mark.timeout(600)  # one process per step
@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_is_killed_at_any_step_leaves_all_whole_and_the_next_one_cleans_up(kind, tmp_path):
    command = [sys.executable, PROGRAM, kind, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=560)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "steps.json").read_text()) >= 5

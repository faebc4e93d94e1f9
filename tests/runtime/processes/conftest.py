"""Fixtures of the tests of worker processes."""

import os
import uuid

import pytest

from dataset.runtime.processes import WorkerProcesses, resting_groups
from dataset.testing import no_leaks
from support.process_helpers import LABEL, elementwise, has_ended, members


@pytest.fixture
def start(monkeypatch):
    """Create WorkerProcesses; close them at the end, and check that no process remains."""
    made = []
    family = uuid.uuid4().hex
    monkeypatch.setenv("DATASET_TEST_FAMILY", family)

    def make(function, count=1, *, work=None):
        made.append(WorkerProcesses(work or elementwise(function), count, LABEL))
        return made[-1]

    with no_leaks():
        yield make
        for processes in made:
            processes.close()
        made.clear()
        resting_groups.end_resting()
        assert all(map(has_ended, members(family)))  # child processes of workers are killed, but not waited for


@pytest.fixture
def gate(tmp_path):
    """A named pipe: opening one end blocks until the other end is opened."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return str(path)

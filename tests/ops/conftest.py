"""Fixtures of the tests of ops that write files."""

import itertools

import pytest


@pytest.fixture
def path(tmp_path):
    """The name of a directory that does not exist."""
    return str(tmp_path / "saved")


@pytest.fixture
def new(tmp_path):
    """Return a function that returns another such name each time."""
    numbers = itertools.count()
    return lambda: str(tmp_path / f"new{next(numbers)}")

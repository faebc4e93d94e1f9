"""Fixtures that several files of this folder use."""

from __future__ import annotations

import pytest


@pytest.fixture
def save(save):
    """Return the same function for CSV files, with paths as strings."""
    return lambda content: str(save(content, ".csv"))

"""Fixtures that several files of this folder and its subfolders use."""

from __future__ import annotations

import itertools

import pytest

from support.resume_files import Files


@pytest.fixture
def save(tmp_path):
    """Return a function that writes bytes to a new file and returns its path."""
    names = itertools.count()

    def write(content, suffix=".tfrecord"):
        path = tmp_path / f"{next(names)}{suffix}"
        path.write_bytes(content)
        return path

    return write


@pytest.fixture(scope="module")
def files(case_files):
    """The files that the cases of support/resume_cases.py read."""
    return Files(case_files, case_files)

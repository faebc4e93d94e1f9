"""Helpers for tests of functions that run on columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.functions.kernels import columns, divided


@contextmanager
def columns_at_once() -> Iterator[None]:
    """Try columns from the first chunk on, whatever its length, so that small tests cover them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FEW_ELEMENTS": 2, "COSTLY_MIN": 2, "SCALARS_MIN": 2, "TRIED_FROM": 0, "TRIAL": 2}.items():
            patch.setattr(columns, name, value)
        patch.setattr(divided, "TRIAL", 2)
        yield


@contextmanager
def columns_recorded() -> Iterator[list[int]]:
    """The lengths of the chunks that went through a function as columns."""
    lengths: list[int] = []
    call = columns.Columns.call

    def recording(self: columns.Columns, inputs: Chunk) -> Any:
        result = call(self, inputs)
        lengths.extend([] if result is None else [inputs.length])
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns.Columns, "call", recording)
        yield lengths


@contextmanager
def divisions_recorded() -> Iterator[list[int]]:
    """The lengths of the chunks for which the beginning of a function was computed on columns."""
    lengths: list[int] = []
    calls = divided.Beginning.calls

    def recording(self: divided.Beginning, inputs: Chunk, position: int) -> Any:
        found = calls(self, inputs, position)
        lengths.extend([] if found is None else [inputs.length])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divided.Beginning, "calls", recording)
        yield lengths

"""Helpers for tests of functions that run on columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dataset.runtime.functions import call_loop, columnwise


@contextmanager
def columns_at_once() -> Iterator[None]:
    """Try columns from the first chunk on, whatever its length, so that small tests cover them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LENGTH_MIN": 2, "COSTLY_MIN": 2, "SCALARS_MIN": 2, "TRIED_FROM": 0}.items():
            patch.setattr(columnwise, name, value)
        patch.setattr(call_loop, "TRIAL", 2)
        yield

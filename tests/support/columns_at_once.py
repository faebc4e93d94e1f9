"""What the tests of functions that run on columns share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dataset.runtime.functions import calls, elementwise


@contextmanager
def columns_at_once() -> Iterator[None]:
    """Columns are tried from the first chunk on, however short, so that small tests see them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LENGTH_MIN": 2, "COSTLY_MIN": 2, "SCALARS_MIN": 2, "TRIED_FROM": 0}.items():
            patch.setattr(elementwise, name, value)
        patch.setattr(calls, "TRIAL", 2)
        yield

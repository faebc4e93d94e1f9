"""pyarrow, the library of the extra ``parquet``, loaded at the first call.

No other module imports it: each asks ``library()``, so that ``import dataset`` works, and quickly, without it.
"""

from __future__ import annotations

import functools
from typing import Any

from dataset.extras import load_extra


@functools.cache
def library(name: str = "pyarrow") -> Any:
    """Import ``pyarrow``, or a module of it, at its first use."""
    return load_extra(name, "parquet", "Parquet and Arrow need")

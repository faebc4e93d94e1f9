"""pyarrow, the library of the extra ``parquet``, loaded at the first call.

No other module imports it: each asks ``library()``, so that ``import dataset`` works, and quickly, without it.
"""

from __future__ import annotations

import functools
from typing import Any

from dataset.extras import load_extra

_STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"  # since Arrow 0.15, whose messages begin with the same four bytes


@functools.cache
def library(name: str = "pyarrow") -> Any:
    """Import ``pyarrow``, or a module of it, at its first use."""
    return load_extra(name, "parquet", "Parquet and Arrow need")


def require_stream_end(source: Any) -> None:
    """Raise ValueError if an Arrow IPC stream that was read to its end has no end mark: batches may be missing.

    pyarrow takes the end of the file as that of the stream.
    """
    end = source.tell()
    if source.read_at(4, 0) == _STREAM_END[:4] and source.read_at(8, max(end - 8, 0)) != _STREAM_END:
        raise ValueError(
            "the stream ends without an end mark, so record batches may be missing: writing it may not have finished; "
            "if it is complete, read it with pyarrow.ipc.open_stream and write it again"
        )

"""Sums over elements that do not depend on their order, for checking that libraries gave the same."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np


def of_rows(array: Any) -> int:
    """Of the rows of an array, or of what becomes one (a torch, TensorFlow or JAX tensor): the sum of their CRCs."""
    array = np.ascontiguousarray(np.asarray(array))
    return sum(zlib.crc32(row.tobytes()) for row in array)


def of_texts(texts: Iterable[bytes | str]) -> int:
    """Of lines or records: the sum of their CRCs. ``str`` counts as its UTF-8."""
    return sum(zlib.crc32(text.encode() if isinstance(text, str) else text) for text in texts)

"""Keras 3: a Dataset as ``fit``, ``evaluate`` and ``predict`` take it, on every backend of Keras.

feed.py says which batches Keras gets: checked (checks.py), floats in Keras' precision (precision.py), class weights
turned into sample weights (class_weights.py). data_adapter.py hands them to Keras 3.7 and later, through the interface
that Keras uses for arrays itself; it is not public, so where it is missing py_dataset.py goes through one that is.
Beside the backend that Keras itself has loaded no framework is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dataset.adapters.keras.feed import Feed
from dataset.adapters.keras.py_dataset import DatasetBatches
from dataset.dataset import Dataset

__all__ = ["to_keras"]


def to_keras(dataset: Dataset[Any], class_weight: Mapping[int, float] | None) -> Any:
    """What Keras takes for ``dataset``; see ``Dataset.to_keras``."""
    feed = Feed(dataset, class_weight)
    try:
        from dataset.adapters.keras.data_adapter import DatasetAdapter, are_taken  # noqa: PLC0415  # it may be missing
    except ImportError:
        return DatasetBatches(feed)
    return DatasetAdapter(feed) if are_taken() else DatasetBatches(feed)

"""Keras 3 adapter: a Dataset as input for ``fit``, ``evaluate`` and ``predict``, on every backend of Keras.

feed.py prepares the batches for Keras: it checks them (batch_checks.py), casts floats to Keras' precision
(precision.py) and converts class weights to sample weights (class_weights.py). data_adapter.py passes the batches to
Keras 3.7 and later, through the interface that Keras uses for arrays. That interface is not public; if it is missing,
py_dataset.py uses a public one instead. No framework is imported here other than the backend that Keras has already
loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dataset.adapters.keras.feed import Feed
from dataset.adapters.keras.py_dataset import DatasetBatches
from dataset.dataset import Dataset

__all__ = ["to_keras"]


def to_keras(dataset: Dataset[Any], class_weight: Mapping[int, float] | None) -> Any:
    """Return ``dataset`` as an object that Keras accepts as input; see ``Dataset.to_keras``."""
    feed = Feed(dataset, class_weight)
    try:
        from dataset.adapters.keras.data_adapter import DatasetAdapter, are_taken  # noqa: PLC0415  # it may be missing
    except ImportError:
        return DatasetBatches(feed)
    return DatasetAdapter(feed) if are_taken() else DatasetBatches(feed)

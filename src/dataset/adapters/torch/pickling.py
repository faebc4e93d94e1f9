"""Serialization of a pipeline for worker processes that are not forked.

Functions are sent by name, as pickle does. If this is not possible, as for lambdas and functions defined inside another
function, the whole pipeline is sent by value.
"""

from __future__ import annotations

import contextlib
import pickle
from typing import Any

from dataset.dataset import Dataset
from dataset.extras import load_extra


class PickledByValue:
    """A dataset that was pickled by value."""

    def __init__(self, pickled: bytes) -> None:
        self.pickled = pickled


class _Nowhere:
    """A file that discards its data."""

    def write(self, data: Any) -> int:
        return len(data)


def packed(dataset: Dataset[Any]) -> Dataset[Any] | PickledByValue:
    """Return the dataset, or a PickledByValue if pickle cannot send it by name.

    Raises:
        ImportError: if cloudpickle is needed and not installed.
    """
    # Locks and similar objects raise RuntimeError here: they can be pickled only while a process is being started.
    with contextlib.suppress(RuntimeError):
        try:
            pickle.Pickler(_Nowhere(), protocol=5).dump(dataset)
        except (pickle.PicklingError, AttributeError, TypeError):
            cloudpickle = load_extra("cloudpickle", "process", "sending lambdas to DataLoader workers needs")
            return PickledByValue(cloudpickle.dumps(dataset))
    return dataset


def unpacked(found: Dataset[Any] | PickledByValue) -> Dataset[Any]:
    """Return the dataset."""
    return pickle.loads(found.pickled) if isinstance(found, PickledByValue) else found  # noqa: S301  # our own parent sent it

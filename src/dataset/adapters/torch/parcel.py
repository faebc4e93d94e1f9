"""Sending a pipeline to worker processes that are not forked.

Their functions are sent by name, as pickle does. Where that cannot be, as with lambdas and what is defined inside a
function, the whole pipeline is sent by value.
"""

from __future__ import annotations

import contextlib
import pickle
from typing import Any

from dataset.dataset import Dataset
from dataset.extras import load_extra


class PickledByValue:
    """A pickled dataset."""

    def __init__(self, pickled: bytes) -> None:
        self.pickled = pickled


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, data: Any) -> int:
        return len(data)


def packed(dataset: Dataset[Any]) -> Dataset[Any] | PickledByValue:
    """The dataset, or what stands for it where pickle cannot send it.

    Raises:
        ImportError: if that takes cloudpickle, which is not installed.
    """
    # Locks and their like refuse with a RuntimeError: they can be sent to a process that is being started, and only so.
    with contextlib.suppress(RuntimeError):
        try:
            pickle.Pickler(_Nowhere(), protocol=5).dump(dataset)
        except (pickle.PicklingError, AttributeError, TypeError):
            cloudpickle = load_extra("cloudpickle", "process", "sending lambdas to DataLoader workers needs")
            return PickledByValue(cloudpickle.dumps(dataset))
    return dataset


def unpacked(found: Dataset[Any] | PickledByValue) -> Dataset[Any]:
    """The dataset again."""
    return pickle.loads(found.pickled) if isinstance(found, PickledByValue) else found  # noqa: S301  # our own parent sent it

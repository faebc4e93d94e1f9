"""Map-style datasets of tensors for ``to_torch(map_style=True)``: a torch sampler selects elements by number."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dataset.adapters.torch.device import Target
from dataset.adapters.torch.iterable import HasTensors
from dataset.adapters.torch.to_tensors import TorchTensors
from dataset.dataset import Dataset, columns_at
from dataset.plan.cardinality import is_known
from dataset.plan.node import Node, has_random_access, inputs_first


class TorchMapDataset(HasTensors, torch.utils.data.Dataset[Any]):
    """The elements of a Dataset with random access, as tensors.

    A DataLoader tells each worker which elements to compute, so they are not divided among the workers here.
    """

    def __init__(self, dataset: Dataset[Any], target: Target) -> None:
        """Wrap a dataset. ``Dataset.to_torch`` calls it.

        Raises:
            TypeError: if the dataset has no random access or no known length; the message names the op.
        """
        _require_random_access(dataset.plan)
        self._dataset = dataset
        self._target = target

    def __getitem__(self, index: Any) -> Any:
        self._target.require_no_worker()
        return self._tensors()(self._dataset[operator.index(index)])

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        """Return the elements with these numbers. Components of the same shape share the memory of one tensor.

        Raises:
            IndexError: if a number is out of range.
        """
        self._target.require_no_worker()
        numbers = _numbers(indices, len(self))
        tensors = self._tensors()
        found = columns_at(self._dataset, numbers) if len(numbers) > 1 else None
        if found is None:
            return [tensors(self._dataset[number]) for number in numbers]
        structure, columns = found
        return structure.rows([_rows(tensors, column) for column in columns], len(numbers))


def _numbers(indices: Sequence[Any], count: int) -> list[int]:
    """Return the indices as non-negative ints."""
    numbers = [operator.index(index) for index in indices]
    for number in numbers:
        if not -count <= number < count:
            raise IndexError(f"index {number} is out of range for a dataset of {count} elements")
    return [number % count for number in numbers]


def _rows(tensors: TorchTensors, column: Any) -> Sequence[Any]:
    """Return the rows of a column as components. The rows of an array share the memory of one tensor."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        rows: Sequence[Any] = tensors(column).unbind()
        return rows
    return [tensors(value) for value in column]


def _require_random_access(plan: Node) -> None:
    nodes = inputs_first(plan)
    if not (plan.traits.indexable or has_random_access(plan)):
        node = next(node for node in nodes if not node.traits.seekable)
        raise TypeError(
            f"to_torch(): a map-style dataset needs random access, which {node} does not support; leave "
            "out map_style=True, or replace the op by a torch sampler"
        )
    if not is_known(plan.cardinality()):
        node = next(node for node in nodes if not is_known(node.cardinality()))
        raise TypeError(
            f"to_torch(): a map-style dataset needs a known length, but that of {node} is infinite or "
            "unknown; leave out map_style=True, or limit it with take()"
        )

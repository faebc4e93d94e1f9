"""Implementation of ``Dataset.to_torch``: checks its arguments against the plan and selects the kind of dataset."""

from __future__ import annotations

from typing import Any

from dataset.adapters.torch.device import target
from dataset.adapters.torch.iterable import TorchIterableDataset
from dataset.adapters.torch.map_style import TorchMapDataset
from dataset.adapters.torch.to_tensors import require_tensors
from dataset.dataset import Dataset
from dataset.plan.node import spec_is_static


def torch_dataset(
    dataset: Dataset[Any], device: Any, pin_memory: bool, map_style: bool
) -> TorchIterableDataset | TorchMapDataset:
    """Return the elements of a dataset as a torch dataset. The arguments are those of the method.

    Raises:
        TypeError: if torch cannot represent the elements, as far as this is known without running user code; with
            ``map_style``, if the dataset has no random access or no known length.
        ValueError: if the device does not exist.
    """
    if spec_is_static(dataset.plan):
        require_tensors("to_torch", dataset.element_spec)
    place = target(device, pin_memory)
    return TorchMapDataset(dataset, place) if map_style else TorchIterableDataset(dataset, place)

"""Progress bar: a dataset that draws a tqdm bar while it is iterated over, for ``Dataset.progress``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, TypeVar

from tqdm import std
from tqdm.auto import tqdm

from dataset.adapters.batch_ops import makes_batches
from dataset.adapters.dataset_view import DatasetView
from dataset.dataset import Dataset
from dataset.plan.cardinality import is_known

T_co = TypeVar("T_co", covariant=True)

_ARGUMENTS = {*inspect.signature(std.tqdm.__init__).parameters, "display"} - {"self", "iterable", "kwargs"}
"""The arguments of tqdm; ``display`` has an effect only in notebooks."""


class Progress(DatasetView[T_co]):
    """A dataset that draws a bar while it is iterated over. Each iteration is a new one, with its own bar.

    The bar and the iterator are closed when the loop ends, also by an exception. ``len`` is that of the dataset.
    """

    def __init__(self, dataset: Dataset[T_co], arguments: dict[str, Any]) -> None:
        if wrong := sorted(arguments.keys() - _ARGUMENTS):
            raise TypeError(
                f"progress(): tqdm takes no argument {wrong[0]!r}; it takes {', '.join(sorted(_ARGUMENTS))}"
            )
        cardinality = dataset.cardinality()
        defaults = {
            "total": cardinality if is_known(cardinality) else None,
            "unit": "batch" if makes_batches(dataset.plan) else "element",
        }
        super().__init__(dataset)
        self._arguments = {**defaults, **arguments}

    def __iter__(self) -> Iterator[T_co]:
        with iter(self._dataset) as elements:
            yield from tqdm(elements, **self._arguments)  # tqdm's own loop is cheaper than calls of update()

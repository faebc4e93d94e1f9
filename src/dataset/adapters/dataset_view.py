"""Dataset view: the base class of objects that iterate over a dataset in another way, such as with a progress bar."""

from __future__ import annotations

from typing import Generic, TypeVar

from dataset.dataset import Dataset

T_co = TypeVar("T_co", covariant=True)


class DatasetView(Generic[T_co]):
    """A view of a dataset, with its length and truth value. Subclasses iterate over it."""

    def __init__(self, dataset: Dataset[T_co]) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __bool__(self) -> bool:
        return True  # as for a Dataset: the truth value must not depend on the length

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._dataset!r}>"

"""Feed: the batches of a dataset, pass by pass, as Keras takes them whatever its backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dataset.adapters.keras.checks import check_batches, fail
from dataset.adapters.keras.class_weights import require_class_weight, weighted, weighted_spec
from dataset.adapters.keras.precision import Precision
from dataset.dataset import Dataset
from dataset.plan.cardinality import is_known
from dataset.plan.node import spec_is_static
from dataset.plan.spec import spec_of
from dataset.plan.structure import map_structure

_NO_BATCHES = "there are no batches; batch(drop_remainder=True) drops all elements where they do not fill one batch"


class Feed:
    """The batches of a dataset for Keras.

    Each iteration is a pass of its own over the dataset, and opens it when its first batch is asked for.

    Args:
        dataset: of batches.
        class_weight: the weight of each class, or None.

    Raises:
        ValueError: if the elements, as far as they are known without running anything, are none that Keras takes.
    """

    def __init__(self, dataset: Dataset[Any], class_weight: Mapping[int, float] | None) -> None:
        self._dataset = dataset
        self._class_weight = require_class_weight(class_weight)
        if dataset.cardinality() == 0:
            fail(dataset, _NO_BATCHES)
        if spec_is_static(dataset.plan):
            check_batches(dataset, dataset.element_spec, self._class_weight)

    @property
    def num_batches(self) -> int | None:
        """The length of a pass; None if it is unknown or infinite."""
        cardinality = self._dataset.cardinality()
        return cardinality if is_known(cardinality) else None

    @property
    def cardinality(self) -> int:
        """The length of a pass, or one of the constants for infinite and unknown."""
        return self._dataset.cardinality()

    @property
    def dataset(self) -> Dataset[Any]:
        """Where the batches come from."""
        return self._dataset

    def __iter__(self) -> Iterator[Any]:
        precision = Precision()
        checked = False
        with iter(self._dataset) as elements:  # so that its threads end with the pass, however that ends
            for element in elements:
                if not checked:
                    check_batches(self._dataset, spec_of(element), self._class_weight)
                    checked = True
                batch = map_structure(precision.cast, without_last_nones(element))
                yield batch if self._class_weight is None else weighted(batch, self._class_weight, precision.floatx)
        if not checked:
            fail(self._dataset, _NO_BATCHES)

    def batch_spec(self) -> Any:
        """The spec of the batches; one element is made for it where only user code can tell."""
        precision = Precision()
        spec = self._dataset.element_spec
        check_batches(self._dataset, spec, self._class_weight)
        cast = map_structure(precision.cast_spec, without_last_nones(spec))
        return cast if self._class_weight is None else weighted_spec(cast, precision.floatx)


def without_last_nones(element: Any) -> Any:
    """``(x, y, None)`` as ``(x, y)``, which mean the same to Keras, and the latter to TensorFlow, too."""
    if not isinstance(element, tuple) or element[-1] is not None:
        return element
    return without_last_nones(element[:-1])

"""Feed: the batches of a dataset, pass by pass, in the form that every backend of Keras accepts."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from dataset.adapters.keras.batch_checks import check_batches, fail
from dataset.adapters.keras.class_weights import require_class_weight, weighted, weighted_spec
from dataset.adapters.keras.position_tracker import Place, Places
from dataset.adapters.keras.precision import Precision
from dataset.dataset import Dataset
from dataset.plan.cardinality import is_known
from dataset.plan.node import spec_is_static
from dataset.plan.spec import as_observed, spec_of
from dataset.plan.structure import map_structure

_NO_BATCHES = "there are no batches; batch(drop_remainder=True) drops all elements if they do not fill one batch"


class Feed:
    """The batches of a dataset for Keras.

    Each iteration is a separate pass over the dataset, opened when its first batch is requested.

    Args:
        dataset: a dataset of batches.
        class_weight: the weight of each class, or None.

    Attributes:
        dataset: the dataset of batches.

    Raises:
        ValueError: if Keras does not accept the elements, as far as this is known without running user code.
    """

    def __init__(self, dataset: Dataset[Any], class_weight: Mapping[int, float] | None) -> None:
        self.dataset = dataset
        self._class_weight = require_class_weight(class_weight)
        self._places: Places | None = None
        self._place: Place | None = None
        if dataset.cardinality() == 0:
            fail(dataset, _NO_BATCHES)
        if spec_is_static(dataset.plan):
            check_batches(dataset, dataset.element_spec, self._class_weight)

    @property
    def num_batches(self) -> int | None:
        """The length of a pass; None if it is unknown or infinite."""
        cardinality = self.dataset.cardinality()
        return cardinality if is_known(cardinality) else None

    def train_from(self, places: Places | None, place: Place | None) -> None:
        """Track the passes that start from now on as those of a training, and resume the first one from a position.

        Args:
            places: records the positions of the passes; None for no tracking.
            place: a position in an earlier pass; None to start a new pass.
        """
        self._places, self._place = places, place

    def is_over(self, place: Place) -> bool:
        """Return whether a position is after the last batch of its pass."""
        with iter(self.dataset) as elements:
            _go_to(elements, place)
            return next(elements, None) is None

    def __iter__(self) -> Iterator[Any]:
        places = None if self._places is None or self._places.paused else self._places
        place = None
        if places is not None:
            place, self._place = self._place, None
        if place is not None and (yield from self._pass(places, place)):
            return  # otherwise the position was after the last batch
        if not (yield from self._pass(places, None)):
            fail(self.dataset, _NO_BATCHES)

    def _pass(self, places: Places | None, place: Place | None) -> Generator[Any, None, int]:
        """Yield the batches of a pass, starting from a position; return their number."""
        precision = Precision()
        count = before = 0
        with iter(self.dataset) as elements:  # so that its threads end with the pass, also after an exception
            if place is not None:
                _go_to(elements, place)
                before = place.state["elements"] + place.behind
            if places is not None:
                places.leave(elements.state_dict())
            for element in elements:
                if not count:
                    check_batches(self.dataset, spec_of(element), self._class_weight)
                count += 1
                batch = map_structure(precision.cast, without_last_nones(element))
                if places is not None:
                    places.give(elements.state_dict, is_last=before + count == self.num_batches)
                yield batch if self._class_weight is None else weighted(batch, self._class_weight, precision.floatx)
            if places is not None:
                places.leave(elements.state_dict())
        return count

    def batch_spec(self) -> Any:
        """Return the spec of the batches; if only user code determines it, one element is computed."""
        precision = Precision()
        spec = map_structure(as_observed, self.dataset.element_spec)
        check_batches(self.dataset, spec, self._class_weight)
        cast = map_structure(precision.cast_spec, without_last_nones(spec))
        return cast if self._class_weight is None else weighted_spec(cast, precision.floatx)


def _go_to(elements: Any, place: Place) -> None:
    elements.load_state_dict(place.state)
    elements.skip(place.behind)


def without_last_nones(element: Any) -> Any:
    """Return ``(x, y, None)`` as ``(x, y)``: Keras treats both alike, but TensorFlow accepts only the latter."""
    if not isinstance(element, tuple) or element[-1] is not None:
        return element
    return without_last_nones(element[:-1])

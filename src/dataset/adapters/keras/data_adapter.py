"""DatasetAdapter: a dataset with the interface through which Keras reads all its data.

Keras 3.7 and later accept an instance of it directly. This avoids wrappers and a peek at the first batches, and tells
Keras the number of steps. The interface is not public, so importing this module may raise an ImportError.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from keras.src.trainers.data_adapters import get_data_adapter
from keras.src.trainers.data_adapters.data_adapter import DataAdapter

from dataset.adapters.keras.feed import Feed
from dataset.adapters.keras.position_tracker import Place, Places

_DROPPED = {
    "y": "the elements hold the targets: (x, y)",
    "sample_weight": "give elements (x, y, sample_weight)",
    "class_weight": "call to_keras(class_weight=...)",
}


def are_taken() -> bool:
    """Return whether this version of Keras accepts data adapters as input."""
    adapter = DataAdapter()
    try:
        return get_data_adapter(adapter) is adapter
    except ValueError:  # Keras before 3.7 does not
        return False


class DatasetAdapter(DataAdapter):
    """The batches of a Feed. Each iterable that Keras gets is a separate pass, opened at its first batch."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._epochs: Callable[[], Any] = lambda: None  # a weak reference to Keras' EpochIterator
        self._done: tuple[int, int] | None = None  # batches already trained on in the next epoch, and in its pass
        self._whole: dict[str, Any] = {}  # original values of attributes that were changed for a resumed epoch

    def train_from(self, places: Places | None, place: Place | None, done: int) -> None:
        """Start or resume a training.

        Args:
            places: as for ``Feed.train_from``.
            place: as for ``Feed.train_from``.
            done: how many batches of the first epoch were trained on before.
        """
        self._feed.train_from(places, place)
        self._done = None if place is None else (done, place.state["elements"] + place.behind)

    def is_over(self, place: Place) -> bool:
        """Return whether a position is after the last batch of its pass; this may compute a batch."""
        return self._feed.is_over(place)

    def on_epoch_begin(self) -> None:
        """Reduce the number of steps of a resumed epoch. Keras calls this before it reads the number of steps."""
        done, self._done = self._done, None
        epochs = self._epochs()
        if done is None or epochs is None:
            return
        of_epoch, of_pass = done
        # These private attributes of Keras exist in 3.7 to 3.15, like the interface of DataAdapter.
        whole = epochs._num_batches  # noqa: SLF001
        self._whole = {"steps_per_epoch": epochs.steps_per_epoch, "_num_batches": whole}
        if epochs.steps_per_epoch:
            epochs.steps_per_epoch -= of_epoch
            # A pass spans several epochs; these attributes hold its position.
            epochs._current_iterator = iter(epochs._get_iterator())  # noqa: SLF001
            epochs._steps_seen = of_pass % whole if whole else of_pass  # noqa: SLF001
        elif whole:
            epochs._num_batches -= of_epoch  # noqa: SLF001

    def on_epoch_end(self) -> None:
        """Restore the number of steps. Keras calls this after the last step, which may have set an unknown number."""
        whole, self._whole = self._whole, {}
        if (epochs := self._epochs()) is not None:
            for name, value in whole.items():
                setattr(epochs, name, value)

    def get_numpy_iterator(self) -> Iterator[Any]:
        """Return one pass, as NumPy arrays."""
        return iter(self._feed)

    get_jax_iterator = get_numpy_iterator  # Keras moves the arrays to devices, and prefetches a batch if it is useful

    def get_torch_dataloader(self) -> Iterator[Any]:
        """Return one pass, as tensors on Keras' device. It need not be a DataLoader: Keras only iterates over it."""
        from dataset.adapters.keras.torch_tensors import tensors  # noqa: PLC0415  # only this backend has torch

        return map(tensors, self._feed)

    def get_tf_dataset(self) -> Any:
        """Return a tf.data.Dataset; each iteration over it is one pass."""
        from dataset.adapters.keras.tf_dataset import tf_dataset  # noqa: PLC0415  # only this backend has TensorFlow

        return tf_dataset(self._feed)

    @property
    def num_batches(self) -> int | None:
        """The length of a pass, if it is known."""
        caller = sys._getframe(1)  # noqa: SLF001  # see _refuse_what_is_dropped
        _refuse_what_is_dropped(caller)
        if _is_of_keras(caller):
            self._epochs = weakref.ref(caller.f_locals["self"])
        return self._feed.num_batches

    batch_size = has_partial_batch = partial_batch_size = None
    """Not known: batches may differ in size."""


def _refuse_what_is_dropped(caller: Any) -> None:
    """Raise ValueError if ``fit`` or ``evaluate`` was given an argument that it silently ignores.

    Keras ignores these arguments if the input is an adapter, although it rejects or respects them for all other kinds
    of data. A training without the requested weights would look like one with them. The arguments are last available
    in the caller that reads the number of batches, so they are checked there, in its frame.
    """
    if not _is_of_keras(caller) or caller.f_code.co_name != "__init__":
        return
    for name, remedy in _DROPPED.items():
        if caller.f_locals.get(name) is not None:
            raise ValueError(f"Keras would ignore {name} because the input is a dataset: {remedy}")


def _is_of_keras(caller: Any) -> bool:
    """Return whether the frame is of a method of Keras' EpochIterator."""
    return caller.f_globals.get("__name__") == "keras.src.trainers.epoch_iterator" and "self" in caller.f_locals

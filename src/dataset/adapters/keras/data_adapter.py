"""DatasetAdapter: a dataset behind the interface through which Keras reads all its data.

Keras 3.7 and later use an instance of it as it is. That leads past wrappers and a look at the first batches, and gives
Keras the number of steps. The interface is not public: whoever imports this must be ready for an ImportError.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from keras.src.trainers.data_adapters import get_data_adapter
from keras.src.trainers.data_adapters.data_adapter import DataAdapter

from dataset.adapters.keras.feed import Feed
from dataset.adapters.keras.places import Place, Places

_DROPPED = {
    "y": "the elements hold the targets: (x, y)",
    "sample_weight": "give elements (x, y, sample_weight)",
    "class_weight": "call to_keras(class_weight=...)",
}


def are_taken() -> bool:
    """Whether this version of Keras uses adapters that it is handed."""
    adapter = DataAdapter()
    try:
        return get_data_adapter(adapter) is adapter
    except ValueError:  # it knows no such data, before 3.7
        return False


class DatasetAdapter(DataAdapter):
    """The batches of a Feed. Each iterable that Keras gets is a pass of its own, opened at its first batch."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._epochs: Callable[[], Any] = lambda: None  # a weak reference to what iterates for Keras
        self._done: tuple[int, int] | None = None  # batches of the next epoch, and of the pass, that came before
        self._whole: dict[str, Any] = {}  # what was changed for an epoch that had begun before

    def train_from(self, places: Places | None, place: Place | None, done: int) -> None:
        """Have a training begin, or go on.

        Args:
            places: as for ``Feed.train_from``.
            place: the same.
            done: how many batches of the first epoch were trained on before.
        """
        self._feed.train_from(places, place)
        self._done = None if place is None else (done, place.state["elements"] + place.behind)

    def is_over(self, place: Place) -> bool:
        """Whether a place is behind the last batch of its pass; where only that tells, a batch is made for it."""
        return self._feed.is_over(place)

    def on_epoch_begin(self) -> None:
        """Keras calls it before it looks how many steps there are: in an epoch that goes on there are fewer."""
        done, self._done = self._done, None
        epochs = self._epochs()
        if done is None or epochs is None:
            return
        of_epoch, of_pass = done
        # The attributes of Keras that are not public are those of 3.7 to 3.15, as those of DataAdapter are.
        whole = epochs._num_batches  # noqa: SLF001
        self._whole = {"steps_per_epoch": epochs.steps_per_epoch, "_num_batches": whole}
        if epochs.steps_per_epoch:
            epochs.steps_per_epoch -= of_epoch
            # One pass goes on through several epochs; this is how far it is.
            epochs._current_iterator = iter(epochs._get_iterator())  # noqa: SLF001
            epochs._steps_seen = of_pass % whole if whole else of_pass  # noqa: SLF001
        elif whole:
            epochs._num_batches -= of_epoch  # noqa: SLF001

    def on_epoch_end(self) -> None:
        """Keras calls it behind the last step; where the number of batches is unknown, it has taken it from there."""
        whole, self._whole = self._whole, {}
        epochs = self._epochs()
        if epochs is not None:
            for name, value in whole.items():
                setattr(epochs, name, value)

    def get_numpy_iterator(self) -> Iterator[Any]:
        """One pass, as NumPy arrays."""
        return iter(self._feed)

    def get_jax_iterator(self) -> Iterator[Any]:
        """One pass, as NumPy arrays: Keras puts them on devices itself, and one batch ahead where that pays."""
        return iter(self._feed)

    def get_torch_dataloader(self) -> Iterator[Any]:
        """One pass, as tensors on Keras' device. No DataLoader is needed: Keras only iterates over it."""
        from dataset.adapters.keras.torch_tensors import tensors  # noqa: PLC0415  # only this backend has torch

        return map(tensors, self._feed)

    def get_tf_dataset(self) -> Any:
        """All passes, as a tf.data.Dataset: each iteration over it is one."""
        from dataset.adapters.keras.tf_dataset import tf_dataset  # noqa: PLC0415  # only this backend has TensorFlow

        return tf_dataset(self._feed)

    @property
    def num_batches(self) -> int | None:
        """The length of a pass, if it is known."""
        caller = sys._getframe(1)  # noqa: SLF001  # the only way to see it, says the function
        _refuse_what_is_dropped(caller)
        if _is_of_keras(caller):
            self._epochs = weakref.ref(caller.f_locals["self"])
        return self._feed.num_batches

    @property
    def batch_size(self) -> int | None:
        """Left open: batches may differ in size."""
        return None

    @property
    def has_partial_batch(self) -> bool | None:
        """Left open."""
        return None

    @property
    def partial_batch_size(self) -> int | None:
        """Left open."""
        return None


def _refuse_what_is_dropped(caller: Any) -> None:
    """Raise ValueError if ``fit`` or ``evaluate`` was given what it leaves out without a word.

    Where Keras is handed an adapter it does not look at these arguments, though it refuses or heeds them with all other
    kinds of data. A training that lacks the weights that were asked for looks like one that has them, so the one who
    asks for the number of batches, which is where the arguments are last seen, has its arguments looked at.
    """
    if not _is_of_keras(caller) or caller.f_code.co_name != "__init__":
        return
    for name, remedy in _DROPPED.items():
        if caller.f_locals.get(name) is not None:
            raise ValueError(f"Keras would ignore {name} beside a dataset: {remedy}")


def _is_of_keras(caller: Any) -> bool:
    """Whether this is a method of what iterates for Keras."""
    return caller.f_globals.get("__name__") == "keras.src.trainers.epoch_iterator" and "self" in caller.f_locals

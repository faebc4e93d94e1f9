"""DatasetBatches: a dataset as a ``keras.utils.PyDataset``, for Keras before 3.7, or if Keras' internals have changed.

A PyDataset returns batches by number, in any order, to several threads; a Dataset returns them in sequence. So the
number is ignored, and Keras is told not to use threads: the pipeline has those that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras

from dataset.adapters.keras.batch_checks import fail
from dataset.adapters.keras.feed import Feed
from dataset.plan.cardinality import UNKNOWN_CARDINALITY


class DatasetBatches(keras.utils.PyDataset):
    """The batches of a Feed, each once and in their order.

    Keras reads ``num_batches`` when it starts a pass, and not during one. So reading it ends the current pass.

    Raises:
        ValueError: if the number of batches is unknown, which a PyDataset cannot express.
    """

    def __init__(self, feed: Feed) -> None:
        super().__init__(workers=1, use_multiprocessing=False)  # in the thread that trains
        self._feed = feed
        self._pass: Iterator[Any] | None = None
        self._given = 0
        if feed.dataset.cardinality() == UNKNOWN_CARDINALITY:
            fail(
                feed.dataset,
                f"Keras {keras.__version__} needs the number of batches, which is unknown; call "
                "repeat() and pass steps_per_epoch to fit(), or use Keras 3.7 or later",
            )

    @property
    def num_batches(self) -> int | None:
        """The length of a pass; None if it is infinite."""
        self._pass = None
        return self._feed.num_batches

    def __getitem__(self, index: int) -> Any:
        """Return the next batch; ``index`` is ignored."""
        if self._pass is None:
            self._pass, self._given = iter(self._feed), 0
        batch = next(self._pass, None)
        self._given += 1
        if batch is None:
            raise RuntimeError(f"the dataset ended after {self._given - 1} of {self._feed.num_batches} batches")
        if self._given == self._feed.num_batches:
            self._pass = None  # closes it
        return batch

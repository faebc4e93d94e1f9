"""The dataset iterator, as users see it.

Its parts, each a class that knows only those before it: what is open (lifecycle.py), where it is (cursor.py), and what
it tells about itself (monitor.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dataset import live
from dataset.errors import OutOfRangeError
from dataset.options import Options
from dataset.plan.checks import require_int
from dataset.plan.node import Node
from dataset.runtime import iteration
from dataset.runtime.context import Moved, Reader
from dataset.runtime.iteration.cursor import T_co, entry
from dataset.runtime.iteration.monitor import MonitoredCursor
from dataset.runtime.metrics.profile import OpenObserver
from dataset.runtime.random.streams import EpochLedger
from dataset.world.interrupts import check, guarded, install


class DatasetIterator(MonitoredCursor[T_co]):
    """One pass over a dataset, as returned by ``iter(dataset)``.

    Each element goes to exactly one caller of ``next``, even when several threads share the iterator. An exception
    raised by ``next`` takes the place of one element; the next call continues after it. Only a failure of the library
    itself, such as a MemoryError outside of any user function, ends the iteration: the exception has a note that says
    so, and every later call raises ClosedError. Background threads and files are released at the end of the data, by
    ``close()``, at the end of a ``with`` block, or when the iterator is dropped.

    >>> from dataset import Dataset
    >>> with iter(Dataset.range(10).prefetch(2)) as iterator:
    ...     first = next(iterator)
    >>> first
    np.int64(0)
    """

    @guarded
    def __init__(
        self,
        plan: Node,
        options: Options,
        open_observer: OpenObserver,
        reader: Reader | None = None,
        epochs: EpochLedger | None = None,
    ) -> None:
        super().__init__(plan, options, open_observer, reader)
        install()
        self._take_over(self._open(EpochLedger() if epochs is None else epochs))
        try:
            if setting := os.environ.get("DATASET_LIVE"):
                self._show_on(live.shown_by_environment(setting))
            check()
        except BaseException:
            self.close()
            raise

    @entry
    def start(self) -> None:
        """Begin to compute the first element in a thread, so that the first ``next`` waits less.

        Operators that read ahead, such as ``prefetch``, begin to fill their buffers. Call it before a model is built or
        loaded, for example. The elements, their order and saved states are the same. After the first ``next``, or for
        an iterator that continues from a state, this does nothing.

        Raises:
            ClosedError: after ``close()``.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(10).prefetch(2))
        >>> iterator.start()
        >>> next(iterator)
        np.int64(0)
        """
        self._check_usable()
        if self._is_fresh:
            self._start()

    @entry
    def get_next(self) -> T_co:
        """Return the next element, like ``tf.data.Iterator.get_next``.

        Raises:
            OutOfRangeError: at the end, where ``next`` raises StopIteration.
            Exception: as ``next``, in the place of an element that fails.

        >>> from dataset import Dataset
        >>> iter(Dataset.range(3)).get_next()
        np.int64(0)
        """
        optional = self.get_next_as_optional()
        if not optional.has_value():
            raise OutOfRangeError("get_next(): the iterator has no more elements; iter(dataset) starts another pass")
        return optional.get_value()

    def get_next_as_optional(self) -> iteration.Optional[T_co]:
        """Return the next element in an Optional, which is empty at the end.

        Raises:
            Exception: as ``next``, in the place of an element that fails.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(1))
        >>> iterator.get_next_as_optional(), iterator.get_next_as_optional().has_value()
        (Optional(np.int64(0)), False)
        """
        for element in self:
            return iteration.Optional(element)
        return iteration.Optional()

    def skip(self, count: int) -> int:
        """Skip elements, without computing them where the plan allows it.

        Elements are not computed if arithmetic gives the position after them: over arrays, ranges and indexed files,
        however they are shuffled, batched, zipped or sharded, and whatever functions ``map`` calls for each element.
        These functions are not called for skipped elements, so they cannot fail; an element that would have failed
        still counts for batches and counts. In all other cases elements are computed and discarded. One that fails
        counts as one element, as it does for ``next``, and its exception is not raised.

        Afterwards, the iterator is positioned as after that many calls of ``next``. Elements that were computed ahead
        and skipped are discarded. ``stats()`` counts only what ``next`` returns.

        Args:
            count: how many elements, at least 0.

        Returns:
            How many elements were skipped: fewer than ``count`` if the data ended before.

        Raises:
            TypeError: if ``count`` is not an int.
            ValueError: if ``count`` is negative.
            ClosedError: after ``close()``.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(1_000_000_000).map(lambda x: x + 1))
        >>> iterator.skip(999_999_997), next(iterator)
        (999999997, np.int64(999999998))
        >>> iterator.skip(5)
        2
        """
        count = require_int("skip", "count", count, minimum=0)
        self._check_usable()
        return self._skip(count)

    @entry
    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last element handed out, as plain data.

        Returns:
            A dict of numbers, strings, bytes, arrays, lists and dicts. Its content is private to the library.

        Raises:
            ClosedError: after ``close()``, and after a failure of the library itself.
            StateError: if an operator holds elements that are not plain data, such as objects of user classes.

        >>> from dataset import Dataset
        >>> dataset = Dataset.range(100).shuffle(10, seed=1).batch(4)
        >>> iterator = iter(dataset)
        >>> _ = next(iterator), next(iterator)
        >>> state = iterator.state_dict()
        >>> resumed = iter(dataset)
        >>> resumed.load_state_dict(state)
        >>> bool((next(resumed) == next(iterator)).all())
        True
        """
        self._check_usable()
        with self._lock:
            if self._coordinator.failed:
                self._coordinator.check_usable()
            ahead = self._not_handed_out()
            position = self._position(ahead)
            elements = self._before + self._skipped + self._profile.elements_until(self._left) - ahead
        return self._envelope.seal(position, elements, self._epochs)

    @entry
    def load_state_dict(self, state: dict[str, Any], *, moved: Moved | Mapping[str, str] | None = None) -> None:
        """Go to the position that ``state`` describes, from any position.

        Iterators opened later over the same Dataset count on from the state: after a state of the fifth epoch, the next
        iterator shuffles as the sixth.

        A state contains file names only for comparison. The files that are opened are those of the pipeline's own
        inputs.

        Args:
            state: a result of ``state_dict`` for the same pipeline, from this or another process, or its conversion by
                ``checkpoint.to_json``.
            moved: the new names of files that were renamed after the state was saved: a dict from old name prefixes to
                new ones, such as ``{"/old/disk/": "s3://bucket/"}``, or a function that takes an old name (without any
                secrets of a URL) and returns the new one.

        Raises:
            ClosedError: after ``close()``.
            StateError: if the state is from another pipeline or version, names other files, or is damaged. The position
                of the iterator is then unchanged.
            TypeError: if ``moved`` is neither a dict of strings nor a function.
        """
        self._check_usable()
        self._load(state, moved)

    @entry
    def close(self) -> None:
        """Stop background threads, wait for them, and release files. May be called twice."""
        self._closed = True
        self._stop()
        if self._page is not None:
            self._page.close()

"""Monitored cursor: an iterator's methods that tell what it has done, and why it takes as long as it does."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataset import live
from dataset.plan.checks import require_int
from dataset.runtime import iteration
from dataset.runtime.chunks.lineage import joined, records_of
from dataset.runtime.chunks.source_records import Provenance
from dataset.runtime.iteration.cursor import Cursor, T_co, entry

if TYPE_CHECKING:
    from dataset.live.feed import SnapshotFeed
    from dataset.live.page_server import LivePage
    from dataset.runtime.metrics.statistics import PipelineStatistics
    from dataset.runtime.metrics.tuning_log import TuningLog


class MonitoredCursor(Cursor[T_co]):
    """A cursor that tells what it has done."""

    _page: LivePage | None = None

    @entry
    def stats(self) -> PipelineStatistics:
        """Return what each operator has done so far, how long it took, and which one is the bottleneck.

        May be called at any time, also after the end. Measuring takes about 1% of the time. If elements are produced
        quickly, only some of them are timed, and the figures are extrapolated.

        Returns:
            An object that prints as a table; ``to_dict()`` gives the same as plain data.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(1000).shuffle(100).batch(10))
        >>> batches = list(iterator)
        >>> stats = iterator.stats()
        >>> stats.elements, [operator.name for operator in stats.operators]
        (100, ['batch(10)', 'shuffle(100)', 'range(1000)'])
        """
        if self._coordinator.forked:
            self._coordinator.check_usable()
        return self._statistics()

    @entry
    def serve(self, port: int = 0) -> LivePage:
        """Open a page for a browser on this machine that shows this iterator while it runs.

        The page draws the plan from the source at the top to the consumer at the bottom, with the rates, the work and
        the buffers of all operators, the bottleneck, the waits of the consumer, memory, and the autotuner's decisions.
        The same figures are at ``/snapshot`` as JSON, at ``/events`` as server-sent events, and at ``/metrics`` for
        Prometheus. Only this machine can connect; from another one, use ``ssh -L 8080:localhost:8080``.

        After the end of the data, the page shows the final figures until the iterator is closed or dropped. The
        environment variable ``DATASET_LIVE=8080`` opens a page without a call, which always shows the newest iterator
        of the process.

        Args:
            port: the port; 0 for any free one. If the iterator has an open page already, that is returned.

        Returns:
            A LivePage with the attributes ``url`` and ``port``, and a method ``close()``.

        Raises:
            OSError: if the port is in use.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(10))
        >>> iterator.serve().url
        'http://127.0.0.1:.../'
        >>> iterator.close()
        """
        require_int("serve", "port", port, minimum=0)
        if self._coordinator.forked or self._closed:
            self._coordinator.check_usable()
        if self._page is None or self._page.closed:
            feed = live.SnapshotFeed()
            self._page = live.LivePage(port, feed)
            weakref.finalize(self, self._page.stop)
            self._show_on(feed)
        return self._page

    def _show_on(self, feed: SnapshotFeed | None) -> None:
        if feed is not None:
            source = iteration.LiveSource(feed, self._statistics)
            self._shown_by = (*self._shown_by, source)
            source.follow(self._profile, self._observer)

    @entry
    def on_statistics(self, callback: Callable[[PipelineStatistics], object], every: float = 10.0) -> None:
        """Call a function with ``stats()`` at intervals, for example to log them.

        It is called by the loop itself, in ``next``: no thread is started. It is also called at the end of the data. If
        it raises an exception, that is logged, and the loop continues. Several functions may be registered.

        Args:
            callback: takes the statistics.
            every: seconds between two calls, at least. While no element is requested, there is no call.

        Raises:
            TypeError: if ``callback`` is not callable, or ``every`` is not a number.
            ValueError: if ``every`` is not positive.

        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(100))
        >>> iterator.on_statistics(lambda stats: print(stats.elements, "elements"))
        >>> for element in iterator:
        ...     pass
        100 elements
        """
        self._callbacks = (*self._callbacks, iteration.StatisticsCallback(callback, every))

    def export_telemetry(self, every: float = 10.0) -> None:
        """Send the statistics to OpenTelemetry at intervals, as ``on_statistics`` does.

        Only ``opentelemetry-api`` is used. Nothing is sent until the application has configured an SDK. The metrics are
        those of the live page for Prometheus, such as ``dataset.elements`` and ``dataset.operator.busy_ratio``. Those
        of operators have the attributes ``operator`` and ``index``, and all have ``rank`` if ``RANK`` is in the
        environment.

        Args:
            every: seconds between two updates, at least.

        Raises:
            ImportError: if opentelemetry-api is not installed.
            TypeError: if ``every`` is not a number.
            ValueError: if ``every`` is not positive.
        """
        telemetry = live.Telemetry()
        self.on_statistics(lambda stats: telemetry.send(stats.to_dict()), every)

    def headspace(self, seconds: float = 10.0) -> iteration.Headspace[T_co]:
        """Measure how fast your loop would be if its elements cost nothing. Loop over the result instead of over this.

        In the first half of the time, the loop gets the next elements of this iterator, whose position moves on as with
        ``next``. In the second half, it gets copies of the first few of these elements again and again, which costs no
        time and does not move the position. A training step trains with all of them, so measure before the training, or
        drop the model afterwards. The first tenth of each half is not counted. A step must last until its work is done:
        with a GPU, end it with an operation that waits, such as reading the loss.

        Args:
            seconds: how long the loop takes, unless it takes fewer than three steps in each half of this time.

        Returns:
            An iterator with the results: ``steps_per_second``, ``free_steps_per_second``, ``lost``, the share of the
            time that the loop loses because of the pipeline, and ``waiting``, the share in which it waits for elements.
            It prints as a sentence. As a context manager, it releases the copies at the end of the block.

        Raises:
            TypeError: if ``seconds`` is not a number.
            ValueError: if ``seconds`` is not positive.

        >>> import time
        >>> from dataset import Dataset
        >>> iterator = iter(Dataset.range(10**9).batch(10))
        >>> with iterator.headspace(seconds=0.1) as batches:
        ...     for batch in batches:
        ...         time.sleep(0.001)
        >>> batches.steps_per_second > 0, 0 <= batches.lost < 1
        (True, True)
        """
        return iteration.Headspace(self, seconds)

    @entry
    def tuning_log(self) -> TuningLog:
        """Return the autotuner's decisions so far, as a list of ``Decision`` that prints as lines of text.

        The list is a copy. It has the first 100 and the last 400 decisions of this iteration; its attribute ``omitted``
        is the number of those between them. Saved states do not contain decisions.

        >>> from dataset import Dataset
        >>> iter(Dataset.range(10)).tuning_log()
        TuningLog: nothing was decided
        """
        log: TuningLog = self._observer.tuning_log()
        return log

    @entry
    def provenance(self) -> Provenance:
        """Return the source records that the last element, such as a batch, was made from.

        The iterator must record them: set the option ``provenance``. Recording changes no element. ``next`` then takes
        a little longer, and states that hold elements by value also hold their provenance. Without the option, nothing
        is recorded and nothing is paid.

        Returns:
            The records of the last element that ``next`` returned, in order: a sequence of ``SourceRecord`` that prints
            as one line per record. Records are unknown after ops whose elements are not made from single elements of
            their input.

        Raises:
            ValueError: if the option ``provenance`` is not set, or ``next`` has not returned an element since the
                iterator was created or a state was loaded.
            ClosedError: after ``close()``.

        >>> from dataset import Dataset, Options
        >>> options = Options()
        >>> options.provenance = True
        >>> letters = Dataset.from_tensor_slices([b"a", b"b", b"c", b"d"], name="letters").shuffle(4, seed=1).batch(2)
        >>> iterator = iter(letters.with_options(options))
        >>> next(iterator)
        array([b'b', b'd'], dtype=object)
        >>> print(iterator.provenance())
        letters:1
        letters:3
        """
        self._check_usable()
        if not self._context.is_traced:
            raise ValueError(
                "provenance(): this iterator does not record provenance: set options.provenance = True and pass the "
                "options to with_options(), or use checkpoint.records() on a saved state"
            )
        if self._structure is None:
            raise ValueError("provenance(): call next() first; it describes the last element that next() returned")
        return Provenance(records_of(None if self._lineage is None else joined(self._lineage)))

"""Mixing operator: choices determine from which input the next element is pulled.

choose_from_datasets and sample_from_datasets share the operator; they differ in the selector that makes the choices
(ops/mix/selector.py).

Elements move in runs: a run of choices is cut where an input may end or fail. Each input returns all its elements of
the run at once, and the elements are then put in order. If the mix ends with the first input that ends, an input whose
plan calls user code is only read for choices that are certain to be reached. Otherwise, what is read for choices after
the end of another input is returned a little later, and is never lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dataset.amounts import STEP_ELEMENTS
from dataset.errors import SpecError, StateError
from dataset.ops.mix.selector import Choices, Selector
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.contract import Upstream
from dataset.runtime.parallel.buffered_input import BufferedInput
from dataset.runtime.parallel.buffered_operator import BufferedOperator
from dataset.runtime.position import Position
from dataset.runtime.state.replay_log import replay

_NOTHING: Choices = np.empty(0, np.int64)


class MixOperator(BufferedOperator):
    """Operator that returns elements of the inputs in the order of the choices.

    Args:
        node: the node.
        feeds: the inputs.
        selector: makes the choices.
        counts: in which it counts the elements from each input, for ``iterator.stats()``.
        stop_on_empty: whether to end with the first input that ends.
    """

    saved = ("ended",)

    def __init__(
        self,
        node: Node,
        feeds: Sequence[BufferedInput],
        selector: Selector,
        counts: list[int],
        *,
        stop_on_empty: bool,
    ) -> None:
        super().__init__(node)
        self._counts = counts
        self.feeds = feeds
        self.selector = selector
        self.stop_on_empty = stop_on_empty
        self.ended = False
        self._choices = _NOTHING  # drawn but not used yet
        self._gone = np.zeros(len(feeds), np.bool_)  # inputs that have ended
        self._places: _Places | None = None  # of the last gathered run

    def produce(self, n: int) -> Chunk | None:
        while not self.ended:
            if not len(self._choices) and not self._draw(n):
                break
            run = self._gather(self._choices[:n])
            if len(run):
                self._choices = self._choices[len(run) :]
                self.at += len(run)
                self._check_replay()
                return self._join(run)
            if len(self._choices):
                self._pass_by()
        return None

    def _check_replay(self) -> None:
        """Check that elements which are skipped after a resume are those that were returned before."""
        changed = self.selector.changed_from
        if changed is not None and replay.is_active and changed < self.at:
            raise StateError(
                f"{self.node}: the weights of element {changed:,} have changed, but it was returned before the "
                f"state was saved, as was element {self.at - 1:,}; only weights of later elements may change"
            )

    def _draw(self, n: int) -> bool:
        """Draw choices for up to ``n`` elements; False at the end."""
        try:
            drawn = self.selector.draw(self._certain(n) if self.selector.seen_early else max(n, STEP_ELEMENTS))
        except Exception:
            self.at += 1
            raise
        if drawn is None:
            self.ended = True
            return False
        self._choices = self._without_gone(drawn)
        return True

    def _certain(self, n: int) -> int:
        """Return how many choices are certain to be needed: the inputs cannot end before that many."""
        left = [
            feed.left for feed, gone in zip(self.feeds, self._gone, strict=True) if not gone and not feed.is_endless
        ]
        if not left or (not self.stop_on_empty and len(left) < len(self.feeds) - int(self._gone.sum())):
            return n
        known = [count for count in left if count is not None]
        if len(known) < len(left):
            return 1
        return max(1, min(n, min(known) if self.stop_on_empty else sum(known)))

    def _without_gone(self, choices: Choices) -> Choices:
        if not self._gone.any():
            return choices
        usual = (choices >= 0) & (choices < len(self.feeds))
        return choices[~(usual & self._gone[np.where(usual, choices, 0)])]

    def _gather(self, run: Choices) -> Choices:
        """Return the leading choices whose elements are available; empty if the first choice has no element."""
        if len(run) == 1:  # the usual case of element-wise iteration
            index = int(run[0])
            if not 0 <= index < len(self.feeds):
                return _NOTHING
            self.feeds[index].gather(1)
            return run if self.feeds[index].length else _NOTHING
        wrong = np.flatnonzero((run < 0) | (run >= len(self.feeds)))
        run = run[: wrong[0]] if len(wrong) else run
        if not len(run):
            return run
        places = self._places = _Places(run, len(self.feeds))
        stop = max(1, self._first_known_end(places))  # the first choice is always reached
        for index in places.present:
            if not self.feeds[index].seen_early:
                stop = self._gather_from(index, places, stop)
        seen = [index for index in places.present if self.feeds[index].seen_early]
        if not seen:
            return run[:stop]
        if self.stop_on_empty:  # what is read for choices after the end of an input would be lost
            uncertain = [index for index in seen if self.feeds[index].left is None]
            stop = self._gather_uncertain(uncertain, run, places, stop)
        for index in seen:
            stop = self._gather_from(index, places, stop)
        return run[:stop]

    def _first_known_end(self, places: _Places) -> int:
        """Return the place of the first choice known to meet the end of its input; if none, the end of the run."""
        stop = places.length
        for index in places.present:
            left = self.feeds[index].left
            if left is not None and 0 <= left < places.counts[index]:
                stop = min(stop, int(places.of(index)[left]))
        return stop

    def _gather_from(self, index: int, places: _Places, stop: int) -> int:
        """Gather all elements of one input before ``stop``, and return where the run must stop for it."""
        feed, wanted = self.feeds[index], places.count(index, stop)
        if feed.length < wanted:
            feed.gather(wanted)
            if feed.length < wanted:
                return int(places.of(index)[feed.length])
        return stop

    def _gather_uncertain(self, uncertain: Sequence[int], run: Choices, places: _Places, stop: int) -> int:
        """Gather inputs whose end is only found by reading; several of them in the order of the choices."""
        if len(uncertain) < 2:
            return self._gather_from(uncertain[0], places, stop) if uncertain else stop
        wanted = dict.fromkeys(uncertain, 0)
        for place, index in enumerate(run[:stop].tolist()):
            if index in wanted:
                wanted[index] += 1
                feed = self.feeds[index]
                if feed.length < wanted[index]:
                    feed.gather(wanted[index])
                    if feed.length < wanted[index]:
                        return place
        return stop

    def _pass_by(self) -> None:
        """Consume a choice without an element: an invalid input, an exception, or the end of an input."""
        index = int(self._choices[0])
        self._choices = self._choices[1:]
        if not 0 <= index < len(self.feeds):
            place, self.at = self.at, self.at + 1
            raise ValueError(
                f"{self.node}: choice {index} for element {place} is out of range; there are "
                f"{len(self.feeds)} datasets, numbered from 0"
            )
        error = self.feeds[index].take_error()
        if error is not None:
            self.at += 1
            try:
                raise error
            finally:
                del error  # see runtime/contract.py on stored exceptions
        if self.feeds[index].ended:
            self._leave_out(index)

    def _leave_out(self, index: int) -> None:
        self._gone[index] = True
        if self.stop_on_empty or self._gone.all():
            self.ended = True
        elif self.selector.leave_out(index, len(self._choices)):
            self._choices = _NOTHING
        else:
            self._choices = self._without_gone(self._choices)

    def _join(self, run: Choices) -> Chunk:
        if len(run) == 1:
            self._counts[int(run[0])] += 1
            return self.feeds[int(run[0])].give(1)
        places = self._places
        if places is None or places.length != len(run):
            places = _Places(run, len(self.feeds))
        self._places = None
        for index in places.present:
            self._counts[index] += places.counts[index]
        parts = [self.feeds[index].give(places.counts[index]) for index in places.present]
        if len(parts) == 1:
            return parts[0]
        structure = parts[0].structure
        for part in parts:
            if part.structure is not structure and part.structure != structure:
                raise SpecError(
                    f"{self.node}: all datasets must have the same structure, got {structure!r} and {part.structure!r}"
                )
        return Chunk.concatenate(parts).take(places.inverse())

    def upstream(self) -> Sequence[Upstream]:
        return (self.selector, *self.feeds)

    def save(self) -> Position:
        position, choices = super().save(), self._choices
        if len(choices) and (selector := self.selector.position_before(len(choices))) is not None:
            position, choices = position.having(inputs=(selector, *position.inputs[1:])), _NOTHING
        return position.with_own(choices=choices.copy(), gone=self._gone.copy())

    def load(self, position: Position) -> None:
        super().load(position)
        self._choices, self._gone = position.own["choices"].copy(), position.own["gone"].copy()
        self._check_loaded()

    def _check_loaded(self) -> None:
        """Reject a state that can only choose inputs that have ended: pulling would never return."""
        fits = self._gone.shape == (len(self.feeds),) and self._gone.dtype == bool
        fits = fits and self._choices.ndim == 1 and self._choices.dtype == np.int64
        if fits and not self.ended:
            remaining, live = np.flatnonzero(~self._gone).tolist(), self.selector.live()
            fits = bool(remaining) and live in (None, remaining)
        if not fits:
            raise StateError(f"{self.node}: the saved choices do not fit the inputs that have ended")


class _Places:
    """Index of the places of each input in a run of choices, computed with one sort for any number of inputs.

    Attributes:
        length: the length of the run.
        counts: how often each input is chosen.
        present: the inputs that are chosen, in ascending order.
    """

    def __init__(self, run: Choices, width: int) -> None:
        self.length = len(run)
        counts = np.bincount(run, minlength=width)
        self.counts: list[int] = counts.tolist()
        self.present: list[int] = np.flatnonzero(counts).tolist()
        self._ends: list[int] = np.cumsum(counts).tolist()
        # NumPy uses radix sort for integers of two bytes.
        narrow = run.astype(np.uint16) if width <= np.iinfo(np.uint16).max else run
        self._order = np.argsort(narrow, kind="stable")

    def of(self, index: int) -> npt.NDArray[np.intp]:
        """Return the places of one input, in ascending order."""
        end = self._ends[index]
        return self._order[end - self.counts[index] : end]

    def count(self, index: int, stop: int) -> int:
        """Return how many places of one input are before ``stop``."""
        return self.counts[index] if stop == self.length else int(np.searchsorted(self.of(index), stop))

    def inverse(self) -> npt.NDArray[np.intp]:
        """Return, for each place of the run, the index of its element in the concatenated elements of all inputs."""
        found = np.empty_like(self._order)
        found[self._order] = np.arange(self.length)
        return found

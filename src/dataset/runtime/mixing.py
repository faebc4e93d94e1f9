"""Datasets mixed into one: choices say from which input the next element comes.

choose_from_datasets and sample_from_datasets share the operator; they differ in who makes the choices, the selector.

Elements move in runs: a run of choices is cut where an input may end or fail, each input gives all its elements of the
run at once, and one take puts them in order. How long a run may be says who could notice: an input whose plan holds
user code is read only for choices that are certain to be reached.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.plan.node import Node, holds_user_code
from dataset.plan.structure import LEAF
from dataset.runtime.chunk import Chunk
from dataset.runtime.feeds import Feed
from dataset.runtime.operator import Operator, State
from dataset.runtime.pending import Pending

Choices: TypeAlias = npt.NDArray[np.int64]

_AHEAD = 256  # choices drawn at once, at least, where nobody can notice
_NOTHING: Choices = np.empty(0, np.int64)


class Selector(ABC):
    """Makes the choices: numbers of inputs."""

    seen_early: bool = False
    """Whether a user could notice that choices are drawn ahead."""

    @abstractmethod
    def draw(self, n: int) -> Choices | None:
        """The next 1 to ``n`` choices; None at the end. An exception has the place of a choice, and of its element."""

    def leave_out(self, index: int, unused: int) -> bool:  # noqa: ARG002  # for those who can
        """An input has ended. Whether the last ``unused`` choices are void, and made anew among the others."""
        return False

    @abstractmethod
    def state_dict(self) -> State:
        """Where it stands, as plain data."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Go there."""

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Let go of what it reads from."""


class ReadSelector(Selector):
    """Makes choices out of the elements of a dataset, and puts what cannot be one in its place as an exception."""

    def __init__(self, node: Node, plan: Node, source: Operator) -> None:
        self.node = node
        self.seen_early = holds_user_code(plan)
        self.source = source
        self.position = 0  # elements read
        self._ready = Pending()

    @abstractmethod
    def convert(self, inputs: Chunk) -> Choices:
        """The choices; SpecError if an element is no choice, before anything has changed."""

    def draw(self, n: int) -> Choices | None:
        if not self._ready:
            try:
                inputs = self.source.pull(n)
            except Exception:
                self.position += 1
                raise
            if inputs is None:
                return None
            self._read(inputs)
        chunk = self._ready.give(n)
        assert chunk is not None
        column = chunk.columns()[0]
        assert isinstance(column, np.ndarray)
        return column

    def _read(self, inputs: Chunk) -> None:
        try:
            choices = self.convert(inputs)
        except SpecError as error:
            if inputs.length > 1:
                for index in range(inputs.length):
                    self._read(inputs.slice(index, index + 1))
                return
            self._ready.put(error)
        else:
            self._ready.put(Chunk(LEAF, inputs.length, [choices]))
        self.position += inputs.length

    def state_dict(self) -> State:
        return {"source": self.source.state_dict(), "position": self.position, "ready": self._ready.save()}

    def load_state_dict(self, state: State) -> None:
        self.source.load_state_dict(state["source"])
        self.position = int(state["position"])
        self._ready.load(state["ready"], lambda: None)

    def close(self) -> None:
        self.source.close()


class MixOperator(Operator):
    """Gives elements of the inputs in the order of the choices."""

    def __init__(self, node: Node, feeds: Sequence[Feed], selector: Selector, *, stop_on_empty: bool) -> None:
        self.node = node
        self.feeds = feeds
        self.selector = selector
        self.stop_on_empty = stop_on_empty
        self.position = 0  # elements given or failed
        self.ended = False
        self._choices = _NOTHING  # drawn and still to come
        self._gone = np.zeros(len(feeds), np.bool_)  # inputs whose end was met

    def pull(self, n: int) -> Chunk | None:
        while not self.ended:
            if not len(self._choices) and not self._draw(n):
                break
            run = self._gather(self._choices[:n])
            if len(run):
                self._choices = self._choices[len(run) :]
                self.position += len(run)
                return self._join(run)
            if len(self._choices):
                self._pass_by()
        return None

    def _draw(self, n: int) -> bool:
        """Draw choices for up to ``n`` elements; False at the end."""
        try:
            drawn = self.selector.draw(self._certain(n) if self.selector.seen_early else max(n, _AHEAD))
        except Exception:
            self.position += 1
            raise
        if drawn is None:
            self.ended = True
            return False
        self._choices = self._without_gone(drawn)
        return True

    def _certain(self, n: int) -> int:
        """How many choices are needed in any case: before that many, the inputs cannot end."""
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
        """The first of these choices for which all elements are at hand; none where the first has no element."""
        if len(run) == 1:  # the usual case of those who iterate
            index = int(run[0])
            if not 0 <= index < len(self.feeds):
                return _NOTHING
            self.feeds[index].gather(1)
            return run if self.feeds[index].length else _NOTHING
        wrong = np.flatnonzero((run < 0) | (run >= len(self.feeds)))
        run = run[: wrong[0]] if len(wrong) else run
        quiet = [index for index, feed in enumerate(self.feeds) if not feed.seen_early]
        loud = [index for index, feed in enumerate(self.feeds) if feed.seen_early]
        for index in quiet:
            run = self._gather_from(index, run)
        if loud:
            run = self._up_to_first_doubt(run, loud)
            # Those whose end is known come first: they cut the run only where they fail.
            for index in sorted(loud, key=lambda index: self.feeds[index].left is None):
                run = self._gather_from(index, run)
        return run

    def _gather_from(self, index: int, run: Choices) -> Choices:
        places = np.flatnonzero(run == index)
        feed = self.feeds[index]
        feed.gather(len(places))
        return run[: places[feed.length]] if feed.length < len(places) else run

    def _up_to_first_doubt(self, run: Choices, loud: Sequence[int]) -> Choices:
        """The choices of which it is certain that all are reached, or whose last input alone can cut them short."""
        uncertain = []
        for index in loud:
            places = np.flatnonzero(run == index)
            left = self.feeds[index].left
            if left is None:
                uncertain.extend(places[:1].tolist())
            elif left >= 0 and left < len(places):
                run = run[: max(1, places[left])]  # the first is reached in any case
        # The end of one shows only when it is read, so no other such input is read with it.
        second = sorted(uncertain)[1:2]
        return run[: second[0]] if second and second[0] < len(run) else run

    def _pass_by(self) -> None:
        """Use up a choice that gives no element: no such input, an exception, or the end of an input."""
        index = int(self._choices[0])
        self._choices = self._choices[1:]
        if not 0 <= index < len(self.feeds):
            place, self.position = self.position, self.position + 1
            raise ValueError(
                f"{self.node.located()}: choice {index} for element {place} is out of range; there are "
                f"{len(self.feeds)} datasets, numbered from 0"
            )
        error = self.feeds[index].take_error()
        if error is not None:
            self.position += 1
            try:
                raise error
            finally:
                del error  # see runtime/operator.py on exceptions that are kept
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
        counts = np.bincount(run, minlength=len(self.feeds)).tolist() if len(run) > 1 else []
        used = [index for index, count in enumerate(counts) if count] or [int(run[0])]
        if len(used) == 1:
            return self.feeds[used[0]].give(len(run))
        parts = [self.feeds[index].give(counts[index]) for index in used]
        for part in parts[1:]:
            if part.structure != parts[0].structure:
                raise SpecError(
                    f"{self.node.located()}: all datasets must have one structure, got {parts[0].structure!r} and "
                    f"{part.structure!r}"
                )
        order = np.empty(len(run), np.intp)
        order[np.argsort(run, kind="stable")] = np.arange(len(run))
        return Chunk.concatenate(parts).take(order)

    def state_dict(self) -> State:
        return {
            "position": self.position,
            "ended": self.ended,
            "choices": self._choices.copy(),
            "gone": self._gone.copy(),
            "selector": self.selector.state_dict(),
            "feeds": [feed.save() for feed in self.feeds],
        }

    def load_state_dict(self, state: State) -> None:
        self.position, self.ended = int(state["position"]), bool(state["ended"])
        self._choices, self._gone = state["choices"].copy(), state["gone"].copy()
        self.selector.load_state_dict(state["selector"])
        for feed, saved in zip(self.feeds, state["feeds"], strict=True):
            feed.load(saved)

    def close(self) -> None:
        self.selector.close()
        for feed in self.feeds:
            feed.source.close()

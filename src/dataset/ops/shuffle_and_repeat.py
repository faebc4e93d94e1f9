"""shuffle_and_repeat: shuffle() below repeat(). Only the optimizer makes it; there is no method for it.

A buffer of thousands of elements takes time to fill, and each epoch begins with an empty one. Here the next epoch is
read while the rest of this one is given out, an element for an element, so that together they never hold more than the
buffer may. The elements wait in front of the shuffle: the two epochs do not mix, and no draw is another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.ops.repeat import Repeat
from dataset.ops.shuffle import Shuffle, ShuffleOperator
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.pending import Pending
from dataset.runtime.saved_elements import SavedElements
from dataset.runtime.trail import Trail

_STEP = 1024  # elements read ahead at a time; among so many, the fixed cost of a step is small
_ENDLESS_SHARE = 32  # of what an endless repetition has given, at most one part is read ahead


@dataclass(frozen=True, eq=False)
class ShuffleAndRepeat(UnaryNode):
    """What ``repeat`` over ``shuffle`` gives, where nobody can see that ``source`` is read ahead."""

    op: ClassVar[str] = "shuffle_and_repeat"
    shuffle: Shuffle
    repeat: Repeat

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    def parameters(self) -> dict[str, Any]:
        return {**self.shuffle.parameters(), **self.repeat.parameters()}

    def cardinality(self) -> int:
        return self.repeat.cardinality()

    def content(self) -> Any:
        return [self.shuffle.content(), self.repeat.content()]

    def described(self) -> str:
        shuffled = self.shuffle.described().removeprefix("shuffle(").removesuffix(")")
        return f"{self.op}({shuffled}{'' if self.repeat.times < 0 else f', count={self.repeat.times}'})"

    def lower(self, build: Build) -> Operator:
        return ShuffleAndRepeatOperator(build, self)


class ShuffleAndRepeatOperator(Operator):
    """Holds the shuffle of the current epoch, and, once that has read its whole input, the input of the next."""

    def __init__(self, build: Build, node: ShuffleAndRepeat) -> None:
        self.build = build
        self.node = node
        self.elements = SavedElements(build, node.source)
        self.times = node.repeat.times
        self.finished = 0  # epochs
        self.given = 0  # elements of all of them
        self.epoch_is_empty = True  # so far
        self.upcoming: ReadAheadOperator | None = None
        self.current: ShuffleOperator | None = self._shuffled(self._open_input()) if self.times else None
        self._due = 0  # elements that were given out, and not yet read for the next epoch

    def _open_input(self) -> ReadAheadOperator:
        return ReadAheadOperator(self.build, self.node.source)

    def _shuffled(self, source: Operator) -> ShuffleOperator:
        """The shuffle of an epoch, which has its number from now on, as if ``repeat`` had opened it."""
        return self.node.shuffle.lower_over(self.build, self.elements, source)

    def pull(self, n: int) -> Chunk | None:
        while self.current is not None:
            self._read_ahead(n)
            chunk = self.current.pull(n)
            if chunk is not None:
                self.epoch_is_empty = False
                self.given += chunk.length
                return chunk
            self._next_epoch()
        return None

    def _read_ahead(self, n: int) -> None:
        """Read as much for the next epoch as is about to be given out of this one."""
        assert self.current is not None
        if not self.current.input_ended or not self._expects_another:
            return
        self._due += n
        if self._due < _STEP:
            return
        if self.upcoming is None:
            self.upcoming = self._open_input()
        self.upcoming.read(min(self._due, self.current.size - len(self.upcoming.ahead)))
        self._due = 0

    @property
    def _expects_another(self) -> bool:
        """Whether to read for another epoch.

        Nobody knows where an endless repetition is left. So that what is read in vain then is little beside the rest,
        it is not read ahead before many times as much has been given out.
        """
        if not self.build.background or self.current is None:
            return False
        if self.times > 0:
            return self.finished + 1 < self.times
        return self.finished >= _ENDLESS_SHARE or self.given >= _ENDLESS_SHARE * self.current.size

    def _next_epoch(self) -> None:
        assert self.current is not None
        self.current.close()
        self.finished += 1
        # An endless repetition of nothing would never come back.
        over = self.finished == self.times or (self.times < 0 and self.epoch_is_empty)
        source, self.upcoming, self._due = self.upcoming, None, 0
        self.current = None if over else self._shuffled(source or self._open_input())
        self.epoch_is_empty = True

    def state_dict(self) -> State:
        """Without what was read for the next epoch, which can be read again from its beginning."""
        return {
            "op": ShuffleAndRepeat.op,
            "finished": self.finished,
            "given": self.given,
            "epoch_is_empty": self.epoch_is_empty,
            "current": None if self.current is None else self.current.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        self.finished = int(state["finished"])
        self.given = int(state["given"])
        self.epoch_is_empty = bool(state["epoch_is_empty"])
        if state["current"] is None:
            self.close()
        elif self.current is not None:
            self.current.load_state_dict(state["current"])

    def close(self) -> None:
        for operator in (self.current, self.upcoming):
            if operator is not None:
                operator.close()
        self.current = self.upcoming = None


class ReadAheadOperator(UnaryOperator):
    """Gives what was read ahead, and then the rest of its input.

    A state tells a place of the input before that, and how many elements have been given since; only where the input
    would not give them again, it holds them.
    """

    def __init__(self, build: Build, node: Node) -> None:
        super().__init__(build(node))
        self.build = build
        self.node = node
        self.ahead = Pending()
        self.given = 0  # elements since the trail began, an exception being one
        self._trail: Trail | None = None  # while elements are read ahead, or are still to be passed over
        self._ended = False

    def read(self, count: int) -> None:
        """Read up to ``count`` elements ahead; exceptions wait in the places of elements."""
        trail = self._trail = self._trail or Trail(self.source)
        trail.go_on()
        wanted = len(self.ahead) + count
        while not self._ended and len(self.ahead) < wanted:
            if self.build.repeats_input:
                trail.step()
            try:
                chunk = trail.pull(wanted - len(self.ahead))
            except Exception as error:  # noqa: BLE001  # raised when its turn comes
                self.ahead.put(error)
            else:
                self._ended = chunk is None
                if chunk is not None:
                    self.ahead.put(chunk)

    def pull(self, n: int) -> Chunk | None:
        if self._trail is None:
            return self.source.pull(n)
        self._trail.go_on()
        if not self.ahead:
            self._trail = None  # from here on, the input is where this is
            return self.source.pull(n)
        given = 1  # an exception
        try:
            chunk = self.ahead.give(n)
            given = 0 if chunk is None else chunk.length
            return chunk
        finally:
            self.given += given

    def state_dict(self) -> State:
        trail = self._trail
        if trail is not None and self.build.repeats_input:
            return trail.place(self.given)
        behind = 0 if trail is None else max(0, trail.given - trail.read)
        return {**super().state_dict(), "behind": behind, "ahead": self.ahead.save()}

    def load_state_dict(self, state: State) -> None:
        self._trail = Trail(self.source)
        self._trail.load(state)
        self.given = self._trail.given
        self.ahead.load(state.get("ahead", []), lambda: self.node.element_spec)

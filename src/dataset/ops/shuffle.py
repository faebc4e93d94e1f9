"""shuffle(buffer_size, seed, reshuffle_each_iteration): a random order, within a buffer.

The order is that of the one-by-one algorithm: fill a buffer; give a random slot, and fill that slot with the next
element before the next draw; at the end give what is left in random order. It is run over whole chunks: a slot that is
drawn twice in one step yields the element that had just replaced it, which the step finds by looking for equal slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError, StateError
from dataset.ops.row_source import RowSource, on_numbers
from dataset.plan.cardinality import UNKNOWN_CARDINALITY, is_known
from dataset.plan.checks import require_bool, require_int, require_seed
from dataset.plan.deal import Deal
from dataset.plan.lazy import lazy_property
from dataset.plan.node import UnaryNode, holds_user_code
from dataset.runtime.chunk import Array, Chunk, Column, Remainder, object_column
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.pending import Pending
from dataset.runtime.rng import EpochCounter, Stream, resolve_seed
from dataset.runtime.state import load_chunk, save_chunk

_EVERYTHING = 2**62
_UINT16_SIZE = 2**16
_AHEAD_ELEMENTS = 256  # among so many, the fixed cost of a step is small
_AHEAD_BYTES = 256 * 1024
_FILL_STEP = 4096  # elements asked for at a time, where the buffer is larger than the input may be


@dataclass(frozen=True, eq=False)
class Shuffle(UnaryNode):
    """The elements in a random order, each at most ``buffer_size`` places before where it stood."""

    op: ClassVar[str] = "shuffle"
    buffer_size: int | None  # None becomes UNKNOWN_CARDINALITY
    seed: int | None = field(default=None, repr=False)
    reshuffle_each_iteration: bool | None = True
    counter: EpochCounter = field(default_factory=EpochCounter, kw_only=True, repr=False)
    key: int | None = field(default=None, kw_only=True, repr=False)
    """The 64-bit seed that the op's own and the global seed make; drawn when the node is made, and kept by rules."""

    def __post_init__(self) -> None:
        size = UNKNOWN_CARDINALITY if self.buffer_size is None else self.buffer_size
        size = require_int("shuffle", "buffer_size", size, minimum=1, allow=(UNKNOWN_CARDINALITY,))
        self._set("buffer_size", size)
        self._set("seed", require_seed("shuffle", self.seed))
        reshuffle = True if self.reshuffle_each_iteration is None else self.reshuffle_each_iteration
        self._set("reshuffle_each_iteration", require_bool("shuffle", "reshuffle_each_iteration", reshuffle))
        if self.key is None:
            self._set("key", resolve_seed(self.seed))

    @property
    def size(self) -> int:
        """How many elements the buffer may hold."""
        assert self.buffer_size is not None
        return _EVERYTHING if self.buffer_size == UNKNOWN_CARDINALITY else self.buffer_size

    @property
    def holds_all(self) -> bool:
        """Whether the input ends before the buffer is full, so that the order is one permutation of all elements."""
        count = self.source.cardinality()
        return self.size == _EVERYTHING or (is_known(count) and count < self.size)

    @property
    def is_repeatable(self) -> bool:
        """Whether the elements can be had again, unchanged, instead of being saved."""
        return self.holds_all and self.source.is_certain and self.source.random_access

    @property
    def separates(self) -> bool:
        return True

    def deal_below(self, deal: Deal) -> Deal | None:
        """Of elements that have to be read one by one, each process shuffles its own.

        Where they can be had in any order, all go by one order of the whole, and each process makes its own of them. So
        it is, too, where one may be absent: that would come out before those that are in the buffer.
        """
        is_cheap = self.source.random_access and (self.source.is_certain or isinstance(self.source, RowSource))
        return None if is_cheap or deal.in_order or deal.remainder == "pad" else deal

    @lazy_property
    def may_read_ahead(self) -> bool:
        """Whether nobody can see that the input is read ahead. Found once, however many epochs there are."""
        return not holds_user_code(self.source)

    def described(self) -> str:
        size = "all" if self.buffer_size == UNKNOWN_CARDINALITY else self.buffer_size
        return f"shuffle({size}{'' if self.seed is None else f', seed={self.seed}'})"

    def lower(self, build: Build) -> Operator:
        return on_numbers(build(self.source), partial(self.lower_over, build))

    def lower_over(self, build: Build, source: Operator) -> ShuffleOperator:
        """The operator of the next epoch, over an input that is open."""
        iteration, epoch = build.epochs.open(self.counter) if self.reshuffle_each_iteration else (0, 0)
        return ShuffleOperator(build, source, self, iteration, epoch)


class ShuffleOperator(UnaryOperator):
    """A buffer of columns, one slot of which is empty once the first element was given.

    There are three stages: filling the buffer; giving a slot and filling it again; and, once the input has ended,
    giving the rest in random order. What it reads ahead, where nobody can see that, waits shuffled.
    """

    def __init__(self, build: Build, source: Operator, node: Shuffle, iteration: int, epoch: int) -> None:
        super().__init__(source)
        self.build = build
        self.node = node
        self.size = node.size
        assert node.key is not None
        self.key = build.epochs.key(node.counter, node.key)
        self.iteration, self.epoch = iteration, epoch
        self.stream = Stream(self.key, iteration, epoch)
        self._filling: list[Chunk] = []
        self._buffer: _Buffer | None = None  # once full
        self._hole = 0  # the slot that was given last
        self._rest: Remainder | None = None  # once the input has ended: what is left, in its order
        self._passed_over = 0  # elements that were given before the state that was loaded
        self._ahead = Remainder()  # shuffled, and not asked for yet
        self._pending = Pending()  # an exception behind elements that came first
        self._step = 1  # elements to shuffle at once, at least
        self._account = build.ledger.account()  # it counts, and is never refused

    @property
    def input_ended(self) -> bool:
        """Whether all that is left to give is held."""
        return self._rest is not None

    def pull(self, n: int) -> Chunk | None:
        if self._pending:
            return self._pending.give(n)
        return self._pending.collect(self._give_ahead, n) if self._step > 1 else self._give_ahead(n)

    def _give_ahead(self, n: int) -> Chunk | None:
        if not self._ahead:
            self._ahead = Remainder(self._next(max(n, self._step)))
        return self._ahead.give(n)

    def _next(self, n: int) -> Chunk | None:
        if self._rest is None and self._buffer is None:
            self._fill()
        if self._buffer is not None:
            chunk = self._exchange(n)
            if chunk is not None:
                return chunk
        return self._give_rest(n)

    def _give_rest(self, n: int) -> Chunk | None:
        chunk = None if self._rest is None else self._rest.give(n)
        if not self._rest:
            self._account.release_all()
        return chunk

    def _fill(self) -> None:
        """Fill the buffer. An exception leaves what has been read; filling goes on from there."""
        have = sum(chunk.length for chunk in self._filling)
        while have < self.size:
            chunk = self.source.pull(min(self.size - have, max(_FILL_STEP, have)))
            if chunk is None:
                self._end(Chunk.concatenate(self._filling) if self._filling else None)
                return
            self._check_structure(chunk)
            self._filling.append(chunk)
            self._account.hold(chunk.nbytes)
            have += chunk.length
        self._start_giving(Chunk.concatenate(self._filling))
        self._filling = []
        self._hole = -1

    def _start_giving(self, full: Chunk) -> None:
        self._buffer = _Buffer(full)
        if self.node.may_read_ahead:
            self._step = max(1, min(_AHEAD_ELEMENTS, _AHEAD_BYTES * full.length // max(1, full.nbytes)))

    def _check_structure(self, chunk: Chunk) -> None:
        if self._filling and chunk.structure != self._filling[0].structure:
            raise SpecError(
                f"{self.node.located()}: all elements must have one structure, got "
                f"{self._filling[0].structure!r} and {chunk.structure!r}"
            )

    def _exchange(self, n: int) -> Chunk | None:
        """Give ``n`` elements for as many new ones. The first of all is given before anything replaces it."""
        assert self._buffer is not None
        if self._hole < 0:
            slots = self._draw(1)
            self._hole = int(slots[0])
            return self._buffer.get(slots)
        new = self.source.pull(n)
        if new is None:
            self._end(self._buffer.all_but(self._hole))
            self._buffer = None
            return None
        slots = self._draw(new.length)
        written = np.concatenate([[self._hole], slots])
        self._hole = int(slots[-1])
        given = self._buffer.exchange(new, written)
        if self._buffer.is_uneven:
            self._account.hold(new.nbytes - given.nbytes)
        return given

    def _draw(self, count: int) -> npt.NDArray[np.int64]:
        return (self.stream.random(count) * self.size).astype(np.int64)

    def _end(self, rest: Chunk | None) -> None:
        self._filling = []
        order = np.zeros(0, np.intp) if rest is None else self.stream.permutation(rest.length)
        order = order[self._passed_over :]
        self._rest = Remainder(rest.take(order) if rest is not None and len(order) else None)

    def state_dict(self) -> State:
        held = None if self._rest is None else self._rest.rest()
        if self.node.is_repeatable:
            left = 0 if held is None else held.length
            given = self._passed_over if self._rest is None else self.node.source.cardinality() - left
            return {"key": self.key, "iteration": self.iteration, "epoch": self.epoch, "given": given}
        if self._buffer is not None:
            held = self._buffer.everything()
        elif self._filling:
            held = Chunk.concatenate(self._filling)
        stage = "giving" if self._buffer is not None else "rest" if self._rest is not None else "filling"
        return {
            **super().state_dict(),
            "key": self.key,
            "iteration": self.iteration,
            "epoch": self.epoch,
            "drawn": self.stream.position,
            "stage": stage,
            "hole": self._hole,
            "held": save_chunk(held),
            "ahead": save_chunk(self._ahead.rest()),
            "pending": self._pending.save(),
        }

    def load_state_dict(self, state: State) -> None:
        self.key, self.iteration, self.epoch = int(state["key"]), int(state["iteration"]), int(state["epoch"])
        self.build.epochs.resume(self.node.counter, self.key, self.iteration, self.epoch)
        self.stream = Stream(self.key, self.iteration, self.epoch)
        if "given" in state:
            self._passed_over = int(state["given"])
            if not self.node.is_repeatable or not 0 <= self._passed_over <= self.node.source.cardinality():
                raise StateError(
                    f"shuffle: the saved state is behind {self._passed_over} elements, which the input has not"
                )
        else:
            self._load_held(state)

    def _load_held(self, state: State) -> None:
        super().load_state_dict(state)
        self.stream.seek(int(state["drawn"]))
        self._hole = int(state["hole"])
        held = load_chunk(state["held"], lambda: self.node.source.element_spec)
        self._account.hold(0 if held is None else held.nbytes)
        self._ahead = Remainder(load_chunk(state["ahead"], lambda: self.node.source.element_spec))
        self._pending.load(state["pending"], lambda: self.node.source.element_spec)
        stage = state["stage"]
        if stage == "giving" and held is not None and held.length == self.size and -1 <= self._hole < self.size:
            self._start_giving(held)
        elif stage == "rest":
            self._rest = Remainder(held)
        elif stage == "filling":
            self._filling = [] if held is None else [held]
        else:
            raise StateError(f"shuffle: the saved buffer does not fit a buffer of {self.size} elements")

    def close(self) -> None:
        self._account.close()
        super().close()


class _Buffer:
    """Elements by slot. Owns its arrays; a column of values without a common shape is an array of objects."""

    def __init__(self, elements: Chunk) -> None:
        self.structure = elements.structure
        self.length = elements.length
        self.are_lists = [isinstance(column, list) for column in elements.columns()]
        self.columns = [
            object_column(column) if isinstance(column, list) else column.copy() for column in elements.columns()
        ]

    @property
    def is_uneven(self) -> bool:
        """Whether elements may have different sizes."""
        return any(self.are_lists)

    def _chunk(self, columns: list[Array]) -> Chunk:
        given = [c.tolist() if listed else c for c, listed in zip(columns, self.are_lists, strict=True)]
        return Chunk(self.structure, len(columns[0]), given)

    def get(self, slots: npt.NDArray[np.int64]) -> Chunk:
        return self._chunk([column.take(slots, axis=0) for column in self.columns])

    def everything(self) -> Chunk:
        return self._chunk(self.columns)

    def all_but(self, slot: int) -> Chunk | None:
        if self.length == 1:
            return None
        others = np.arange(self.length - 1)
        others[slot:] += 1
        return self.get(others)

    def exchange(self, new: Chunk, written: npt.NDArray[np.int64]) -> Chunk:
        """Put ``new[i]`` into slot ``written[i]``, then read slot ``written[i + 1]``, for each i in turn."""
        if new.structure != self.structure:
            raise SpecError(f"shuffle: all elements must have one structure, got {self.structure!r}, {new.structure!r}")
        reads = written[1:]
        later, source = _rewritten(written, self.length)
        columns = []
        for index, column in enumerate(new.columns()):
            fresh = self._fitting(index, column)
            slots = self.columns[index]
            out = slots.take(reads, axis=0)
            out[later] = fresh.take(source, axis=0)
            slots[written[:-1]] = fresh  # of equal slots NumPy keeps the last, as the one-by-one algorithm does
            columns.append(out)
        return self._chunk(columns)

    def _fitting(self, index: int, column: Column) -> Array:
        """The new column as an array like the buffer's; both become arrays of objects where shapes differ."""
        mine = self.columns[index]
        if not self.are_lists[index]:
            if isinstance(column, np.ndarray) and column.dtype == mine.dtype and column.shape[1:] == mine.shape[1:]:
                return column
            self.columns[index] = object_column(mine)
            self.are_lists[index] = True
        return object_column(column)


def _rewritten(written: npt.NDArray[np.int64], size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Which reads see an element of this very step, and which element that is.

    Read ``i`` is of slot ``written[i + 1]``; it sees new element ``j`` where ``j <= i`` is the last with
    ``written[j] == written[i + 1]``: the entry before it among the equal ones.
    """
    # Of 16-bit numbers NumPy has a radix sort, four times as fast as comparing.
    small = written.astype(np.uint16) if size <= _UINT16_SIZE else written
    order = small.argsort(kind="stable")
    in_order = small[order]
    same = np.flatnonzero(in_order[1:] == in_order[:-1])
    return order[same + 1] - 1, order[same]

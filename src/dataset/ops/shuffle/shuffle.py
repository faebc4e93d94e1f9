"""shuffle(buffer_size, seed, reshuffle_each_iteration): a random order, within a buffer.

The order is that of the one-by-one algorithm: fill a buffer; give a random slot, and fill that slot with the next
element before the next draw; at the end give what is left in random order. It is run over whole chunks: a slot that is
drawn twice in one step yields the element that had just replaced it, which the step finds by looking for equal slots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError, StateError
from dataset.ops.row_source import RowSource, on_numbers
from dataset.ops.shuffle.buffer_checkpoint import BufferCheckpoint
from dataset.ops.shuffle.recompute import can_be_made_again, go_behind, made_again, made_again_behind
from dataset.ops.shuffle.shuffle_places import buffer_behind, draw
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import UNKNOWN_CARDINALITY, is_known
from dataset.plan.checks import require_bool, require_int, require_seed
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, holds_user_code
from dataset.runtime.chunks.chunk import Array, Chunk, Column, Remainder, object_column
from dataset.runtime.chunks.file_trace import FileTrace
from dataset.runtime.chunks.provenance import ELEMENT_BITS, NOWHERE, References, numbers_of
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.parallel.pending import Pending
from dataset.runtime.random.permutation import Permutation
from dataset.runtime.random.streams import Draws, EpochCounter, Stream, resolve_seed
from dataset.runtime.resources.exceptions import concerns_iteration

_EVERYTHING = 2**62
_UINT16_SIZE = 2**16
_AHEAD_ELEMENTS = 512  # among so many, the fixed cost of a step is small
_AHEAD_BYTES = 256 * 1024
_FILES_MIN = 64  # so many are not worth looking for those of which nothing is held
_FILL_STEP = 4096  # elements asked for at a time, where the buffer is larger than the input may be


@dataclass(frozen=True, eq=False)
class Shuffle(UnaryNode):
    """The elements in a random order, each at most ``buffer_size`` places before where it stood."""

    op: ClassVar[str] = "shuffle"
    moves_only: ClassVar[bool] = True
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
        """Whether the whole input fits into the buffer, so that the order is one of all elements."""
        count = self.source.cardinality()
        return self.size == _EVERYTHING or (is_known(count) and count <= self.size)

    @lazy_property
    def is_repeatable(self) -> bool:
        """Whether the elements can be made again, by their positions, instead of being saved."""
        return can_be_made_again(self.source) or self.shuffles_shuffled

    @lazy_property
    def shuffles_shuffled(self) -> bool:
        """Whether what comes in is certain but for its order, of which a state tells all."""
        below = _without_shuffles(self.source)
        return below is not self.source and below.is_certain and below.random_access

    @property
    def separates(self) -> bool:
        return True

    def deal_below(self, deal: BlockCyclicShard) -> BlockCyclicShard | None:
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

    def lower(self, build: ExecutionContext) -> Operator:
        elements = BufferCheckpoint(build, self.source)
        opened = build(self.source)
        return on_numbers(
            opened, lambda source: self.lower_over(build, elements, source, of_numbers=source is not opened)
        )

    def lower_over(
        self, build: ExecutionContext, elements: BufferCheckpoint, source: Operator, *, of_numbers: bool = False
    ) -> ShuffleOperator:
        """The operator of the next epoch, over an input that is open.

        Args:
            build: of the op.
            elements: saves those that it holds.
            source: the input.
            of_numbers: whether it gives the numbers of the elements instead of them.
        """
        draws = build.draws(self)
        if not self.reshuffle_each_iteration:
            draws = Draws(draws.key, 0, 0)
        by_position = source.picks or (not of_numbers and self.is_repeatable and build.repeats_input)
        if not (by_position or elements.may_refer):
            build.say_unrepeatable()  # its state is large
        is_certain = of_numbers or self.source.is_certain or self.shuffles_shuffled
        return ShuffleOperator(build, source, self, draws, elements, by_position=by_position, is_certain=is_certain)


def _without_shuffles(node: Node) -> Node:
    """The plan without the shuffles in it, and so without anything random, if nothing else is."""
    if isinstance(node, Shuffle):
        return _without_shuffles(node.source)
    inputs = [_without_shuffles(source) for source in node.inputs]
    changed = any(new is not old for new, old in zip(inputs, node.inputs, strict=True))
    return node.with_inputs(inputs) if changed else node


class ShuffleOperator(UnaryOperator):
    """A buffer of columns, one slot of which is empty once the first element was given.

    There are three stages: filling the buffer; giving a slot and filling it again; and, once the input has ended,
    giving the rest in random order. What it reads ahead, where nobody can see that, waits shuffled.

    Where elements can be made again by their positions, a state says no more than how many have been given: which of
    them are in the buffer then is a matter of arithmetic (ops/shuffle/shuffle_places.py). An element that fails has a
    position, but does not go into the buffer; behind one, a state holds the buffer.
    """

    def __init__(
        self,
        build: ExecutionContext,
        source: Operator,
        node: Shuffle,
        draws: Draws,
        elements: BufferCheckpoint,
        *,
        by_position: bool,
        is_certain: bool,
    ) -> None:
        super().__init__(source)
        self.build = build
        self.node = node
        self.elements = elements
        self.size = node.size
        self.count = node.source.cardinality()
        self.by_position = by_position
        self.is_certain = is_certain
        self.key, self.iteration, self.epoch = draws
        self.stream = Stream(*draws)
        self._origin = source.state_dict() if by_position and node.shuffles_shuffled else None  # of a shuffled input
        self._restored = 0  # elements given before the state that was loaded; 0 once the buffer is as it was there
        self._filling: list[Chunk] = []
        self._buffer: _Buffer | None = None  # once full
        self._hole = 0  # the slot that was given last
        self._rest: _Rest | None = None  # once the input has ended: what is left, in its order
        self._is_over = False  # the input, known before it was asked
        self._total = 0  # elements of all stages, once the input has ended
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

    def pass_over(self, n: int) -> int:
        """Before the first pull, by arithmetic."""
        if not (self.by_position and self.is_certain) or self._buffer is not None or self._rest is not None:
            return super().pass_over(n)
        passed = min(n, self.count - self._restored) if is_known(self.count) else n
        self._restored += passed
        return passed

    def _give_ahead(self, n: int) -> Chunk | None:
        if not self._ahead:
            self._ahead = Remainder(self._next(max(n, self._step)))
        return self._ahead.give(n)

    def _next(self, n: int) -> Chunk | None:
        if self._rest is None and self._buffer is None:
            self._begin()
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

    def _begin(self) -> None:
        """Be where it begins, or where a state was."""
        if self.by_position and self.source.picks and self.node.holds_all and is_known(self.count):
            self._order_all()
        elif self._restored:
            try:
                self._restore(self._restored)
            except Exception as error:
                self._rest = _Rest(None)  # it is over: another try would most likely fail, too, and so without an end
                if isinstance(error, StateError) or concerns_iteration(error):
                    raise
                raise StateError(f"{self.node.located()}: cannot go to the saved place: {error!r}") from error
            self._restored = 0
        else:
            self._fill()

    def _order_all(self) -> None:
        """Give all elements in the order of the whole, without a buffer. A full buffer gives one before the rest."""
        given, self._restored = self._restored, 0
        self._total = self.count
        if self.count < self.size:
            self._rest = _Rest(None, Permutation(self.stream, self.count), self.source.pick, given)
            return
        first = self._draw(1)
        order = Permutation(self.stream, self.count - 1)
        try:
            ready = None if given else self.source.pick(first)
        except BaseException:  # an interrupt: what comes first is drawn again
            self.stream.seek(0)
            self._restored = given
            raise
        self._rest = _Rest(
            ready,
            order,
            lambda slots: self.source.pick(slots + (slots >= first)),
            max(0, given - 1),
        )

    def _restore(self, given: int) -> None:
        """Have the buffer that there was behind ``given`` elements, and the input behind what was read for them."""
        count, size = self.count, self.size
        exchanged = max(0, count - size + 1) if is_known(count) else given  # before the input ends
        if given <= exchanged:
            positions, hole = buffer_behind(self.stream, given, size)
            positions[hole] = positions[hole - 1]  # that one has been given, and is made no more
            full = self._made_again(positions)
            self._go_behind(size + given - 1)
            self._start_giving(full)
            self._hole = hole
        else:
            positions = buffer_behind(self.stream, exchanged, size).rest() if exchanged else np.arange(count)
            order = Permutation(self.stream, len(positions)).from_on(given - exchanged)
            rest = self._made_again(positions[order]) if len(order) else None
            self._go_behind(count)
            self._rest = _Rest(rest)
            self._total = count

    def _go_behind(self, count: int) -> None:
        """Have the input behind so many elements. One that is shuffled knows its epochs then, also at its end."""
        self._is_over = count == self.count
        if self._origin is not None:
            go_behind(self.source, self._origin, count)
        elif not self._is_over:
            self.source.seek(count)

    def _made_again(self, positions: Array) -> Chunk:
        if self.source.picks:
            made = self.source.pick(positions)
            while made.length < len(positions):
                made = Chunk.concatenate([made, self.source.pick(positions[made.length :])])
        elif self._origin is not None:
            made = made_again_behind(self.build, self.node.source, self._origin, positions)
        else:
            made = made_again(self.build, self.node.source, positions)
        self._account.hold(made.nbytes)
        return made

    def _fill(self) -> None:
        """Fill the buffer. An exception leaves what has been read; filling goes on from there."""
        have = sum(chunk.length for chunk in self._filling)
        while have < self.size:
            chunk = self._read(min(self.size - have, max(_FILL_STEP, have)))
            if chunk is None:
                self._end(Chunk.concatenate(self._filling) if self._filling else None)
                return
            self._check_structure(chunk)
            self.elements.arrive(chunk)
            self._filling.append(chunk)
            self._account.hold(chunk.nbytes)
            have += chunk.length
        self._start_giving(Chunk.concatenate(self._filling))
        self._filling = []
        self._hole = -1

    def _read(self, n: int) -> Chunk | None:
        if self._is_over:
            return None
        try:
            return self.source.pull(n)
        except Exception:
            self.by_position = False  # for positions and elements go together no more
            raise

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
        new = self._read(n)
        if new is None:
            self._end(self._buffer.all_but(self._hole))
            self._buffer = None
            return None
        self.elements.arrive(new)
        slots = self._draw(new.length)
        written = np.concatenate([[self._hole], slots])
        self._hole = int(slots[-1])
        given = self._buffer.exchange(new, written)
        if self._buffer.is_uneven:
            self._account.hold(new.nbytes - given.nbytes)
        return given

    def _draw(self, count: int) -> npt.NDArray[np.int64]:
        return draw(self.stream, count, self.size)

    def _end(self, rest: Chunk | None) -> None:
        self._filling = []
        self._rest = _Rest(None)
        if rest is not None:
            self._rest = _Rest(None, Permutation(self.stream, rest.length), rest.take)
        self._total = self.stream.position + self._rest.left

    @property
    def _given(self) -> int:
        """How many elements have been given."""
        if self._restored:
            return self._restored
        if self._buffer is None and self._rest is None:
            return 0
        ahead = self._ahead.rest()
        waiting = len(self._pending) + (0 if ahead is None else ahead.length)
        made = self.stream.position if self._rest is None else self._total - self._rest.left
        return made - waiting

    def state_dict(self) -> State:
        place = {"op": Shuffle.op, "key": self.key, "iteration": self.iteration, "epoch": self.epoch}
        if self.by_position:
            origin = {} if self._origin is None else {"source": self._origin}
            return {**place, "given": self._given, **origin}
        held = None if self._rest is None else self._rest.rest()
        if self._buffer is not None:
            held = self._buffer.everything()
        elif self._filling:
            held = Chunk.concatenate(self._filling)
        stage = "giving" if self._buffer is not None else "rest" if self._rest is not None else "filling"
        return {
            **place,
            **super().state_dict(),
            "drawn": self.stream.position,
            "stage": stage,
            "hole": self._hole,
            "elements": self.elements.save([held, self._ahead.rest(), *self._pending.items()]),
        }

    def state_after(self, state: State, count: int) -> State | None:
        if not self.is_certain or "given" not in state:
            return None
        given = int(state["given"]) + count
        return None if is_known(self.count) and given > self.count else {**state, "given": given}

    def load_state_dict(self, state: State) -> None:
        self.key, self.iteration, self.epoch = int(state["key"]), int(state["iteration"]), int(state["epoch"])
        self.build.epochs.resume(self.node.counter, self.key, self.iteration)
        self.stream = Stream(self.key, self.iteration, self.epoch)
        if "given" in state:
            self._load_given(int(state["given"]))
            if self._origin is not None:
                self._origin = state["source"]
                if not self._restored:
                    self.source.load_state_dict(state["source"])
        else:
            self._load_held(state)

    def _load_given(self, given: int) -> None:
        if not self.by_position:
            raise StateError("shuffle: the saved state tells no elements, and here they cannot be made again")
        if not 0 <= given <= (self.count if is_known(self.count) else _EVERYTHING):
            raise StateError(f"shuffle: the saved state is behind {given} elements, which the input has not")
        self._restored = given

    def _load_held(self, state: State) -> None:
        super().load_state_dict(state)
        self.by_position = False
        self.stream.seek(int(state["drawn"]))
        self._hole = int(state["hole"])
        held, ahead = self._load_elements(state["elements"])
        self._account.hold(0 if held is None else held.nbytes)
        self._ahead = Remainder(ahead)
        stage = state["stage"]
        if stage == "giving" and held is not None and held.length == self.size and -1 <= self._hole < self.size:
            self._start_giving(held)
        elif stage == "rest":
            self._rest = _Rest(held)
        elif stage == "filling":
            self._filling = [] if held is None else [held]
        else:
            raise StateError(f"shuffle: the saved buffer does not fit a buffer of {self.size} elements")

    def _load_elements(self, data: State) -> tuple[Chunk | None, Chunk | None]:
        held, ahead, *pending = self.elements.load(data)
        self._pending.extend(item for item in pending if item is not None)
        if isinstance(held, BaseException) or isinstance(ahead, BaseException):
            raise StateError("shuffle: the saved buffer is an exception")
        return held, ahead

    def close(self) -> None:
        self._account.close()
        super().close()


class _Rest:
    """What is left once the input has ended: elements that are in order, then others in an order yet to be drawn.

    Args:
        ready: the first elements.
        order: of the others.
        take: those with these numbers, in this order, or the first few of them.
        taken: how many of the others are to be left out, from the first on.
    """

    def __init__(
        self,
        ready: Chunk | None,
        order: Permutation | None = None,
        take: Callable[[Array], Chunk] | None = None,
        taken: int = 0,
    ) -> None:
        self._ready = Remainder(ready)
        self._order = order
        self._take = take
        self._taken = taken
        self._step = 1
        self.left = (0 if ready is None else ready.length) + self._untaken

    @property
    def _untaken(self) -> int:
        return 0 if self._order is None else len(self._order) - self._taken

    def __bool__(self) -> bool:
        return self.left > 0

    def give(self, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements; None where nothing is left."""
        if not self._ready and self._untaken:
            assert self._order is not None
            assert self._take is not None
            stop = self._taken + min(self._untaken, max(n, self._step))
            chunk = self._take(self._order.run(self._taken, stop))
            self._taken += chunk.length
            self._step = min(_FILL_STEP, _AHEAD_BYTES * chunk.length // max(1, chunk.nbytes))
            self._ready = Remainder(chunk)
        given = self._ready.give(n)
        self.left -= 0 if given is None else given.length
        return given

    def rest(self) -> Chunk | None:
        """All that is left, of elements that are all taken at once."""
        ready = self._ready.rest()
        if not self._untaken:
            return ready
        assert self._order is not None
        assert self._take is not None
        behind = self._take(self._order.from_on(self._taken))
        return behind if ready is None else Chunk.concatenate([ready, behind])


class _Buffer:
    """Elements by slot. Owns its arrays; a column of values without a common shape is an array of objects.

    Where elements say where they can be read again, that is one more column behind the others, of numbers that stand
    for places in ``files``.
    """

    def __init__(self, elements: Chunk) -> None:
        self.structure = elements.structure
        self.length = elements.length
        self.are_lists = [isinstance(column, list) for column in elements.columns()]
        self.columns = [
            object_column(column) if isinstance(column, list) else column.copy() for column in elements.columns()
        ]
        self.files: dict[int, FileTrace] | None = None
        self._files_max = 0  # beyond, those are dropped of which nothing is held
        if elements.references is not None:
            self._refer()
            self.columns[-1][:] = elements.references.numbers
            self._add_files(elements.references.files)

    def _refer(self) -> None:
        """Have a place for each element, so far of none."""
        self.files = {}
        self.columns.append(np.full(self.length, NOWHERE, np.int64))
        self.are_lists.append(False)

    def _add_files(self, files: dict[int, FileTrace]) -> None:
        mine = {} if self.files is None else self.files
        mine.update(files)
        if len(mine) > self._files_max:
            held = np.unique(self.columns[-1] >> ELEMENT_BITS).tolist()
            kept = {number: mine[number] for number in held if number in mine}
            self._files_max = 2 * len(kept) + _FILES_MIN
            self.files = kept | files  # another dict: chunks that were given have the old one

    @property
    def is_uneven(self) -> bool:
        """Whether elements may have different sizes."""
        return any(self.are_lists)

    def _chunk(self, columns: list[Array]) -> Chunk:
        given = [c.tolist() if listed else c for c, listed in zip(columns, self.are_lists, strict=True)]
        references = None if self.files is None else References(given.pop(), self.files)
        chunk = Chunk(self.structure, len(columns[0]), given)
        chunk.references = references
        return chunk

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
        for index, column in enumerate(self._incoming(new)):
            fresh = self._fitting(index, column)
            slots = self.columns[index]
            out = slots.take(reads, axis=0)
            out[later] = fresh.take(source, axis=0)
            slots[written[:-1]] = fresh  # of equal slots NumPy keeps the last, as the one-by-one algorithm does
            columns.append(out)
        return self._chunk(columns)

    def _incoming(self, new: Chunk) -> Sequence[Column]:
        if self.files is None:
            if new.references is None:
                return new.columns()
            self._refer()
        if new.references is not None:
            self._add_files(new.references.files)
        return [*new.columns(), numbers_of(new.references, new.length)]

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

"""Node and operator of shuffle(buffer_size, seed, reshuffle_each_iteration): random order within a buffer.

The order is that of the one-by-one algorithm: fill a buffer; then repeatedly return the element of a random slot and
refill the slot with the next input element; at the end, return the rest in random order. The implementation processes
whole chunks. If a slot is drawn twice in one step, the second draw returns the element that refilled it, which the step
finds by searching for equal slots.

A shuffle of clumps, runs of consecutive elements, reads each of them at once. It is two nodes: one permutes the clumps
of the whole input, and an ordinary one shuffles their elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dataset.amounts import AHEAD_BYTES, AHEAD_ELEMENTS, ENDLESS
from dataset.errors import SpecError, StateError
from dataset.ops.shuffle.buffer_checkpoint import BufferCheckpoint
from dataset.ops.shuffle.recompute import can_be_made_again, go_behind, made_again, made_again_behind
from dataset.ops.shuffle.shuffle_places import buffer_behind, draw
from dataset.ops.sources.row_source import on_numbers
from dataset.ops.sources.select_positions import Gatherer, source_of
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, is_known
from dataset.plan.checks import require_bool, require_int
from dataset.plan.lazy import lazy_property
from dataset.plan.node import (
    Node,
    RowsNode,
    Sharding,
    UnaryNode,
    has_random_access,
    holds_user_code,
    is_exact,
    share_of,
)
from dataset.plan.packed import BytesColumn
from dataset.plan.random_state import RandomState
from dataset.plan.traits import Traits
from dataset.plan.values import object_column
from dataset.runtime.chunks.chunk import Array, Chunk, Column
from dataset.runtime.chunks.file_trace import FileTrace
from dataset.runtime.chunks.lineage import or_unknown
from dataset.runtime.chunks.provenance import ELEMENT_BITS, References, numbers_of
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, seek
from dataset.runtime.parallel.buffered_operator import BufferedUnaryOperator
from dataset.runtime.position import Position
from dataset.runtime.random.permutation import ClumpPermutation, Permutation
from dataset.runtime.random.streams import Draws, Stream, random_state
from dataset.runtime.resources.exceptions import concerns_iteration

_STEP_MAX = 512  # elements; amortizes the fixed cost of a step
_CLUMPS = 64  # in a buffer, by default: enough that neighbors in the output are rarely from one clump
_FILES_MIN = 64  # up to this many, unused files are not searched for
_SAMPLE = 256  # elements whose sizes are measured, of a buffer of elements that differ in size
_BLOCKS_MAX = 16 << 20  # bytes of elements that stay in the blocks they were read in, and of blocks that may be sparse
_BLOCKS_MIN = 1 << 20  # bytes of blocks, below which unused ones are not dropped


@dataclass(frozen=True, eq=False)
class Shuffle(UnaryNode, only_reorders=True, permutes=True, positional=True, separable=True):
    """Node that returns its input in random order; an element moves forward by less than ``buffer_size`` positions."""

    op: ClassVar[str] = "shuffle"
    buffer_size: int | None  # None becomes UNKNOWN_CARDINALITY
    seed: InitVar[int | None] = None
    reshuffle_each_iteration: bool | None = True
    clump: int = field(default=0, kw_only=True)
    """If not 0, runs of this many elements are permuted, and each keeps its order. The buffer size is then None."""

    random: RandomState = field(default=None, kw_only=True, repr=False)  # type: ignore[assignment]  # set below

    def __post_init__(self, seed: int | None) -> None:
        size = UNKNOWN_CARDINALITY if self.buffer_size is None else self.buffer_size
        size = require_int("shuffle", "buffer_size", size, minimum=1, allow=(UNKNOWN_CARDINALITY,))
        self._set("buffer_size", size)
        reshuffle = True if self.reshuffle_each_iteration is None else self.reshuffle_each_iteration
        self._set("reshuffle_each_iteration", require_bool("shuffle", "reshuffle_each_iteration", reshuffle))
        if self.random is None:  # else the node is a copy
            self._set("random", random_state("shuffle", seed))

    @property
    def size(self) -> int:
        """The maximum number of elements in the buffer."""
        assert self.buffer_size is not None
        return ENDLESS if self.buffer_size == UNKNOWN_CARDINALITY else self.buffer_size

    @property
    def holds_all(self) -> bool:
        """Whether the whole input fits into the buffer, so that the order is a permutation of all elements."""
        count = self.source.cardinality()
        return self.size == ENDLESS or (is_known(count) and count <= self.size)

    @lazy_property
    def traits(self) -> Traits:
        stable = not self.reshuffle_each_iteration or self.buffer_size == 1
        return super().traits.having(stable=stable, positional=not self.reads_clumps)

    @lazy_property
    def reads_clumps(self) -> bool:
        """Whether the input is in an order of clumps. On row numbers, the rows would then be read one by one."""
        node = self.source
        while isinstance(node, UnaryNode) and (node.traits.gathers or share_of(node) is not None):
            node = node.source
        return isinstance(node, Shuffle) and node.clump > 0

    @lazy_property
    def is_repeatable(self) -> bool:
        """Whether the elements can be recomputed by position instead of being saved."""
        return can_be_made_again(self.source) or self.shuffles_shuffled

    @lazy_property
    def shuffles_shuffled(self) -> bool:
        """Whether the input is exact except for its order, which its state determines."""
        source = self.source
        if source.traits.gathers and source.traits.infallible:
            source = source.inputs[0]  # rows that cannot fail are as deterministic as their numbers
        below = _without_shuffles(source)
        return below is not source and is_exact(below) and has_random_access(below)

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self | None:
        """Let each process shuffle its own share, if elements must be read sequentially.

        With random access, all processes use one global order, and each computes only its own elements. The same
        applies if an element may be absent: its exception would overtake the elements in the buffer.

        Processes that read clumps read those of one part of their order each.
        """
        is_cheap = has_random_access(self.source) and (is_exact(self.source) or self.source.traits.indexable)
        if is_cheap or shard.in_order or shard.remainder == "pad":
            return None
        if self.reads_clumps and shard.gives_all:
            shard = shard.one_turn_each(self.cardinality())
        return self.with_inputs([below(self.source, shard)])

    @lazy_property
    def may_read_ahead(self) -> bool:
        """Whether reading the input ahead is unobservable. Computed once for all epochs."""
        return not holds_user_code(self.source)

    def simplified(self) -> Node | None:
        """Return the input for a buffer of one element: the order stays, and no other op observes the epochs."""
        return self.source if self.buffer_size == 1 else None

    def parameters(self) -> dict[str, Any]:
        found = super().parameters()
        return found if self.clump else {key: value for key, value in found.items() if key != "clump"}

    def label(self) -> str:
        size = "all" if self.buffer_size == UNKNOWN_CARDINALITY else self.buffer_size
        size = f"clumps of {self.clump}" if self.clump else size
        return f"shuffle({size}{'' if self.random.seed is None else f', seed={self.random.seed}'})"

    def lower(self, context: ExecutionContext) -> Operator:
        if self.size == ENDLESS and self.source.cardinality() == INFINITE_CARDINALITY:
            raise ValueError(
                f"{self}: the input is infinite, so a buffer of all elements never fills; write shuffle() before "
                "repeat(), or pass a buffer_size"
            )
        elements = BufferCheckpoint(context, self.source)
        opened = context(self.source)
        if self.reads_clumps:
            return self.lower_over(context, elements, opened)
        return on_numbers(
            opened, lambda source: self.lower_over(context, elements, source, of_numbers=source is not opened)
        )

    def lower_over(
        self, context: ExecutionContext, elements: BufferCheckpoint, source: Operator, *, of_numbers: bool = False
    ) -> ShuffleOperator:
        """Return the operator of the next epoch over an open input.

        Args:
            context: the execution context of the op.
            elements: saves the elements in the buffer.
            source: the input.
            of_numbers: whether the input yields row numbers instead of elements.
        """
        draws = context.draws(self.random)
        if not self.reshuffle_each_iteration:
            draws = Draws(draws.key, 0, 0)
        gather = Gatherer.of(self.source, context, of_numbers=of_numbers)
        is_repeatable = not of_numbers and self.is_repeatable and context.input_is_replayable
        by_position = gather is not None or is_repeatable
        if not (by_position or elements.may_refer):
            context.mark_not_replayable(repeats=True)  # its state is large
        exact = of_numbers or is_exact(self.source) or self.shuffles_shuffled
        return ShuffleOperator(context, source, self, draws, elements, gather, by_position=by_position, is_exact=exact)


def clump_shuffle(
    source: Node,
    buffer_size: Any,
    seed: int | None,
    reshuffle: bool | None,
    clump: Any,
    name: str | None = None,
) -> Shuffle:
    """Return a shuffle of ``source`` that reads runs of ``clump`` elements in random order.

    Raises:
        TypeError: ``clump`` is not an int.
        ValueError: ``clump`` is less than 1, the buffer has no size, or elements cannot be selected by position.
    """
    if buffer_size is None or buffer_size == UNKNOWN_CARDINALITY:
        raise ValueError(
            "shuffle(): clump requires a buffer_size, because a buffer of all elements would read all of them before "
            "the first is returned; pass a buffer_size of many clumps, or omit clump"
        )
    size = require_int("shuffle", "buffer_size", buffer_size, minimum=1)
    if isinstance(clump, str):
        if clump != "auto":
            raise ValueError(f'shuffle(): clump must be a number of elements or "auto", got {clump!r}')
        clump = max(1, size // _CLUMPS)
    clump = require_int("shuffle", "clump", clump, minimum=1)
    if not is_known(source.cardinality()) or not _is_by_position(source):
        raise ValueError(
            f"shuffle(): clump requires an input of known length whose elements can be read by position, but {source} "
            "is not; use a source with random access, such as TFRecordDataset(files, index=True) or "
            "from_tensor_slices(), and call shuffle() before map(), batch() and repeat(); or omit clump"
        )
    if clump > 1:
        source = Shuffle(source, None, seed, reshuffle, clump=clump)
    return Shuffle(source, size, seed, reshuffle, name=name)


def _is_by_position(node: Node) -> bool:
    """Return whether the elements are those of a source with random access, at known positions."""
    found = source_of(node, np.zeros(1, np.int64))
    return found is not None and (found[0].traits.gatherable or isinstance(found[0], RowsNode))


def _without_shuffles(node: Node) -> Node:
    """Return the plan without its shuffles, which is deterministic unless other nodes are random."""
    if isinstance(node, Shuffle):
        return _without_shuffles(node.source)
    inputs = [_without_shuffles(source) for source in node.inputs]
    changed = any(new is not old for new, old in zip(inputs, node.inputs, strict=True))
    return node.with_inputs(inputs) if changed else node


class ShuffleOperator(BufferedUnaryOperator):
    """Operator with a buffer of columns; after the first returned element, one slot of it is empty.

    There are three stages: fill the buffer; return and refill slots; and, after the input has ended, return the rest in
    random order. Elements that are read ahead, if that is unobservable, are buffered in shuffled order.

    If elements can be recomputed by position, a state only holds the number of returned elements, from which the buffer
    contents can be computed (ops/shuffle/shuffle_places.py). A failed element has a position but does not enter the
    buffer; after a failure, a state holds the buffer.
    """

    node: Shuffle

    def __init__(
        self,
        context: ExecutionContext,
        source: Operator,
        node: Shuffle,
        draws: Draws,
        elements: BufferCheckpoint,
        gather: Gatherer | None,
        *,
        by_position: bool,
        is_exact: bool,
    ) -> None:
        super().__init__(source, node)
        self.context = context
        self.elements = elements
        self._gather = gather
        self.size = node.size
        self.count = node.source.cardinality()
        self.by_position = by_position
        self.is_exact = is_exact
        self.key, self.iteration, self.epoch = draws
        self.stream = Stream(*draws)
        self._origin = source.save() if by_position and node.shuffles_shuffled else None  # of the input
        self._restored = 0  # elements returned before the loaded state; 0 after restoring the buffer
        self._filling: list[Chunk] = []
        self._buffer: _Buffer | None = None  # after filling
        self._hole = 0  # the slot that was returned last
        self._rest: _Rest | None = None  # after the input has ended: the rest, in output order
        self._is_over = False  # whether the input is known to have ended, without pulling
        self._total = 0  # elements of all stages, after the input has ended
        self._step = 1  # minimum elements to shuffle at once
        self._request = 1  # the largest number of elements that was requested
        self._account = context.iteration.limits.ledger.account()  # only counts memory; never refused
        self._nbytes = 0  # accounted for the buffer
        self._unmeasured = 0  # elements exchanged since the buffer was measured

    def produce(self, n: int) -> Chunk | None:
        chunk = None
        if self._rest is None and self._buffer is None:
            self._begin()
        # A whole number of requests is left in the outbox, so that no batch is joined from two chunks.
        self._request = max(n, self._request)
        more = max(0, self._step - n)
        buffer = self._buffer
        if buffer is not None and self._hole < 0:  # the very first element is returned before its slot is refilled
            slots = draw(self.stream, 1, self.size)
            self._hole = int(slots[0])
            chunk = buffer.get(slots)
        elif buffer is not None:
            try:
                new = None if self._is_over else self.source.pull(n + more // self._request * self._request)
            except Exception:
                self.by_position = False  # elements no longer correspond to positions
                raise
            chunk = self._exchange(buffer, new)
        if self._rest is not None and chunk is None and not self.outbox.items:
            chunk = self._rest.give(n, self._request)
            if not self._rest.left:
                self._account.release_all()
        if chunk is not None:
            if chunk.length <= n:
                return chunk
            self.outbox.put(chunk)
        return self.outbox.give(n)

    def skip(self, n: int) -> int:
        """Skip by arithmetic before the first pull."""
        if not (self.by_position and self.is_exact) or self._buffer is not None or self._rest is not None:
            return super().skip(n)
        passed = min(n, self.count - self._restored) if is_known(self.count) else n
        self._restored += passed
        return passed

    def _begin(self) -> None:
        """Start at the beginning or at the loaded state."""
        if self.by_position and self._gather is not None and self.node.holds_all and is_known(self.count):
            self._order_all(self._gather)
        elif self._restored:
            try:
                self._restore(self._restored)
            except Exception as error:
                self._rest = _Rest()  # end here: retrying would likely fail again, endlessly
                if isinstance(error, StateError) or concerns_iteration(error):
                    raise
                raise StateError(f"{self.node}: cannot resume from the saved state: {error!r}") from error
            self._restored = 0
        else:
            self._fill()

    def _order_all(self, gather: Gatherer) -> None:
        """Permute all elements without a buffer. If they fill the buffer exactly, one element precedes the rest."""
        given, self._restored = self._restored, 0
        self._total = self.count
        if self.count < self.size:
            self._rest = _Rest(self._order(self.count), gather, given)
            return
        first = draw(self.stream, 1, self.size)
        order = Permutation(self.stream, self.count - 1)
        try:
            if not given:
                self.outbox.put(gather(first))
        except BaseException:  # an interrupt: the first slot will be drawn again
            self.stream.seek(0)
            self._restored = given
            raise
        self._rest = _Rest(order, lambda slots: gather(slots + (slots >= first)), max(0, given - 1))

    def _order(self, count: int) -> Permutation:
        """Return the order of the last ``count`` elements, all if they fit into the buffer."""
        clump = self.node.clump
        if not clump:
            return Permutation(self.stream, count)
        # A stream of its own: a shuffle of these clumps usually has the same seed.
        return ClumpPermutation(Stream(self.key, self.iteration, self.epoch, clump), count, clump)

    def _restore(self, given: int) -> None:
        """Restore the buffer after ``given`` elements, and position the input after the elements read for them."""
        count, size = self.count, self.size
        exchanged = max(0, count - size + 1) if is_known(count) else given  # elements returned before the input ends
        if given <= exchanged:
            positions, hole = buffer_behind(self.stream, given, size)
            positions[hole] = positions[hole - 1]  # already returned, so not recomputed
            full = self._made_again(positions)
            self._go_behind(size + given - 1)
            self._start_giving(full)
            self._hole = hole
        else:
            positions = buffer_behind(self.stream, exchanged, size).rest() if exchanged else np.arange(count)
            order = self._order(len(positions)).from_on(given - exchanged)
            if len(order):
                self.outbox.put(self._made_again(positions[order]))
            self._go_behind(count)
            self._rest = _Rest()
            self._total = count

    def _go_behind(self, count: int) -> None:
        """Position the input after ``count`` elements. This also restores the epochs of a shuffled input."""
        self._is_over = count == self.count
        if self._origin is not None:
            go_behind(self.source, self._origin, count)
        elif not self._is_over:
            seek(self.source, count)

    def _made_again(self, positions: Array) -> Chunk:
        if self._gather is not None:
            made = self._gather(positions)
            while made.length < len(positions):
                made = Chunk.concatenate([made, self._gather(positions[made.length :])])
        elif self._origin is not None:
            made = made_again_behind(self.context, self.node.source, self._origin, positions)
        else:
            made = made_again(self.context, self.node.source, positions)
        self._hold(self._nbytes + made.nbytes)
        return made

    def _fill(self) -> None:
        """Fill the buffer. After an exception, filling continues with the elements read so far."""
        have = sum(chunk.length for chunk in self._filling)
        while have < self.size:
            chunk = self._read(min(self.size - have, max(AHEAD_ELEMENTS, have)))
            if chunk is None:
                self._end(Chunk.concatenate(self._filling) if self._filling else None)
                return
            self._check_structure(chunk)
            self.elements.arrive(chunk)
            self._filling.append(chunk)
            self._hold(self._nbytes + chunk.nbytes)
            if self._nbytes > _BLOCKS_MAX:
                self._filling = [part.unpacked() if part.is_packed else part for part in self._filling]
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
            self.by_position = False  # elements no longer correspond to positions
            raise

    def _start_giving(self, full: Chunk) -> None:
        self._buffer = _Buffer(full)
        if self.node.may_read_ahead:
            self._step = max(1, min(_STEP_MAX, AHEAD_BYTES * full.length // max(1, full.nbytes)))

    def _check_structure(self, chunk: Chunk) -> None:
        if self._filling and chunk.structure != self._filling[0].structure:
            raise SpecError(
                f"{self.node}: all elements must have the same structure, got "
                f"{self._filling[0].structure!r} and {chunk.structure!r}"
            )

    def _exchange(self, buffer: _Buffer, new: Chunk | None) -> Chunk | None:
        """Exchange elements for new ones; without any, end."""
        if new is None:
            self._end(buffer.all_but(self._hole))
            self._buffer = None
            return None
        self.elements.arrive(new)
        slots = draw(self.stream, new.length, self.size)
        written = np.concatenate([[self._hole], slots])
        self._hole = int(slots[-1])
        given = buffer.exchange(new, written)
        if buffer.is_uneven:
            self._unmeasured += new.length
            if self._unmeasured >= self.size:
                self._unmeasured = 0
                self._hold(buffer.estimated_nbytes())
        return given

    def _hold(self, nbytes: int) -> None:
        """Account ``nbytes`` for the buffer, instead of its former size."""
        self._account.hold(nbytes - self._nbytes)
        self._nbytes = nbytes

    def _end(self, rest: Chunk | None) -> None:
        self._filling = []
        self._rest = _Rest() if rest is None else _Rest(self._order(rest.length), rest.take)
        self._total = self.stream.position + self._rest.left

    @property
    def _given(self) -> int:
        """The number of returned elements."""
        if self._restored:
            return self._restored
        if self._buffer is None and self._rest is None:
            return 0
        made = self.stream.position if self._rest is None else self._total - self._rest.left
        return made - len(self.outbox)

    def save(self) -> Position:
        own: dict[str, Any] = {"key": self.key, "iteration": self.iteration, "epoch": self.epoch}
        if self.by_position:
            return Position(self.op, self._given, () if self._origin is None else (self._origin,), own=own)
        held = None if self._rest is None else self._rest.rest()
        if self._buffer is not None:
            held = self._buffer.everything()
        elif self._filling:
            held = Chunk.concatenate(self._filling)
        stage = "giving" if self._buffer is not None else "rest" if self._rest is not None else "filling"
        own |= {"drawn": self.stream.position, "stage": stage, "hole": self._hole}
        elements = self.elements.save([held, *self.outbox.outcomes()])
        return Position(self.op, inputs=(self.source.save(),), held={"elements": elements}, own=own)

    def advance(self, position: Position, count: int) -> Position | None:
        if not self.is_exact or position.held:
            return None
        return None if is_known(self.count) and position.at + count > self.count else position.after(count)

    def load(self, position: Position) -> None:
        self.key, self.iteration, self.epoch = map(position.count, ("key", "iteration", "epoch"))
        self.context.iteration.epochs.resume(self.node.random, self.key, self.iteration)
        self.stream = Stream(self.key, self.iteration, self.epoch)
        if position.held:
            self._load_held(position)
            return
        self._load_given(position.at)
        if self._origin is not None:
            self._origin = position.source
            if not self._restored:
                self.source.load(position.source)

    def _load_given(self, given: int) -> None:
        if not self.by_position:
            raise StateError("shuffle: the saved state holds no elements, and this input cannot recompute them")
        if not 0 <= given <= (self.count if is_known(self.count) else ENDLESS):
            raise StateError(f"shuffle: the saved state is at element {given}, which is out of range for the input")
        self._restored = given

    def _load_held(self, position: Position) -> None:
        self.source.load(position.source)
        self.by_position = False
        self.stream.seek(position.count("drawn"))
        self._hole = position.like("hole", -1)
        held = self._load_elements(position.held["elements"])
        self._hold(0 if held is None else held.nbytes)
        stage = position.own["stage"]
        if stage == "giving" and held is not None and held.length == self.size and -1 <= self._hole < self.size:
            self._start_giving(held)
        elif stage == "rest":
            self._rest = _Rest()
            if held is not None:
                self.outbox.put(held)
        elif stage == "filling":
            self._filling = [] if held is None else [held]
        else:
            raise StateError(f"shuffle: the saved buffer does not fit a buffer of {self.size} elements")

    def _load_elements(self, data: Any) -> Chunk | None:
        """Load the elements of the outbox, and return those of the buffer."""
        held, *ahead = self.elements.load(data)
        self.outbox.extend(item for item in ahead if item is not None)
        if isinstance(held, BaseException):
            raise StateError("shuffle: the saved buffer is an exception, not elements")
        return held

    def close(self) -> None:
        self._account.close()
        if self._gather is not None:
            self._gather.close()
        super().close()


class _Rest:
    """Remaining elements after the input has ended, in an order that is drawn as they are taken.

    Args:
        order: the order; None if nothing remains.
        take: returns the elements with given numbers, in this order, or the first few of them.
        taken: how many of them to skip, from the first on.
    """

    def __init__(
        self, order: Permutation | None = None, take: Callable[[Array], Chunk] | None = None, taken: int = 0
    ) -> None:
        self._order = order
        self._take = take
        self._taken = taken
        self._step = 1

    @property
    def left(self) -> int:
        """The number of elements that were not taken yet."""
        return 0 if self._order is None else len(self._order) - self._taken

    def give(self, n: int, more: int) -> Chunk | None:
        """Return the next elements; None if none is left.

        Args:
            n: how many elements.
            more: how many more may be returned, or a multiple of it, if taking them together costs less.
        """
        if not self.left or self._order is None or self._take is None:
            return None
        stop = self._taken + min(self.left, n + max(0, self._step - n) // more * more)
        chunk = self._take(self._order.run(self._taken, stop))
        self._taken += chunk.length
        self._step = min(AHEAD_ELEMENTS, AHEAD_BYTES * chunk.length // max(1, chunk.nbytes))
        return chunk

    def rest(self) -> Chunk | None:
        """Return all remaining elements. Requires a ``take`` that takes all elements at once."""
        if not self.left or self._order is None or self._take is None:
            return None
        return self._take(self._order.from_on(self._taken))


class _Buffer:
    """Buffer of elements by slot. It owns its arrays; a column of values without a common shape is an object array.

    For a BytesColumn, the array holds the places, and ``blocks`` the blocks, by the index of the column. If elements
    have lineage, it is an additional column. If they have references to where they can be read again, these are an
    additional last column of numbers that refer to positions in ``files``.
    """

    def __init__(self, elements: Chunk) -> None:
        self.structure = elements.structure
        self.length = elements.length
        self.is_traced = elements.lineage is not None
        self.files: dict[int, FileTrace] | None = None if elements.references is None else {}
        columns = self._all_columns(elements)
        self.are_lists = [isinstance(column, list) for column in columns]
        self.blocks = {index: column.blocks for index, column in enumerate(columns) if isinstance(column, BytesColumn)}
        self._blocks_max = dict.fromkeys(self.blocks, _BLOCKS_MIN)  # bytes, above which unused ones are dropped
        self.columns = list(map(_slots, columns))
        self._files_max = 0  # above this, files without held elements are dropped
        if elements.references is not None:
            self._add_files(elements.references.files)

    def _all_columns(self, chunk: Chunk) -> list[Any]:
        """Return the columns of a chunk, with a hidden one where the buffer has it."""
        columns = list(chunk.columns())
        if self.is_traced:
            columns.append(or_unknown(chunk.lineage, chunk.length))
        if self.files is not None:
            columns.append(numbers_of(chunk.references, chunk.length))
        return columns

    def _insert(self, at: int, column: Any) -> None:
        """Add a hidden column, which the elements so far do not have."""
        self.columns.insert(at, column)
        self.are_lists.insert(at, False)

    def _add_files(self, files: dict[int, FileTrace]) -> None:
        mine = {} if self.files is None else self.files
        mine.update(files)
        if len(mine) > self._files_max:
            held = np.unique(self.columns[-1] >> ELEMENT_BITS).tolist()
            kept = {number: mine[number] for number in held if number in mine}
            self._files_max = 2 * len(kept) + _FILES_MIN
            self.files = kept | files  # a new dict: returned chunks share the old one

    @property
    def is_uneven(self) -> bool:
        """Whether elements may differ in size."""
        return any(self.are_lists) or bool(self.blocks)

    def estimated_nbytes(self) -> int:
        """The size in bytes, from a sample of the elements."""
        sample = self._chunk([column[:: max(1, self.length // _SAMPLE)] for column in self.columns])
        in_blocks = sum(len(block) for blocks in self.blocks.values() for block in blocks.values())
        return max(in_blocks, sample.nbytes * self.length // sample.length)

    def _chunk(self, columns: list[Array]) -> Chunk:
        given = [c.tolist() if listed else c for c, listed in zip(columns, self.are_lists, strict=True)]
        for index, blocks in self.blocks.items():
            given[index] = BytesColumn(given[index], blocks)
        length = len(columns[0])
        references = None if self.files is None else References(given.pop(), self.files)
        lineage = given.pop() if self.is_traced else None
        return Chunk(self.structure, length, given, lineage=lineage, references=references)

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
            slots[written[:-1]] = fresh  # NumPy keeps the last value, like the one-by-one algorithm
            columns.append(out)
        return self._chunk(columns)

    def _incoming(self, new: Chunk) -> list[Any]:
        """Return the columns of new elements. The buffer also has the hidden columns that they have."""
        if new.lineage is not None and not self.is_traced:
            self.is_traced = True  # the elements so far come from a state without lineage
            self._insert(self.structure.num_components, or_unknown(None, self.length))
        if new.references is not None:
            if self.files is None:
                self.files = {}
                self._insert(len(self.columns), numbers_of(None, self.length))
            self._add_files(new.references.files)
        return self._all_columns(new)

    def _fitting(self, index: int, column: Column) -> Array:
        """Return the new column as an array like the buffer's; both become object arrays if the shapes differ."""
        mine = self.columns[index]
        if index in self.blocks:
            if BytesColumn.takes(column):
                packed = BytesColumn.of(column)
                self._add_blocks(index, packed.blocks)
                return packed.places
            mine = object_column(BytesColumn(mine, self.blocks.pop(index)))
        if not self.are_lists[index]:
            if isinstance(column, np.ndarray) and column.dtype == mine.dtype and column.shape[1:] == mine.shape[1:]:
                return column
            self.columns[index] = object_column(mine)
            self.are_lists[index] = True
        return object_column(column)

    def _add_blocks(self, index: int, blocks: dict[int, bytes]) -> None:
        """Add blocks to those of a column; first drop those without an element if they have become many."""
        mine = BytesColumn(self.columns[index], self.blocks[index])
        if mine.block_bytes > self._blocks_max[index]:
            mine = mine.without_unused(_BLOCKS_MAX)
            self.columns[index] = mine.places
            self._blocks_max[index] = max(_BLOCKS_MIN, mine.block_bytes + mine.nbytes)
        self.blocks[index] = mine.blocks | blocks  # a new dict: returned chunks share the old one


def _slots(column: Column) -> Array:
    """Return an array with an item for each value of a column, which may be overwritten."""
    if isinstance(column, BytesColumn):
        return column.places.copy()
    return object_column(column) if isinstance(column, list) else column.copy()


def _rewritten(written: npt.NDArray[np.int64], size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return which reads see an element of the same step, and which element each sees.

    Read ``i`` reads slot ``written[i + 1]``. It sees new element ``j``, where ``j <= i`` is the last index with
    ``written[j] == written[i + 1]``: the previous equal entry.
    """
    # NumPy has a radix sort for 16-bit integers, four times as fast as a comparison sort.
    small = written.astype(np.uint16) if size <= np.iinfo(np.uint16).max else written
    order = small.argsort(kind="stable")
    in_order = small[order]
    (same,) = (in_order[1:] == in_order[:-1]).nonzero()
    return order[same + 1] - 1, order[same]

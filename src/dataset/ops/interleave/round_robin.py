"""Round-robin cycle of an interleave: its places, the current turn, and whole rounds that are reordered at once.

Both operators of interleave use it. As in tf.data, each dataset yields a block in turn, and the place of a finished
dataset stays empty until its next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dataset.errors import StateError
from dataset.ops.interleave.subdatasets import Subdataset
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk, Column, Remainder, concatenate_columns, take_column
from dataset.runtime.position import Position


class Occupant(Protocol):
    """What has a place in the cycle: an open dataset, and how it is read."""

    inner: Subdataset


P = TypeVar("P", bound=Occupant)


class RoundRobin(Generic[P]):
    """Cycle of places for open datasets; one place has the turn."""

    def __init__(self, length: int, block_length: int) -> None:
        self.places: list[P | None] = [None] * length
        self.rounds: Rounds | None = None  # being returned; no dataset leaves its place meanwhile
        self.block_length = block_length
        self.turn = 0  # the current place
        self.given = 0  # elements returned of its block
        self.filled = 0  # number of occupied places

    @property
    def current(self) -> P | None:
        """The occupant of the current place."""
        return self.places[self.turn]

    @property
    def left(self) -> int:
        """Remaining elements of the current block."""
        return self.block_length - self.given

    def places_in_turn(self) -> list[int]:
        """Return the indices of all places, starting with the current one."""
        return [*range(self.turn, len(self.places)), *range(self.turn)]

    def empty_places(self) -> list[int]:
        """Return the empty places in turn order, which is also the order in which they became empty."""
        return [place for place in self.places_in_turn() if self.places[place] is None]

    def fill(self, place: int, occupant: P) -> None:
        """Put an occupant at an empty place."""
        self.places[place] = occupant
        self.filled += 1

    def empty(self) -> None:
        """Empty the current place and move to the next one."""
        self.places[self.turn] = None
        self.filled -= 1
        self.pass_on()

    def pass_on(self) -> None:
        """Move to the next place."""
        self.turn = (self.turn + 1) % len(self.places)
        self.given = 0

    def advance(self, count: int) -> None:
        """Count ``count`` more elements of the block as returned."""
        self.given += count
        if self.given == self.block_length:
            self.pass_on()

    def give_rounds(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements of the rounds; None if there are no rounds."""
        if self.rounds is None:
            return None
        chunk = self.rounds.give(n)
        if self.rounds.all_given:
            self.end_rounds()
        return chunk

    def end_rounds(self) -> list[Chunk]:
        """Return the remaining elements of the rounds, and count all of them as returned."""
        rounds, self.rounds = self.rounds, None
        if rounds is None:
            return []
        for place in rounds.places:
            occupant = self.places[place]
            assert occupant is not None  # no dataset leaves its place while rounds are returned
            occupant.inner.given += rounds.length_of_each
        return rounds.rest()

    @property
    def held(self) -> int:
        """How many elements may be taken from the rounds without ending them, if they are held in the form of lists."""
        return 0 if self.rounds is None else self.rounds.held

    def save(
        self, save: Callable[[P, int], Position | None], before: int = 0
    ) -> tuple[list[Position | None], dict[str, int]]:
        """Return the cycle as plain data.

        Args:
            save: returns the state of an occupant, given how many of its elements in ``rounds`` were returned.
            before: how many of the last elements, which were ``held``, count as not returned.
        """
        turn, given, taken = (self.turn, self.given, {}) if self.rounds is None else self.rounds.standing(before)
        slots = [
            None if occupant is None else save(occupant, taken.get(place, 0))
            for place, occupant in enumerate(self.places)
        ]
        return slots, {"turn": turn, "given": given}

    def load(self, slots: Sequence[Position | None], own: Position, load: Callable[[Position], P]) -> None:
        """Restore what ``save`` saved, with its number of places.

        Raises:
            StateError: if it has no place that has the turn, or has finished its block.
        """
        self.turn, self.given = own.count("turn"), own.count("given")
        if self.turn >= len(slots) or self.given >= self.block_length:
            reached = f"place {self.turn} of {len(slots)}, element {self.given} of {self.block_length}"
            raise StateError(f"the state is damaged: {own.op!r:.40} is at {reached}")
        self.places = [None if saved is None else load(saved) for saved in slots]
        self.filled = len(self.places) - self.places.count(None)


def join_rounds(waiting: list[Chunk], block_length: int) -> Chunk:
    """Join chunks with equally many blocks in round-robin order: all first blocks, then all second blocks, etc."""
    first = waiting[0]
    if len(waiting) == 1:
        return first
    if any(chunk.holds_rows or chunk.references is not None or chunk.lineage is not None for chunk in waiting):
        rounds = first.length // block_length
        return Chunk.concatenate(waiting).take(_round_order(len(waiting), rounds, block_length))
    columns = zip(*(chunk.columns() for chunk in waiting), strict=True)
    joined = [_join_columns(parts, block_length) for parts in columns]
    return Chunk(first.structure, len(waiting) * first.length, joined)


def _join_columns(parts: tuple[Column, ...], block: int) -> Column:
    """Join columns in the same order. Slices with a step move values several times faster than indices."""
    count, length = len(parts), len(parts[0])
    lists = [part for part in parts if type(part) is list]
    if len(lists) == count:
        joined: list[Any] = [None] * (count * length)
        for place in range(count * block):
            joined[place :: count * block] = lists[place // block][place % block :: block]
        return joined
    arrays = [part for part in parts if type(part) is np.ndarray]
    if len(arrays) == count and len({(array.dtype, array.shape) for array in arrays}) == 1:
        row = arrays[0].shape[1:]
        out = np.empty((length // block, count, block, *row), arrays[0].dtype)
        for place, array in enumerate(arrays):
            out[:, place] = array.reshape(length // block, block, *row)
        return out.reshape(count * length, *row)
    return take_column(concatenate_columns(parts), _round_order(count, length // block, block))


def _round_order(cycle: int, rounds: int, block: int) -> npt.NDArray[np.intp]:
    """Return the indices of whole rounds in the concatenated elements of all datasets."""
    return np.arange(cycle * rounds * block).reshape(cycle, rounds, block).transpose(1, 0, 2).ravel()


class Rounds:
    """Buffer of whole rounds, returned in pieces. It knows at any time how many elements of each place were returned.

    Args:
        places: the participating places, in turn order.
        waiting: the elements of each place, equally many blocks each.
        block_length: the number of elements in a block.
    """

    def __init__(self, places: list[int], waiting: list[Chunk], block_length: int) -> None:
        self.places = places
        self.length_of_each = waiting[0].length
        self._block_length = block_length
        joined = join_rounds(waiting, block_length)
        self._elements = Remainder(joined)
        self._given = 0
        # The last element is not counted: after it the rounds end, and no earlier position is known.
        self._held = joined.length - 1 if joined.structure is LEAF and joined.holds_lists else 0

    def give(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements; None if none is left."""
        chunk = self._elements.give(n)
        if chunk is not None:
            self._given += chunk.length
        return chunk

    @property
    def held(self) -> int:
        """How many elements are left but one, if they are values in a list; 0 otherwise."""
        return max(0, self._held - self._given)

    @property
    def all_given(self) -> bool:
        """Whether all elements were returned."""
        return not self._elements

    def rest(self) -> list[Chunk]:
        """Return all remaining elements without consuming them."""
        rest = self._elements.rest()
        return [] if rest is None else [rest]

    def standing(self, before: int = 0) -> tuple[int, int, dict[int, int]]:
        """Return the current place, the elements returned of its block, and the elements returned per place.

        Args:
            before: how many of the last elements count as not returned.
        """
        block = self._block_length
        rounds, rest = divmod(self._given - before, len(self.places) * block)
        index, given = divmod(rest, block)
        taken = {place: rounds * block + min(block, max(0, rest - k * block)) for k, place in enumerate(self.places)}
        return self.places[index], given, taken

"""The cycle of an interleave: its places, whose turn it is, and whole rounds put in order at once.

Both operators of interleave go round it, as tf.data does: a block from each dataset in turn, and a finished dataset
leaves its place empty until the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dataset.runtime.chunks.chunk import Chunk, Remainder
from dataset.runtime.contract import State

P = TypeVar("P")


class RoundRobin(Generic[P]):
    """Places for open datasets, one of which has its turn."""

    def __init__(self, length: int, block_length: int) -> None:
        self.places: list[P | None] = [None] * length
        self.block_length = block_length
        self.turn = 0  # whose
        self.given = 0  # elements of its block
        self.filled = 0  # places that are not empty

    @property
    def current(self) -> P | None:
        """Who is at the place whose turn it is."""
        return self.places[self.turn]

    @property
    def left(self) -> int:
        """Elements left of the block."""
        return self.block_length - self.given

    def in_turn(self) -> Iterator[P | None]:
        """All places, from the one whose turn it is on."""
        yield from self.places[self.turn :]
        yield from self.places[: self.turn]

    def places_in_turn(self) -> list[int]:
        """Their numbers, in the same order."""
        return [*range(self.turn, len(self.places)), *range(self.turn)]

    def empty_places(self) -> list[int]:
        """The empty places, in the order of their turns, which is also the order in which they became empty."""
        return [place for place in self.places_in_turn() if self.places[place] is None]

    def fill(self, place: int, occupant: P) -> None:
        """Put somebody at an empty place."""
        self.places[place] = occupant
        self.filled += 1

    def empty(self) -> None:
        """Leave the place whose turn it is empty, and pass on."""
        self.places[self.turn] = None
        self.filled -= 1
        self.pass_on()

    def pass_on(self) -> None:
        """It is the next one's turn."""
        self.turn = (self.turn + 1) % len(self.places)
        self.given = 0

    def advance(self, count: int) -> None:
        """``count`` elements of the block were given."""
        self.given += count
        if self.given == self.block_length:
            self.pass_on()

    def state_dict(self, save: Callable[[P, int], Any], rounds: Rounds | None = None) -> State:
        """The cycle as plain data.

        Args:
            save: gives the state of who is at a place, of which so many elements of ``rounds`` have been given.
            rounds: that are being given.
        """
        turn, given, taken = (self.turn, self.given, {}) if rounds is None else rounds.standing()
        slots = [
            None if occupant is None else save(occupant, taken.get(place, 0))
            for place, occupant in enumerate(self.places)
        ]
        return {"turn": turn, "given": given, "slots": slots}

    def load_state_dict(self, state: State, load: Callable[[Any], P]) -> None:
        """The inverse of ``state_dict``."""
        self.turn, self.given = int(state["turn"]), int(state["given"])
        self.places = [None if saved is None else load(saved) for saved in state["slots"]]
        self.filled = len(self.places) - self.places.count(None)


def join_rounds(waiting: list[Chunk], block_length: int) -> Chunk:
    """Whole rounds in order, of chunks that have as many blocks each: the first of each, then the second, and so on."""
    if len(waiting) == 1:
        return waiting[0]
    rounds = waiting[0].length // block_length
    return Chunk.concatenate(waiting).take(_round_order(len(waiting), rounds, block_length))


def _round_order(cycle: int, rounds: int, block: int) -> npt.NDArray[np.intp]:
    """Where the elements of whole rounds stand when the datasets' elements are joined end to end."""
    return np.arange(cycle * rounds * block).reshape(cycle, rounds, block).transpose(1, 0, 2).ravel()


class Rounds:
    """Whole rounds in order, handed out in pieces. Wherever it stops, it knows how much of each place was given.

    Args:
        places: that take part, in the order of their turns.
        waiting: of each of them as many blocks.
        block_length: elements in a block.
    """

    def __init__(self, places: list[int], waiting: list[Chunk], block_length: int) -> None:
        self.places = places
        self.length_of_each = waiting[0].length
        self._block_length = block_length
        self._elements = Remainder(join_rounds(waiting, block_length))
        self._given = 0

    def give(self, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements; None where nothing is left."""
        chunk = self._elements.give(n)
        if chunk is not None:
            self._given += chunk.length
        return chunk

    @property
    def all_given(self) -> bool:
        """Whether nothing is left."""
        return not self._elements

    def rest(self) -> Chunk | None:
        """All that is left, still to be given."""
        return self._elements.rest()

    def standing(self) -> tuple[int, int, dict[int, int]]:
        """Whose turn it is, how many elements of its block were given, and how many of each place in all rounds."""
        block = self._block_length
        rounds, rest = divmod(self._given, len(self.places) * block)
        index, given = divmod(rest, block)
        taken = {place: rounds * block + min(block, max(0, rest - k * block)) for k, place in enumerate(self.places)}
        return self.places[index], given, taken

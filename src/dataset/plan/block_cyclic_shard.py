"""Block-cyclic shards: the arithmetic of dividing a sequence among several processes.

The sequence is dealt out in rounds. In each round every process gets a *turn*: one element, or a batch size of elements
upstream of a batch. ``remainder`` determines what happens to an incomplete last round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Integers = TypeVar("Integers", int, npt.NDArray[np.int64])

REMAINDERS = ("drop", "pad", "repeat", "keep")


@dataclass(frozen=True)
class BlockCyclicShard:
    """Shard of process ``rank`` of ``world_size``.

    Attributes:
        world_size: the number of processes.
        rank: the index of this process, from 0.
        remainder: how to treat an incomplete last round. ``"drop"``: leave it out. ``"keep"``: only the processes that
            it reaches get a turn. ``"pad"``, ``"repeat"``: the other processes get a substitute turn.
        turn: how many elements a process gets in a round.
        least: the fewest elements that count as a turn at the end of the sequence; fewer are left out.
        relies_on_even: whether the downstream op would lose its position if the last round were incomplete. That can
            only happen if the sharding begins in the middle of the sequence (``begun_behind``).
        otherwise: the shard to use in that case; None if there is none.
        in_order: whether the position of each element matters, because elements are numbered or zipped with others. If
            False, it only matters that each element belongs to some process.
    """

    world_size: int
    rank: int
    remainder: str
    turn: int = 1
    least: int = 1
    in_order: bool = False
    relies_on_even: bool = False
    otherwise: BlockCyclicShard | None = None

    @property
    def gives_all(self) -> bool:
        """Whether the shards consist of the sequence's elements only, without substitutes."""
        return self.remainder in {"drop", "keep"}

    @property
    def round(self) -> int:
        """The number of elements of a round, over all processes."""
        return self.world_size * self.turn

    def turns_in(self, rest: int) -> int:
        """Return how many processes get a turn in a round of ``rest`` elements."""
        whole, part = divmod(rest, self.turn)
        return whole + (part >= self.least)

    def count(self, available: int) -> int:
        """Return how many of ``available`` elements this process gets, including substitutes."""
        rounds, rest = divmod(available, self.round)
        return rounds * self.turn + self.count_in_last(rest, is_only=rounds == 0)

    def count_in_last(self, rest: int, *, is_only: bool) -> int:
        """Return how many elements it gets from an incomplete last round of ``rest`` elements."""
        turns = self.turns_in(rest)
        if turns == 0 or (self.remainder == "drop" and turns < self.world_size):
            return 0
        if self.rank < turns:
            return min(self.turn, rest - self.rank * self.turn)
        if self.remainder == "keep":
            return 0
        first, stop = self.repeated(turns, is_only=is_only)
        return stop - first if self.remainder == "pad" or not is_only else min(stop, rest) - first

    def share_of(self, available: int) -> Share:
        """Return this process's share of ``available`` elements."""
        rounds, rest = divmod(available, self.round)
        turns, own, is_only = self.turns_in(rest), rounds * self.turn, rounds == 0
        if turns == 0 or (self.remainder == "drop" and turns < self.world_size):
            return Share(own)
        if self.rank < turns:
            return Share(own + min(self.turn, rest - self.rank * self.turn))
        if self.remainder == "keep":
            return Share(own)
        if self.remainder == "pad":
            return Share(own, is_absent=True, again=range(min(self.turn, rest) if is_only else 0))
        first, stop = self.repeated(turns, is_only=is_only)
        return Share(own, again=range(first, min(stop, available)))

    def repeated(self, turns: int, *, is_only: bool) -> tuple[int, int]:
        """Return the range of elements that substitutes a turn missing from a last round of ``turns`` turns.

        It is the turn that this process would get if the sequence started again from the beginning after its end.
        """
        number = self.rank % turns if is_only else self.rank - turns
        return number * self.turn, (number + 1) * self.turn

    def places(self, numbers: Integers) -> Integers:
        """Return the positions in the sequence of this process's elements with these numbers."""
        return numbers // self.turn * self.round + self.rank * self.turn + numbers % self.turn

    def ordered(self) -> BlockCyclicShard:
        """Return the shard with ``in_order`` set."""
        return dataclasses.replace(self, in_order=True, otherwise=None)

    def one_by_one(self) -> BlockCyclicShard:
        """Return the shard with turns of one element."""
        return dataclasses.replace(self, turn=1, least=1, relies_on_even=False, otherwise=None)

    def relying_on_even(self) -> BlockCyclicShard:
        """Return the shard with ``relies_on_even`` set, if turns have several elements or ``in_order`` is set."""
        if self.turn == 1 and not self.in_order:
            return self
        in_turns = self.in_order or self.remainder == "pad"
        return dataclasses.replace(self, relies_on_even=True, otherwise=None if in_turns else self.one_by_one())

    def begun_behind(self, rest: int) -> BlockCyclicShard | None:
        """Return the shard of the last ``rest`` elements, starting with process 0; None if that is impossible."""
        return self.otherwise if self.relies_on_even and rest % self.round else self

    def below_batch(self, size: int, *, drop_remainder: bool) -> BlockCyclicShard:
        """Return the shard of elements from which batching produces this shard of the batches."""
        least = (self.least - 1) * size + (size if drop_remainder else 1)
        otherwise = self.otherwise and self.otherwise.below_batch(size, drop_remainder=drop_remainder)
        return dataclasses.replace(self, turn=self.turn * size, least=least, otherwise=otherwise)


@dataclass(frozen=True)
class Share:
    """Share of one process in a sequence of known length.

    Attributes:
        own: the number of its own elements.
        is_absent: whether a marker for an absent element follows its own elements.
        again: the positions of the elements that follow: repeated ones, or an example of the absent element.
    """

    own: int
    is_absent: bool = False
    again: range = range(0)


def places_in(deals: Sequence[BlockCyclicShard], numbers: Integers) -> Integers:
    """Return the positions in the original sequence after it was sharded by each of ``deals`` in turn."""
    for deal in reversed(deals):
        numbers = deal.places(numbers)
    return numbers

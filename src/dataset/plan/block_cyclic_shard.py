"""Block-cyclic shards: the arithmetic of dividing a sequence among several processes.

The sequence is divided into rounds. In each round every process gets a *turn*: one element, or a batch size of elements
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

    def __str__(self) -> str:
        return f"{self.rank} of {self.world_size}, {self.remainder!r}"

    @property
    def gives_all(self) -> bool:
        """Whether the shards consist of the sequence's elements only, without substitutes."""
        return self.remainder in {"drop", "keep"}

    @property
    def round(self) -> int:
        """The number of elements of a round, over all processes."""
        return self.world_size * self.turn

    @property
    def shown(self) -> int:
        """How much of a round must exist for this process to have a complete turn in it."""
        if self.remainder != "drop" or self.rank == self.world_size - 1:
            return (self.rank + 1) * self.turn
        return self.round - self.turn + self.least

    def turns_in(self, rest: int) -> int:
        """Return how many processes get a turn in a round of ``rest`` elements."""
        whole, part = divmod(rest, self.turn)
        return whole + (part >= self.least)

    def count(self, available: int) -> int:
        """Return how many of ``available`` elements this process gets, including substitutes."""
        own, again = self.share_of(available)
        return own + (self.turn if again and self.remainder == "pad" else len(again))

    def share_of(self, available: int) -> tuple[int, range]:
        """Return how many of ``available`` elements are this process's, and which ones substitute a missing turn.

        The substitute is the turn that the process would get if the sequence started again after its end. The range is
        empty if no turn is missing.
        """
        rounds, rest = divmod(available, self.round)
        turns, own = self.turns_in(rest), rounds * self.turn
        if turns == 0 or (self.remainder == "drop" and turns < self.world_size):
            return own, range(0)
        if self.rank < turns:
            return own + min(self.turn, rest - self.rank * self.turn), range(0)
        if self.remainder == "keep":
            return own, range(0)
        first = (self.rank - turns if rounds else self.rank % turns) * self.turn
        return own, range(first, min(first + self.turn, available))

    def own_in(self, available: int) -> int:
        """Return how many of the first ``available`` elements are in turns of this process, complete or not."""
        rounds, rest = divmod(available, self.round)
        return rounds * self.turn + min(max(rest - self.rank * self.turn, 0), self.turn)

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

    def one_turn_each(self, count: int) -> BlockCyclicShard:
        """Return the shard of ``count`` elements in which each process has one turn, so its elements are adjacent.

        With "drop", all processes get equally many elements, and fewer than ``world_size`` are left out.
        """
        drops = self.remainder == "drop"
        turn = max(1, count // self.world_size if drops else -(-count // self.world_size))
        return dataclasses.replace(self.one_by_one(), turn=turn, least=turn if drops else 1)


def places_in(shards: Sequence[BlockCyclicShard], numbers: Integers) -> Integers:
    """Return the positions in the original sequence after it was sharded by each of ``shards`` in turn."""
    for shard in reversed(shards):
        numbers = shard.places(numbers)
    return numbers

"""Which elements of a sequence are whose, when several processes share it: plain arithmetic.

The sequence is dealt out in rounds, a *turn* for each process: one element, or, below a batch, as many as the batch
takes. What is said of the last round, which may be incomplete, is the ``remainder``.
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
    """The share of process ``rank`` of ``world_size``.

    Attributes:
        world_size: how many processes there are.
        rank: which of them this is, from 0.
        remainder: what becomes of the last round if it is incomplete. ``"drop"``: it is left out. ``"keep"``: those
            have it that it comes to. ``"pad"``, ``"repeat"``: the others get a stand-in.
        turn: how many elements a process has in a round.
        least: how many of them make a turn at the end, where there are not so many left; fewer are left out.
        relies_on_even: whether the op above would lose its place if the last round were incomplete, which it never is
            unless the deal begins in the middle (``behind``).
        otherwise: the deal to be made then; without one there is none.
        in_order: whether it matters which elements these are, and not only that each is somebody's: their numbers are
            told, or they are put side by side with others.
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
        """Whether the shares are made of the elements alone, without stand-ins."""
        return self.remainder in {"drop", "keep"}

    @property
    def round(self) -> int:
        """How many elements all processes have in a round."""
        return self.world_size * self.turn

    def turns_in(self, rest: int) -> int:
        """How many processes have a turn in a round of ``rest`` elements."""
        whole, part = divmod(rest, self.turn)
        return whole + (part >= self.least)

    def count(self, available: int) -> int:
        """How many elements this process has of so many, stand-ins included."""
        rounds, rest = divmod(available, self.round)
        return rounds * self.turn + self.count_in_last(rest, is_only=rounds == 0)

    def count_in_last(self, rest: int, *, is_only: bool) -> int:
        """How many it has in a last round of ``rest`` elements, which is incomplete."""
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
        """What this process has of so many elements."""
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
        """Which elements, from the first of all on, stand in for a turn that is missing in a last round of ``turns``.

        They are those of the turn that this process would have if the sequence began again behind its end.
        """
        number = self.rank % turns if is_only else self.rank - turns
        return number * self.turn, (number + 1) * self.turn

    def places(self, numbers: Integers) -> Integers:
        """Where the elements with these numbers of this process stand in the sequence."""
        return numbers // self.turn * self.round + self.rank * self.turn + numbers % self.turn

    def ordered(self) -> BlockCyclicShard:
        """The same, for elements of which it matters which they are."""
        return dataclasses.replace(self, in_order=True, otherwise=None)

    def one_by_one(self) -> BlockCyclicShard:
        """The same processes, with an element for each in a round."""
        return dataclasses.replace(self, turn=1, least=1, relies_on_even=False, otherwise=None)

    def relying_on_even(self) -> BlockCyclicShard:
        """The same, of elements that are dealt out evenly, which matters above where a turn is more than one."""
        if self.turn == 1 and not self.in_order:
            return self
        in_turns = self.in_order or self.remainder == "pad"
        return dataclasses.replace(self, relies_on_even=True, otherwise=None if in_turns else self.one_by_one())

    def begun_behind(self, rest: int) -> BlockCyclicShard | None:
        """The deal of the last ``rest`` elements, of which the first is process 0's; None where there can be none."""
        return self.otherwise if self.relies_on_even and rest % self.round else self

    def below_batch(self, size: int, *, drop_remainder: bool) -> BlockCyclicShard:
        """The deal of elements that makes this deal of batches of them."""
        least = (self.least - 1) * size + (size if drop_remainder else 1)
        otherwise = self.otherwise and self.otherwise.below_batch(size, drop_remainder=drop_remainder)
        return dataclasses.replace(self, turn=self.turn * size, least=least, otherwise=otherwise)


@dataclass(frozen=True)
class Share:
    """What one process has of elements of which it is known how many there are.

    Attributes:
        own: how many it has of its own.
        is_absent: whether it is said behind these that one is absent.
        again: the places of those that are given behind all that: again, or as an example of what is absent.
    """

    own: int
    is_absent: bool = False
    again: range = range(0)


def places_in(deals: Sequence[BlockCyclicShard], numbers: Integers) -> Integers:
    """Where elements stand in a sequence of which a share was dealt out, of that another, and so on."""
    for deal in reversed(deals):
        numbers = deal.places(numbers)
    return numbers

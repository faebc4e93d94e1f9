"""Random state of an op: its seed, and the number of iterations over it."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

state_numbers = itertools.count()
"""The numbers of random states."""


class _Run:
    """The seed for iterations of an op that begin from now on."""

    __slots__ = ("key",)

    def __init__(self, key: int | None = None) -> None:
        self.key = key  # from the last loaded state; None for the op's own seed


class Turn(NamedTuple):
    """The numbers that an iterator has taken: the next number was ``before``, and then ``after``."""

    before: int
    after: int


class RandomState:
    """Random state: identifies an op with random numbers in a user's plan, seeds it, and counts iterations over it.

    The count is the only state that iterations of a Dataset share. tf.data's ``reshuffle_each_iteration`` requires it:
    each new iterator gets another order. Iterators opened after a state was loaded count on from that state. Rewrites
    of the plan keep the object. Only EpochLedger (runtime/random/streams.py) counts, one thread at a time.

    Args:
        key: the 64-bit seed derived from the op's seed and the global seed.
        seed: the user's seed of the op.
        first: the number of the first iteration.
        run: shared by the random states of one op of one pipeline.
        of_functions: whether the datasets that the op's function returns draw random numbers, not the op itself.
        agreed: whether other processes also run the op, and all must yield the same elements in the same order.

    Attributes:
        number: larger than the numbers of all random states created before.
    """

    def __init__(
        self,
        key: int,
        seed: int | None = None,
        *,
        first: int = 0,
        run: _Run | None = None,
        of_functions: bool = False,
        agreed: bool = False,
    ) -> None:
        self.key = key
        self.seed = seed
        self.of_functions = of_functions
        self.agreed = agreed
        self.number = next(state_numbers)
        self._first = self._iterations = first
        self._run = run or _Run()

    def next_iteration(self) -> int:
        """Return the number of an iteration that starts now."""
        self._iterations += 1
        return self._iterations - 1

    @property
    def next_key(self) -> int:
        """The seed of iterations that begin now: ``key``, or that of the last loaded state."""
        return self.key if self._run.key is None else self._run.key

    def resume(self, iteration: int, key: int, unused: Turn | None) -> Turn:
        """Count on from an iteration of a saved state, with its seed.

        Numbers never repeat within a process, except for one that the resuming iterator had taken and not used.

        Args:
            iteration: the number of the saved iteration.
            key: its seed.
            unused: what the resuming iterator has taken, if it has not begun.

        Returns:
            What the iterator has taken now.
        """
        self._run.key = key
        before = self._iterations
        if unused is not None and unused.after == before:
            before = unused.before
        self._iterations = max(before, iteration + 1)
        return Turn(before, self._iterations)

    def at(self, iteration: int) -> RandomState:
        """Return a separate random state whose next iteration is number ``iteration``."""
        return _copied(self.key, self.seed, iteration, self._run, self.of_functions, self.agreed)

    def restarted(self, key: int | None = None, *, agreed: bool = False) -> RandomState:
        """Return a separate random state that begins where this one began, with its own seed or ``key``."""
        key = self.key if key is None else key
        return _copied(key, self.seed, self._first, None, self.of_functions, self.agreed or agreed)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of a pipeline, such as that of a worker process, counts on its own.
        return _copied, (self.key, self.seed, self._first, _Run(self._run.key), self.of_functions, self.agreed)

    def __repr__(self) -> str:
        return "RandomState()"


def is_unseeded(random: RandomState | None) -> bool:
    """Return whether an op draws random numbers itself, without a seed of its own."""
    return random is not None and random.seed is None and not random.of_functions


def _copied(key: int, seed: int | None, first: int, run: _Run | None, of_functions: bool, agreed: bool) -> RandomState:
    return RandomState(key, seed, first=first, run=run, of_functions=of_functions, agreed=agreed)

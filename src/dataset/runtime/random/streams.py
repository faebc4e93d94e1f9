"""Random numbers: seeds, counter-based streams, and the epoch of each shuffle or random_map.

Every random decision is a function of (seed, iteration, epoch, position), computed with the counter-based generator
Philox (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011). So the order of an epoch does not depend
on history, and a stream can continue at any position at no cost.
"""

from __future__ import annotations

import itertools
import secrets
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence, ISpawnableSeedSequence

from dataset.plan.checks import require_seed
from dataset.plan.random_state import RandomState, Turn
from dataset.runtime.position import counts_in
from dataset.world import threading

_WORDS_PER_COUNTER = 4  # Philox4x64 generates four 64-bit words from one counter value
_FAR = np.array((0, 0, 1, 0), np.uint64)  # the counter 2**128, which no stream reaches
_FUNCTIONS = 2  # separates the seeds of ops that call functions from those of other ops
_IN_USE_MAX = 3  # generators of a loop over arguments: zip() refers to those of this call, and of one or two before
_ELEMENTS = 1  # separates the streams of elements from those of a shuffle with the same seed
_DEFAULT_GLOBAL_SEED = 87654321  # as in TensorFlow: an op seed alone means the same in every process


class SeedSequence:
    """Seed sequence: a seed set by the user, and the number of ops that have drawn from it."""

    def __init__(self, seed: int | None) -> None:
        self.seed = seed
        self.drawn = itertools.count(1)
        self.drawn_for_functions = itertools.count(1)

    def draw(self) -> int:
        """Return the seed of the next op that has no seed of its own."""
        return secrets.randbits(64) if self.seed is None else derived_seed(self.seed, next(self.drawn))

    def draw_for_functions(self) -> int:
        """Return the seed of the next op whose function returns datasets, without affecting the seeds of other ops."""
        number = next(self.drawn_for_functions)
        return secrets.randbits(64) if self.seed is None else derived_seed(self.seed, number, _FUNCTIONS)


class CallSeeds(SeedSequence):
    """Seed sequence of the ops that one call of a function builds in this thread, inside a ``with`` block.

    Each call has seeds of its own, which are the same for each retry.

    Args:
        key: returns the number that the seeds depend on; called when the first seed is drawn.
    """

    def __init__(self, key: Callable[[], int]) -> None:
        self._before = _seeds.current
        super().__init__(self._before.seed)
        self._key = key

    def __enter__(self) -> None:
        _seeds.current = self

    def __exit__(self, *_: object) -> None:
        _seeds.current = self._before

    def draw(self) -> int:
        return derived_seed(self._key(), next(self.drawn))

    def draw_for_functions(self) -> int:
        return derived_seed(self._key(), next(self.drawn_for_functions), _FUNCTIONS)


class _ThreadSeeds(threading.local):
    """Per-thread seeds, as in TensorFlow's eager mode. Threads of an iteration share those of its opening thread."""

    def __init__(self) -> None:
        self.current = SeedSequence(None)


_seeds = _ThreadSeeds()


def seed_sequence() -> SeedSequence:
    """Return the seed sequence of ops built in this thread."""
    return _seeds.current


def share_seed_sequence(sequence: SeedSequence) -> None:
    """Make the ops built in this thread draw from the seed sequence of another thread."""
    _seeds.current = sequence


def set_random_seed(seed: int | None) -> None:
    """Make pipelines built from now on repeatable, including ops without a seed of their own.

    Each new op takes the next number of a sequence, so two equal pipelines get different orders. Calling this again
    with the same seed restarts the sequence. The seed applies to the calling thread and to the iterators opened in it.

    Args:
        seed: any int; None removes the seed.

    Raises:
        TypeError: if ``seed`` is not an int.

    >>> from dataset import Dataset, set_random_seed
    >>> def order():
    ...     set_random_seed(7)
    ...     return [int(x) for x in Dataset.range(5).shuffle(5)]
    >>> order() == order()
    True
    >>> set_random_seed(None)
    """
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer)):
        raise TypeError(f"set_random_seed(): seed must be an int or None, got {seed!r}")
    _seeds.current = SeedSequence(None if seed is None else int(seed))


def resolve_seed(seed: int | None) -> int:
    """Return the 64-bit seed of one op: from its own seed, the global seed, both, or the operating system."""
    sequence = _seeds.current
    if seed is None:
        return sequence.draw()
    base = _DEFAULT_GLOBAL_SEED if sequence.seed is None else sequence.seed
    return derived_seed(base, int(seed))


def random_state(op: str, seed: Any) -> RandomState:
    """Return the random state of an op with the user's argument ``seed``."""
    seed = require_seed(op, seed)
    return RandomState(resolve_seed(seed), seed)


def function_random_state() -> RandomState:
    """Return the random state of an op whose function returns datasets; the ops in these datasets draw from it."""
    return RandomState(_seeds.current.draw_for_functions(), of_functions=True)


def derived_seed(*key: int) -> int:
    """Return a 64-bit seed that depends only on these numbers."""
    return int(_mixed(*key).generate_state(1, np.uint64)[0])


def _mixed(*key: int) -> np.random.SeedSequence:
    """Return entropy from several numbers, 64 bits of each, so that their bits do not overlap."""
    return np.random.SeedSequence(np.array([part % 2**64 for part in key], "<u8").view("<u4"))


class Stream:
    """Stream of uniform doubles; the double at a position depends only on the key and the position."""

    def __init__(self, *key: int) -> None:
        self._seed: Any = _StreamSeed(_mixed(*map(int, key)).generate_state(2, np.uint64))
        self.position = 0
        self._generator: np.random.Generator | None = None  # created on first use

    def _at(self, position: int) -> np.random.Generator:
        counter, skipped = divmod(position, _WORDS_PER_COUNTER)
        generator = np.random.Generator(np.random.Philox(self._seed, counter=counter))
        generator.random(skipped)
        return generator

    def seek(self, position: int) -> None:
        """Continue with the double at ``position``."""
        self.position = position
        self._generator = None

    def random(self, count: int) -> npt.NDArray[np.float64]:
        """Return the next ``count`` doubles in [0, 1)."""
        if self._generator is None:
            self._generator = self._at(self.position)
        self.position += count
        return self._generator.random(count)

    def permutation(self, count: int, number: int = 0) -> npt.NDArray[np.intp]:
        """Return permutation ``number`` of ``range(count)``; independent of the position of the stream."""
        return self._far(2 * number).permutation(count)

    def far_bytes(self, count: int, block: int) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield ``count`` random bytes in blocks, independent of the stream's position and the byte order.

        Args:
            count: the total number of bytes.
            block: the size of each block except the last; a multiple of 8.
        """
        generator = self._far(1).bit_generator
        for start in range(0, count, block):
            length = min(block, count - start)
            words = generator.random_raw(-(-length // 8))
            yield words.astype("<u8", copy=False).view(np.uint8)[:length]

    def _far(self, number: int) -> np.random.Generator:
        """Return a generator that overlaps neither with the stream nor with those of other numbers."""
        counter = _FAR + np.array((0, number, 0, 0), np.uint64)
        return np.random.Generator(np.random.Philox(self._seed, counter=counter))


class _StreamSeed(ISeedSequence):
    """Seed that passes Philox its key.

    Philox(key=...) would give the same stream, but first requests entropy from the operating system, which is most of
    its cost.
    """

    __slots__ = ("key",)

    def __init__(self, key: npt.NDArray[Any]) -> None:
        self.key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:  # noqa: ARG002  # always 2, 64 bits
        return self.key


class ElementGenerators:
    """Random generators of the elements of an epoch, the same each time one is requested.

    All use one Philox stream, 2**64 counter values apart. No element draws that many numbers, so they never overlap.

    Setting the state of an earlier element's bit generator takes a tenth of the time of creating one. This is done
    if nothing else refers to it: the function may have kept its generator. An instance is for one thread at a time.
    """

    def __init__(self, *key: int) -> None:
        self._key = _mixed(*map(int, key), _ELEMENTS).generate_state(2, np.uint64)
        self._turn = 0
        self._seeds: list[_ElementSeed | None] = [None] * _IN_USE_MAX
        self._bits: list[np.random.Philox | None] = [None] * _IN_USE_MAX
        self._counter = [0, 0, 0, 0]
        self._state: Any = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter, "key": self._key.tolist()},
            "buffer": [0] * _WORDS_PER_COUNTER,
            "buffer_pos": _WORDS_PER_COUNTER,  # the buffer is used up
            "has_uint32": 0,
            "uinteger": 0,
        }

    def at(self, index: int) -> np.random.Generator:
        """Return a generator for element ``index``, which is unlike all generators that are in use."""
        turn = self._turn = (self._turn + 1) % _IN_USE_MAX
        bits, seed = self._bits[turn], self._seeds[turn]
        if bits is None or seed is None or _references(bits) > _OF_BITS or _references(seed) > _OF_SEED:
            seed = self._seeds[turn] = _ElementSeed(self._key, index)
            bits = self._bits[turn] = np.random.Philox(seed)  # type: ignore[arg-type]  # not in NumPy's type hints
        else:
            seed.begin(index)
        self._counter[1] = index
        bits.state = self._state
        return np.random.Generator(bits)


class _ElementSeed(ISpawnableSeedSequence):
    """Seed that passes Philox its key, as _StreamSeed does, and lets users spawn more generators."""

    __slots__ = ("_index", "_key", "_sequence")

    def __init__(self, key: npt.NDArray[Any], index: int) -> None:
        self._key = key
        self.begin(index)

    def begin(self, index: int) -> None:
        """Become the seed of another element."""
        self._index = index
        self._sequence: np.random.SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        if n_words == 2 and dtype is np.uint64:  # what Philox requests
            return self._key
        return self._own_sequence().generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> list[Any]:
        return self._own_sequence().spawn(n_children)

    def _own_sequence(self) -> np.random.SeedSequence:
        if self._sequence is None:
            self._sequence = np.random.SeedSequence(self._key.tolist(), spawn_key=(self._index,))
        return self._sequence


_references: Callable[[Any], int] = getattr(sys, "getrefcount", lambda _: 0)


def _unshared() -> tuple[int, int]:
    """Return the reference counts of a bit generator and a seed to which only ElementGenerators refers.

    They are those in ``at``. Negative if references are not counted exactly.
    """
    seeds = [_ElementSeed(np.zeros(2, np.uint64), 0)]
    generators = [np.random.Philox(seeds[0])]  # type: ignore[arg-type]  # as in ``at``
    bits, seed = generators[0], seeds[0]
    counts = _references(bits), _references(seed)
    return counts if min(counts) and getattr(sys, "_is_gil_enabled", lambda: True)() else (-1, -1)


_OF_BITS, _OF_SEED = _unshared()

_counting = threading.Lock()
"""Guards all random states and ledgers: several iterators count with one state, and threads open inner datasets."""


class EpochLedger:
    """Epoch ledger of one iterator: the iteration number and seed of each op that draws random numbers.

    Args:
        probing: whether it is for probing one element, which must not use up an order or write a file.
        detached: whether the Dataset does not count the iteration, so that later ones have the orders that they would
            have without it.
        instead_of: the ledger of the iterator that this one replaces to resume from a state; its iterations are copied.
    """

    def __init__(self, *, probing: bool = False, detached: bool = False, instead_of: EpochLedger | None = None) -> None:
        self.probing = probing
        self._detached = detached
        self._places: dict[RandomState, tuple[int, int]] = {}
        self._turns: dict[RandomState, Turn] = {}
        if instead_of is not None:
            with _counting:
                self._detached = instead_of._detached  # noqa: SLF001
                self._places = dict(instead_of._places)  # noqa: SLF001
                self._turns = dict(instead_of._turns)  # noqa: SLF001

    def place(self, random: RandomState) -> tuple[int, int]:
        """Return the number of the iteration that an op is in, and its seed. The first call takes a new number."""
        with _counting:
            if random not in self._places:
                iteration = 0
                if not (self.probing or self._detached):
                    iteration = random.next_iteration()
                    self._turns[random] = Turn(iteration, iteration + 1)
                self._places[random] = iteration, random.next_key
            return self._places[random]

    def resume(self, random: RandomState, key: int, iteration: int) -> None:
        """Set the iteration and seed of an op to those of a saved state."""
        with _counting:
            self._places[random] = iteration, key

    def go_on(self, random: RandomState, iteration: int, key: int, *, begun: bool) -> None:
        """Make iterations that begin from now on count on from the state that this iterator has loaded.

        Args:
            random: the random state of an op.
            iteration: the saved result of ``place``.
            key: the saved result of ``place``.
            begun: whether elements had been taken from the iterator before.
        """
        if self._detached:
            return
        with _counting:
            self._turns[random] = random.resume(iteration, key, None if begun else self._turns.get(random))


class Draws(NamedTuple):
    """Everything that the random numbers of an op depend on, in one run of it."""

    key: int
    iteration: int
    epoch: int


class RandomPass:
    """The random stream of an op in one pass: the same in every pass, or a new one each time."""

    def __init__(self, draws: Draws, epochs: EpochLedger, random: RandomState, *, again: bool) -> None:
        self._epochs = epochs
        self._random = random
        self._key = draws.key
        self._place = (0, 0) if again else (draws.iteration, draws.epoch)
        self.stream = Stream(self._key, *self._place)

    def save(self) -> dict[str, int]:
        """Return the position, as plain data."""
        iteration, epoch = self._place
        return {"key": self._key, "iteration": iteration, "epoch": epoch, "drawn": self.stream.position}

    def load(self, state: dict[str, int]) -> None:
        """Restore a saved position."""
        key, iteration, epoch, drawn = counts_in(state, "key", "iteration", "epoch", "drawn")
        self._key, self._place = key, (iteration, epoch)
        self._epochs.resume(self._random, self._key, self._place[0])
        self.stream = Stream(self._key, *self._place)
        self.stream.seek(drawn)

"""Random numbers: seeds, counter-based streams, and which epoch a shuffle or random_map is in.

Every random decision is a function of (seed, iteration, epoch, position), made with the counter-based generator Philox
(Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011). So an epoch's order needs no history, and a
stream goes on at any position at no cost.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence, ISpawnableSeedSequence

_WORDS_PER_COUNTER = 4  # Philox4x64 makes four 64-bit words from one counter value
_FAR = np.array((0, 0, 1, 0), np.uint64)  # the counter 2**128, which no stream comes to
_FUNCTIONS = 2  # tells the seeds of ops that call functions from those of other ops
_ELEMENTS = 1  # tells the streams of elements from those of a shuffle with the same seed
_DEFAULT_GLOBAL_SEED = 87654321  # as in TensorFlow: an op seed alone means the same in every process


class SeedSequence:
    """A seed set by the user, and how many ops have drawn on it."""

    def __init__(self, seed: int | None) -> None:
        self.seed = seed
        self.drawn = itertools.count(1)
        self.drawn_for_functions = itertools.count(1)

    def draw(self) -> int:
        """The seed of the next op that has none of its own."""
        return secrets.randbits(64) if self.seed is None else derived_seed(self.seed, next(self.drawn))

    def draw_for_functions(self) -> int:
        """The seed of the next op whose function returns datasets. It takes no number from the other ops."""
        number = next(self.drawn_for_functions)
        return secrets.randbits(64) if self.seed is None else derived_seed(self.seed, number, _FUNCTIONS)


class CallSeeds(SeedSequence):
    """Seeds for the ops that one call of a function builds in this thread, inside a ``with`` block.

    Each call has seeds of its own, the same at each try.

    Args:
        key: gives the number that the seeds depend on; called when the first is drawn.
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
    """Per thread, as in TensorFlow's eager mode. The threads of an iteration share that of the one that opened it."""

    def __init__(self) -> None:
        self.current = SeedSequence(None)


_seeds = _ThreadSeeds()


def seed_sequence() -> SeedSequence:
    """What the ops that are built in this thread draw on."""
    return _seeds.current


def share_seed_sequence(sequence: SeedSequence) -> None:
    """Have the ops that are built in this thread draw on the sequence of another one."""
    _seeds.current = sequence


def set_random_seed(seed: int | None) -> None:
    """Make pipelines built from now on repeatable, also those whose ops have no seed of their own.

    Each op that is built takes the next number of a sequence, so two equal pipelines get different orders; calling this
    again with the same seed repeats the sequence. It holds for the calling thread, and for the iterators opened in it.

    Args:
        seed: any int; None takes the seed away.

    Raises:
        TypeError: if ``seed`` is no int.

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
    """The 64-bit seed of one op: from its own seed, the global one, both, or the operating system."""
    sequence = _seeds.current
    if seed is None:
        return sequence.draw()
    base = _DEFAULT_GLOBAL_SEED if sequence.seed is None else sequence.seed
    return derived_seed(base, int(seed))


def function_seed() -> int:
    """The 64-bit seed of one op whose function returns datasets; the ops in these draw on it."""
    return _seeds.current.draw_for_functions()


def derived_seed(*key: int) -> int:
    """A 64-bit seed that several numbers decide on, and nothing else."""
    return int(_mixed(*key).generate_state(1, np.uint64)[0])


def _mixed(*key: int) -> np.random.SeedSequence:
    """Entropy from several numbers, 64 bits of each, so that none runs into the next."""
    return np.random.SeedSequence(np.array([part % 2**64 for part in key], "<u8").view("<u4"))


class Stream:
    """Uniform doubles, the ``position``-th of which depends on the key and on nothing else."""

    def __init__(self, *key: int) -> None:
        self._seed: Any = _StreamSeed(_mixed(*map(int, key)).generate_state(2, np.uint64))
        self.position = 0
        self._generator: np.random.Generator | None = None  # made when it is needed

    def _at(self, position: int) -> np.random.Generator:
        counter, skipped = divmod(position, _WORDS_PER_COUNTER)
        generator = np.random.Generator(np.random.Philox(self._seed, counter=counter))
        generator.random(skipped)
        return generator

    def seek(self, position: int) -> None:
        """Go on with the double at ``position``."""
        self.position = position
        self._generator = None

    def random(self, count: int) -> npt.NDArray[np.float64]:
        """The next ``count`` doubles in [0, 1)."""
        if self._generator is None:
            self._generator = self._at(self.position)
        self.position += count
        return self._generator.random(count)

    def permutation(self, count: int, number: int = 0) -> npt.NDArray[np.intp]:
        """An order of ``count`` things, another for each number; the same at every position of the stream."""
        return self._far(2 * number).permutation(count)

    def far_bytes(self, count: int, block: int) -> Iterator[npt.NDArray[np.uint8]]:
        """``count`` random bytes in blocks; the same at every position of the stream, and in any byte order.

        Args:
            count: of all.
            block: of each but the last; a multiple of 8.
        """
        generator = self._far(1).bit_generator
        for start in range(0, count, block):
            length = min(block, count - start)
            words = generator.random_raw(-(-length // 8))
            yield words.astype("<u8", copy=False).view(np.uint8)[:length]

    def _far(self, number: int) -> np.random.Generator:
        """A generator of what no position of the stream comes to, nor one with another number."""
        counter = _FAR + np.array((0, number, 0, 0), np.uint64)
        return np.random.Generator(np.random.Philox(self._seed, counter=counter))


class _StreamSeed(ISeedSequence):
    """Hands Philox its key.

    Philox(key=...) would give the same stream, but asks the operating system for entropy first, which is most of what
    it costs.
    """

    __slots__ = ("key",)

    def __init__(self, key: npt.NDArray[Any]) -> None:
        self.key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:  # noqa: ARG002  # Philox asks for two, of 64
        return self.key


class ElementGenerators:
    """A generator for each element of an epoch, the same whenever it is asked for.

    All are of one Philox stream, 2**64 counter values apart, and no element draws as many: so no two of them overlap.
    """

    def __init__(self, *key: int) -> None:
        self._key = _mixed(*map(int, key), _ELEMENTS).generate_state(2, np.uint64)

    def at(self, index: int) -> np.random.Generator:
        """A new generator for element ``index``."""
        counter = np.array((0, index, 0, 0), np.uint64)
        seed: Any = _ElementSeed(self._key, index)  # NumPy's types do not know its own interface for seeds
        return np.random.Generator(np.random.Philox(seed, counter=counter))


class _ElementSeed(ISpawnableSeedSequence):
    """Hands Philox its key, as _StreamSeed does, and lets a user spawn more generators."""

    __slots__ = ("_index", "_key", "_sequence")

    def __init__(self, key: npt.NDArray[Any], index: int) -> None:
        self._key = key
        self._index = index
        self._sequence: np.random.SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        if n_words == 2 and dtype is np.uint64:  # what Philox asks for
            return self._key
        return self._own_sequence().generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> list[Any]:
        return self._own_sequence().spawn(n_children)

    def _own_sequence(self) -> np.random.SeedSequence:
        if self._sequence is None:
            self._sequence = np.random.SeedSequence(self._key.tolist(), spawn_key=(self._index,))
        return self._sequence


counter_numbers = itertools.count()
"""Gives counters their numbers."""


class _Run:
    """Of a shuffle: which seed the iterations take that begin from now on."""

    __slots__ = ("key",)

    def __init__(self, key: int | None = None) -> None:
        self.key = key  # of the saved state that was loaded last; None for the op's own


class Turn(NamedTuple):
    """What an iterator has taken of a counter: its next number was ``before``, and then ``after``."""

    before: int
    after: int


class EpochCounter:
    """Identifies one shuffle or random_map of a user's plan, and counts the iterations over it.

    It is the one thing that iterations of a Dataset share, because tf.data's ``reshuffle_each_iteration`` says so: each
    new iterator gets another order. Iterators that are opened after a saved state was loaded count on behind it.

    Args:
        first: the number of the first iteration.
        run: shared by counters that stand for one op of one pipeline.
        of_functions: whether the op draws nothing itself, but the datasets do that its function returns.

    Attributes:
        number: larger than that of all counters that were made before.
    """

    def __init__(self, first: int = 0, run: _Run | None = None, *, of_functions: bool = False) -> None:
        self.number = next(counter_numbers)
        self.of_functions = of_functions
        self._lock = threading.Lock()  # guards _iterations
        self._first = self._iterations = first
        self._run = run or _Run()

    def next_iteration(self) -> int:
        """The number of an iteration that starts now."""
        with self._lock:
            self._iterations += 1
            return self._iterations - 1

    @property
    def key(self) -> int | None:
        """The seed of iterations that begin now, where a saved state has told one."""
        return self._run.key

    def resume(self, iteration: int, key: int, unused: Turn | None) -> Turn:
        """Count on behind an iteration of a saved state, with its seed.

        Numbers never come twice within a process, unless the iterator that resumes had taken one and not used it.

        Args:
            iteration: its number.
            key: its seed.
            unused: what the iterator that resumes has taken, if it has not begun.

        Returns:
            What it has taken now.
        """
        self._run.key = key
        with self._lock:
            before = self._iterations
            if unused is not None and unused.after == before:
                before = unused.before
            self._iterations = max(before, iteration + 1)
            return Turn(before, self._iterations)

    def at(self, iteration: int) -> EpochCounter:
        """A counter of its own that gives this number next."""
        return type(self)(iteration, self._run, of_functions=self.of_functions)

    def restarted(self) -> EpochCounter:
        """A counter of its own that begins where this one began."""
        return type(self)(self._first, of_functions=self.of_functions)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of a pipeline, such as a worker process gets, counts for itself.
        return _counter, (self._first, self._run.key, self.of_functions)

    def __repr__(self) -> str:
        return "EpochCounter()"


def _counter(first: int, key: int | None, of_functions: bool) -> EpochCounter:
    return EpochCounter(first, _Run(key), of_functions=of_functions)


def function_counter() -> EpochCounter:
    """A counter of an op whose function returns datasets."""
    return EpochCounter(of_functions=True)


class EpochLedger:
    """Iteration numbers and seeds: which iteration each op that draws random numbers is in, for one iterator.

    Args:
        probing: whether it is for a look at one element, which must not use up an order, nor write a file.
        instead_of: of the iterator whose place is taken, to go on from a saved state. Its iterations are this one's.
    """

    def __init__(self, *, probing: bool = False, instead_of: EpochLedger | None = None) -> None:
        self.probing = probing
        self._lock = threading.Lock()  # guards what follows: inner datasets are opened in several threads
        self._iterations: dict[EpochCounter, int] = {}
        self._keys: dict[EpochCounter, int] = {}
        self._turns: dict[EpochCounter, Turn] = {}
        if instead_of is not None:
            with instead_of._lock:  # noqa: SLF001  # its own class
                self._iterations = dict(instead_of._iterations)  # noqa: SLF001
                self._keys = dict(instead_of._keys)  # noqa: SLF001
                self._turns = dict(instead_of._turns)  # noqa: SLF001

    def key(self, counter: EpochCounter, own: int) -> int:
        """The seed of an op: ``own``, or the one of the saved state that the iterator, or the run, resumes."""
        found = self._keys.get(counter)
        if found is None:
            found = self._keys.setdefault(counter, own if counter.key is None else counter.key)
        return found

    def iteration(self, counter: EpochCounter) -> int:
        """The number of the iteration that an op is in; the first call takes it."""
        with self._lock:
            if counter not in self._iterations:
                number = 0
                if not self.probing:
                    number = counter.next_iteration()
                    self._turns[counter] = Turn(number, number + 1)
                self._iterations[counter] = number
            return self._iterations[counter]

    def resume(self, counter: EpochCounter, key: int, iteration: int) -> None:
        """Have an op be in the iteration of a saved state, with its seed."""
        with self._lock:
            self._keys[counter], self._iterations[counter] = key, iteration

    def place(self, counter: EpochCounter, own: int) -> tuple[int, int]:
        """In which iteration an op is, and its seed. One that has not begun takes its number now."""
        return self.iteration(counter), self.key(counter, own)

    def go_on(self, counter: EpochCounter, iteration: int, key: int, *, begun: bool) -> None:
        """Have the iterations that begin from now on count on after the saved state that this iterator has loaded.

        Args:
            counter: of an op.
            iteration: what ``place`` gave where the state was saved.
            key: the same.
            begun: whether elements had been taken of the iterator before.
        """
        with self._lock:
            self._turns[counter] = counter.resume(iteration, key, None if begun else self._turns.get(counter))


class DrawingNode(Protocol):
    """A node that draws random numbers, or whose functions do."""

    @property
    def counter(self) -> EpochCounter:
        """Of the iterations over it."""

    @property
    def key(self) -> int | None:
        """Its seed of 64 bits."""


class Draws(NamedTuple):
    """What the random numbers of an op depend on, in one run of it."""

    key: int
    iteration: int
    epoch: int


class OpensOps(Protocol):
    """What opens an op: it knows the op's place in the plan."""

    @property
    def epochs(self) -> EpochLedger:
        """Of the iterator."""

    def draws(self, node: DrawingNode) -> Draws:
        """Of the op."""


class RandomPass:
    """The stream of an op in one pass over it: the same in every pass, or another each time."""

    def __init__(self, build: OpensOps, node: DrawingNode, *, again: bool) -> None:
        self._epochs = build.epochs
        self._counter = node.counter
        draws = build.draws(node)
        self._key = draws.key
        self._place = (0, 0) if again else (draws.iteration, draws.epoch)
        self.stream = Stream(self._key, *self._place)

    def state_dict(self) -> dict[str, int]:
        """The place, as plain data."""
        iteration, epoch = self._place
        return {"key": self._key, "iteration": iteration, "epoch": epoch, "drawn": self.stream.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go there."""
        self._key, self._place = int(state["key"]), (int(state["iteration"]), int(state["epoch"]))
        self._epochs.resume(self._counter, self._key, self._place[0])
        self.stream = Stream(self._key, *self._place)
        self.stream.seek(int(state["drawn"]))

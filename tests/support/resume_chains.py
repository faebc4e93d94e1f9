"""Random chains of ops for tests of resuming: pipelines of integers, each determined by one number.

``chain(number)`` is a source followed by two to six ops, at least two of them stateful. The elements between ops are
always integers, so that every op may follow every other. ``check(number, folder)`` interrupts and resumes a run of the
chain, up to three times, and compares the elements with those of a run without interruption.

    PYTHONPATH=tests python -m support.resume_chains 5000          # 5000 chains, starting from a fresh number
    PYTHONPATH=tests python -m support.resume_chains 5000 123456   # starting from this number
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import secrets
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dataset import ClosedError, Dataset, Options, StateError, checkpoint
from dataset.testing import assert_elements_equal
from support.resuming import advanced, from_json, to_json

LENGTH_MAX = 300
_REST = 10**6

Ints = Dataset[Any]
Apply = Callable[[Ints, Path], Ints]


@dataclass(frozen=True)
class Op:
    """One op of a chain.

    Attributes:
        text: the call as source code.
        apply: applies the op to a dataset; the path is a folder for the files of this op.
        is_stateful: whether its operator has state other than the position of its input.
        by_chance: whether the order of its elements is not deterministic.
        needs_order: whether its elements depend on the order of its input.
        keeps_order: whether the ops upstream of it keep a deterministic order because of it.
    """

    text: str
    apply: Apply
    is_stateful: bool = False
    by_chance: bool = False
    needs_order: bool = False
    keeps_order: bool = False


@dataclass(frozen=True)
class Chain:
    """A chain: a source, and ops on it."""

    ops: tuple[Op, ...]
    options: Options

    def build(self, folder: Path) -> Ints:
        """Build the pipeline from new objects."""
        dataset: Any = None
        for number, op in enumerate(self.ops):
            dataset = op.apply(dataset, folder / str(number))
        result: Ints = dataset.with_options(self.options)
        return result

    @property
    def by_chance(self) -> bool:
        """Whether two runs may return the elements in different orders."""
        found = False
        for op in self.ops:
            found = (found or op.by_chance) and not op.keeps_order
        return found

    @property
    def is_comparable(self) -> bool:
        """Whether two runs return the same elements, in any order."""
        found = False
        for op in self.ops:
            if found and op.needs_order:
                return False
            found = (found or op.by_chance) and not op.keeps_order
        return not any(op.by_chance and not op.keeps_order for op in self.ops) or found or not self.by_chance

    def __repr__(self) -> str:
        return " -> ".join(op.text for op in self.ops)


def chain(number: int) -> Chain:
    """Return the chain for a number."""
    rng = random.Random(number)
    while True:
        ops = [_source(rng), *(rng.choice(OPS)(rng) for _ in range(rng.randint(2, 6)))]
        found = Chain(tuple(ops), _options(rng))
        if sum(op.is_stateful for op in ops) >= 2 and found.is_comparable:
            return found


def _options(rng: random.Random) -> Options:
    options = Options()
    if rng.random() < 0.2:
        options.optimization.enabled = False
    return options


def _source(rng: random.Random) -> Op:
    n = rng.choice([1, 2, 3, 5, 8, 12])
    sources: list[tuple[str, Callable[[], Ints]]] = [
        (f"range({n})", lambda: Dataset.range(n)),
        (f"slices({n})", lambda: Dataset.from_tensor_slices(np.arange(n))),
        (f"generator({n})", lambda: Dataset.from_generator(lambda: iter(np.arange(n)), output_signature=_SPEC)),
        (f"stream({n})", lambda: Dataset.range(n).filter(lambda x: x >= 0)),
    ]
    text, make = rng.choice(sources)
    return Op(text, lambda _, __: make())


_SPEC = Dataset.range(1).element_spec


def _seed(rng: random.Random) -> int | None:
    return rng.choice([None, 1, 2, 3])


def _shuffle(rng: random.Random) -> Op:
    size, seed, again = rng.choice([1, 2, 3, 5, 40, None]), _seed(rng), rng.random() < 0.7
    return Op(
        f"shuffle({size}, {seed}, {again})",
        lambda dataset, _: dataset.shuffle(size, seed=seed, reshuffle_each_iteration=again),
        is_stateful=True,
    )


def _repeat(rng: random.Random) -> Op:
    count = rng.choice([1, 2, 2, 3])
    return Op(f"repeat({count})", lambda dataset, _: dataset.repeat(count), is_stateful=True)


def _repeat_and_take(rng: random.Random) -> Op:
    count = rng.randint(1, 40)
    return Op(
        f"repeat().take({count})",
        lambda dataset, _: dataset.repeat().take(count),
        is_stateful=True,
        needs_order=True,
    )


def _take(rng: random.Random) -> Op:
    count = rng.choice([1, 5, 20, 33])
    return Op(f"take({count})", lambda dataset, _: dataset.take(count), needs_order=True)


def _skip(rng: random.Random) -> Op:
    count = rng.choice([1, 3])
    return Op(f"skip({count})", lambda dataset, _: dataset.skip(count), needs_order=True)


def _batch(rng: random.Random) -> Op:
    size, calls = rng.choice([2, 3, 5]), rng.choice([None, 2])
    return Op(
        f"batch({size}, calls={calls}).unbatch()",
        lambda dataset, _: dataset.batch(size, num_parallel_calls=calls).unbatch(),
        is_stateful=True,
        needs_order=True,  # an element that fails drops the elements of its batch
    )


def _window(rng: random.Random) -> Op:
    size, shift = rng.choice([2, 3]), rng.choice([1, 2, 3])
    return Op(
        f"window({size}, {shift}).flat_map(itself)",
        lambda dataset, _: dataset.window(size, shift).flat_map(lambda window: window),
        is_stateful=True,
        needs_order=True,
    )


def _group(rng: random.Random) -> Op:
    classes, size = rng.choice([2, 3]), rng.choice([2, 3])
    return Op(
        f"group_by_window(x % {classes}, {size})",
        lambda dataset, _: dataset.group_by_window(
            lambda x: x % classes, lambda _key, group: group.map(lambda x: x + 1), window_size=size
        ),
        is_stateful=True,
    )


def _interleave(rng: random.Random) -> Op:
    cycle, block, seed = rng.choice([1, 2, 3]), rng.choice([1, 2]), _seed(rng)
    calls, any_order = rng.choice([(None, False), (2, False), (2, True)])
    return Op(
        f"interleave(shuffled {seed}, {cycle}, {block}, calls={calls}, any_order={any_order})",
        lambda dataset, _: dataset.interleave(
            lambda x: Dataset.range(10 * (x % 97), 10 * (x % 97) + 3).shuffle(3, seed=seed),
            cycle_length=cycle,
            block_length=block,
            num_parallel_calls=calls,
            deterministic=not any_order,
        ),
        is_stateful=True,
        by_chance=any_order,
        needs_order=seed is None,
    )


def _flat_map_shared(rng: random.Random) -> Op:
    seed, passes = _seed(rng), rng.choice([1, 2])

    def apply(dataset: Ints, _: Path) -> Ints:
        shared = Dataset.range(3).shuffle(3, seed=seed).repeat(passes)
        return dataset.flat_map(lambda x: shared.map(lambda y: x + y))

    return Op(f"flat_map(shared shuffle {seed}, repeat({passes}))", apply, is_stateful=True)


def _concatenate(rng: random.Random) -> Op:  # like the others
    return Op("concatenate(itself)", lambda dataset, _: dataset.concatenate(dataset), is_stateful=True)


def _zip(rng: random.Random) -> Op:
    passes = rng.choice([1, 2])
    return Op(
        f"zip(itself, itself.repeat({passes}))",
        lambda dataset, _: Dataset.zip(dataset, dataset.repeat(passes)).map(lambda a, b: a * 1000 + b),
        is_stateful=True,
        needs_order=True,
    )


def _sample(rng: random.Random) -> Op:
    seed, again = _seed(rng), rng.random() < 0.5
    return Op(
        f"sample(itself, itself.map, {seed}, {again})",
        lambda dataset, _: Dataset.sample_from_datasets(
            [dataset, dataset.map(lambda x: x + 5000)], [0.6, 0.4], seed=seed, rerandomize_each_iteration=again
        ),
        is_stateful=True,
        needs_order=True,
    )


def _choose(rng: random.Random) -> Op:  # like the others
    return Op(
        "choose(itself, itself.shuffle)",
        lambda dataset, _: Dataset.choose_from_datasets(
            [dataset, dataset.shuffle(3, seed=4)],
            Dataset.range(60).map(lambda x: x * x % 2),
            stop_on_empty_dataset=False,
        ),
        is_stateful=True,
        needs_order=True,
    )


def _map(rng: random.Random) -> Op:
    calls, any_order = rng.choice([(None, False), (2, False), (3, True)])
    return Op(
        f"map(calls={calls}, any_order={any_order})",
        lambda dataset, _: dataset.map(lambda x: x * 3 % 10007, num_parallel_calls=calls, deterministic=not any_order),
        is_stateful=calls is not None,
        by_chance=any_order,
    )


def _random_map(rng: random.Random) -> Op:
    seed, calls = _seed(rng), rng.choice([None, 2])
    return Op(
        f"random_map({seed}, calls={calls})",
        lambda dataset, _: dataset.random_map(
            lambda draws, x: x * 10 + draws.integers(10), seed=seed, num_parallel_calls=calls
        ),
        is_stateful=True,
        needs_order=True,
    )


def _failing(rng: random.Random) -> Op:
    is_ignored = rng.random() < 0.6

    def check(x: Any) -> Any:
        if x % 5 == 3:
            raise ValueError(f"bad {int(x)}")
        return x

    def apply(dataset: Ints, _: Path) -> Ints:
        found = dataset.map(check)
        return found.ignore_errors(log_warning=False) if is_ignored else found

    return Op(f"map(fails){'.ignore_errors()' if is_ignored else ''}", apply)


def _cache(rng: random.Random) -> Op:
    in_files = rng.random() < 0.4
    return Op(
        f"cache({'file' if in_files else ''})",
        lambda dataset, folder: dataset.cache(str(folder) if in_files else ""),
        is_stateful=True,
        keeps_order=True,
    )


def _snapshot(rng: random.Random) -> Op:
    shards = rng.choice([1, 2])
    return Op(
        f"snapshot(shards={shards})",
        lambda dataset, folder: dataset.snapshot(
            str(folder), shard_func=None if shards == 1 else lambda x: np.int64(x % 2)
        ),
        is_stateful=True,
        keeps_order=True,
    )


def _prefetch(rng: random.Random) -> Op:
    size = rng.choice([1, 3])
    return Op(f"prefetch({size})", lambda dataset, _: dataset.prefetch(size), is_stateful=True)


def _unique(rng: random.Random) -> Op:  # like the others
    return Op("unique()", lambda dataset, _: dataset.unique(), is_stateful=True)


def _scan(rng: random.Random) -> Op:  # like the others
    return Op(
        "scan(sum)",
        lambda dataset, _: dataset.scan(np.int64(0), lambda total, x: ((total + x) % 1009, (total + x) % 1009)),
        is_stateful=True,
        needs_order=True,
    )


def _enumerate(rng: random.Random) -> Op:  # like the others
    return Op(
        "enumerate().map",
        lambda dataset, _: dataset.enumerate().map(lambda i, x: i * 100 + x % 100),
        needs_order=True,
    )


def _resample(rng: random.Random) -> Op:
    initial, seed = rng.choice([[0.5, 0.5], None]), _seed(rng)
    return Op(
        f"rejection_resample({initial}, {seed})",
        lambda dataset, _: dataset.rejection_resample(lambda x: x % 2, [0.3, 0.7], initial, seed=seed).map(
            lambda _label, x: x
        ),
        is_stateful=True,
        needs_order=True,
    )


OPS: list[Callable[[random.Random], Op]] = [
    *itertools.repeat(_shuffle, 4),
    *itertools.repeat(_repeat, 3),
    _repeat_and_take,
    _take,
    _skip,
    _batch,
    _window,
    _group,
    _interleave,
    _flat_map_shared,
    _concatenate,
    _zip,
    _sample,
    _choose,
    _map,
    _map,
    _random_map,
    _failing,
    _cache,
    _cache,
    _snapshot,
    _prefetch,
    _unique,
    _scan,
    _enumerate,
    _resample,
]


@dataclass
class Tried:
    """The counts of a search."""

    chains: int = 0
    resumes: int = 0
    refused: int = 0
    skipped: int = 0

    def add(self, other: Tried) -> None:
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def check(number: int, folder: Path) -> Tried:
    """Interrupt and resume the chain with this number, and compare.

    Raises:
        AssertionError: if a resumed run differs; the message has the number.
    """
    made = chain(number)
    try:
        return _check(made, random.Random(number + 1), folder)
    except BaseException as error:
        error.add_note(f"chain {number}: {made!r}")
        raise


def _check(made: Chain, rng: random.Random, folder: Path) -> Tried:
    folders = (_made(folder / str(index)) for index in itertools.count())
    first = next(folders)
    dataset = made.build(first)
    for _ in range(rng.choice([0, 0, 1, 2])):  # earlier epochs, complete or not
        with iter(dataset) as earlier:
            advanced(earlier, rng.choice([3, LENGTH_MAX]))
    with iter(dataset) as iterator:
        found = advanced(iterator, rng.randint(0, 12))
        state = _state(iterator, rng, folder)
        place = len(found)
        if state is None:
            return Tried(chains=1, refused=1)
        found += advanced(iterator, LENGTH_MAX - place)
        if len(found) >= LENGTH_MAX or any(isinstance(outcome, OSError) for outcome in found):
            return Tried(skipped=1)  # too long, or two concurrent readers fill one file cache, which is an error
    after = None if made.by_chance else _next_epoch(dataset)

    got = found[:place]
    tried = Tried(chains=1)
    is_shared = rng.random() < 0.3
    for count in reversed(range(rng.randint(1, 3))):
        again = made.build(first if is_shared else next(folders))
        with iter(again) as iterator:
            for _ in range(rng.choice([0, 0, 1])):
                advanced(iterator, 2)  # move it to another position
            try:
                _load(iterator, state)
            except StateError:
                return dataclasses.replace(tried, refused=1)
            tried.resumes += 1
            step = rng.randint(0, max(1, len(found) - len(got))) if count else _REST
            got += advanced(iterator, step)
            if count:
                state = _state(iterator, rng, folder)
                if state is None:
                    return dataclasses.replace(tried, refused=1)
        if not made.by_chance:
            assert_elements_equal(got, found[: len(got)])
    if made.by_chance:
        mine, theirs = Counter(map(repr, got)), Counter(map(repr, found))
        assert mine == theirs, f"lost {theirs - mine}, repeated {mine - theirs}, in {got}"
        return tried
    assert_elements_equal(got, found)
    keeps = any(op.keeps_order for op in made.ops)  # a state of the end does not contain cached elements
    if rng.random() < 0.3 and not is_shared and not keeps:
        assert_elements_equal(_next_epoch(again), after)
    return tried


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _next_epoch(dataset: Ints) -> list[Any]:
    with iter(dataset) as iterator:
        return advanced(iterator, LENGTH_MAX)


def _state(iterator: Any, rng: random.Random, folder: Path) -> Any:
    """Return a state in one of its serialized forms; None if saving it is refused.

    An iterator that has failed has no state: two readers that fill one file cache concurrently are an error.
    """
    try:
        if rng.random() < 0.3:
            checkpoint.save(str(folder / "state"), iterator)
            return folder / "state"
        return to_json(iterator.state_dict())
    except StateError:
        return None
    except ClosedError as error:
        if "FileExistsError" not in str(error):
            raise
        return None


def _load(iterator: Any, state: Any) -> None:
    if isinstance(state, Path):
        checkpoint.restore(str(state), iterator)
    else:
        iterator.load_state_dict(from_json(state))


def main(count: int, first: int) -> int:
    """Try chains; return the number of chains whose elements differ."""
    total, differing = Tried(), 0
    for number in range(first, first + count):
        folder = Path(tempfile.mkdtemp(prefix="chains"))
        try:
            total.add(check(number, folder))
        except Exception:
            differing += 1
            traceback.print_exc()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if (number - first) % 25 == 24:
            sys.stdout.write(f"from {first}: {total}, {differing} differ\n")
            sys.stdout.flush()
    sys.stdout.write(f"from {first}: {total}, {differing} differ\n")
    return differing


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else secrets.randbelow(10**9)) else 0)

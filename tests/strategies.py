"""Hypothesis strategies shared by tests: random pipelines, each beside a model of it in plain Python.

The model works on outcomes: Python values, and a Failure in the place of an element that fails. It goes one element at
a time and knows nothing of chunks, plans or iterators.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dataset import Dataset


@dataclass(frozen=True)
class Failure:
    """An element that fails, and the text of its exception."""

    text: str


@dataclass(frozen=True)
class Step:
    """One op: what it is called, how it is applied to a dataset, and what it makes of outcomes."""

    name: str
    apply: Callable[[Dataset[Any]], Dataset[Any]]
    model: Callable[[list[Any]], list[Any]]


@dataclass(frozen=True)
class Pipeline:
    """A source and steps. ``make`` builds it anew each time, ``model`` says what must come out."""

    steps: tuple[Step, ...]

    def make(self) -> Dataset[Any]:
        dataset: Dataset[Any] = Dataset.range(0)
        for step in self.steps:
            dataset = step.apply(dataset)
        return dataset

    def model(self) -> list[Any]:
        outcomes: list[Any] = []
        for step in self.steps:
            outcomes = step.model(outcomes)
        return outcomes

    def __repr__(self) -> str:
        return " -> ".join(step.name for step in self.steps)


def plain(element: Any) -> Any:
    """An element as Python values: ints, lists for arrays, tuples; a Failure for an exception."""
    if isinstance(element, Exception):
        return Failure(str(element))
    if isinstance(element, tuple):
        return tuple(map(plain, element))
    return element.tolist() if isinstance(element, np.ndarray | np.generic) else element


def good(outcomes: list[Any]) -> list[Any]:
    return [outcome for outcome in outcomes if not isinstance(outcome, Failure)]


def each(function: Callable[[Any], list[Any]]) -> Callable[[list[Any]], list[Any]]:
    """The model of an op that turns each element into outcomes, and passes failures on."""

    def model(outcomes: list[Any]) -> list[Any]:
        parts = ([outcome] if isinstance(outcome, Failure) else function(outcome) for outcome in outcomes)
        return list(itertools.chain.from_iterable(parts))

    return model


# Sources: all give ints


def _range(n: int) -> Step:
    return Step(f"range({n})", lambda _: Dataset.range(n), lambda _: list(range(n)))


def _slices(n: int) -> Step:
    return Step(f"slices({n})", lambda _: Dataset.from_tensor_slices(np.arange(n)), lambda _: list(range(n)))


def _generator(n: int) -> Step:
    return Step(f"generator({n})", lambda _: Dataset.from_generator(lambda: range(n)), lambda _: list(range(n)))


def _broken_generator(n: int) -> Step:
    def generate() -> Any:
        yield from range(n)
        raise ValueError("over")

    model = [*range(n), Failure("over")]
    return Step(f"broken_generator({n})", lambda _: Dataset.from_generator(generate), lambda _: list(model))


SOURCES = st.builds(
    lambda kind, n: kind(n),
    st.sampled_from([_range, _range, _slices, _slices, _generator, _broken_generator]),
    st.integers(0, 24),
)


# Steps that keep whatever an element is


def _counted(outcomes: list[Any], count: int) -> int:
    """The number of outcomes with ``count`` good ones among them, the last of those included."""
    positions = [i for i, outcome in enumerate(outcomes) if not isinstance(outcome, Failure)]
    return 0 if not count else positions[count - 1] + 1 if count <= len(positions) else len(outcomes)


def _take(n: int) -> Step:
    return Step(f"take({n})", lambda d: d.take(n), lambda o: list(o) if n < 0 else o[: _counted(o, n)])


def _skip(n: int) -> Step:
    def model(outcomes: list[Any]) -> list[Any]:
        end = len(outcomes) if n < 0 else _counted(outcomes, n)
        return [outcome for outcome in outcomes[:end] if isinstance(outcome, Failure)] + outcomes[end:]

    return Step(f"skip({n})", lambda d: d.skip(n), model)


def _shard(n: int, index: int) -> Step:
    def model(outcomes: list[Any]) -> list[Any]:
        counter = itertools.count()
        return [outcome for outcome in outcomes if isinstance(outcome, Failure) or next(counter) % n == index]

    return Step(f"shard({n}, {index})", lambda d: d.shard(n, index), model)


def _repeat(n: int) -> Step:
    return Step(f"repeat({n})", lambda d: d.repeat(n), lambda o: o * n)


def _endless(n: int) -> Step:
    def model(outcomes: list[Any]) -> list[Any]:
        if not good(outcomes):
            return list(outcomes) if n else []
        passes = outcomes * (n // len(good(outcomes)) + 1)
        return passes[: _counted(passes, n)]

    return Step(f"repeat() -> take({n})", lambda d: d.repeat().take(n), model)


def _cache(n: int) -> Step:
    name = f"cache() -> repeat({n})"
    return Step(name, lambda d: d.cache().repeat(n), lambda o: o + good(o) * (n - 1) if n else [])


def _concatenate(n: int) -> Step:
    """With itself, shortened."""
    return Step(
        f"concatenate(take({n}))", lambda d: d.concatenate(d.take(n)), lambda o: o + o[: _counted(o, n)] if n else o
    )


def _prefetch(n: int) -> Step:
    return Step(f"prefetch({n})", lambda d: d.prefetch(n), list)


_SMALL = st.integers(0, 7)
KEEPING = st.one_of(
    st.builds(_take, st.integers(-1, 9)),
    st.builds(_skip, st.sampled_from([0, 0, 1, 2, 3, 5, -1])),
    st.integers(1, 4).flatmap(lambda n: st.builds(_shard, st.just(n), st.integers(0, n - 1))),
    st.builds(_repeat, st.integers(0, 3)),
    st.builds(_endless, st.integers(0, 12)),
    st.builds(_concatenate, _SMALL),
    st.builds(_prefetch, st.integers(0, 3)),
)
CACHING = st.builds(_cache, st.integers(0, 3))


# Steps by the kind of element: an int, a pair of ints, a batch of ints, a batch of pairs


def _fail(modulus: int, rest: int) -> Step:
    def fail(x: Any) -> Any:
        if int(x) % modulus == rest:
            raise ValueError(f"bad {int(x)}")
        return x

    model = each(lambda x: [Failure(f"bad {x}") if x % modulus == rest else x])
    return Step(f"map(fail at {rest} mod {modulus})", lambda d: d.map(fail), model)


def _batch(size: int, drop: bool, padded: bool) -> Callable[[bool], Step]:
    """As in tf.data, an element that fails takes what its batch had so far with it."""

    def make(pairs: bool) -> Step:
        def stack(rows: list[Any]) -> Any:
            return tuple(map(list, zip(*rows, strict=True))) if pairs else rows

        def model(outcomes: list[Any]) -> list[Any]:
            made, waiting = [], []
            for outcome in outcomes:
                if isinstance(outcome, Failure):
                    made.append(outcome)
                    waiting = []
                    continue
                waiting.append(outcome)
                if len(waiting) == size:
                    made.append(stack(waiting))
                    waiting = []
            return [*made, stack(waiting)] if waiting and not drop else made

        def apply(dataset: Dataset[Any]) -> Dataset[Any]:
            return dataset.padded_batch(size, drop_remainder=drop) if padded else dataset.batch(size, drop)

        return Step(f"{'padded_' * padded}batch({size}, {drop})", apply, model)

    return make


def _interleave(cycle: int, block: int) -> Step:
    """tf.data's algorithm: an ended input leaves its place empty until the next turn; failures do not pass the turn."""

    def inner(x: int) -> list[int]:
        return [x + 100 * i for i in range(x % 4)]

    def model(outcomes: list[Any]) -> list[Any]:
        waiting, made = list(outcomes), []
        slots: list[list[int] | None] = [None] * cycle
        turn = 0
        while waiting or any(slot is not None for slot in slots):
            if slots[turn] is None and waiting:
                first = waiting.pop(0)
                if isinstance(first, Failure):
                    made.append(first)
                    continue
                slots[turn] = inner(first)
            slot = slots[turn]
            if slot is not None:
                made.extend(slot[:block])
                slots[turn] = slot[block:] if len(slot) >= block else None
            turn = (turn + 1) % cycle
        return made

    def dataset_of(x: Any) -> Dataset[Any]:
        return Dataset.range(x, x + 100 * (x % 4), 100)

    return Step(
        f"interleave({cycle}, {block})",
        lambda d: d.interleave(dataset_of, cycle_length=cycle, block_length=block),
        model,
    )


def _flat_map() -> Step:
    return Step(
        "flat_map(range(x % 4))",
        lambda d: d.flat_map(lambda x: Dataset.range(x % 4)),
        each(lambda x: list(range(x % 4))),
    )


def _window(size: int, shift: int, stride: int, drop: bool) -> Step:
    """An element that fails takes its windows with it; one between windows is passed over."""

    def model(outcomes: list[Any]) -> list[Any]:
        made: list[Any] = []
        for start in range(0, len(outcomes), shift):
            span = (size - 1) * stride + 1
            if drop and start + span > len(outcomes):
                break
            window = outcomes[start : start + span : stride]
            made += [outcome for outcome in window if isinstance(outcome, Failure)][:1] or window
        return made

    return Step(
        f"window({size}, {shift}, {stride}, {drop}) -> flat_map(itself)",
        lambda d: d.window(size, shift, stride, drop).flat_map(lambda window: window),
        model,
    )


def _group(keys: int, size: int) -> Step:
    def model(outcomes: list[Any]) -> list[Any]:
        made: list[Any] = []
        groups: dict[int, list[Any]] = {}
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                made.append(outcome)
                continue
            group = groups.setdefault(outcome % keys, [])
            group.append(outcome)
            if len(group) == size:
                made.append(groups.pop(outcome % keys))
        return made + [groups[key] for key in sorted(groups)]

    return Step(
        f"group_by_window(x % {keys}, batch, {size})",
        lambda d: d.group_by_window(lambda x: x % keys, lambda _, window: window.batch(size), size),
        model,
    )


def _zip_range(n: int) -> Step:
    """A failure takes the number beside it with it; as in tf.data, it comes before the end of the numbers is seen."""

    def model(outcomes: list[Any]) -> list[Any]:
        pairs = zip(outcomes, range(10, 10 + n), strict=False)
        late = itertools.takewhile(lambda outcome: isinstance(outcome, Failure), outcomes[n:])
        return [x if isinstance(x, Failure) else (x, number) for x, number in pairs] + list(late)

    return Step(f"zip(range({n}))", lambda d: Dataset.zip(d, Dataset.range(10, 10 + n)), model)


def _enumerate(start: int) -> Step:
    def model(outcomes: list[Any]) -> list[Any]:
        return [x if isinstance(x, Failure) else (number, x) for number, x in enumerate(outcomes, start)]

    return Step(f"enumerate({start})", lambda d: d.enumerate(start), model)


def _map(name: str, function: Callable[..., Any], model: Callable[[Any], Any]) -> Step:
    return Step(f"map({name})", lambda d: d.map(function), each(lambda x: [model(x)]))


def _filter(name: str, function: Callable[..., Any], model: Callable[[Any], bool]) -> Step:
    return Step(f"filter({name})", lambda d: d.filter(function), each(lambda x: [x] if model(x) else []))


def _unbatch(pairs: bool) -> Step:
    return Step("unbatch", lambda d: d.unbatch(), each(lambda b: list(zip(*b, strict=True)) if pairs else list(b)))


STEPS: dict[str, list[tuple[st.SearchStrategy[Step], str]]] = {
    "int": [
        (st.just(_map("x * 2 + 1", lambda x: x * 2 + 1, lambda x: x * 2 + 1)), "int"),
        (st.just(_map("int(x) // 2", lambda x: int(x) // 2, lambda x: x // 2)), "int"),
        (st.just(_map("(x, -x)", lambda x: (x, -x), lambda x: (x, -x))), "pair"),
        (st.integers(2, 9).flatmap(lambda m: st.builds(_fail, st.just(m), st.integers(0, m - 1))), "int"),
        (st.just(_filter("x % 3 != 0", lambda x: x % 3 != 0, lambda x: x % 3 != 0)), "int"),
        (st.just(_filter("odd", lambda x: bool(int(x) & 1), lambda x: x % 2 == 1)), "int"),
        (st.just(_flat_map()), "int"),
        (st.builds(_interleave, st.integers(1, 3), st.integers(1, 3)), "int"),
        (st.builds(_window, st.integers(1, 4), st.integers(1, 6), st.integers(1, 3), st.booleans()), "int"),
        (st.builds(_group, st.integers(1, 4), st.integers(1, 5)), "ints"),
        (st.builds(_zip_range, st.integers(0, 15)), "pair"),
        (st.builds(_enumerate, st.integers(-2, 5)), "pair"),
        (st.builds(_batch, st.integers(1, 6), st.booleans(), st.booleans()).map(lambda make: make(False)), "ints"),
    ],
    "pair": [
        (st.just(_map("a + b", lambda a, b: a + b, lambda p: p[0] + p[1])), "int"),
        (st.just(_map("(b, a)", lambda a, b: (b, a), lambda p: (p[1], p[0]))), "pair"),
        (st.just(_filter("a <= b", lambda a, b: a <= b, lambda p: p[0] <= p[1])), "pair"),
        (st.builds(_batch, st.integers(1, 6), st.booleans(), st.booleans()).map(lambda make: make(True)), "pairs"),
    ],
    "ints": [
        (st.just(_unbatch(False)), "int"),
        (st.just(_map("sum", lambda b: b.sum(), sum)), "int"),
        (st.just(_filter("even sum", lambda b: b.sum() % 2 == 0, lambda b: sum(b) % 2 == 0)), "ints"),
    ],
    "pairs": [
        (st.just(_unbatch(True)), "pair"),
        (st.just(_map("a - b", lambda a, b: a - b, lambda p: [x - y for x, y in zip(*p, strict=True)])), "ints"),
    ],
}


@st.composite
def pipelines(draw: st.DrawFn, length_max: int = 6, *, caches: bool = True) -> Pipeline:
    """A random pipeline whose outcomes are known."""
    steps, kind = [draw(SOURCES)], "int"
    keeping = st.one_of(KEEPING, CACHING) if caches else KEEPING
    for _ in range(draw(st.integers(0, length_max))):
        table = [(keeping, kind), *STEPS[kind], *STEPS[kind]]
        strategy, kind = table[draw(st.integers(0, len(table) - 1))]
        steps.append(draw(strategy))
        if len(Pipeline(tuple(steps)).model()) > 200:
            steps.append(_take(20))
    return Pipeline(tuple(steps))


def shuffles() -> st.SearchStrategy[Step]:
    """A shuffle, which has no model: apply it where only the set of elements, or a comparison of runs, matters."""

    def make(size: int, seed: int, reshuffle: bool) -> Step:
        return Step(f"shuffle({size}, {seed}, {reshuffle})", lambda d: d.shuffle(size, seed, reshuffle), list)

    return st.builds(make, st.sampled_from([1, 2, 3, 7, 30, -2]), st.integers(0, 3), st.booleans())

"""Steps without pipelines in them. Each is a function of ``draw`` and the kind of the elements before it.

Where tf.data's order of things is not obvious, the model says what it does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chains import kinds
from chains.kinds import INT, TEXT, Leaf, number, number_in, taking
from chains.model import END, KNOWN_DIFFERENCES, Failure, Open, Step, each, streaming
from dataset import TensorSpec

Drawn = tuple[Step, Any]
ROW = Leaf("int", 1)
PASSES = st.sampled_from([2, 1, 3, 2, 3, 0])


# Steps that keep whatever an element is


def take(draw: st.DrawFn, kind: Any) -> Drawn:
    return take_of(draw(st.sampled_from([1, 2, 3, 4, 5, 6, 9, 0, -1]))), kind


def take_of(n: int) -> Step:
    """Failures do not count."""

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        left = n
        while left != 0 and (outcome := next(outcomes, END)) is not END:
            yield outcome
            left -= not isinstance(outcome, Failure)

    return Step(f"take({n})", lambda _, d: d.take(n), streaming(run))


def skip(draw: st.DrawFn, kind: Any) -> Drawn:
    """Failures do not count, and are not left out. In tf.data, one makes the count begin anew."""
    n = draw(st.sampled_from([0, 0, 1, 2, 3, 5]))

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        left = n
        for outcome in outcomes if n >= 0 else ():
            if isinstance(outcome, Failure) or left == 0:
                if 0 < left < n:
                    KNOWN_DIFFERENCES.append("skip: a failure among what is skipped")
                yield outcome
            else:
                left -= 1

    return Step(f"skip({n})", lambda _, d: d.skip(n), streaming(run)), kind


def shard(draw: st.DrawFn, kind: Any) -> Drawn:
    """Failures do not count. In tf.data, one makes counting begin anew behind the last element that was given."""
    n = draw(st.integers(1, 4))
    index = draw(st.integers(0, n - 1))

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        position = passed = 0
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                if passed and position % n != index:
                    KNOWN_DIFFERENCES.append("shard: a failure among what is skipped")
                yield outcome
                continue
            if position % n == index:
                yield outcome
                passed = 0
            else:
                passed += 1
            position += 1

    return Step(f"shard({n}, {index})", lambda _, d: d.shard(n, index), streaming(run)), kind


def repeat(draw: st.DrawFn, kind: Any) -> Drawn:
    n = draw(PASSES)

    def model(source: Open) -> Open:
        return lambda: itertools.chain.from_iterable(source() for _ in range(n))

    return Step(f"repeat({n})", lambda _, d: d.repeat(n), model), kind


def endless(draw: st.DrawFn, kind: Any) -> Drawn:
    """The end comes with the first pass that gives nothing."""

    def model(source: Open) -> Open:
        def run() -> Iterator[Any]:
            empty = False
            while not empty:
                empty = True
                for outcome in source():
                    empty = False
                    yield outcome

        return run

    return Step("repeat()", lambda _, d: d.repeat(), model), kind


def cache(draw: st.DrawFn, kind: Any) -> Drawn:
    """Twice in a row, or more; later passes leave out what failed in the first."""
    n = draw(PASSES)

    def model(source: Open) -> Open:
        kept: list[Any] = []

        def one_pass() -> Iterator[Any]:
            if kept:
                yield from kept[0]
                return
            seen = []
            for outcome in source():
                yield outcome
                if not isinstance(outcome, Failure):
                    seen.append(outcome)
            kept.append(seen)

        return lambda: itertools.chain.from_iterable(one_pass() for _ in range(n))

    return Step(f"cache() -> repeat({n})", lambda _, d: d.cache().repeat(n), model), kind


def prefetch(draw: st.DrawFn, kind: Any) -> Drawn:
    n = draw(st.integers(0, 3))
    return Step(f"prefetch({n})", lambda _, d: d.prefetch(n), lambda source: source), kind


def filter_number(draw: st.DrawFn, kind: Any) -> Drawn:
    modulus = draw(st.integers(2, 4))

    def apply(lib: Any, dataset: Any) -> Any:
        return dataset.filter(taking(kind, lambda e: number_in(lib, kind, e) % modulus != 0))

    return Step(f"filter(number % {modulus})", apply, each(lambda e: [e] if number(e) % modulus else [])), kind


def filter_that_fails(draw: st.DrawFn, kind: Any) -> Drawn:
    """With a predicate that is plain Python."""
    check, model, shown = checks(draw)

    def apply(lib: Any, dataset: Any) -> Any:
        odd = lib.call(lambda x: np.bool_(check(x) % 2), TensorSpec((), np.bool_))
        return dataset.filter(taking(kind, lambda e: odd(number_in(lib, kind, e))))

    def one(element: Any) -> list[Any]:
        found = model(number(element))
        return [found] if isinstance(found, Failure) else [element] * (found % 2)

    return Step(f"filter(odd, {shown})", apply, each(one)), kind


def checks(draw: st.DrawFn) -> tuple[Callable[[Any], Any], Callable[[int], Any], str]:
    """A function that returns a number but fails for some; a model of it, and how it is shown."""
    modulus = draw(st.integers(2, 9))
    rest = draw(st.integers(0, modulus - 1))

    def check(x: Any) -> Any:
        if int(x) % modulus == rest:
            raise ValueError(f"bad {int(x)}")
        return x

    return check, lambda x: Failure(f"bad {x}") if x % modulus == rest else x, f"fails at {rest} mod {modulus}"


# Steps that change the kind


def mapped(name: str, before: Any, after: Any, function: Callable[[Any, Any], Any], model: Callable[[Any], Any]) -> Any:
    """A map: ``function`` takes the library and an element."""

    def apply(lib: Any, dataset: Any) -> Any:
        return dataset.map(taking(before, lambda element: function(lib, element)))

    return Step(f"map({name})", apply, each(lambda element: [model(element)])), after


def map_arithmetic(draw: st.DrawFn, kind: Any) -> Drawn:
    """A function that is run over whole columns."""
    function = lambda x: x * 2 + 1
    return Step("map(x * 2 + 1)", lambda _, d: d.map(function), each(lambda x: [function(x)])), INT


def map_plain_python(draw: st.DrawFn, kind: Any) -> Drawn:
    halve = lambda x: np.int64(int(x) // 2)
    return mapped(
        "int(x) // 2", kind, INT, lambda lib, x: lib.call(halve, TensorSpec((), np.int64))(x), lambda x: x // 2
    )


def map_that_fails(draw: st.DrawFn, kind: Any) -> Drawn:
    check, model, shown = checks(draw)
    return mapped(shown, kind, INT, lambda lib, x: lib.call(check, TensorSpec((), np.int64))(x), model)


def map_number(draw: st.DrawFn, kind: Any) -> Drawn:
    return mapped("number", kind, INT, lambda lib, e: number_in(lib, kind, e), number)


def map_pair(draw: st.DrawFn, kind: Any) -> Drawn:
    """Both parts are run over whole columns."""
    return Step("map((x, -x))", lambda _, d: d.map(lambda x: (x, -x)), each(lambda x: [(x, -x)])), (INT, INT)


def map_text(draw: st.DrawFn, kind: Any) -> Drawn:
    show = lambda x: b"%d" % x
    return mapped("text", kind, TEXT, lambda lib, x: lib.call(show, TensorSpec((), bytes))(x), show)


def map_row(draw: st.DrawFn, kind: Any) -> Drawn:
    """To rows whose length varies."""
    n = draw(st.integers(1, 3))
    return mapped(
        f"row of x % {n} + 1", kind, ROW, lambda lib, x: lib.fill([x % n + 1], x), lambda x: [x] * (x % n + 1)
    )


def map_dict(draw: st.DrawFn, kind: Any) -> Drawn:
    after = {"b": kind, "a": INT}
    return mapped(
        "{b: e, a: number}",
        kind,
        after,
        lambda lib, e: {"b": e, "a": number_in(lib, kind, e)},
        lambda e: {"b": e, "a": number(e)},
    )


def map_part(draw: st.DrawFn, kind: Any) -> Drawn:
    """To one component of a tuple or dict."""
    key = draw(st.sampled_from(list(kind) if isinstance(kind, dict) else list(range(len(kind)))))
    return mapped(f"part {key}", kind, kind[key], lambda _, e: e[key], lambda e: e[key])


def map_swapped(draw: st.DrawFn, kind: Any) -> Drawn:
    return mapped("(b, a)", kind, (kind[1], kind[0]), lambda _, e: (e[1], e[0]), lambda e: (e[1], e[0]))


def enumerated(draw: st.DrawFn, kind: Any) -> Drawn:
    """Failures use up their number."""
    start = draw(st.integers(-2, 5))

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        return (x if isinstance(x, Failure) else (i, x) for i, x in enumerate(outcomes, start))

    return Step(f"enumerate({start})", lambda _, d: d.enumerate(start), streaming(run)), (INT, kind)


def batch(draw: st.DrawFn, kind: Any) -> Drawn:
    size, drop = draw(st.integers(1, 6)), draw(st.booleans())
    model = batches(size, drop, lambda rows: kinds.stack(kind, rows))
    return Step(f"batch({size}, {drop})", lambda _, d: d.batch(size, drop), model), kinds.batched(kind)


def padded_batch(draw: st.DrawFn, kind: Any) -> Drawn:
    size, drop = draw(st.integers(1, 6)), draw(st.booleans())
    model = batches(size, drop, lambda rows: kinds.pad(kind, rows))

    def apply(_: Any, dataset: Any) -> Any:
        return dataset.padded_batch(size, drop_remainder=drop)

    return Step(f"padded_batch({size}, {drop})", apply, model), kinds.batched(kind)


def batches(size: int, drop: bool, stack: Callable[[list[Any]], Any]) -> Callable[[Open], Open]:
    """An element that fails takes what its batch had so far with it."""

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        rows: list[Any] = []
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                yield outcome
                rows = []
                continue
            rows.append(outcome)
            if len(rows) == size:
                yield stack(rows)
                rows = []
        if rows and not drop:
            yield stack(rows)

    return streaming(run)


def unbatch(draw: st.DrawFn, kind: Any) -> Drawn:
    model = each(lambda element: kinds.unstack(kind, element))
    return Step("unbatch()", lambda _, d: d.unbatch(), model), kinds.unbatched(kind)

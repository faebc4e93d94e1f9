"""Steps that preserve the kind of the elements. Each is a function of ``draw`` and the kind of the input elements.

The models document tf.data's order of operations where it is not obvious.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chains.kinds import number, number_in, taking
from chains.model import END, KNOWN_DIFFERENCES, Failure, Open, Step, each, streaming
from dataset import TensorSpec

Drawn = tuple[Step, Any]
PASSES = st.sampled_from([2, 1, 3, 2, 3, 0])


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
    """Failures do not count and are not skipped. In tf.data, a failure restarts the count."""
    n = draw(st.sampled_from([0, 0, 1, 2, 3, 5, -1]))

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
    """Failures do not count. In tf.data, a failure restarts the count after the last element that was returned."""
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
    """The first pass that returns only failures is the last one."""

    def model(source: Open) -> Open:
        def run() -> Iterator[Any]:
            empty = False
            while not empty:
                empty = True
                for outcome in source():
                    empty = empty and isinstance(outcome, Failure)
                    yield outcome

        return run

    return Step("repeat()", lambda _, d: d.repeat(), model), kind


def cache(draw: st.DrawFn, kind: Any) -> Drawn:
    """Two or more times in a row; later passes omit the failures of the first."""
    n = draw(PASSES)
    return Step(f"cache() -> repeat({n})", lambda _, d: d.cache().repeat(n), model_of_cache(n)), kind


def model_of_cache(n: int) -> Callable[[Open], Open]:
    """Over ``n`` passes in a row."""

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

    return model


def prefetch(draw: st.DrawFn, kind: Any) -> Drawn:
    n = draw(st.integers(0, 3))
    return Step(f"prefetch({n})", lambda _, d: d.prefetch(n), lambda source: source), kind


def filter_number(draw: st.DrawFn, kind: Any) -> Drawn:
    modulus = draw(st.integers(2, 4))

    def apply(lib: Any, dataset: Any) -> Any:
        return dataset.filter(taking(kind, lambda e: number_in(lib, kind, e) % modulus != 0))

    return Step(f"filter(number % {modulus})", apply, each(lambda e: [e] if number(e) % modulus else [])), kind


def filter_that_fails(draw: st.DrawFn, kind: Any) -> Drawn:
    """With a predicate in plain Python."""
    check, model, shown = checks(draw)

    def apply(lib: Any, dataset: Any) -> Any:
        odd = lib.call(lambda x: np.bool_(check(x) % 2), TensorSpec((), np.bool_))
        return dataset.filter(taking(kind, lambda e: odd(number_in(lib, kind, e))))

    def one(element: Any) -> list[Any]:
        found = model(number(element))
        return [found] if isinstance(found, Failure) else [element] * (found % 2)

    return Step(f"filter(odd, {shown})", apply, each(one)), kind


def checks(draw: st.DrawFn) -> tuple[Callable[[Any], Any], Callable[[int], Any], str]:
    """Draw a function that returns a number but fails for some numbers; return it with its model and its text."""
    modulus = draw(st.integers(2, 9))
    rest = draw(st.integers(0, modulus - 1))

    def check(x: Any) -> Any:
        if int(x) % modulus == rest:
            raise ValueError(f"bad {int(x)}")
        return x

    return check, lambda x: Failure(f"bad {x}") if x % modulus == rest else x, f"fails at {rest} mod {modulus}"

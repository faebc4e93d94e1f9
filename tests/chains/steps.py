"""Steps that preserve the kind of the elements. Each is a function of a generator, the kind, and the scope.

The models document tf.data's order of operations where it is not obvious.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from chains.chain import Step
from chains.kinds import INT, has_windows, is_simple
from chains.model import END, KNOWN_DIFFERENCES, Failure, Open, each, parts, streaming
from chains.names import number

if TYPE_CHECKING:
    from chains.scope import Scope


def number_of(element: Any) -> int:
    """Return the number of an element of the model, as ``number`` does in a library."""
    return int(number(*parts(element)))


def draw_check(rng: random.Random) -> tuple[Callable[[Any], Any], str]:
    """Draw the number of an element that fails for some; return its model and its text."""
    divisor = rng.randint(2, 9)
    rest = rng.randrange(divisor)

    def model(element: Any) -> Any:
        n = number_of(element)
        return Failure(f"bad {n}") if n % divisor == rest else n

    return model, f"checked({divisor}, {rest})"


def seed(rng: random.Random, scope: Scope) -> str:
    return f"seed={rng.choice(['1', '1', '1', '2', '2', '3', '3', '1' if scope.is_modelled else 'None'])}"


def calls(rng: random.Random, scope: Scope, *, often: bool = False) -> tuple[str, bool]:
    """Return the arguments of parallel calls, which may be none, and whether the order is left to chance."""
    if scope.is_modelled or (not often and rng.random() < 0.6):
        return "", False
    by_chance = rng.random() < 0.12
    count = rng.choice(["1", "2", "3", "AUTOTUNE"])
    return f", num_parallel_calls={count}{', deterministic=False' if by_chance else ''}", by_chance


def take(rng: random.Random, kind: Any, scope: Scope) -> Step:
    return take_of(rng.choice([1, 2, 3, 4, 5, 6, 9, 33, 0, -1]), kind)


def take_of(n: int, kind: Any = None) -> Step:
    """Failures do not count."""

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        left = n
        while left != 0 and (outcome := next(outcomes, END)) is not END:
            yield outcome
            left -= not isinstance(outcome, Failure)

    return Step(f".take({n})", kind, streaming(run), needs_order=True)


def skip(rng: random.Random, kind: Any, scope: Scope) -> Step:
    return skip_of(rng.choice([0, 1, 1, 2, 3, 5, -1]), kind)


def skip_of(n: int, kind: Any = None) -> Step:
    """Failures do not count and are not skipped. In tf.data, a failure restarts the count."""

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        left = n
        for outcome in outcomes if n >= 0 else ():
            if isinstance(outcome, Failure) or left == 0:
                if 0 < left < n:
                    KNOWN_DIFFERENCES.append("skip: a failure among what is skipped")
                yield outcome
            else:
                left -= 1

    return Step(f".skip({n})", kind, streaming(run), needs_order=True)


def shard(rng: random.Random, kind: Any, scope: Scope) -> Step:
    """Failures do not count. In tf.data, a failure restarts the count after the last element that was returned."""
    n = rng.randint(1, 4)
    index = rng.randrange(n)

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

    return Step(f".shard({n}, {index})", kind, streaming(run), needs_order=True)


def repeat(rng: random.Random, kind: Any, scope: Scope) -> Step:
    return repeat_of(rng.choice([2, 1, 3, 2, 2, 0 if scope.is_modelled else 3]), kind)


def repeat_of(n: int, kind: Any = None) -> Step:
    def model(source: Open) -> Open:
        return lambda: itertools.chain.from_iterable(source() for _ in range(n))

    return Step(f".repeat({n})", kind, model, is_stateful=True, growth=n)


def endless(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
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

    return Step(".repeat()", kind, model, is_stateful=True) if scope.is_endless else None


def repeat_and_take(rng: random.Random, kind: Any, scope: Scope) -> Step:
    return Step(f".repeat().take({rng.randint(1, 30)})", kind, is_stateful=True, growth=3, needs_order=True)


def cache(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """One or more times in a row; later passes omit the failures of the first."""
    if not scope.has_caches:
        return None
    passes = rng.choice([1, 2, 2, 3])
    folder = ""
    if not (scope.is_modelled or has_windows(kind)) and rng.random() < 0.25:
        folder = f"folder + '/{rng.randrange(10**6)}'"
    op = "snapshot" if folder and rng.random() < 0.4 else "cache"

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

        return lambda: itertools.chain.from_iterable(one_pass() for _ in range(passes))

    text = f".{op}({folder})" + f".repeat({passes})" * (passes > 1)
    return Step(text, kind, model, is_stateful=True, growth=passes, keeps_order=True)


def prefetch(rng: random.Random, kind: Any, scope: Scope) -> Step:
    return Step(f".prefetch({rng.choice([0, 1, 2, 3, 8, 'AUTOTUNE'])})", kind, lambda source: source, is_stateful=True)


def shuffle(rng: random.Random, kind: Any, scope: Scope) -> Step:
    """Its model returns another order: only the set of elements, or a comparison of runs, is right."""
    again = rng.choice(["", "", ", reshuffle_each_iteration=False"])
    text = f".shuffle({rng.choice(['1', '2', '3', '3', '5', '40', 'None'])}, {seed(rng, scope)}{again})"
    return Step(text, kind, lambda source: source, is_stateful=True)


def filter_number(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if has_windows(kind):
        return None
    divisor = rng.randint(2, 4)
    rest = rng.randrange(divisor)
    if kind == INT and rng.randrange(2):
        model = each(lambda n: [n] if n % divisor != rest else [])
        return Step(f".filter(lambda x: x % {divisor} != {rest})", kind, model)
    model = each(lambda element: [element] if number_of(element) % divisor != rest else [])
    return Step(f".filter(others({divisor}, {rest}))", kind, model)


def filter_that_fails(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """With a predicate in plain Python."""
    if has_windows(kind):
        return None
    check, text = draw_check(rng)

    def one(element: Any) -> list[Any]:
        found = check(element)
        return [found] if isinstance(found, Failure) else [element] * (found % 2)

    return Step(f".filter(lambda *e: {text}(*e) % 2 == 1)", kind, each(one))


def take_while(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """Failures of elements and of the predicate are returned, and the elements after them are still taken."""
    if has_windows(kind):
        return None
    check, text = draw_check(rng)
    divisor = rng.randint(2, 9)

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        for outcome in outcomes:
            checked = outcome if isinstance(outcome, Failure) else check(outcome)
            if isinstance(checked, Failure):
                yield checked
            elif checked % divisor != 1:
                yield outcome
            else:
                return

    return Step(f".take_while(lambda *e: {text}(*e) % {divisor} != 1)", kind, streaming(run), needs_order=True)


def ignore_errors(rng: random.Random, kind: Any, scope: Scope) -> Step:
    present = lambda outcomes: (outcome for outcome in outcomes if not isinstance(outcome, Failure))
    return Step(".ignore_errors()", kind, streaming(present))


def unique(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        seen: list[Any] = []  # without failures, so each of them is returned
        for outcome in outcomes:
            if outcome not in seen:
                yield outcome
            if not isinstance(outcome, Failure):
                seen.append(outcome)

    return Step(".unique()", kind, streaming(run), is_stateful=True) if is_simple(kind) else None


def skip_records(rng: random.Random, kind: Any, scope: Scope) -> Step:
    return Step(".skip_records(files.folder / 'skip.jsonl')", kind)

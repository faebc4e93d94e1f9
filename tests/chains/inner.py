"""Steps with datasets for arguments: in parallel, one after the other, and one for each element."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from chains import kinds
from chains.chain import Chain, Step, opened
from chains.kinds import INT
from chains.model import END, Failure, Model, Open, each, list_of, streaming
from chains.steps import calls, draw_check, number_of, repeat_of, seed, skip_of, take_of

if TYPE_CHECKING:
    from chains.scope import Scope


def variant(rng: random.Random, scope: Scope) -> tuple[str, Model]:
    """Draw a variant of the dataset ``d``."""
    steps = [take_of(rng.randint(0, 7)), skip_of(1), repeat_of(2)]
    found: list[tuple[str, Model]] = [("d", lambda source: source)]
    found += [(f"d{step.text}", step.model) for step in steps if step.model]
    if not scope.is_modelled:
        found += [(text, lambda source: source) for text in ("d.shuffle(3, seed=4)", "d.prefetch(1)")]
    return rng.choice(found)


def concatenate(rng: random.Random, kind: Any, scope: Scope) -> Step:
    """Followed by a variant of itself, or by another pipeline of the same kind."""
    other, vary = variant(rng, scope)
    if kind == INT and rng.randrange(3) == 0:
        chain = scope.numbers(rng)
        other, vary = str(chain), lambda _: chain.open()

    def model(source: Open) -> Open:
        second = vary(source)
        return lambda: itertools.chain(source(), second())

    text = f".apply(lambda d: d.concatenate({other}))"
    return Step(text, kind, model, is_stateful=True, growth=2, needs_order="(" in other)


def zipped(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """Both advance if the first has not ended. A failure is returned even if the second ends at the same position."""
    if kinds.has_windows(kind) or not kinds.may_grow(kind):
        return None
    other, vary = variant(rng, scope)
    second_kind = kind
    if rng.randrange(2):
        chain = scope.numbers(rng)
        other, vary, second_kind = str(chain), lambda _: chain.open(), INT
    by_name = rng.randrange(2) == 0
    joined: Callable[[Any, Any], Any] = (lambda a, b: {"x": a, "y": b}) if by_name else (lambda a, b: (a, b))

    def model(source: Open) -> Open:
        second = vary(source)

        def run() -> Iterator[Any]:
            one, two = source(), second()
            while True:
                pair = [next(one, END), END]
                if pair[0] is not END:
                    pair[1] = next(two, END)
                failures = [outcome for outcome in pair if isinstance(outcome, Failure)]
                if failures:
                    yield failures[0]
                if END in pair:
                    return
                if not failures:
                    yield joined(*pair)

        return run

    arguments = f"{{'x': d, 'y': {other}}}" if by_name else f"d, {other}"
    text = f".apply(lambda d: Dataset.zip({arguments}))"
    after = joined(kind, second_kind)
    return Step(text, after, model, is_stateful=True, needs_order=True, reads_twice=True)


def beginning(rng: random.Random) -> tuple[str, Callable[[Any], Any]]:
    """Draw a source of ints that depends on an element: its text, and its model.

    The model is a Failure if the dataset cannot be made.
    """
    n = rng.randint(1, 4)
    check, function = draw_check(rng)

    def modelled(element: Any) -> Any:
        checked = check(element)
        return checked if isinstance(checked, Failure) else list_of(list(range(checked % n + 1)))

    found: list[tuple[str, Callable[[Any], Any]]] = [
        (f"Dataset.range(number(*e) % {n})", lambda e: list_of(list(range(number_of(e) % n)))),
        (f"Dataset.from_tensors(number(*e)).repeat({n})", lambda e: list_of([number_of(e)] * n)),
        (
            "Dataset.from_tensor_slices(stacked(number(*e), 1, -number(*e)))",
            lambda e: list_of([number_of(e), 1, -number_of(e)]),
        ),
        (f"Dataset.range({function}(*e) % {n} + 1)", modelled),
    ]
    return rng.choice(found)


def flat_map(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if kinds.has_windows(kind):
        if not isinstance(kind, kinds.Leaf):
            return None
        function = rng.choice(["joined", "joined", "lambda *w: joined(*w).shuffle(3, seed=1)"])
        return Step(f".flat_map({function})", kind.of, is_stateful=True, growth=2)
    if not scope.depth:
        return None
    if not scope.is_modelled and rng.random() < 0.3:  # one dataset that the function returns several times
        chosen, passes = seed(rng, scope), rng.choice([1, 2])
        shared = f"Dataset.range(3).shuffle(3, {chosen}).repeat({passes})"
        text = f".apply(lambda d, s={shared}: d.flat_map(lambda *e: s.map(lambda x: x + number(*e))))"
        return Step(text, INT, is_stateful=True, growth=3 * passes, needs_order="seed=None" in chosen)
    start, made = beginning(rng)
    steps = scope.inner(rng)

    def one(element: Any) -> Iterable[Any]:
        begun = made(element)
        return [begun] if isinstance(begun, Failure) else opened(steps, begun)()

    inner = Chain(steps or (Step("", INT),))
    text = f".flat_map(lambda *e: {start}{inner})"
    return Step(text, inner.kind, each(one), is_stateful=True, growth=2, needs_order="seed=None" in text)


def interleave(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """An ended input leaves its place empty until the next turn; failures of elements or inputs do not end a turn."""
    arguments, by_chance = calls(rng, scope)
    cycle, block = rng.randint(1, 3), rng.choice([1, 1, 2, 3])
    more = f", cycle_length={cycle}, block_length={block}{arguments})"
    if kinds.has_windows(kind):
        if not isinstance(kind, kinds.Leaf):
            return None
        return Step(f".interleave(joined{more}", kind.of, is_stateful=True, growth=3, by_chance=by_chance)
    if not scope.depth:
        return None
    start, made = beginning(rng)
    steps = scope.inner(rng)

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        slots: list[Iterator[Any] | None] = [None] * cycle
        turn = given = 0
        ended = False
        while not ended or any(slots):
            slot = slots[turn]
            if slot is None and not ended:
                outcome = next(outcomes, END)
                ended = outcome is END
                begun = outcome if ended or isinstance(outcome, Failure) else made(outcome)
                if isinstance(begun, Failure):
                    yield begun
                elif not ended:
                    slots[turn] = opened(steps, begun)()
                continue
            outcome = END if slot is None else next(slot, END)
            if outcome is not END:
                yield outcome
                given += not isinstance(outcome, Failure)
            else:
                slots[turn] = None
            if outcome is END or given == block:
                turn, given = (turn + 1) % cycle, 0

    inner = Chain(steps or (Step("", INT),))
    text = f".interleave(lambda *e: {start}{inner}{more}"
    return Step(
        text,
        inner.kind,
        streaming(run),
        is_stateful=True,
        growth=3,
        by_chance=by_chance,
        needs_order="seed=None" in text,
    )

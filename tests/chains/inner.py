"""Steps with inner pipelines: in parallel, one after the other, and one for each element.

``draw_steps`` and ``draw_pipeline`` are passed in by strategies.py, which has the tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chains.kinds import number, number_in, taking
from chains.model import END, Failure, Open, Pipeline, Step, each, list_of, opened, streaming
from chains.steps import Drawn, checks, take_of
from dataset import TensorSpec

Steps = tuple[Step, ...]


def concatenate_itself(draw: st.DrawFn, kind: Any) -> Drawn:
    """Followed by a shortened copy of itself."""
    n = draw(st.integers(0, 7))
    shorten = take_of(n)

    def model(source: Open) -> Open:
        return lambda: itertools.chain(source(), shorten.model(source)())

    return Step(f"concatenate(itself.take({n}))", lambda _, d: d.concatenate(d.take(n)), model), kind


def concatenate(kind: Any, other: Pipeline) -> Drawn:
    """Followed by another pipeline of the same kind."""

    def model(source: Open) -> Open:
        second = other.open()
        return lambda: itertools.chain(source(), second())

    return Step(f"concatenate({other})", lambda lib, d: d.concatenate(other.make(lib)), model), kind


def zipped(draw: st.DrawFn, kind: Any, other: Pipeline) -> Drawn:
    """Both advance if the first has not ended. A failure is returned even if the second ends at the same position."""
    by_name = draw(st.booleans())
    joined: Callable[[Any, Any], Any] = (lambda a, b: {"x": a, "y": b}) if by_name else (lambda a, b: (a, b))

    def apply(lib: Any, dataset: Any) -> Any:
        second = other.make(lib)
        return lib.Dataset.zip(joined(dataset, second)) if by_name else lib.Dataset.zip(dataset, second)

    def model(source: Open) -> Open:
        second = other.open()

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

    return Step(f"zip({other}{', by name' * by_name})", apply, model), joined(kind, other.kind)


def beginnings(draw: st.DrawFn, kind: Any) -> tuple[str, Callable[[Any, Any], Any], Callable[[Any], Open | Failure]]:
    """Draw a source of ints that depends on an element: its text, the function that makes it, and its model.

    The model is a Failure if the dataset cannot be made.
    """
    choice = draw(st.integers(0, 3))
    n = draw(st.integers(1, 4))
    if choice == 0:
        return (
            f"range(x % {n})",
            lambda lib, e: lib.Dataset.range(number_in(lib, kind, e) % n),
            lambda e: list_of(list(range(number(e) % n))),
        )
    if choice == 1:
        return (
            f"from_tensors(x).repeat({n})",
            lambda lib, e: lib.Dataset.from_tensors(number_in(lib, kind, e)).repeat(n),
            lambda e: list_of([number(e)] * n),
        )
    if choice == 2:
        return (
            "from_tensor_slices([x, 1, -x])",
            lambda lib, e: lib.Dataset.from_tensor_slices(
                lib.stack([number_in(lib, kind, e), lib.const(1, np.int64), -number_in(lib, kind, e)])
            ),
            lambda e: list_of([number(e), 1, -number(e)]),
        )
    check, model, shown = checks(draw)

    def make(lib: Any, element: Any) -> Any:
        checked = lib.call(check, TensorSpec((), np.int64))(number_in(lib, kind, element))
        return lib.Dataset.range(checked % n + 1)

    def modelled(element: Any) -> Open | Failure:
        checked = model(number(element))
        return checked if isinstance(checked, Failure) else list_of(list(range(checked % n + 1)))

    return f"range(x % {n} + 1), {shown}", make, modelled


def followed(steps: Steps, lib: Any, dataset: Any) -> Any:
    for step in steps:
        dataset = step.apply(lib, dataset)
    return dataset


def flat_map(draw: st.DrawFn, kind: Any, steps: Steps, after: Any) -> Drawn:
    shown, make, model_of = beginnings(draw, kind)

    def apply(lib: Any, dataset: Any) -> Any:
        return dataset.flat_map(taking(kind, lambda element: followed(steps, lib, make(lib, element))))

    def one(element: Any) -> Iterable[Any]:
        beginning = model_of(element)
        return [beginning] if isinstance(beginning, Failure) else opened(steps, beginning)()

    model = each(one)
    return Step(f"flat_map({' -> '.join([shown, *(step.name for step in steps)])})", apply, model), after


def interleave(draw: st.DrawFn, kind: Any, steps: Steps, after: Any) -> Drawn:
    """An ended input leaves its place empty until the next turn; failures of elements or inputs do not end a turn."""
    shown, make, model_of = beginnings(draw, kind)
    cycle, block = draw(st.integers(1, 3)), draw(st.integers(1, 3))

    def apply(lib: Any, dataset: Any) -> Any:
        function = taking(kind, lambda element: followed(steps, lib, make(lib, element)))
        return dataset.interleave(function, cycle_length=cycle, block_length=block)

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        slots: list[Iterator[Any] | None] = [None] * cycle
        turn = given = 0
        ended = False
        while not ended or any(slots):
            slot = slots[turn]
            if slot is None and not ended:
                outcome = next(outcomes, END)
                ended = outcome is END
                beginning = outcome if ended or isinstance(outcome, Failure) else model_of(outcome)
                if isinstance(beginning, Failure):
                    yield beginning
                elif not ended:
                    slots[turn] = opened(steps, beginning)()
                continue
            outcome = END if slot is None else next(slot, END)
            if outcome is not END:
                yield outcome
                given += not isinstance(outcome, Failure)
            else:
                slots[turn] = None
            if outcome is END or given == block:
                turn, given = (turn + 1) % cycle, 0

    name = f"interleave({' -> '.join([shown, *(step.name for step in steps)])}, {cycle}, {block})"
    return Step(name, apply, streaming(run)), after

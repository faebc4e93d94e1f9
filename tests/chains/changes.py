"""Steps that change the kind of the elements: maps and batches. Each is a function as in ``steps``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from chains import kinds
from chains.chain import Step
from chains.kinds import INT, ROW, ROWS, TEXT, whole
from chains.model import Failure, Model, each, streaming
from chains.steps import calls, draw_check, number_of, seed

if TYPE_CHECKING:
    from chains.scope import Scope

Mapping = tuple[str, Any, Callable[[Any], Any]]
"""A function: its text, the kind of its results, and its model."""


def row(element: Any) -> list[int]:
    n = number_of(element)
    return [n] * (n % 3 + 1)


def text(element: Any) -> bytes:
    return b"%d" % number_of(element)


def mappings(rng: random.Random, kind: Any) -> list[Mapping]:
    """Return functions of elements of a kind."""
    found: list[Mapping] = [
        ("number", INT, number_of),
        ("text", TEXT, text),
        ("row", ROW, row),
        ("half", INT, lambda e: number_of(e) // 2),
        ("pair", (INT, TEXT), lambda e: (number_of(e), text(e))),
        ("record", {"n": INT, "row": ROW}, lambda e: {"n": number_of(e), "row": row(e)}),
        ("unchanged", whole(kind), whole),
    ]
    if kind == INT:
        found += [
            ("lambda x: x * 3 + 1", INT, lambda x: x * 3 + 1),
            ("lambda x: (x, -x)", (INT, INT), lambda x: (x, -x)),
        ] * 2
    if kinds.may_grow(kind):
        named = lambda e: {"b": whole(e), "a": number_of(e)}
        found.append(("lambda *e: {'b': unchanged(*e), 'a': number(*e)}", {"b": whole(kind), "a": INT}, named))
    if isinstance(kind, tuple | dict):
        key = rng.choice(list(kind) if isinstance(kind, dict) else list(range(len(kind))))
        found.append((f"lambda {'e' if isinstance(kind, dict) else '*e'}: e[{key!r}]", kind[key], lambda e: e[key]))
    if isinstance(kind, tuple) and len(kind) == 2:
        found.append(("lambda a, b: (b, a)", (kind[1], kind[0]), lambda e: (e[1], e[0])))
    return found


def map_(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    return _map(rng, kind, scope, often=False)


def parallel_map(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    return _map(rng, kind, scope, often=True)


def _map(rng: random.Random, kind: Any, scope: Scope, *, often: bool) -> Step | None:
    if kinds.has_windows(kind):
        return None
    function, after, model = rng.choice(mappings(rng, kind))
    arguments, by_chance = calls(rng, scope, often=often)
    return mapped(f"{function}{arguments}", after, lambda e: [model(e)], by_chance=by_chance)


def mapped(text: str, after: Any, model: Callable[[Any], list[Any]], *, by_chance: bool = False) -> Step:
    return Step(f".map({text})", after, each(model), is_stateful="num_parallel_calls" in text, by_chance=by_chance)


def map_number(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    return None if kinds.has_windows(kind) else mapped("number", INT, lambda e: [number_of(e)])


def map_that_fails(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if kinds.has_windows(kind):
        return None
    check, function = draw_check(rng)
    arguments = calls(rng, scope)[0].removesuffix(", deterministic=False")
    if rng.randrange(2):
        return mapped(f"{function}{arguments}", INT, lambda e: [check(e)])

    def unless(element: Any) -> list[Any]:
        found = check(element)
        return [found if isinstance(found, Failure) else whole(element)]

    return mapped(f"{function.replace('checked', 'failing')}{arguments}", whole(kind), unless)


def random_map(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if kinds.has_windows(kind):
        return None
    arguments, by_chance = calls(rng, scope)
    text = f".random_map(noisy, {seed(rng, scope)}{arguments})"
    return Step(text, INT, is_stateful=True, by_chance=by_chance, needs_order=True)


def enumerated(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """A failure uses up its number."""
    start = rng.randint(-2, 5)

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        return (x if isinstance(x, Failure) else (i, x) for i, x in enumerate(outcomes, start))

    if kinds.has_windows(kind):
        return Step(f".enumerate({start}).select(1)", kind, needs_order=True)
    step = Step(f".enumerate({start})", (INT, kind), streaming(run), needs_order=True)
    return step if kinds.may_grow(kind) else None


def select(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if not isinstance(kind, tuple | dict) or kinds.has_windows(kind):
        return None
    names = list(kind) if isinstance(kind, dict) else list(range(len(kind)))
    keys = [rng.choice(names) for _ in range(rng.randint(1, 3))]

    def chosen(element: Any) -> Any:
        return element[keys[0]] if len(keys) == 1 else tuple(element[key] for key in keys)

    text = f".apply(selected({', '.join(map(repr, keys))}))"
    return Step(text, chosen(kind), each(lambda element: [chosen(element)]))


def batch(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if not kinds.can_be_batched(kind):
        return None
    size, drop = rng.randint(1, 6), rng.choice(["", "", ", drop_remainder=True"])
    arguments, by_chance = calls(rng, scope)
    batches: list[tuple[str, Any, Callable[[Any, list[Any]], Any]]] = []
    batches += [(f".batch({size}{drop}{arguments})", kinds.batched(kind), kinds.stack)] * (
        1 + 3 * (kind in (INT, TEXT))
    )
    if kinds.is_dense(kind):
        batches.append((f".padded_batch({size}{drop})", kinds.batched(kind), kinds.pad))
    if kind == ROW:
        batches.append((f".ragged_batch({size}{drop})", ROWS, lambda _, rows: rows))
    text, after, stack = rng.choice(batches)
    model = batches_of(size, bool(drop), lambda rows: stack(kind, rows))
    by_chance = by_chance and arguments in text
    return Step(text, after, model, is_stateful=True, by_chance=by_chance, needs_order=True)


def batches_of(size: int, drop: bool, stack: Callable[[list[Any]], Any]) -> Model:
    """An element that fails drops the elements of its batch so far."""

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


def unbatch(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if not kinds.can_be_unbatched(kind) or (scope.is_modelled and ROWS in kinds.leaves(kind)):
        return None
    model = each(lambda element: kinds.unstack(kind, element))
    return Step(".unbatch()", kinds.unbatched(kind), model, is_stateful=True, growth=2)

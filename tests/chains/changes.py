"""Steps that change the kind of the elements: maps and batches. Each is a function of ``draw`` and the input kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chains import kinds
from chains.kinds import INT, ROW, TEXT, number, number_in, taking
from chains.model import Failure, Open, Step, each, streaming
from chains.steps import Drawn, checks
from dataset import TensorSpec


def mapped(name: str, before: Any, after: Any, function: Callable[[Any, Any], Any], model: Callable[[Any], Any]) -> Any:
    """A map: ``function`` takes the library and an element."""

    def apply(lib: Any, dataset: Any) -> Any:
        return dataset.map(taking(before, lambda element: function(lib, element)))

    return Step(f"map({name})", apply, each(lambda element: [model(element)])), after


def map_arithmetic(draw: st.DrawFn, kind: Any) -> Drawn:
    """A function that is run over whole columns."""
    function = lambda x: x * 2 + 1
    return Step("map(x * 2 + 1)", lambda _, d: d.map(function), each(lambda x: [function(x)])), INT


def called(function: Callable[[Any], Any], returns: Any = np.int64) -> Callable[[Any, Any], Any]:
    """Return a function of a library and an element that calls a function of Python values."""
    return lambda lib, x: lib.call(function, TensorSpec((), returns))(x)


def map_plain_python(draw: st.DrawFn, kind: Any) -> Drawn:
    halve = lambda x: np.int64(int(x) // 2)
    return mapped("int(x) // 2", kind, INT, called(halve), lambda x: x // 2)


def map_that_fails(draw: st.DrawFn, kind: Any) -> Drawn:
    check, model, shown = checks(draw)
    return mapped(shown, kind, INT, called(check), model)


def map_number(draw: st.DrawFn, kind: Any) -> Drawn:
    return mapped("number", kind, INT, lambda lib, e: number_in(lib, kind, e), number)


def map_pair(draw: st.DrawFn, kind: Any) -> Drawn:
    """Both parts are run over whole columns."""
    return Step("map((x, -x))", lambda _, d: d.map(lambda x: (x, -x)), each(lambda x: [(x, -x)])), (INT, INT)


def map_text(draw: st.DrawFn, kind: Any) -> Drawn:
    show = lambda x: b"%d" % x
    return mapped("text", kind, TEXT, called(show, bytes), show)


def map_row(draw: st.DrawFn, kind: Any) -> Drawn:
    """To rows whose length varies."""
    n = draw(st.integers(1, 3))
    name = f"row of x % {n} + 1"
    return mapped(name, kind, ROW, lambda lib, x: lib.fill([x % n + 1], x), lambda x: [x] * (x % n + 1))


def map_dict(draw: st.DrawFn, kind: Any) -> Drawn:
    there = lambda lib, e: {"b": e, "a": number_in(lib, kind, e)}
    return mapped("{b: e, a: number}", kind, {"b": kind, "a": INT}, there, lambda e: {"b": e, "a": number(e)})


def map_part(draw: st.DrawFn, kind: Any) -> Drawn:
    """To one component of a tuple or dict."""
    key = draw(st.sampled_from(list(kind) if isinstance(kind, dict) else list(range(len(kind)))))
    return mapped(f"part {key}", kind, kind[key], lambda _, e: e[key], lambda e: e[key])


def map_swapped(draw: st.DrawFn, kind: Any) -> Drawn:
    return mapped("(b, a)", kind, (kind[1], kind[0]), lambda _, e: (e[1], e[0]), lambda e: (e[1], e[0]))


def enumerated(draw: st.DrawFn, kind: Any) -> Drawn:
    """A failure uses up its number."""
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
    apply = lambda _, d: d.padded_batch(size, drop_remainder=drop)
    return Step(f"padded_batch({size}, {drop})", apply, model), kinds.batched(kind)


def batches(size: int, drop: bool, stack: Callable[[list[Any]], Any]) -> Callable[[Open], Open]:
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


def unbatch(draw: st.DrawFn, kind: Any) -> Drawn:
    model = each(lambda element: kinds.unstack(kind, element))
    return Step("unbatch()", lambda _, d: d.unbatch(), model), kinds.unbatched(kind)

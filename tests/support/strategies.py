"""Hypothesis strategies shared by tests: random pipelines, each with a model of it in plain Python.

The parts are defined in chains/; this module defines which parts can be combined, and how pipelines are drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from chains import changes, inner, sequences, sources, steps
from chains.kinds import INT, ROW, TEXT, Leaf, can_be_batched, can_be_unbatched, is_dense, leaves
from chains.model import EndlessError, Failure, Pipeline, Step, plain
from chains.steps import Drawn
from support.libraries import Ours

__all__ = [
    "Failure",
    "Pipeline",
    "Step",
    "pipelines",
    "plain",
    "rewritable_pipelines",
    "shuffled_pipelines",
    "shuffles",
]

OUTCOMES_MAX = 80  # outcomes of a whole pipeline; a longer or infinite pipeline is limited with take()
LEAVES_MAX = 5

Fits = Callable[[Any], bool]
Draws = Callable[[st.DrawFn, Any], Drawn]


def _any(kind: Any) -> bool:
    return True


def _is_int(kind: Any) -> bool:
    return bool(kind == INT)


def _has_parts(kind: Any) -> bool:
    return not isinstance(kind, Leaf)


def _is_pair(kind: Any) -> bool:
    return isinstance(kind, tuple) and len(kind) == 2


def _may_grow(kind: Any) -> bool:
    return len(leaves(kind)) < LEAVES_MAX


def _can_be_padded(kind: Any) -> bool:
    return is_dense(kind) and can_be_batched(kind)


PLAIN: list[tuple[Fits, Draws]] = [
    (_any, steps.take),
    (_any, steps.skip),
    (_any, steps.shard),
    (_any, steps.repeat),
    (_any, steps.prefetch),
    (_any, steps.filter_number),
    (_any, steps.filter_that_fails),
    (_any, changes.map_number),
    (_any, inner.concatenate_itself),
    (_is_int, changes.map_arithmetic),
    (_is_int, changes.map_plain_python),
    (_is_int, changes.map_that_fails),
    (_is_int, changes.map_pair),
    (_is_int, changes.map_text),
    (_is_int, changes.map_row),
    (_may_grow, changes.map_dict),
    (_may_grow, changes.enumerated),
    (_has_parts, changes.map_part),
    (_is_pair, changes.map_swapped),
    (can_be_batched, changes.batch),
    (_can_be_padded, changes.padded_batch),
    *[(can_be_unbatched, changes.unbatch)] * 3,
]


def _is_row(kind: Any) -> bool:
    return bool(kind == ROW)


def _is_simple(kind: Any) -> bool:
    return kind in (INT, TEXT, ROW)


def _has_simple_parts(kind: Any) -> bool:
    return _is_simple(kind) or (isinstance(kind, tuple) and all(map(_is_simple, kind)))


def _can_be_rebatched(kind: Any) -> bool:
    return can_be_unbatched(kind) and is_dense(kind)


def _is_scalar(kind: Any) -> bool:
    """The shapes that tf.data's choose_from_datasets() preserves; for others it loses what concatenate() needs."""
    return all(leaf in (INT, TEXT) for leaf in leaves(kind))


SEQUENCES: list[tuple[Fits, Draws]] = [
    (_has_parts, sequences.select),
    (_any, sequences.scan),
    (_any, sequences.take_while),
    (_any, sequences.ignore_errors),
    (_is_simple, sequences.unique),
    (_has_simple_parts, sequences.window),
    (can_be_batched, sequences.group_by_window),
    (_can_be_rebatched, sequences.rebatch),
    (_is_row, sequences.ragged_batch),
    (_is_row, sequences.bucket_by_sequence_length),
]


COMMON: tuple[tuple[Fits, Draws], ...] = (
    (_any, steps.take),
    (_any, steps.skip),
    (_any, steps.shard),
    (_any, steps.repeat),
    (_any, steps.prefetch),
    (_any, steps.filter_that_fails),
    (_any, steps.filter_number),
    (_any, changes.map_number),
    (_is_int, changes.map_arithmetic),
    (_is_int, changes.map_that_fails),
    (_may_grow, changes.enumerated),
    (can_be_batched, changes.batch),
    (can_be_unbatched, changes.unbatch),
)


@dataclass(frozen=True)
class Scope:
    """The context in which steps are drawn: the allowed steps, and the nesting depth left for inner pipelines."""

    caches: bool
    endless: bool
    depth: int
    steps: tuple[tuple[Fits, Draws], ...] = (*PLAIN, *SEQUENCES)

    def within(self) -> Scope:
        """For datasets that functions create."""
        return dataclasses.replace(self, caches=False, endless=False, depth=self.depth - 1)

    def sources(self) -> list[sources.SourceStrategy]:
        found = [*sources.FINITE, sequences.COUNTER]
        return [*found, *sources.INFINITE] if self.endless else found

    def table(self) -> list[tuple[Fits, Draws]]:
        found = list(self.steps)
        if self.caches:
            found.append((_any, steps.cache))
        if self.endless:
            found.append((_any, steps.endless))
        if self.depth:
            found += [(_any, self._flat_map), (_any, self._interleave), (_may_grow, self._zip)]
            found += [(_is_int, self._concatenate), (_is_int, self._flat_map), (_is_int, self._interleave)]
            found.append((_is_scalar, self._choose))
        return found

    def _flat_map(self, draw: st.DrawFn, kind: Any) -> Drawn:
        return inner.flat_map(draw, kind, *_draw_steps(draw, INT, self.within(), 2))

    def _interleave(self, draw: st.DrawFn, kind: Any) -> Drawn:
        return inner.interleave(draw, kind, *_draw_steps(draw, INT, self.within(), 2))

    def _zip(self, draw: st.DrawFn, kind: Any) -> Drawn:
        return inner.zipped(draw, kind, _draw_pipeline(draw, self.within(), 2))

    def _concatenate(self, draw: st.DrawFn, kind: Any) -> Drawn:
        return inner.concatenate(kind, self._numbers(draw))

    def _choose(self, draw: st.DrawFn, kind: Any) -> Drawn:
        other = self._numbers(draw) if kind == INT and draw(st.booleans()) else None
        return sequences.choose_from_datasets(draw, kind, self._numbers(draw), other)

    def _numbers(self, draw: st.DrawFn) -> Pipeline:
        """Draw a pipeline of ints."""
        other = _draw_pipeline(draw, self.within(), 2)
        step, after = changes.map_number(draw, other.kind)
        return Pipeline((*other.steps, step), after)


def _draw_steps(draw: st.DrawFn, kind: Any, scope: Scope, length_max: int) -> tuple[tuple[Step, ...], Any]:
    """Draw some compatible steps; return them and the kind of their elements."""
    found: list[Step] = []
    for _ in range(draw(st.integers(0, length_max))):
        step, kind = _draw_step(draw, kind, scope)
        found.append(step)
    return tuple(found), kind


def _draw_step(draw: st.DrawFn, kind: Any, scope: Scope) -> Drawn:
    fitting = [draws for fits, draws in scope.table() if fits(kind)]
    return draw(st.sampled_from(fitting))(draw, kind)


def _draw_pipeline(draw: st.DrawFn, scope: Scope, length_max: int) -> Pipeline:
    """Draw a source and steps; steps that would never return their next outcome are omitted."""
    source, kind = draw(draw(st.sampled_from(scope.sources())))
    prefixes = [Pipeline((source,), kind)]
    for _ in range(draw(st.integers(0, length_max))):
        step, kind = _draw_step(draw, prefixes[-1].kind, scope)
        longer = Pipeline((*prefixes[-1].steps, step), kind)
        if _comes_out(longer) and not _is_refused(longer):
            prefixes.append(longer)
    endings = [(), (steps.take_of(20),)]
    candidates = (Pipeline((*p.steps, *end), p.kind) for p in reversed(prefixes) for end in endings)
    return next(candidate for candidate in candidates if _is_short(candidate))


def _comes_out(pipeline: Pipeline) -> bool:
    """Return whether the first outcomes, and the end if it follows them, are reached in finite time."""
    try:
        pipeline.model(OUTCOMES_MAX + 1)
    except EndlessError:
        return False
    return True


def _is_refused(pipeline: Pipeline) -> bool:
    """Return whether the library detects incompatible rows before it runs, which the model finds at an element."""
    if not pipeline.steps[-1].name.startswith(("unbatch", "rebatch")):
        return False
    try:
        pipeline.make(Ours())
    except ValueError as error:
        if "same number of rows" in str(error):
            return True
        raise
    return False


def _is_short(pipeline: Pipeline) -> bool:
    return _comes_out(pipeline) and len(pipeline.model(OUTCOMES_MAX + 1)) <= OUTCOMES_MAX


@st.composite
def pipelines(draw: st.DrawFn, length_max: int = 6) -> Pipeline:
    """Draw a random pipeline whose outcomes are known.

    Args:
        draw: Hypothesis' draw function.
        length_max: the maximum number of steps after the source.
    """
    return _draw_pipeline(draw, Scope(caches=True, endless=True, depth=2), length_max)


@st.composite
def rewritable_pipelines(draw: st.DrawFn, length_max: int = 8) -> Pipeline:
    """Draw a random pipeline of a few common ops that the optimizer's rules match, in all orders."""
    return _draw_pipeline(draw, Scope(caches=False, endless=True, depth=0, steps=COMMON), length_max)


@st.composite
def shuffled_pipelines(draw: st.DrawFn, length_max: int = 6) -> Pipeline:
    """Draw a random finite pipeline with shuffles. Its model returns another order."""
    ops = (*PLAIN, *SEQUENCES) if draw(st.booleans()) else COMMON
    scope = Scope(caches=False, endless=False, depth=1, steps=(*ops, *[(_any, _draw_shuffle)] * (len(ops) // 2)))
    return _draw_pipeline(draw, scope, length_max)


def _draw_shuffle(draw: st.DrawFn, kind: Any) -> Drawn:
    return draw(shuffles()), kind


def shuffles() -> st.SearchStrategy[Step]:
    """Draw a shuffle. It has no model: use it where only the set of elements, or a comparison of runs, matters."""

    def make(size: int, seed: int, reshuffle: bool) -> Step:
        name = f"shuffle({size}, {seed}, {reshuffle})"
        return Step(name, lambda _, d: d.shuffle(size, seed, reshuffle), lambda source: source)

    return st.builds(make, st.sampled_from([1, 2, 3, 7, 30, -2]), st.integers(0, 3), st.booleans())

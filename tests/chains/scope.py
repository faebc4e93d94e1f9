"""Draws steps and chains of them from a table of ops."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from chains import sources
from chains.chain import Chain, Step
from chains.changes import mapped
from chains.kinds import INT
from chains.model import EndlessError
from chains.steps import number_of, take_of
from support.libraries import Ours

LENGTH = 40
"""About the maximum number of elements of a chain without a model."""
OUTCOMES_MAX = 80
"""The maximum number of outcomes of a chain with a model; a longer or infinite one is limited with take()."""
TRIES = 20


@dataclass(frozen=True)
class Scope:
    """The context in which steps are drawn.

    Attributes:
        table: the ops, some of them several times.
        depth: how many levels of inner pipelines are left.
        is_modelled: whether all steps have models, and run in both libraries.
        has_caches: whether steps may store elements.
        is_endless: whether pipelines may be infinite.
    """

    table: Sequence[Draw]
    depth: int = 0
    is_modelled: bool = True
    has_caches: bool = True
    is_endless: bool = False

    def within(self) -> Scope:
        """Return the scope of datasets that functions create."""
        return dataclasses.replace(self, has_caches=False, is_endless=False, depth=self.depth - 1)

    def numbers(self, rng: random.Random) -> Chain:
        """Draw a pipeline of ints."""
        if not self.is_modelled or not self.depth:
            return Chain((sources.a_range(rng, rng.choice([1, 3, 9])),))
        found = draw_pipeline(rng, self.within(), 2)
        return found.followed_by(mapped("number", INT, lambda element: [number_of(element)]))

    def inner(self, rng: random.Random) -> tuple[Step, ...]:
        """Draw up to two steps for the dataset of ints that a function returns."""
        tables = [self.table] * rng.randint(0, 2)
        found = draw_steps(rng, Step("", INT, growth=4), tables, self.within())
        return tuple(step for step in found[1:] if not (step.by_chance or step.keeps_order))


Draw: TypeAlias = Callable[[random.Random, Any, Scope], Step | None]
"""Draws an op for elements of a kind; returns None if there is none."""


def draw_source(rng: random.Random, scope: Scope) -> Step:
    if not scope.is_modelled:
        n = rng.choice([1, 2, 3, 4, 5, 6, 8])
        return rng.choice([*[sources.from_files] * 3, *[rng.choice(sources.MODELLED)] * 2])(rng, n)
    makers = [*sources.MODELLED, sources.endless] if scope.is_endless else sources.MODELLED
    return rng.choice(makers)(rng, rng.choice(sources.SIZES))


def draw_steps(rng: random.Random, start: Step, tables: Sequence[Sequence[Draw]], scope: Scope) -> list[Step]:
    """Draw steps that follow ``start``, one from each table, and return all. Those that return too much are omitted."""
    found = [start]
    length = start.growth
    for table in tables:
        for _ in range(TRIES):
            step = rng.choice(table)(rng, found[-1].kind, scope)
            if step is not None and (length * step.growth <= LENGTH or step.growth <= 1):
                found.append(step)
                length *= step.growth
                break
    return found


def draw_pipeline(rng: random.Random, scope: Scope, length_max: int) -> Chain:
    """Draw a source and steps with models; steps that would never return their next outcome are omitted."""
    prefixes = [Chain((draw_source(rng, scope),))]
    for _ in range(rng.randint(0, length_max)):
        draws = (rng.choice(scope.table)(rng, prefixes[-1].kind, scope) for _ in range(TRIES))
        step = next((step for step in draws if step is not None), None)
        if step is not None and _comes_out(longer := prefixes[-1].followed_by(step)) and not _is_refused(longer):
            prefixes.append(longer)
    shortened = (chain.followed_by(*end) for chain in reversed(prefixes) for end in ((), (take_of(20, chain.kind),)))
    return next(filter(_is_short, shortened))


def _comes_out(chain: Chain) -> bool:
    """Return whether the first outcomes, and the end if it follows them, are reached in finite time."""
    try:
        chain.model(OUTCOMES_MAX + 1)
    except EndlessError:
        return False
    return True


def _is_refused(chain: Chain) -> bool:
    """Return whether the library detects incompatible rows before it runs, which the model finds at an element."""
    if not chain.steps[-1].text.startswith((".unbatch", ".rebatch")):
        return False
    try:
        chain.make(Ours())
    except ValueError as error:
        if "same number of rows" in str(error):
            return True
        raise
    return False


def _is_short(chain: Chain) -> bool:
    return _comes_out(chain) and len(chain.model(OUTCOMES_MAX + 1)) <= OUTCOMES_MAX

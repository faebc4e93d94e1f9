"""Random steps. Their models return at least as many outcomes, but not the same ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chains.kinds import INT, number, number_in, taking
from chains.model import Open, Step, each
from chains.steps import Drawn, checks, take_of


def random_map(draw: st.DrawFn, kind: Any) -> Drawn:
    """Only in this library; with failures."""
    check, model, shown = checks(draw)
    seed = draw(st.integers(0, 3))

    def apply(lib: Any, dataset: Any) -> Any:
        return dataset.random_map(lambda rng, x: check(x) + rng.integers(10), seed)

    return Step(f"random_map({seed}, {shown})", apply, each(lambda x: [model(x)])), INT


def sample_from_datasets(draw: st.DrawFn, kind: Any) -> Drawn:
    """Samples from the pipeline and a shortened copy of it."""
    shorten = take_of(draw(st.integers(0, 5)))
    seed, again = draw(st.integers(0, 3)), draw(st.booleans())
    weights = draw(st.sampled_from([None, [0.2, 0.8], [1.0, 0.0]]))

    def apply(lib: Any, dataset: Any) -> Any:
        both = [dataset, shorten.apply(lib, dataset)]
        return lib.Dataset.sample_from_datasets(both, weights, seed, rerandomize_each_iteration=again)

    def model(source: Open) -> Open:
        return lambda: itertools.chain(source(), shorten.model(source)())

    return Step(f"sample(itself, itself.{shorten.name}, {weights}, {seed}, {again})", apply, model), kind


def rejection_resample(draw: st.DrawFn, kind: Any) -> Drawn:
    seed = draw(st.integers(0, 3))
    given = draw(st.sampled_from([None, [0.5, 0.5]]))

    def apply(lib: Any, dataset: Any) -> Any:
        class_of = taking(kind, lambda element: np.int64(number_in(lib, kind, element) % 2))
        return dataset.rejection_resample(class_of, [0.7, 0.3], given, seed)

    model = each(lambda element: [(number(element) % 2, element)])
    return Step(f"rejection_resample({given}, {seed})", apply, model), (INT, kind)


def unseeded_shuffle(draw: st.DrawFn, kind: Any) -> Drawn:
    """Another order in each iterator."""
    size, again = draw(st.sampled_from([2, 5, 40])), draw(st.booleans())

    def apply(_: Any, dataset: Any) -> Any:
        return dataset.shuffle(size, reshuffle_each_iteration=again)

    return Step(f"shuffle({size}, None, {again})", apply, lambda source: source), kind

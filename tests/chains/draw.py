"""Tables of ops, and the chains that tests draw from them: with models, or for the search for inexact resumes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from chains import changes, inner, sequences, steps
from chains.chain import Chain, Step
from chains.kinds import has_windows
from chains.scope import Draw, Scope, draw_pipeline, draw_source, draw_steps
from dataset import Options


def _table(text: str) -> list[Draw]:
    """Return the ops with these names, each as often as the number after it says."""
    found: list[Draw] = []
    for word in text.split():
        name, _, times = word.partition("*")
        module = next(module for module in (steps, changes, sequences, inner) if hasattr(module, name))
        found += [getattr(module, name)] * int(times or 1)
    return found


COMMON = _table("""
    take skip shard repeat prefetch filter_number filter_that_fails map_number map_ map_that_fails enumerated batch
    unbatch
""")
"""The ops that the optimizer's rules match."""
MODELLED = COMMON + _table("""
    map_*5 unbatch*2 batch select take_while ignore_errors unique scan window*2 group_by_window rebatch
    bucket_by_sequence_length*2 concatenate
""")
NESTED = _table("flat_map*2 interleave*2 zipped concatenate choose")

# Chains with models


def _drawn(draw: Callable[[random.Random, int], Chain]) -> Callable[..., st.SearchStrategy[Chain]]:
    """Return a function that returns a strategy of chains with at most ``length_max`` steps after the source."""

    def strategy(length_max: int = 6) -> st.SearchStrategy[Chain]:
        return st.randoms(use_true_random=False).map(lambda rng: draw(rng, length_max))

    return strategy


ANY = Scope([*MODELLED, *NESTED, steps.cache, steps.endless], depth=2, is_endless=True)
OFTEN_REWRITTEN = Scope([*COMMON, steps.endless], has_caches=False, is_endless=True)


def _shuffled(rng: random.Random, length_max: int) -> Chain:
    ops = rng.choice([[*MODELLED, *NESTED], COMMON])
    table = [*ops, *[steps.shuffle] * (len(ops) // 2)]
    return draw_pipeline(rng, Scope(table, depth=1, has_caches=False), length_max)


pipelines = _drawn(lambda rng, length_max: draw_pipeline(rng, ANY, length_max))
"""Returns a strategy of pipelines of any ops whose outcomes are known."""
rewritable_pipelines = _drawn(lambda rng, length_max: draw_pipeline(rng, OFTEN_REWRITTEN, length_max + 2))
"""Returns a strategy of pipelines of a few common ops that the optimizer's rules match, in all orders."""
shuffled_pipelines = _drawn(_shuffled)
"""Returns a strategy of finite pipelines with shuffles. Their models return another order."""


def shuffles() -> st.SearchStrategy[Step]:
    return st.randoms(use_true_random=False).map(lambda rng: steps.shuffle(rng, None, ANY))


# Chains for the search for states that resume inexactly

STATEFUL = _table("""
    shuffle*4 repeat*3 repeat_and_take interleave flat_map cache*2 window pack concat_split batch_by_tokens
    group_by_window sample prefetch parallel_map*2
""")
OPS = STATEFUL + _table("""
    skip_records map_*2 map_that_fails*2 filter_number*2 filter_that_fails ignore_errors random_map take*2 skip shard
    take_while batch*5 unbatch*3 rebatch*2 pack*2 concat_split batch_by_tokens bucket_by_sequence_length concatenate
    zipped choose unique scan enumerated select resample
""")
RESUMED = Scope(OPS, depth=2, is_modelled=False)
DISTRIBUTED = 0.003
"""The share of chains of which a part runs in worker processes, which start slowly."""


def draw_chain(rng: random.Random) -> Chain:
    """Draw two to six ops on a source, at least two with a state of their own, and options.

    One of two chains has only a few different ops, so that each meets itself and the others often.
    """
    while True:
        stateful, ops = STATEFUL, OPS
        if rng.random() < 0.5:
            stateful = rng.sample(STATEFUL, 2)
            ops = [*stateful, *rng.sample(OPS, 2)]
        tables = _tables(rng, rng.choice([2, 3, 4, 4, 5, 5, 6, 6]), stateful, ops)
        found = draw_steps(rng, draw_source(rng, RESUMED), tables, RESUMED)
        found = [replace(step, model=None) for step in found]  # a process that resumes receives them
        chain = Chain(_distributed(found), _options(rng))
        if chain.is_comparable and sum(step.is_stateful for step in found) >= 2:
            return chain


def _tables(rng: random.Random, count: int, stateful: list[Draw], ops: list[Draw]) -> list[list[Draw]]:
    """Return a table for each place: ``stateful`` for two of them.

    Often the first op is random, so that passes differ, and the last one repeats all others.
    """
    places = rng.sample(range(count), 2)
    found = [stateful if place in places else ops for place in range(count)]
    if rng.random() < 0.3:
        found[0] = [steps.shuffle, steps.shuffle, changes.random_map, changes.map_that_fails]
    if rng.random() < 0.4:
        found[-1] = [steps.repeat, steps.repeat, steps.repeat_and_take]
    if count > 2 and rng.random() < 0.05:  # only the pass that fills a cache differs from the others
        found[:2] = [steps.shuffle, changes.random_map], [steps.cache]
    return found


def _distributed(found: list[Step]) -> tuple[Step, ...]:
    """Let worker processes run a part of the ops now and then; other chains stay as they are drawn."""
    rng = random.Random("".join(step.text for step in found))
    places = [place for place, step in enumerate(found, 1) if not has_windows(step.kind)]
    if not places or rng.random() >= DISTRIBUTED:
        return tuple(found)
    place = rng.choice(places)
    return *found[:place], Step(f".distribute({rng.choice([1, 2, 3])})", found[place - 1].kind), *found[place:]


_OPT_IN = [
    "map_parallelization",
    "filter_parallelization",
    "parallel_batch",
    "seq_interleave_prefetch",
    "inject_prefetch",
]
_DEFAULT_RULES = [name for name in Options().optimization.names() if name not in {*_OPT_IN, "enabled"}]
_LIMITS = [
    "autotune__enabled=False",
    "autotune__ram_budget=1",
    "autotune__ram_budget=200",
    "autotune__cpu_budget=1",
    "threading__private_threadpool_size=1",
    "provenance=True",
]


def _options(rng: random.Random) -> str:
    found: list[str] = []
    drawn = rng.random()
    if drawn < 0.2:
        found = ["optimization__enabled=False"]
    elif drawn < 0.3:
        found = [f"optimization__{name}=False" for name in rng.sample(_DEFAULT_RULES, rng.randint(1, 6))]
    elif drawn < 0.4:
        found = [f"optimization__{name}=True" for name in rng.sample(_OPT_IN, rng.randint(1, 3))]
    if rng.random() < 0.15:
        found.append(rng.choice(_LIMITS))
    return f"options({', '.join(found)})" if found else ""


def with_other_parallelism(expression: str, rng: random.Random) -> str:
    """Return the expression with another number of parallel calls in each op that has one: a state fits all of them."""
    return re.sub(
        r"num_parallel_calls=[^,)]+",
        lambda _: f"num_parallel_calls={rng.choice(['None', '1', '2', '4', 'AUTOTUNE'])}",
        expression,
    )

"""Tests that every op and reader resumes from a state at exactly the same position, as JSON and in other processes.

The pipelines are in resume_cases.py. test_resume_search.py draws random ones; check_operator tries every position of an
op in the op's own tests.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataset
from dataset import Dataset, StateError, readers
from dataset.io.arrow.table_rows_source import TableRows
from dataset.ops.distribute.distribute import Distribute
from dataset.ops.group.bucket_by_sequence_length import _PaddedBucket
from dataset.ops.sources.external_source import ExternalSource
from dataset.ops.sources.from_queue import FromQueue
from dataset.ops.sources.indexed_source import IndexedSource
from dataset.ops.sources.select_positions import SelectPositions
from dataset.plan.node import Node
from dataset.runtime.context import ExecutionContext
from dataset.testing import no_leaks, outcomes
from support.pipelines import unoptimized
from support.resume_cases import BY_PROCESSES, CASES, ELSEWHERE, NO_OPS
from support.resume_search import LENGTH_MAX, Case, Run, Stop, Worker
from support.resuming import assert_from, check_every_place, check_stops, interrupted, loaded, to_json
from support.seeds import rng

TESTS = Path(__file__).parent
REPEATABLE = [name for name, chain in CASES.items() if chain.is_repeatable]


@pytest.fixture(scope="module")
def other_process(case_files):
    worker = Worker(case_files)
    yield worker
    worker.close()


IN_ROW = (Stop("at", 1, is_saved_again=True), Stop("at", 4, in_process=True), Stop("at", 9, in_file=True))
ROUTES = [
    {"stops": (Stop("stage"),), "at_each_stage": True, "checks_next_epoch": True},
    {"stops": IN_ROW, "earlier": (3, LENGTH_MAX), "checks_next_epoch": True},
]
"""One resume at each place whose state has another structure; and one run, in a third epoch, that is resumed thrice."""


@pytest.mark.parametrize("name", CASES)
def test_resumes_exactly(name, built, case_files, other_process):
    built(CASES[name])  # libraries imported for it keep files open
    with no_leaks():
        for route in ROUTES:
            Run(Case(CASES[name], **route), case_files, other_process).check()


@pytest.mark.parametrize("name", BY_PROCESSES)
def test_resumes_where_processes_do_the_work(name, case_files):
    Run(Case(BY_PROCESSES[name], (Stop("at", 1), Stop("at", 5))), case_files, None).check()


@pytest.mark.parametrize("again", ["optimized", "not optimized", "the same dataset"])
def test_a_state_resumes_in_a_pipeline_with_other_rules_or_is_refused_and_in_the_dataset_that_saved_it(again, built):
    """The same dataset may have filled its caches in the meantime."""
    for name, place in itertools.product(REPEATABLE, (1, 4, 11)):
        first, second = built(CASES[name]), built(CASES[name])
        if again == "the same dataset":
            second = first
        elif again == "optimized":
            first = unoptimized(first)
        else:
            second = unoptimized(second)
        found, states = interrupted(first, [place])
        try:
            resumed = loaded(second, states[place])
        except StateError:
            assert second is not first, name
            continue
        with resumed:
            assert_from(place, outcomes(resumed), found)


# Long pipelines, whose buffers hold thousands of elements

MANY = 20_000
LONG = {
    "shuffled, mapped, batched": lambda: (
        Dataset.range(MANY).shuffle(5000, seed=1).map(lambda x: (x, x + 1)).batch(100).prefetch(2)
    ),
    "shuffled all, in epochs": lambda: Dataset.range(MANY).shuffle(None, seed=1).repeat(2).batch(1000),
    "streamed, cached, shuffled, in epochs": lambda: (
        Dataset.range(MANY).filter(lambda x: x % 7 != 3).cache().shuffle(3000, seed=2).repeat(2).batch(1000)
    ),
    "interleaved by threads": lambda: (
        Dataset.range(100)
        .interleave(lambda x: Dataset.range(1000 * x, 1000 * x + 1000), cycle_length=8, num_parallel_calls=2)
        .batch(500)
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_pipeline_resumes_from_places_anywhere(name):
    length = sum(1 for _ in LONG[name]())
    places = rng("long", name).sample(range(length + 1), 3)
    check_stops(LONG[name], places, check_every_place(LONG[name], places))


# Orders of datasets in several places of a plan


def shuffled(count: int) -> Dataset[Any]:
    return Dataset.range(count).shuffle(count, seed=1)


def test_each_use_of_a_dataset_and_each_call_that_returns_it_draws_another_order_and_equal_seeds_the_same():
    first, second = (list(map(int, half)) for half in zip(*Dataset.zip(shuffled(50), shuffled(50)), strict=True))
    assert first == second
    one = shuffled(50)
    found = np.array(list(one.concatenate(one))).reshape(2, 50).tolist()
    assert found[0] == first
    use, other = (Dataset.range(2).flat_map(lambda _: one) for _ in range(2))
    found += np.array(list(use.concatenate(other).repeat(2))).reshape(8, 50).tolist()
    assert len(set(map(tuple, found))) == 10
    assert all(sorted(order) == list(range(50)) for order in found)


def test_an_op_that_has_not_begun_resumes_in_its_iteration():
    """The second dataset is opened after the state was saved, in the third epoch of the loop."""

    def build() -> Dataset[Any]:
        return (
            Dataset.range(3)
            .concatenate(Dataset.range(1).flat_map(lambda _: Dataset.range(0)))
            .concatenate(Dataset.range(20).random_map(lambda draws, x: x + draws.integers(1000), seed=3))
        )

    dataset = build()
    outcomes(iter(dataset)), outcomes(iter(dataset))
    iterator = iter(dataset)
    next(iterator)
    state = to_json(iterator.state_dict())
    assert outcomes(loaded(build(), state)) == outcomes(iterator)


# Completeness


def test_every_method_that_makes_an_op_and_every_reader_has_a_case():
    public = {name for name in dir(Dataset) if not name.startswith("_")}
    classes = {
        name
        for module in (dataset, readers)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Dataset) and value is not Dataset
    }
    covered = {name.partition(":")[0] for name in CASES}
    elsewhere = NO_OPS | set(ELSEWHERE)
    without = (public | classes) - covered - elsewhere
    assert not without, f"add a case to resume_cases.py for {sorted(without)}"
    assert elsewhere <= public, "there is no such method any more"
    assert not covered & elsewhere
    assert covered <= public | set(vars(dataset))
    for name, chain in CASES.items():
        assert re.search(rf"\b{name.partition(':')[0]}\(", str(chain)), name
    for name, file in ELSEWHERE.items():
        text = (TESTS / file).read_text()
        assert name in text, name
        assert re.search(r"check_operator|load_state_dict|loaded\(|rest_of\(", text), f"{file} resumes nothing"


NEVER_SEEN = {
    FromQueue: "is resumed in tests/queues",
    ExternalSource: "of from_tf, which is resumed elsewhere",
    IndexedSource: "of from_torch, which is resumed elsewhere",
    TableRows: "of from_huggingface, which is resumed elsewhere",
    Distribute: "is resumed with its workers in tests/ops/distribute",
    SelectPositions: "is created when a shuffle resumes from a state, as in many cases, not in a first run",
    _PaddedBucket: "only says how bucket_by_sequence_length, which has cases, makes its batches",
}


def test_every_node_that_there_is_runs_in_a_case(built, monkeypatch):
    """Including operators that only the optimizer creates, and those of nested datasets."""
    seen: set[type[Node]] = set()
    run = ExecutionContext.__call__

    def noting(self: ExecutionContext, node: Node, *opening: int, **kwargs: Any) -> Any:
        seen.add(type(node))
        return run(self, node, *opening, **kwargs)

    monkeypatch.setattr(ExecutionContext, "__call__", noting)
    for chain in CASES.values():
        outcomes(iter(built(chain)))
    unseen = {node for node in concrete(Node) - seen if node.__module__.startswith("dataset.")}
    assert unseen == set(NEVER_SEEN), "add a case to resume_cases.py in which they run"


def concrete(of: type[Node]) -> set[type[Node]]:
    """Return the node classes that are not only base classes."""
    below = set(itertools.chain.from_iterable(map(concrete, of.__subclasses__())))
    return below | {of} if vars(of).get("op") else below

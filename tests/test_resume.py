"""Tests that every op and reader resumes from a state at exactly the same position, as JSON and in other processes.

The pipelines are in resume_cases.py; random ones, and long ones, are in test_resume_pipelines.py.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from dataset.testing import assert_elements_equal, no_leaks, outcomes
from support.pipelines import unoptimized
from support.resume_cases import BY_PROCESSES, CASES, ELSEWHERE, NO_OPS
from support.resume_files import Files, write_files
from support.resuming import assert_from, check_every_place, check_stops, examples, interrupted, loaded, with_stops

TESTS = Path(__file__).parent
PLACES_MAX = 40
PLACES = [*range(12), *range(12, PLACES_MAX, 3)]

ORDERED = [name for name, case in CASES.items() if case.in_order]
REPEATABLE = [name for name, case in CASES.items() if case.repeatable]
IN_ANY_ORDER = [name for name, case in CASES.items() if not case.in_order]

NewFiles = Callable[[], Files]


@pytest.fixture(scope="module")
def new_files(tmp_path_factory: pytest.TempPathFactory) -> NewFiles:
    """Return the files with an empty output folder."""
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return lambda: Files(folder, tmp_path_factory.mktemp("scratch"))


def build_of(name: str, new_files: NewFiles) -> Callable[[], Dataset[Any]]:
    return lambda: CASES[name].make(new_files())


@pytest.mark.parametrize("name", ORDERED)
def test_goes_on_from_every_place(name, new_files):
    build = build_of(name, new_files)
    build()  # libraries imported for it keep files open
    with no_leaks():
        found = check_every_place(build, PLACES)
    if CASES[name].repeatable:
        assert_elements_equal(outcomes(iter(build())), found)  # saving states has changed nothing


@examples(100)
@given(st.sampled_from(REPEATABLE), st.lists(st.integers(0, PLACES_MAX), min_size=1, max_size=6))
def test_goes_on_from_runs_that_were_gone_on_with_themselves(new_files, name, stops):
    build = build_of(name, new_files)
    check_stops(build, stops, outcomes(iter(build())))


@examples(30)
@given(st.sampled_from(IN_ANY_ORDER), st.lists(st.integers(0, PLACES_MAX), min_size=1, max_size=6))
def test_where_any_order_will_do_each_element_comes_exactly_once(new_files, name, stops):
    build = build_of(name, new_files)
    expected = Counter(map(repr, outcomes(iter(build()))))
    assert Counter(map(repr, with_stops(build, stops))) == expected


@pytest.mark.parametrize("first", ["optimized", "not optimized"])
def test_a_state_of_a_pipeline_with_other_rules_goes_on_exactly_or_is_refused(first, new_files):
    for name in REPEATABLE:
        build = build_of(name, new_files)
        makes = [build, lambda: unoptimized(build())]
        if first == "not optimized":
            makes.reverse()
        found, states = interrupted(makes[0](), [5])
        try:
            resumed = loaded(makes[1](), states[5])
        except StateError:
            continue
        assert_from(5, outcomes(resumed), found)


@pytest.mark.parametrize("name", REPEATABLE)
def test_goes_on_in_the_very_same_dataset(name, new_files):
    """Resume after the interrupted run has filled its caches."""
    for place in (1, 4, 11):
        whole = CASES[name].make(new_files())
        found, states = interrupted(whole, [place])
        with loaded(whole, states[place]) as iterator:
            assert_from(place, outcomes(iterator), found)


@pytest.mark.parametrize("how", BY_PROCESSES)
def test_goes_on_where_processes_do_the_work(how, new_files):
    build = lambda: BY_PROCESSES[how](new_files())
    found = check_every_place(build, [0, 1, 5])
    check_stops(build, [2, 5], found)


def test_goes_on_in_another_process(new_files, tmp_path):
    """Resume all cases in one other process, which gets only the states as JSON."""
    expected = {}
    lines = []
    for name in ORDERED:
        found, states = interrupted(CASES[name].make(new_files()), [5])
        expected[name] = repr(found[5:])
        scratch = new_files()
        lines.append(repr((name, str(scratch.folder), str(scratch.scratch), states[5])))
    got = run_elsewhere("\n".join(lines))
    assert [line.partition("=")[0] for line in got] == ORDERED
    for line in got:
        name, _, rest = line.partition("=")
        assert without_addresses(rest) == without_addresses(repr(expected[name])), name


ELSEWHERE_SCRIPT = """
import ast, pathlib, sys
from dataset.testing import outcomes
from support.resume_cases import CASES
from support.resume_files import Files
from support.resuming import loaded
for line in sys.stdin:
    name, folder, scratch, state = ast.literal_eval(line)
    files = Files(pathlib.Path(folder), pathlib.Path(scratch))
    print(name, file=sys.stderr)  # for the message, if it fails
    with loaded(CASES[name].make(files), state) as iterator:
        print(name, repr(repr(outcomes(iterator))), sep="=")
"""


def run_elsewhere(lines: str) -> list[str]:
    paths = [str(TESTS), str(Path(dataset.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE_SCRIPT],
        input=lines,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", text)


# Completeness


def test_every_method_that_makes_an_op_and_every_reader_has_a_case():
    public = {name for name in vars(Dataset) if not name.startswith("_")}
    classes = {
        name
        for module in (dataset, readers)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Dataset) and value is not Dataset
    }
    covered = {case.method for case in CASES.values()}
    elsewhere = set(NO_OPS) | set(ELSEWHERE)
    without = (public | classes) - covered - elsewhere
    assert not without, f"add a case to resume_cases.py for {sorted(without)}"
    assert elsewhere <= public, "there is no such method any more"
    assert not covered & elsewhere
    assert covered <= public | set(vars(dataset))


def test_what_is_resumed_elsewhere_is():
    for name, file in ELSEWHERE.items():
        text = (TESTS / file).read_text()
        assert name in text, name
        assert re.search(r"check_operator|load_state_dict", text), f"{file} resumes nothing"


NEVER_SEEN = {
    FromQueue: "is resumed in tests/queues",
    ExternalSource: "of from_tf, which is resumed elsewhere",
    IndexedSource: "of from_torch, which is resumed elsewhere",
    TableRows: "of from_huggingface, which is resumed elsewhere",
    Distribute: "is resumed with its workers in tests/ops/distribute",
    SelectPositions: "is created when a shuffle resumes from a state, as in many cases, not in a first run",
    _PaddedBucket: "only says how bucket_by_sequence_length, which has cases, makes its batches",
}


def test_every_node_that_there_is_runs_in_a_case(new_files, monkeypatch):
    """Including operators that only the optimizer creates, and those of nested datasets."""
    seen: set[type[Node]] = set()
    build = ExecutionContext.__call__

    def noting(self: ExecutionContext, node: Node, *opening: int, **kwargs: Any) -> Any:
        seen.add(type(node))
        return build(self, node, *opening, **kwargs)

    monkeypatch.setattr(ExecutionContext, "__call__", noting)
    for name in CASES:
        outcomes(iter(build_of(name, new_files)()))
    unseen = {node for node in concrete(Node) - seen if node.__module__.startswith("dataset.")}
    assert unseen == set(NEVER_SEEN), "add a case to resume_cases.py in which they run"


def concrete(of: type[Node]) -> set[type[Node]]:
    """Return the node classes that are not only base classes."""
    below = set(itertools.chain.from_iterable(map(concrete, of.__subclasses__())))
    return below | {of} if vars(of).get("op") else below

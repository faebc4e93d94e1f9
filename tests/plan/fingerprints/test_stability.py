"""Fingerprints and step digests do not change by an iteration, by building anew, or in another process."""

import dataclasses
import datetime as dt
import decimal
import functools
import itertools
import json
import logging
import os
import pathlib
import re
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from chains.names import build
from dataset import Dataset
from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.fingerprints.step_digests import step_digests
from support.resume_cases import CASES

LOGGER = logging.getLogger("dataset.tests.stability")


def prints(dataset):
    return [int(dataset.fingerprint()), fingerprint(dataset.plan), step_digests(dataset.plan)]


def run(dataset):
    """Iterate, and use what else may compute something about the plan."""
    iterator = iter(dataset)
    for _ in range(40):
        try:
            next(iterator)
        except StopIteration:
            break
        except Exception:  # noqa: S112  # some elements fail
            continue
    iterator.close()
    _ = dataset.element_spec, dataset.cardinality(), dataset.explain()


@pytest.mark.parametrize("name", CASES)
def test_an_iteration_changes_no_fingerprint(name, case_files, tmp_path):
    first, again = (build(str(CASES[name]), case_files, tmp_path) for _ in range(2))
    before = prints(first)
    assert prints(again) == before
    run(first)
    assert prints(first) == before


PROGRAM = """
import json, sys
from pathlib import Path
from chains.names import build
from plan.fingerprints.test_stability import HELD, CASES, holding, prints
made = {name: build(str(chain), Path(sys.argv[1]), Path(sys.argv[2])) for name, chain in CASES.items()}
made.update({name: holding(make(0)) for name, make in HELD.items()})
print(json.dumps({name: prints(dataset) for name, dataset in made.items()}))
"""


def test_all_fingerprints_are_the_same_in_other_processes_and_differ_from_case_to_case(case_files, tmp_path):
    command = [sys.executable, "-c", PROGRAM, case_files, tmp_path]
    found = []
    for seed in "12":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    assert found[0] == found[1]
    assert len({found[0][name][0] for name in CASES}) == len(CASES)


# What functions hold


def abs_of(x):
    return abs(x)


class Item:
    def __init__(self, number):
        self.number = number


@dataclasses.dataclass(frozen=True, slots=True)
class Slots:
    number: int


class Calling:
    """An object with a function in a field, and another one in its class."""

    function = abs_of

    def __init__(self, function):
        self.function = function


class Counting:
    """A function that learns while it runs."""

    def __init__(self, number):
        self.number = number
        self.lock = threading.Lock()
        self.called = threading.Event()

    @functools.cached_property
    def remembered(self):
        return 7

    def __call__(self, x):
        with self.lock:
            self.called.set()
            LOGGER.debug("called for %s", x)
            return x + self.remembered


def peers(number):
    """Two objects that refer to each other in sets."""
    first, second = Item(number), Item(number + 1)
    first.peers, second.peers = {second}, {first, second}
    return first


HELD = {
    "lock": lambda n: threading.Lock(),
    "condition": lambda n: threading.Condition(),
    "logger": lambda n: LOGGER,
    "open file": lambda n: sys.__stderr__,
    "generator": lambda n: (x for x in range(3)),
    "random generator": np.random.default_rng,
    "weak reference": lambda n: weakref.ref(LOGGER),
    "lambdas in a list": lambda n: [lambda x: x + n, lambda x: x],
    "lambdas in a set": lambda n: {lambda x: x + n, lambda x: x, abs},
    "objects in a set": lambda n: {Item(n), Item(5), Item(7), ("a", n), "b", "c"},
    "peers": peers,
    "slots": Slots,
    "function in a field": lambda n: Calling([abs_of, prints][n]),
    "regex": lambda n: re.compile("a" * (300 + n)),
    "flags": lambda n: re.compile(b"a", [0, re.IGNORECASE][n]),
    "date": lambda n: dt.date(2020, 1, 1 + n),
    "zone": lambda n: dt.timezone(dt.timedelta(hours=n)),
    "path": lambda n: pathlib.Path(f"a/{n}"),
    "decimal": decimal.Decimal,
    "range": lambda n: range(n, 9),
    "function": Counting,
}
WITHOUT_VALUE = {"lock", "condition", "logger", "open file", "generator", "random generator", "weak reference"}


def holding(held):
    return Dataset.range(3).map(held if isinstance(held, Counting) else lambda x: (x, held)[0])


@pytest.mark.parametrize("name", HELD)
def test_what_a_function_holds_counts_by_value_and_not_by_what_it_has_learned(name):
    made = [holding(HELD[name](number)) for number in (0, 0, 1)]
    before, again, other = map(prints, made)
    assert before == again
    assert all(digest for _, digest in before[-1])
    assert (before[0] == other[0]) == (before[2] == other[2]) == (name in WITHOUT_VALUE)
    run(made[0])
    assert prints(made[0]) == before


def test_the_addresses_of_the_items_of_a_set_do_not_count():
    """New objects usually have increasing addresses, so their order by address follows that of their creation."""
    found = [prints(holding({Item(number) for number in order})) for order in itertools.permutations(range(4))]
    assert all(one == found[0] for one in found)

"""Tests of with_options and options against tf.data's: what is accepted, and how settings merge."""

import pytest
from compare import attempt, oracle

from support.libraries import Ours

SETTINGS = {
    "deterministic": lambda o, first: setattr(o, "deterministic", first),
    "dataset_name": lambda o, first: setattr(o, "dataset_name", "a" if first else "b"),
    "cpu_budget": lambda o, first: setattr(o.autotune, "cpu_budget", 1 if first else 2),
    "ram_budget": lambda o, first: setattr(o.autotune, "ram_budget", 10**6 if first else 10**9),
    "enabled": lambda o, first: setattr(o.autotune, "enabled", first),
    "private_threadpool_size": lambda o, first: setattr(o.threading, "private_threadpool_size", 1 if first else 2),
    "max_intra_op_parallelism": lambda o, first: setattr(o.threading, "max_intra_op_parallelism", 1 if first else 2),
    "experimental_deterministic": lambda o, first: setattr(o, "experimental_deterministic", first),
    "apply_default_optimizations": lambda o, first: setattr(
        o.experimental_optimization, "apply_default_optimizations", first
    ),
    "noop_elimination": lambda o, first: setattr(o.experimental_optimization, "noop_elimination", first),
}

JOINED = {
    "zip(a, b)": lambda lib, a, b: lib.Dataset.zip((a, b)),
    "zip(b, a)": lambda lib, a, b: lib.Dataset.zip((b, a)),
    "a.concatenate(b)": lambda lib, a, b: a.concatenate(b),
    "b later": lambda lib, a, b: a.with_options(b.options()),
    "a later": lambda lib, a, b: b.take(2).with_options(a.options()).skip(1),
    "a": lambda lib, a, b: a.batch(2).with_options(lib.Options()),
}


def shown(options):
    """Return the fields that are set, as plain values; unset fields have different defaults in the two libraries."""
    return {
        "deterministic": options.deterministic,
        "dataset_name": options.dataset_name or None,
        "cpu_budget": options.autotune.cpu_budget,
        "ram_budget": options.autotune.ram_budget,
        "enabled": options.autotune.enabled,
        "private_threadpool_size": options.threading.private_threadpool_size,
        "max_intra_op_parallelism": options.threading.max_intra_op_parallelism,
        "apply_default_optimizations": options.experimental_optimization.apply_default_optimizations,
        "noop_elimination": options.experimental_optimization.noop_elimination,
    }


@pytest.mark.parametrize("joined", JOINED)
@pytest.mark.parametrize("setting", SETTINGS)
def test_merging(setting, joined):
    def run(lib):
        datasets = []
        for first in (True, False):
            options = lib.Options()
            SETTINGS[setting](options, first)
            datasets.append(lib.Dataset.range(5).with_options(options))
        return shown(JOINED[joined](lib, *datasets).options())

    assert run(Ours()) == run(oracle())


WRONG = {
    "deterministic": lambda o: setattr(o, "deterministic", 1),
    "unknown": lambda o: setattr(o, "nonsense", 1),
    "dataset_name": lambda o: setattr(o, "dataset_name", 1),
    "cpu_budget": lambda o: setattr(o.autotune, "cpu_budget", 1.5),
    "ram_budget": lambda o: setattr(o.autotune, "ram_budget", 1e9),
    "threading": lambda o: setattr(o, "threading", 3),
    "merge": lambda o: o.merge(3),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_refused(wrong):
    mine, theirs = (attempt(lambda lib: WRONG[wrong](lib.Options()), lib) for lib in (Ours(), oracle()))
    assert type(mine) is type(theirs)
    assert isinstance(mine, TypeError | AttributeError)


def test_the_options_of_a_dataset_are_frozen():
    for lib in (Ours(), oracle()):
        found = lib.Dataset.range(3).with_options(lib.Options()).options()
        with pytest.raises(ValueError, match=r"cannot be changed|has no effect"):
            found.deterministic = True
        with pytest.raises(ValueError, match=r"cannot be changed|has no effect"):
            found.autotune.enabled = True

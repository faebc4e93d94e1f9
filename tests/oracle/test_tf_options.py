"""Tests of with_options and options against tf.data's: what is accepted, and how settings merge."""

import operator

import pytest
from compare import in_both

SETTINGS = {
    "deterministic": (True, False),
    "dataset_name": ("a", "b"),
    "autotune.cpu_budget": (1, 2),
    "autotune.ram_budget": (10**6, 10**9),
    "autotune.enabled": (True, False),
    "threading.private_threadpool_size": (1, 2),
    "threading.max_intra_op_parallelism": (1, 2),
    "experimental_optimization.apply_default_optimizations": (True, False),
    "experimental_optimization.noop_elimination": (True, False),
    "experimental_deterministic": (True, False),
}
JOINED = {
    "zip(a, b)": lambda lib, a, b: lib.zip((a, b)),
    "zip(b, a)": lambda lib, a, b: lib.zip((b, a)),
    "a.concatenate(b)": lambda lib, a, b: a.concatenate(b),
    "b later": lambda lib, a, b: a.with_options(b.options()),
    "a later": lambda lib, a, b: b.take(2).with_options(a.options()).skip(1),
    "a": lambda lib, a, b: a.batch(2).with_options(lib.Options()),
}


def put(options, name, value):
    *parts, last = name.split(".")
    setattr(operator.attrgetter(*parts)(options) if parts else options, last, value)


def shown(options):
    """Return the fields that are set, as plain values; unset fields have different defaults in the two libraries."""
    names = [name for name in SETTINGS if name != "experimental_deterministic"]
    return {name: operator.attrgetter(name)(options) or (None if name == "dataset_name" else False) for name in names}


@pytest.mark.parametrize("joined", JOINED)
@pytest.mark.parametrize("setting", SETTINGS)
def test_merging(setting, joined):
    def merged(lib):
        both = lib.Options(), lib.Options()
        for options, value in zip(both, SETTINGS[setting], strict=True):
            put(options, setting, value)
        return shown(JOINED[joined](lib, *map(lib.range(5).with_options, both)).options())

    ours, theirs = in_both(merged)
    assert ours == theirs


WRONG = [*(("deterministic", value) for value in ("yes", 1, 0.0, [True])), ("dataset_name", 1), ("threading", 3)]
WRONG += [("autotune.cpu_budget", 1.5), ("autotune.ram_budget", 1e9), ("determinstic", True)]


def test_what_is_refused():
    def check(lib):
        for name, value in WRONG:
            with pytest.raises(AttributeError if name == "determinstic" else TypeError):
                put(lib.Options(), name, value)
        with pytest.raises(TypeError):
            lib.Options().merge(3)

    in_both(check)

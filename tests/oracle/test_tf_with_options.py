"""Tests of with_options and options against tf.data's: scope, precedence, and what is rejected."""

import pytest
from compare import assert_same, attempt, oracle

from support.libraries import Ours


def setting(lib, deterministic):
    options = lib.Options()
    if deterministic is not None:  # the value if it is not set
        options.deterministic = deterministic
    return options


def pipelines(flags):
    """Return datasets on which ``flags`` were set one after the other, with other ops in between."""
    first, second = flags

    def one(lib, flag):
        return lib.Dataset.range(3).with_options(setting(lib, flag))

    return {
        "once": lambda lib: one(lib, first),
        "twice": lambda lib: one(lib, first).with_options(setting(lib, second)),
        "before a map": lambda lib: one(lib, first).map(lambda x: x + 1),
        "around a map": lambda lib: one(lib, first).map(lambda x: x + 1).with_options(setting(lib, second)),
        "with none set between": lambda lib: one(lib, first).with_options(lib.Options()).take(2),
        "zip": lambda lib: lib.Dataset.zip((one(lib, first), one(lib, second))),
        "concatenate": lambda lib: one(lib, first).concatenate(one(lib, second)),
        "behind zip": lambda lib: lib.Dataset.zip((one(lib, None), one(lib, first))).with_options(setting(lib, second)),
        "in a flat_map": lambda lib: one(lib, first).flat_map(lambda x: one(lib, second)),
        "repeat, batch, cache": lambda lib: one(lib, first).repeat(2).batch(2).cache().prefetch(1),
        "apply": lambda lib: lib.Dataset.range(3).apply(lambda ds: ds.with_options(setting(lib, first))),
    }


@pytest.mark.parametrize("flags", [(a, b) for a in (None, True, False) for b in (None, True, False)], ids=str)
@pytest.mark.parametrize("pipeline", pipelines((None, None)))
def test_which_setting_holds(pipeline, flags):
    build = pipelines(flags)[pipeline]
    expected = build(oracle()).options().deterministic
    assert build(Ours()).options().deterministic is expected
    assert_same(build, spec="compatible")


def test_options_given_are_copied():
    for lib in (Ours(), oracle()):
        options = setting(lib, True)
        dataset = lib.Dataset.range(3).with_options(options)
        options.deterministic = False
        assert dataset.options().deterministic is True


def test_options_of_a_dataset_cannot_be_changed():
    for lib in (Ours(), oracle()):
        for dataset in (lib.Dataset.range(3), lib.Dataset.range(3).with_options(setting(lib, True))):
            with pytest.raises(ValueError, match=r"."):
                dataset.options().deterministic = False
            assert dataset.options().deterministic in {None, True}


@pytest.mark.parametrize("value", ["yes", 1, 0.0, [True]], ids=repr)
def test_what_is_no_setting(value):
    for lib in (Ours(), oracle()):
        assert isinstance(attempt(lambda lib: setting(lib, value), lib), TypeError)


def test_an_unknown_option():
    def build(lib):
        options = lib.Options()
        options.determinstic = True

    for lib in (Ours(), oracle()):
        assert isinstance(attempt(build, lib), AttributeError)


@pytest.mark.parametrize("options", [None, {}, {"deterministic": True}, True], ids=repr)
def test_what_is_no_options(options):
    for lib in (Ours(), oracle()):
        error = attempt(lambda lib: lib.Dataset.range(3).with_options(options).options(), lib)
        assert isinstance(error, Exception)
    assert isinstance(error, Exception)


def test_equality():
    for lib in (Ours(), oracle()):
        assert setting(lib, True) == setting(lib, True)
        assert setting(lib, True) != setting(lib, False)
        assert setting(lib, True) != setting(lib, None)
        assert lib.Dataset.range(3).options() == lib.Options()


@pytest.mark.parametrize("flags", [(None, True), (True, None), (True, False), (False, True)], ids=str)
def test_merge(flags):
    first, second = flags
    results = [setting(lib, first).merge(setting(lib, second)).deterministic for lib in (Ours(), oracle())]
    assert results[0] is results[1]

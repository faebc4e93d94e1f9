"""Tests of with_options and options against tf.data's: scope, precedence, and what is rejected."""

import pytest
from compare import assert_both_raise, assert_same, in_both


def setting(lib, deterministic):
    options = lib.Options()
    if deterministic is not None:  # the value if it is not set
        options.deterministic = deterministic
    return options


def pipelines(flags):
    """Return datasets on which ``flags`` were set one after the other, with other ops in between."""
    first, second = flags

    def one(lib, flag):
        return lib.range(3).with_options(setting(lib, flag))

    return {
        "once": lambda lib: one(lib, first),
        "twice": lambda lib: one(lib, first).with_options(setting(lib, second)),
        "before a map": lambda lib: one(lib, first).map(lambda x: x + 1),
        "around a map": lambda lib: one(lib, first).map(lambda x: x + 1).with_options(setting(lib, second)),
        "with none set between": lambda lib: one(lib, first).with_options(lib.Options()).take(2),
        "zip": lambda lib: lib.zip((one(lib, first), one(lib, second))),
        "concatenate": lambda lib: one(lib, first).concatenate(one(lib, second)),
        "behind zip": lambda lib: lib.zip((one(lib, None), one(lib, first))).with_options(setting(lib, second)),
        "in a flat_map": lambda lib: one(lib, first).flat_map(lambda x: one(lib, second)),
        "repeat, batch, cache": lambda lib: one(lib, first).repeat(2).batch(2).cache().prefetch(1),
        "apply": lambda lib: lib.range(3).apply(lambda ds: ds.with_options(setting(lib, first))),
    }


@pytest.mark.parametrize("flags", [(a, b) for a in (None, True, False) for b in (None, True, False)], ids=str)
@pytest.mark.parametrize("pipeline", pipelines((None, None)))
def test_which_setting_holds(pipeline, flags):
    build = pipelines(flags)[pipeline]
    ours, theirs = in_both(lambda lib: build(lib).options().deterministic)
    assert ours is theirs
    assert_same(build, spec="compatible")


def test_options_are_copied_and_compared_and_cannot_be_changed():
    def check(lib):
        options = setting(lib, True)
        dataset = lib.range(3).with_options(options)
        options.deterministic = False
        assert dataset.options().deterministic is True
        for frozen in (lib.range(3).options(), dataset.options()):
            with pytest.raises(ValueError, match=r"."):
                frozen.deterministic = False
            assert frozen.deterministic in {None, True}
            with pytest.raises(ValueError, match=r"cannot be changed|has no effect"):
                frozen.autotune.enabled = True
        assert setting(lib, True) == setting(lib, True)
        assert setting(lib, True) != setting(lib, False)
        assert setting(lib, True) != setting(lib, None)
        assert lib.range(3).options() == lib.Options()

    in_both(check)


@pytest.mark.parametrize("options", [None, {}, {"deterministic": True}, True], ids=repr)
def test_what_is_no_options(options):
    assert_both_raise(lambda lib: lib.range(3).with_options(options).options(), Exception)

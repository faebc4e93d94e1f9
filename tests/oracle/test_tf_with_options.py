"""Tests of with_options and options against tf.data's: scope, precedence, and what is rejected."""

import pytest
from compare import assert_both_raise, assert_same, in_both, programs, same


def setting(lib, deterministic):
    options = lib.Options()
    if deterministic is not None:  # the value if it is not set
        options.deterministic = deterministic
    return options


def assert_same_setting(build):
    ours, theirs = in_both(lambda lib: build(lib).options().deterministic)
    assert ours is theirs
    assert_same(build, spec="compatible")


test_which_setting_holds = same(
    {
        "once": "one",
        "twice": "one.with_options(setting(second))",
        "before a map": "one.map(lambda x: x + 1)",
        "around a map": "one.map(lambda x: x + 1).with_options(setting(second))",
        "with none set between": "one.with_options(Options()).take(2)",
        "zip": "zip((one, range(3).with_options(setting(second))))",
        "concatenate": "one.concatenate(range(3).with_options(setting(second)))",
        "behind zip": "zip((range(3).with_options(Options()), one)).with_options(setting(second))",
        "in a flat_map": "one.flat_map(lambda x: range(3).with_options(setting(second)))",
        "repeat, batch, cache": "one.repeat(2).batch(2).cache().prefetch(1)",
        "apply": "range(3).apply(lambda ds: ds.with_options(setting(second)))",
    },
    one=programs({str(flag): f"range(3).with_options(setting({flag}))" for flag in (None, True, False)}),
    second=[None, True, False],
    by=assert_same_setting,
)


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
        assert setting(lib, True) not in (setting(lib, False), setting(lib, None))
        assert lib.range(3).options() == lib.Options()

    in_both(check)


@pytest.mark.parametrize("options", [None, {}, {"deterministic": True}, True], ids=repr)
def test_what_is_no_options(options):
    assert_both_raise(lambda lib: lib.range(3).with_options(options).options(), Exception)

"""with_options: settings of a pipeline."""

import pytest

from dataset import Dataset, OptimizationOptions, Options
from dataset.testing import check_operator


def options(**settings):
    made = Options()
    for name, value in settings.items():
        if name == "deterministic":
            made.deterministic = value
        else:
            setattr(made.optimization, name, value)
    return made


def test_changes_no_element():
    check_operator(lambda: Dataset.range(3).with_options(options(enabled=False)), list(Dataset.range(3)))
    dataset = Dataset.range(3).batch(2)
    assert dataset.with_options(Options()).element_spec == dataset.element_spec
    assert dataset.with_options(Options()).cardinality() == 2


def test_nothing_is_set_at_first():
    assert Dataset.range(3).options() == Options()
    assert Options().deterministic is None
    assert Options().optimization.enabled is None


def test_later_settings_win_and_others_stay():
    dataset = (
        Dataset.range(3)
        .with_options(options(deterministic=True, enabled=False))
        .map(str)
        .with_options(options(deterministic=False, noop_elimination=True))
    )
    assert dataset.options() == options(deterministic=False, enabled=False, noop_elimination=True)


def test_an_unset_option_does_not_hide_an_earlier_one():
    dataset = Dataset.range(3).with_options(options(deterministic=False)).with_options(Options())
    assert dataset.options().deterministic is False


def test_the_settings_of_all_inputs_are_merged_and_the_later_input_wins():
    one = Dataset.range(3).with_options(options(deterministic=True, noop_elimination=False))
    two = Dataset.range(3).with_options(options(deterministic=False))
    assert Dataset.zip(one, two).options() == options(deterministic=False, noop_elimination=False)
    assert Dataset.zip(two, one).options().deterministic is True
    assert one.concatenate(two).options().deterministic is False


def test_the_options_of_a_dataset_are_frozen():
    dataset = Dataset.range(3).with_options(options(deterministic=True))
    for change in (
        lambda found: setattr(found, "deterministic", False),
        lambda found: setattr(found.optimization, "enabled", False),
        lambda found: setattr(found, "optimization", OptimizationOptions()),
    ):
        with pytest.raises(ValueError, match="cannot be changed"):
            change(dataset.options())
    assert dataset.options() == options(deterministic=True)


def test_changing_the_users_options_later_does_not_change_the_dataset():
    mine = options(deterministic=True)
    dataset = Dataset.range(3).with_options(mine)
    mine.deterministic = False
    mine.optimization.enabled = False
    assert dataset.options() == options(deterministic=True)


@pytest.mark.parametrize("wrong", [None, {}, True, OptimizationOptions()])
def test_refuses_what_is_no_options(wrong):
    with pytest.raises(TypeError, match=r"with_options\(\): expected an Options, got"):
        Dataset.range(3).with_options(wrong)

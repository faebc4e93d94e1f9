"""with_options: settings of a pipeline. tests/oracle compares which setting holds, and copies, with tf.data's."""

import pytest

from dataset import Dataset, OptimizationOptions, Options
from dataset.testing import check_operator
from support.op_cases import ints


def options(deterministic=None, **optimization):
    made = Options()
    made.deterministic = deterministic
    for name, value in optimization.items():
        setattr(made.optimization, name, value)
    return made


def test_later_settings_win_and_unset_ones_hide_none():
    assert Dataset.range(3).options() == Options()
    dataset = Dataset.range(3).with_options(options(True, enabled=False)).take(2)
    dataset = dataset.with_options(options(False, noop_elimination=True)).with_options(Options())
    assert dataset.options() == options(False, enabled=False, noop_elimination=True)
    check_operator(lambda: dataset, ints(0, 1))


def test_the_settings_of_all_inputs_are_merged_and_the_later_input_wins():
    one = Dataset.range(3).with_options(options(True, noop_elimination=False))
    two = Dataset.range(3).with_options(options(False))
    assert Dataset.zip(one, two).options() == options(False, noop_elimination=False)
    assert Dataset.zip(two, one).options().deterministic is True
    assert one.concatenate(two).options().deterministic is False


def test_the_options_of_a_dataset_are_frozen():
    dataset = Dataset.range(3).with_options(options(True))
    for change in (
        lambda found: setattr(found, "deterministic", False),
        lambda found: setattr(found.optimization, "enabled", False),
        lambda found: setattr(found, "optimization", OptimizationOptions()),
    ):
        with pytest.raises(ValueError, match="cannot be changed"):
            change(dataset.options())

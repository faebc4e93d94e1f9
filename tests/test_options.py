"""Tests of the options: tf.data's fields, validated when they are set."""

import copy
import functools
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from dataset import AUTOTUNE, AutotuneOptions, Dataset, OptimizationOptions, Options, ThreadingOptions
from dataset.optimize.driver import optimize


@pytest.mark.parametrize("value", [True, False])
def test_map_vectorization_has_an_older_spelling(value):
    new, old = Options(), Options()
    new.optimization.map_vectorization = value
    old.experimental_optimization.map_vectorization.enabled = value
    assert new == old != Options()
    assert bool(old.optimization.map_vectorization) is value
    assert old.optimization.allows("map_vectorization") is value
    assert Options().optimization.allows("map_vectorization")
    rules = [fired.rule for fired in optimize(Dataset.range(3).map(lambda x: x + 1).plan, old.optimization).fired]
    assert ("map_vectorization" in rules) is value
    with pytest.raises(ValueError, match="cannot be changed"):
        Dataset.range(3).with_options(old).options().optimization.map_vectorization.enabled = None
    old.optimization.map_vectorization = None
    assert old == Options()
    with pytest.raises(TypeError, match=r"MapVectorizationOptions\.enabled must be True, False or None, got 1"):
        old.optimization.map_vectorization = 1


@pytest.mark.parametrize(
    ("group", "name", "value", "message"),
    [
        ("", "deterministic", 1, "Options.deterministic must be True, False or None, got 1"),
        ("", "dataset_name", 3, "Options.dataset_name must be text or None, got 3"),
        ("", "threading", AutotuneOptions(), r"Options.threading must be ThreadingOptions, got AutotuneOptions\(\)"),
        ("autotune", "cpu_budget", 2.0, "AutotuneOptions.cpu_budget must be an int or None, got 2.0"),
        ("autotune", "cpu_budget", True, "AutotuneOptions.cpu_budget must be an int or None, got True"),
        ("autotune", "cpu_budget", -3, "cpu_budget must be at least 0, got -3"),
    ],
)
def test_a_wrong_value_is_refused(group, name, value, message):
    with pytest.raises(ValueError if value == -3 else TypeError, match=message):
        setattr(getattr(Options(), group) if group else Options(), name, value)
    with pytest.raises(TypeError, match=r"Options.merge\(\): expected Options, got 3"):
        Options().merge(3)


def test_a_count_may_be_a_number_of_numpy():
    options = Options()
    options.autotune.cpu_budget = np.int32(2)
    assert options.autotune.cpu_budget == 2


def test_an_unknown_name_is_refused_with_a_suggestion():
    for options, name, hint in [
        (Options(), "determinstic", "did you mean 'deterministic'"),
        (
            Options(),
            "nonsense",
            "there are autotune, dataset_name, deterministic, files, garbage_collection, optimization, provenance",
        ),
        (ThreadingOptions(), "private_thread_pool_size", "did you mean 'private_threadpool_size'"),
        (OptimizationOptions(), "noop_eliminaton", "did you mean 'noop_elimination'"),
    ]:
        with pytest.raises(AttributeError, match=f"has no option '{name}'; {hint}"):
            setattr(options, name, True)
        with pytest.raises(AttributeError, match=f"has no option '{name}'; {hint}"):
            getattr(options, name)
        assert not hasattr(options, name)


def test_an_option_whose_effect_would_be_missed_is_refused_with_the_reason():
    with pytest.raises(AttributeError, match=r"experimental_service is an option of tf.data .* not supported"):
        _ = Options().experimental_service.pinned


def set_twice(options, path, name):
    for _ in range(2):
        setattr(functools.reduce(getattr, path, options), name, 1)


@pytest.mark.parametrize(
    "name",
    [
        "experimental_distribute",
        "experimental_distribute.auto_shard_policy",
        "experimental_slack",
        "framework_type",
        "autotune.autotune_algorithm",
        "optimization.map_vectorization.use_choose_fastest",
    ],
)
def test_what_only_determines_how_tensorflow_runs_is_accepted_with_one_warning(name, monkeypatch):
    monkeypatch.setattr("dataset.options._warned", set())
    *path, last = name.split(".")
    options = Options()
    warned = path[0] if path[:1] == ["experimental_distribute"] else last
    with pytest.warns(UserWarning, match=rf"Options\.{warned} has no effect here: ") as caught:
        set_twice(options, path, last)
    assert [Path(warning.filename).name for warning in caught] == ["test_options.py"]
    assert options == Options()
    assert not getattr(options, name.split(".")[0], None) or path[:1] in (["autotune"], ["optimization"])
    assert [int(x) for x in Dataset.range(3).with_options(options)] == [0, 1, 2]


def test_the_older_name_is_the_same_field():
    options = Options()
    options.experimental_threading = ThreadingOptions()
    options.experimental_threading.private_threadpool_size = 2
    assert options.threading.private_threadpool_size == 2


@pytest.mark.parametrize(("value", "text"), [(AUTOTUNE, "AUTOTUNE"), (AUTOTUNE(max=8), "AUTOTUNE(max=8)")], ids=str)
def test_autotune_is_the_integer_of_tf_data_with_or_without_a_bound(value, text):
    assert (value, hash(value), json.dumps(value), np.array(value).dtype) == (-1, hash(-1), "-1", np.int64)
    for again in (value, copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert (again, repr(again), again.max) == (-1, text, value.max)


@pytest.mark.parametrize(
    ("bound", "error", "message"),
    [
        (0, ValueError, "max must be at least 1, got 0"),
        (True, TypeError, "max must be an int, got True of type bool"),
        (2.0, TypeError, "max must be an int, got 2.0 of type float"),
        (None, TypeError, "max must be an int, got None of type NoneType"),
    ],
)
def test_a_bound_of_autotune_is_an_int_of_at_least_one(bound, error, message):
    with pytest.raises(error, match=rf"AUTOTUNE\(\): {message}"):
        AUTOTUNE(max=bound)
    assert AUTOTUNE(max=np.int64(3)).max == 3


def test_options_are_copied_and_pickled_as_values():
    options = Options()
    options.threading.private_threadpool_size = 2
    for again in (copy.copy(options), copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert again == options
    frozen = pickle.loads(pickle.dumps(Dataset.range(2).with_options(options).options()))
    with pytest.raises(ValueError, match="cannot be changed"):
        frozen.deterministic = True


def test_later_changes_of_options_do_not_reach_the_dataset_whose_name_is_shown():
    options = Options()
    options.dataset_name = "train"
    dataset = Dataset.range(3).with_options(options).batch(2)
    options.dataset_name = "late"
    assert dataset.options().dataset_name == "train"
    assert repr(dataset).startswith("<Dataset 'train': batch(2) from test_options.py:")
    assert dataset.explain().splitlines()[0] == "train:"

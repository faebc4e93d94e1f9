"""Tests that the operators' benchmarks cover every operator, and that each runs the operator that it measures."""

import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

import dataset
from dataset import Dataset

MICRO = Path(__file__).parents[1] / "benchmarks" / "micro"
ELEMENTS = 200

LEFT_OUT = {
    "from_tf",  # importing TensorFlow takes longer than all others together
    "from_ray",  # and so does starting a cluster
    "from_queue",  # a queue holds each element once
    "distribute",  # benchmarks/studies/distribute.py measures it
}


def module(name):
    spec = importlib.util.spec_from_file_location(f"micro_{name}", MICRO / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look it up there
    spec.loader.exec_module(loaded)
    return loaded


operators = module("operators")


def all_operators():
    """Return the public methods of Dataset that return a dataset, and the classes that read files."""
    for name, value in vars(Dataset).items():
        function = value.__func__ if isinstance(value, staticmethod) else value
        if (
            not name.startswith("_")
            and inspect.isfunction(function)
            and str(inspect.signature(function).return_annotation).startswith("Dataset[")
        ):
            yield name
    for name in dataset.__all__:
        value = getattr(dataset, name)
        if inspect.isclass(value) and issubclass(value, Dataset) and value is not Dataset:
            yield name


def without_entry(entries):
    return set(all_operators()) - {entry.method for entry in entries} - LEFT_OUT


def test_every_operator_has_a_benchmark_of_its_own_name_and_one_without_is_noticed():
    assert without_entry(operators.ENTRIES) == set()
    found = set(all_operators())
    assert {"map", "range", "zip", "snapshot", "TFRecordDataset"} | LEFT_OUT <= found
    for name in found - LEFT_OUT:
        assert without_entry([entry for entry in operators.ENTRIES if entry.method != name]) == {name}
    assert not LEFT_OUT & {entry.method for entry in operators.ENTRIES}
    names = [entry.name for entry in operators.ENTRIES]
    assert len(names) == len(set(names))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    operators.prepare(path, ELEMENTS)
    return path


@pytest.mark.parametrize("entry", operators.ENTRIES, ids=lambda entry: entry.name)
def test_a_benchmark_runs_its_operator(entry, folder, monkeypatch):
    if not entry.can_run:
        pytest.skip(f"needs {', '.join(entry.needs)}")
    elements = min(entry.elements or ELEMENTS, ELEMENTS)
    called, given = [], []
    record_calls(entry.method, called, monkeypatch)
    monkeypatch.setattr(operators, "consume", lambda chain: given.append(sum(1 for _ in chain)))
    for in_batches in [False, True] if entry.batches else [False]:
        entry.ready(elements, folder, in_batches=in_batches)()
    assert called or owner_of(entry.method) is None
    assert all(given)


def owner_of(name):
    """Return the object whose attribute creates the operator: a class with its constructor, or Dataset."""
    if name in dataset.__all__:
        return getattr(dataset, name), "__init__"
    return (Dataset, name) if hasattr(Dataset, name) else None


def record_calls(name, called, monkeypatch):
    if owner_of(name) is None:
        return
    owner, attribute = owner_of(name)
    static = inspect.getattr_static(owner, attribute)
    function = static.__func__ if isinstance(static, staticmethod) else static

    def recorded(*args, **keywords):
        called.append(name)
        return function(*args, **keywords)

    monkeypatch.setattr(owner, attribute, staticmethod(recorded) if isinstance(static, staticmethod) else recorded)


def test_runs_are_compared_by_their_ratios():
    compare = module("compare")
    table = compare.comparison({"map": 100.0, "take": 10.0, "old": 1.0}, {"map": 50.0, "take": 40.0, "new": 1.0})
    assert [line.split() for line in table[1:]] == [
        ["take", "10", "40", "4.00"],
        ["map", "100", "50", "0.50"],
        ["geometric", "mean", "of", "the", "ratios", "1.41"],
        ["only", "in", "the", "old", "run:", "old"],
        ["only", "in", "the", "new", "run:", "new"],
    ]

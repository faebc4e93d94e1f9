"""Tests that the operators' benchmarks cover every operator, and that each runs."""

import inspect
from pathlib import Path

import pytest

import dataset
from dataset import Dataset
from support.scripts import load_script

MICRO = Path(__file__).parents[1] / "benchmarks" / "micro"
ELEMENTS = 200

LEFT_OUT = {
    "from_tf",  # importing TensorFlow takes longer than all others together
    "from_ray",  # and so does starting a cluster
    "from_queue",  # a queue holds each element once
    "distribute",  # benchmarks/studies/distribute.py measures it
}


operators = load_script(MICRO / "operators.py")


def all_operators():
    """Return the public methods of Dataset that return a dataset, and the classes that read files."""
    for name in dir(Dataset):
        function = getattr(Dataset, name)
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


def test_every_operator_has_a_benchmark():
    found = set(all_operators())
    assert {"map", "range", "zip", "snapshot", "TFRecordDataset"} <= found
    assert found - {entry.method for entry in operators.ENTRIES} == LEFT_OUT


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    operators.prepare(path, ELEMENTS)
    return path


@pytest.mark.parametrize("entry", operators.ENTRIES, ids=lambda entry: entry.name)
def test_a_benchmark_runs(entry, folder, monkeypatch):
    if not entry.can_run:
        pytest.skip(f"needs {', '.join(entry.needs)}")
    elements = min(entry.elements or ELEMENTS, ELEMENTS)
    given = []
    monkeypatch.setattr(operators, "consume", lambda chain: given.append(sum(1 for _ in chain)))
    for in_batches in [False, True] if entry.batches else [False]:
        entry.ready(elements, folder, in_batches=in_batches)()
    assert all(given)

"""Tests that exactly the names in __all__ are public, that operations show examples, and that importing is cheap."""

import importlib
import importlib.metadata
import inspect
import pickle
import types
from pathlib import Path

import pytest

import dataset
import dataset.testing
from dataset import checkpoint, io
from support.process_helpers import run_code

DOORS = [dataset, checkpoint, io, dataset.testing]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_all_lists_what_is_public_and_nothing_else_in_order(door):
    names = [name for name in dir(door) if not name.startswith("_")]
    there = {name for name in names if name in door.__all__ or not isinstance(getattr(door, name), types.ModuleType)}
    assert door.__all__ == sorted(there, key=lambda name: (not name.isupper(), name))


def test_every_operation_shows_an_example():
    methods = {name for name in dir(dataset.Dataset) if not name.startswith("_")}
    methods -= {"plan", "options", "as_numpy_iterator"}
    assert [name for name in methods if ">>>" not in inspect.getdoc(getattr(dataset.Dataset, name))] == []


def test_importing_imports_no_framework_takes_no_threads_and_opens_no_files():
    heavy = ["torch", "keras", "jax", "tensorflow", "cv2", "simplejpeg", "attr", "attrs", "pandas", "pyarrow", "fsspec"]
    code = (
        "import os, sys, threading, numpy, google.protobuf.message\n"
        "files = lambda: os.listdir('/proc/self/fd') if os.path.isdir('/proc/self/fd') else []\n"
        "before = sorted(files())\n"
        "import dataset, dataset.io, dataset.testing\n"
        f"print(*[name for name in {heavy!r} if name in sys.modules])\n"
        "print(threading.active_count(), before == sorted(files()))"
    )
    assert run_code(code, PYTHONWARNINGS="error").stdout.split() == ["1", "True"]


def test_what_only_some_formats_need_is_imported_when_it_is_needed():
    code = (
        "import sys, dataset\n"
        "from dataset import Dataset, io\n"
        "assert len(list(Dataset.range(4).shuffle(4).map(lambda x: x + 1).batch(2).prefetch(1))) == 2\n"
        "late = ['google.protobuf', 'crc32c', 'importlib.metadata', 'dataset.io.example.messages']\n"
        "print(*[name for name in late if name in sys.modules])\n"
        "assert io.Example is io.Example and io.Example().features is not None\n"
        "assert 'Example' in dir(io) and not hasattr(io, 'Exampel')\n"
        "print(*[name in sys.modules for name in ['google.protobuf', 'dataset.io.example.messages']])"
    )
    assert run_code(code, PYTHONWARNINGS="error").stdout.split() == ["True", "True"]


def test_the_version_is_that_of_the_distribution_and_the_package_says_that_it_is_typed():
    assert dataset.__version__ == importlib.metadata.version("dataset-combinators")
    assert (Path(dataset.__file__).parent / "py.typed").is_file()


EXCEPTIONS = [
    *(kind("text") for kind in (dataset.SpecError, dataset.ParseError, dataset.StateError, dataset.ClosedError)),
    dataset.DataLossError("text", path="p", offset=3, record=1),
    dataset.BrokenConnectionError("text", path="p", tries=5),
    dataset.FileChangedError("text", path="p"),
]


@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda error: type(error).__name__)
def test_the_librarys_exceptions_share_a_base_and_can_be_sent_to_another_process(error):
    assert isinstance(error, dataset.DatasetError)
    copy = pickle.loads(pickle.dumps(error))  # trusted bytes
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)

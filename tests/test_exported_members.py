"""Tests that exactly the names in __all__ are public, that they are documented, and that importing them is cheap."""

import ast
import importlib
import inspect
import itertools
import pickle
import subprocess
import sys
import types
from pathlib import Path

import pytest

import dataset
import dataset.testing
from dataset import checkpoint, io

DOORS = [dataset, checkpoint, io, dataset.testing]
PUBLIC = [(door, name) for door in DOORS for name in door.__all__]
ids = [f"{door.__name__}.{name}" for door, name in PUBLIC]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_all_lists_what_is_public_and_nothing_else(door):
    names = [name for name in dir(door) if not name.startswith("_")]
    there = {name for name in names if name in door.__all__ or not isinstance(getattr(door, name), types.ModuleType)}
    assert set(door.__all__) == there
    assert len(set(door.__all__)) == len(door.__all__)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_all_is_in_order(door):
    assert door.__all__ == sorted(door.__all__, key=lambda name: (not name.isupper(), name))


@pytest.mark.parametrize(("door", "name"), PUBLIC, ids=ids)
def test_every_public_name_has_a_docstring(door, name):
    value = getattr(door, name)
    if callable(value) or isinstance(value, types.ModuleType):
        assert inspect.getdoc(value)
    else:
        assert name in documented_constants()


def documented_constants():
    """Return the names assigned at the top level of a module with a string below them."""
    found = set()
    for path in Path(dataset.__file__).parent.rglob("*.py"):
        body = ast.parse(path.read_text()).body
        for first, second in itertools.pairwise(body):
            if (
                isinstance(first, ast.Assign)
                and isinstance(second, ast.Expr)
                and isinstance(second.value, ast.Constant)
            ):
                found.update(target.id for target in first.targets if isinstance(target, ast.Name))
    return found


def public_methods():
    for door, name in PUBLIC:
        cls = getattr(door, name)
        if inspect.isclass(cls) and cls.__module__.startswith("dataset") and hasattr(cls, "__dict__"):
            for method, value in vars(cls).items():
                plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
                if not method.startswith("_") and (inspect.isfunction(plain) or isinstance(plain, property)):
                    yield pytest.param(plain, id=f"{name}.{method}")


@pytest.mark.parametrize("method", list(public_methods()))
def test_every_public_method_has_a_docstring(method):
    assert inspect.getdoc(method)


@pytest.mark.parametrize(
    "name", [n for n, v in vars(dataset.Dataset).items() if not n.startswith("_") and n not in {"plan", "options"}]
)
def test_every_operation_shows_an_example(name):
    if name == "as_numpy_iterator":
        return
    assert ">>>" in inspect.getdoc(getattr(dataset.Dataset, name))


def run(code):
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()


def test_importing_imports_no_framework_and_takes_no_threads():
    heavy = ["torch", "keras", "jax", "tensorflow", "cv2", "simplejpeg", "attr", "attrs", "pandas", "pyarrow", "fsspec"]
    code = (
        "import sys, threading, dataset, dataset.io, dataset.testing\n"
        f"print(*[name for name in {heavy!r} if name in sys.modules])\n"
        "print(threading.active_count())"
    )
    assert run(code) == ["1"]


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
    assert run(code) == ["True", "True"]


def test_importing_opens_no_files():
    code = (
        "import os, numpy, google.protobuf.message\n"
        "before = sorted(os.listdir('/proc/self/fd'))\n"
        "import dataset\n"
        "print(before == sorted(os.listdir('/proc/self/fd')))"
    )
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("files are counted on Linux")
    assert run(code) == ["True"]


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert dataset.__version__ == version("dataset-combinators")


def test_the_package_says_that_it_is_typed():
    assert (Path(dataset.__file__).parent / "py.typed").is_file()


def test_every_module_can_be_imported_alone():
    root = Path(dataset.__file__).parent
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        importlib.import_module(".".join(["dataset", *(parts[:-1] if parts[-1] == "__init__" else parts)]))


EXCEPTIONS = [
    dataset.SpecError("text"),
    dataset.DataLossError("text", path="p", offset=3, record=1),
    dataset.BrokenConnectionError("text", path="p", tries=5),
    dataset.FileChangedError("text", path="p"),
    dataset.ParseError("text"),
    dataset.StateError("text"),
    dataset.ClosedError("text"),
]


@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda error: type(error).__name__)
def test_the_librarys_exceptions_share_a_base_and_can_be_sent_to_another_process(error):
    assert isinstance(error, dataset.DatasetError)
    copy = pickle.loads(pickle.dumps(error))  # trusted bytes
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)

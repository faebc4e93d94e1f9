"""Lazy imports: nothing is imported before its first use, and then everything works as after an ordinary import."""

import builtins
import sys

import pytest

from dataset.lazy_imports import lazy_imports
from support.process_helpers import in_thread, run_code

LOADED = "sum(name == 'dataset' or name.startswith('dataset.') for name in sys.modules)"


def output(code):
    return run_code(f"import sys\n{code}").stdout.split()


def module(tmp_path, monkeypatch, text, name):
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return __import__(name)


BLOCK = """
from dataset.lazy_imports import lazy_imports
with lazy_imports():
    from wave import open as opened
    from json import tool
    from no_such_library_at_all import thing
"""


def test_importing_the_package_loads_few_of_its_modules_and_a_method_its_operator():
    code = f"import dataset\nprint({LOADED})\nname = 'dataset.ops.zip'\nprint(name in sys.modules)\n"
    code += "dataset.Dataset.zip(dataset.Dataset.range(3))\nprint(name in sys.modules)"
    loaded, before, after = output(code)
    assert int(loaded) <= 173
    assert (before, after) == ("False", "True")


def test_the_first_batch_of_a_usual_pipeline_waits_for_no_imports():
    code = f"""
import dataset
from dataset import AUTOTUNE, Dataset
before = {LOADED}
rows = Dataset.from_tensor_slices((list(range(9)), list(range(9)))).shuffle(4, seed=1)
rows = rows.map(lambda a, b: a + b, num_parallel_calls=AUTOTUNE).batch(2).prefetch(AUTOTUNE)
print(len(next(iter(rows))), {LOADED} - before)
"""
    assert output(code) == ["2", "0"]


def test_a_name_is_listed_and_imported_at_its_first_use(tmp_path, monkeypatch):
    for name in ["wave", "json.tool"]:
        monkeypatch.delitem(sys.modules, name, raising=False)
    lazy = module(tmp_path, monkeypatch, BLOCK, "lazy_names")
    assert {"opened", "tool", "thing"} <= set(dir(lazy))
    assert "lazy_imports" not in dir(lazy)
    assert "wave" not in sys.modules
    assert "opened" not in vars(lazy)
    assert lazy.opened is sys.modules["wave"].open
    assert "opened" in vars(lazy)
    from lazy_names import tool

    assert tool is lazy.tool is sys.modules["json.tool"]


def test_what_cannot_be_imported_says_so_at_each_use(tmp_path, monkeypatch):
    lazy = module(tmp_path, monkeypatch, BLOCK, "lazy_missing")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_library_at_all"):
            lazy.thing  # noqa: B018
    with pytest.raises(AttributeError, match="module 'lazy_missing' has no attribute 'other'"):
        lazy.other  # noqa: B018


@pytest.mark.parametrize("statement", ["import wave", "import json.tool", "from . import wave"])
def test_other_imports_are_refused(tmp_path, monkeypatch, statement):
    before = builtins.__import__
    text = f"from dataset.lazy_imports import lazy_imports\nwith lazy_imports():\n    {statement}\n"
    with pytest.raises(ImportError, match="takes only 'from module import name'"):
        module(tmp_path, monkeypatch, text, "lazy_refused")
    assert builtins.__import__ is before


def test_imports_of_other_threads_are_not_deferred():
    found = []

    def other():
        namespace = {"__name__": "elsewhere"}
        exec("from colorsys import rgb_to_hsv", namespace)
        found.append(namespace["rgb_to_hsv"])

    with lazy_imports():
        in_thread(other).result()
    assert found == [sys.modules["colorsys"].rgb_to_hsv]
    del globals()["__getattr__"], globals()["__dir__"]  # of this module, which lazy_imports() has set

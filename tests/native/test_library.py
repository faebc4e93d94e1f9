"""Tests of the binding of the native kernels, and of their compilation."""

import importlib
import inspect
import logging
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dataset.native import library

ROOT = Path(__file__).parents[2]
SOURCES = sorted(Path(library.__file__).parent.glob("*.[ch]"))
LINES_MAX = 1250
TWIN_LINES_MAX = 40


@pytest.fixture
def setting(monkeypatch):
    """Return a function that sets ``DATASET_NATIVE`` for this test."""

    def set_to(value):
        monkeypatch.setenv("DATASET_NATIVE", value)
        library.load.cache_clear()

    yield set_to
    library.load.cache_clear()


@pytest.fixture
def build():
    """Return the names of the build hook."""
    return runpy.run_path(str(ROOT / "hatch_build.py"))


def test_the_declared_kernels_are_those_that_the_sources_define():
    text = "".join(path.read_text() for path in SOURCES)
    assert set(re.findall(r"^KERNEL int64_t (\w+)\(", text, re.MULTILINE)) == set(library.KERNELS)


@pytest.mark.parametrize("name", library.KERNELS)
def test_every_kernel_has_a_short_twin(name):
    module, function = library.KERNELS[name].twin.split(":")
    twin = getattr(importlib.import_module(module), function)
    lines = inspect.getsource(twin).replace(f'"""{twin.__doc__}"""', "").splitlines()
    assert len(lines) <= TWIN_LINES_MAX


def test_the_kernels_stay_few_lines():
    assert sum(len(path.read_text().splitlines()) for path in SOURCES if path.suffix == ".c") <= LINES_MAX


def test_the_setting_0_uses_no_kernels(setting):
    setting("0")
    assert library.kernels() is None
    assert library.kernels_status() == "not in use: DATASET_NATIVE is 0"


def test_without_a_library_the_twins_are_used_or_the_error_says_what_is_missing(setting, monkeypatch, tmp_path):
    monkeypatch.setattr(library, "LIBRARY", tmp_path / "absent.so")
    setting("auto")
    assert library.kernels() is None
    assert library.kernels_status().startswith("not in use: the package was installed without a C compiler")
    setting("1")
    with pytest.raises(RuntimeError, match=r"DATASET_NATIVE is 1, but .* without a C compiler; install one"):
        library.kernels()


def test_a_file_that_is_not_a_library_is_not_used(setting, monkeypatch, tmp_path):
    monkeypatch.setattr(library, "LIBRARY", tmp_path / "text.so")
    library.LIBRARY.write_text("text")
    setting("auto")
    assert library.kernels() is None
    assert re.match(r"not in use: .*text.so can't be loaded: ", library.kernels_status())


def test_an_unknown_setting_is_an_error(setting):
    setting("yes")
    with pytest.raises(ValueError, match="DATASET_NATIVE must be auto, 0 or 1, got 'yes'"):
        library.kernels()


def test_without_a_compiler_nothing_is_compiled_and_the_reasons_are_given(build, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CC", "/nowhere/cc -m64")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    reasons = build["compile_kernels"](tmp_path / "kernels.so")
    assert re.match(r"/nowhere/cc -m64: .*No such file.*; /nowhere/python -m ziglang cc: ", reasons)
    assert not list(tmp_path.iterdir())


def test_sources_that_do_not_compile_leave_nothing_behind(build, tmp_path):
    assert build["compile_kernels"](tmp_path / "kernels.so", "-DKERNEL_SOURCES=undefined")
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_the_script_says_so_and_succeeds(monkeypatch, tmp_path):
    command = [sys.executable, ROOT / "hatch_build.py", tmp_path / "kernels.so"]
    done = subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("The kernels were not compiled; the package works without them.")


if shutil.which("cc"):

    def test_a_library_of_other_sources_is_ignored_with_one_warning(build, setting, monkeypatch, tmp_path, caplog):
        target = tmp_path / "kernels.so"
        assert not build["compile_kernels"](target)
        monkeypatch.setattr(library, "LIBRARY", target)
        setting("auto")
        assert library.kernels_status() == "in use"
        monkeypatch.setattr(library, "source_hash", lambda: "another")
        setting("auto")
        with caplog.at_level(logging.WARNING, "dataset"):
            assert library.kernels() is None
            assert library.kernels() is None
        assert len(caplog.records) == 1
        assert "kernels.so was compiled from other sources; run make" in library.kernels_status()

"""Imports programs that are in no package, such as benchmarks."""

import importlib.util
import sys


def load_script(path):
    """Return the module of a program; its name is that of the folder and the file."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look it up there
    spec.loader.exec_module(loaded)
    return loaded

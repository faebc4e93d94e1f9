"""``doctor``: show what the library has to work with on this machine, and what is wrong with its installation."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

from dataset.commands.command_errors import DAMAGED, GOOD
from dataset.commands.common_options import Subparsers, add_command, add_json
from dataset.commands.display.terminal import printable, say, say_json, size
from dataset.extras import EXTRAS, missing_modules
from dataset.native.library import kernels_status
from dataset.plan.drawing.summary import table
from dataset.runtime.resources.cores import usable_cores
from dataset.runtime.resources.memory import available_memory, default_budget, group_memory
from dataset.version import __version__

MORE = """\
Shows the cores and the memory that this process may use, whether the native kernels
are in use, and which extras and frameworks are installed, with their versions. No
framework is imported.

examples:
  python -m dataset doctor
  python -m dataset doctor --json

status: 0, or 1 if something is wrong: the native kernels cannot be loaded, or an
unrelated distribution has the same module name
"""

_IN_USE = "in use"
_NAMESAKE = "dataset"  # the distribution of this library is dataset-combinators


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    parser = add_command(commands, "doctor", run, "show what the library has to work with, and what is wrong", MORE)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    report = _report()
    if arguments.json:
        say_json(report)
    else:
        _say(report)
    return DAMAGED if report["problems"] else GOOD


def _report() -> dict[str, Any]:
    group = group_memory()
    kernels = _kernels()
    return {
        "version": __version__,
        "path": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": {"usable": usable_cores(), "machine": os.cpu_count()},
        "memory": {
            "available": available_memory(),
            "group": None if group == sys.maxsize else group,
            "buffers": default_budget(),
        },
        "kernels": kernels,
        "extras": _extras(),
        "problems": _problems(kernels),
    }


def _kernels() -> str:
    try:
        return kernels_status()
    except (RuntimeError, ValueError) as error:  # DATASET_NATIVE requires them, or has an unknown value
        return str(error)


def _extras() -> dict[str, dict[str, str | None]]:
    """Return the modules of each extra with their versions; None if a module is not installed."""
    found = {}
    for extra, modules in EXTRAS.items():
        missing = missing_modules(extra)
        found[extra] = {name: None if name in missing else _version(name, modules[name]) for name in modules}
    return found


def _version(module: str, distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # another distribution has the module, such as tensorflow-cpu
        others = importlib.metadata.packages_distributions().get(module, [])
        return importlib.metadata.version(others[0]) if others else "of unknown version"


def _problems(kernels: str) -> list[str]:
    problems = []
    if kernels != _IN_USE and os.environ.get("DATASET_NATIVE") != "0":
        problems.append(f"native kernels: {kernels}")
    try:
        importlib.metadata.version(_NAMESAKE)
    except importlib.metadata.PackageNotFoundError:
        return problems
    problems.append(
        f"the unrelated distribution {_NAMESAKE!r} installs a module of the same name: pip uninstall {_NAMESAKE}, "
        "then install dataset-combinators again"
    )
    return problems


def _say(report: dict[str, Any]) -> None:
    cores, memory = report["cores"], report["memory"]
    group = "no limit" if memory["group"] is None else f"{size(memory['group'])} left"
    rows = [
        ("dataset", f"{report['version']} in {printable(report['path'])}"),
        ("Python", f"{report['python']}, {report['platform']}"),
        ("cores", f"{cores['usable']} of {cores['machine']}"),
        ("memory", f"{size(memory['available'])} available; buffers may hold {size(memory['buffers'])}"),
        ("control group", group),
        ("native kernels", report["kernels"]),
    ]
    say(*table(rows))
    say()
    say(*table([(extra, _words(extra, modules)) for extra, modules in report["extras"].items()]))
    if report["problems"]:
        say()
    for problem in report["problems"]:
        say(f"problem: {problem}")


def _words(extra: str, modules: dict[str, str | None]) -> str:
    installed = [f"{module} {version}" for module, version in modules.items() if version is not None]
    missing = [module for module, version in modules.items() if version is None]
    if not missing:
        return ", ".join(installed) or "part of Python"
    # Other libraries may have installed a part, such as Keras rich.
    found = f"{', '.join(installed)}, without {', '.join(missing)}" if installed else "not installed"
    return f'{found}: pip install "dataset-combinators[{extra}]"'

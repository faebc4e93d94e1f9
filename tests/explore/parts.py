"""The parts of the search: what each runs, its share of the time, and what it needs on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .corpus import ROOT

Arguments = Callable[[int, float], list[str]]
MAKE = shutil.which("make") or "make"
MINORS = range(11, 16)
ALL = ["-m", ""]
"""Selects also the tests that are marked for this search."""
WITHOUT_FRAMEWORKS = [
    "tests/test_architecture.py",
    "tests/test_lazy_imports.py",
    *[
        f"tests/{name}"
        for name in [
            "autotune",
            "checkpoint",
            "commands",
            "io",
            "native",
            "ops",
            "optimize",
            "plan",
            "queues",
            "runtime",
        ]
    ],
    *["--ignore=tests/io/image", "--ignore=tests/io/files/remote"],
    "--ignore=tests/ops/distribute/test_distribute_ray.py",
]


def anything() -> str:
    """Return why a part that needs nothing cannot run."""
    return ""


def modules(*names: str) -> Callable[[], str]:
    """Return a function that says which of these modules are not installed."""

    def absent() -> str:
        found = [name for name in names if importlib.util.find_spec(name) is None]
        return f"{', '.join(found)} not installed" if found else ""

    return absent


def sanitizers() -> str:
    """Return why the kernels cannot be compiled with sanitizers."""
    compiler = os.environ.get("CC", "cc").split()
    if shutil.which(compiler[0]) is None:
        return "there is no C compiler"
    found = subprocess.run([*compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False)
    return "" if Path(found.stdout.strip()).is_absolute() else f"{compiler[0]} has no AddressSanitizer"


def program(name: str, *given: str) -> Arguments:
    """Return the arguments of a program of the tests that has options for seed and time."""
    seed_option = "--first" if name == "tests.support.resume_search" else "--seed"
    return lambda seed, seconds: ["-m", name, "--seconds", f"{seconds:.0f}", seed_option, f"{seed}", *given]


def pytest(*given: str) -> Arguments:
    """Return the arguments of a run of pytest, which takes the order of the tests from the seed in the environment."""
    options = ["-p", "support.recording", "-p", "no:cacheprovider", "--continue-on-collection-errors", "-q"]
    return lambda seed, _: ["-m", "pytest", *options, f"--hypothesis-seed={seed}", *given]


@dataclass(frozen=True)
class Part:
    """One part.

    Attributes:
        name: its name on the command line.
        share: its share of the time, compared with those of the other parts.
        arguments: returns the arguments of Python for a seed and a number of seconds.
        needs: returns why it cannot run on this machine, or an empty text.
        environment: variables that it sets.
        python: returns the interpreter, and prepares it if it is not this one; None if it cannot.
        seconds_min: the least time in which it shows something.
    """

    name: str
    share: float
    arguments: Arguments
    needs: Callable[[], str] = anything
    environment: dict[str, str] = field(default_factory=dict)
    python: Callable[[], str | None] = lambda: sys.executable
    seconds_min: float = 60

    @property
    def is_pytest(self) -> bool:
        return "pytest" in self.arguments(0, 0)


def interpreter(minor: int) -> str | None:
    """Return the path of an interpreter of the machine, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    code = f"import sys; sys.exit(sys.version_info[:2] != (3, {minor}))"
    for python in (f"python3.{minor}", *map(str, sorted(pyenv.glob(f"3.{minor}.*/bin/python")))):
        path = shutil.which(python)
        if path and subprocess.run([path, "-c", code], capture_output=True, check=False).returncode == 0:
            return path
    return None


def environment(folder: str, *settings: str) -> Callable[[], str | None]:
    """Return a function that sets up an environment with the packages of the gate's slice for other interpreters."""

    def prepare() -> str | None:
        run = subprocess.run([MAKE, f"{folder}/.ready-check", f"VENV={folder}", *settings], cwd=ROOT, check=False)
        return None if run.returncode else str(ROOT / folder / "bin" / "python")

    return prepare


def _on_other_interpreters() -> list[Part]:
    found = []
    others = [minor for minor in MINORS if minor != sys.version_info.minor]
    for minor in others:
        path = interpreter(minor)
        needs = anything if path else lambda: "this machine does not have it"
        prepared = environment(f".venv-3.{minor}", f"PYTHON={path}")
        found.append(
            Part(
                f"python3.{minor}",
                8 / len(others),
                pytest(*WITHOUT_FRAMEWORKS),
                needs,
                python=prepared,
                seconds_min=180,
            )
        )
    return found


PARTS = [
    Part("resume", 25, program("tests.support.resume_search", "--corpus", "build/corpus"), modules("cv2", "pyarrow")),
    Part(
        "chains",
        12,
        pytest(*ALL, "tests/oracle/test_tf_chains.py"),
        modules("tensorflow"),
        {"CHAINS": "100", "ORACLE": "live"},
        seconds_min=120,
    ),
    Part("machine", 10, pytest(*ALL, "tests/test_iterator_machine.py")),
    Part("faults", 10, pytest(*ALL, "tests/faults"), environment={"FAULTS": "all"}),
    Part("fuzz", 8, program("tests.fuzz"), seconds_min=120),
    Part(
        "queues", 5, program("tests.support.queue_schedules"), lambda: "" if hasattr(os, "fork") else "there is no fork"
    ),
    Part("kernels", 5, program("tests.fuzz.kernels"), sanitizers),
    Part("suite", 8, pytest(), seconds_min=180),
    Part("threads", 5, pytest(), environment={"SWITCH_INTERVAL": "1e-6"}, seconds_min=180),
    Part("no-kernels", 5, pytest(), environment={"DATASET_NATIVE": "0"}, seconds_min=180),
    *_on_other_interpreters(),
    Part(
        "oldest",
        3,
        pytest(*WITHOUT_FRAMEWORKS),
        lambda: "" if shutil.which("uv") else "uv not installed",
        python=environment(
            f".venv-3.{sys.version_info.minor}-oldest", "RESOLUTION=lowest-direct", f"PYTHON={sys.executable}"
        ),
        seconds_min=180,
    ),
    Part("oracle", 4, pytest(*ALL, "tests/oracle"), modules("tensorflow"), {"ORACLE": "live"}, seconds_min=120),
    *[
        Part(
            f"keras-{backend}",
            2,
            pytest(*ALL, "tests/adapters/test_to_keras.py"),
            modules("keras", backend),
            environment=given,
        )
        for backend in ("jax", "tensorflow")
        for given in [{"KERAS_BACKEND": backend}]
    ],
    Part("expensive", 10, pytest("-m", "explore"), seconds_min=120),
]

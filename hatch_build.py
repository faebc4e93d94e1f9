"""Build hook: compiles the native kernels when the package is installed; without a C compiler it installs pure Python.

python hatch_build.py [TARGET] [FLAG ...]    compile them beside their sources, or to TARGET with more flags
"""

from __future__ import annotations

import ctypes
import os
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
    from packaging.tags import platform_tags
except ImportError:  # run as a script
    BuildHookInterface = object

FOLDER = Path(__file__).parent / "src" / "dataset" / "native"
BINDING = runpy.run_path(os.fspath(FOLDER / "library.py"))
FLAGS = ["-std=c99", "-O3", "-g0", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra"]


def compile_kernels(target: Path, *flags: str) -> str:
    """Compile all C sources to a shared library. Return why that failed for each compiler, or "" on success."""
    unfinished = target.with_suffix(f".{os.getpid()}")
    sources = map(os.fspath, sorted(FOLDER.glob("*.c")))
    hashed = f'-DKERNEL_SOURCES="{BINDING["source_hash"]()}"'
    arguments = [*FLAGS, hashed, *flags, "-o", os.fspath(unfinished), *sources]
    reasons = []
    for compiler in _compilers():
        try:
            command = [*compiler, *arguments]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
            if not flags:
                ctypes.CDLL(os.fspath(unfinished))
            unfinished.replace(target)  # processes that have loaded the old library keep it
        except (OSError, subprocess.SubprocessError) as error:
            reasons.append(f"{shlex.join(compiler)}: {getattr(error, 'stderr', None) or error}")
            unfinished.unlink(missing_ok=True)
        else:
            return ""
    return "; ".join(reasons)


def _compilers() -> list[list[str]]:
    named = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else []
    found = [[name] for name in ("cc", "gcc", "clang") if shutil.which(name)]
    return [*named, *found, [sys.executable, "-m", "ziglang", "cc"]]


class KernelsHook(BuildHookInterface):
    """Hook that adds the compiled kernels to a wheel, which then is for one platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels; called by hatchling before it builds a wheel or an editable installation."""
        target = BINDING["LIBRARY"]
        target.unlink(missing_ok=True)
        if reasons := compile_kernels(target):
            self.app.display_warning(f"The kernels were not compiled; the package will be pure Python. {reasons}")
        elif version != "editable":
            platform = next(tag for tag in platform_tags() if "manylinux" not in tag and "musllinux" not in tag)
            build_data |= {"pure_python": False, "tag": f"py3-none-{platform}"}
            build_data["artifacts"].append(f"/{target.relative_to(self.root).as_posix()}")


if __name__ == "__main__":
    arguments = sys.argv[1:] or [os.fspath(BINDING["LIBRARY"])]
    if reasons := compile_kernels(Path(arguments[0]), *arguments[1:]):
        print(f"The kernels were not compiled; the package works without them.\n{reasons}", file=sys.stderr)  # noqa: T201

"""Which machine, and which versions of what."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parents[1]
REQUIREMENTS = HERE / "requirements.txt"
OURS = "dataset-combinators"


def machine() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": _cpu(),
        "cores": cores,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _cpu() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return " ".join(found[1].split()) if found else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Of this library, and of whatever benchmarks/requirements.txt names and is installed."""
    names = re.findall(r"^[\w.-]+", REQUIREMENTS.read_text(), re.MULTILINE)
    found = {}
    for name in [OURS, "numpy", *names]:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def revision() -> str:
    """The commit, with ``+`` where files differ from it. Empty where there is no repository."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True, cwd=HERE)  # noqa: S607
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", "..") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def conditions() -> dict[str, Any]:
    """When, of which commit, and on what something is measured."""
    return {"date": now(), "revision": revision(), "machine": machine()}

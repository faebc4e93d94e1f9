"""The data of workloads: made once, kept, and made anew when the file that makes it has changed."""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def fingerprint(module: ModuleType) -> str:
    """Of the source of a workload, and of the modules in or beside its folder that it takes anything from.

    Those of the harness do not count: data would have to be made anew whenever a table is laid out differently.
    """
    around = str(Path(inspect.getfile(module)).parents[1])
    names, found = [module.__name__], set()
    while names:
        name = names.pop()
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if name not in found and file.startswith(around) and not name.startswith("harness."):
            found.add(name)
            for value in vars(sys.modules[name]).values():
                other = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
                if isinstance(other, str):
                    names.append(other)
    content = hashlib.sha256()
    for name in sorted(found):
        content.update(inspect.getsource(sys.modules[name]).encode())
    return content.hexdigest()


def kept(folder: Path, key: str, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """What ``make`` says of the data that it has put in ``folder``, now or at an earlier time with the same key."""
    about = folder.with_name(folder.name + ".json")
    if about.exists() and folder.exists():
        known: dict[str, Any] = json.loads(about.read_text())
        if known["key"] == key:
            return known
    about.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    known = {**make(folder), "key": key, "bytes": size(folder)}
    about.write_text(json.dumps(known))
    return known


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def warm(folder: Path) -> None:
    """Read all files, so that they are in the page cache."""
    piece = bytearray(1 << 20)
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.readinto(piece):
                    pass

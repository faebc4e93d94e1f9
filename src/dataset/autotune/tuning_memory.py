"""Memory of the autotuner: what was learned about the work of an op, for the next iteration that does the same work.

It is kept in this process, by the code of the op and of all below it (plan/fingerprints/work_key.py). With the option
``autotune.memory`` it is kept in a file, too, for the next run of the program (memory_file.py). What is remembered is
only where a stage begins: measurements check it like any other setting.
"""

from __future__ import annotations

from typing import Any

from dataset import autotune
from dataset.runtime.choice import Learned

_learned: dict[str, Learned] = {}
_read: set[str] = set()  # paths of the files that were read


def recall(key: str, path: str | None) -> Learned | None:
    """Return what is known about this work, also from the file at ``path``, if any."""
    if path is not None and path not in _read:
        _read.add(path)
        for known, learned in autotune.memory_file.load(path).items():
            _learned.setdefault(known, learned)
    return _learned.get(key)


def remember(found: dict[str, Learned], path: str | None) -> None:
    """Remember what was learned about works, by their keys, and write it to the file at ``path``, if any."""
    has_changed = any(_decision(_learned.get(key)) != _decision(learned) for key, learned in found.items())
    for key, learned in found.items():
        _learned.pop(key, None)
        _learned[key] = learned
    while len(_learned) > _KEYS_MAX:
        del _learned[next(iter(_learned))]
    if path is not None and has_changed:
        autotune.memory_file.store(path, _learned)


def forget() -> None:
    """Forget everything, but not what is in files."""
    _learned.clear()
    _read.clear()


def _decision(learned: Learned | None) -> tuple[Any, ...] | None:
    return None if learned is None else (learned.way, learned.value)


_KEYS_MAX = 1024  # about 100 bytes each

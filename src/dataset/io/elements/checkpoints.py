"""Checkpoints of save(): the state of its iteration and its files, so that an interrupted save can continue.

A checkpoint is a JSON file that is written atomically. It contains the name of the run, the valid size of each shard's
file, and the operators' saved state. It can be used as long as the directory of that run exists.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

from dataset.errors import DataLossError, StateError
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import local_folder, path_string
from dataset.plan.checks import require_int
from dataset.plan.plain import from_json, to_json

__all__ = ["Checkpoints"]

FORMAT = "dataset save checkpoint, version 1"
_KEYS = frozenset({"directory", "max_to_keep", "checkpoint_name", "checkpoint_interval"})

DEFAULT_INTERVAL_BYTES = 1 << 24
"""Bytes of elements between two checkpoints if no interval is given."""


class Checkpoints:
    """Checkpoints of one save.

    Args:
        arguments: the user's ``checkpoint_args``.
        about: identifies the save as plain data: the path, the plan's fingerprint and the like.

    Raises:
        TypeError: a key is missing or unknown, or a value has the wrong type.
        ValueError: a value is wrong.
    """

    def __init__(self, arguments: Any, about: dict[str, Any]) -> None:
        if not isinstance(arguments, dict):
            raise TypeError(f"save(): checkpoint_args must be a dict, got {arguments!r:.100}")
        unknown, missing = set(arguments) - _KEYS, {"directory", "max_to_keep"} - set(arguments)
        if unknown or missing:
            raise TypeError(
                "save(): checkpoint_args needs directory and max_to_keep, and takes checkpoint_name and "
                f"checkpoint_interval (a number of elements); got {sorted(map(str, arguments))}"
            )
        self.directory = Path(local_folder("save", arguments["directory"]))
        keep = arguments["max_to_keep"]
        self.max_to_keep = None if keep is None else require_int("save", "max_to_keep", keep, minimum=1)
        self.name = path_string(arguments.get("checkpoint_name", "ckpt"))
        if "/" in self.name or os.sep in self.name:
            raise ValueError(f"save(): checkpoint_name must be a name, not a path, got {self.name!r}")
        interval = arguments.get("checkpoint_interval")
        self.interval = None if interval is None else require_int("save", "checkpoint_interval", interval, minimum=1)
        self._about = about
        self._since = 0  # elements, or bytes, since the last checkpoint

    def is_due(self, elements: int, nbytes: int) -> bool:
        """Count elements and bytes; return whether to write a checkpoint."""
        self._since += nbytes if self.interval is None else elements
        return self._since >= (DEFAULT_INTERVAL_BYTES if self.interval is None else self.interval)

    def room(self) -> int | None:
        """Return the number of elements until the next checkpoint is due; None if bytes are counted."""
        return None if self.interval is None else max(1, self.interval - self._since)

    def write(self, count: int, state: dict[str, Any]) -> None:
        """Write the checkpoint after ``count`` elements, and remove old ones beyond ``max_to_keep``."""
        self._since = 0
        self.directory.mkdir(parents=True, exist_ok=True)
        content = {"format": FORMAT, "about": self._about, "state": to_json(state)}
        before = self._all()[-1:]
        with AtomicFile(
            str(self.directory / f"{self.name}-{count}.json"), like=str(before[0]) if before else None
        ) as target:
            target.file.write(json.dumps(content).encode())
        for old in self._all()[: -self.max_to_keep] if self.max_to_keep else []:
            old.unlink(missing_ok=True)

    def latest(self) -> dict[str, Any] | None:
        """Return the state of the latest checkpoint; None if there is none.

        Raises:
            StateError: the checkpoint belongs to another save.
            DataLossError: the checkpoint is damaged.
        """
        files = self._all()
        if not files:
            return None
        path = files[-1]
        try:
            content = json.loads(path.read_bytes())
            about = content["about"]
            state: dict[str, Any] = dict(from_json(content["state"]))
            known = content["format"] == FORMAT
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DataLossError(
                f"this is not a valid checkpoint: {error!r:.200}", path=str(path), offset=0, record=0
            ) from None
        if not known:
            raise DataLossError(f"its format is not {FORMAT!r}", path=str(path), offset=0, record=0)
        if about != self._about:
            raise StateError(
                f"save(): the checkpoint {str(path)!r} belongs to another pipeline, path or compression: {about!r}, "
                f"expected {self._about!r}; use another directory, or delete the checkpoint"
            )
        return state

    def remove(self) -> None:
        """Remove all checkpoints, when the save is complete."""
        for file in self._all():
            with contextlib.suppress(OSError):
                file.unlink()

    def _all(self) -> list[Path]:
        """Return the files of all checkpoints, oldest first."""
        pattern = re.compile(rf"{re.escape(self.name)}-(\d+)\.json")
        found = {}
        if self.directory.is_dir():
            for file in self.directory.iterdir():
                if match := pattern.fullmatch(file.name):
                    found[int(match[1])] = file
        return [found[count] for count in sorted(found)]

"""Checkpoints of save(): the state of its iteration and its files, so that an interrupted save can continue.

A checkpoint is a JSON file that is written atomically. It contains the name of the run, the valid size of each shard's
file, and the state of the iteration. It can be used as long as the directory of that run exists.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dataset.errors import DataLossError, StateError
from dataset.io.elements.write_session import RunGoneError
from dataset.io.files.atomic import AtomicFile, make_directory
from dataset.io.files.opening import local_folder, path_string
from dataset.plan.checks import require_int
from dataset.plan.plain import state_from_json, state_to_json

_KEYS = frozenset({"directory", "max_to_keep", "checkpoint_name", "checkpoint_interval"})

DEFAULT_INTERVAL_BYTES = 1 << 24
"""Bytes of elements between two checkpoints if no interval is given."""

Writer = TypeVar("Writer")


class Checkpoints:
    """Checkpoints of one save.

    Args:
        arguments: the user's ``checkpoint_args``.
        about: identifies the files as plain data: their path and compression.

    Raises:
        TypeError: a key is missing or unknown, or a value has the wrong type.
        ValueError: a value is wrong.
    """

    def __init__(self, arguments: Any, about: dict[str, Any]) -> None:
        if not isinstance(arguments, dict):
            raise TypeError(f"save(): checkpoint_args must be a dict, got {arguments!r:.100}")
        if not {"directory", "max_to_keep"} <= set(arguments) <= _KEYS:
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

    def limited(self, step: int) -> int:
        """Return the number of elements to write next: ``step``, or fewer if a checkpoint is due before."""
        return step if self.interval is None else max(1, min(step, self.interval - self._since))

    def write(self, count: int, writer: dict[str, Any], iteration: dict[str, Any]) -> None:
        """Write the checkpoint after ``count`` elements, and remove old ones beyond ``max_to_keep``."""
        self._since = 0
        make_directory(self.directory)
        content = state_to_json({"about": self._about, "writer": writer, "iteration": iteration})
        before = self._all()[-1:]
        with AtomicFile(
            str(self.directory / f"{self.name}-{count}.json"), like=str(before[0]) if before else None
        ) as target:
            target.file.write(json.dumps(content).encode())
        for old in self._all()[: -self.max_to_keep] if self.max_to_keep else []:
            old.unlink(missing_ok=True)

    def resume(self, reopened: Callable[[dict[str, Any]], Writer]) -> tuple[Writer, dict[str, Any]] | None:
        """Return the writer and the state of the iteration at the latest checkpoint; None if there is none.

        Args:
            reopened: returns the writer from its part of the checkpoint.

        Raises:
            StateError: the checkpoint belongs to another save.
            DataLossError: the checkpoint is damaged.
        """
        files = self._all()
        if not files:
            return None
        path = str(files[-1])
        try:
            state = state_from_json(json.loads(files[-1].read_bytes()))
            about, iteration = state["about"], state["iteration"]
            if about == self._about:
                return reopened(state["writer"]), iteration
        except RunGoneError:  # the files were removed, so everything has to be written again
            self.remove()
            return None
        except (ValueError, TypeError, KeyError, RecursionError, StateError) as error:
            raise DataLossError(
                f"this is not a valid checkpoint: {error!r:.200}", path=path, offset=0, record=0
            ) from None
        raise StateError(
            f"save(): the checkpoint {path!r} belongs to another path or compression: {about!r}, expected "
            f"{self._about!r}; use another directory, or delete the checkpoint"
        )

    def remove(self) -> None:
        """Remove all checkpoints, when the save is complete."""
        for file in self._all():
            with contextlib.suppress(OSError):
                file.unlink()

    def _all(self) -> list[Path]:
        """Return the files of all checkpoints, oldest first."""
        pattern = re.compile(rf"{re.escape(self.name)}-(\d{{1,20}})\.json")
        found = {}
        if self.directory.is_dir():
            for file in self.directory.iterdir():
                if (match := pattern.fullmatch(file.name)) and file.is_file():
                    found[int(match[1])] = file
        return [found[count] for count in sorted(found)]

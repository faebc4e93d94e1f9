"""Backup callback of ``checkpoint.keras_callback``: saves the model together with the position in its data.

A backup consists of a file of weights and a state file that names it. The state file is written last and replaces the
old one atomically. So even if the process is killed, the weights and the position that are found belong together.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import keras

from dataset.adapters.keras.data_adapter import DatasetAdapter
from dataset.adapters.keras.position_tracker import Place, Places
from dataset.errors import StateError

_STATE = "training.state"
_WEIGHTS = re.compile(r"weights-[0-9a-f]{16}\.weights\.h5")
_KEYS = {"epoch", "batch", "weights", "state", "behind"}


class Backup(keras.callbacks.Callback):
    """Callback that saves backups during the training, and makes the next ``fit`` resume from the last one.

    Args:
        directory: a directory for the backup only.
        data: the training data.
        save_freq: ``"epoch"``, or the number of batches between backups.
        delete_checkpoint: whether to remove the backup at the end of the training.
        write: writes a state to a path, atomically and durably.
        read: reads a state from a path.
    """

    def __init__(
        self,
        directory: str,
        data: DatasetAdapter,
        save_freq: int | Literal["epoch"],
        delete_checkpoint: bool,
        write: Callable[[str, Any], None],
        read: Callable[[str], Any],
    ) -> None:
        super().__init__()
        self._directory = Path(directory)
        self._data = data
        self._save_freq = save_freq
        self._delete = delete_checkpoint
        self._write, self._read = write, read
        self._epoch = self._batch = 0  # the epoch, and how many of its batches were trained on
        self._seen = 0  # those that Keras counts; Keras counts from 0 when the training resumes
        self._since = 0  # batches since the last backup
        self._places = Places(None, 0)

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002  # Keras gives it
        """Restore the backup, if there is one."""
        found = self._found()
        place = None if found is None else Place(found["state"], found["behind"])
        self._epoch, self._batch = (0, 0) if found is None else (found["epoch"], found["batch"])
        self._seen = self._since = 0
        steps = self.params.get("steps")
        if place is not None and self._batch and (self._batch == steps or (not steps and self._data.is_over(place))):
            self._epoch, self._batch = self._epoch + 1, 0
        every: int | None
        every, done = (steps, self._batch) if self._save_freq == "epoch" else (self._save_freq, 0)
        self._places = Places(every, done)
        if found is not None:
            self._load_weights(found["weights"])
            self.model._initial_epoch = self._epoch  # noqa: SLF001  # as Keras' BackupAndRestore does
        self._data.train_from(self._places, place, self._batch)

    def _found(self) -> dict[str, Any] | None:
        path = self._directory / _STATE
        try:
            found = self._read(str(path))
        except FileNotFoundError:
            return None
        if type(found) is not dict or set(found) != _KEYS:
            raise StateError(f"{path}: this is not the state of a training with Keras")
        numbers = [found["epoch"], found["batch"], found["behind"]]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise StateError(f"{path}: its numbers of epochs and batches are damaged: {numbers!r:.100}")
        if type(found["weights"]) is not str or _WEIGHTS.fullmatch(found["weights"]) is None:
            raise StateError(f"{path}: its name of the weights file is damaged: {found['weights']!r:.100}")
        return found

    def _load_weights(self, name: str) -> None:
        model = self.model
        if not model.built:
            raise ValueError(
                "checkpoint.keras_callback(): the model must be built before its weights can be restored; add an "
                "Input, or call the model on a batch"
            )
        if model.optimizer is not None and not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        model.load_weights(self._directory / name)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Count from the first batch, unless the training resumes in the middle of this epoch."""
        if epoch != self._epoch:
            self._epoch, self._batch = epoch, 0
        self._seen = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Save a backup if one is due."""
        count = batch + 1 - self._seen  # greater than 1 if the model executes several steps at once
        self._seen = batch + 1
        self._batch += count
        self._since += count
        self._places.train(count)
        if self._save_freq != "epoch" and self._since >= self._save_freq:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Save a backup if one is due."""
        self._epoch, self._batch = epoch + 1, 0
        if self._save_freq == "epoch":
            self._save()

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Pause the position tracking: the passes of a test are not part of the training."""
        self._places.paused = True

    def on_test_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Continue the position tracking."""
        self._places.paused = False

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Remove the backup, if requested."""
        self._data.train_from(None, None, 0)
        if self._delete:
            (self._directory / _STATE).unlink(missing_ok=True)
            self._remove_weights(None)
            with contextlib.suppress(OSError):  # the directory may contain other files
                self._directory.rmdir()

    def _save(self) -> None:
        place = self._places.now()
        if place is None:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        weights = self._directory / f"weights-{secrets.token_hex(8)}.weights.h5"
        weights.touch(_mode(self._directory / _STATE))  # with the permissions of the previous state file
        self.model.save_weights(weights)
        with weights.open("rb") as file:
            os.fsync(file.fileno())
        content = {"epoch": self._epoch, "batch": self._batch, "weights": weights.name, **place._asdict()}
        self._write(str(self._directory / _STATE), content)
        self._remove_weights(weights.name)
        self._since = 0

    def _remove_weights(self, but: str | None) -> None:
        with contextlib.suppress(OSError):
            for path in list(self._directory.iterdir()):
                if _WEIGHTS.fullmatch(path.name) and path.name != but:
                    path.unlink(missing_ok=True)


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o666
    except OSError:
        return 0o666

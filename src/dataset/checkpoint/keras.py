"""Keras callback that resumes ``model.fit`` with its weights and its position in the data."""

from __future__ import annotations

import os
from typing import Any, Literal

from dataset.checkpoint.state_files import load, write
from dataset.io.files.opening import local_folder


def keras_callback(
    directory: str | os.PathLike[str],
    data: Any,
    save_freq: int | Literal["epoch"] = "epoch",
    *,
    delete_checkpoint: bool = True,
) -> Any:
    """Return a callback for ``model.fit`` that saves the model and its position in the data, and resumes from both.

    It works like ``keras.callbacks.BackupAndRestore``, but the training resumes exactly after the batch of the backup,
    even in the middle of an epoch. The batches and their order are the same as without the interruption. If the same
    program is run again, ``fit`` starts from the backup if there is one. The weights and the position always match,
    whenever the process was killed.

    In the epoch in which the training resumes, history and metrics cover only the rest of the epoch.

    Args:
        directory: a local directory used only for the backup; it is created.
        data: the result of ``Dataset.to_keras()``; pass the same object to ``fit``.
        save_freq: when to save: ``"epoch"`` for the end of each epoch, or a number of batches.
        delete_checkpoint: whether to remove the backup at the end of the training.

    Returns:
        A ``keras.callbacks.Callback``.

    Raises:
        TypeError: ``data`` is not the result of ``to_keras()`` with Keras 3.7 or later.
        ValueError: ``save_freq`` is invalid.
        ImportError: Keras is not installed.

    ``fit`` raises ``StateError`` if the backup is damaged or belongs to another pipeline.

    For example::

        train = dataset.shuffle(10_000).batch(128).prefetch(AUTOTUNE).to_keras()
        model.fit(train, epochs=10, callbacks=[checkpoint.keras_callback("backup", train, save_freq=500)])
    """
    from dataset.adapters.keras.data_adapter import DatasetAdapter  # noqa: PLC0415  # it imports Keras

    if not isinstance(data, DatasetAdapter):
        raise TypeError(
            "checkpoint.keras_callback(): data must be the result of Dataset.to_keras() with Keras 3.7 or later, the "
            f"same object that is passed to fit(), got {type(data).__name__}"
        )
    if save_freq != "epoch" and (type(save_freq) is not int or save_freq < 1):
        raise ValueError(
            "checkpoint.keras_callback(): save_freq must be 'epoch' or a number of batches of at least 1, got "
            f"{save_freq!r}"
        )
    from dataset.adapters.keras.backup import Backup  # noqa: PLC0415  # as above

    folder = local_folder("keras_callback", directory)
    return Backup(folder, data, save_freq, delete_checkpoint, write, lambda path: load(path).state)

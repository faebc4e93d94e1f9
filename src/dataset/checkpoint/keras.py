"""keras_callback: what has ``model.fit`` go on where it was, in its data as in its weights."""

from __future__ import annotations

import os
from typing import Any, Literal

from dataset.checkpoint.files import load, write
from dataset.io.files.opening import local_folder

__all__ = ["keras_callback"]


def keras_callback(
    directory: str | os.PathLike[str],
    data: Any,
    save_freq: int | Literal["epoch"] = "epoch",
    *,
    delete_checkpoint: bool = True,
) -> Any:
    """A callback for ``model.fit`` that saves the model with its place in the data, and goes on there.

    It is what ``keras.callbacks.BackupAndRestore`` is, but that the training goes on behind the very batch that it was
    saved at, in the middle of an epoch, too, with the same batches in the same order as if nothing had happened. Run
    the same program again, and ``fit`` begins with the backup, if there is one. The weights and the place belong
    together whenever the process was killed.

    The history and the metrics of the epoch that the training goes on in are those of the rest of that epoch.

    Args:
        directory: for the backup, which needs one of its own on this machine; it is made.
        data: what ``Dataset.to_keras()`` gave; ``fit`` must be given the same object.
        save_freq: when to save: ``"epoch"`` for the end of each epoch, or a number of batches.
        delete_checkpoint: whether to remove the backup when the training has come to its end.

    Returns:
        A ``keras.callbacks.Callback``.

    Raises:
        TypeError: if ``data`` is not what ``to_keras()`` gives with Keras 3.7 or later.
        ValueError: if ``save_freq`` is none.
        ImportError: if Keras is not installed.

    ``fit`` raises ``StateError`` if the backup is damaged, or of another pipeline.

    For example::

        train = dataset.shuffle(10_000).batch(128).prefetch(AUTOTUNE).to_keras()
        model.fit(train, epochs=10, callbacks=[checkpoint.keras_callback("backup", train, save_freq=500)])
    """
    from dataset.adapters.keras.data_adapter import DatasetAdapter  # noqa: PLC0415  # it takes Keras along

    if not isinstance(data, DatasetAdapter):
        raise TypeError(
            "checkpoint.keras_callback(): data must be what Dataset.to_keras() gives with Keras 3.7 or later, the same "
            f"object that fit() is given; got {type(data).__name__}"
        )
    if save_freq != "epoch" and (type(save_freq) is not int or save_freq < 1):
        raise ValueError(
            "checkpoint.keras_callback(): save_freq must be 'epoch' or a number of batches, at least 1; got "
            f"{save_freq!r}"
        )
    from dataset.adapters.keras.backup import Backup  # noqa: PLC0415  # as above

    folder = local_folder("keras_callback", directory)
    return Backup(folder, data, save_freq, delete_checkpoint, write, lambda path: load(path).state)

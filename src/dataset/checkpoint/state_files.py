"""Saving and restoring of iterator states in files that are written atomically."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dataset.checkpoint import container
from dataset.errors import StateError
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import path_string


class Resumable(Protocol):
    """Protocol of iterators and loaders whose state can be saved and restored."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain data."""

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Restore a state."""


def save(path: str | os.PathLike[str], iterator: Resumable) -> None:
    """Save the state of an iterator to a file, replacing the file if it exists.

    The file is replaced atomically, after the new content is on disk: the path always names the complete old state or
    the complete new state. Temporary files of killed processes are removed. The iterator may be in use in another
    thread. Other processes may save to the same path; the last one wins.

    Args:
        path: the path of the file, by convention ``something.state``; its directory must exist.
        iterator: an iterator over a Dataset, or any object whose ``state_dict()`` is plain data, such as the iterators
            of ``to_torch()`` and ``to_jax()``, and torchdata's ``StatefulDataLoader``.

    Raises:
        StateError: the state contains something that is not plain data, such as elements of user classes.
        OSError: the file cannot be written.

    >>> import os, tempfile
    >>> from dataset import Dataset, checkpoint
    >>> dataset = Dataset.range(100).shuffle(100).batch(10)
    >>> iterator = iter(dataset)
    >>> _ = next(iterator)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.state")
    ...     checkpoint.save(path, iterator)
    ...     later = iter(dataset)
    ...     checkpoint.restore(path, later)
    >>> bool((next(later) == next(iterator)).all())
    True
    """
    _require_resumable("save", iterator)
    write(path_string(path), iterator.state_dict())


def write(path: str, state: Any) -> None:
    """Write a state to a file atomically."""
    pieces = container.pack(state)
    with AtomicFile(path) as target:
        for piece in pieces:
            target.file.write(piece)


def restore(
    path: str | os.PathLike[str],
    iterator: Resumable,
    *,
    moved: Callable[[str], str] | Mapping[str, str] | None = None,
) -> None:
    """Restore the state of an iterator from a file that ``save`` wrote.

    Nothing in the file is executed, and all lengths in it are checked before use.

    Args:
        path: the path of the file.
        iterator: an iterator of the same kind, over a Dataset built in the same way, as the saved one.
        moved: the new names of renamed data files, as in ``load_state_dict``.

    Raises:
        StateError: the file is not a checkpoint, is truncated or damaged, has another version, or belongs to another
            pipeline or other data files. The iterator is not changed.
        OSError: the file cannot be read. FileNotFoundError if it does not exist, as in the first run.

    >>> from dataset import Dataset, checkpoint
    >>> checkpoint.restore("/nowhere/train.state", iter(Dataset.range(3)))
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/train.state'
    """
    _require_resumable("restore", iterator)
    name = path_string(path)
    state = container.read(name).state
    try:
        if moved is None:
            iterator.load_state_dict(state)
        else:
            iterator.load_state_dict(state, moved=moved)  # type: ignore[call-arg]  # of this library's iterators
    except StateError as error:
        error.add_note(f"in checkpoint.restore({name!r})")
        raise


def load(path: str | os.PathLike[str]) -> container.Saved:
    """Return the content of a file that ``save`` wrote."""
    return container.read(path_string(path))


def _require_resumable(function: str, iterator: Any) -> None:
    if not (callable(getattr(iterator, "state_dict", None)) and callable(getattr(iterator, "load_state_dict", None))):
        hint = (
            "; pass iter(dataset), iter(dataset.to_torch()) or a StatefulDataLoader"
            if hasattr(iterator, "__iter__")
            else ""
        )
        raise TypeError(
            f"checkpoint.{function}(): expected an iterator with state_dict() and load_state_dict(), got "
            f"{type(iterator).__name__}{hint}"
        )

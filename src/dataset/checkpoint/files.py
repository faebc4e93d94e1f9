"""save and restore: the place of an iterator in a file that is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dataset.checkpoint import container
from dataset.errors import StateError
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import path_string

__all__ = ["Resumable", "load", "restore", "save", "write"]


class Resumable(Protocol):
    """An iterator, or a loader, that can say where it stands and go there."""

    def state_dict(self) -> dict[str, Any]:
        """Where it stands, as plain data."""

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Go there."""


def save(path: str | os.PathLike[str], iterator: Resumable) -> None:
    """Write where an iterator stands to a file, in place of what was there.

    The file appears when it is complete and on the disk: whatever happens meanwhile, the path names the old state or
    the new one. What a process that was killed has left beside it is removed. The iterator may be in use in another
    thread, and other processes may save to the same path; who is last stays.

    Args:
        path: of the file, by custom ``something.state``; its directory must exist.
        iterator: over a Dataset, or one with ``state_dict()`` that is plain data, as those of ``to_torch()`` and
            ``to_jax()`` have, and torchdata's ``StatefulDataLoader``.

    Raises:
        StateError: if the state holds what is no plain data, such as elements of user classes.
        OSError: if the file cannot be written.

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
    """Write a state to a file, as ``save`` does."""
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
    """Have an iterator go to the place that ``save`` wrote.

    Nothing in the file is executed, and no length in it is believed before it is checked.

    Args:
        path: of the file.
        iterator: over a Dataset that is built as the one was whose iterator was saved; of the same kind as that.
        moved: for data files that have other names now; as of ``load_state_dict``.

    Raises:
        StateError: if the file is no state, cut short, damaged, of another version or of another pipeline, or names
            other files; the iterator stays where it was.
        OSError: if the file cannot be read: FileNotFoundError where there is none, which is the first run.

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
    """What a file holds."""
    return container.read(path_string(path))


def _require_resumable(function: str, iterator: Any) -> None:
    if not (callable(getattr(iterator, "state_dict", None)) and callable(getattr(iterator, "load_state_dict", None))):
        hint = "; a Dataset has no place, iter(dataset) has" if hasattr(iterator, "__iter__") else ""
        raise TypeError(
            f"checkpoint.{function}(): expected an iterator with state_dict() and load_state_dict(), got "
            f"{type(iterator).__name__}{hint}"
        )

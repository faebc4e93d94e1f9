"""Directory listing of image folders: the files, and the classes named by subfolders. It does not open files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dataset.io.files.opening import path_string


def image_folder_classes(path: str | bytes | os.PathLike[str]) -> list[str]:
    """Return the classes that ``Dataset.from_image_folder`` infers: label ``i`` is the i-th of these names.

    Args:
        path: a folder with one subfolder per class.

    Returns:
        The names of the subfolders, sorted, without hidden ones, whose names begin with a dot.

    Raises:
        FileNotFoundError: the folder does not exist.
        NotADirectoryError: the path is a file.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in "dog", "cat", ".cache":
        ...         pathlib.Path(folder, name).mkdir()
        ...     image_folder_classes(folder)
        ['cat', 'dog']
    """
    return [entry.name for entry in _entries(path_string(path)) if _is_folder(entry)]


def images_below(path: str, extensions: Sequence[str]) -> list[str]:
    """Return the files with one of these endings in a folder and its subfolders, sorted by path.

    Links are followed. Each folder is entered once, so cyclic links terminate. Hidden files and folders are skipped.
    """
    return list(_walk(path, tuple(ending.lower() for ending in extensions), set()))


def _walk(path: str, extensions: tuple[str, ...], entered: set[tuple[int, int]]) -> Iterator[str]:
    status = Path(path).stat()
    place = (status.st_dev, status.st_ino)
    if place in entered:
        return
    entered.add(place)
    for entry in _entries(path):
        if _is_folder(entry):
            yield from _walk(entry.path, extensions, entered)
        elif entry.name.lower().endswith(extensions) and (entry.is_symlink() or entry.is_file()):
            yield entry.path


def _entries(path: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder that are not hidden, sorted by name."""
    with os.scandir(path) as found:
        return sorted((entry for entry in found if not entry.name.startswith(".")), key=_name)


def _name(entry: os.DirEntry[Any]) -> str:
    return str(entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False

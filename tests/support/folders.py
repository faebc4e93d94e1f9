"""What is in folders and files, and damage to files."""

from __future__ import annotations

from pathlib import Path


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


def tree(folder: Path) -> dict[str, bytes | Path | None]:
    """Return everything below a folder: the content of files, the targets of links, None for folders."""
    return {str(path.relative_to(folder)): _content(path) for path in folder.rglob("*")}


def _content(path: Path) -> bytes | Path | None:
    if path.is_symlink():
        return path.readlink()
    return path.read_bytes() if path.is_file() else None


def flipped(content: bytes, place: int, mask: int = 1) -> bytes:
    """Return the content with some bits of one byte changed."""
    damaged = bytearray(content)
    damaged[place] ^= mask
    return bytes(damaged)


def flip(path: Path, *places: int) -> None:
    """Change one bit of a file at each of these places."""
    content = path.read_bytes()
    for place in places:
        content = flipped(content, place)
    path.write_bytes(content)

"""Tar shards for tests."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from typing import Any


def archive(
    entries: Iterable[tuple[str, bytes] | tarfile.TarInfo], form: int = tarfile.PAX_FORMAT, **options: Any
) -> bytes:
    """Return a tar file with these members: names with bytes, or TarInfo objects."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form, **options) as shard:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                shard.addfile(entry)
                continue
            name, data = entry
            info = tarfile.TarInfo(name)
            info.size = len(data)
            shard.addfile(info, io.BytesIO(data))
    return target.getvalue()

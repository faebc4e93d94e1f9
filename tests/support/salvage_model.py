"""Model of the search for intact records in a damaged TFRecord file."""

from __future__ import annotations

import struct

from dataset.io.tfrecord.damage.salvage import Gap, Sound
from support.tfrecord_files import masked


def has_header(content: bytes, at: int) -> bool:
    """Return whether a header with a correct checksum is at ``at``."""
    return len(content) - at >= 12 and masked(content[at : at + 8]) == content[at + 8 : at + 12]


def header_end(content: bytes, at: int) -> int | None:
    """Return the end of the frame at ``at`` by its header; None if the header is invalid or exceeds the content."""
    if not has_header(content, at):
        return None
    end: int = at + 16 + struct.unpack_from("<Q", content, at)[0]
    return end if end <= len(content) else None


def salvage_model(content: bytes, at: int = 0) -> list[Sound | Gap]:
    """Reference implementation of the docstring of salvage.py, one position at a time."""
    found: list[Sound | Gap] = []
    gap = at
    while at < len(content):
        end = header_end(content, at)
        if end is not None and masked(content[at + 12 : end - 4]) == content[end - 4 : end]:
            if gap < at:
                found.append(Gap(gap, at - gap))
            found.append(Sound(at, content[at + 12 : end - 4]))
            gap = at = end
        elif end is not None and (end == len(content) or has_header(content, end)):
            at = end
        else:
            at += 1
            while at < len(content) and header_end(content, at) is None:
                at += 1
    return [*found, Gap(gap, at - gap)] if gap < at else found

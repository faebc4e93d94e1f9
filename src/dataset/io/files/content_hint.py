"""What the first bytes of a file look like, if it is not in the format of its reader, and what to do then."""

from __future__ import annotations

import re

from dataset.io.files.compression import detect_compression

_LOOKS = {
    rb"version https://git-lfs": "a pointer of Git LFS: fetch the file itself with git lfs pull",
    rb"(?i)\s*<(!doctype html|html|\?xml)": "a web page or the error of a server: download the file again",
    rb"\xff\xfe|\xfe\xff|([^\0]\0){4}|(\0[^\0]){4}": "UTF-16 text: convert it to UTF-8",
    rb"\xfd7zXZ\x00|BZh[1-9]|PK\x03\x04": "an xz, bzip2 or zip file: decompress it first",
    rb"\s*\[|\s*\{\s*\Z": "JSON, but not JSON Lines: write one object per line, as jq -c '.[]' or jq -c . does",
}


def content_hint(head: bytes, compressed: str = ': pass compression_type="{}"') -> str:
    """Return what the first bytes of a file look like, for the end of an error message; empty if nothing is known.

    Args:
        head: the first bytes, or the first line.
        compressed: what to do with a compressed stream, whose kind replaces ``{}``; "" if it can't be a stream.

    >>> content_hint(b"version https://git-lfs.github.com/spec/v1")
    '; the file starts like a pointer of Git LFS: fetch the file itself with git lfs pull'
    """
    if compressed and (kind := detect_compression(head, is_whole=False)):
        return f"; the file starts like a {kind} stream{compressed.format(kind)}"
    return next((f"; the file starts like {words}" for look, words in _LOOKS.items() if re.match(look, head)), "")

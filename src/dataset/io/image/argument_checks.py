"""Argument checks of the image codecs, with their error messages.

A DecodeRequest is checked when it is created. It is passed along with the bytes, so that every error message names the
public function that was called. This module does not decode and imports no library of the extra. Headers are parsed in
image_headers.py. ``resize`` checks its arguments in resize.py.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dataset.plan.checks import require_unmasked


@dataclass(frozen=True, slots=True)
class DecodeRequest:
    """The arguments of a call to a decoder; ``name`` is the name of the function for messages."""

    name: str
    channels: int
    max_pixels: int
    dtype: type[np.uint8 | np.uint16] = np.uint8
    ratio: int = 1
    fancy_upscaling: bool = True
    try_recover_truncated: bool = False
    dct_method: str = ""

    def __post_init__(self) -> None:
        if self.channels not in {0, 1, 3, 4}:
            raise ValueError(f"{self.name}(): channels must be 0 (as in the file), 1, 3 or 4, got {self.channels!r}.")
        if self.ratio not in {1, 2, 4, 8}:
            msg = f"{self.name}(): ratio must be 1, 2, 4 or 8, got {self.ratio!r}. Use resize() for other sizes."
            raise ValueError(msg)
        if self.dct_method not in {"", "INTEGER_FAST", "INTEGER_ACCURATE"}:
            msg = f"{self.name}(): dct_method must be INTEGER_FAST or INTEGER_ACCURATE, got {self.dct_method!r}."
            raise ValueError(msg)
        if self.dtype not in (np.uint8, np.uint16):
            raise ValueError(f"{self.name}(): dtype must be np.uint8 or np.uint16, got {self.dtype!r}.")

    def check_size(self, kind: str, height: int, width: int) -> None:
        """Raise if a declared size is empty or too large, before memory is allocated for it."""
        if height <= 0 or width <= 0:
            msg = f"{self.name}(): the {kind} header declares {height} x {width} pixels; the bytes are corrupt."
            raise ValueError(msg)
        if height * width > self.max_pixels:
            raise ValueError(
                f"{self.name}(): the {kind} header declares {height} x {width} pixels, more than max_pixels = "
                f"{self.max_pixels}. If the image is real, pass a larger max_pixels."
            )

    def unknown(self, kinds: str, contents: bytes) -> ValueError:
        """Return the error for bytes that are not an image of these kinds."""
        begin = f" beginning with {contents[:8]!r}" if contents else ""
        return ValueError(f"{self.name}(): contents must be a {kinds} image, got {len(contents)} bytes{begin}.")

    def corrupt(self, kind: str, contents: bytes, why: str = "truncated or corrupt") -> ValueError:
        """Return the error for bytes that can't be decoded."""
        return ValueError(
            f"{self.name}(): the {kind} bytes are {why} ({len(contents)} bytes, beginning with {contents[:8]!r}). "
            f"Repair or remove this element; ignore_errors() skips it in a Dataset.",
        )


def image_bytes(name: str, contents: object) -> bytes:
    """Return bytes, or another byte buffer as bytes; raise for other types."""
    if isinstance(contents, bytes):
        return contents
    if isinstance(contents, (bytearray, memoryview)):
        return bytes(contents)
    msg = f"{name}(): contents must be the bytes of one image, got {type(contents).__name__}."
    if isinstance(contents, np.ndarray):
        msg += " Decode images one at a time, before batch()."
    raise TypeError(msg)


def check_image(name: str, image: object, dtypes: tuple[type[Any], ...], channels: tuple[int, ...]) -> None:
    """Raise if an encoder does not support the dtype or the shape of an image."""
    require_unmasked(image, f"{name}(): ")
    array = np.asarray(image)
    if array.dtype.type not in dtypes:
        names = " or ".join(dtype.__name__ for dtype in dtypes)
        raise ValueError(f"{name}(): image must be {names}, got {array.dtype}. Scale and round it, then use astype().")
    if array.ndim != 3 or array.shape[2] not in channels or array.size == 0:
        numbers = f"{', '.join(map(str, channels[:-1]))} or {channels[-1]}"
        msg = f"{name}(): image must have shape (height, width, {numbers}) and not be empty, got {array.shape}."
        raise ValueError(msg)

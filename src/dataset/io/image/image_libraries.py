"""Lazy imports of the libraries of the extra ``images``, and helpers around OpenCV that several modules share.

No other module imports ``simplejpeg`` or ``cv2``: each calls ``library()``, so that ``import dataset`` is fast and
works without them. The helpers do not check their arguments; callers do.
"""

import functools
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.extras import load_extra

Pixels = npt.NDArray[Any]
"""One image of shape ``(height, width, channels)``, or several of the same size with a leading axis."""


@functools.cache
def library(name: str) -> Any:
    """Import a library of the extra at its first use."""
    loaded_by_user = name in sys.modules
    module = load_extra(name, "images", "images need")
    if name == "cv2" and not loaded_by_user:
        # Elements are computed in parallel, so threads within one image would only compete with each other.
        module.setNumThreads(1)
    return module


def opencv_decode(contents: bytes, flags: int) -> Pixels | None:
    """Decode one image with OpenCV; return None if it fails."""
    cv2 = library("cv2")
    try:
        pixels: Pixels | None = cv2.imdecode(np.frombuffer(contents, np.uint8), flags)
    except cv2.error:
        return None
    return pixels


def to_rgb(pixels: Pixels, channels: int) -> Pixels:
    """Convert OpenCV's gray, BGR or BGRA to the requested number of channels; 0 keeps the number."""
    if pixels.ndim == 2:
        if channels in {0, 1}:
            return pixels[..., np.newaxis]
        return recolor(pixels, "GRAY2RGB" if channels == 3 else "GRAY2RGBA")
    have = "BGR" if pixels.shape[2] == 3 else "BGRA"
    want = {0: have[2::-1] + have[3:], 3: "RGB", 4: "RGBA"}[channels]
    return recolor(pixels, f"{have}2{want}")


def recolor(pixels: Pixels, conversion: str) -> Pixels:
    """Convert between orders of channels; ``conversion`` is the name of a ``cv2.COLOR_`` constant."""
    cv2 = library("cv2")
    recolored: Pixels = cv2.cvtColor(pixels, getattr(cv2, f"COLOR_{conversion}"))
    return recolored

"""Image resizing, equivalent to ``tf.image.resize``.

There are three implementations. ``"nearest"`` selects pixels. Bilinear without antialias uses OpenCV, which is ten
times faster than NumPy, releases the GIL, and is the only one that needs the extra ``images``. All others compute
weighted sums of rows, then of columns. The weights of ``"area"`` are coverages; those of the other methods come from a
table of kernels, so that a new kernel is one entry in the table.

This module works on arrays only. The codecs are in codecs.py.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dataset.io.image.image_libraries import Pixels, library

# The limit of OpenCV 5; that of version 4 was 512.
_OPENCV_CHANNELS_MAX: Final = 128

_Floats = npt.NDArray[np.float64]


def resize(images: npt.ArrayLike, size: Sequence[int], method: str = "bilinear", antialias: bool = False) -> Pixels:
    """Change the height and width of one image or of a batch, as ``tf.image.resize`` does.

    Pixel centres are at half-integer coordinates. The result is always float32, even if the size does not change; only
    ``"nearest"`` keeps the dtype. Values are neither rounded nor clipped.

    Args:
        images: numbers of shape ``(height, width, channels)`` or ``(n, height, width, channels)``.
        size: the new ``(height, width)``.
        method: ``"bilinear"`` (by far the fastest), ``"nearest"``, ``"area"``, ``"bicubic"``, ``"lanczos3"``,
            ``"lanczos5"``, ``"gaussian"`` or ``"mitchellcubic"``.
        antialias: whether to widen the filter when downscaling, so that every pixel contributes. Has no effect on
            ``"nearest"``, and on ``"area"``, which always does so.

    Returns:
        An array of shape ``(*size, channels)`` or ``(n, *size, channels)``.

    Raises:
        ValueError: a shape, dtype, size or method is invalid.
        ImportError: the extra ``images`` is not installed (needed by ``"bilinear"`` without ``antialias``).

    Example:
        >>> image = np.array([[[0], [100]]], np.uint8)
        >>> resize(image, (1, 4))[0, :, 0]
        array([  0.,  25.,  75., 100.], dtype=float32)
        >>> resize(image, (1, 4), "nearest")[0, :, 0]
        array([  0,   0, 100, 100], dtype=uint8)
    """
    source = np.asarray(images)
    _check_source(source)
    if method not in _METHODS:
        msg = f"resize(): method must be one of {', '.join(_METHODS)}, got {method!r}."
        raise ValueError(msg)
    height, width = _check_target(size)
    if method == "nearest":
        rows, columns = _nearest(source.shape[-3], height), _nearest(source.shape[-2], width)
        return source.take(rows, axis=-3).take(columns, axis=-2)
    pixels = np.ascontiguousarray(source, dtype=np.float32)
    if method == "bilinear" and not antialias and pixels.shape[-1] <= _OPENCV_CHANNELS_MAX:
        return _bilinear(pixels, height, width)
    # Transposing between the passes keeps the inner loops of both on contiguous memory.
    pixels = _resample(pixels, height, method, antialias).swapaxes(-3, -2)
    return np.ascontiguousarray(_resample(pixels, width, method, antialias).swapaxes(-3, -2))


def _check_source(source: Pixels) -> None:
    """Raise if the shape or the dtype is not that of images."""
    if source.ndim not in {3, 4} or 0 in source.shape[-3:]:
        msg = (
            f"resize(): images must have shape (height, width, channels) or (n, height, width, channels) and not be "
            f"empty, got {source.shape}. A grayscale image needs a last axis of size 1: image[..., np.newaxis]."
        )
        raise ValueError(msg)
    if source.dtype.kind not in "iuf":
        msg = f"resize(): images must be integers or floats, got {source.dtype}. Convert them with astype()."
        raise ValueError(msg)


def _check_target(size: Sequence[int]) -> tuple[int, int]:
    """Check and return the new height and width."""
    try:
        height, width = map(operator.index, size)
    except (TypeError, ValueError):
        height = width = 0
    if height <= 0 or width <= 0:
        msg = f"resize(): size must be two positive integers, (height, width), got {size!r}."
        raise ValueError(msg)
    return height, width


def _bilinear(pixels: npt.NDArray[np.float32], height: int, width: int) -> Pixels:
    """Resize float32 images with OpenCV, which rounds only 8-bit images."""
    cv2 = library("cv2")
    batch = pixels.reshape(-1, *pixels.shape[-3:])
    result = np.empty((len(batch), height, width, pixels.shape[-1]), np.float32)
    for image, out in zip(batch, result, strict=True):
        cv2.resize(image, (width, height), dst=out, interpolation=cv2.INTER_LINEAR)
    return result.reshape(*pixels.shape[:-3], *result.shape[1:])


@functools.lru_cache(maxsize=256)
def _nearest(old: int, new: int) -> npt.NDArray[np.intp]:
    """Return the nearest old position for each new one, in float32 so that ties round as in TensorFlow."""
    scale = np.float32(old) / np.float32(new)
    centres = (np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale
    nearest: npt.NDArray[np.intp] = np.minimum(np.floor(centres).astype(np.intp), old - 1)
    return nearest


def _resample(pixels: npt.NDArray[np.float32], new: int, method: str, antialias: bool) -> npt.NDArray[np.float32]:
    """Resize axis -3: each new row is a weighted sum of a few old rows, all new rows at once."""
    taps, weights = _weights(pixels.shape[-3], new, method, antialias)
    pixels = np.ascontiguousarray(pixels)
    result: npt.NDArray[np.float32] = pixels.take(taps[0], axis=-3)
    result *= weights[0][:, np.newaxis, np.newaxis]
    part = np.empty_like(result)
    for tap, weight in zip(taps[1:], weights[1:], strict=True):
        pixels.take(tap, axis=-3, out=part, mode="clip")
        part *= weight[:, np.newaxis, np.newaxis]
        result += part
    return result


@functools.lru_cache(maxsize=256)  # a pipeline has few sizes; an entry takes about 12 bytes per old pixel of a row
def _weights(old: int, new: int, method: str, antialias: bool) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
    """Return the old positions and their weights for each new position, both of shape (taps, new)."""
    scale = old / new
    taps, weights = _area(new, scale) if method == "area" else _convolution(new, scale, method, antialias)
    weights = np.where((taps >= 0) & (taps < old), weights, 0.0)  # positions outside have no weight
    weights /= weights.sum(axis=0)
    inside: npt.NDArray[np.intp] = np.clip(taps, 0, old - 1).astype(np.intp)
    final: npt.NDArray[np.float32] = weights.astype(np.float32)
    return inside, final


def _area(new: int, scale: float) -> tuple[_Floats, _Floats]:
    """Weight each old pixel by the fraction of it that the new pixel covers."""
    begin, end = np.arange(new) * scale, np.arange(1, new + 1) * scale
    taps = np.floor(begin) + np.arange(math.ceil(scale) + 1)[:, np.newaxis]
    return taps, np.clip(np.minimum(taps + 1, end) - np.maximum(taps, begin), 0, None)


def _convolution(new: int, scale: float, method: str, antialias: bool) -> tuple[_Floats, _Floats]:
    """Weight each old pixel by the kernel, centred on the new pixel."""
    radius, kernel = _KERNELS[method]
    stretch = max(scale, 1.0) if antialias else 1.0
    centres = (np.arange(new) + 0.5) * scale
    first = np.ceil(centres - radius * stretch - 0.5)
    taps = first + np.arange(math.ceil(2 * radius * stretch) + 1)[:, np.newaxis]
    return taps, kernel(np.abs(taps + 0.5 - centres) / stretch)


def _cubic(x: _Floats, b: float, c: float) -> _Floats:
    """Evaluate the two-parameter family of Mitchell and Netravali (1988); b = 0, c = 0.5 is Keys' cubic."""
    near = ((12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + (6 - 2 * b)) / 6
    far = ((-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + (8 * b + 24 * c)) / 6
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _lanczos(x: _Floats, radius: int) -> _Floats:
    """Evaluate a sinc function in a sinc-shaped window."""
    return np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


# The radius of each kernel in pixels, and its value as a function of the distance.
_KERNELS: Final[dict[str, tuple[float, Callable[[_Floats], _Floats]]]] = {
    "bilinear": (1.0, lambda x: np.clip(1 - x, 0, None)),
    "bicubic": (2.0, functools.partial(_cubic, b=0, c=0.5)),
    "lanczos3": (3.0, functools.partial(_lanczos, radius=3)),
    "lanczos5": (5.0, functools.partial(_lanczos, radius=5)),
    "gaussian": (1.5, lambda x: np.where(x < 1.5, np.exp(-2 * x * x), 0.0)),
    "mitchellcubic": (2.0, functools.partial(_cubic, b=1 / 3, c=1 / 3)),
}
_METHODS: Final = ("bilinear", "nearest", "area", *(name for name in _KERNELS if name != "bilinear"))

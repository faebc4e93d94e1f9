"""Image resizing, equivalent to ``tf.image.resize``.

``"nearest"`` selects pixels. All other methods compute weighted sums of rows, then of columns, with a native kernel
(native/image.c) or else with NumPy. The weights of ``"area"`` are coverages; those of the other methods come from a
table of filters, so that a new filter is one entry in the table. Bilinear without antialias uses OpenCV if no kernels
are in use; it is ten times faster than NumPy.

This module works on arrays only. The codecs are in codecs.py.
"""

import functools
import math
import operator
import struct
from collections.abc import Callable, Sequence
from ctypes import addressof, c_float
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dataset.io.image.image_libraries import Pixels, library
from dataset.native.library import address_of, kernels

# The limit of OpenCV 5; that of version 4 was 512.
_OPENCV_CHANNELS_MAX: Final = 128

_Floats = npt.NDArray[np.float64]


class Axis(NamedTuple):
    """New positions along one axis, each a weighted sum of old ones.

    Attributes:
        taps: the old positions, int64 of shape ``(taps, new)``.
        weights: their weights, float32 of the same shape.
        spec: the structure ``axis`` of native/image.c, as numbers. It refers to the arrays.
    """

    taps: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]
    spec: tuple[int, int, int, int]


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
        ImportError: the extra ``images`` is not installed (needed by ``"bilinear"`` without ``antialias`` if no native
            kernels are in use).

    Example:
        >>> image = np.array([[[0], [100]]], np.uint8)
        >>> resize(image, (1, 4))[0, :, 0]
        array([  0.,  25.,  75., 100.], dtype=float32)
        >>> resize(image, (1, 4), "nearest")[0, :, 0]
        array([  0,   0, 100, 100], dtype=uint8)
    """
    source = np.asarray(images)
    _check_source(source)
    if method not in METHODS:
        raise ValueError(f"resize(): method must be one of {', '.join(METHODS)}, got {method!r}.")
    height, width = _check_target(size)
    if method == "nearest":
        return source.take(_nearest(source.shape[-3], height), axis=-3).take(_nearest(source.shape[-2], width), axis=-2)
    *batch, old_height, old_width, channels = source.shape
    is_ready = source.dtype.str in _KERNEL_DTYPES and source.flags.c_contiguous
    pixels = source if is_ready else np.ascontiguousarray(source, np.uint8 if source.dtype == np.uint8 else np.float32)
    result = np.empty((*batch, height, width, channels), np.float32)
    rows = axis_of(old_height, height, method, antialias)
    columns = axis_of(old_width, width, method, antialias)
    native = kernels()
    if native is not None:
        _resample_by_kernel(native, pixels, rows, columns, result)
        return result
    by_opencv = method == "bilinear" and not antialias and channels <= _OPENCV_CHANNELS_MAX
    images_and_results = (array.reshape(-1, *array.shape[-3:]) for array in (pixels, result))
    for image, out in zip(*images_and_results, strict=True):
        if by_opencv:
            cv2 = library("cv2")
            numbers = image.astype(np.float32, copy=False)  # OpenCV rounds results for bytes
            cv2.resize(numbers, (width, height), dst=out, interpolation=cv2.INTER_LINEAR)
        else:
            out[:] = resample(image, rows, columns)
    return result


def _check_source(source: Pixels) -> None:
    """Raise if the shape or the dtype is not that of images."""
    if source.ndim not in {3, 4} or 0 in source.shape[-3:]:
        raise ValueError(
            f"resize(): images must have shape (height, width, channels) or (n, height, width, channels) and not be "
            f"empty, got {source.shape}. A grayscale image needs a last axis of size 1: image[..., np.newaxis]."
        )
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
        raise ValueError(f"resize(): size must be two positive integers, (height, width), got {size!r}.")
    return height, width


@functools.lru_cache(maxsize=256)
def _nearest(old: int, new: int) -> npt.NDArray[np.intp]:
    """Return the nearest old position for each new one, in float32 so that ties round as in TensorFlow."""
    scale = np.float32(old) / np.float32(new)
    centres = (np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale
    nearest: npt.NDArray[np.intp] = np.minimum(np.floor(centres).astype(np.intp), old - 1)
    return nearest


def resample(image: Pixels, rows: Axis, columns: Axis) -> npt.NDArray[np.float32]:
    """Return the weighted sums of one image's rows, then of their columns."""
    for axis in (rows, columns):  # swapped in between, because NumPy sums contiguous memory faster
        image = image.astype(np.float32, copy=False)
        sums = np.zeros((axis.taps.shape[1], *image.shape[1:]), np.float32)
        part = np.empty_like(sums)
        for tap, weight in zip(axis.taps, axis.weights, strict=True):
            image.take(tap, axis=0, out=part, mode="clip")
            part *= weight[:, np.newaxis, np.newaxis]
            sums += part
        image = np.ascontiguousarray(sums.swapaxes(0, 1))
    return image


def _resample_by_kernel(native: Any, pixels: Pixels, rows: Axis, columns: Axis, result: Pixels) -> None:
    """Write the results of ``resample`` for bytes or float32 to ``result``. Both arrays are contiguous."""
    width, channels = pixels.shape[-2:]
    sums = (c_float * ((width + result.shape[-2]) * channels + 6))()
    shape = pixels.dtype == np.float32, width * channels, channels
    image, out = address_of(pixels), address_of(result)
    for _ in range(math.prod(pixels.shape[:-3])):
        native.resample(_RESIZING.pack(image, *shape, *rows.spec, *columns.spec, addressof(sums), out))
        image += pixels.shape[-3] * width * channels * pixels.itemsize
        out += result.shape[-3] * result.shape[-2] * channels * result.itemsize


@functools.lru_cache(maxsize=1024)  # photos have many sizes; an entry takes 12 bytes per tap of each new position
def axis_of(old: int, new: int, method: str, antialias: bool) -> Axis:
    """Return the old positions and their weights for each new position."""
    scale = old / new
    taps, weights = _area(new, scale) if method == "area" else _convolution(new, scale, method, antialias)
    weights = np.where((taps >= 0) & (taps < old), weights, 0.0)  # positions outside have no weight
    weights /= weights.sum(axis=0)
    is_used = weights.any(axis=1)
    positions = np.clip(taps[is_used], 0, old - 1).astype(np.int64)
    shares = weights[is_used].astype(np.float32)
    return Axis(positions, shares, (new, len(positions), positions.ctypes.data, shares.ctypes.data))


def _area(new: int, scale: float) -> tuple[_Floats, _Floats]:
    """Weight each old pixel by the fraction of it that the new pixel covers."""
    begin, end = np.arange(new) * scale, np.arange(1, new + 1) * scale
    taps = np.floor(begin) + np.arange(math.ceil(scale) + 1)[:, np.newaxis]
    return taps, np.clip(np.minimum(taps + 1, end) - np.maximum(taps, begin), 0, None)


def _convolution(new: int, scale: float, method: str, antialias: bool) -> tuple[_Floats, _Floats]:
    """Weight each old pixel by the filter, centred on the new pixel."""
    radius, weigh = _FILTERS[method]
    stretch = max(scale, 1.0) if antialias else 1.0
    centres = (np.arange(new) + 0.5) * scale
    first = np.ceil(centres - radius * stretch - 0.5)
    taps = first + np.arange(math.ceil(2 * radius * stretch) + 1)[:, np.newaxis]
    return taps, weigh(np.abs(taps + 0.5 - centres) / stretch)


def _cubic(x: _Floats, b: float, c: float) -> _Floats:
    """Evaluate the two-parameter family of Mitchell and Netravali (1988); b = 0, c = 0.5 is Keys' cubic."""
    near = ((12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + (6 - 2 * b)) / 6
    far = ((-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + (8 * b + 24 * c)) / 6
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _lanczos(x: _Floats, radius: int) -> _Floats:
    """Evaluate a sinc function in a sinc-shaped window."""
    return np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


# The radius of each filter in pixels, and its value as a function of the distance.
_FILTERS: Final[dict[str, tuple[float, Callable[[_Floats], _Floats]]]] = {
    "bilinear": (1.0, lambda x: np.clip(1 - x, 0, None)),
    "bicubic": (2.0, functools.partial(_cubic, b=0, c=0.5)),
    "lanczos3": (3.0, functools.partial(_lanczos, radius=3)),
    "lanczos5": (5.0, functools.partial(_lanczos, radius=5)),
    "gaussian": (1.5, lambda x: np.where(x < 1.5, np.exp(-2 * x * x), 0.0)),
    "mitchellcubic": (2.0, functools.partial(_cubic, b=1 / 3, c=1 / 3)),
}
_KERNEL_DTYPES: Final = {np.dtype(dtype).str for dtype in (np.uint8, np.float32)}
_RESIZING: Final = struct.Struct("14q")  # the structure in native/image.c
METHODS: Final = ("bilinear", "nearest", "area", *(name for name in _FILTERS if name != "bilinear"))

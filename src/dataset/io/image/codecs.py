"""Image codecs: the public functions that decode and encode JPEG, PNG, GIF and BMP bytes.

The functions work on bytes and arrays; they open no files and start no threads. All of them need the extra ``images``
(``simplejpeg`` and OpenCV), which is imported at the first call. Decoders release the GIL. Where to read next:

    argument_checks.py   checks of arguments, with their error messages
    image_headers.py     header parsers for untrusted bytes, run before a C library receives them
    decoders.py    one decoder per format
    image_libraries.py       lazy imports of the extra, and shared helpers around OpenCV
    resize.py      resizing of decoded images

There are two libraries because ``simplejpeg`` decodes JPEG to exactly the pixels of ``tf.io.decode_jpeg``, with all its
options, and is the fastest of those measured. OpenCV reads the other formats.

Every declared size is checked against ``max_pixels`` before memory is allocated for it. Bytes that can't be decoded
raise ``ValueError``; the C libraries may also write a line to stderr.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dataset.io.image.argument_checks import DecodeRequest, check_image, image_bytes
from dataset.io.image.decoders import decode
from dataset.io.image.image_libraries import Pixels, library, recolor

MAX_PIXELS: Final = 2**29 // 3
"""Default maximum number of pixels of a decoder: half a GiB of RGB, the same limit as TensorFlow's."""

# Photos are decoded one by one with the same arguments, so these are checked once.
_request: Final[type[DecodeRequest]] = functools.lru_cache(maxsize=64, typed=True)(DecodeRequest)  # type: ignore[assignment]


def decode_jpeg(
    contents: bytes,
    channels: int = 0,
    *,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    dct_method: str = "",
    max_pixels: int = MAX_PIXELS,
) -> Pixels:
    """Decode a JPEG image to the same pixels as ``tf.io.decode_jpeg``.

    The pixels are identical except for CMYK images (difference at most 1 of 255) and for damaged files that can still
    be decoded (at most 3). Like TensorFlow, it also decodes a PNG or a GIF with one frame. EXIF orientation is not
    applied.

    Args:
        contents: the bytes of the file.
        channels: 0 for the number in the file, 1 for grayscale, 3 for RGB. With 3, grayscale values are repeated.
        ratio: 1, 2, 4 or 8; decodes at this fraction of the size, rounded up, which is much faster.
        fancy_upscaling: whether colour planes of half size are upscaled smoothly.
        try_recover_truncated: whether to decode truncated files, with gray or black for the missing part.
        dct_method: ``"INTEGER_FAST"`` (also the meaning of ``""``, as in TensorFlow) or ``"INTEGER_ACCURATE"``.
        max_pixels: the maximum number of declared pixels; larger files raise.

    Returns:
        A writable uint8 array of shape ``(height, width, channels)``.

    Raises:
        ValueError: the bytes are not an image, truncated, corrupt or too large, or an argument is out of range.
        ImportError: the extra ``images`` is not installed.

    Example:
        >>> image = np.full((4, 6, 3), 200, np.uint8)
        >>> decode_jpeg(encode_jpeg(image)).shape
        (4, 6, 3)
        >>> decode_jpeg(encode_jpeg(image), channels=1)[0, 0]
        array([200], dtype=uint8)
    """
    request = _request(
        "decode_jpeg",
        channels,
        max_pixels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        dct_method=dct_method,
    )
    return decode(request, image_bytes(request.name, contents), expand_animations=False)


def decode_and_crop_jpeg(
    contents: bytes,
    crop_window: Sequence[int] | npt.NDArray[np.integer[Any]],
    channels: int = 0,
    *,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    dct_method: str = "",
    max_pixels: int = MAX_PIXELS,
) -> Pixels:
    """Decode a part of a JPEG image: the pixels of ``decode_jpeg`` in a window.

    The whole image is decoded, because the library for JPEG decodes no parts. ``tf.io.decode_and_crop_jpeg`` decodes
    the window alone; with colours of half size that are upscaled smoothly, its pixels differ slightly at the left and
    right edges of the window. All other pixels are the same as here.

    Args:
        contents: the bytes of the file.
        crop_window: ``[y, x, height, width]`` in pixels of the decoded image, so after ``ratio`` is applied.
        channels: as in ``decode_jpeg``.
        ratio: as in ``decode_jpeg``.
        fancy_upscaling: as in ``decode_jpeg``.
        try_recover_truncated: as in ``decode_jpeg``.
        dct_method: as in ``decode_jpeg``.
        max_pixels: as in ``decode_jpeg``; it applies to the whole image.

    Returns:
        A writable uint8 array of shape ``(height, width, channels)``.

    Raises:
        ValueError: the bytes are not a JPEG image, truncated, corrupt or too large, the window is empty or extends
            beyond the image, or an argument is out of range.
        TypeError: the window does not contain integers.
        ImportError: the extra ``images`` is not installed.

    Example:
        >>> image = np.full((40, 60, 3), 200, np.uint8)
        >>> decode_and_crop_jpeg(encode_jpeg(image), [10, 20, 8, 6]).shape
        (8, 6, 3)
    """
    request = _request(
        "decode_and_crop_jpeg",
        channels,
        max_pixels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        dct_method=dct_method,
    )
    window = [operator.index(number) for number in crop_window]
    if len(window) != 4:
        raise ValueError(f"{request.name}(): crop_window must be [y, x, height, width], got {len(window)} numbers.")
    pixels = decode(request, image_bytes(request.name, contents), expand_animations=False)
    y, x, height, width = window
    if min(y, x, height - 1, width - 1) < 0 or y + height > pixels.shape[0] or x + width > pixels.shape[1]:
        raise ValueError(
            f"{request.name}(): crop_window must lie within the image of {pixels.shape[0]} x {pixels.shape[1]} pixels "
            f"and not be empty, got {window}."
        )
    return pixels[y : y + height, x : x + width].copy()


def decode_png(
    contents: bytes, channels: int = 0, dtype: type[np.uint8 | np.uint16] = np.uint8, *, max_pixels: int = MAX_PIXELS
) -> Pixels:
    """Decode a PNG image to the same pixels as ``tf.io.decode_png``.

    8 bits become 16 by repeating the byte, 16 become 8 by dropping the low byte. A palette becomes RGB, or RGBA if it
    has transparent colours. If no alpha channel is requested, transparency is dropped, not blended. The transparent
    gray level of a grayscale file without alpha channel is not applied. Like TensorFlow, it also decodes a JPEG or a
    GIF with one frame. Of an animated PNG it decodes the first frame.

    Args:
        contents: the bytes of the file.
        channels: 0 for the number in the file (2 for gray with alpha), 1 for grayscale, 3 for RGB, 4 for RGBA.
        dtype: ``np.uint8`` or ``np.uint16``.
        max_pixels: the maximum number of declared pixels; larger files raise.

    Returns:
        A writable array of shape ``(height, width, channels)``.

    Raises:
        ValueError: the bytes are not an image, truncated, corrupt or too large, or an argument is out of range.
        ImportError: the extra ``images`` is not installed.

    Example:
        >>> image = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
        >>> decode_png(encode_png(image))
        array([[[0, 1, 2], [3, 4, 5]]], dtype=uint8)
        >>> decode_png(encode_png(image), channels=4)[0, 0]
        array([  0,   1,   2, 255], dtype=uint8)
    """
    request = _request("decode_png", channels, max_pixels, dtype)
    return decode(request, image_bytes(request.name, contents), expand_animations=False)


def decode_image(
    contents: bytes, channels: int = 0, *, expand_animations: bool = True, max_pixels: int = MAX_PIXELS
) -> Pixels:
    """Decode a JPEG, PNG, GIF or BMP image. The first bytes determine the format.

    Args:
        contents: the bytes of the file.
        channels: 0 for the number in the file, 1 for grayscale (not GIF), 3 for RGB, 4 for RGBA (PNG and BMP only).
        expand_animations: whether a GIF becomes ``(frames, height, width, 3)``; if False, only its first frame.
        max_pixels: the maximum number of declared pixels, in all frames of a GIF together; larger files raise.

    Returns:
        A writable uint8 array of shape ``(height, width, channels)``, or with four axes for a GIF.

    Raises:
        ValueError: the bytes are not an image, truncated, corrupt or too large, or an argument is out of range.
        ImportError: the extra ``images`` is not installed.

    Example:
        >>> image = np.zeros((2, 3, 3), np.uint8)
        >>> decode_image(encode_png(image)).shape, decode_image(encode_jpeg(image)).shape
        ((2, 3, 3), (2, 3, 3))
        >>> decode_image(b"not an image")
        Traceback (most recent call last):
        ValueError: decode_image(): contents must be a JPEG, PNG, GIF or BMP image, got 12 bytes beginning with b'not...
    """
    request = _request("decode_image", channels, max_pixels)
    return decode(request, image_bytes(request.name, contents), expand_animations=expand_animations)


def encode_jpeg(
    image: Pixels,
    quality: int = 95,
    *,
    chroma_downsampling: bool = True,
    progressive: bool = False,
    optimize_size: bool = False,
) -> bytes:
    r"""Encode an image as JPEG, as ``tf.io.encode_jpeg`` does.

    Args:
        image: uint8, shape ``(height, width, 1 or 3)``.
        quality: 0 to 100.
        chroma_downsampling: whether to store the colours at half the resolution.
        progressive: whether viewers can show a coarse image first.
        optimize_size: whether to spend more time on a smaller file with the same pixels.

    Returns:
        The bytes of the file.

    Raises:
        ValueError: the image has another dtype or shape, or ``quality`` is out of range.
        ImportError: the extra ``images`` is not installed.

    Example:
        >>> encode_jpeg(np.zeros((8, 8, 3), np.uint8))[:3]
        b'\xff\xd8\xff'
    """
    if not 0 <= quality <= 100:
        raise ValueError(f"encode_jpeg(): quality must be from 0 to 100, got {quality}.")
    check_image("encode_jpeg", image, (np.uint8,), (1, 3))
    cv2 = library("cv2")
    options = [
        *(cv2.IMWRITE_JPEG_QUALITY, int(quality)),
        *(cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive)),
        *(cv2.IMWRITE_JPEG_OPTIMIZE, int(optimize_size)),
        *(cv2.IMWRITE_JPEG_SAMPLING_FACTOR, 0x221111 if chroma_downsampling else 0x111111),
    ]
    return _encode("encode_jpeg", ".jpg", image, options)


def encode_png(image: Pixels, compression: int = -1) -> bytes:
    """Encode an image as PNG, without loss.

    Args:
        image: uint8 or uint16, shape ``(height, width, 1, 3 or 4)``.
        compression: 0 (none) to 9 (small, slow), or -1 for the encoder's default. On photographs the default is about
            ten times faster than TensorFlow's default, 6, and files are a few percent larger.

    Returns:
        The bytes of the file.

    Raises:
        ValueError: the image has another dtype or shape, or ``compression`` is out of range.
        ImportError: the extra ``images`` is not installed.

    Example:
        >>> encode_png(np.zeros((8, 8, 4), np.uint16))[1:4]
        b'PNG'
    """
    if not -1 <= compression <= 9:
        raise ValueError(f"encode_png(): compression must be from -1 to 9, got {compression}.")
    check_image("encode_png", image, (np.uint8, np.uint16), (1, 3, 4))
    options = [] if compression == -1 else [library("cv2").IMWRITE_PNG_COMPRESSION, int(compression)]
    return _encode("encode_png", ".png", image, options)


def _encode(name: str, extension: str, image: Pixels, options: list[int]) -> bytes:
    """Encode one image with OpenCV. Its dtype and shape have been checked."""
    cv2 = library("cv2")
    pixels = np.ascontiguousarray(image, dtype=image.dtype.newbyteorder("="))
    if pixels.shape[2] > 1:
        pixels = recolor(pixels, "RGB2BGR" if pixels.shape[2] == 3 else "RGBA2BGRA")
    try:
        done, encoded = cv2.imencode(extension, pixels, options)
    except cv2.error:
        done = False
    if not done:
        msg = f"{name}(): this format can't store an image of shape {image.shape}. Make it smaller with resize()."
        raise ValueError(msg)
    content: bytes = encoded.tobytes()
    return content

"""Image decoders, one per format, and their selection by the first bytes.

Every decoder first reads the declared size with image_headers.py, then checks it with the request, and only then calls
a C library, which allocates memory for it. The public functions are in codecs.py. argument_checks.py checks the
arguments; only restrictions of a single format are checked here.
"""

from typing import Any

import numpy as np

from dataset.io.image.argument_checks import DecodeRequest
from dataset.io.image.image_headers import (
    PNG_GRAY,
    PNG_GRAY_ALPHA,
    PNG_RGB,
    bmp_size,
    gif_size,
    jpeg_frame,
    plain_png,
    png_color_type,
    png_size,
)
from dataset.io.image.image_libraries import Pixels, library, opencv_decode, recolor, to_rgb


def decode(request: DecodeRequest, contents: bytes, *, expand_animations: bool) -> Pixels:
    """Decode an image of any format. Wrong file extensions are common, so most functions accept several."""
    if contents.startswith(b"\xff\xd8\xff"):
        pixels = _decode_jpeg(request, contents)
    elif request.name == "decode_and_crop_jpeg":  # as TensorFlow
        raise request.unknown("JPEG", contents)
    elif contents.startswith(b"\x89PNG\r\n\x1a\n"):
        pixels = _decode_png(request, contents)
    elif contents.startswith((b"GIF87a", b"GIF89a")):
        pixels = _decode_gif(request, contents, expand_animations=expand_animations)
    elif contents.startswith(b"BM") and request.name == "decode_image":  # two letters are weak evidence for the others
        pixels = _decode_bmp(request, contents)
    else:
        kinds = "JPEG, PNG, GIF or BMP" if request.name == "decode_image" else "JPEG, PNG or GIF"
        raise request.unknown(kinds, contents)
    return _to_dtype(pixels, request.dtype)


def _to_dtype(pixels: Pixels, dtype: type[np.uint8 | np.uint16]) -> Pixels:
    """Convert pixels to the requested number of bits."""
    if pixels.dtype == dtype:
        return pixels
    if dtype == np.uint16:
        return pixels.astype(np.uint16) * np.uint16(257)  # 255 becomes 65535
    return (pixels >> 8).astype(np.uint8)


# JPEG -----------------------------------------------------------------------------------------------------------------


def _decode_jpeg(request: DecodeRequest, contents: bytes) -> Pixels:
    """Decode with simplejpeg; if it fails, retry with OpenCV.

    simplejpeg rejects everything that libjpeg warns about, including harmless padding and rare subsampling, which
    TensorFlow accepts. OpenCV accepts these files and rejects truncated ones, as TensorFlow does. Its pixels come from
    the accurate DCT and may differ by 3 of 255.
    """
    if request.channels == 4:
        raise ValueError(f"{request.name}(): a JPEG image has no alpha channel; channels must be 0, 1 or 3, got 4.")
    frame = jpeg_frame(contents)
    if frame is None:
        raise request.corrupt("JPEG", contents, "truncated or corrupt: the frame header is missing")
    request.check_size("JPEG", frame.height, frame.width)
    gray = request.channels == 1 or (request.channels == 0 and frame.components == 1)
    options = _simplejpeg_options(request, frame.height, frame.width)
    simplejpeg = library("simplejpeg")
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(contents, "GRAY" if gray else "RGB", **options)
    except ValueError as error:
        recovered = _opencv_jpeg(contents, gray=gray, ratio=request.ratio)
        if recovered is None:
            raise request.corrupt("JPEG", contents, f"truncated or corrupt: {error}") from None
        return recovered
    return pixels


def _simplejpeg_options(request: DecodeRequest, height: int, width: int) -> dict[str, Any]:
    """Return the options of simplejpeg for a request."""
    ratio = request.ratio
    return {
        "fastdct": request.dct_method != "INTEGER_ACCURATE",
        "fastupsample": not request.fancy_upscaling,
        "min_height": -(-height // ratio) if ratio > 1 else 0,
        "min_width": -(-width // ratio) if ratio > 1 else 0,
        "strict": not request.try_recover_truncated,
    }


def _opencv_jpeg(contents: bytes, *, gray: bool, ratio: int) -> Pixels | None:
    """Decode a file that simplejpeg rejected; return None if OpenCV rejects it, too."""
    cv2 = library("cv2")
    mode = "IMREAD_GRAYSCALE" if gray else "IMREAD_COLOR"
    flags = getattr(cv2, mode if ratio == 1 else f"IMREAD_REDUCED_{mode.removeprefix('IMREAD_')}_{ratio}")
    pixels = opencv_decode(contents, flags | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:
        return None
    return pixels[..., np.newaxis] if gray else recolor(pixels, "BGR2RGB")


# PNG ------------------------------------------------------------------------------------------------------------------


def _decode_png(request: DecodeRequest, contents: bytes) -> Pixels:
    """Decode with OpenCV, which leaves conversions to libpng, as TensorFlow does."""
    plain = plain_png(contents)
    if plain is None:
        raise request.corrupt("PNG", contents)
    request.check_size("PNG", *png_size(plain))
    color_type = png_color_type(plain)
    pixels = opencv_decode(plain, _png_flags(request, color_type))
    if pixels is None:
        raise request.corrupt("PNG", contents)
    if request.channels == 0 and color_type == PNG_GRAY_ALPHA:  # OpenCV repeats the gray value three times
        return np.ascontiguousarray(pixels[..., [0, 3]])
    return to_rgb(pixels, request.channels)


def _png_flags(request: DecodeRequest, color_type: int) -> int:
    """Return OpenCV's flags: read without the alpha channel if it is not requested, else unchanged."""
    cv2 = library("cv2")
    channels = request.channels
    if channels == 1 or (channels == 0 and color_type == PNG_GRAY):
        mode = cv2.IMREAD_GRAYSCALE
    elif channels == 3 or (channels == 0 and color_type == PNG_RGB):
        mode = cv2.IMREAD_COLOR
    else:
        return int(cv2.IMREAD_UNCHANGED)
    deep = cv2.IMREAD_ANYDEPTH if request.dtype == np.uint16 else 0
    return int(mode | deep | cv2.IMREAD_IGNORE_ORIENTATION)


# BMP ------------------------------------------------------------------------------------------------------------------


def _decode_bmp(request: DecodeRequest, contents: bytes) -> Pixels:
    """Decode with OpenCV, which treats the fourth byte of 32-bit pixels as alpha only if the header declares it."""
    request.check_size("BMP", *bmp_size(contents))
    cv2 = library("cv2")
    flags = {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR}.get(request.channels, cv2.IMREAD_UNCHANGED)
    pixels = opencv_decode(contents, flags)
    if pixels is None:
        raise request.corrupt("BMP", contents)
    return to_rgb(pixels, request.channels)


# GIF ------------------------------------------------------------------------------------------------------------------


def _decode_gif(request: DecodeRequest, contents: bytes, *, expand_animations: bool) -> Pixels:
    """Decode the frames of a GIF, each drawn over the previous ones."""
    if request.channels not in {0, 3}:
        msg = f"{request.name}(): a GIF image is decoded to RGB; channels must be 0 or 3, got {request.channels}."
        raise ValueError(msg)
    height, width = gif_size(contents)
    request.check_size("GIF", height, width)
    if request.name == "decode_image" and not expand_animations:
        return to_rgb(_gif_frames(request, contents, 1)[0], 3)
    frames = _all_gif_frames(request, contents, height, width)
    if request.name == "decode_image":
        return np.stack([to_rgb(frame, 3) for frame in frames])
    if len(frames) > 1:
        raise ValueError(f"{request.name}(): the GIF has {len(frames)} frames. Use decode_image().")
    return to_rgb(frames[0], 3)


def _all_gif_frames(request: DecodeRequest, contents: bytes, height: int, width: int) -> tuple[Pixels, ...]:
    """Decode all frames with OpenCV; raise if together they are too large."""
    frames_max = request.max_pixels // (height * width)
    # Decoding one frame more than allowed is enough to detect that there are too many.
    frames = _gif_frames(request, contents, min(frames_max + 1, 2**31 - 1))
    if len(frames) > frames_max:
        raise ValueError(
            f"{request.name}(): a GIF of more than {frames_max} frames of {height} x {width} pixels has more than "
            f"max_pixels = {request.max_pixels}. Pass a larger max_pixels."
        )
    return frames


def _gif_frames(request: DecodeRequest, contents: bytes, count: int) -> tuple[Pixels, ...]:
    """Decode the first ``count`` frames with OpenCV, or all if there are fewer, but at least one."""
    cv2 = library("cv2")
    try:
        whole, animation = cv2.imdecodeanimation(np.frombuffer(contents, np.uint8), start=0, count=count)
    except cv2.error:
        whole, animation = False, None
    if not whole or not animation.frames:
        raise request.corrupt("GIF", contents)
    return tuple(animation.frames)

"""Pictures: JPEG, PNG, GIF and BMP bytes into arrays and back, and a resize for what came out.

What lives here sees bytes and arrays; it opens no file and starts no thread. All of it needs the extra ``images``
(``simplejpeg`` and OpenCV), imported at the first call. Decoders and the bilinear resize release the GIL.

Why two libraries: ``simplejpeg`` decodes JPEG to exactly the pixels of ``tf.io.decode_jpeg``, all its options included,
and is the fastest of those measured; OpenCV reads the other formats and resizes, ten times faster than the same in
NumPy.

Every size that a file declares is checked against ``max_pixels`` before anything of that size is allocated. Bytes that
can't be decoded raise ``ValueError``; the C libraries may also write a line about them to stderr.
"""

import functools
import importlib
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_PIXELS", "decode_image", "decode_jpeg", "decode_png", "encode_jpeg", "encode_png", "resize"]

MAX_PIXELS: Final = 2**29 // 3
"""The most pixels that a decoder accepts unless told otherwise: half a GiB of RGB. TensorFlow's limit is the same."""

Pixels = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Request:
    """What the caller of a decoder asked for; ``name`` is the function to blame in messages."""

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
            msg = f"{self.name}(): channels must be 0 (as in the file), 1, 3 or 4, got {self.channels!r}."
            raise ValueError(msg)
        if self.ratio not in {1, 2, 4, 8}:
            msg = f"{self.name}(): ratio must be 1, 2, 4 or 8, got {self.ratio!r}. Use resize() for other sizes."
            raise ValueError(msg)
        if self.dct_method not in {"", "INTEGER_FAST", "INTEGER_ACCURATE"}:
            msg = f"{self.name}(): dct_method must be INTEGER_FAST or INTEGER_ACCURATE, got {self.dct_method!r}."
            raise ValueError(msg)
        if self.dtype not in (np.uint8, np.uint16):
            msg = f"{self.name}(): dtype must be np.uint8 or np.uint16, got {self.dtype!r}."
            raise ValueError(msg)

    def check_size(self, kind: str, height: int, width: int) -> None:
        """Refuse a declared size that is empty or too large, before memory is taken for it."""
        if height <= 0 or width <= 0:
            msg = f"{self.name}(): the {kind} header declares {height} x {width} pixels; the bytes are corrupt."
            raise ValueError(msg)
        if height * width > self.max_pixels:
            msg = (
                f"{self.name}(): the {kind} header declares {height} x {width} pixels, more than max_pixels = "
                f"{self.max_pixels}. If the image is real, pass a larger max_pixels."
            )
            raise ValueError(msg)

    def corrupt(self, kind: str, contents: bytes, why: str = "cut short or corrupt") -> ValueError:
        """Say that these bytes can't be decoded."""
        return ValueError(
            f"{self.name}(): the {kind} bytes are {why} ({len(contents)} bytes, beginning with {contents[:8]!r}). "
            f"Repair or leave out this element; ignore_errors() drops it from a Dataset.",
        )


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
    """Decode a JPEG image to the pixels that ``tf.io.decode_jpeg`` gives.

    Equal to the last bit, but for CMYK images (at most 1 of 255 apart) and for files with damage that leaves an image
    (at most 3 apart). A PNG or a GIF of one frame is decoded too, as in TensorFlow. An EXIF orientation is not applied.

    Args:
        contents: the bytes of the file.
        channels: 0 for what the file has, 1 for grayscale, 3 for RGB. A grayscale file with 3 repeats its values.
        ratio: 1, 2, 4 or 8; decodes at that fraction of the size, rounded up, for much less time.
        fancy_upscaling: whether colour planes of half size are enlarged smoothly.
        try_recover_truncated: give an image where bytes are missing, with gray or black in place of the lost part.
        dct_method: ``"INTEGER_FAST"`` (also meant by ``""``, as in TensorFlow) or ``"INTEGER_ACCURATE"``.
        max_pixels: refuse files that declare more pixels than this.

    Returns:
        A writable uint8 array of shape ``(height, width, channels)``.

    Raises:
        ValueError: not an image, cut short, corrupt or too large; or an argument out of range.
        ImportError: the extra ``images`` is not installed.

    Example:
        >>> image = np.full((4, 6, 3), 200, np.uint8)
        >>> decode_jpeg(encode_jpeg(image)).shape
        (4, 6, 3)
        >>> decode_jpeg(encode_jpeg(image), channels=1)[0, 0]
        array([200], dtype=uint8)
    """
    request = _Request(
        "decode_jpeg",
        channels,
        max_pixels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        dct_method=dct_method,
    )
    return _decode(request, _image_bytes(request.name, contents), expand_animations=False)


def decode_png(
    contents: bytes, channels: int = 0, dtype: type[np.uint8 | np.uint16] = np.uint8, *, max_pixels: int = MAX_PIXELS
) -> Pixels:
    """Decode a PNG image to the pixels that ``tf.io.decode_png`` gives.

    8 bits become 16 by repeating the byte, 16 become 8 by dropping the low byte. A palette becomes RGB, and RGBA if it
    has transparent colours. Transparency is cut off, not blended, where no alpha channel is asked for. The transparent
    gray level of a grayscale file without alpha channel is not applied. A JPEG or a GIF of one frame is decoded too, as
    in TensorFlow; of an animated PNG, the first frame.

    Args:
        contents: the bytes of the file.
        channels: 0 for what the file has (2 for gray with alpha), 1 for grayscale, 3 for RGB, 4 for RGBA.
        dtype: ``np.uint8`` or ``np.uint16``.
        max_pixels: refuse files that declare more pixels than this.

    Returns:
        A writable array of shape ``(height, width, channels)``.

    Raises:
        ValueError: not an image, cut short, corrupt or too large; or an argument out of range.
        ImportError: the extra ``images`` is not installed.

    Example:
        >>> image = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
        >>> decode_png(encode_png(image))
        array([[[0, 1, 2], [3, 4, 5]]], dtype=uint8)
        >>> decode_png(encode_png(image), channels=4)[0, 0]
        array([  0,   1,   2, 255], dtype=uint8)
    """
    request = _Request("decode_png", channels, max_pixels, dtype)
    return _decode(request, _image_bytes(request.name, contents), expand_animations=False)


def decode_image(
    contents: bytes, channels: int = 0, *, expand_animations: bool = True, max_pixels: int = MAX_PIXELS
) -> Pixels:
    """Decode a JPEG, PNG, GIF or BMP image; its first bytes tell which.

    Args:
        contents: the bytes of the file.
        channels: 0 for what the file has, 1 for grayscale (not GIF), 3 for RGB, 4 for RGBA (PNG and BMP only).
        expand_animations: a GIF becomes ``(frames, height, width, 3)``; if False, its first frame.
        max_pixels: refuse files that declare more pixels than this; the frames of a GIF count together.

    Returns:
        A writable uint8 array of shape ``(height, width, channels)``, or of four axes for a GIF.

    Raises:
        ValueError: not an image, cut short, corrupt or too large; or an argument out of range.
        ImportError: the extra ``images`` is not installed.

    Example:
        >>> image = np.zeros((2, 3, 3), np.uint8)
        >>> decode_image(encode_png(image)).shape, decode_image(encode_jpeg(image)).shape
        ((2, 3, 3), (2, 3, 3))
        >>> decode_image(b"not an image")
        Traceback (most recent call last):
        ValueError: decode_image(): contents must be a JPEG, PNG, GIF or BMP image, got 12 bytes beginning with b'not...
    """
    request = _Request("decode_image", channels, max_pixels)
    return _decode(request, _image_bytes(request.name, contents), expand_animations=expand_animations)


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
        chroma_downsampling: store the colours at half the size.
        progressive: let a viewer show a coarse image first.
        optimize_size: take more time for a smaller file with the same pixels.

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
        msg = f"encode_jpeg(): quality must be from 0 to 100, got {quality}."
        raise ValueError(msg)
    _check_image("encode_jpeg", image, (np.uint8,), (1, 3))
    cv2 = _library("cv2")
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
        compression: 0 (none) to 9 (small, slow). -1 lets the encoder choose: on photographs some ten times faster than
            TensorFlow's default, 6, for files that are a few percent larger.

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
        msg = f"encode_png(): compression must be from -1 to 9, got {compression}."
        raise ValueError(msg)
    _check_image("encode_png", image, (np.uint8, np.uint16), (1, 3, 4))
    options = [] if compression == -1 else [_library("cv2").IMWRITE_PNG_COMPRESSION, int(compression)]
    return _encode("encode_png", ".png", image, options)


def resize(images: npt.ArrayLike, size: Sequence[int], method: str = "bilinear", antialias: bool = False) -> Pixels:
    """Change the height and width of one image or of a batch, as ``tf.image.resize`` does.

    Pixel centres lie at half coordinates. The result is float32 whatever came in, and also where the size stays the
    same; only ``"nearest"`` keeps the dtype. Values are not rounded and not clipped.

    Args:
        images: numbers of shape ``(height, width, channels)`` or ``(n, height, width, channels)``.
        size: the new ``(height, width)``.
        method: ``"bilinear"`` (by far the fastest), ``"nearest"``, ``"area"``, ``"bicubic"``, ``"lanczos3"``,
            ``"lanczos5"``, ``"gaussian"`` or ``"mitchellcubic"``.
        antialias: when an image gets smaller, widen the filter so that every pixel counts. Means nothing for
            ``"nearest"``, and for ``"area"``, which always does.

    Returns:
        An array of shape ``(*size, channels)`` or ``(n, *size, channels)``.

    Raises:
        ValueError: a shape, dtype, size or method that does not fit.
        ImportError: the extra ``images`` is not installed (needed by ``"bilinear"`` without ``antialias``).

    Example:
        >>> image = np.array([[[0], [100]]], np.uint8)
        >>> resize(image, (1, 4))[0, :, 0]
        array([  0.,  25.,  75., 100.], dtype=float32)
        >>> resize(image, (1, 4), "nearest")[0, :, 0]
        array([  0,   0, 100, 100], dtype=uint8)
    """
    source = np.asarray(images)
    if source.ndim not in {3, 4} or 0 in source.shape[-3:]:
        msg = (
            f"resize(): images must have shape (height, width, channels) or (n, height, width, channels) and pixels, "
            f"got {source.shape}. A grayscale image needs a last axis of 1: image[..., np.newaxis]."
        )
        raise ValueError(msg)
    if source.dtype.kind not in "iuf":
        msg = f"resize(): images must hold integers or floats, got {source.dtype}. Convert them with astype()."
        raise ValueError(msg)
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
    # Transposing between the passes keeps the inner loops of both over contiguous memory.
    pixels = _resample(pixels, height, method, antialias).swapaxes(-3, -2)
    return np.ascontiguousarray(_resample(pixels, width, method, antialias).swapaxes(-3, -2))


# Decoding -------------------------------------------------------------------------------------------------------------


def _decode(request: _Request, contents: bytes, *, expand_animations: bool) -> Pixels:
    """Choose the decoder by the magic bytes. A wrong file extension is common, so no function insists on its format."""
    if contents.startswith(b"\xff\xd8\xff"):
        pixels = _decode_jpeg(request, contents)
    elif contents.startswith(b"\x89PNG\r\n\x1a\n"):
        pixels = _decode_png(request, contents)
    elif contents.startswith((b"GIF87a", b"GIF89a")):
        pixels = _decode_gif(request, contents, expand_animations=expand_animations)
    elif contents.startswith(b"BM") and request.name == "decode_image":  # two letters are thin evidence elsewhere
        pixels = _decode_bmp(request, contents)
    else:
        kinds = "JPEG, PNG, GIF or BMP" if request.name == "decode_image" else "JPEG, PNG or GIF"
        begin = f" beginning with {contents[:8]!r}" if contents else ""
        msg = f"{request.name}(): contents must be a {kinds} image, got {len(contents)} bytes{begin}."
        raise ValueError(msg)
    if pixels.dtype == request.dtype:
        return pixels
    if request.dtype == np.uint16:
        return pixels.astype(np.uint16) * np.uint16(257)  # 255 becomes 65535
    return (pixels >> 8).astype(np.uint8)


def _decode_jpeg(request: _Request, contents: bytes) -> Pixels:
    """Decode with simplejpeg; where it gives up, let OpenCV tell a damaged image from a lost one.

    simplejpeg refuses whatever libjpeg warns about, harmless padding and rare subsampling included, which TensorFlow
    accepts. OpenCV accepts those and refuses a file that ends early, as TensorFlow does. The pixels of such rare files
    come from the accurate DCT and may differ by 3 of 255.
    """
    if request.channels == 4:
        msg = f"{request.name}(): a JPEG image has no alpha channel; channels must be 0, 1 or 3, got 4."
        raise ValueError(msg)
    height, width, components = _jpeg_size(request, contents)
    request.check_size("JPEG", height, width)
    gray = request.channels == 1 or (request.channels == 0 and components == 1)
    ratio = request.ratio
    simplejpeg = _library("simplejpeg")
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(
            contents,
            "GRAY" if gray else "RGB",
            fastdct=request.dct_method != "INTEGER_ACCURATE",
            fastupsample=not request.fancy_upscaling,
            min_height=-(-height // ratio) if ratio > 1 else 0,
            min_width=-(-width // ratio) if ratio > 1 else 0,
            strict=not request.try_recover_truncated,
        )
    except ValueError as error:
        cv2 = _library("cv2")
        mode = "IMREAD_GRAYSCALE" if gray else "IMREAD_COLOR"
        flags = getattr(cv2, mode if ratio == 1 else f"IMREAD_REDUCED_{mode.removeprefix('IMREAD_')}_{ratio}")
        recovered = _opencv_decode(contents, flags | cv2.IMREAD_IGNORE_ORIENTATION)
        if recovered is None:
            raise request.corrupt("JPEG", contents, f"cut short or corrupt: {error}") from None
        return recovered[..., np.newaxis] if gray else _recolor(recovered, "BGR2RGB")
    return pixels


def _jpeg_size(request: _Request, contents: bytes) -> tuple[int, int, int]:
    """Read height, width and number of components from the frame header (ITU T.81, B.2.2), skipping segments."""
    position = 2
    while (position := contents.find(b"\xff", position)) != -1 and position + 10 <= len(contents):
        marker = contents[position + 1]
        if marker in _JPEG_FRAME_MARKERS:
            height = int.from_bytes(contents[position + 5 : position + 7], "big")
            width = int.from_bytes(contents[position + 7 : position + 9], "big")
            return height, width, contents[position + 9]
        if marker == 0xFF:  # fill
            position += 1
        elif marker in _JPEG_LONE_MARKERS:
            position += 2
        else:
            position += 2 + int.from_bytes(contents[position + 2 : position + 4], "big")
    raise request.corrupt("JPEG", contents, "cut short or corrupt: there is no frame header")


# SOF0 to SOF15; C4, C8 and CC are tables and extensions.
_JPEG_FRAME_MARKERS: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# Markers that carry no length: TEM, RST0 to RST7, SOI; 00 is no marker at all.
_JPEG_LONE_MARKERS: Final = frozenset({0x00, 0x01, *range(0xD0, 0xD9)})


def _decode_png(request: _Request, contents: bytes) -> Pixels:
    """Decode with OpenCV, whose conversions while reading are those of TensorFlow: libpng's."""
    plain = _plain_png(request, contents)
    width, height = int.from_bytes(plain[16:20], "big"), int.from_bytes(plain[20:24], "big")
    request.check_size("PNG", height, width)
    cv2 = _library("cv2")
    color_type, channels = plain[25], request.channels
    deep = cv2.IMREAD_ANYDEPTH if request.dtype == np.uint16 else 0
    if channels == 1 or (channels == 0 and color_type == _PNG_GRAY):
        flags = cv2.IMREAD_GRAYSCALE | deep | cv2.IMREAD_IGNORE_ORIENTATION
    elif channels == 3 or (channels == 0 and color_type == _PNG_RGB):
        flags = cv2.IMREAD_COLOR | deep | cv2.IMREAD_IGNORE_ORIENTATION
    else:
        flags = cv2.IMREAD_UNCHANGED
    pixels = _opencv_decode(plain, flags)
    if pixels is None:
        raise request.corrupt("PNG", contents)
    if channels == 0 and color_type == _PNG_GRAY_ALPHA:  # OpenCV repeats the gray value three times
        return np.ascontiguousarray(pixels[..., [0, 3]])
    return _to_rgb(pixels, channels)


def _plain_png(request: _Request, contents: bytes) -> bytes:
    """Check the chunks of a PNG (ISO/IEC 15948, clause 5) and leave out all that do not change pixels.

    Two things seen in OpenCV 5.0 make this necessary. It takes memory for whatever length a chunk declares, up to
    2 GiB, before it looks for its bytes. And damaged animation chunks can corrupt its heap, which ends the process;
    without them it decodes the first image, which is what is wanted here.
    """
    position, chunks, kinds = 8, [contents[:8]], [b""]
    while position + 12 <= len(contents) and kinds[-1] != b"IEND":
        end = position + 12 + int.from_bytes(contents[position : position + 4], "big")
        kind = contents[position + 4 : position + 8]
        if kind in _PNG_KINDS:
            chunks.append(contents[position:end])
            kinds.append(kind)
        elif not kind[0] & 0x20:  # an unknown chunk that claims to be necessary
            break
        position = end
    order = [kind for kind in dict.fromkeys(kinds[1:]) if kind not in _PNG_COLOR_KINDS]
    if (
        position > len(contents)
        or order not in _PNG_ORDERS
        or kinds.count(b"IHDR") > 1
        or contents[8:16] != b"\0\0\0\rIHDR"
    ):
        raise request.corrupt("PNG", contents)
    return b"".join(chunks)


_PNG_COLOR_KINDS: Final = frozenset({b"gAMA", b"cHRM", b"sRGB"})  # libpng makes gray from colours by these
_PNG_KINDS: Final = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}) | _PNG_COLOR_KINDS
_PNG_ORDERS: Final = (
    [b"IHDR", b"IDAT", b"IEND"],
    [b"IHDR", b"PLTE", b"IDAT", b"IEND"],
    [b"IHDR", b"tRNS", b"IDAT", b"IEND"],
    [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"],
)
_PNG_GRAY: Final = 0
_PNG_RGB: Final = 2
_PNG_GRAY_ALPHA: Final = 4


def _decode_bmp(request: _Request, contents: bytes) -> Pixels:
    """Decode with OpenCV. The unused byte of 32-bit pixels is not taken for alpha unless the header says so."""
    old = contents[14:18] == b"\x0c\0\0\0"  # the first version of the header has 16-bit sizes
    width = int.from_bytes(contents[18:20] if old else contents[18:22], "little", signed=not old)
    height = int.from_bytes(contents[20:22] if old else contents[22:26], "little", signed=not old)
    request.check_size("BMP", abs(height), width)  # a negative height means top to bottom
    cv2 = _library("cv2")
    flags = {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR}.get(request.channels, cv2.IMREAD_UNCHANGED)
    pixels = _opencv_decode(contents, flags)
    if pixels is None:
        raise request.corrupt("BMP", contents)
    return _to_rgb(pixels, request.channels)


def _decode_gif(request: _Request, contents: bytes, *, expand_animations: bool) -> Pixels:
    """Decode the frames of a GIF, each drawn over the ones before it."""
    if request.channels not in {0, 3}:
        msg = f"{request.name}(): a GIF image is decoded to RGB; channels must be 0 or 3, got {request.channels}."
        raise ValueError(msg)
    width, height = int.from_bytes(contents[6:8], "little"), int.from_bytes(contents[8:10], "little")
    request.check_size("GIF", height, width)
    cv2 = _library("cv2")
    first_only = request.name == "decode_image" and not expand_animations
    frames_max = 1 if first_only else request.max_pixels // (height * width)
    # One frame more than allowed is enough to know that there are too many.
    count = 1 if first_only else min(frames_max + 1, 2**31 - 1)
    try:
        whole, animation = cv2.imdecodeanimation(np.frombuffer(contents, np.uint8), start=0, count=count)
    except cv2.error:
        whole, animation = False, None
    if not whole or not animation.frames:
        raise request.corrupt("GIF", contents)
    frames = animation.frames
    if len(frames) > frames_max:
        msg = (
            f"{request.name}(): a GIF of more than {frames_max} frames of {height} x {width} pixels has more than "
            f"max_pixels = {request.max_pixels}. Pass a larger max_pixels."
        )
        raise ValueError(msg)
    if request.name == "decode_image" and expand_animations:
        return np.stack([_to_rgb(frame, 3) for frame in frames])
    if len(frames) > 1 and not first_only:
        msg = f"{request.name}(): the GIF has {len(frames)} frames. Use decode_image()."
        raise ValueError(msg)
    return _to_rgb(frames[0], 3)


def _opencv_decode(contents: bytes, flags: int) -> Pixels | None:
    """Let OpenCV decode one image; None if it can't."""
    cv2 = _library("cv2")
    try:
        pixels: Pixels | None = cv2.imdecode(np.frombuffer(contents, np.uint8), flags)
    except cv2.error:
        return None
    return pixels


def _to_rgb(pixels: Pixels, channels: int) -> Pixels:
    """Bring OpenCV's gray, BGR or BGRA to the channels asked for; 0 keeps their number."""
    if pixels.ndim == 2:
        if channels in {0, 1}:
            return pixels[..., np.newaxis]
        return _recolor(pixels, "GRAY2RGB" if channels == 3 else "GRAY2RGBA")
    have = "BGR" if pixels.shape[2] == 3 else "BGRA"
    want = {0: have[2::-1] + have[3:], 3: "RGB", 4: "RGBA"}[channels]
    return _recolor(pixels, f"{have}2{want}")


def _recolor(pixels: Pixels, conversion: str) -> Pixels:
    """Convert between orders of channels."""
    cv2 = _library("cv2")
    recolored: Pixels = cv2.cvtColor(pixels, getattr(cv2, f"COLOR_{conversion}"))
    return recolored


def _image_bytes(name: str, contents: object) -> bytes:
    """Accept bytes and other byte buffers."""
    if isinstance(contents, bytes):
        return contents
    if isinstance(contents, (bytearray, memoryview)):
        return bytes(contents)
    msg = f"{name}(): contents must be the bytes of one image, got {type(contents).__name__}."
    if isinstance(contents, np.ndarray):
        msg += " Decode images one at a time, before batch()."
    raise TypeError(msg)


# Encoding -------------------------------------------------------------------------------------------------------------


def _check_image(name: str, image: object, dtypes: tuple[type[Any], ...], channels: tuple[int, ...]) -> None:
    """Refuse what an encoder can't take."""
    array = np.asarray(image)
    if array.dtype.type not in dtypes:
        names = " or ".join(dtype.__name__ for dtype in dtypes)
        msg = f"{name}(): image must be {names}, got {array.dtype}. Scale and round it, then use astype()."
        raise ValueError(msg)
    if array.ndim != 3 or array.shape[2] not in channels or array.size == 0:
        numbers = f"{', '.join(map(str, channels[:-1]))} or {channels[-1]}"
        msg = f"{name}(): image must have shape (height, width, {numbers}) and pixels, got {array.shape}."
        raise ValueError(msg)


def _encode(name: str, extension: str, image: Pixels, options: list[int]) -> bytes:
    """Let OpenCV encode one checked image."""
    cv2 = _library("cv2")
    pixels = np.ascontiguousarray(image, dtype=image.dtype.newbyteorder("="))
    if pixels.shape[2] > 1:
        pixels = _recolor(pixels, "RGB2BGR" if pixels.shape[2] == 3 else "RGBA2BGRA")
    try:
        done, encoded = cv2.imencode(extension, pixels, options)
    except cv2.error:
        done = False
    if not done:
        msg = f"{name}(): this format can't hold an image of shape {image.shape}. Make it smaller with resize()."
        raise ValueError(msg)
    content: bytes = encoded.tobytes()
    return content


# Resizing -------------------------------------------------------------------------------------------------------------

# OpenCV 5 keeps no more channels in one element; version 4 kept 512.
_OPENCV_CHANNELS_MAX: Final = 128


def _check_target(size: Sequence[int]) -> tuple[int, int]:
    """Take height and width out of what the caller gave."""
    try:
        height, width = map(operator.index, size)
    except (TypeError, ValueError):
        height = width = 0
    if height <= 0 or width <= 0:
        msg = f"resize(): size must be two positive integers, (height, width), got {size!r}."
        raise ValueError(msg)
    return height, width


def _bilinear(pixels: npt.NDArray[np.float32], height: int, width: int) -> Pixels:
    """Resize float32 images with OpenCV, which rounds only 8-bit ones."""
    cv2 = _library("cv2")
    batch = pixels.reshape(-1, *pixels.shape[-3:])
    result = np.empty((len(batch), height, width, pixels.shape[-1]), np.float32)
    for image, out in zip(batch, result, strict=True):
        cv2.resize(image, (width, height), dst=out, interpolation=cv2.INTER_LINEAR)
    return result.reshape(*pixels.shape[:-3], *result.shape[1:])


@functools.lru_cache(maxsize=256)
def _nearest(old: int, new: int) -> npt.NDArray[np.intp]:
    """For each new position, the nearest old one. In float32, because rounding decides ties as TensorFlow does."""
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


@functools.lru_cache(maxsize=256)  # a pipeline has few sizes; one entry holds about 12 bytes per old pixel of a row
def _weights(old: int, new: int, method: str, antialias: bool) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
    """Give the old positions and their weights for each new position, both of shape (taps, new)."""
    scale = old / new
    stretch = max(scale, 1.0) if antialias else 1.0
    centres = (np.arange(new) + 0.5) * scale
    if method == "area":
        first = np.floor(np.arange(new) * scale)
        taps = first + np.arange(math.ceil(scale) + 1)[:, np.newaxis]
        begin, end = np.arange(new) * scale, np.arange(1, new + 1) * scale
        weights = np.clip(np.minimum(taps + 1, end) - np.maximum(taps, begin), 0, None)
    else:
        radius, kernel = _KERNELS[method]
        first = np.ceil(centres - radius * stretch - 0.5)
        taps = first + np.arange(math.ceil(2 * radius * stretch) + 1)[:, np.newaxis]
        weights = kernel(np.abs(taps + 0.5 - centres) / stretch)
    weights = np.where((taps >= 0) & (taps < old), weights, 0.0)  # what lies outside does not count
    weights /= weights.sum(axis=0)
    inside: npt.NDArray[np.intp] = np.clip(taps, 0, old - 1).astype(np.intp)
    final: npt.NDArray[np.float32] = weights.astype(np.float32)
    return inside, final


def _cubic(x: npt.NDArray[np.float64], b: float, c: float) -> npt.NDArray[np.float64]:
    """Evaluate the two-parameter family of Mitchell and Netravali (1988); b = 0, c = 0.5 is Keys' cubic."""
    near = ((12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + (6 - 2 * b)) / 6
    far = ((-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + (8 * b + 24 * c)) / 6
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _lanczos(x: npt.NDArray[np.float64], radius: int) -> npt.NDArray[np.float64]:
    """Evaluate a sinc in a sinc-shaped window."""
    return np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


# For each kernel its radius in pixels and its value at a distance.
_KERNELS: Final[dict[str, tuple[float, Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]]]] = {
    "bilinear": (1.0, lambda x: np.clip(1 - x, 0, None)),
    "bicubic": (2.0, functools.partial(_cubic, b=0, c=0.5)),
    "lanczos3": (3.0, functools.partial(_lanczos, radius=3)),
    "lanczos5": (5.0, functools.partial(_lanczos, radius=5)),
    "gaussian": (1.5, lambda x: np.where(x < 1.5, np.exp(-2 * x * x), 0.0)),
    "mitchellcubic": (2.0, functools.partial(_cubic, b=1 / 3, c=1 / 3)),
}
_METHODS: Final = ("bilinear", "nearest", "area", *(name for name in _KERNELS if name != "bilinear"))


@functools.cache
def _library(name: str) -> Any:
    """Import a library of the extra at its first use."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        msg = f'Images need {name}, which is not installed: pip install "dataset-combinators[images]".'
        raise ImportError(msg, name=name) from error

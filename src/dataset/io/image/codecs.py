"""Pictures: JPEG, PNG, GIF and BMP bytes into arrays and back.

What lives here is what users call: signatures, their manual, and a line or two that hands on. It sees bytes and arrays;
it opens no file and starts no thread. All of it needs the extra ``images`` (``simplejpeg`` and OpenCV), imported at the
first call. Decoders release the GIL. Where to read next:

    arguments.py   what may be asked for, and the words for what is refused
    headers.py     what untrusted bytes declare, read before a C library sees them
    decoders.py    one decoder per format
    extra.py       the loading of the extra, and the calls of OpenCV that several need
    resize.py      another height and width for what came out

Why two libraries: ``simplejpeg`` decodes JPEG to exactly the pixels of ``tf.io.decode_jpeg``, all its options included,
and is the fastest of those measured; OpenCV reads the other formats.

Every size that a file declares is checked against ``max_pixels`` before anything of that size is allocated. Bytes that
can't be decoded raise ``ValueError``; the C libraries may also write a line about them to stderr.
"""

from typing import Final

import numpy as np

from dataset.io.image.arguments import DecodeRequest, check_image, image_bytes
from dataset.io.image.decoders import decode
from dataset.io.image.extra import Pixels, library, recolor

__all__ = ["MAX_PIXELS", "decode_image", "decode_jpeg", "decode_png", "encode_jpeg", "encode_png"]

MAX_PIXELS: Final = 2**29 // 3
"""The most pixels that a decoder accepts unless told otherwise: half a GiB of RGB. TensorFlow's limit is the same."""


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
    request = DecodeRequest(
        "decode_jpeg",
        channels,
        max_pixels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        dct_method=dct_method,
    )
    return decode(request, image_bytes(request.name, contents), expand_animations=False)


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
    request = DecodeRequest("decode_png", channels, max_pixels, dtype)
    return decode(request, image_bytes(request.name, contents), expand_animations=False)


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
    request = DecodeRequest("decode_image", channels, max_pixels)
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
    check_image("encode_png", image, (np.uint8, np.uint16), (1, 3, 4))
    options = [] if compression == -1 else [library("cv2").IMWRITE_PNG_COMPRESSION, int(compression)]
    return _encode("encode_png", ".png", image, options)


def _encode(name: str, extension: str, image: Pixels, options: list[int]) -> bytes:
    """Let OpenCV encode one checked image."""
    cv2 = library("cv2")
    pixels = np.ascontiguousarray(image, dtype=image.dtype.newbyteorder("="))
    if pixels.shape[2] > 1:
        pixels = recolor(pixels, "RGB2BGR" if pixels.shape[2] == 3 else "RGBA2BGRA")
    try:
        done, encoded = cv2.imencode(extension, pixels, options)
    except cv2.error:
        done = False
    if not done:
        msg = f"{name}(): this format can't hold an image of shape {image.shape}. Make it smaller with resize()."
        raise ValueError(msg)
    content: bytes = encoded.tobytes()
    return content

"""Tests of the image codecs against results of TensorFlow 2.21 for the same bytes, given as literals."""

import base64
import struct
import sys
import zlib

import numpy as np
import pytest

from dataset.io.image import decoders, image_libraries
from dataset.io.image.codecs import (
    MAX_PIXELS,
    decode_and_crop_jpeg,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
)
from dataset.io.image.resize import resize
from support.process_helpers import run_code

# 5 x 6 pixels, colours at half the size, quality 60.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQEBLAEsAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQ"
    "YEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAFAAYD"
    "ASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAdEAABAgcAAAAAAAAAAAAAAAAAAgUBBAYREjFB/8QAFQEBAQAAAAAAAAAAAAAAAAAA"
    "Awb/xAAcEQACAgIDAAAAAAAAAAAAAAABBAIDAEEFItH/2gAMAwEAAhEDEQA/ALmal29MrlFN+aABJNu31zAidDQ8x+NbvK0e5z//2Q=="
)
JPEG_RGB = [
    [11, 13, 0, 39, 18, 0, 82, 15, 0, 122, 10, 22, 169, 11, 25, 202, 22, 34],
    [21, 49, 0, 50, 57, 0, 96, 56, 46, 138, 53, 72, 187, 58, 76, 219, 68, 85],
    [19, 103, 18, 47, 110, 55, 96, 111, 116, 142, 113, 144, 192, 119, 149, 222, 128, 155],
    [23, 163, 38, 50, 170, 73, 99, 171, 133, 149, 177, 165, 198, 182, 166, 224, 186, 167],
    [27, 226, 1, 52, 230, 32, 100, 231, 91, 152, 239, 124, 201, 242, 120, 220, 240, 115],
]

GIF_ONE = base64.b64decode("R0lGODdhAgACAIEAAAD/AAoUHv8AAAAA/ywAAAAAAgACAAAIBwAFABgQICAAOw==")
GIF_TWO = base64.b64decode(
    "R0lGODlhAgACAIEAAAD/AAoUHv8AAAAA/yH5BAAEAAAALAAAAAACAAIAAAgHAAUAGBAgIAAh+QQBBAAEACwAAAAAAQABAIEA/wAKFB4JCQkAAP8I"
    "BAAFBAQAOw=="
)
GIF_FRAMES = [
    [[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [10, 20, 30]]],
    [[[9, 9, 9], [0, 255, 0]], [[0, 0, 255], [10, 20, 30]]],
]


def png_chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def make_png(width, height, depth, color_type, rows, extra=b""):
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, 0)
    body = b"".join(b"\0" + bytes(row) for row in rows)
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + extra
        + png_chunk(b"IDAT", zlib.compress(body))
        + png_chunk(b"IEND", b"")
    )


def make_bmp(rows_bgr, height):
    """Four 24-bit pixels in two rows of two, each row padded to 8 bytes."""
    pixels = b"".join(bytes(row) + b"\0\0" for row in rows_bgr)
    info = struct.pack("<IiiHHIIiiII", 40, 2, height, 1, 24, 0, len(pixels), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + info + pixels


BMP = make_bmp([[0, 0, 255, 0, 255, 0], [255, 0, 0, 30, 20, 10]], height=-2)
PNG = make_png(2, 2, 8, 2, [[255, 0, 0, 0, 255, 0], [0, 0, 255, 10, 20, 30]])
ROWS, COLUMNS = np.mgrid[:40, :50]
PICTURE = np.stack([2 * ROWS + COLUMNS, 3 * ROWS, 4 * COLUMNS], axis=-1).astype(np.uint8)


# JPEG -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"channels": 3}, {"dct_method": "INTEGER_FAST"}], ids=str)
def test_jpeg_pixels_are_those_of_tensorflow(options):
    """tests/oracle compares the other options."""
    image = decode_jpeg(JPEG, **options)
    assert image.dtype == np.uint8
    assert image.flags.writeable
    assert image.reshape(5, -1).tolist() == JPEG_RGB


def test_a_grayscale_jpeg_has_one_channel_or_three_equal_ones():
    gray = encode_jpeg(PICTURE[..., :1])
    assert decode_jpeg(gray).shape == (*PICTURE.shape[:2], 1)
    np.testing.assert_array_equal(decode_jpeg(gray, 3), np.repeat(decode_jpeg(gray), 3, axis=-1))


def test_exif_orientation_is_not_applied():
    tiff = b"II*\0\x08\0\0\0" + struct.pack("<HHHIHHI", 1, 0x112, 3, 1, 6, 0, 0)
    body = b"Exif\0\0" + tiff
    turned = JPEG[:20] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + JPEG[20:]
    np.testing.assert_array_equal(decode_jpeg(turned), decode_jpeg(JPEG))


def test_harmless_damage_decodes_to_within_three_of_tensorflow_with_all_options():
    damaged = JPEG[:-2] + b"junk" + JPEG[-2:]
    assert np.abs(decode_jpeg(damaged).reshape(5, -1).astype(int) - JPEG_RGB).max() <= 3
    assert decode_jpeg(damaged, ratio=2).shape == (3, 3, 3)
    assert decode_jpeg(damaged, channels=1).shape == (5, 6, 1)


def test_a_truncated_jpeg_can_be_recovered():
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    whole = encode_jpeg(noise, chroma_downsampling=False)
    cut = whole[: len(whole) * 3 // 4]
    with pytest.raises(ValueError, match=r"decode_jpeg\(\): the JPEG bytes are truncated"):
        decode_jpeg(cut)
    recovered = decode_jpeg(cut, try_recover_truncated=True)
    np.testing.assert_array_equal(recovered[:40], decode_jpeg(whole)[:40])
    assert recovered.shape == noise.shape
    assert (recovered[-1] == recovered[-1, -1]).all()  # the last row is missing


def test_encoders_take_any_memory_layout():
    turned = PICTURE[::-1, ::2]
    np.testing.assert_array_equal(decode_png(encode_png(turned)), turned)
    assert encode_jpeg(turned) == encode_jpeg(turned.copy())
    deep = PICTURE.astype(">u2")
    np.testing.assert_array_equal(decode_png(encode_png(deep), dtype=np.uint16), deep)


# PNG ------------------------------------------------------------------------------------------------------------------

RGBA = make_png(2, 1, 8, 6, [[10, 20, 30, 0, 200, 100, 50, 128]])
GRAY_ALPHA = make_png(2, 1, 8, 4, [[40, 0, 90, 255]])
GRAY = make_png(2, 1, 8, 0, [[40, 200]])
RGB = make_png(2, 1, 8, 2, [[10, 20, 30, 200, 100, 50]])
COLORS = png_chunk(b"PLTE", bytes([1, 2, 3, 200, 100, 50]))
PALETTE = make_png(2, 1, 8, 3, [[0, 1]], COLORS)
PALETTE_ALPHA = make_png(2, 1, 8, 3, [[0, 1]], COLORS + png_chunk(b"tRNS", bytes([7])))


# Content, channels, and the pixels as gray and as RGBA; TensorFlow leaves the fourth channel of a palette undefined.
PIXELS = [
    (RGBA, 4, [18, 124], [[10, 20, 30, 0], [200, 100, 50, 128]]),
    (GRAY_ALPHA, 2, [40, 90], [[40, 40, 40, 0], [90, 90, 90, 255]]),
    (GRAY, 1, [40, 200], [[40, 40, 40, 255], [200, 200, 200, 255]]),
    (make_png(2, 1, 2, 0, [[0b01100000]]), 1, [85, 170], [[85, 85, 85, 255], [170, 170, 170, 255]]),
    (RGB, 3, [18, 124], [[10, 20, 30, 255], [200, 100, 50, 255]]),
    (PALETTE, 3, [1, 124], [[1, 2, 3, 255], [200, 100, 50, 255]]),
    (PALETTE_ALPHA, 4, [1, 124], [[1, 2, 3, 7], [200, 100, 50, 255]]),
]


@pytest.mark.parametrize(("content", "own", "gray", "rgba"), PIXELS)
@pytest.mark.parametrize("channels", [0, 1, 3, 4])
def test_png_channels_are_those_of_tensorflow(content, own, gray, rgba, channels):
    image = decode_png(content, channels)
    assert image.dtype == np.uint8
    assert image.flags.writeable
    in_channels = {1: [[value] for value in gray], 2: [one[2:] for one in rgba], 3: [one[:3] for one in rgba], 4: rgba}
    assert image.tolist() == [in_channels[channels or own]]
    np.testing.assert_array_equal(decode_image(content, channels), image)
    np.testing.assert_array_equal(decode_png(content, channels, np.uint16), image.astype(np.uint16) * 257)


def test_png_of_16_bits():
    deep, shallow = [258, 30000, 65535, 4660], [1, 117, 255, 18]
    content = make_png(1, 1, 16, 6, [struct.pack(">4H", *deep)])
    for channels in (0, 3, 4):
        assert decode_png(content, channels, np.uint16).tolist() == [[deep[: channels or 4]]]
        assert decode_png(content, channels).tolist() == [[shallow[: channels or 4]]]
    assert decode_png(content, 1, np.uint16).tolist() == [[[25160]]]
    assert decode_png(content, 1).tolist() == [[[98]]]


def test_chunks_that_change_pixels_are_kept_and_others_left_out():
    gamma = png_chunk(b"gAMA", struct.pack(">I", 30000))
    plain = make_png(3, 1, 8, 2, [range(9)])
    assert decode_png(plain, 1).ravel().tolist() == [0, 3, 6]
    assert decode_png(make_png(3, 1, 8, 2, [range(9)], gamma), 1).ravel().tolist() == [0, 0, 0]  # as in TensorFlow
    animated = png_chunk(b"acTL", struct.pack(">II", 9, 0)) + png_chunk(b"tEXt", b"a\0b")
    np.testing.assert_array_equal(decode_png(make_png(3, 1, 8, 2, [range(9)], animated)), decode_png(plain))


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_png_round_trip_is_exact(channels, dtype):
    image = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (7, 5, channels), dtype, endpoint=True)
    for compression in (-1, 0, 9):
        np.testing.assert_array_equal(decode_png(encode_png(image, compression), dtype=dtype), image)
    assert len(encode_png(PICTURE, 9)) < len(encode_png(PICTURE, 0))


# decode_image ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [PNG, BMP], ids=["png", "bmp"])
def test_decode_image_finds_the_format(content):
    for buffer in (content, bytearray(content), memoryview(content), np.bytes_(content)):
        assert decode_image(buffer).tolist() == GIF_FRAMES[0]
    assert decode_image(content, 4)[..., 3].tolist() == [[255, 255], [255, 255]]
    assert decode_image(content, 1).shape == (2, 2, 1)
    upwards = make_bmp([[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]], height=2)
    assert decode_image(upwards)[0, 0].tolist() == [9, 8, 7]


def test_a_gif_has_frames():
    assert decode_image(GIF_TWO).tolist() == GIF_FRAMES
    assert decode_image(GIF_TWO, 3, expand_animations=False).tolist() == GIF_FRAMES[0]


def test_decode_jpeg_and_decode_png_read_each_other_and_still_gifs():
    for decode in (decode_jpeg, decode_png):
        assert decode(PNG).tolist() == GIF_FRAMES[0]
        assert decode(JPEG).reshape(5, -1).tolist() == JPEG_RGB
        assert decode(GIF_ONE).tolist() == GIF_FRAMES[0]
        with pytest.raises(ValueError, match=rf"{decode.__name__}\(\): the GIF has 2 frames. Use decode_image\(\)"):
            decode(GIF_TWO)
        with pytest.raises(ValueError, match="must be a JPEG, PNG or GIF image"):
            decode(BMP)


# Bad bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [JPEG, encode_jpeg(PICTURE[:9, :9], progressive=True), BMP])
def test_a_file_that_lacks_its_end_is_an_error(content):
    with pytest.raises(ValueError, match="truncated or corrupt"):
        decode_image(content[:-9])


HUGE_SIZES = {
    "PNG": make_png(2**31 - 1, 2**31 - 1, 8, 2, []),
    "JPEG": JPEG.replace(b"\x08\x00\x05\x00\x06", b"\x08\xff\xff\xff\xff"),
    "GIF": GIF_TWO[:6] + b"\xff\xff\xff\xff" + GIF_TWO[10:],
    "BMP": BMP[:18] + struct.pack("<ii", 2**31 - 1, -(2**31)) + BMP[26:],
}


@pytest.mark.parametrize("kind", HUGE_SIZES)
def test_a_declared_size_is_checked_before_memory_is_taken(kind):
    with pytest.raises(
        ValueError, match=rf"the {kind} header declares \d+ x \d+ pixels, more than max_pixels = {MAX_PIXELS}"
    ):
        decode_image(HUGE_SIZES[kind])


@pytest.mark.parametrize(("content", "pixels"), [(JPEG, 30), (PNG, 4), (GIF_TWO, 8), (BMP, 4)])
def test_max_pixels_is_the_callers_to_set(content, pixels):
    decode_image(content, max_pixels=pixels)
    with pytest.raises(ValueError, match=f"max_pixels = {pixels - 1}"):
        decode_image(content, max_pixels=pixels - 1)


@pytest.mark.parametrize(
    "content",
    [
        RGBA[:33] + b"\x7f\xff\xff\xff" + RGBA[37:],
        RGBA[:-12] + RGBA[8:33] + RGBA[-12:],
        RGBA[:-12],
        make_png(2, 1, 8, 6, [bytes(8)], png_chunk(b"CODE", b"")),
    ],
    ids=["a chunk longer than the file", "a second header", "no end", "a necessary chunk of unknown kind"],
)
def test_png_chunks_are_checked_before_the_decoder_takes_memory_for_them(monkeypatch, content):
    calls = []
    monkeypatch.setattr(decoders, "opencv_decode", lambda *args: calls.append(args))
    with pytest.raises(ValueError, match=r"decode_png\(\): the PNG bytes are truncated or corrupt \(\d+ bytes"):
        decode_png(content)
    assert not calls


# Bad arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decode", [decode_jpeg, decode_png, decode_image])
def test_what_is_not_an_image_is_refused(decode):
    for content, channels, error, words in (
        (b"", 0, ValueError, r"contents must be a JPEG, .* got 0 bytes\."),
        (b"hello", 0, ValueError, ".* got 5 bytes beginning with b'hello'"),
        ("hello", 0, TypeError, "contents must be the bytes of one image, got str"),
        (np.array([JPEG], object), 0, TypeError, r".*got ndarray\. Decode images one at a time, before batch\(\)"),
        (JPEG, 2, ValueError, "channels must be 0 .* got 2"),
        (JPEG, 4, ValueError, "a JPEG image has no alpha channel"),
        (GIF_ONE, 1, ValueError, "a GIF image is decoded to RGB"),
    ):
        with pytest.raises(error, match=rf"{decode.__name__}\(\): {words}"):
            decode(content, channels)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decode_jpeg(JPEG, ratio=3), "ratio must be 1, 2, 4 or 8, got 3"),
        (lambda: decode_jpeg(JPEG, dct_method="FAST"), "dct_method must be .* got 'FAST'"),
        (lambda: decode_png(PNG, dtype=np.float32), "dtype must be np.uint8 or np.uint16"),
        (lambda: encode_jpeg(PICTURE, 101), r"encode_jpeg\(\): quality must be from 0 to 100, got 101"),
        (lambda: encode_png(PICTURE, 10), r"encode_png\(\): compression must be from -1 to 9, got 10"),
        (lambda: encode_jpeg(PICTURE.astype(float)), r"encode_jpeg\(\): image must be uint8, got float64"),
        (lambda: encode_png(PICTURE.astype(np.int8)), r"encode_png\(\): image must be uint8 or uint16, got int8"),
        (lambda: encode_jpeg(PICTURE[..., 0]), r"shape \(height, width, 1 or 3\) and not be empty, got \(40, 50\)"),
        (lambda: encode_jpeg(PICTURE[None]), r"shape \(height, width, 1 or 3\)"),
        (lambda: encode_png(PICTURE[..., :2]), r"shape \(height, width, 1, 3 or 4\) .* got \(40, 50, 2\)"),
        (lambda: encode_png(PICTURE[:0]), r"and not be empty, got \(0, 50, 3\)"),
        (lambda: encode_jpeg(np.zeros((1, 70_000, 1), np.uint8)), r"can't store an image of shape \(1, 70000, 1\)"),
    ],
)
def test_bad_arguments_say_what_would_be_right(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Integration ----------------------------------------------------------------------------------------------------------


def test_the_extra_is_imported_at_the_first_call_only():
    loaded = "print({'cv2', 'simplejpeg'} & set(sys.modules))\n"
    use = "image.encode_png(np.zeros((1, 1, 1), np.uint8))\n"
    code = f"import sys, dataset, dataset.io.image.codecs as image, numpy as np\n{loaded}{use}{loaded}"
    assert run_code(code).stdout.splitlines() == ["set()", "{'cv2'}"]


@pytest.mark.parametrize(
    ("library", "call"),
    [
        ("simplejpeg", lambda: decode_jpeg(JPEG)),
        ("cv2", lambda: encode_png(PICTURE)),
        ("cv2", lambda: resize(PICTURE, (2, 2))),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, library, call):
    monkeypatch.setattr("dataset.io.image.resize.kernels", lambda: None)  # with kernels, resize needs no extra
    monkeypatch.setitem(sys.modules, library, None)
    image_libraries.library.cache_clear()
    try:
        with pytest.raises(ImportError, match=rf'{library}, .*pip install "dataset-combinators\[images\]"'):
            call()
    finally:
        image_libraries.library.cache_clear()


def test_other_windows_and_formats_are_refused():
    """tests/oracle compares windows with TensorFlow's."""
    with pytest.raises(
        ValueError, match=r"crop_window must lie within the image of 5 x 6 pixels and not be empty, got"
    ):
        decode_and_crop_jpeg(JPEG, (0, 1, 1, 6))
    with pytest.raises(ValueError, match=r"must be \[y, x, height, width\], got 3 numbers"):
        decode_and_crop_jpeg(JPEG, [1, 2, 3])
    with pytest.raises(ValueError, match="contents must be a JPEG image, got"):
        decode_and_crop_jpeg(GIF_ONE, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="more than max_pixels = 29"):
        decode_and_crop_jpeg(JPEG, [0, 0, 1, 1], max_pixels=29)

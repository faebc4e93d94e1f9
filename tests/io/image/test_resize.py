"""Tests of resize against results of TensorFlow 2.21 for the same pixels, given as literals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.io.image.resize import resize

pytestmark = pytest.mark.usefixtures("native")

ROWS, COLUMNS = np.mgrid[:40, :50]
PICTURE = np.stack([2 * ROWS + COLUMNS, 3 * ROWS, 4 * COLUMNS], axis=-1).astype(np.uint8)
SMALL = np.array([[[0], [10], [200]], [[255], [60], [90]], [[31], [7], [120]]], np.uint8)
RESIZED = {
    ("bilinear", False): [[63.75, 37.9688, 78.75, 172.5], [87.0, 45.2812, 54.8438, 112.5]],
    ("bilinear", True): [[95.625, 53.8281, 77.5, 158.75], [115.0, 59.9219, 57.5781, 108.75]],
    ("nearest", False): [[0, 10, 10, 200], [31, 7, 7, 120]],
    ("area", False): [[85.0, 46.1111, 72.2222, 163.333], [105.667, 51.6667, 53.1111, 110.0]],
    ("bicubic", False): [[55.0048, 21.7637, 77.2637, 186.711], [82.2784, 34.3225, 48.8675, 116.795]],
    ("bicubic", True): [[101.802, 46.0573, 73.5868, 167.132], [124.424, 56.4743, 50.0332, 109.139]],
    ("lanczos3", False): [[67.382, 16.8938, 81.5727, 189.659], [95.1602, 36.0622, 46.7624, 115.389]],
    ("lanczos3", True): [[112.553, 43.5974, 74.2745, 170.548], [135.555, 59.4703, 45.4488, 109.047]],
    ("lanczos5", False): [[74.8496, 14.039, 83.9015, 189.946], [102.272, 37.8471, 44.2711, 112.856]],
    ("lanczos5", True): [[117.675, 41.7996, 74.1598, 170.988], [139.627, 60.8575, 42.4365, 109.279]],
    ("gaussian", False): [[65.1563, 42.8838, 78.7429, 159.268], [85.9336, 48.8631, 56.1481, 105.053]],
    ("gaussian", True): [[91.6618, 56.24, 76.9042, 145.894], [107.121, 60.6889, 60.0924, 105.556]],
    ("mitchellcubic", False): [[63.1063, 32.9657, 78.9216, 172.702], [87.0811, 42.8128, 52.7504, 110.78]],
    ("mitchellcubic", True): [[99.1689, 51.9592, 76.0262, 156.564], [118.205, 59.7781, 55.2456, 107.396]],
}


@pytest.mark.parametrize(("method", "antialias"), RESIZED)
def test_resized_values_are_those_of_tensorflow(method, antialias):
    result = resize(SMALL, (2, 4), method, antialias)
    assert result.shape == (2, 4, 1)
    assert result.dtype == (np.uint8 if method == "nearest" else np.float32)
    # Without antialias, TensorFlow computes the cubic kernel from a table of 1024 steps.
    tolerance = 0.02 if (method, antialias) == ("bicubic", False) else 1e-3
    np.testing.assert_allclose(result[..., 0], RESIZED[method, antialias], rtol=0, atol=tolerance)


sides = st.integers(1, 12)


@settings(deadline=None)  # the first example imports the extra, which takes long
@given(sides, sides, sides, sides, st.sampled_from(list(RESIZED)))
def test_a_batch_is_the_stack_of_its_images(old_height, old_width, height, width, case):
    images = np.random.default_rng(0).integers(0, 256, (3, old_height, old_width, 2), np.uint8)
    batch = resize(images, (height, width), *case)
    assert batch.shape == (3, height, width, 2)
    for result, image in zip(batch, images, strict=True):
        np.testing.assert_array_equal(result, resize(image, (height, width), *case))
    flat = np.full((old_height, old_width, 1), 77, np.uint8)
    np.testing.assert_allclose(resize(flat, (height, width), *case), 77, rtol=1e-6)


def test_the_same_size_is_a_float32_copy():
    for method in ("bilinear", "area"):
        image = PICTURE.astype(np.float32)
        result = resize(image, PICTURE.shape[:2], method)
        np.testing.assert_allclose(result, image, atol=1e-4)
        assert not np.shares_memory(result, image)
        assert result.flags.writeable
    nearest = resize(PICTURE, PICTURE.shape[:2], "nearest")
    assert not np.shares_memory(nearest, PICTURE)


def test_a_batch_may_be_empty_and_in_any_memory_layout():
    for method in ("bilinear", "nearest", "area"):
        assert resize(np.empty((0, 4, 5, 3), np.uint8), (2, 3), method).shape == (0, 2, 3, 3)
    images = np.random.default_rng(0).integers(0, 256, (2, 9, 8, 3), np.uint8)
    np.testing.assert_array_equal(resize(images[:, ::-1, ::2], (5, 5)), resize(images[:, ::-1, ::2].copy(), (5, 5)))


# Bad arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resize(PICTURE, (0, 4)), r"resize\(\): size must be two positive integers.* got \(0, 4\)"),
        (lambda: resize(PICTURE, (2.5, 4)), r"got \(2.5, 4\)"),
        (lambda: resize(PICTURE, (2, 3, 4)), r"got \(2, 3, 4\)"),
        (lambda: resize(PICTURE, 5), "got 5"),
        (lambda: resize(PICTURE[..., 0], (2, 3)), r"got \(40, 50\)\. A grayscale image needs a last axis of size 1"),
        (lambda: resize(PICTURE[:0], (2, 3)), r"got \(0, 50, 3\)"),
        (lambda: resize(PICTURE > 3, (2, 3)), r"must be integers or floats, got bool"),
        (lambda: resize(PICTURE, (2, 3), "cubic"), "method must be one of bilinear, nearest, area, .* got 'cubic'"),
    ],
)
def test_bad_arguments_say_what_would_be_right(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""Tests that the kernel finds the same frames as its twin, in valid, damaged, hostile and truncated bytes."""

import runpy
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset.io.tfrecord import frame_finder
from dataset.io.tfrecord.frame_finder import cut_frames, find_frames
from dataset.io.tfrecord.frames import VERIFY_ALL, VERIFY_LENGTHS, VERIFY_NOTHING, walk_frames
from dataset.native import library
from support.folders import flipped
from support.tfrecord_files import assorted, frame, frames, header

ROOT = Path(__file__).parents[3]
LENGTHS = [0, 1, 7, 16, 2**31, 2**32, 2**63 - 16, 2**63, 2**64 - 17, 2**64 - 16, 2**64 - 1]

records = st.lists(st.binary(max_size=40) | st.integers(0, 20_000).map(lambda size: bytes(range(256)) * (size // 256)))
hostile = st.sampled_from(LENGTHS).map(header) | st.sampled_from(LENGTHS).map(lambda size: struct.pack("<Q", size))


@st.composite
def blocks(draw):
    """Draw bytes that begin like frames, and may then be cut, changed or continued by anything."""
    content = bytearray(frames(draw(records)))
    content += draw(st.just(b"") | hostile | st.binary(max_size=30))
    for place in draw(st.lists(st.integers(0, max(len(content) - 1, 0)), max_size=3 if content else 0)):
        content[place] ^= draw(st.integers(1, 255))
    return bytes(content[: draw(st.none() | st.integers(0, len(content)))])


@given(blocks(), st.integers(0, 60), st.sampled_from([VERIFY_NOTHING, VERIFY_LENGTHS, VERIFY_ALL]))
def test_the_kernel_and_its_twin_agree(block, position, verify):
    assert find_frames(block, position, verify) == walk_frames(block, position, verify)


def test_a_block_with_more_frames_than_the_kept_array_has_room_for(native):
    found = [b""] * (frame_finder.KEPT_FRAMES + 1)
    begins, ends = find_frames(frames(found), 0, VERIFY_ALL)
    assert begins == ends == list(range(12, 16 * len(found), 16))


@pytest.mark.parametrize("size", [0, 1, 30])
@pytest.mark.parametrize("last", [0, 1, 30])
def test_records_of_equal_length_are_sliced(size, last):
    found = [*(bytes([i] * (size - 1) + [0] * (size > 0)) for i in range(20)), bytes(last)]
    block = b"noise" + frames(found)
    assert cut_frames(block, *find_frames(block, 5, VERIFY_ALL)) == found


@pytest.mark.parametrize("size", [*range(70), *range(180, 220), 3 * 256 + 9, 3 * 1024 - 1, 16_001, 100_003])
def test_data_of_every_length_is_verified(native, size):
    block = frame(np.random.default_rng(size).bytes(size))
    assert find_frames(block, 0, VERIFY_ALL) == ([12], [12 + size])
    for place in {0, 8, *(12 + size * part // 7 for part in range(8)), len(block) - 1}:
        assert find_frames(flipped(block, place), 0, VERIFY_ALL) == ([], [])


if shutil.which("cc"):

    def test_without_special_instructions_the_twin_computes_the_checksums(request, monkeypatch, tmp_path):
        build = runpy.run_path(str(ROOT / "hatch_build.py"))
        assert not build["compile_kernels"](tmp_path / "kernels.so", "-DPORTABLE")
        monkeypatch.setattr(library, "LIBRARY", tmp_path / "kernels.so")
        monkeypatch.setenv("DATASET_NATIVE", "1")
        library.load.cache_clear()
        request.addfinalizer(library.load.cache_clear)
        block = frames(assorted(300))
        assert library.kernels() is not None
        assert len(find_frames(block, 0, VERIFY_ALL)[0]) == 300
        assert len(find_frames(flipped(block, -1), 0, VERIFY_ALL)[0]) == 299
        assert library.kernels().find_frames(block, len(block), 0, VERIFY_LENGTHS, None) == -1

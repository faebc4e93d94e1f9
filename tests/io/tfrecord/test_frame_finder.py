"""Tests that the kernel finds the same frames as its twin, in valid and damaged bytes."""

import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

from dataset.io.tfrecord import frame_finder
from dataset.io.tfrecord.frame_finder import find_frames
from dataset.io.tfrecord.frames import VERIFY_ALL, VERIFY_LENGTHS
from dataset.native import library
from support.folders import flipped
from support.tfrecord_files import assorted, frame, frames

ROOT = Path(__file__).parents[3]


def test_a_block_with_more_frames_than_the_kept_array_has_room_for(native):
    found = [b""] * (frame_finder.KEPT_FRAMES + 1)
    begins, ends = find_frames(frames(found), 0, VERIFY_ALL)
    assert begins == ends == list(range(12, 16 * len(found), 16))


@pytest.mark.parametrize("size", [*range(70), *range(180, 220), 3 * 256 + 9, 3 * 1024 - 1, 16_001, 100_003])
def test_data_of_every_length_is_verified(native, size):
    block, found = frame(np.random.default_rng(size).bytes(size)), ([12], [12 + size])
    assert find_frames(block, 0, VERIFY_ALL) == found
    for place in {0, 8, *(12 + size * part // 7 for part in range(8)), len(block) - 1}:
        damaged = flipped(block, place)
        assert find_frames(damaged, 0, VERIFY_ALL) == ([], [])
        assert find_frames(damaged, 0, VERIFY_LENGTHS) == (([], []) if place < 12 else found)


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

"""Pictures of the live page, for the README and the site: docs/assets/live-light.png and live-dark.png.

python notebooks/live_page.py    # needs Chromium

The pipeline reads the digits of the demo as TFRecord files. One of its functions waits, and the page shows which.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dataset import AUTOTUNE, Dataset, TFRecordDataset, io

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.browser import Browser  # noqa: E402  # the tests of the page use it, too

FEATURES = {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature((), np.int64)}


def decode(record: bytes) -> tuple[np.ndarray, np.int64]:
    """Return the image and the label of a record."""
    example = io.parse_single_example(record, FEATURES)
    return io.decode_raw(example["image"], np.uint8).reshape(8, 8), example["label"]


def augment(rng: np.random.Generator, image: np.ndarray, label: np.int64) -> tuple[np.ndarray, np.int64]:
    """Return the image, shifted at random."""
    time.sleep(0.0015)  # like a request to a service
    return np.roll(image, rng.integers(-1, 2), axis=1), label


def digits(folder: Path) -> Dataset:
    """Return the pipeline, over files that are written to a folder."""
    rows = np.loadtxt(ROOT / "notebooks/digits/digits.csv.gz", delimiter=",", dtype=np.uint8)
    examples = Dataset.from_tensor_slices(rows).map(lambda row: {"image": row[:64].tobytes(), "label": row[64]})
    paths = examples.write_tfrecord(folder / "digits-{shard}.tfrecord", num_shards=4)
    return (
        TFRecordDataset(paths)
        .map(decode)
        .repeat()
        .shuffle(1000, seed=1)
        .random_map(augment, seed=2)
        .batch(32)
        .prefetch(AUTOTUNE)
    )


def main() -> None:
    """Run the pipeline for 20 seconds, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder, iter(digits(Path(folder))) as iterator:
        browser = Browser()
        try:
            browser.open(iterator.serve().url)
            until = time.monotonic() + 20
            while time.monotonic() < until:
                next(iterator)
                time.sleep(0.02)  # a step of training
            for dark in (False, True):
                browser.screenshot(ROOT / f"docs/assets/live-{'dark' if dark else 'light'}.png", 1100, dark=dark)
        finally:
            browser.close()


if __name__ == "__main__":
    main()

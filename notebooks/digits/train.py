"""Handwritten digits, from files to a trained model, with nothing but `dataset` and NumPy.

    python notebooks/digits/train.py

Read it from top to bottom: load the images, write them as TFRecord files as a bigger project would have them, build
the input pipeline, train a small model on what the pipeline delivers. `make demo` runs this script.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import numpy.typing as npt

from dataset import Dataset, TFRecordDataset, io, vectorized

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DATA = Path(__file__).with_name("digits.csv.gz")  # PROVENANCE.md says where it is from
DATA_SHA256 = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
PIXELS = 64  # 8 x 8
INK_MAX = 16  # a pixel counts the inked dots in a 4 x 4 block
CLASSES = 10
SHARDS = 6  # more files than the pipeline reads at a time, so that interleave has something to do
ACCURACY_MIN = 0.92  # 15 epochs reach about 0.95; below this bound something is broken

Pixels = npt.NDArray[np.uint8]  # (n, 64), values 0..16
Images = npt.NDArray[np.floating]  # (n, 64), values 0..1
Labels = npt.NDArray[np.int64]  # (n,), values 0..9


# 1. The data: a small CSV file, checked before it is believed.


def load_digits(path: Path = DATA, sha256: str = DATA_SHA256) -> tuple[Pixels, Labels]:
    """All 1,797 images, one per row, and their labels.

    Raises:
        ValueError: The file is not the one that PROVENANCE.md describes.
    """
    packed = path.read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != sha256:
        raise ValueError(
            f"load_digits(): {path} must have SHA-256 {sha256}, got {found}. Restore it from the repository."
        )
    rows = np.loadtxt(gzip.decompress(packed).decode("ascii").splitlines(), delimiter=",", dtype=np.uint8)
    return rows[:, :PIXELS], rows[:, PIXELS].astype(np.int64)


def is_test_row(count: int) -> npt.NDArray[np.bool_]:
    """Every fifth row is for testing, and nothing is left to chance."""
    # A cut after the first four fifths would be harder on the model (about 0.89 correct): the rows at the end of the
    # file differ from the rest. So our accuracy checks the pipeline; it is no benchmark of digit recognition.
    return np.arange(count) % 5 == 0


# 2. The files: TFRecord shards, each record a tf.train.Example of an image and its label.


def write_shards(folder: Path, pixels: Pixels, labels: Labels) -> list[Path]:
    """Deals the images out to SHARDS files in `folder`, like cards, and returns the paths."""
    paths = [folder / f"train-{shard:05d}-of-{SHARDS:05d}.tfrecord" for shard in range(SHARDS)]
    for shard, path in enumerate(paths):
        with io.TFRecordWriter(str(path)) as writer:
            for image, label in zip(pixels[shard::SHARDS], labels[shard::SHARDS], strict=True):
                writer.write(io.encode_example({"image": image.tobytes(), "label": int(label)}))
    return paths


# 3. The pipeline: what this example is about. Nothing in here runs until somebody iterates.

FEATURES = {
    "image": io.FixedLenFeature((), bytes),
    "label": io.FixedLenFeature((), np.int64),
}


def scale(pixels: Pixels) -> npt.NDArray[np.float32]:
    """Pixel values between 0 and 1, as the model likes them."""
    return pixels.astype(np.float32) / INK_MAX


@vectorized  # it works on one example and on many at once, so the library may call it once per chunk
def to_xy(example: dict[str, Any]) -> tuple[npt.NDArray[np.float32], Labels]:
    """From a parsed example to what the model takes: an image with values in 0..1, and a label."""
    return scale(io.decode_raw(example["image"], np.uint8)), example["label"]


def build_pipeline(folder: Path) -> Dataset[tuple[npt.NDArray[np.float32], Labels]]:
    """From the shards in `folder` to shuffled batches of (images, labels)."""
    return (
        Dataset.list_files(str(folder / f"train-*-of-{SHARDS:05d}.tfrecord"), shuffle=True, seed=1)
        .interleave(TFRecordDataset, cycle_length=4)  # four files are open at a time
        .map(io.ExampleParser(FEATURES))
        .map(to_xy)
        .cache()  # the first epoch reads and parses; the others find everything in memory
        .shuffle(2000, seed=2)  # the buffer holds all the examples, so each epoch has a new order of the whole
        .batch(64)
        .prefetch(2)  # the next batches are made while the model learns from this one
    )


# 4. The model: softmax regression, trained by gradient descent with momentum.


def log_softmax(scores: Images) -> Images:
    """The logarithms of the probabilities that the scores of each row stand for."""
    shifted = scores - scores.max(axis=1, keepdims=True)  # the same probabilities, and exp() can't overflow
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def loss_and_gradients(weights: Images, bias: Images, images: Images, labels: Labels) -> tuple[float, Images, Images]:
    """The mean cross-entropy of a batch, and its derivatives by weights and bias."""
    rows = np.arange(len(labels))
    log_probabilities = log_softmax(images @ weights + bias)
    loss = -float(log_probabilities[rows, labels].mean())
    # By the scores, the derivative is just: the predicted distribution minus the true one.
    by_scores = np.exp(log_probabilities)
    by_scores[rows, labels] -= 1
    by_scores /= len(labels)
    return loss, images.T @ by_scores, by_scores.sum(axis=0)


class SoftmaxRegression:
    """A linear score per digit; the highest one wins."""

    def __init__(self, learning_rate: float = 0.1, momentum: float = 0.9) -> None:
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weights = np.zeros((PIXELS, CLASSES), np.float32)
        self.bias = np.zeros(CLASSES, np.float32)
        self._weights_velocity = np.zeros_like(self.weights)
        self._bias_velocity = np.zeros_like(self.bias)

    def step(self, images: Images, labels: Labels) -> float:
        """Learns from one batch and returns the loss before it learned."""
        loss, by_weights, by_bias = loss_and_gradients(self.weights, self.bias, images, labels)
        self._weights_velocity = self.momentum * self._weights_velocity - self.learning_rate * by_weights
        self._bias_velocity = self.momentum * self._bias_velocity - self.learning_rate * by_bias
        self.weights += self._weights_velocity
        self.bias += self._bias_velocity
        return loss

    def predict(self, images: Images) -> Labels:
        """The most probable digit for each image."""
        return (images @ self.weights + self.bias).argmax(axis=1)


# 5. Something to watch.


class ProgressBar:
    """One line that fills up in place; where `out` is no terminal, only the finished line is written."""

    WIDTH = 20

    def __init__(self, title: str, total: int, out: TextIO) -> None:
        self.title, self.total, self.out = title, total, out
        self.is_live = out.isatty()

    def line(self, done: int, note: str) -> str:
        """The bar as text, for `done` of `total` elements."""
        filled = min(self.WIDTH, self.WIDTH * done // self.total)
        bar = "#" * filled + "." * (self.WIDTH - filled)
        return f"{self.title} [{bar}] {done:{len(str(self.total))}d}/{self.total}  {note}"

    def update(self, done: int, note: str) -> None:
        """Redraws the line."""
        if self.is_live:
            self.out.write("\r" + self.line(done, note))
            self.out.flush()

    def finish(self, done: int, note: str) -> None:
        """Writes the line for the last time; `done` short of the total shows as a bar that is not full."""
        self.out.write(("\r" if self.is_live else "") + self.line(done, note) + "\n")
        self.out.flush()


def draw(images: Pixels, captions: Sequence[str]) -> str:
    """Images side by side in characters, each with its caption below."""
    shades = np.array([character * 2 for character in " .:-=+*#%@"])  # twice, as characters are taller than wide
    pictures = shades[images.reshape(-1, 8, 8).astype(int) * (len(shades) - 1) // INK_MAX]
    lines = ["  ".join("".join(picture[row]) for picture in pictures) for row in range(8)]
    lines.append("  ".join(f"{caption:^16}" for caption in captions))
    return "\n".join(line.rstrip() for line in lines)


# 6. All together.


def train_epoch(model: SoftmaxRegression, batches: Iterable[tuple[Images, Labels]], bar: ProgressBar) -> None:
    """Goes through the pipeline once; the rate that it shows includes the model's own work."""
    start = time.perf_counter()
    seen, loss_sum, note = 0, 0.0, ""
    for images, labels in batches:
        loss_sum += model.step(images, labels) * len(labels)
        seen += len(labels)
        note = f"loss {loss_sum / seen:.4f}  {seen / (time.perf_counter() - start):9,.0f} elements/s"
        bar.update(seen, note)
    bar.finish(seen, note)


def report(model: SoftmaxRegression, pixels: Pixels, labels: Labels) -> float:
    """Prints how the model does on images that it has not seen, with some of its mistakes, and returns the accuracy."""
    predicted = model.predict(scale(pixels))
    accuracy = float((predicted == labels).mean())
    print(f"\ntest accuracy {accuracy:.4f} ({(predicted == labels).sum()} of {len(labels)} images)")
    mistakes = np.flatnonzero(predicted != labels)[:4]
    if len(mistakes):
        print("\nsome that it got wrong:\n")
        print(draw(pixels[mistakes], [f"{labels[i]}, read as {predicted[i]}" for i in mistakes]))
    return accuracy


def run(folder: Path, epochs: int) -> float:
    """The whole demo with its files in `folder`; returns the accuracy on the test images."""
    pixels, labels = load_digits()
    testing = is_test_row(len(labels))
    total = int((~testing).sum())
    print(f"{len(labels):,} handwritten digits of 8 x 8 pixels: {total:,} to learn from, {testing.sum()} to test with")

    shards = write_shards(folder, pixels[~testing], labels[~testing])
    print(f"{len(shards)} TFRecord files, {sum(path.stat().st_size for path in shards):,} bytes, in {folder}\n")

    train = build_pipeline(folder)
    model = SoftmaxRegression()
    for epoch in range(1, epochs + 1):
        # A Dataset can be iterated any number of times; every time is an epoch.
        train_epoch(model, train, ProgressBar(f"epoch {epoch:{len(str(epochs))}d}/{epochs}", total, sys.stdout))

    accuracy = report(model, pixels[testing], labels[testing])
    print("\nthe pipeline:\n")
    print(train.explain())
    return accuracy


def positive(text: str) -> int:
    """An argument that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; the exit status is 1 if the model did not learn what it should."""
    parser = argparse.ArgumentParser(description="Train softmax regression on handwritten digits from TFRecord files.")
    parser.add_argument("--epochs", type=positive, default=15, help="how often to go through the data (default: 15)")
    parser.add_argument("--data-dir", type=Path, help="where to leave the TFRecord files (default: nowhere)")
    options = parser.parse_args(arguments)

    with contextlib.ExitStack() as stack:
        folder = options.data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="digits-")))
        folder.mkdir(parents=True, exist_ok=True)
        accuracy = run(folder, options.epochs)
    if accuracy < ACCURACY_MIN:
        print(f"test accuracy must be at least {ACCURACY_MIN}, got {accuracy:.4f}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Data and small steps that several workloads share: Examples in TFRecord files, their reading by hand, photos.

A workload's own file says what is measured. What is here is either made before, or plain Python for the floor.
"""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from harness import digests

PIXELS = 28 * 28
"""Bytes of an image of 28x28 pixels, as in MNIST."""


def write_image_examples(path: Path, count: int, compression: str = "") -> None:
    """Examples of an image of 28x28 bytes and a label. Four in five bytes are 0, so that they can be compressed."""
    from dataset import io

    rng = np.random.default_rng(0)
    with io.TFRecordWriter(path, compression) as writer:
        for start in range(0, count, 1000):
            rows = min(1000, count - start)
            images = rng.integers(0, 256, (rows, PIXELS), np.uint8)
            images[rng.random(images.shape) > 0.19] = 0
            labels = rng.integers(0, 10, rows)
            for image, label in zip(images, labels, strict=True):
                writer.write(io.encode_example({"image": image.tobytes(), "label": label}))


def example_class() -> Any:
    """The protobuf message ``tf.train.Example``, for those who parse records by hand."""
    from dataset.io import Example

    return Example


def read_records(path: Path, compression: str = "") -> Iterator[bytes]:
    """The records of a TFRecord file by hand, both checksums verified."""
    from crc32c import crc32c

    def masked(data: bytes) -> int:
        crc = crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    header, footer = struct.Struct("<QI"), struct.Struct("<I")
    with gzip.open(path) if compression else path.open("rb", buffering=1 << 18) as file:
        while head := file.read(12):
            length, length_crc = header.unpack(head)
            if masked(head[:8]) != length_crc:
                raise ValueError("the checksum of a length is wrong")
            data = file.read(length)
            (data_crc,) = footer.unpack(file.read(4))
            if masked(data) != data_crc:
                raise ValueError("the checksum of a record is wrong")
            yield data


def shuffled(elements: Iterable[Any], size: int) -> Iterator[Any]:
    """Each element in the place of a random one of ``size`` that are held: a shuffle buffer by hand."""
    elements = iter(elements)
    buffer = list(islice(elements, size))
    for element in elements:
        slot = int(random.random() * size)
        yield buffer[slot]
        buffer[slot] = element
    random.shuffle(buffer)
    yield from buffer


def batches_of(elements: Iterable[Any], size: int) -> Iterator[list[Any]]:
    elements = iter(elements)
    while batch := list(islice(elements, size)):
        yield batch


def objects(values: list[Any]) -> np.ndarray:
    """An array of Python objects, of one dimension whatever they are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def chunks_of(path: Path) -> Iterator[memoryview]:
    """All bytes of a file, read 1 MiB at a time into the same memory."""
    buffer = memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(buffer):
            yield buffer[:size]


def read_through(path: Path) -> None:
    """Only read: what the page cache gives."""
    for _ in chunks_of(path):
        pass


def checksum_of(path: Path) -> int:
    """One CRC32C of all bytes: what no reader that verifies records gets around."""
    from crc32c import crc32c

    crc = 0
    for chunk in chunks_of(path):
        crc = crc32c(chunk, crc)
    return crc


def of_images_and_labels(batch: Any) -> int:
    """The sum of the CRCs of each image together with its label, of batches as tuples or dicts."""
    images, labels = (batch["image"], batch["label"]) if isinstance(batch, dict) else batch
    pixels = np.asarray(images, np.uint8).reshape(-1, PIXELS)
    numbers = np.asarray(labels, "<i8").reshape(-1)
    return sum(zlib.crc32(number.tobytes(), zlib.crc32(row)) for row, number in zip(pixels, numbers, strict=True))


def photo(seed: int) -> bytes:
    """A JPEG of 400x300 pixels that compresses like a photo: smooth colours, edges, a little noise."""
    import simplejpeg

    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:300, 0:400] / 400
    waves = [np.sin(rng.uniform(2, 12) * x + rng.uniform(2, 12) * y + rng.uniform(0, 6)) for _ in range(3)]
    edges = (x * rng.uniform(0.5, 2) + y > rng.uniform(0.3, 1.5)) * 40
    pixels = 120 + 70 * np.stack(waves, -1) + edges[..., np.newaxis] + rng.normal(0, 6, (300, 400, 3))
    return simplejpeg.encode_jpeg(pixels.clip(0, 255).astype(np.uint8), quality=90, colorsubsampling="420")


def start_ray() -> Any:
    """The module ``ray.data``, with Ray started on two cores, once in a process and without its messages."""
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
    return ray.data


def cache_of_huggingface(folder: Path) -> str:
    """A folder for the Arrow files that Hugging Face datasets makes once, and reads from then on."""
    cache = folder / "huggingface"
    cache.mkdir(exist_ok=True)
    return str(cache)


TOKEN_LISTS = 200_000


def make_token_lists(folder: Path, scale: float) -> None:
    """Write Examples with token ids, in lengths like those of sentences: mostly short, some long. No token is 0."""
    from dataset import io

    rng, count = np.random.default_rng(0), int(TOKEN_LISTS * scale)
    lengths = np.clip(rng.lognormal(3.3, 0.8, count), 1, 512).astype(np.int64)
    with io.TFRecordWriter(folder / "data.tfrecord") as writer:
        for length in lengths.tolist():
            writer.write(io.encode_example({"ids": rng.integers(1, 32_000, length), "label": length % 2}))
    (folder / "count").write_text(str(count))


def digest_of_tokens(batch: Any) -> int:
    """Return a digest of the tokens without the padding, which does not depend on how the lists are batched."""
    rows = np.asarray(batch[0], np.int64)
    return digests.of_texts(row[:length].tobytes() for row, length in zip(rows, (rows != 0).sum(1), strict=True))

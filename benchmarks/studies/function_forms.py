"""Functions that parse an MNIST Example, in the forms in which people write the same work (functions.py).

They use ``io`` of this module, in the place of which the plain loops put protobuf and NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dataset import io

FEATURES = {"image": io.FixedLenFeature((), bytes), "label": io.FixedLenFeature((), np.int64)}
SCALE = np.float32(255)


def flat(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    image = io.decode_raw(example["image"], np.uint8)
    return image.reshape(28, 28).astype(np.float32) / SCALE, example["label"]


def from_buffer(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    image = np.frombuffer(example["image"], np.uint8).reshape(28, 28)
    return image.astype(np.float32) / SCALE, example["label"]


def _scaled(image: Any) -> Any:
    return image.reshape(28, 28).astype(np.float32) / SCALE


def with_helper(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    return _scaled(io.decode_raw(example["image"], np.uint8)), example["label"]


def mean_and_std(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    image = io.decode_raw(example["image"], np.uint8).astype(np.float32)
    return (image - image.mean()) / (image.std() + 1e-6), example["label"]


def dict_out(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    example["pixels"] = io.decode_raw(example["image"], np.uint8).astype(np.float32) / SCALE
    del example["image"]
    return example


def one_hot(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    image = io.decode_raw(example["image"], np.uint8).astype("float32")
    return image / 255, np.eye(10, dtype="float32")[example["label"]]


def flip(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    image = io.decode_raw(example["image"], np.uint8).reshape(28, 28)
    if example["label"] % 2:
        image = image[:, ::-1]
    return image.astype(np.float32) / SCALE, example["label"]


@dataclass(frozen=True)
class Normalize:
    mean: float = 0.1307
    std: float = 0.3081

    def __call__(self, record: bytes) -> Any:
        example = io.parse_single_example(record, FEATURES)
        image = np.frombuffer(example["image"], dtype=np.uint8).astype(np.float32) / SCALE
        return (image - self.mean) / self.std, example["label"]


def in_dict(record: bytes, key: str) -> Any:
    example = io.parse_single_example(record, FEATURES)
    return {key: np.frombuffer(example["image"], np.uint8).reshape((1, 28, 28)), "target": example["label"]}


def _cropped(margin: int) -> Callable[[bytes], Any]:
    def crop(record: bytes) -> Any:
        example = io.parse_single_example(record, FEATURES)
        image = np.frombuffer(example["image"], np.uint8).reshape(28, 28)
        return image[margin:-margin, margin:-margin].astype(np.float32), example["label"]

    return crop


def brightness(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    image = np.frombuffer(example["image"], np.uint8).astype(np.float32)
    return {"image": np.clip(image * 1.2 - 10, 0, 255), "brightest": image.max(), "label": int(example["label"])}


def padded(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    image = np.pad(io.decode_raw(example["image"], np.uint8).reshape(28, 28), 2)
    label = np.zeros(10, np.float32)
    label[example["label"]] = 1.0
    return image, label


def checked(record: bytes) -> Any:
    example = io.parse_single_example(record, FEATURES)
    if len(example["image"]) != 784:
        raise ValueError(f"an image of {len(example['image'])} bytes")
    pixels = np.frombuffer(example["image"], np.uint8)
    return pixels.reshape(28, 28).T.astype(np.float32) * (1.0 / 255.0), example["label"] >= 5


FORMS: dict[str, Callable[[bytes], Any]] = {
    "flat": flat,
    "frombuffer": from_buffer,
    "helper": with_helper,
    "mean and std": mean_and_std,
    "dict out": dict_out,
    "one-hot": one_hot,
    "flip if odd": flip,
    "callable object": Normalize(),
    "partial": functools.partial(in_dict, key="pixels"),
    "closure": _cropped(2),
    "clip and max": brightness,
    "pad": padded,
    "check, transpose": checked,
}

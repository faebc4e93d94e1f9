"""Plans of ``from_image_folder``: the images in a folder, each labeled with the class that its subfolder names.

It consists of slices of the file names, a shuffle of them if requested, and a map that reads and decodes. The files are
listed by image/folder.py when the plan is created.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from dataset.io.files.opening import local_folder, path_string, read_file
from dataset.io.image.codecs import decode_image
from dataset.io.image.folder import image_folder_classes, images_below
from dataset.io.image.resize import resize
from dataset.ops.map import Map
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.ops.sources.tensor_slices import TensorSlices
from dataset.plan.checks import require_bool, require_int, require_one_of
from dataset.plan.node import Node
from dataset.plan.spec import TensorSpec
from dataset.plan.traits import NO_USER_CODE

OP = "from_image_folder"

_SEPARATORS = {"/", os.sep}


class ReadImage:
    """Map function that reads the image with a given file name. A label, if any, is passed through.

    It refuses files outside the folder, because file names may come from a saved state.

    Args:
        folder: the folder of the files.
        channels: as in ``io.decode_image``.
        size: the new height and width, or None to keep the size.
        interpolation: as ``method`` of ``io.resize``.
        decode: whether to decode the file; if False, its bytes are returned.
        labeled: whether an element has a label.
    """

    def __init__(
        self,
        folder: str,
        channels: int,
        size: tuple[int, int] | None,
        interpolation: str,
        *,
        decode: bool,
        labeled: bool,
    ) -> None:
        self.folder = folder
        self.channels = channels
        self.size = size
        self.interpolation = interpolation
        self.decode = decode
        image = self._image_spec()
        self.element_spec = (image, TensorSpec((), np.int64)) if labeled else image

    def _image_spec(self) -> TensorSpec:
        if not self.decode:
            return TensorSpec((), bytes)
        kept = self.size is None or self.interpolation == "nearest"
        shape = (*(self.size or (None, None)), self.channels or None)
        return TensorSpec(shape, np.uint8 if kept else np.float32)

    def __call__(self, path: bytes, *label: Any) -> Any:
        image = self._image(path_string(path))
        return (image, *label) if label else image

    def _image(self, path: str) -> Any:
        inside = path.removeprefix(self.folder)
        is_below = inside[:1] in _SEPARATORS or self.folder[-1:] in _SEPARATORS
        if not (path.startswith(self.folder) and is_below) or ".." in re.split(r"[/\\]", inside):
            raise ValueError(f"{OP}(): {path!r} is not a file of the folder {self.folder!r}")
        content = read_file(path)
        if not self.decode:
            return content
        try:
            pixels = decode_image(content, self.channels, expand_animations=False)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        return pixels if self.size is None else resize(pixels, self.size, self.interpolation)


setattr(ReadImage, NO_USER_CODE, True)


def image_folder_plans(
    path: Any,
    labels: Any,
    class_names: Any,
    channels: int,
    image_size: Any,
    interpolation: str,
    decode: bool,
    extensions: Any,
    shuffle: bool,
    seed: int | None,
    num_parallel_calls: int | None,
    deterministic: bool | None,
    validation_split: Any,
    subset: Any,
    name: str | None,
) -> list[Node]:
    """Return the plans of ``Dataset.from_image_folder``, which documents the arguments: two for ``subset="both"``."""
    folder = local_folder(OP, path)
    endings = _endings(extensions)
    size = _size(image_size, interpolation)
    if require_int(OP, "channels", channels, minimum=0, maximum=4) == 2:
        raise ValueError(f"{OP}(): channels must be 0, 1, 3 or 4, got 2")
    reader = ReadImage(
        folder, channels, size, interpolation, decode=require_bool(OP, "decode", decode), labeled=labels is not None
    )
    _check_split(validation_split, subset, seed)
    require_bool(OP, "shuffle", shuffle)

    def plan(tensors: Any, *, shuffled: bool) -> Node:
        source: Node = TensorSlices(tensors, name=name)
        if shuffled:
            source = Shuffle(source, source.cardinality(), seed, name=name)
        return Map(source, reader, num_parallel_calls=num_parallel_calls, deterministic=deterministic, name=name)

    tensors = _tensors(folder, labels, class_names, endings)
    if subset is None:
        return [plan(tensors, shuffled=shuffle)]
    training, validation = _split(tensors, validation_split, seed)
    if subset == "both":  # as in Keras, only the training part is shuffled
        return [plan(training, shuffled=shuffle), plan(validation, shuffled=False)]
    return [plan(training if subset == "training" else validation, shuffled=shuffle)]


def _check_split(validation_split: Any, subset: Any, seed: Any) -> None:
    if (validation_split is None) != (subset is None):
        raise ValueError(
            f"{OP}(): give validation_split and subset, or neither, got {validation_split!r} and {subset!r}"
        )
    if subset is None:
        return
    if not isinstance(validation_split, float | np.floating) or not 0 < validation_split < 1:
        raise ValueError(f"{OP}(): validation_split must be a fraction between 0 and 1, got {validation_split!r}")
    require_one_of(OP, "subset", subset, ("training", "validation", "both"))
    if seed is None:
        raise ValueError(f"{OP}(): validation_split needs a seed, the same one for both subsets, which then differ")
    require_int(OP, "seed", seed, minimum=0, maximum=2**32 - 1)


def _split(tensors: Any, validation_split: float, seed: Any) -> tuple[Any, Any]:
    """Return the training and the validation part of arrays. For the same seed, they are those of Keras."""
    columns = tensors if isinstance(tensors, tuple) else (tensors,)
    count = len(columns[0])
    order = np.random.RandomState(seed).permutation(count)  # as Keras shuffles file names
    first = count - int(validation_split * count)
    if not 0 < first < count:
        raise ValueError(f"{OP}(): {count} images are not enough for validation_split={validation_split}")
    parts = [tuple(column[np.sort(places)] for column in columns) for places in (order[:first], order[first:])]
    training, validation = (part if isinstance(tensors, tuple) else part[0] for part in parts)
    return training, validation


def _endings(extensions: Any) -> tuple[str, ...]:
    endings = [extensions] if isinstance(extensions, str) else extensions
    if not isinstance(endings, Sequence) or not endings or not all(isinstance(ending, str) for ending in endings):
        raise TypeError(
            f'{OP}(): extensions must be endings of file names, such as (".jpg", ".png"), got {extensions!r}'
        )
    return tuple(endings)


def _size(image_size: Any, interpolation: str) -> tuple[int, int] | None:
    if image_size is None:
        return None
    if not isinstance(image_size, tuple | list) or len(image_size) != 2:
        raise TypeError(f"{OP}(): image_size must be (height, width), got {image_size!r}")
    height, width = (require_int(OP, "image_size", side, minimum=1) for side in image_size)
    resize(np.zeros((1, 1, 1), np.uint8), (1, 1), interpolation)  # raises for an unknown method
    return height, width


def _tensors(folder: str, labels: Any, class_names: Any, endings: tuple[str, ...]) -> Any:
    """Return the names of the files, and their labels if there are any."""
    if isinstance(labels, str):
        if labels != "inferred":
            raise ValueError(f'{OP}(): labels must be "inferred", None or a list of ints, got {labels!r}')
        return _inferred(folder, class_names, endings)
    if class_names is not None:
        raise ValueError(f'{OP}(): class_names requires labels="inferred"')
    names = _names(images_below(folder, endings), folder, endings)
    return names if labels is None else (names, _given(labels, len(names)))


def _inferred(folder: str, class_names: Any, endings: tuple[str, ...]) -> Any:
    classes = _classes(folder, class_names)
    found = [images_below(f"{folder}/{name}", endings) for name in classes]
    if not classes:
        raise FileNotFoundError(
            f"{OP}(): {folder!r} has no subfolders to infer classes from; for images without classes pass labels=None"
        )
    names = _names([path for paths in found for path in paths], folder, endings)
    return names, np.repeat(np.arange(len(classes)), [len(paths) for paths in found])


def _classes(folder: str, class_names: Any) -> list[str]:
    there = image_folder_classes(folder)
    if class_names is None:
        return there
    given = list(class_names)
    if sorted(given, key=str) != there:
        raise ValueError(
            f"{OP}(): class_names must be the names of the subfolders of {folder!r}, {there}, in any order, got {given}"
        )
    return given


def _names(paths: list[str], folder: str, endings: tuple[str, ...]) -> Any:
    if not paths:
        raise FileNotFoundError(f"{OP}(): found no images in {folder!r}; their names must end with one of {endings}")
    return np.array(list(map(os.fsencode, paths)), object)


def _given(labels: Any, count: int) -> Any:
    array = np.asarray(labels)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{OP}(): labels must be one int for each of the {count} images, in the order of their sorted paths, got "
            f"{labels!r:.200}"
        )
    return array.astype(np.int64)

"""Tests of from_image_folder against keras.utils.image_dataset_from_directory: files, order, labels, pixels."""

import numpy as np
import pytest
from compare import theirs

from dataset import Dataset, io

pytest.importorskip("simplejpeg")


def in_keras(lib, folder, **arguments):
    return lib.tf.keras.utils.image_dataset_from_directory(folder, batch_size=None, verbose=False, **arguments)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("b/2.png", "b/10.png", "b/x/1.jpg", "a/9.bmp.png", "a/.hidden.png", "c d/e.jpeg", "a/B.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (9, 7, 3), np.uint8)
        path.write_bytes(io.encode_jpeg(pixels) if path.suffix in {".jpg", ".jpeg"} else io.encode_png(pixels))
    (tmp_path / "a" / "notes.txt").write_text("")
    return tmp_path


@pytest.mark.parametrize(("color_mode", "channels"), [("rgb", 3), ("grayscale", 1)])
@pytest.mark.parametrize("class_names", [None, ["c d", "a", "b"]])
def test_images_and_labels_are_those_of_keras(folder, color_mode, channels, class_names):
    def keras(lib):
        arguments = {"class_names": class_names, "color_mode": color_mode, "image_size": (5, 6), "shuffle": False}
        found = in_keras(lib, folder, **arguments)
        return found.class_names, found.file_paths, list(found.as_numpy_iterator())

    pixels = [io.decode_image(path.read_bytes()) for path in sorted(folder.rglob("*.*")) if path.suffix != ".txt"]
    their_names, paths, elements = theirs(keras, pixels)
    ours = Dataset.from_image_folder(folder, class_names=class_names, channels=channels, image_size=(5, 6))
    if class_names is None:
        assert their_names == io.image_folder_classes(folder)
    # Keras also lists hidden files.
    pairs = [element for element, path in zip(elements, paths, strict=True) if "/." not in path]
    assert len(pairs) == len(ours)
    for (image, label), (expected, expected_label) in zip(ours, pairs, strict=True):
        np.testing.assert_allclose(image, expected, atol=1e-3)
        assert label == expected_label


@pytest.mark.parametrize("seed", [0, 1, 123])
@pytest.mark.parametrize("labels", ["inferred", None])
@pytest.mark.parametrize("split", [0.2, 0.34, 0.5])
def test_the_subsets_are_those_of_keras(tmp_path, split, labels, seed):
    for number in range(17):
        path = tmp_path / f"{number % 3}" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(io.encode_png(np.full((2, 2, 1), number, np.uint8)))

    def keras(lib, subset):
        arguments = {"labels": labels, "label_mode": "int" if labels else None, "color_mode": "grayscale", "seed": seed}
        return in_keras(lib, tmp_path, validation_split=split, subset=subset, **arguments)

    def ours(subset):
        arguments = {"channels": 1, "validation_split": split, "subset": subset, "seed": seed, "shuffle": True}
        return Dataset.from_image_folder(tmp_path, labels, **arguments)

    def found(dataset):
        pairs = [element if labels else (element, 0) for element in dataset]
        return sorted((int(np.ravel(image)[0]), int(label)) for image, label in pairs)

    both = [found(dataset) for dataset in ours("both")]
    assert both == theirs(lambda lib: [found(dataset.as_numpy_iterator()) for dataset in keras(lib, "both")])
    for subset, expected in zip(("training", "validation"), both, strict=True):
        assert found(ours(subset)) == expected
        assert theirs(lambda lib, subset=subset: found(keras(lib, subset).as_numpy_iterator())) == expected

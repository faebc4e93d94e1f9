"""Tests of from_image_folder: which files are found, their labels, and the treatment of files that are not images."""

from __future__ import annotations

import os

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, TensorSpec, io
from dataset.testing import check_operator, outcomes


@pytest.fixture
def folder(tmp_path):
    """Two classes: two images of cats and three of dogs, one of them in a subfolder."""
    grays = {"cat/b.png": 11, "cat/a.PNG": 10, "dog/c.jpg": 20, "dog/more/d.bmp.png": 21, "dog/z.jpeg": 22}
    for name, gray in grays.items():
        save(tmp_path / name, gray)
    return tmp_path


def save(path, gray, size=(4, 6)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((*size, 3), gray, np.uint8)
    path.write_bytes(io.encode_png(pixels) if path.suffix.lower() == ".png" else io.encode_jpeg(pixels, 100))


def grays(dataset):
    return [(int(image[0, 0, 0]), int(label)) for image, label in dataset]


IN_ORDER = [(10, 0), (11, 0), (20, 1), (21, 1), (22, 1)]


def test_images_come_in_the_order_of_their_paths_with_the_class_of_their_folder(folder):
    dataset = Dataset.from_image_folder(folder)
    assert grays(dataset) == IN_ORDER
    assert len(dataset) == 5
    assert dataset.element_spec == (TensorSpec((None, None, 3), np.uint8), TensorSpec((), np.int64))
    assert dataset[3][1] == 1
    for calls in (2, AUTOTUNE):
        assert grays(Dataset.from_image_folder(folder, num_parallel_calls=calls)) == IN_ORDER


def test_images_become_batches_when_they_are_resized(folder):
    (images, labels), _ = Dataset.from_image_folder(folder, image_size=(3, 2)).batch(4)
    assert (images.shape, images.dtype) == ((4, 3, 2, 3), np.float32)
    assert labels.tolist() == [0, 0, 1, 1]
    nearest = Dataset.from_image_folder(folder, image_size=(3, 2), interpolation="nearest", channels=1)
    assert nearest.element_spec[0] == TensorSpec((3, 2, 1), np.uint8)
    check_operator(lambda: nearest, positions=2)


def test_files_can_be_had_as_they_are(folder):
    dataset = Dataset.from_image_folder(folder, decode=False)
    assert dataset.element_spec == (TensorSpec((), bytes), TensorSpec((), np.int64))
    assert next(iter(dataset)) == ((folder / "cat/a.PNG").read_bytes(), 0)


def test_labels_can_be_left_out_or_given(folder):
    save(folder / "0.png", 1)
    images = Dataset.from_image_folder(folder, labels=None)
    assert [int(image[0, 0, 0]) for image in images] == [1, 10, 11, 20, 21, 22]
    given = Dataset.from_image_folder(folder, labels=range(6))
    assert grays(given) == [(1, 0), (10, 1), (11, 2), (20, 3), (21, 4), (22, 5)]
    for labels in ([1, 2], [0.5] * 6, [[1]] * 6):
        with pytest.raises(ValueError, match="labels must be one int for each of the 6 images"):
            Dataset.from_image_folder(folder, labels=labels)
    with pytest.raises(ValueError, match='labels must be "inferred"'):
        Dataset.from_image_folder(folder, labels="no")


def test_class_names_that_are_not_those_of_the_folders_are_refused(folder):
    for names in (["dog"], ["dog", "cat", "bird"], ["dog", "dog"]):
        with pytest.raises(ValueError, match=r"\['cat', 'dog'\], in any order, got"):
            Dataset.from_image_folder(folder, class_names=names)
    with pytest.raises(ValueError, match="class_names requires labels="):
        Dataset.from_image_folder(folder, labels=None, class_names=["dog", "cat"])


def test_shuffling_orders_files_anew_in_each_epoch(folder):
    dataset = Dataset.from_image_folder(folder, shuffle=True, seed=3)
    epochs = [tuple(grays(dataset)) for _ in range(6)]
    assert len(set(epochs)) > 1
    assert {tuple(sorted(epoch)) for epoch in epochs} == {tuple(IN_ORDER)}
    assert grays(Dataset.from_image_folder(folder, shuffle=True, seed=3)) == list(epochs[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"validation_split": 0.2}, "give validation_split and subset, or neither"),
        ({"subset": "both"}, "give validation_split and subset, or neither"),
        ({"validation_split": 0.2, "subset": "training"}, "needs a seed"),
        ({"validation_split": 0.2, "subset": "test", "seed": 1}, "subset must be one of"),
        ({"validation_split": 1, "subset": "both", "seed": 1}, "between 0 and 1"),
        ({"validation_split": 0.1, "subset": "both", "seed": 1}, "5 images are not enough"),
        ({"validation_split": 0.4, "subset": "both", "seed": -1}, "seed must be at least 0"),
    ],
)
def test_an_unclear_division_is_refused(folder, arguments, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_image_folder(folder, **arguments)


def test_extensions_say_what_an_image_is(folder):
    assert grays(Dataset.from_image_folder(folder, extensions=".JPG")) == [(20, 1)]
    assert grays(Dataset.from_image_folder(folder, extensions=[".jpeg", ".bmp"])) == [(22, 1)]
    for extensions in ([], 3, [b".png"]):
        with pytest.raises(TypeError, match="endings of file names"):
            Dataset.from_image_folder(folder, extensions=extensions)


def test_an_empty_class_keeps_its_number(folder):
    (folder / "bird").mkdir()
    assert grays(Dataset.from_image_folder(folder)) == [(gray, label + 1) for gray, label in IN_ORDER]


def test_a_folder_without_images_or_classes_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no subfolders to infer classes from.*labels=None"):
        Dataset.from_image_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match="no images in"):
        Dataset.from_image_folder(tmp_path, labels=None)
    (tmp_path / "class").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no images in.*\.bmp"):
        Dataset.from_image_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Dataset.from_image_folder(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        Dataset.from_image_folder(tmp_path / "file")


def test_links_are_followed_and_loops_end(folder):
    (folder / "dog/up").symlink_to(folder)
    (folder / "dog/self").symlink_to(folder / "dog")
    (folder / "dog/a loop.png").symlink_to("a loop.png")
    save(folder.parent / f"{folder.name}-elsewhere/e.png", 30)
    (folder / "elk").symlink_to(folder.parent / f"{folder.name}-elsewhere")
    found = outcomes(iter(Dataset.from_image_folder(folder)))
    (error,) = [one for one in found if isinstance(one, OSError)]
    assert "a loop.png" in str(error)
    images = grays(one for one in found if one is not error)
    assert [label for _, label in images[:2]] == [0, 0]
    assert images[-1] == (30, 2)


def test_a_file_that_is_no_image_fails_at_its_place_and_is_named(folder):
    (folder / "cat/aa.png").write_bytes(b"nothing like an image")
    found = check_operator(lambda: Dataset.from_image_folder(folder))
    assert [isinstance(one, ValueError) for one in found] == [False, True, False, False, False, False]
    assert str(found[1]).startswith(f"{folder}/cat/aa.png: ")
    assert any("in map(ReadImage) from test_folder_source.py" in note for note in found[1].__notes__)
    assert grays(Dataset.from_image_folder(folder).ignore_errors()) == IN_ORDER


def test_a_pipe_is_not_waited_for_and_a_name_that_is_no_utf8_is_read(folder):
    os.mkfifo(folder / "cat/pipe.png")
    save(folder / os.fsdecode(b"dog/\xff.png"), 50)
    assert (50, 1) in grays(Dataset.from_image_folder(folder))


def test_bad_arguments_are_said_at_the_call(folder):
    for arguments in ({"channels": 2}, {"channels": 5}, {"image_size": (0, 3)}, {"num_parallel_calls": 0}):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            Dataset.from_image_folder(folder, **arguments)
    for arguments in ({"image_size": 3}, {"shuffle": 1}, {"decode": "no"}):
        with pytest.raises(TypeError, match=next(iter(arguments))):
            Dataset.from_image_folder(folder, **arguments)
    with pytest.raises(ValueError, match="magic"):
        Dataset.from_image_folder(folder, image_size=(3, 3), interpolation="magic")


def test_a_folder_on_another_machine_is_refused():
    with pytest.raises(ValueError, match=r"from_image_folder\(\): the path must be a local directory"):
        Dataset.from_image_folder("s3://bucket/images")


def test_a_forged_state_names_no_file_of_another_folder(tmp_path):
    """Prefetching operators may hold names by value."""
    for folder in ("images", "images-secret"):
        (tmp_path / folder).mkdir()
        for name in "abcd":
            (tmp_path / folder / f"{name}.png").write_bytes(name.encode())
    reader = Dataset.from_image_folder(tmp_path / "images", labels=None, decode=False).plan.function
    assert reader(os.fsencode(tmp_path / "images" / "a.png")) == b"a"
    for name in ("images-secret/a.png", "images/../images-secret/a.png", "other"):
        with pytest.raises(ValueError, match="is not a file of the folder"):
            reader(os.fsencode(f"{tmp_path}/{name}"))
    slashed = Dataset.from_image_folder(f"{tmp_path}/images/", labels=None, decode=False)
    assert sorted(slashed) == [b"a", b"b", b"c", b"d"]

"""Tests of ``head``: records as lines of JSON, and images."""

import json
import sys

import numpy as np
import pytest

from dataset import io
from dataset.io.image import image_libraries


def lines(found):
    status, out, err = found
    assert (status, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def test_each_record_is_an_object_of_its_features(run, digits):
    found = lines(run("head", "-n", 2, digits))
    assert found == [
        {"label": 0, "pixels": {"bytes": 4, "start": "00010203"}, "weights": [0.5, 0.0]},
        {"label": 1, "note": "number 1", "pixels": {"bytes": 4, "start": "01020304"}, "weights": [0.5, 1.0]},
    ]
    assert len(lines(run("head", digits))) == 5
    assert len(lines(run("head", "-n", 1000, digits))) == 20


def test_long_lists_and_texts_are_shortened_unless_full(run, write):
    record = {"numbers": list(range(100)), "text": "ab" * 500, "long": "ä" * 100_000}
    path = write([record])
    (short,) = lines(run("head", path))
    assert short["numbers"] == {"values": 100, "first": [0, 1, 2, 3, 4, 5, 6, 7]}
    assert short["text"] == {"text": "ab" * 100 + "...", "bytes": 1000}
    assert lines(run("head", "--full", path)) == [record]
    (found,) = lines(run("head", "--full", write([{"x": b"a" * 100_000 + b"\xff\x00"}])))
    assert found["x"] == {"bytes": 100_002, "start": "61" * 8}


def test_sequence_examples_have_context_and_lists_and_other_records_bytes(run, sequences, write):
    assert lines(run("head", "-n", 2, sequences)) == [
        {"context": {"id": 0}, "feature_lists": {"tokens": [[0, 0]]}},
        {"context": {"id": 1}, "feature_lists": {"tokens": [[0, 0], [1, 1]]}},
    ]
    others = [{}, {"bytes": 10, "start": "ff" * 8}, "some text"]
    assert lines(run("head", write([b"", b"\xff" * 10, b"some text"]))) == others


def test_floats_are_as_short_as_they_can_be_and_json_always(run, write):
    values = np.array([0.1, np.nan, np.inf, -np.inf, 1e30], np.float32)
    assert lines(run("head", write([{"x": values}]))) == [{"x": [0.1, "NaN", "Infinity", "-Infinity", 1e30]}]


def test_the_json_document_always_has_lists(run, digits):
    document = run.json("head", "-n", 1, digits)
    (record,) = document["files"][0]["records"]
    assert (record["record"], record["kind"]) == (0, "Example")
    assert record["features"]["label"] == [0]
    assert record["features"]["pixels"] == [{"bytes": 4, "start": "00010203"}]


def test_one_record_by_its_number(run, digits):
    assert [line["label"] for line in lines(run("head", "--record", 13, digits))] == [3]
    assert run.error("head", "--record", 20, digits) == f"{digits}: record 20 does not exist; the file has 20 records"


def test_several_files_are_told_apart_on_standard_error(run, digits, write):
    other = write([{"x": 1}])
    status, out, err = run("head", "-n", 1, digits, other)
    assert status == 0
    assert len([json.loads(line) for line in out.splitlines()]) == 2
    assert err == f"==> {digits} <==\n==> {other} <==\n"


def test_records_before_damage_are_shown(run, write):
    path = write([{"x": i} for i in range(4)])
    path.write_bytes(path.read_bytes()[:-3])
    status, out, err = run("head", path)
    assert status == 1
    assert [json.loads(line)["x"] for line in out.splitlines()] == [0, 1, 2]
    assert "record 3" in err


# Pictures.


@pytest.fixture
def pictures(write):
    pytest.importorskip("cv2")
    image = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    first = {"png": io.encode_png(image), "jpeg": io.encode_jpeg(image), "raw": image.tobytes(), "x": 1.5}
    gray_alpha = np.full((2, 2, 4), 9, np.uint8)
    numbers = image[..., 0].reshape(-1).tolist()
    return write([first, {"png": io.encode_png(gray_alpha), "numbers": numbers, "bad": b"\xff\xd8\xff"}])


def test_a_picture_is_written_as_a_png_file(run, pictures, tmp_path):
    output = tmp_path / "a.png"
    shown = lines(run("head", "-n", 1, pictures))[0]["png"]
    assert (shown["image"], shown["width"], shown["height"]) == ("png", 6, 4)
    status, out, err = run("head", pictures, "--image", "png", "--output", output)
    assert (status, out) == (0, "")
    assert "6 x 4 pixels" in err
    assert np.array_equal(io.decode_png(output.read_bytes()), np.arange(72, dtype=np.uint8).reshape(4, 6, 3))
    assert run("head", pictures, "--image", "jpeg", "--output", output, "--force")[0] == 0
    assert io.decode_png(output.read_bytes()).shape == (4, 6, 3)


def test_raw_pixels_need_their_shape(run, pictures, tmp_path):
    output = tmp_path / "a.png"
    assert run("head", pictures, "--image", "raw", "--output", output, "--shape", 4, 6, 3)[0] == 0
    assert np.array_equal(io.decode_png(output.read_bytes()).reshape(-1), np.arange(72))
    numbers = ["head", pictures, "--record", 1, "--image", "numbers", "--output", output, "--force"]
    assert run(*numbers, "--shape", 4, 6)[0] == 0
    assert io.decode_png(output.read_bytes()).shape == (4, 6, 1)
    assert "does not fit: 5 x 6 x 1 pixels need 30 bytes, got 24" in run.error(*numbers, "--shape", 5, 6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--image", "png"], "--image needs --output"),
        (["--output", "x.png"], "--output requires --image"),
        (["--image", "none", "--output", "x.png"], "feature 'none' does not exist; the features are: 'jpeg', 'png',"),
        (["--image", "x", "--output", "x.png"], "float values are not an image"),
        (["--image", "x", "--output", "x.png", "--shape", "1", "1"], "float values are not pixels"),
        (["--image", "raw", "--output", "x.png"], "pass --shape H W [C] if they are raw pixels"),
        (["--image", "raw", "--output", "x.png", "--shape", "4"], "--shape must be height, width"),
        (["--image", "raw", "--output", "x.png", "--shape", "4", "6", "2"], "--shape must be height, width"),
        (["--record", "1", "--image", "bad", "--output", "x.png"], "truncated or corrupt"),
        (["--image", "png", "--output", "x.png", "--record", "2"], "record 2 does not exist; the file has 2 records"),
        (["--image", "png", "--output", "x.png", "--json"], "--image cannot be combined with --json"),
        (["--image", "png", "--output", "no/where/x.png"], "cannot write"),
    ],
    ids=" ".join,
)
def test_features_that_are_not_pictures_and_wrong_options(run, pictures, words, message, monkeypatch):
    monkeypatch.chdir(pictures.parent)
    assert message in run.error("head", pictures, *words)
    assert [path.name for path in pictures.parent.iterdir()] == [pictures.name]


def test_a_missing_library_is_named(run, pictures, tmp_path, monkeypatch):
    image_libraries.library.cache_clear()
    monkeypatch.setitem(sys.modules, "cv2", None)
    try:
        message = run.error("head", pictures, "--image", "png", "--output", tmp_path / "a.png")
    finally:
        image_libraries.library.cache_clear()
    assert "dataset-combinators[images]" in message

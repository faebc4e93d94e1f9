"""Tests of from_huggingface: features, order, formats, images, transforms and streams against Hugging Face's values."""

from __future__ import annotations

import concurrent.futures
import copy
import datetime as dt
import io
import pickle
import threading
import unittest.mock

import datasets
import numpy as np
import PIL.Image
import pyarrow as pa
import pytest
import torch
from datasets import Features, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensorSpec, SpecError, TensorSpec
from dataset.io.arrow import numbered_rows
from dataset.plan.node import is_exact
from dataset.testing import check_operator
from dataset.testing.elements import assert_elements_equal, outcomes


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))


def elements(hf, **options):
    return list(Dataset.from_huggingface(hf, **options))


def plain(component):
    """Return a component in Hugging Face's Python format: numbers, text, and lists and dicts of those."""
    if isinstance(component, dict):
        return {key: plain(item) for key, item in component.items()}
    if isinstance(component, bytes):
        return component.decode()
    if isinstance(component, np.ndarray):
        return [plain(item) for item in component.tolist()]
    if hasattr(component, "to_list"):
        return [plain(item) for item in component.to_list()]
    return [plain(item) for item in component] if isinstance(component, list) else component


def on_disk(hf, folder, rows_per_chunk=1000):
    """Return the same dataset, memory-mapped from a file of several chunks."""
    path, table = str(folder / "hf.arrow"), hf.data.table.combine_chunks()
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows_per_chunk)
    found = datasets.Dataset.from_file(path)
    assert found.data.table.column(0).num_chunks == -(-len(hf) // rows_per_chunk)
    return found


@pytest.fixture
def numbered():
    """Return 30 rows that contain their number."""
    columns = {"i": range(30), "s": [f"row {i}" for i in range(30)], "l": [[i] * (i % 3) for i in range(30)]}
    return datasets.Dataset.from_dict({name: list(values) for name, values in columns.items()})


# Features.

SCALARS = {
    "int8": st.integers(-100, 100),
    "uint64": st.integers(0, 2**63 - 1),  # Hugging Face itself cannot convert larger numbers to Arrow
    "float32": st.integers(-8, 8).map(lambda x: x / 4),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": st.text(max_size=5),
    "large_string": st.text(max_size=5),
}


def features():
    scalars = st.sampled_from(sorted(SCALARS)).map(lambda name: (Value(name), SCALARS[name]))
    return st.one_of(
        scalars,
        scalars.map(lambda f: (datasets.List(f[0]), st.lists(f[1], max_size=3))),
        scalars.map(lambda f: (datasets.LargeList(f[0]), st.lists(f[1], max_size=3))),
        scalars.map(lambda f: (datasets.List(f[0], length=2), st.lists(f[1], min_size=2, max_size=2))),
        scalars.map(lambda f: (datasets.List(datasets.List(f[0])), st.lists(st.lists(f[1], max_size=2), max_size=2))),
        scalars.map(lambda f: ({"x": f[0], "y": datasets.List(f[0])}, _struct_of(f[1]))),
        st.just((datasets.ClassLabel(names=["u", "v"]), st.sampled_from([0, 1]))),
        st.just((datasets.Array2D((2, 1), "int16"), st.lists(_one_int(), min_size=2, max_size=2))),
        st.just((datasets.Array2D((None, 1), "int16"), st.lists(_one_int(), min_size=1, max_size=3))),
        st.just((datasets.Translation(["en", "de"]), st.fixed_dictionaries({"en": st.text(), "de": st.text()}))),
    )


def _one_int():
    return st.lists(st.integers(-9, 9), min_size=1, max_size=1)


def _struct_of(values):
    return st.fixed_dictionaries({"x": values, "y": st.lists(values, max_size=2)})


COLUMNS = features().flatmap(lambda f: st.tuples(st.just(f[0]), st.lists(f[1], min_size=1, max_size=8)))


@given(COLUMNS, st.randoms())
@settings(deadline=None)
def test_each_row_is_what_hugging_face_gives(column, draws):
    feature, values = column
    hf = datasets.Dataset.from_dict({"x": values}, features=Features({"x": feature}))
    order = [draws.randrange(len(hf)) for _ in range(draws.randint(1, 6))]
    for form in (hf, hf.select(order), hf.with_format("numpy"), hf.with_format("torch")):
        dataset = Dataset.from_huggingface(form)
        expected = [row["x"] for row in form.with_format(None)]
        assert len(dataset) == len(expected)
        assert [plain(row["x"]) for row in dataset] == expected
        assert [plain(dataset[i]["x"]) for i in range(-len(expected), 0)] == expected


@given(COLUMNS)
@settings(deadline=None, max_examples=30)
def test_a_stream_gives_the_same_elements_as_the_rows(column):
    feature, values = column
    hf = datasets.Dataset.from_dict({"x": values}, features=Features({"x": feature}))
    typed = datasets.IterableDataset.from_generator(lambda: iter(hf), features=hf.features)  # of Python's objects
    for stream in (hf.to_iterable_dataset(), typed):
        assert_elements_equal(elements(stream), elements(hf))


@pytest.mark.parametrize(
    ("feature", "value", "expected"),
    [
        (Value("binary"), b"a\0", b"a\0"),
        (Value("date32"), dt.date(2020, 1, 2), np.datetime64("2020-01-02", "D")),
        (datasets.ClassLabel(names=["u", "v"]), "v", np.int64(1)),
        (datasets.Json(), {"a": 1}, b'{"a":1}'),
        (datasets.Array3D((1, 2, 1), "float32"), [[[1], [2]]], np.array([[[1], [2]]], np.float32)),
    ],
)
def test_each_feature_has_its_component(feature, value, expected):
    hf = datasets.Dataset.from_dict({"x": [value]}, features=Features({"x": feature}))
    for form in (hf, hf.to_iterable_dataset()):
        assert_elements_equal(elements(form), [{"x": expected}])


def test_arrays_have_the_shape_of_their_feature():
    kinds = {"fixed": datasets.Array2D((2, 3), "float32"), "open": datasets.Array2D((None, 3), "int8")}
    rows = [{"fixed": np.full((2, 3), i), "open": np.full((i + 1, 3), i)} for i in range(3)]
    hf = datasets.Dataset.from_list([{**row, "s": row} for row in rows], features=Features({**kinds, "s": kinds}))
    specs = {"fixed": TensorSpec((2, 3), np.float32), "open": RaggedTensorSpec((None, 3), np.int8, 0)}
    assert Dataset.from_huggingface(hf).element_spec == {**specs, "s": specs}
    for row, element in zip(rows, Dataset.from_huggingface(hf), strict=True):
        for found in (element, element["s"]):
            assert all(np.array_equal(found[name], row[name]) for name in kinds)


def test_a_null_is_an_error_in_the_place_of_its_row():
    hf = datasets.Dataset.from_dict({"i": [1, None, 3, 4], "s": ["a", "b", None, "d"], "f": [None, 1.0, 2.0, 3.0]})
    for form in (hf, hf.to_iterable_dataset()):
        first, second, third, fourth = outcomes(iter(Dataset.from_huggingface(form)))
        assert np.isnan(first["f"])
        assert (first["i"], fourth["i"]) == (1, 4)
        assert "column 'i' contains a null, which the dtype of int64 cannot represent" in str(second)
        assert "column 's' contains a null" in str(third)
        assert any("from_huggingface" in note and "test_from_huggingface.py" in note for note in second.__notes__)
    check_operator(lambda: Dataset.from_huggingface(hf))
    with pytest.raises(ValueError, match=r"from_huggingface\(\): row 1: column 'i'"):
        _ = Dataset.from_huggingface(hf)[1]
    backwards = outcomes(iter(Dataset.from_huggingface(hf.select([3, 2, 1, 0]))))
    assert [getattr(row, "get", lambda key: None)("i") for row in backwards] == [4, None, None, 1]


def test_fill_null_replaces_every_null_of_its_column():
    hf = datasets.Dataset.from_dict({"i": [1, None], "s": [None, "b"], "d": [{"x": None}, {"x": 1}]})
    expected = [{"i": np.int64(1), "s": b"?", "d": {"x": np.int64(7)}}, {"i": np.int64(-1), "s": b"b", "d": {"x": 1}}]
    for form in (hf, hf.to_iterable_dataset()):
        assert elements(form, fill_null={"i": -1, "s": "?", "d.x": 7}) == expected
    with pytest.raises(ValueError, match=r"from_huggingface\(\): fill_null\['i'\] must be a value of int64, got 'x'"):
        Dataset.from_huggingface(hf, fill_null={"i": "x"})
    images = datasets.Dataset.from_dict({"image": [None]}, features=Features({"image": datasets.Image()}))
    for form in (images, images.to_iterable_dataset()):
        with pytest.raises(ValueError, match="decoded columns have no nulls to replace"):
            Dataset.from_huggingface(form, fill_null={"image": 0})


# Which rows and columns.


def test_columns_have_the_requested_order(numbered):
    for form in (numbered, numbered.to_iterable_dataset()):
        assert list(elements(form, columns=["s", "i"])[0]) == ["s", "i"]
        with pytest.raises(ValueError, match=r"from_huggingface\(\): the dataset has no column 'z'; the columns are"):
            Dataset.from_huggingface(form, columns=["z"])
        with pytest.raises(ValueError, match="each only once"):
            Dataset.from_huggingface(form, columns=["i", "i"])
    nested = datasets.Dataset.from_dict({"a": [{"x": 1, "y": 2}], "b": [3]})
    assert elements(nested, columns=["a.y", "b"]) == [{"a": {"y": 2}, "b": 3}]


def test_a_format_selects_columns_but_not_dtypes(numbered):
    chosen = numbered.with_format("torch", columns=["s", "i"])
    assert set(elements(chosen)[0]) == {"i", "s"}
    assert list(elements(chosen, columns=["l"])[0]) == ["l"]
    everything = numbered.with_format("numpy", columns=["i"], output_all_columns=True)
    assert set(elements(everything)[0]) == {"i", "s", "l"}
    assert elements(numbered.with_format("pandas"))[0]["s"] == b"row 0"
    hf = datasets.Dataset.from_dict({"f": [0.1]}, features=Features({"f": Value("float64")}))
    for form in (None, "numpy", "torch"):
        (row,) = elements(hf.with_format(form))
        assert (row["f"], row["f"].dtype) == (0.1, np.float64)


def test_from_tensor_slices_is_not_for_its_datasets(numbered):
    with pytest.raises(ValueError, match=r"use from_huggingface\(\)$"):
        Dataset.from_tensor_slices(numbered)


SPLITS = r"several splits, \['train'.*\]; select one of them, as in hf\['train'\]"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda hf: datasets.DatasetDict(), "several splits"),
        (lambda hf: hf.train_test_split(test_size=5), SPLITS),
        (lambda hf: datasets.IterableDatasetDict({"train": hf.to_iterable_dataset()}), SPLITS),
        (lambda hf: [{"x": 1}], "must be a datasets.Dataset or datasets.IterableDataset, got"),
        (lambda hf: None, "got None of type NoneType"),
    ],
)
def test_only_a_single_dataset_is_accepted(numbered, make, words):
    with pytest.raises(TypeError, match=words):
        Dataset.from_huggingface(make(numbered))


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        (datasets.List({"x": Value("int8")}), "lists of structs are not supported"),
        (datasets.Video(), r"column 'x' is a Video.*hf.cast_column\('x', Video\(decode=False\)\)"),
        (Value("null"), "it contains only nulls"),
    ],
)
def test_a_feature_without_a_component_is_refused_at_the_call(feature, words):
    kinds = Features({"good": Value("int8"), "x": feature})
    hf = datasets.Dataset.from_dict({"good": [1], "x": [None]}, features=kinds)
    with pytest.raises(SpecError, match=words):
        Dataset.from_huggingface(hf)
    assert elements(hf, columns=["good"]) == [{"good": 1}]


# Integration with the rest of the library.


@pytest.mark.parametrize("chunk", [None, 4])
def test_it_keeps_the_contract_of_operators(numbered, tmp_path, chunk):
    hf = numbered if chunk is None else on_disk(numbered, tmp_path, chunk)
    assert elements(hf.select([])) == []
    check_operator(lambda: Dataset.from_huggingface(hf), positions=5)
    mixed = hf.shuffle(seed=3)
    check_operator(lambda: Dataset.from_huggingface(mixed, columns=["i", "s"]).shuffle(7, seed=1).batch(4), positions=4)


def test_a_shuffle_gathers_columns_and_a_shard_is_a_slice(numbered, tmp_path):
    for hf in (numbered, on_disk(numbered, tmp_path, 4), numbered.shuffle(seed=1)):
        dataset = Dataset.from_huggingface(hf, columns=["i", "s"]).shuffle(30, seed=1).repeat(2).batch(10)
        assert "gather(from_huggingface)" in dataset.explain()
        rows = [pair for batch in dataset for pair in zip(batch["i"].tolist(), batch["s"].tolist(), strict=True)]
        assert sorted(rows) == sorted(2 * [(i, b"row %d" % i) for i in range(30)])
    shard = Dataset.from_huggingface(numbered).shard(3, 1)
    assert "from_huggingface[1:30:3]" in shard.explain()
    assert [row["i"] for row in shard.skip(2).take(3)] == [7, 10, 13]
    prints = [
        Dataset.from_huggingface(hf).fingerprint() for hf in (numbered, numbered, numbered.select(range(29, -1, -1)))
    ]
    assert prints[0] == prints[1] != prints[2]


@given(
    st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=25),
    st.integers(1, 9),
    st.lists(st.integers(0, 24), min_size=1, max_size=40),
    st.integers(1, 12),
)
@settings(deadline=None, max_examples=40)
def test_any_rows_of_any_chunks_are_gathered(values, chunk, order, batch):
    table = pa.table({"f": pa.array(values, pa.float32()), "s": [str(value) for value in values]})
    pieces = pa.Table.from_batches(table.to_batches(max_chunksize=chunk))
    hf = datasets.Dataset(pieces).select([number % len(values) for number in order])
    expected = hf.with_format(None)[:]
    for most in (numbered_rows.HELD_BYTES, 0):  # with 0, a column stays in its chunks
        with unittest.mock.patch.object(numbered_rows, "HELD_BYTES", most):
            found = list(Dataset.from_huggingface(hf).batch(batch))
        assert [text.decode() for part in found for text in part["s"]] == expected["s"]
        floats = np.concatenate([part["f"] for part in found])
        np.testing.assert_array_equal(floats, np.array(expected["f"], np.float32))


def test_consecutive_rows_are_a_view_and_gathered_rows_a_copy(numbered):
    source = numbered.data.table.column("i").to_numpy()
    batch = next(iter(Dataset.from_huggingface(numbered).batch(10)))
    assert np.shares_memory(batch["i"], source)
    assert not batch["i"].flags.writeable
    others = datasets.Dataset.from_dict({"f": [None, 1.0, 2.0], "b": [True, False, True], "i": [1, 2, 3]})
    gathered = next(iter(Dataset.from_huggingface(others).shuffle(3, seed=1).batch(3)))
    for name in ("f", "b", "i"):
        assert gathered[name].flags.writeable
        gathered[name][:] = 0
    assert others["i"][:] == [1, 2, 3]


def test_a_file_is_not_read_into_memory_and_a_plan_contains_its_name(tmp_path):
    hf = datasets.Dataset.from_dict({"x": np.zeros((20_000, 100)), "s": ["text"] * 20_000})
    mapped = on_disk(hf, tmp_path)
    before = pa.total_allocated_bytes()
    dataset = Dataset.from_huggingface(mapped)
    iterator = iter(dataset.batch(32))
    _ = next(iterator), dataset[19_000], dataset.element_spec, len(dataset), is_exact(dataset.plan)
    assert pa.total_allocated_bytes() - before < 1 << 20
    sent = pickle.dumps(dataset.plan)
    assert len(sent) < 20_000
    assert Dataset(pickle.loads(sent))[-1]["s"] == b"text"


def test_several_threads_may_look_up_rows():
    words = [f"word {i}" for i in range(8)]
    chunks = [pa.array([word] * 5).dictionary_encode() for word in words]
    hf = datasets.Dataset(pa.table({"w": pa.chunked_array([chunk.cast(chunks[0].type) for chunk in chunks])}))
    dataset = Dataset.from_huggingface(hf)

    def wrong(start):
        rows = [(start * 7 + step * 13) % 40 for step in range(200)]
        return [row for row in rows if dataset[row]["w"] != words[row // 5].encode()]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(wrong, range(4))) == [[]] * 4


# Images.


def jpeg(size):
    file = io.BytesIO()
    PIL.Image.fromarray(np.full((*size, 3), 128, np.uint8)).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture
def images(tmp_path):
    """Return images of several sizes as arrays, with labels."""
    arrays = [np.full((4, 5 + i % 2, 3), i, np.uint8) for i in range(6)]
    kinds = Features({"label": Value("int8"), "image": datasets.Image()})
    return datasets.Dataset.from_dict({"label": list(range(6)), "image": arrays}, features=kinds)


def test_an_image_is_decoded_into_an_array(images):
    rows = images.with_format("numpy")
    expected = [{"label": np.int8(i), "image": np.array(row["image"])} for i, row in enumerate(rows)]
    check_operator(lambda: Dataset.from_huggingface(images), expected, positions=3)
    check_operator(lambda: Dataset.from_huggingface(images.to_iterable_dataset()), expected, positions=3)
    element = Dataset.from_huggingface(images)[3]
    element["image"][:] = 0  # the element belongs to the user


def test_images_of_any_mode_are_the_array_that_numpy_converts_them_to():
    for mode in ("L", "RGBA", "I;16", "1"):
        picture = PIL.Image.new(mode, (5, 4))
        hf = datasets.Dataset.from_dict({"image": [picture]}, features=Features({"image": datasets.Image()}))
        assert_elements_equal(elements(hf), [{"image": np.asarray(picture)}])


@pytest.mark.parametrize(
    ("options", "colors"), [({}, [[1, 2, 3], [4, 5, 6]]), ({"transparency": 1}, [[1, 2, 3, 255], [4, 5, 6, 0]])]
)
def test_images_with_a_palette_have_its_colors(options, colors):
    file, picture = io.BytesIO(), PIL.Image.new("P", (2, 1))
    picture.putpalette(range(1, 7))
    picture.putpixel((1, 0), 1)
    picture.save(file, "PNG", **options)
    features = Features({"image": datasets.Image()})
    hf = datasets.Dataset.from_dict({"image": [{"bytes": file.getvalue(), "path": None}]}, features=features)
    for source in (hf, hf.to_iterable_dataset()):
        assert [row["image"].tolist() for row in Dataset.from_huggingface(source)] == [[colors]]


def test_an_image_may_be_bytes_a_path_or_in_a_struct_or_list(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg((4, 5)))
    image = datasets.Image()
    kinds = Features({"image": image, "s": {"x": image, "y": Value("int8")}, "several": datasets.List(image)})
    nested = {"s": {"x": jpeg((2, 3)), "y": 1}, "several": [jpeg((2, 2))] * 2}
    hf = datasets.Dataset.from_list([{"image": one, **nested} for one in (str(path), jpeg((4, 5)))], features=kinds)
    for form in (hf, hf.to_iterable_dataset()):
        for element in Dataset.from_huggingface(form):
            assert element["image"].shape == (4, 5, 3)
            assert element["s"]["x"].shape == (2, 3, 3)
            assert element["s"]["y"] == 1
            assert element["several"].shape == (2, 2, 2, 3)


def test_images_that_are_not_decoded_are_bytes_and_a_path(images):
    raw = images.cast_column("image", datasets.Image(decode=False))
    found = elements(raw, columns=["image.bytes", "label"])
    assert found[2]["image"]["bytes"].startswith(b"\x89PNG")
    assert found == elements(images, columns=["image.bytes", "label"])
    whole = {"image": {"bytes": found[2]["image"]["bytes"], "path": b""}, "label": np.int8(2)}
    for form in (raw, raw.to_iterable_dataset()):
        assert elements(form, columns=["image", "label"])[2] == whole
    nested = Features({"s": {"image": datasets.Image(decode=False), "y": Value("int8")}})
    paths = datasets.Dataset.from_list([{"s": {"image": "a.png", "y": 1}}], features=nested)
    assert elements(paths) == [{"s": {"image": {"bytes": b"", "path": b"a.png"}, "y": 1}}]


def test_a_sound_is_its_samples_and_their_rate(monkeypatch):
    """The decoder of torchcodec, which need not be installed, is replaced by an object with the same interface."""

    class Decoder(dict):
        get_all_samples = None

    Decoder.__module__ = "torchcodec.decoders"
    sound = Decoder(array=np.array([0.5, -0.5], np.float32), sampling_rate=8000)
    monkeypatch.setattr(datasets.Audio, "decode_example", lambda self, value, token_per_repo_id=None: sound)
    table = pa.table({"sound": pa.array([{"bytes": b"", "path": None}], datasets.Audio.pa_type)})
    hf = datasets.Dataset(table).cast_column("sound", datasets.Audio())
    for form in (hf, hf.to_iterable_dataset()):
        ((found,),) = [row.values() for row in Dataset.from_huggingface(form)]
        assert found["array"].tolist() == [0.5, -0.5]
        assert (found["sampling_rate"], found["sampling_rate"].dtype) == (8000, np.int64)


def test_a_missing_or_damaged_image_is_an_error_in_its_place():
    kinds = Features({"image": datasets.Image()})
    hf = datasets.Dataset.from_dict({"image": [jpeg((4, 5)), None, b"no image", jpeg((2, 3))]}, features=kinds)
    first, missing, damaged, last = outcomes(iter(Dataset.from_huggingface(hf)))
    assert (first["image"].shape, last["image"].shape) == ((4, 5, 3), (2, 3, 3))
    assert "column 'image' contains a null, which cannot be decoded" in str(missing)
    assert isinstance(damaged, PIL.UnidentifiedImageError)
    (batch,) = Dataset.from_huggingface(hf).ignore_errors().padded_batch(4)
    assert batch["image"].shape == (2, 4, 5, 3)


# Transforms.


def test_a_transform_is_called_for_the_requested_rows_only(numbered):
    calls = []

    def double(batch):
        calls.append(list(batch["i"]))
        return {"twice": [2 * i for i in batch["i"]], "text": batch["s"]}

    hf = numbered.with_transform(double)
    dataset = Dataset.from_huggingface(hf)
    iterator = iter(dataset.skip(3).batch(4))
    assert (len(dataset), calls) == (30, [])
    batch = next(iterator)
    assert batch["twice"].tolist() == [6, 8, 10, 12]
    assert batch["text"].tolist() == [b"row 3", b"row 4", b"row 5", b"row 6"]
    assert calls == [[3, 4, 5, 6]]
    assert dataset[-1] == {"twice": 58, "text": b"row 29"}
    check_operator(lambda: Dataset.from_huggingface(hf), positions=2)
    for options in ({"columns": ["i"]}, {"fill_null": {"i": 1}}):
        with pytest.raises(ValueError, match="hf has the format 'custom', which computes values in Python"):
            Dataset.from_huggingface(hf, **options)


def test_a_transform_may_return_images_and_tensors(numbered):
    def make(batch):
        return {"image": [PIL.Image.new("L", (2, 1)) for _ in batch["i"]], "x": [torch.ones(2) for _ in batch["i"]]}

    first = next(iter(Dataset.from_huggingface(numbered.with_transform(make))))
    assert (first["image"].shape, first["x"].dtype) == ((1, 2), np.float32)
    formatted = numbered.with_format("numpy", columns=["l"], dtype=np.float16)
    (row,) = elements(formatted.select([2]))
    assert (row["l"].tolist(), row["l"].dtype) == ([2, 2], np.float16)


# Streams.


def counting_stream(count, taken, **options):
    def generate():
        for i in range(count):
            taken.append(i)
            yield {"i": i, "s": f"row {i}"}

    return datasets.IterableDataset.from_generator(generate, **options)


@pytest.mark.parametrize("features", [None, Features({"i": Value("int32"), "s": Value("string")})])
def test_a_stream_is_not_read_ahead(features):
    taken: list[int] = []
    dataset = Dataset.from_huggingface(counting_stream(50, taken, features=features))
    iterator = iter(dataset.batch(4))
    assert taken == []
    for batches in (1, 2, 3):
        batch = next(iterator)
        assert batch["i"].dtype == (np.int64 if features is None else np.int32)
        assert len(taken) == 4 * batches


def test_a_stream_keeps_the_contract_of_operators(numbered):
    mixed = numbered.to_iterable_dataset(num_shards=4).shuffle(seed=1, buffer_size=7)
    check_operator(lambda: Dataset.from_huggingface(mixed).batch(3), positions=3)


def test_passes_over_one_stream_do_not_disturb_each_other(numbered):
    """Passes over a Hugging Face stream of several streams do: they share the position."""
    halves = [numbered.select(range(12)), numbered.select(range(12, 30))]
    stream = datasets.concatenate_datasets([half.to_iterable_dataset(num_shards=3) for half in halves])
    dataset = Dataset.from_huggingface(stream, columns=["i"])
    for lead in (1, 13, 17):
        ahead, behind = iter(dataset), iter(dataset)
        found = [next(ahead) for _ in range(lead)]
        pairs = list(zip(behind, ahead, strict=False))
        found += [row for _, row in pairs]
        assert [row["i"] for row in found] == list(range(30))
        assert [row["i"] for row, _ in pairs] == list(range(30 - lead))
    single = numbered.to_iterable_dataset()
    before = copy.deepcopy(single.state_dict())
    elements(single)
    assert single.state_dict() == before


class Locked:
    """A function that holds what cannot be copied, and counts its calls."""

    def __init__(self):
        self.lock = threading.Lock()
        self.calls = 0

    def __call__(self, row):
        with self.lock:
            self.calls += 1
        return {"y": 2 * row["i"]}


@pytest.mark.parametrize(
    "change",
    [
        lambda stream: stream,
        lambda stream: stream.shuffle(seed=1, buffer_size=3),
        lambda stream: stream.skip(1).take(5),
        lambda stream: stream.rename_column("y", "z"),
        lambda stream: stream.filter(lambda row, lock: lock.acquire(False), fn_kwargs={"lock": threading.RLock()}),
    ],
)
def test_what_a_stream_holds_of_the_user_is_not_copied(numbered, change):
    function = Locked()
    hf = change(numbered.select(range(9)).to_iterable_dataset(num_shards=3).map(function))
    expected = [row["i"] for row in hf]
    before, dataset = function.calls, Dataset.from_huggingface(hf)
    pairs = list(zip(dataset, dataset, strict=True))
    assert [[one["i"], two["i"]] for one, two in pairs] == [[i, i] for i in expected]
    assert function.calls >= before + 2 * len(expected)


def test_columns_of_a_stream_without_features_cannot_be_selected():
    stream = counting_stream(3, [])
    assert stream.features is None
    for options in ({"columns": ["i"]}, {"fill_null": {"i": 1}}):
        with pytest.raises(ValueError, match=r"the columns of the stream are not known.*hf.cast\(features\)"):
            Dataset.from_huggingface(stream, **options)
    assert elements(stream) == [{"i": i, "s": b"row %d" % i} for i in range(3)]

"""Common mistakes: each raises an error that says what to do, and names the line that wrote the operation."""

import functools
import re
import traceback

import numpy as np
import pytest

import dataset as library
from dataset import (
    CsvDataset,
    Dataset,
    RaggedTensor,
    SparseTensor,
    SpecError,
    StateError,
    TextLineDataset,
    TFRecordDataset,
    checkpoint,
    io,
)
from support.tfrecord_files import write_records

IMAGES = np.zeros((3, 2))
LABELS = np.arange(3)


@pytest.fixture
def records(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_records("a.tfrecord", [io.encode_example({"image": b"pixels", "label": label}) for label in range(3)])
    return "a.tfrecord"


def fails(dataset, error):
    with pytest.raises(error) as caught:
        list(dataset)
    return caught.value


def notes_of(error):
    return " ".join(error.__notes__)


def here(lines=0):
    """The origin of the calling line, as notes show it."""
    frame = traceback.extract_stack()[-2]
    return f"test_common_mistakes.py:{frame.lineno + lines}"


PAIRS = Dataset.from_tensor_slices((IMAGES, LABELS))
WRONG_ARITY = [
    PAIRS.map(lambda pair: pair[0]),
    PAIRS.map(lambda pair: pair[0], num_parallel_calls=2),
    PAIRS.map(lambda *pair: pair).map(lambda pair: pair[0]),
    PAIRS.filter(lambda pair: pair[1] > 0),
    PAIRS.map(lambda image, label, weight: image),
    Dataset.from_tensor_slices({"image": IMAGES, "label": LABELS}).map(lambda image, label: image),
    PAIRS.flat_map(lambda pair: Dataset.from_tensors(pair[0])),
]


NAMES = Dataset.from_tensor_slices(["photos/0.jpg", "photos/1.jpg"])


@pytest.mark.parametrize("parallel", [None, 2])
def test_the_name_of_the_file_that_failed_is_shown(parallel):
    def read(name, number):
        name = name.decode()
        raise ValueError(f"number {number}")

    notes = notes_of(fails(Dataset.zip(NAMES, Dataset.range(2)).map(read, parallel), ValueError))
    assert "when it failed, name was 'photos/0.jpg'" in notes
    assert "number was" not in notes


@pytest.mark.parametrize("text", [b"malformed" * 100, b"malformed\0\x01", b"malformed\xff"])
def test_long_or_binary_text_is_not_shown(text):
    def parse(text):
        raise ValueError(text)

    assert "malformed" not in notes_of(fails(Dataset.from_tensors(text).map(parse), ValueError))


def test_the_names_of_list_files_are_split_without_shuffling(tmp_path):
    for name in "ab":
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match="to split the names of list_files, pass shuffle=False"):
        Dataset.list_files(str(tmp_path / "*")).split([0.5, 0.5], seed=1)


def test_a_call_inside_the_function_gets_no_advice_about_the_function():
    def inner(x):
        return x

    error = fails(PAIRS.map(lambda image, label: (image, inner(image, label))), TypeError)
    assert "lambda image, label: ..." not in notes_of(error)


@pytest.mark.parametrize("index", [False, True])
def test_patterns_are_for_list_files(records, index):
    with pytest.raises(FileNotFoundError) as caught:
        list(TFRecordDataset("b-*.tfrecord", index=index))
    advice = "TFRecordDataset takes the names of files; for a pattern, pass Dataset.list_files('b-*.tfrecord')"
    assert advice in caught.value.__notes__


def test_a_generator_in_place_of_its_function():
    with pytest.raises(TypeError, match="can be iterated only once: pass the function without calling it"):
        Dataset.from_generator(x for x in "ab")


class OnDisk:
    """Rows on disk that are not an array, as in zarr without NumPy's protocol."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return IMAGES[index]


def tokenizer(text):
    if not isinstance(text, str):
        raise TypeError("TextInputSequence must be str")  # as the tokenizers of Hugging Face
    return [len(word) for word in text.split()]


TEXTS = Dataset.from_tensor_slices(["to be or not to be", "that is the question"])


IN_PLACE = [lambda image: image.__iadd__(1), lambda image: image.fill(0), np.ndarray.sort]
ON_TEXT = [
    tokenizer,
    lambda text: text + " ",
    lambda text: re.sub("be", "do", text),
    lambda text: text < "a",
    lambda text: text.format(1),
    lambda text: "be" in text,
]
NOTED = [  # a pipeline that fails, the error, and what its notes advise
    *[(dataset, TypeError, "write lambda image, label: ...") for dataset in WRONG_ARITY],
    (PAIRS.random_map(lambda x, y: x, 1), TypeError, "in random_map after the random generator"),
    (NAMES.map(lambda name: name.numpy()), AttributeError, "leave out numpy()"),
    *[(Dataset.from_tensor_slices(IMAGES).map(function), ValueError, "copy() it first") for function in IN_PLACE],
    *[(TEXTS.map(function), Exception, "text in elements is bytes: use text.decode()") for function in ON_TEXT],
    (TEXTS.batch(2).map(lambda texts: {"ids": [tokenizer(text.decode()) for text in texts]}), ValueError,
     "return RaggedTensor.from_rows(lists), or map before batch()"),
]  # fmt: skip


@pytest.mark.parametrize(("dataset", "error", "advice"), NOTED)
def test_the_notes_of_an_error_advise(dataset, error, advice):
    assert advice in notes_of(fails(dataset, error))


def test_other_errors_of_bytes_get_no_advice():
    assert "decode()" not in notes_of(fails(TEXTS.map(lambda text: text + 1), TypeError))


def test_text_packed_instead_of_tokens():
    for dataset in (TEXTS, TEXTS.map(lambda text: text), TEXTS.map(lambda text: tokenizer(text.decode()))):
        with pytest.raises(
            ValueError, match=r"convert text to tokens in map\(\), .* wrap a list .* in np.asarray\(...\)"
        ):
            list(dataset.pack(8))


def test_batches_packed_instead_of_sequences():
    sequences = TEXTS.map(lambda text: {"ids": tokenizer(text.decode())})
    error = fails(sequences.padded_batch(1).pack(8), SpecError)
    assert str(error).endswith("an element must be a single sequence, not a batch")
    with pytest.raises(ValueError, match="is a ragged or sparse tensor; sequences must be arrays"):
        list(sequences.ragged_batch(1).pack(8))


@pytest.mark.parametrize("size", [None, -2])
def test_a_shuffle_of_all_elements_of_an_infinite_dataset(size):
    with pytest.raises(ValueError, match=rf"{here(1)}: the input is infinite, .* write shuffle\(\) before repeat\(\)"):
        list(PAIRS.repeat().shuffle(size).take(1))
    assert len(list(PAIRS.shuffle(size).repeat().take(7))) == 7


def test_a_vectorized_function_that_returns_a_list():
    @library.vectorized
    def tokens(texts):
        return [tokenizer(text.decode()) for text in texts]

    assert "a list or tuple contains one column per component" in str(fails(TEXTS.map(tokens), SpecError))


@pytest.mark.parametrize("data", [[1, 2], {"x": IMAGES}, None, OnDisk()])
def test_the_constructor_in_place_of_a_source(data):
    with pytest.raises(TypeError, match=r"use a static method such as Dataset\.from_tensor_slices, .*from_huggingface"):
        Dataset(data)


@pytest.mark.parametrize("name", ["state_dict", "load_state_dict"])
def test_the_state_of_a_dataset(name, tmp_path):
    assert not hasattr(PAIRS, name)
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; its iterators have it: iterator = iter"):
        getattr(PAIRS, name)
    with pytest.raises(AttributeError, match=r"no attribute 'mpa'$"):
        _ = PAIRS.mpa
    for function in (checkpoint.save, checkpoint.restore):
        with pytest.raises(TypeError, match=r"got Dataset; pass iter\(dataset\), iter\(dataset\.to_torch\(\)\)"):
            function(tmp_path / "a.state", PAIRS)


def test_a_checkpoint_in_place_of_the_state_in_it():
    state = iter(PAIRS).state_dict()
    with pytest.raises(StateError, match=r"got a dict of \['step', 'data'\]; if one of its values is the state, pass"):
        iter(PAIRS).load_state_dict({"step": 1, "data": state})


def test_a_header_read_as_a_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("item,price\n1,2\nx,3\n")
    rows = iter(CsvDataset(path, [np.int64, np.int64]))
    with pytest.raises(ValueError, match=r"line 1, .*pass header=True"):
        next(rows)
    assert next(rows) == (1, 2)
    with pytest.raises(ValueError, match="line 3") as caught:
        next(rows)
    assert "header=True" not in str(caught.value)
    assert next(iter(CsvDataset(path, [np.int64, np.int64], header=True))) == (1, 2)


@pytest.mark.parametrize(
    "parse",
    [
        io.ExampleParser,
        lambda features: lambda record: io.parse_single_example(record, features),
        lambda features: lambda record: io.parse_example([record], features),
    ],
)
def test_a_misspelt_feature(records, parse):
    error = fails(TFRecordDataset(records).map(parse({"lable": io.FixedLenFeature((), np.int64)})), ValueError)
    assert "The record has 'image', 'label'; did you mean 'label'?" in str(error)


def test_a_record_without_features_or_with_many(records):
    wanted = {"x": io.FixedLenFeature((), np.int64)}
    with pytest.raises(ValueError, match="The record has no features"):
        io.parse_single_example(b"", wanted)
    with pytest.raises(ValueError, match=r"'f00', 'f01', .*, 'f09' and 40 more$"):
        io.parse_single_example(io.encode_example({f"f{i:02}": 1 for i in range(50)}), wanted)


@pytest.mark.parametrize("name", ["from_parquet", "from_arrow_ipc", "from_json_lines", "from_csv", "list_files"])
def test_no_match_is_said_by_the_method_that_looked(name, tmp_path):
    arguments = (2,) if name == "from_csv" else ()
    with pytest.raises(FileNotFoundError, match=rf"^{name}\(\): no file matches '.*nothing-\*'"):
        getattr(Dataset, name)(f"{tmp_path}/nothing-*", *arguments)


def test_a_file_of_h5py(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = IMAGES
        for mapping in (file, {name: file[name] for name in file}):
            assert [element["x"].tolist() for element in Dataset.from_tensor_slices(mapping)] == IMAGES.tolist()


def test_an_object_with_rows_that_is_not_an_array():
    with pytest.raises(ValueError, match=r"use from_torch\(\), which reads any object that has len\(\)"):
        Dataset.from_tensor_slices(OnDisk())
    assert len(list(Dataset.from_torch(OnDisk()))) == 3


def test_the_length_of_files(records):
    with pytest.raises(TypeError, match=r"TFRecordDataset\(\.\.\., index=True\).*sum\(1 for _ in dataset\)"):
        len(TFRecordDataset(records))


MISSING = Dataset.from_tensor_slices(["missing"])
UNWRITTEN = {  # the user's line is the only one that can be named: all other code is the library's
    "interleave": lambda: (MISSING.interleave(TFRecordDataset), here()),
    "parallel interleave": lambda: (MISSING.interleave(TFRecordDataset, num_parallel_calls=2), here()),
    "partial": lambda: (
        MISSING.interleave(functools.partial(TFRecordDataset, compression_type="GZIP"), num_parallel_calls=2),
        here(-1),
    ),
    "parallel reads": lambda: (TFRecordDataset(["missing"], num_parallel_reads=2), here()),
    "csv": lambda: (Dataset.from_tensors(b"missing").flat_map(TextLineDataset).map(len).prefetch(1), here()),
}


@pytest.mark.parametrize("name", UNWRITTEN)
def test_notes_name_the_line_that_wrote_the_op(name):
    dataset, origin = UNWRITTEN[name]()
    assert f"Dataset from {origin}" in fails(dataset, FileNotFoundError).__notes__[0]


def test_long_ragged_and_sparse_tensors_are_shown_in_short():
    uneven = RaggedTensor.from_rows([np.arange(2000), [1], [], [2, 3]])
    assert repr(uneven) == "RaggedTensor([[0, 1, 2, ..., 1997, 1998, 1999], [1], [], [2, 3]], dtype=int64)"
    cells = np.arange(2000)
    sparse = SparseTensor(np.stack([cells, cells], 1), cells, (2000, 2000))
    assert repr(sparse) == (
        "SparseTensor(indices=[[0, 0], [1, 1], [2, 2], ..., [1997, 1997], [1998, 1998], [1999, 1999]], "
        "values=[0, 1, 2, ..., 1997, 1998, 1999], dense_shape=[2000, 2000], dtype=int64)"
    )

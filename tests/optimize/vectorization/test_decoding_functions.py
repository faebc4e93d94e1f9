"""map_vectorization: functions that parse or decode each record, and compute with the result, run on whole columns."""

import numpy as np
import pytest

import dataset
from dataset import Dataset, io
from dataset.io import decode_raw, parse_single_example
from dataset.runtime.functions.kernels import columns
from dataset.runtime.functions.kernels.columns import elementwise_function
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.columns_at_once import columns_at_once, columns_recorded
from support.pipelines import fired, unoptimized

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FEATURES = {
    "image": io.FixedLenFeature((), bytes),
    "label": io.FixedLenFeature((), np.int64),
    "box": io.FixedLenFeature((2, 2), np.float32),
    "words": io.VarLenFeature(np.int64),
}
WIDE = (2, 3)
SCALE = np.array([1.0, 2.0], np.float32)
SHIFT = 3
RECORDS = [
    io.encode_example({"image": bytes(range(i, i + 6)), "label": i, "box": [i / 4] * 4, "words": [i] * (i % 4)})
    for i in range(60)
]


@pytest.fixture(autouse=True, scope="module")
def _at_once():
    with columns_at_once():
        yield


def records(*changed, by=b"bad"):
    return Dataset.from_tensor_slices(np.array([by if i in changed else RECORDS[i] for i in range(60)], object))


def natural(record):
    example = io.parse_single_example(record, FEATURES)
    image = io.decode_raw(example["image"], np.uint8)
    return image.astype(np.float32) / 255 - 0.5, example["label"]


def by_keywords(record):
    example = parse_single_example(features=FEATURES, serialized=record)
    return decode_raw(out_type="uint8", input_bytes=example["image"]) + np.uint8(1)


def from_buffer(record):
    example = parse_single_example(record, FEATURES)
    pixels = np.frombuffer(example["image"], dtype=np.uint8).reshape(WIDE)
    return {"image": pixels * np.float32(2), "bytes": example["image"], "sign": example["label"] % 2 == 0}


def reshapes(record):
    example = parse_single_example(record, FEATURES)
    pixels = decode_raw(example["image"], np.uint8).reshape(2, 3, 1)
    flat = np.reshape(pixels, (-1,))
    return pixels, flat + SHIFT, example["box"].reshape((1, 4)) * 2


def merges(record):
    example = parse_single_example(record, FEATURES)
    return {"twice": example["label"] * 2, **example}


def without_result(record):
    example = parse_single_example(record, FEATURES)
    box = example["box"]  # noqa: F841  # it is looked up
    return np.maximum(example["label"], 7) + SHIFT


def twice(record):
    first, second = parse_single_example(record, FEATURES), parse_single_example(record, OTHERS)
    return first["label"] + second["label"], record


OTHERS = {"label": io.FixedLenFeature((), np.int64)}
PARSER = io.ExampleParser(FEATURES)
PROVED = [natural, by_keywords, from_buffer, reshapes, merges, without_result, twice]
PROVED += [lambda r, features=FEATURES: parse_single_example(r, features)["label"] + 1]
PROVED += [lambda r: parse_single_example(r, FEATURES)["box"] * SCALE]
PROVED += [lambda r: PARSER(r)["box"][0], lambda r: decode_raw(PARSER(r)["image"], np.uint8)[::-1]]
PROVED += [lambda r: PARSER(r)["label"].reshape(1) + parse_single_example(r, FEATURES)["label"]]
PROVED += [lambda r: decode_raw(PARSER(r)["image"], np.uint8).reshape(2, 3) + np.ones((1, 2, 3))]
PROVED += [lambda r: natural(r)]  # noqa: PLW0108
PROVED += [lambda r: (parse_single_example(r, FEATURES)["words"], parse_single_example(r, OTHERS)["label"] + 1)]


@pytest.mark.parametrize("function", PROVED)
@pytest.mark.parametrize("calls", [None, 2])
def test_the_results_are_those_of_single_calls(function, calls):
    def make():
        return records(17).map(function, num_parallel_calls=calls).batch(20)

    assert set(fired(records().map(function))) == {"map_vectorization"}
    with columns_recorded() as lengths:
        check_operator(make, outcomes(iter(unoptimized(make()))), positions=2)
    assert sum(lengths) > 60


UNUSUAL = {
    "a longer image": {"image": bytes(7), "label": 3, "box": [0.0] * 4},
    "no image": {"label": 3, "box": [0.0] * 4},
    "an empty image": {"image": b"", "label": 3, "box": [0.0] * 4},
    "two images": {"image": [bytes(6), bytes(6)], "label": 3, "box": [0.0] * 4},
    "another kind": {"image": 3, "label": 3, "box": [0.0] * 4},
    "a box that is too short": {"image": bytes(6), "label": 3, "box": [0.0] * 3},
}


@pytest.mark.parametrize("example", UNUSUAL.values(), ids=UNUSUAL)
@pytest.mark.parametrize("function", [natural, by_keywords, from_buffer, reshapes])
def test_unusual_records_give_what_single_calls_give(example, function):
    made = records(5, 33, by=io.encode_example(example)).map(function)
    assert_elements_equal(outcomes(iter(made.take(40))), outcomes(iter(unoptimized(made.take(40)))))
    assert_elements_equal(outcomes(iter(made.batch(7))), outcomes(iter(unoptimized(made.batch(7)))))


@pytest.mark.parametrize("dtype", ["<i2", ">i2", "?", "f4", "c8", "S2", "O", "i8", float])
def test_any_dtype_gives_what_single_calls_give(dtype):
    def decodes(record):
        return decode_raw(record, dtype)

    def buffers(record):
        return np.frombuffer(record, dtype)

    texts = np.array([bytes(range(i, i + 16)) for i in range(12)], object)
    for function in (decodes, buffers):
        made = Dataset.from_tensor_slices(texts).map(function).batch(3)
        assert_elements_equal(outcomes(iter(made)), outcomes(iter(unoptimized(made))))


def test_each_element_has_memory_of_its_own():
    texts = np.array([bytes(range(i, i + 6)) for i in range(10)], object)
    mapped = Dataset.from_tensor_slices(texts).map(lambda record: np.frombuffer(record, np.uint8).reshape(2, 3))
    for made in (mapped, mapped.batch(5)):
        elements = []
        for pixels in made:
            elements.append(pixels.copy())
            if pixels.flags.writeable:
                pixels[...] = 0
        assert_elements_equal(elements, list(unoptimized(made)))


@pytest.fixture
def many(tmp_path):
    """Return a function that returns 3,000 records, of which those at some positions are not Examples."""

    def written(*changed):
        with io.TFRecordWriter(tmp_path / "records") as writer:
            for position in range(3000):
                writer.write(b"bad" if position in changed else RECORDS[position % len(RECORDS)])
        return dataset.TFRecordDataset(tmp_path / "records")

    return written


@pytest.fixture
def runs(monkeypatch):
    """Return a list to which the number of elements of each computation on columns is added."""
    found = []

    def counted(graph, reads, structure, columns):
        result = run(graph, reads, structure, columns)
        found.append(len(columns[0]))
        return result

    run = columns.run_on_columns
    monkeypatch.setattr(columns, "run_on_columns", counted)
    return found


@pytest.mark.parametrize("size", [1, 7, 32])
def test_outputs_of_small_requests_are_computed_for_all_that_was_read_ahead(many, runs, size):
    made = many().map(natural).batch(size)
    assert_elements_equal(list(made), list(unoptimized(made)))
    assert sum(runs) >= 2000
    assert len(runs) < 20


def test_a_request_of_all_elements_computes_each_once(many, runs):
    assert len(list(many().map(natural).take(700).batch(700))) == 1
    assert sum(runs) <= 700 + columns.TRIAL


SIZES_OF_REQUESTS = pytest.mark.parametrize("size", [1, 20])


@SIZES_OF_REQUESTS
@pytest.mark.parametrize("in_place", [False, True])
def test_variables_that_change_count_for_elements_that_were_read_ahead(many, in_place, size):
    scale = np.array(1)
    made = many().map(lambda record: parse_single_example(record, FEATURES)["label"] * scale).batch(size)
    batches = iter(made)
    for _ in range(1600 // size):
        first = next(batches)
    if in_place:
        scale[...] = 1000
    else:
        scale = np.array(1000)
    assert next(batches)[0] == (first[-1] + 1) * 1000


def test_a_record_that_fails_does_so_in_its_place(many):
    made = many(1500, 1501, 2303).map(natural)
    for pipeline in (made, made.batch(1), made.batch(20)):
        assert_elements_equal(outcomes(iter(pipeline)), outcomes(iter(unoptimized(pipeline))))


@SIZES_OF_REQUESTS
def test_a_state_between_outputs_that_were_computed_at_once_is_a_position(many, size):
    made = many().map(natural).batch(size)
    batches = iter(made)
    for _ in range(1660 // size):
        next(batches)
    state = batches.state_dict()
    assert len(str(state)) < 2000
    resumed = iter(made)
    resumed.load_state_dict(state)
    assert_elements_equal(list(resumed), list(batches))


NOT_PROVED = [
    lambda r: decode_raw(r, np.uint8, True),
    lambda r: decode_raw(r, np.uint8, fixed_length=4),
    lambda r: np.frombuffer(r, np.uint8, 3),
    lambda r: np.frombuffer(r) + 1,
    lambda r: parse_single_example(r, FEATURES)["box"].reshape(SIZES),
    lambda r: parse_single_example(r, FEATURES.copy()),
    lambda r: parse_single_example(r, {"label": FEATURES["label"]}),
    lambda r: parse_single_example(FEATURES, r),
    lambda r: FEATURES["label"] * r,
]
SIZES = [2, "2"]


@pytest.mark.parametrize("function", NOT_PROVED)
def test_what_is_not_proved(function):
    assert not isinstance(elementwise_function(function), columns.ElementwiseFunction)


FAILING = [
    lambda r: np.reshape(decode_raw(r, np.uint8), 2, 3),
    lambda r: decode_raw(r, np.uint8).reshape(),
    lambda r: parse_single_example(r, FEATURES)["label"][0],
    lambda r: parse_single_example(r, FEATURES)["nothing"],
    lambda r: len(FEATURES) + FEATURES,
    lambda r: FEATURES,
]


@pytest.mark.parametrize("function", FAILING)
def test_what_fails_for_each_element_does_so_in_its_place(function):
    made = records(3).map(function).batch(7)
    assert_elements_equal(outcomes(iter(made)), outcomes(iter(unoptimized(made))))

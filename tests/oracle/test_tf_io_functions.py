"""Tests of functions of dataset.io against those of tf.io and tf.audio of the same name: values, dtypes, refusals."""

import struct
from pathlib import Path

import numpy as np
import pytest
from compare import Ours, attempt, in_both, theirs

from dataset import TFRecordDataset, io
from dataset.errors import DatasetError, ParseError
from dataset.io.example.messages import Example, TensorProto
from dataset.testing import assert_elements_equal

NUMBERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32]
NUMBERS += [np.float64, np.complex64, np.complex128, np.bool_]


def assert_alike(name, *arguments, **keywords):
    """Check that the function ``name`` of io returns what TensorFlow's does, or both refuse it. Return the result."""

    def call(lib):
        if lib.name == "dataset":
            result = getattr(io, name)(*arguments, **keywords)
        else:
            module = lib.tf.audio if name.endswith("wav") else lib.tf.io
            result = getattr(module, name)(*(as_text(lib.tf, one) for one in arguments), **keywords)
        return tuple(result) if isinstance(result, tuple) else result  # named tuples of different classes

    mine = attempt(call, Ours)
    expected = theirs(lambda lib: attempt(call, lib), *arguments)
    if isinstance(mine, Exception) or isinstance(expected, Exception):
        assert isinstance(mine, Exception), f"only TensorFlow refuses it: {expected!r}"
        assert isinstance(expected, Exception), f"only TensorFlow accepts it: {mine!r}"
        assert isinstance(mine, DatasetError | ValueError | OSError | TypeError), repr(mine)
        return None
    assert_elements_equal([mine], [expected])
    return mine


def as_text(tf, value):
    """Return ``bytes`` and arrays of bytes as TensorFlow's text."""
    if value is bytes:
        return tf.string
    is_text = isinstance(value, np.ndarray) and value.dtype == object
    return tf.constant(value, tf.string) if is_text else value


# Tensors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 1, 2)])
def test_serialized_tensors_are_the_same_bytes(dtype, shape):
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) - 1).astype(dtype)
    serialized = assert_alike("serialize_tensor", array)
    assert assert_alike("parse_tensor", serialized, dtype).dtype == dtype


@pytest.mark.parametrize("text", [b"", b"abc\0", [b"a", b""], [[b"a", b"b\0"]], "ü", np.array([], object)])
def test_serialized_text(text):
    serialized = assert_alike("serialize_tensor", np.asarray(text, object))
    assert_alike("parse_tensor", serialized, bytes)


def test_bfloat16():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    serialized = assert_alike("serialize_tensor", np.arange(4).astype(bfloat16))
    assert_alike("parse_tensor", serialized, bfloat16)
    message = TensorProto(dtype=14, half_val=[16256, 16384], tensor_shape={"dim": [{"size": 3}]})
    assert_alike("parse_tensor", message.SerializeToString(), bfloat16)


FIELDS = {
    1: (np.float32, "float_val", [1.5, -2.0]),
    2: (np.float64, "double_val", [1.5, -2.0]),
    3: (np.int32, "int_val", [1, -2]),
    4: (np.uint8, "int_val", [1, 300]),
    5: (np.int16, "int_val", [1, -40000]),
    6: (np.int8, "int_val", [1, 200]),
    8: (np.complex64, "scomplex_val", [1.0, 2.0, 3.0, 4.0]),
    9: (np.int64, "int64_val", [1, -(2**40)]),
    10: (np.bool_, "bool_val", [True, False]),
    17: (np.uint16, "int_val", [1, 70000]),
    18: (np.complex128, "dcomplex_val", [1.0, 2.0, 3.0, 4.0]),
    19: (np.float16, "half_val", [15360, 16384]),
    22: (np.uint32, "uint32_val", [1, 2**31]),
    23: (np.uint64, "uint64_val", [1, 2**63]),
}


@pytest.mark.parametrize("number", FIELDS)
@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_values_in_repeated_fields(number, count):
    dtype, field, values = FIELDS[number]
    for given in (values, []):
        message = TensorProto(dtype=number, tensor_shape={"dim": [{"size": count}]}, **{field: given})
        assert_alike("parse_tensor", message.SerializeToString(), dtype)


def shape(*sizes):
    return {"dim": [{"size": size} for size in sizes]}


ODD = {
    "negative": TensorProto(dtype=1, tensor_shape=shape(-1), float_val=[1]),
    "too few bytes": TensorProto(dtype=1, tensor_shape=shape(3), tensor_content=b"abcd"),
    "content and values": TensorProto(dtype=1, float_val=[1], tensor_content=b"abcd"),
    "no shape": TensorProto(dtype=1, float_val=[1]),
    "no dtype": TensorProto(float_val=[1]),
    "another dtype": TensorProto(dtype=3, int_val=[1]),
    "unknown dtype": TensorProto(dtype=99, int_val=[1]),
    "huge": TensorProto(dtype=1, tensor_shape=shape(10**6, 10**6, 10**8), float_val=[1]),
    "huge and empty": TensorProto(dtype=1, tensor_shape=shape(2**62, 2**62, 0)),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_messages(name):
    assert_alike("parse_tensor", ODD[name].SerializeToString(), np.float32)


def test_no_messages():
    for serialized in (b"", b"hello", b"\xff" * 20, io.serialize_tensor([1.0])[:-3]):
        assert assert_alike("parse_tensor", serialized, np.float64) is None


@pytest.mark.parametrize("content", [b"\1\2abc", b"\1\2ab", b"\1\2abcd", b"\1", b"\0\0", b"\x80\x80", b"\x83\1abc"])
def test_text_in_the_form_of_memory(content):
    message = TensorProto(dtype=7, tensor_shape=shape(2), tensor_content=content).SerializeToString()
    assert_alike("parse_tensor", message, bytes)


# Examples -------------------------------------------------------------------------------------------------------------


def feature(kind, values):
    return f'{{"features": {{"feature": {{"a": {{"{kind}": {{"value": {values}}}}}}}}}}}'


VALUES = {
    "int64List": ['["1", 2]', "[1.0]", "[1.5]", '["x"]', "[]", "[1e30]"],
    "int64_list": ["[1]", "[9223372036854775807]", "[9223372036854775808]"],
    "floatList": ['["NaN", "-Infinity", 1]', "[1e400]", "[0.1, 3]", '["x"]'],
    "bytesList": ['["YQ=="]', '["YQ"]', '["_-8="]', "[1]", '[""]'],
    "otherList": ["[1]"],
}
TEXTS = ["{}", "", "[", "null", "3", '{"x": 1}', '{"features": null}', '{"features": {}}', "[" * 100_000]
TEXTS += ['{"features": {"feature": {}}}', '{"features": {"feature": {"b": {}, "a": {}}}}']
TEXTS += ['{"features": {"feature": {"a": {}, "a": {}}}}']
TEXTS += ['{"features": {"feature": {"a": {"int64List": {"value": [1]}, "floatList": {"value": [2]}}}}}']
TEXTS += [feature(kind, values) for kind, every in VALUES.items() for values in every]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_examples_in_json(text):
    def parsed(lib):
        decoded = io.decode_json_example(text) if lib.name == "dataset" else lib.tf.io.decode_json_example(text).numpy()
        return str(Example.FromString(decoded))

    ours, expected = in_both(lambda lib: attempt(parsed, lib))
    assert ours == expected or (isinstance(ours, ParseError) and isinstance(expected, Exception))


def test_several_examples_in_json_keep_their_shape():
    texts = [["{}", "{}"], ["{}", "{}"]]
    assert_alike("decode_json_example", texts)
    assert_alike("decode_json_example", [["{}", "x"]])


# Audio ----------------------------------------------------------------------------------------------------------------


def wav(form=1, channels=1, rate=8000, bits=16, data=b"\1\0\2\0", size=None, **other):
    width = other.get("width", channels * bits // 8)
    header = struct.pack("<HHIIHH", form, channels, rate, other.get("speed", rate * channels * bits // 8), width, bits)
    header += other.get("extra", b"")
    body = b"WAVE" + other.get("before", b"") + b"fmt " + struct.pack("<I", len(header)) + header
    body += other.get("between", b"") + b"data" + struct.pack("<I", len(data) if size is None else size) + data
    body += other.get("after", b"")
    return other.get("riff", b"RIFF") + struct.pack("<I", len(body)) + body


def chunk(content, name=b"LIST"):
    return name + struct.pack("<I", len(content)) + content


FILES = [{}, {"channels": 2}, {"form": 3, "bits": 32, "data": b"abcd"}, {"channels": 0}, {"rate": 0}]
FILES += [{place: chunk(content)} for place in ("between", "after") for content in (b"abcd", b"abc")]
FILES += [{"after": b"xyz"}, {"after": chunk(b"abcd", b"data")}, {"before": chunk(b"abcd", b"JUNK")}]
FILES += [{"extra": extra} for extra in (b"\0", b"\0\0", b"\2\0\0\0")]
FILES += [{"bits": 8, "data": b"ab"}, {"bits": 24, "data": b"abc"}, {"size": 100}, {"size": 0xFFFFFFFF}]
FILES += [{"data": b"\1\0\2"}, {"data": b""}, {"speed": 1}, {"width": 1}, {"riff": b"RIFX"}]


@pytest.mark.parametrize("content", [*(wav(**file) for file in FILES), wav()[:36], b"hello", b""], ids=repr)
def test_wav_files(content):
    assert_alike("decode_wav", content)


@pytest.mark.parametrize("channels", [-2, -1, 0, 1, 2, 3])
@pytest.mark.parametrize("samples", [-5, -1, 0, 1, 5])
def test_wanted_channels_and_samples(channels, samples):
    content = wav(channels=2, data=np.arange(-3, 3, dtype="<i2").tobytes())
    assert_alike("decode_wav", content, channels, samples)


@pytest.mark.parametrize("values", [[], [0, 1, -1, 0.5], [2, -2, 1e-9], [0.5 / 32768, -0.5 / 32768, 1.5 / 32768]])
@pytest.mark.parametrize("channels", [0, 1, 2])
@pytest.mark.parametrize("rate", [0, 1, 44100])
def test_encoded_audio_is_the_same_bytes(values, channels, rate):
    audio = np.repeat(np.array(values, np.float32)[:, np.newaxis], channels, axis=1)
    content = assert_alike("encode_wav", audio, rate)
    if content is not None:
        assert_alike("decode_wav", content)


def test_audio_that_is_not_a_number_or_not_finite():
    assert_alike("encode_wav", np.float32([[np.nan], [np.inf], [-np.inf]]), 1)
    assert_alike("encode_wav", np.float32([1.0]), 1)


# Images ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def photos():
    """Return photos as files: JPEG with and without downsampled colours, and PNG. TensorFlow encodes them."""
    pytest.importorskip("simplejpeg")
    rng = np.random.default_rng(0)
    coarse = np.kron(rng.integers(0, 200, (6, 8, 3)), np.ones((8, 8, 1), int))[:47, :61]
    pixels = (coarse + rng.integers(0, 50, (47, 61, 3))).astype(np.uint8)
    return theirs(
        lambda lib: {
            "full": lib.tf.io.encode_jpeg(pixels, chroma_downsampling=False),
            "downsampled": lib.tf.io.encode_jpeg(pixels),
            "png": lib.tf.io.encode_png(pixels),
        }
    )


OPTIONS = [{}, {"channels": 1}, {"ratio": 2}, {"ratio": 4}, {"dct_method": "INTEGER_ACCURATE"}]
WINDOWS = [(0, 0, 47, 61), (0, 0, 1, 1), (5, 7, 9, 11), (3, 3, 9, 9), (10, 0, 2, 16)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_cropped_jpeg(photos, options):
    for window in WINDOWS:
        assert_alike("decode_and_crop_jpeg", photos["full"], window, **options)


def test_cropped_jpeg_with_downsampled_colours(photos):
    """TensorFlow upscales the colours of the window alone, so only the columns at its edges may differ."""
    content = photos["downsampled"]
    for window in WINDOWS:
        ours = io.decode_and_crop_jpeg(content, window)
        expected = theirs(lambda lib, window=window: lib.tf.io.decode_and_crop_jpeg(content, window))
        assert ours.shape == expected.shape
        assert np.array_equal(ours[:, 1:-1], expected[:, 1:-1])
        assert np.array_equal(ours, io.decode_jpeg(content)[window[0] :, window[1] :][: window[2], : window[3]])
        assert_alike("decode_and_crop_jpeg", content, window, fancy_upscaling=False)


OUTSIDE = [(0, 0, 0, 1), (-1, 0, 1, 1), (0, 0, 48, 1), (47, 0, 1, 1), (0, 61, 1, 1), (0, 0, 47, 62), (0, 0, 1)]


def test_windows_outside_the_image(photos):
    for window in [*OUTSIDE, (0.0, 0, 1, 1)]:
        assert assert_alike("decode_and_crop_jpeg", photos["downsampled"], window) is None


def test_files_that_are_not_jpeg(photos):
    for content in (photos["png"], b"", photos["downsampled"][:200]):
        assert assert_alike("decode_and_crop_jpeg", content, (0, 0, 1, 1)) is None


# Files ----------------------------------------------------------------------------------------------------------------


def test_files(tmp_path):
    ours, other = (str(tmp_path / name / "new" / "a") for name in ("ours", "theirs"))

    def written_and_read(lib):
        lib.tf.io.write_file(other, lib.tf.io.read_file(ours))
        return Path(other).read_bytes()

    for content in (b"abc", b"", b"\0\xff"):
        io.write_file(ours, content)
        assert theirs(written_and_read, Path(ours).read_bytes()) == io.read_file(ours) == content
    for path in (str(tmp_path), str(tmp_path / "nothing")):
        assert assert_alike("read_file", path) is None
    assert assert_alike("write_file", str(tmp_path), b"abc") is None


# Compression ----------------------------------------------------------------------------------------------------------


def test_snappy_streams_are_those_of_tf_data(tmp_path):
    pytest.importorskip("cramjam")
    records = [b"", b"abc" * 100_000, *(b"%d" % i * 1000 for i in range(200))]  # several blocks
    path = str(tmp_path / "a.tfrecord")
    with io.TFRecordWriter(path, "SNAPPY") as writer:
        writer.write_all(records)

    def check(lib):
        assert list(lib.TFRecordDataset(path, "SNAPPY").as_numpy_iterator()) == records

    theirs(check, list(TFRecordDataset(path, "SNAPPY")))

    def snapshots(lib):
        dataset = lib.from_tensor_slices(records).snapshot(str(tmp_path / "snapshot"), compression="SNAPPY")
        assert len(list(dataset)) == len(records)
        return [file.read_bytes() for file in (tmp_path / "snapshot").rglob("*.snapshot")]

    files = []
    for content in theirs(snapshots):
        files.append(tmp_path / str(len(files)))
        files[-1].write_bytes(content)
    found = list(TFRecordDataset(files, "SNAPPY"))
    assert len(found) == 2 * len(records)  # it also writes one that describes each

"""Tests of Examples in JSON and in protobuf's text format. tests/oracle compares JSON with TensorFlow's."""

import numpy as np
import pytest
from google.protobuf import json_format, text_format

from dataset import io
from dataset.errors import ParseError

RECORD = io.encode_example({"a": [1, -(2**62)], "b": [0.5, np.inf], "c": [b"\xff\0", "ü"], "d": np.array([], np.int64)})
FORMS = {
    "json": (io.encode_json_example, io.decode_json_example, json_format.MessageToJson),
    "text": (io.encode_text_example, io.decode_text_example, text_format.MessageToString),
}


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def form(request):
    return request.param


def test_what_was_written_here_and_by_protobuf_is_read(form):
    encode, decode, write = form
    text = encode(RECORD)
    assert isinstance(text, str)
    assert decode(text) == decode(text.encode()) == decode(write(io.Example.FromString(RECORD))) == RECORD
    decoded = decode([[text, encode(b"")]])
    assert decoded.shape == (1, 2)
    assert decoded.tolist() == [[RECORD, b""]]
    with pytest.raises(ParseError, match=r"the text at \(1,\) can't be parsed as an Example"):
        decode([text, "}"])


@pytest.mark.parametrize("text", ["}", "[" * 100_000, "features {" * 100_000, b"\xff", '{"x": 1}', "x: 1"])
def test_other_text_is_refused(form, text):
    with pytest.raises(ParseError, match="can't be parsed as an Example"):
        form[1](text)


def test_other_values_are_refused(form):
    encode, decode, _ = form
    with pytest.raises(ParseError, match=r"the bytes \(length 5\) can't be parsed as a tf.train.Example"):
        encode(b"hello")
    with pytest.raises(TypeError, match="serialized must be bytes, got str"):
        encode("hello")
    with pytest.raises(TypeError, match="expected text, got"):
        decode(3)

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


@pytest.mark.parametrize("form", FORMS)
def test_what_was_written_is_read(form):
    encode, decode, _ = FORMS[form]
    text = encode(RECORD)
    assert isinstance(text, str)
    assert decode(text) == decode(text.encode()) == RECORD
    assert decode(encode(b"")) == b""


@pytest.mark.parametrize("form", FORMS)
def test_what_protobuf_writes_is_read(form):
    _, decode, write = FORMS[form]
    assert decode(write(io.Example.FromString(RECORD))) == RECORD


@pytest.mark.parametrize("form", FORMS)
def test_several_texts_keep_their_shape(form):
    encode, decode, _ = FORMS[form]
    text = encode(RECORD)
    decoded = decode([[text, encode(b"")]])
    assert decoded.shape == (1, 2)
    assert decoded.tolist() == [[RECORD, b""]]
    with pytest.raises(ParseError, match=r"the text at \(1,\) can't be parsed as an Example"):
        decode([text, "}"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", ["}", "[" * 100_000, "features {" * 100_000, b"\xff", '{"x": 1}', "x: 1"])
def test_other_text_is_refused(form, text):
    with pytest.raises(ParseError, match="can't be parsed as an Example"):
        FORMS[form][1](text)


@pytest.mark.parametrize("form", FORMS)
def test_other_values_are_refused(form):
    encode, decode, _ = FORMS[form]
    with pytest.raises(ParseError, match=r"the bytes \(length 5\) can't be parsed as a tf.train.Example"):
        encode(b"hello")
    with pytest.raises(TypeError, match="serialized must be bytes, got str"):
        encode("hello")
    with pytest.raises(TypeError, match="expected text, got"):
        decode(3)

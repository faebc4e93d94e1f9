"""Tests of record parsing and content type detection, with arbitrary bytes."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataset import io
from dataset.commands.display.content_type import look_of
from dataset.commands.display.feature_summary import RecordsSummary
from dataset.commands.display.record_content import EXAMPLE, OTHER, SEQUENCE_EXAMPLE, read_message
from dataset.commands.display.terminal import json_text, printable
from dataset.commands.further.head import _Words
from support.example_strategies import damaged
from support.sequence_examples import sequence_example

EXAMPLE_BYTES = io.encode_example({"a": [1, -2], "b": b"text", "c": np.array([0.5], np.float32)})
SEQUENCE_BYTES = sequence_example({"a": [1]}, b=[[b"x"]])


def everything(record):
    """Do everything that commands do with a record."""
    message = read_message(record)
    summary = RecordsSummary()
    summary.add(record)
    for feature in summary.features():
        feature.content()
        json_text(feature.json())
    for full in (True, False):
        text = json_text(_Words(full=full, lists=False).line(message, record))
        assert text.isprintable()
    return message


@given(st.binary(max_size=200) | damaged(st.sampled_from([EXAMPLE_BYTES, SEQUENCE_BYTES])))
@example(b"\x0a\x00")
@example(b"\x0b" * 150)
@example(EXAMPLE_BYTES[:-1])
def test_any_bytes_are_something(record):
    assert everything(record).kind in {EXAMPLE, SEQUENCE_EXAMPLE, OTHER}


def test_a_name_that_is_no_utf8_spoils_itself_only():
    record = EXAMPLE_BYTES.replace(b"\x01b\x12", b"\x01\xff\x12")
    message = everything(record)
    assert message.kind == EXAMPLE
    assert list(message.features) == ["a", "c", "\udcff"]
    assert printable("\udcff") == "\\udcff"


def test_a_damaged_feature_spoils_itself_only():
    record = EXAMPLE_BYTES.replace(b"\x1a", b"\x1b")
    message = everything(record)
    kinds = {name: values.kind for name, values in message.features.items()}
    assert kinds == {"a": "damaged", "b": "bytes", "c": "float"}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"", "text"),
        (b"cat\n", "text"),
        ("größe".encode(), "text"),
        ("ö".encode() * 40_000, "text"),
        (b"a" * 65_535 + "ö".encode(), "text"),
        (b"\xff", "raw"),
        (b"a\x00", "raw"),
        (b"\x1b[31m", "raw"),
        (b"BM and other words", "text"),
        (b"RIFF\0\0\0\0WAVEfmt ", "wav"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "webp"),
        (b"\x93NUMPY\x01\x00", "npy"),
        (b"\xff\xd8\xff", "jpeg"),
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"GIF89a", "gif"),
    ],
)
def test_what_bytes_look_like(value, kind):
    assert look_of(value).kind == kind


@given(
    st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM" + bytes(12) + b"\x28\0\0\0"]), st.binary()
)
def test_a_broken_picture_has_some_size(magic, rest):
    look = look_of(magic + rest)
    assert look.width >= 0
    assert look.height >= 0

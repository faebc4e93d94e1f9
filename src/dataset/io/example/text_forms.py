"""JSON and protobuf's text format of a tf.train.Example: conversion to and from its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf import json_format, text_format

from dataset.errors import ParseError
from dataset.io.example.messages import Example
from dataset.io.example.reference import parsed


def decode_json_example(json_examples: Any) -> Any:
    r"""Convert Examples from JSON to their bytes, like ``tf.io.decode_json_example``.

    The JSON is protobuf's, as ``encode_json_example`` and ``json_format.MessageToJson`` write it: int64 values may be
    strings, and bytes are in base64. The order of the features in the bytes does not depend on that in the text.

    Args:
        json_examples: one text, as ``str`` or ``bytes``, or an array or nested lists of texts.

    Returns:
        The bytes of the message; for several texts an object array of their shape.

    Raises:
        ParseError: a text is not JSON, or not an Example.
        TypeError: the argument is not text.

    >>> decode_json_example('{"features": {"feature": {"a": {"int64List": {"value": ["1", 2]}}}}}')
    b'\n\r\n\x0b\n\x01a\x12\x06\x1a\x04\n\x02\x01\x02'
    """
    return _decoded("decode_json_example", json_examples, json_format.Parse)


def encode_json_example(serialized: bytes) -> str:
    """Convert an Example from its bytes to JSON, in one line.

    Args:
        serialized: the bytes of the message.

    Raises:
        ParseError: the bytes are not an Example.
        TypeError: ``serialized`` is not bytes.

    >>> from dataset.io import encode_example
    >>> encode_json_example(encode_example({"label": 3, "name": "cat"}))
    '{"features": {"feature": {"label": {"int64List": {"value": ["3"]}}, "name": {"bytesList": {"value": ["Y2F0"]}}}}}'
    """
    message = parsed(Example, serialized, "encode_json_example()", "tf.train.Example")
    return str(json_format.MessageToJson(message, indent=None, sort_keys=True))


def decode_text_example(text: Any) -> Any:
    """Convert Examples from protobuf's text format to their bytes, in a deterministic order.

    Args:
        text: one text, as ``str`` or ``bytes``, or an array or nested lists of texts.

    Returns:
        The bytes of the message; for several texts an object array of their shape.

    Raises:
        ParseError: a text is not an Example.
        TypeError: the argument is not text.

    >>> from dataset import io
    >>> record = decode_text_example('features { feature { key: "label" value { int64_list { value: 3 } } } }')
    >>> record == io.encode_example({"label": 3})
    True
    """
    return _decoded("decode_text_example", text, text_format.Parse)


def encode_text_example(serialized: bytes) -> str:
    """Convert an Example from its bytes to protobuf's text format, as ``print`` shows messages.

    Args:
        serialized: the bytes of the message.

    Raises:
        ParseError: the bytes are not an Example.
        TypeError: ``serialized`` is not bytes.

    >>> from dataset.io import encode_example
    >>> " ".join(encode_text_example(encode_example({"label": 3})).split())
    'features { feature { key: "label" value { int64_list { value: 3 } } } }'
    """
    message = parsed(Example, serialized, "encode_text_example()", "tf.train.Example")
    return str(text_format.MessageToString(message))


def _decoded(function: str, texts: Any, parse: Callable[[str, Any], Any]) -> Any:
    """Convert each text to the bytes of its message."""
    array = np.asarray(texts, object)
    records = np.empty(array.shape, object)
    for place, text in np.ndenumerate(array):
        if not isinstance(text, bytes | str):
            raise TypeError(f"{function}(): expected text, got {text!r:.100} of type {type(text).__name__}")
        message = Example()
        try:
            parse(text.decode() if isinstance(text, bytes) else text, message)
        except (json_format.ParseError, text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
            where = f" at {place}" if place else ""
            raise ParseError(f"{function}(): the text{where} can't be parsed as an Example: {error}") from None
        records[place] = message.SerializeToString(deterministic=True)
    return records[()]

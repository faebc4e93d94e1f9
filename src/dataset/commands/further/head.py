"""``head``: print the first records as lines of JSON, or write one image of a record as a PNG file (picture.py)."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dataset.commands.command_errors import DAMAGED, GOOD, CommandError
from dataset.commands.common_options import Subparsers, add_file_command, count, index
from dataset.commands.display.content_type import IMAGES, RAW, TEXT, look_of, text_of
from dataset.commands.display.picture import add_picture_options, check_picture_options, save_picture
from dataset.commands.display.record_content import OTHER, SEQUENCE_EXAMPLE, Message, Values, read_message
from dataset.commands.display.terminal import complain, counted, json_text, printable, remark, say, say_json
from dataset.commands.inputs import Input, damage_json, open_inputs
from dataset.errors import DataLossError

COUNT = 5
LONG = 8  # of a longer list, only this many values are shown
LONG_TEXT = 200  # characters
START_BYTES = 8  # how many bytes of binary values are shown, in hex

MORE = f"""\
Each record is printed as one line with its features by name. A feature with one
value is shown as that value, other features as lists. If there are more than {LONG}
values, their count and the first values are shown. Bytes that are text are shown
as text, an image by its size, and other bytes by their length and their start.
--full shows all values and complete texts. A SequenceExample is shown as an object
with context and feature_lists. Any other record is shown as bytes. With --json,
features are always lists.

With --image, the given feature is written as a PNG file. It must be a JPEG, PNG,
GIF or BMP image or, with --shape, raw pixels of one byte each. This needs the
extra "images" of the library.

examples:
  python -m dataset tfrecord head -n 2 train.tfrecord
  python -m dataset tfrecord head train.tfrecord --record 7 \\
      --image image/encoded --output seven.png
  python -m dataset tfrecord head mnist.tfrecord --image pixels --shape 28 28 \\
      --output digit.png

status: 0, or 1 if a file is damaged before the last requested record, or 2 if a
file is missing or of another kind
"""


def add(commands: Subparsers) -> None:
    """Declare the command and its arguments."""
    parser = add_file_command(commands, "head", run, "show the first records, or write an image in one of them", MORE)
    parser.add_argument(
        "-n", type=count, default=COUNT, metavar="N", help="number of records of each file (%(default)s)"
    )
    parser.add_argument("--full", action="store_true", help="show all values and complete texts")
    parser.add_argument("--record", type=index, metavar="I", help="show only this record of each file, counted from 0")
    add_picture_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    check_picture_options(arguments)
    inputs = open_inputs(arguments)
    if arguments.image is not None:
        return _picture(arguments, inputs)
    documents, damages = [], []
    for file in inputs:
        if len(inputs) > 1 and not arguments.json:
            remark(f"==> {printable(file.path)} <==")  # on standard error, to keep the JSON lines free of it
        shown, damage = _show(arguments, file)
        documents.append({"path": file.path, "records": shown, "damage": damage_json(damage)})
        damages.append(damage)
    if arguments.json:
        say_json({"files": documents})
    for damage in damages:
        if damage is not None:
            complain(str(damage))
    return DAMAGED if any(damages) else GOOD


def _show(arguments: argparse.Namespace, file: Input) -> tuple[list[Any], DataLossError | None]:
    """Print the records of one file, or return them for the JSON document."""
    shown: list[Any] = []
    words = _Words(full=arguments.full, lists=arguments.json)
    try:
        for number, record in _chosen(arguments, file):
            message = read_message(record)
            if arguments.json:
                shown.append(
                    {"record": number, "bytes": len(record), "kind": message.kind, **words.document(message, record)}
                )
            else:
                say(json_text(words.line(message, record)))
    except DataLossError as damage:
        return shown, damage
    return shown, None


def _chosen(arguments: argparse.Namespace, file: Input) -> Iterator[tuple[int, bytes]]:
    """Yield the requested records with their numbers."""
    first = 0 if arguments.record is None else arguments.record
    stop = arguments.n if arguments.record is None else first + 1
    number = 0
    with file.open() as records:
        while number < stop and (found := records.records(stop - number)) is not None:
            for i in range(max(first - number, 0), len(found)):
                yield number + i, found[i]
            number += len(found)
    if arguments.record is not None and number < stop:
        raise CommandError(f"{file.path}: record {first} does not exist; the file has {counted(number, 'record')}")


def _picture(arguments: argparse.Namespace, inputs: list[Input]) -> int:
    if len(inputs) != 1:
        raise CommandError(f"--image needs exactly one file, got {len(inputs)}")
    if arguments.record is None:
        arguments.record = 0
    try:
        for number, record in _chosen(arguments, inputs[0]):
            save_picture(arguments, record, f"{inputs[0].path}, record {number}")
    except DataLossError as damage:
        complain(str(damage))
        return DAMAGED
    return GOOD


class _Words:
    """Converter of records to JSON values."""

    def __init__(self, *, full: bool, lists: bool) -> None:
        self._full = full
        self._lists = lists  # whether a single value is shown as a list

    def line(self, message: Message, record: bytes) -> Any:
        """Return the value that is printed for a record."""
        if message.kind == OTHER:
            return self._bytes(record)
        document = self.document(message, record)
        if message.kind == SEQUENCE_EXAMPLE:
            return {"context": document["features"], "feature_lists": document["feature_lists"]}
        return document["features"]

    def document(self, message: Message, record: bytes) -> dict[str, Any]:
        """Return the content of a record, with the keys described in docs/commands.md."""
        if message.kind == OTHER:
            return {"content": self._bytes(record)}
        document = {"features": {name: self._values(values) for name, values in message.features.items()}}
        if message.kind == SEQUENCE_EXAMPLE:
            document["feature_lists"] = {name: self._steps(steps) for name, steps in message.lists.items()}
        return document

    def _steps(self, steps: list[Values]) -> Any:
        return self._short(steps, lambda some: [self._values(step) for step in some])

    def _values(self, values: Values) -> Any:
        if values.kind in {"none", "damaged"}:
            return None if values.kind == "none" else {"damaged": True}
        if len(values.values) == 1 and not self._lists:
            return self._plain(values)[0]
        return self._short(values.values, lambda some: self._plain(Values(values.kind, some)))

    def _short(self, values: Any, show: Any) -> Any:
        if self._full or len(values) <= LONG:
            return show(values)
        return {"values": len(values), "first": show(values[:LONG])}

    def _plain(self, values: Values) -> list[Any]:
        if values.kind == "bytes":
            return [self._bytes(value) for value in values.values]
        return [_float(value) for value in values.values] if values.kind == "float" else list(values.values)

    def _bytes(self, value: bytes) -> Any:
        look = look_of(value)
        if look.kind in IMAGES:
            return {"image": look.kind, "width": look.width or None, "height": look.height or None, "bytes": len(value)}
        text = None if look.kind != TEXT else text_of(value, len(value)) if self._full else text_of(value)
        if text is None:
            kind = {} if look.kind in {RAW, TEXT} else {"looks": look.kind}
            return {**kind, "bytes": len(value), "start": value[:START_BYTES].hex()}
        if self._full or len(text) <= LONG_TEXT:
            return text
        return {"text": text[:LONG_TEXT] + "...", "bytes": len(value)}


def _float(value: float) -> float | str:
    """Return the shortest number that rounds to this float32, or protobuf's JSON names for NaN and infinity."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(str(np.float32(value)))

"""Writing a feature of a record as a PNG file, for ``head --image``."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from dataset.commands.command_errors import CommandError
from dataset.commands.common_options import count
from dataset.commands.display.content_type import look_of
from dataset.commands.display.record_content import Message, Values, read_message
from dataset.commands.display.terminal import counted, printable, remark
from dataset.commands.outputs import add_force, check_new
from dataset.io.files.atomic import AtomicFile
from dataset.io.image.codecs import decode_image, encode_png

DECODED = {"jpeg", "png", "gif", "bmp"}
NAMES_SHOWN = 10


def add_picture_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for writing an image."""
    parser.add_argument("--image", metavar="FEATURE", help="write this feature as a PNG file instead")
    parser.add_argument("--output", metavar="FILE.png", help="the file to write, with --image")
    parser.add_argument(
        "--shape", type=count, nargs="+", metavar="H W [C]", help="height, width and channels of raw pixels"
    )
    add_force(parser)


def check_picture_options(arguments: argparse.Namespace) -> None:
    """Raise CommandError for options that cannot be combined, before a file is read."""
    if arguments.image is None:
        for option in ("output", "shape", "force"):
            if getattr(arguments, option):
                raise CommandError(f"--{option} requires --image with the name of a feature")
        return
    if arguments.json:
        raise CommandError("--image cannot be combined with --json, because it prints no records")
    if not arguments.output:
        raise CommandError("--image needs --output FILE.png")
    shape = arguments.shape
    if shape and (len(shape) not in {2, 3} or (len(shape) == 3 and shape[2] not in {1, 3, 4})):
        got = " ".join(map(str, shape))
        raise CommandError(f"--shape must be height, width and optionally channels (1, 3 or 4), got {got}")
    check_new(arguments, [arguments.output], [])


def save_picture(arguments: argparse.Namespace, record: bytes, place: str) -> None:
    """Write the image in a record to the output file.

    Args:
        arguments: the arguments of the command.
        record: the bytes of the record.
        place: the file and the number of the record, for messages.
    """
    values = _feature(read_message(record), arguments.image, place)
    where = f"{place}, feature {arguments.image!r}"
    try:
        pixels = _raw_pixels(values, arguments.shape, where) if arguments.shape else _decoded(values, where)
        content = encode_png(pixels)
    except (ValueError, ImportError) as error:
        raise CommandError(f"{where}: {error}") from None
    with AtomicFile(arguments.output) as target:
        target.file.write(content)
    height, width = pixels.shape[:2]
    remark(f"{printable(arguments.output)}: {width} x {height} pixels from {printable(where)}")


def _feature(message: Message, name: str, place: str) -> Values:
    """Return the values of a feature, or of the first step of a feature list."""
    if name in message.features:
        found = message.features[name]
    elif message.lists.get(name):
        found = message.lists[name][0]
    else:
        names = [*message.features, *message.lists]
        shown = ", ".join(map(repr, names[:NAMES_SHOWN])) + (", ..." if len(names) > NAMES_SHOWN else "")
        raise CommandError(f"{place}: feature {name!r} does not exist; the features are: {shown or 'none'}")
    if not len(found.values):
        raise CommandError(f"{place}: feature {name!r} has no values")
    return found


def _decoded(values: Values, where: str) -> Any:
    if values.kind != "bytes":
        raise CommandError(f"{where}: {values.kind} values are not an image; pass --shape H W [C] if they are pixels")
    content = values.values[0]
    if look_of(content).kind not in DECODED:
        raise CommandError(
            f"{where}: {counted(len(content), 'byte')} that are not a JPEG, PNG, GIF or BMP image; "
            "pass --shape H W [C] if they are raw pixels"
        )
    pixels = decode_image(content, expand_animations=False)
    return pixels[..., [0, 0, 0, 1]] if pixels.shape[2] == 2 else pixels  # gray with transparency


def _raw_pixels(values: Values, shape: list[int], where: str) -> Any:
    """Return bytes, or integers from 0 to 255, as pixels."""
    if values.kind == "bytes":
        pixels = np.frombuffer(values.values[0], np.uint8)
    elif values.kind == "int64":
        numbers = np.array(values.values, np.int64)
        if numbers.min() < 0 or numbers.max() > 255:
            raise CommandError(f"{where}: pixels must be from 0 to 255, got {numbers.min()} to {numbers.max()}")
        pixels = numbers.astype(np.uint8)
    else:
        raise CommandError(f"{where}: {values.kind} values are not pixels")
    height, width, channels = (*shape, 1)[:3]
    if len(pixels) != height * width * channels:
        words = f"{height} x {width} x {channels} pixels need {height * width * channels:,} bytes"
        raise CommandError(f"{where}: --shape does not fit: {words}, got {len(pixels):,}")
    return pixels.reshape(height, width, channels)

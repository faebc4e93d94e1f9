"""Options that several commands share, and parsers for their values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TypeAlias

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # it has no public name

COMPRESSIONS = {"none": "", "gzip": "GZIP", "zlib": "ZLIB", "zstd": "ZSTD"}
UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY_UNITS = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def add_command(
    commands: Subparsers, name: str, run: Callable[[argparse.Namespace], int], summary: str, more: str
) -> argparse.ArgumentParser:
    """Add a command with its help: a line of summary, and more text that is printed without reformatting."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_file_command(
    commands: Subparsers,
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
    more: str,
    *,
    nargs: str | int = "+",
    may_be_compressed: bool = True,
    writes: bool = False,
) -> argparse.ArgumentParser:
    """Add a command that reads TFRecord files, with their names, their compression and the option for JSON output.

    If it also ``writes`` files, ``--compression`` is that of the new ones.
    """
    parser = add_command(commands, name, run, summary, more)
    pattern = "" if nargs == 1 else ", or a pattern such as 'train-*' for several files"
    parser.add_argument("files", nargs=nargs, metavar="FILE", help=f"a TFRecord file{pattern}")
    if may_be_compressed:
        parser.add_argument(
            "--input-compression" if writes else "--compression",
            dest="input_compression",
            type=compression,
            metavar="KIND",
            help="compression of the files: none, gzip, zlib or zstd; by default detected from each file's first bytes",
        )
    add_json(parser)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option for JSON output."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def compression(text: str) -> str:
    """Return the library's name of a compression."""
    try:
        return COMPRESSIONS[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"must be none, gzip, zlib or zstd, got {text!r}") from None


def count(text: str) -> int:
    """Parse a positive integer. Commas and underscores between digits are allowed."""
    digits = text.replace(",", "").replace("_", "")
    if not re.fullmatch(r"[0-9]{1,18}", digits) or not int(digits):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(digits)


def index(text: str) -> int:
    """Parse a non-negative integer."""
    return 0 if re.fullmatch("0+", text) else count(text)


def byte_count(text: str) -> int:
    """Parse a number of bytes such as 1500, 64MB or 1.5GiB.

    >>> byte_count("64MB"), byte_count("1.5 kib")
    (64000000, 1536)
    """
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([KMGT]?I?)B?", text.strip().upper())
    unit = (UNITS | BINARY_UNITS).get(found[2]) if found else None
    if found is None or unit is None or (number := int(float(found[1]) * unit)) < 1:
        raise argparse.ArgumentTypeError(f"must be a number of bytes such as 1500, 64MB or 1.5GiB, got {text!r}")
    return number

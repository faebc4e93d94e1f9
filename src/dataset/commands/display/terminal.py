"""Terminal output: text, numbers, sizes, tables, text that is safe to print, and JSON.

All messages of the commands are ASCII. Text from files or paths is passed through ``printable`` first.
"""

from __future__ import annotations

import json
import sys
from typing import Any

UNITS = ["kB", "MB", "GB", "TB", "PB"]


def say(*lines: str) -> None:
    """Write lines to standard output; without one, an empty line."""
    sys.stdout.write("\n".join(lines) + "\n")


def complain(words: str) -> None:
    """Write an error message to standard error."""
    sys.stdout.flush()
    sys.stderr.write(f"error: {printable(words)}\n")


def remark(line: str) -> None:
    """Write a line that is not an error to standard error."""
    sys.stdout.flush()
    sys.stderr.write(line + "\n")


def number(value: int) -> str:
    """Format a number with thousands separators.

    >>> number(60000)
    '60,000'
    """
    return f"{value:,}"


def counted(count: int, noun: str) -> str:
    """Return a number and its noun.

    >>> counted(1, "record"), counted(2000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def size(count: float) -> str:
    """Format a number of bytes with a unit, in powers of 1,000.

    >>> size(841), size(50_460_000), size(999_999)
    ('841 B', '50.5 MB', '1.00 MB')
    """
    if count < 1000:
        return f"{count:.0f} B" if count == int(count) else f"{count:.1f} B"
    value = count
    for unit in UNITS:
        value /= 1000
        if value < 999.5 or unit == UNITS[-1]:
            break
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def printable(text: str) -> str:
    r"""Escape everything that a terminal would not display as is: control characters and changes of text direction.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def json_text(value: Any) -> str:
    r"""Return JSON on one line for the terminal: letters are not escaped if the terminal can display them.

    >>> json_text({"text": "a\x9b"})
    '{"text": "a\\u009b"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return "".join(c if c.isprintable() and _can_show(c, encoding) else json.dumps(c)[1:-1] for c in text)


def _can_show(character: str, encoding: str) -> bool:
    return character.isascii() or bool(character.encode(encoding, "ignore"))


def say_json(value: Any) -> None:
    """Write a JSON document to standard output, in ASCII."""
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")

r"""Page runner: runs the Python blocks of a page of docs/ and compares their output with the output on the page.

The blocks of a page are one program, run from top to bottom in an empty directory. A block may have a file name as its
title, ``python title="train.py"``, which tracebacks and plans then show. A ``text`` block directly after it shows

    text title="Output"                        the complete output
    text title="Output; numbers vary"          the output; digits and the number of spaces may differ
    text title="Output, in part; numbers vary" some lines of the output, in order
    text title="Error"                         the exception that the block raises, including notes

Pictures (``.svg``) that the blocks write must equal the files of the same name in docs/assets.

``python tests/support/pages.py docs/index.md`` runs a page; ``--write`` rewrites the pictures and the blocks with
complete output.
"""

import argparse
import contextlib
import io
import itertools
import os
import re
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

ASSETS = Path(__file__).parents[2] / "docs" / "assets"
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"\n]*)\")?[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?(?: (?:ns|us|ms|s|B|kB|MB|GB)\b)?")
ALL, MASKED, PART, ERROR = "Output", "Output; numbers vary", "Output, in part; numbers vary", "Error"


@dataclass
class Block:
    """A fenced block: its range in the page, and its text."""

    language: str
    title: str
    text: str
    whole: tuple[int, int]
    inner: tuple[int, int]


def blocks_of(page):
    """Return all fenced blocks of a page."""
    return [Block(found[1], found[2] or "", found[3], found.span(), found.span(3)) for found in FENCE.finditer(page)]


def with_outputs(page):
    """Return each Python block with the text block directly after it, or None."""
    blocks = blocks_of(page)
    for block, after in itertools.zip_longest(blocks, blocks[1:]):
        if block.language == "python":
            is_output = after and after.language == "text" and not page[block.whole[1] : after.whole[0]].strip()
            yield block, after if is_output else None


def run(block, names, page_name):
    """Return what a block prints, the text of the exception that it raises, and its traceback."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(block.text, block.title or page_name, "exec"), names)
        except Exception as error:
            return printed.getvalue(), "".join(traceback.format_exception_only(error)), traceback.format_exc()
    return printed.getvalue(), "", ""


def shows(block, printed):
    """Return whether the output matches a block, as its title specifies."""
    if block.title in {ALL, ERROR}:
        return _lines(block.text) == _lines(printed)
    got, shown = ([_masked(line) for line in _lines(text)] for text in (printed, block.text))
    if block.title == MASKED:
        return got == shown
    rest = iter(got)
    return all(line in rest for line in shown)


def _lines(text):
    return [line.rstrip() for line in text.strip("\n").split("\n")]


def _masked(line):
    return " ".join(NUMBER.sub("#", line).split())


def check(path, *, write=False):
    """Run a page in the working directory; return the first error, or None."""
    page, names, written = path.read_text(encoding="utf-8"), {"__name__": "__main__"}, []
    for block, output in with_outputs(page):
        printed, error, trace = run(block, names, path.name)
        if error and (output is None or output.title != ERROR):
            return f"a block fails:\n{block.text}\n{trace}"
        if output is None:
            continue
        got = error if output.title == ERROR else printed
        if output.title not in {ALL, MASKED, PART, ERROR}:
            return f"the title {output.title!r} does not say what this block shows:\n{output.text}"
        if write and output.title != PART:
            written.append((output.inner, "\n".join(_lines(got)) + "\n"))
        elif not shows(output, got):
            return f"the page shows\n{output.text}\nbut what comes is\n{got}\nof the block\n{block.text}"
    for (start, end), text in reversed(written):
        page = page[:start] + text + page[end:]
    if write:
        path.write_text(page, encoding="utf-8")
    return check_pictures(write=write)


def check_pictures(*, write=False):
    """Return an error about the pictures in the working directory, or None."""
    for drawn in Path().glob("*.svg"):
        stored = ASSETS / drawn.name
        if write:
            stored.write_text(drawn.read_text(encoding="utf-8"), encoding="utf-8")
        elif not stored.is_file() or stored.read_text(encoding="utf-8") != drawn.read_text(encoding="utf-8"):
            return f"{stored} is not what the page draws"
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--write", action="store_true", help="write what is printed into the page")
    arguments = parser.parse_args()
    arguments.page = arguments.page.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        problem = check(arguments.page, write=arguments.write)
        os.chdir("/")
    sys.exit(problem and f"{arguments.page}: {problem}")

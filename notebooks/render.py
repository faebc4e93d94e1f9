"""Run the notebooks and write them as pages for reading: docs/notebooks/<name>.md, pictures beside them.

    python notebooks/render.py            # all of them
    python notebooks/render.py images     # this one

The notebooks are stored without outputs; these pages are where their outputs can be read. What differs from machine to
machine without a meaning, such as paths and addresses in memory, is taken out.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from execute import ANSI, NOTEBOOKS, complaints, executed, notebooks
from nbconvert import MarkdownExporter
from PIL import Image
from traitlets.config import Config

PAGES = NOTEBOOKS.parent / "docs" / "notebooks"
TEMPLATE = """\
{%- extends 'markdown/index.md.j2' -%}
{% block stream %}
```text
{{ output.text.rstrip() }}
```
{% endblock stream %}
{% block data_text scoped %}
```text
{{ output.data['text/plain'].rstrip() }}
```
{% endblock data_text %}
"""
# The forms of an output, the best first. HTML is not among them: a picture and its text say the same on any page.
FORMS = ["text/markdown", "image/svg+xml", "image/png", "text/plain"]
WITHOUT_MEANING = [
    (ANSI, ""),
    (re.compile(r"[^\s\"'(]*/(?:src|site-packages)/(?=\w+/)"), ""),  # where a library is installed
    (re.compile(r"[^\s\"'(]*/ipykernel_\d+/"), ""),
    (re.compile(r'(?<=File ")\d+\.py(?=")'), "<cell>"),  # how Python's own tracebacks call a cell
    (re.compile(r"/[^\s\"'()]*/notebook-\w+/"), ""),  # the folder that it ran in
    (re.compile(r"\bat 0x[0-9a-fA-F]+"), "at 0x..."),
]
COLOURS = 128  # of a picture; the curves and digits in them have fewer


def main(arguments: list[str] | None = None) -> int:
    """Renders the notebooks that are named; the exit status is 1 if one complains."""
    parser = argparse.ArgumentParser(description="Run notebooks and write them to docs/notebooks.")
    known = [path.stem for path in notebooks()]
    parser.add_argument("names", nargs="*", help=f"of notebooks (default: all): {', '.join(known)}")
    names = parser.parse_args(arguments).names or known
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no such notebook: {', '.join(unknown)}; there are {', '.join(known)}")
    status = 0
    for name in names:
        notebook = executed(NOTEBOOKS / f"{name}.ipynb")
        for complaint in complaints(notebook):
            print(f"{name}: {complaint}", file=sys.stderr)
            status = 1
        write(name, *page(name, notebook))
    return status


def page(name: str, notebook: Any) -> tuple[str, dict[str, bytes]]:
    """A notebook that was run, as Markdown, and the pictures in it by their paths beside the page."""
    settings = Config()
    settings.NbConvertBase.display_data_priority = FORMS
    settings.ExtractOutputPreprocessor.output_filename_template = "{cell_index}-{index}{extension}"
    exporter = MarkdownExporter(config=settings, raw_template=TEMPLATE)
    body, resources = exporter.from_notebook_node(_cleaned(notebook))
    pictures = {}
    for file, content in resources["outputs"].items():
        index, suffix = int(file.partition("-")[0]), Path(file).suffix
        cell = notebook.cells[index]
        place = f"{name}/{cell.id}{file.partition('-')[2].removesuffix(suffix).replace('0', '', 1)}{suffix}"
        body = re.sub(rf"!\[\w+\]\({re.escape(file)}\)", f"![{cell.id.replace('-', ' ')}]({place})", body)
        pictures[place] = _smaller(content) if suffix == ".png" else content
    return f"{_heading(name)}\n\n{_tidy(body)}", pictures


def _heading(name: str) -> str:
    return (
        f"<!-- Written by notebooks/render.py from notebooks/{name}.ipynb; change that, and run it again. -->\n"
        f"*This is `notebooks/{name}.ipynb` with its outputs. Times were measured while this page was made.*"
    )


def _cleaned(notebook: Any) -> Any:
    """A copy whose text holds nothing of the machine that it ran on, and whose links fit a page in docs/notebooks."""
    text = nbformat.writes(notebook)
    copy = nbformat.reads(text, as_version=4)
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            cell.source = linked(cell.source)
        for output in cell.get("outputs", ()):
            if "text" in output:
                output.text = _without_the_machine(output.text)
            for kind, content in output.get("data", {}).items():
                if kind != "image/png":
                    output.data[kind] = _without_the_machine(content)
    return copy


def linked(text: str) -> str:
    """Text of a notebook with its links made for a page in docs/notebooks."""
    return text.replace("](../docs/", "](../").replace(".ipynb)", ".md)")


def _without_the_machine(text: str) -> str:
    for pattern, replacement in WITHOUT_MEANING:
        text = pattern.sub(replacement, text)
    return text


def _smaller(png: bytes) -> bytes:
    """The same picture with a palette, in about a third of the bytes."""
    small = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        flat = Image.new("RGB", picture.size, "white")
        flat.paste(picture, mask=picture.convert("RGBA").getchannel("A"))
        few = flat.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(small, "PNG", optimize=True)
    return small.getvalue()


def _tidy(body: str) -> str:
    """Without blank lines that say nothing; those in code stay."""
    parts = re.split(r"(^```.*?^```$)", body, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [re.sub(r"[ \t]+$", "", re.sub(r"\n\s*\n", "\n\n", part), flags=re.MULTILINE) for part in parts[::2]]
    return "".join(parts).strip() + "\n"


def write(name: str, text: str, pictures: dict[str, bytes]) -> None:
    """Puts a page and its pictures where they belong, in place of those that were there."""
    folder = PAGES / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for place, content in pictures.items():
        (PAGES / place).write_bytes(content)
    (PAGES / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

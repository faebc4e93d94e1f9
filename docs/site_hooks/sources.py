"""The site has the Markdown of its pages beside them, for coding assistants: llms.txt links to it.

Where a page of the reference only names a class or a function, its text has the signature and the docstring.
"""

import inspect
import pydoc
import re
from pathlib import Path
from typing import Any

_ENTRY = re.compile(r"^::: ([\w.]+)\n((?: +.*\n?)*)", re.MULTILINE)
_MEMBERS = re.compile(r"members: \[(.*)\]")


def on_post_build(*, config: Any, **_: Any) -> None:
    """Called by MkDocs after the site is written."""
    docs = Path(config["docs_dir"])
    for page in docs.rglob("*.md"):
        (Path(config["site_dir"]) / page.relative_to(docs)).write_text(_ENTRY.sub(_documented, page.read_text()))


def _documented(entry: re.Match[str]) -> str:
    """Return what the page shows for ``::: name`` and its options."""
    name, options = entry.groups()
    found = pydoc.locate(name)
    listed = _MEMBERS.search(options)
    if listed is not None:
        members = [key for key in listed[1].split(", ") if hasattr(found, key)]  # attributes are in the docstring
    elif inspect.isclass(found) and "members: false" not in options:
        members = [key for key, value in vars(found).items() if key[0] != "_" and inspect.isfunction(value)]
    else:
        members = []
    return "\n".join([_text(name, found), *(_text(f"{name}.{key}", getattr(found, key)) for key in members)])


def _text(name: str, found: Any) -> str:
    try:
        full = inspect.signature(found)
        parameters = [one.replace(annotation=inspect.Parameter.empty) for one in full.parameters.values()]
        signature = str(full.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    except (TypeError, ValueError):  # of a constant, a property or an exception
        signature = ""
    return f"## `{name}{signature}`\n\n{inspect.getdoc(found)}\n"

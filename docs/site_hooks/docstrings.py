"""What the docstrings of the library need before they are pages: headings for examples, links between methods.

Docstrings stay as they read best in an editor. This is an extension of Griffe, which reads them.
"""

import re
from collections.abc import Iterator
from typing import Any

from griffe import Class, Docstring, Extension, Function, Module, Object

_EXAMPLE = re.compile(r"(?:^>>>.*\n?(?:^(?!$).*\n?)*\n?)+", re.MULTILINE)
_NAME = re.compile(r"``(?:Dataset\.)?(\w+)(?:\(\))?``")


class Docstrings(Extension):
    """Changes the text of each docstring before it is parsed."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Called once, when the whole package has been read."""
        methods = {name for name in pkg["dataset.Dataset"].all_members if not name.startswith("_")}
        for object_, docstring in _docstrings(pkg):
            text = _linked(docstring.value, methods - {object_.name} - _arguments(object_))
            docstring.value = _EXAMPLE.sub(_with_heading, text)


def _docstrings(object_: Object) -> Iterator[tuple[Object, Docstring]]:
    if object_.docstring is not None:
        yield object_, object_.docstring
    for member in object_.members.values():
        if not member.is_alias:
            yield from _docstrings(member)


def _arguments(object_: Object) -> set[str]:
    """The names that mean an argument where they stand in this docstring."""
    return {parameter.name for parameter in object_.parameters} if isinstance(object_, Function | Class) else set()


def _linked(text: str, methods: set[str]) -> str:
    """``map`` is a link to the method, in the words but not in the examples."""

    def link(name: re.Match[str]) -> str:
        return f"[{name[0]}][dataset.Dataset.{name[1]}]" if name[1] in methods else name[0]

    return "\n".join(line if line.startswith((">>>", "...")) else _NAME.sub(link, line) for line in text.split("\n"))


def _with_heading(example: re.Match[str]) -> str:
    """Without a heading Markdown would take ``>>>`` for quotes in quotes."""
    return "Examples:\n" + "".join(f"    {line}".rstrip() + "\n" for line in example[0].splitlines()) + "\n"

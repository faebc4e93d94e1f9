"""What there is to say of a plan, in words, found without running anything.

explain.py lays the words out as text, drawing/ as pictures. Characters that would show as something else, or break a
line, stand here as in Python's ``repr``, so those need not care what users call their functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dataset.plan.brief import brief_spec
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import Node, inputs_first, spec_is_static
from dataset.plan.origin import defined_at, function_name
from dataset.plan.rewriting import Fired, Missed

_ALIGNED_MAX = 60
_SPEC_MAX = 1000
_NAME_MAX = 32  # characters of a function beside its line; the title has all of it


@dataclass(frozen=True)
class Summary:
    """An operation in words.

    Attributes:
        title: the op with what tells it from others of its kind, and the user's label.
        detail: what is special about how it runs.
        count: how many elements come out; empty where only running tells.
        origin: the user's source line that made it.
        functions: the user's functions, with the source line of each.
        spec: what comes out; empty where only running tells.
    """

    title: str
    detail: str
    count: str
    origin: str
    functions: str
    spec: str


def summaries(plan: Node) -> dict[Node, Summary]:
    """Return each node of a plan in words, inputs before their readers."""
    found: dict[Node, Summary] = {}
    for node in inputs_first(plan):
        found[node] = Summary(
            title=printable(node.described() + (f" {node.name!r}" if node.name else "")),
            detail=printable(node.detail()),
            count=_count(node.cardinality()),
            origin=printable(str(node.origin)),
            functions=printable(_functions(node)),
            spec=shortened(printable(_spec(node)), _SPEC_MAX),
        )
    return found


def rule_lines(rules: Sequence[Fired]) -> list[str]:
    """Return a line for each rule and op, in columns; those that are alike share one."""
    rows: Counter[tuple[str, ...]] = Counter()
    for rule in rules:
        where = (f"{rule.rule}: {rule.described}", f"from {rule.origin}")
        rows[(where[0], f"{where[1]}:", rule.reason) if isinstance(rule, Missed) else (*where, "")] += 1
    return in_columns([(*row, f"({times:,} times)" if times > 1 else "") for row, times in rows.items()], gap=1)


def in_columns(rows: Sequence[Sequence[str]], gap: int = 2) -> list[str]:
    """The rows as lines, with columns below each other; a cell that is very wide moves only what is behind it."""
    shown = [[printable(cell) for cell in row] for row in rows]
    columns = zip(*shown, strict=True)
    widths = [max((len(cell) for cell in column if len(cell) <= _ALIGNED_MAX), default=0) for column in columns]
    return [
        (" " * gap).join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True) if width or cell).rstrip()
        for row in shown
    ]


def printable(text: str) -> str:
    """Return the text in one line, with the characters that do not show as themselves escaped as ``repr`` does."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def shortened(text: str, length: int) -> str:
    """Return the text, or its beginning and an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _count(cardinality: int) -> str:
    if cardinality == UNKNOWN_CARDINALITY:
        return ""
    if cardinality == INFINITE_CARDINALITY:
        return "endless"
    return "1 element" if cardinality == 1 else f"{cardinality:,} elements"


def _spec(node: Node) -> str:
    if not spec_is_static(node):
        return ""
    try:
        return brief_spec(node.element_spec)
    except (TypeError, ValueError) as error:  # what specs that do not fit raise: the plan is shown, and what is wrong
        return f"no spec: {error}"


def _functions(node: Node) -> str:
    places = [(function_name(function), defined_at(function)) for function in node.functions]
    return ", ".join(f"{shortened(name, _NAME_MAX)} at {place}" for name, place in places if place is not None)

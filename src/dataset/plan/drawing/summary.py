"""Summaries of plans as text, determined without running anything.

explain.py formats them as text, svg.py as a picture. Characters that are not printable, or would break a line, are
already escaped as in Python's ``repr``, so the formatters can handle any function names and labels.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.drawing.brief import brief_spec
from dataset.plan.node import Node, inputs_first, spec_is_static
from dataset.plan.origin import defined_at, function_name
from dataset.plan.rewriting import Fired, Missed

ALIGNED_MAX = 60
"""The longest text in a column of a plan that is aligned with the others."""

_SPEC_MAX = 1000
_NAME_MAX = 32  # characters of a function's name next to its line; the title has the full name


@dataclass(frozen=True)
class Summary:
    """Summary of an operation as text.

    Attributes:
        title: the op with its distinguishing parameters and the user's label.
        detail: what the optimizer decided about the op.
        count: the number of elements of the output; empty if unknown before running.
        origin: the user's source line that created the op.
        functions: the user's functions, with the source line of each.
        spec: the element spec; empty if unknown before running.
    """

    title: str
    detail: str
    count: str
    origin: str
    functions: str
    spec: str


def summaries(plan: Node) -> dict[Node, Summary]:
    """Return the summary of each node of a plan, inputs before their readers."""
    found: dict[Node, Summary] = {}
    for node in inputs_first(plan):
        found[node] = Summary(
            title=printable(node.label() + (f" {node.name!r}" if node.name else "")),
            detail=printable(node.annotation()),
            count=_count(node.cardinality()),
            origin=printable(str(node.origin)),
            functions=printable(_functions(node)),
            spec=shortened(printable(_spec(node)), _SPEC_MAX),
        )
    return found


def rule_lines(rules: Sequence[Fired]) -> list[str]:
    """Return a line for each rule and op, in columns; equal lines are merged and counted."""
    rows: Counter[tuple[str, ...]] = Counter()
    for rule in rules:
        where = (f"{rule.rule}: {rule.label}", f"from {rule.origin}")
        rows[(where[0], f"{where[1]}:", rule.reason) if isinstance(rule, Missed) else (*where, "")] += 1
    return table(
        [(*row, f"({times:,} times)" if times > 1 else "") for row, times in rows.items()],
        gap=1,
        aligned_max=ALIGNED_MAX,
    )


def table(
    rows: Sequence[Sequence[str]], right: Sequence[int] = (), *, gap: int = 2, aligned_max: int = sys.maxsize
) -> list[str]:
    """Return the rows as lines with aligned columns; columns without text are left out.

    Args:
        rows: the rows of cells, all of the same length.
        right: the numbers of the columns that are aligned at the right.
        gap: the number of spaces between two columns.
        aligned_max: the longest text that widens its column; a longer one only shifts the cells after it.

    >>> table([["NAME", "COUNT"], ["a", "1,000"]], right=[1])
    ['NAME  COUNT', 'a     1,000']
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    columns = list(zip(*shown, strict=True))
    widths = [max((len(cell) for cell in column if len(cell) <= aligned_max), default=0) for column in columns]
    justify = [str.rjust if index in right else str.ljust for index in range(len(columns))]
    kept = [index for index, column in enumerate(columns) if any(column)]
    return [(" " * gap).join(justify[i](row[i], widths[i]) for i in kept).rstrip() for row in shown]


def printable(text: str) -> str:
    """Return the text in one line, with nonprintable characters escaped as ``repr`` does."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def shortened(text: str, length: int) -> str:
    """Return the text, truncated with an ellipsis if it is too long."""
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
    except (TypeError, ValueError) as error:  # incompatible specs: show the plan with the error
        return f"no spec: {error}"


def _functions(node: Node) -> str:
    functions = [] if node.traits.pure else filter(callable, node.parameters().values())
    places = [(function_name(function), defined_at(function)) for function in functions]
    return ", ".join(f"{shortened(name, _NAME_MAX)} at {place}" for name, place in places if place is not None)

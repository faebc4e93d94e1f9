"""HTML fragment of a plan: the picture, and foldable lists of what the optimizer did.

It can be embedded in any page: no scripts, no external resources, styles on its own elements only, all text escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from dataset.plan.drawing.explain import tree_lines
from dataset.plan.drawing.summary import rule_lines
from dataset.plan.drawing.svg import svg
from dataset.plan.node import Node
from dataset.plan.rewriting import Rewritten

_TEXT = "overflow-x:auto;margin:2px 0 8px 16px;line-height:1.35;font-size:12px;background:none"


def page(name: str | None, written: Node, rewritten: Rewritten) -> str:
    """Return the HTML fragment. ``name`` is the name of the dataset."""
    lists = [
        _folded(f"{_rules(len(rewritten.fired))} fired", rule_lines(rewritten.fired)),
        _folded(f"{_rules(len(rewritten.missed))} nearly fired", rule_lines(rewritten.missed)),
        _folded("the plan as written", [] if rewritten.plan is written else tree_lines(written)),
    ]
    heading = f'<div style="font-weight:bold;margin-bottom:4px">{html.escape(name)}</div>' if name else ""
    picture = f'<div style="overflow:auto;max-height:720px">{svg(rewritten.plan, rewritten.rules_of)}</div>'
    return "\n".join(['<div class="dataset-plan">', *filter(None, [heading, picture, *lists]), "</div>"])


def _rules(number: int) -> str:
    return f"{number:,} rule{'s' * (number != 1)}"


def _folded(summary: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    text = html.escape("\n".join(lines))
    return f'<details><summary style="cursor:pointer">{summary}</summary><pre style="{_TEXT}">{text}</pre></details>'

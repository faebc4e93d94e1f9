"""Plans as text: as written, as run, and the rules that rewrote them.

    batch(2)
    zip
    ├─ map(decode)
    │  range(3)
    └─ range(4)

An operation is printed above its inputs. Inputs are drawn as branches only if there are several.
"""

from __future__ import annotations

from dataset.native.library import kernels_status
from dataset.plan.drawing.summary import ALIGNED_MAX, Summary, rule_lines, shortened, summaries, table
from dataset.plan.node import Node, inputs_first
from dataset.plan.rewriting import Rewritten

_LINE_MAX = 120
_SPEC_MIN = 24  # characters, however long the rest of the line is
_TITLE_MAX = 76
_INDENT_MAX = 60  # deeper branches are cut off at the left


def explain_text(name: str | None, written: Node, rewritten: Rewritten) -> str:
    """Return the full description of a plan. ``name`` is the name of the dataset."""
    sections = [("as written:", tree_lines(written)), ("as it runs:", tree_lines(rewritten.plan))]
    if rewritten.plan is written:
        sections = [("as written, and as it runs:", tree_lines(written))]
    sections += [("rewritten:", rule_lines(rewritten.fired)), ("nearly rewritten:", rule_lines(rewritten.missed))]
    if any(node.traits.reads_files for node in inputs_first(rewritten.plan)):
        sections.append(("native kernels:", [kernels_status()]))
    texts = ["\n".join([heading, *(f"  {line}" for line in lines)]) for heading, lines in sections if lines]
    return (f"{name}:\n\n" if name else "") + "\n\n".join(texts)


def tree_lines(plan: Node) -> list[str]:
    """Return a line for each operation: its title, cardinality, source line, functions and spec.

    A shared input is drawn once; other occurrences are a single line that says "as above".
    """
    known = summaries(plan)
    rows = [_row(tree, known[node], again=again) for node, tree, again in _placed(plan)]
    lines = table(rows, aligned_max=ALIGNED_MAX)
    return [
        shortened(line, max(_LINE_MAX, len(line) - len(row[-1]) + _SPEC_MIN))
        for line, row in zip(lines, rows, strict=True)
    ]


def _row(tree: str, summary: Summary, *, again: bool) -> tuple[str, ...]:
    title = shortened(summary.title, _TITLE_MAX)
    if again:
        return (f"{tree}{title}, as above", "", summary.origin, "", "")
    detail = f" {summary.detail}" if summary.detail else ""
    return (f"{tree}{title}{detail}", summary.count, summary.origin, summary.functions, summary.spec)


def _placed(plan: Node) -> list[tuple[Node, str, bool]]:
    """Return each node, the tree characters that precede it in its line, and whether it was already drawn."""
    found: list[tuple[Node, str, bool]] = []
    seen: set[Node] = set()
    waiting = [(plan, "", "")]  # with the prefix of the node, and the prefix of the lines below it
    while waiting:
        node, first, rest = waiting.pop()
        again = node in seen and bool(node.inputs)
        found.append((node, first, again))
        seen.add(node)
        if again or not node.inputs:
            continue
        *others, last = node.inputs
        rest = rest if len(rest) <= _INDENT_MAX else f"…{rest[3 - _INDENT_MAX :]}"
        waiting.append((last, f"{rest}└─ ", f"{rest}   ") if others else (last, rest, rest))
        waiting.extend((other, f"{rest}├─ ", f"{rest}│  ") for other in reversed(others))
    return found

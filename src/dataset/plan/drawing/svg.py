"""SVG picture of a plan: a box for each operation, with data flowing down to the last one.

The picture is self-contained: it needs no scripts, fonts or styles of the page. It has its own background, and a light
and a dark mode. The light colours are attributes, since some programs do not support style sheets.
"""

from __future__ import annotations

import html
import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dataset.plan.drawing.graph_layout import Box, DiagramLayout, DiagramLine, lay_out
from dataset.plan.drawing.summary import Summary, summaries
from dataset.plan.node import Node

_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
_EM = 0.62  # width of a character relative to the font size; the widest of these fonts take 0.602
_MARGIN = 12
_PADDING = 10
_WIDTH_MAX = 360  # of a line of text
_DESCENT = 4  # below the baseline
_STRAIGHT = 5  # length of the straight end of an arrow
_LINE_COLOUR = "#8c959f"
_LATIN_END = 0x250
_NARROW = {"Pd", "Po", "Sm"}  # categories of dashes, dots and arrows


@dataclass(frozen=True)
class _Style:
    """Style of a line of text."""

    kind: str
    size: float
    height: float
    colour: str
    weight: str = "normal"

    @property
    def attributes(self) -> str:
        """The attributes of an SVG element."""
        font = f'font-size="{self.size}" font-weight="{self.weight}"'
        return f'class="dataset-plan-{self.kind}" fill="{self.colour}" {font}'


_TITLE = _Style("title", 13, 19, "#1b1f24", "bold")
_PLAIN = _Style("plain", 11, 15, "#57606a")
_SPECIAL = _Style("special", 11, 15, "#0550ae")
_RULE = _Style("rule", 11, 16, "#116329")
_Text = tuple[_Style, str]

_DARK = """
@media (prefers-color-scheme: dark) {
.dataset-plan-ground { fill: #16191d }
.dataset-plan-box { fill: #22272e; stroke: #6e7681 }
.dataset-plan-made { fill: #1d2d24; stroke: #57ab5a }
.dataset-plan-line { stroke: #8b949e }
.dataset-plan-head { fill: #8b949e }
.dataset-plan-title { fill: #e6edf3 }
.dataset-plan-plain { fill: #9ea7b3 }
.dataset-plan-special { fill: #79b8ff }
.dataset-plan-rule { fill: #7ee787 }
}
"""


def svg(plan: Node, rules_of: Mapping[Node, tuple[str, ...]]) -> str:
    """Return the picture of a plan, with the rules that created a node listed in its box."""
    known = summaries(plan)
    texts = {node: list(_texts(summary, rules_of.get(node, ()))) for node, summary in known.items()}
    sizes = {node: _size(lines) for node, lines in texts.items()}
    layout = lay_out({node: node.inputs for node in known}, sizes)
    boxes = [part for node, box in layout.boxes.items() for part in _box(box, texts[node], is_made=node in rules_of)]
    return "\n".join([*_opening(layout), *map(_line, layout.lines), *boxes, "</g>", "</svg>"])


def _opening(layout: DiagramLayout[Node]) -> list[str]:
    width, height = (f"{length + 2 * _MARGIN:.0f}" for length in (layout.width, layout.height))
    size = f'width="{width}" height="{height}"'
    seen = f'viewBox="0 0 {width} {height}" role="img" aria-label="a plan"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {seen} font-family="{_FONT}">',
        f"<style>{_DARK}</style>",
        f'<rect class="dataset-plan-ground" {size} rx="6" fill="#ffffff"/>',
        f'<g transform="translate({_MARGIN} {_MARGIN})">',
    ]


def _texts(summary: Summary, rules: Iterable[str]) -> Iterator[_Text]:
    """Yield the lines of text in a box, without empty ones."""
    yield _TITLE, summary.title
    if summary.detail:
        yield _SPECIAL, summary.detail
    yield _PLAIN, " · ".join(filter(None, [summary.count, summary.origin]))
    if summary.functions:
        yield _PLAIN, summary.functions
    if summary.spec:
        yield _PLAIN, summary.spec
    for rule in dict.fromkeys(rules):
        yield _RULE, f"✓ {rule}"


def _size(texts: list[_Text]) -> tuple[float, float]:
    width = max(_columns(_cut(text, style.size)) * style.size * _EM for style, text in texts)
    return round(width + 2 * _PADDING), sum(style.height for style, _ in texts) + _PADDING


def _box(box: Box, texts: list[_Text], *, is_made: bool) -> Iterator[str]:
    kind, fill, stroke = ("made", "#f0fff4", "#2da44e") if is_made else ("box", "#f6f8fa", "#8c959f")
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    in_full = html.escape("\n".join(text for _, text in texts))
    yield f"<g><title>{in_full}</title>"  # the tooltip of the box
    yield f'<rect class="dataset-plan-{kind}" {place} rx="5" fill="{fill}" stroke="{stroke}"/>'
    y = box.y + _PADDING / 2
    for style, text in texts:
        y += style.height
        place = f'x="{box.x + _PADDING:.1f}" y="{y - _DESCENT:.1f}"'
        yield f"<text {place} {style.attributes}>{html.escape(_cut(text, style.size))}</text>"
    yield "</g>"


def _line(line: DiagramLine) -> str:
    (x, y), (bend_x, bend_y), (end_x, end_y) = line.start, line.bend, line.end
    head = f'<path class="dataset-plan-head" fill="{_LINE_COLOUR}" d="M{end_x:.1f} {end_y:.1f}l-4 -7h8z"/>'
    middle = (y + bend_y) / 2
    curve = f"M{x:.1f} {y:.1f}C{x:.1f} {middle:.1f} {bend_x:.1f} {middle:.1f} {bend_x:.1f} {bend_y - _STRAIGHT:.1f}"
    shaft = f'd="{curve}V{end_y - (_STRAIGHT if line.is_arrow else 0):.1f}"'
    stroke = f'class="dataset-plan-line" fill="none" stroke="{_LINE_COLOUR}" stroke-width="1.3"'
    return f"<path {stroke} {shaft}/>{head if line.is_arrow else ''}"


def _cut(text: str, size: float) -> str:
    """Return the text, truncated to fit into a box."""
    room = int(_WIDTH_MAX / (size * _EM))
    if _columns(text) <= room:
        return text
    taken = itertools.accumulate(map(_columns, text))
    return text[: sum(columns < room for columns in taken)] + "…"


def _columns(text: str) -> int:
    """Return the maximum width of a text in characters; those of other scripts may come from a wider font."""
    return sum(1 if ord(char) < _LATIN_END or unicodedata.category(char) in _NARROW else 2 for char in text)

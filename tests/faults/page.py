"""Page generator: writes the declared matrix to docs/reliability.md after all cells have passed: see Makefile."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from faults.columns import CELLS, COLUMNS, SHORTCOMINGS, Absence, cell
from faults.rows import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- make faults writes what follows -->\n", "<!-- until here -->\n"


def word_of(row: str, column: str) -> str:
    """Return the text of a cell."""
    found = cell(row, column)
    if isinstance(found, Absence):
        return "—"
    shortcomings = list(dict.fromkeys(SHORTCOMINGS.values()))
    number = SHORTCOMINGS.get((row, column))
    return found.outcome if number is None else f"{found.outcome} ({shortcomings.index(number) + 1})"


def table() -> str:
    """Return the table with one line per fault and one column per pipeline, and its legend."""
    lines = ["| | " + " | ".join(ROWS) + " |", "|---" * (len(ROWS) + 1) + "|"]
    lines += ["| **" + column + "** | " + " | ".join(word_of(row, column) for row in ROWS) + " |" for column in COLUMNS]
    lines += ["", "The faults:", ""]
    lines += [f"- **{name}**: {column.about}" for name, column in COLUMNS.items()]
    lines += ["", "A dash means that the fault does not apply:", ""]
    for (column, reason), rows in _absences().items():
        lines.append(f"- **{column}** for {_joined(rows)}: {reason}.")
    lines += ["", "Promises that do not hold:", ""]
    shortcomings = list(dict.fromkeys(SHORTCOMINGS.values()))
    lines += [f"{number}. {text}" for number, text in enumerate(shortcomings, 1)] or ["None known."]
    return "\n".join(lines) + "\n"


def _absences() -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row, column in CELLS:
        one = cell(row, column)
        if isinstance(one, Absence):
            found[column, one.reason].append(row)
    return dict(sorted(found.items(), key=lambda item: list(COLUMNS).index(item[0][0])))


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def written_part(page: str) -> str:
    """Return the part of the page that this module writes, without the numbers of runs."""
    part = page.partition(BEGIN)[2].partition(END)[0]
    return part.partition("\n\n")[2]


def write() -> None:
    """Write the page."""
    cells = [pair for pair in CELLS if not isinstance(cell(*pair), Absence) and pair not in SHORTCOMINGS]
    runs = sum(COLUMNS[column].runs for _, column in cells)
    head = f"The last run of `make faults` tried {len(cells)} pairs of a fault and a pipeline in {runs:,} runs.\n\n"
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(before + BEGIN + head + table() + END + after, encoding="utf-8")


if __name__ == "__main__":
    write()

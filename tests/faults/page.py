"""Page generator: writes the declared matrix to docs/reliability.md after a run of all cells.

``make faults`` writes one file per cell to build/faults, with the number of its runs, and then runs this module.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

from faults.columns import CELLS, COLUMNS, SHORTCOMINGS, Absence, cell
from faults.rows import ROWS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
RESULTS = ROOT / "build" / "faults"
BEGIN, END = "<!-- make faults writes what follows -->\n", "<!-- until here -->\n"


def name_of_result(row: str, column: str) -> str:
    return re.sub(r"\W+", "-", f"{row}-{column}") + ".json"


def keep_result(row: str, column: str, runs: int) -> None:
    """Record that all runs of a cell passed."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / name_of_result(row, column)).write_text(json.dumps({"row": row, "column": column, "runs": runs}))


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


def write() -> str:
    """Write the page from the results. Return a message if results are missing, else an empty string."""
    results = [json.loads(path.read_text()) for path in RESULTS.glob("*.json")]
    done = {(result["row"], result["column"]) for result in results}
    wanted = {pair for pair in CELLS if not isinstance(cell(*pair), Absence)} - set(SHORTCOMINGS)
    if missing := sorted(wanted - done):
        return f"these cells have not passed: {missing}"
    runs = sum(result["runs"] for result in results)
    head = f"The last run of `make faults` tried {len(wanted)} pairs of a fault and a pipeline in {runs:,} runs.\n\n"
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(before + BEGIN + head + table() + END + after, encoding="utf-8")
    return ""


if __name__ == "__main__":
    sys.exit(write())

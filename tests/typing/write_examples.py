"""Writes users' code from the documentation to build/typing, where ``make lint`` checks it with mypy and pyright.

These are the first example of the README, and all examples of the guide for coding assistants.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.pages import blocks_of  # noqa: E402  # from tests/

EXAMPLES = {"README.md": 2, "docs/SKILL.md": None}  # how many blocks; None for all
UNTYPED = '# mypy: disable-error-code="no-untyped-def, no-untyped-call"\n'


def main() -> None:
    """Write a module for each page."""
    folder = ROOT / "build" / "typing"
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in EXAMPLES.items():
        page = (ROOT / name).read_text(encoding="utf-8")
        blocks = [block.text for block in blocks_of(page) if block.language == "python"][:count]
        module = folder / f"{Path(name).stem.lower()}_example.py"
        module.write_text(UNTYPED + "".join(blocks), encoding="utf-8")


if __name__ == "__main__":
    main()

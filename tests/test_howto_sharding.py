"""Tests that the examples of the how-to on training in several processes run, in order."""

import re
from pathlib import Path

HOWTO = (Path(__file__).parents[1] / "docs" / "howto" / "sharding.md").read_text(encoding="utf-8")


def test_the_examples_run_as_they_stand():
    blocks = re.findall(r"```python\n(.*?)```", HOWTO, re.DOTALL)
    assert len(blocks) == 5
    names = {}
    for block in blocks:
        exec(compile(block, "sharding.md", "exec"), names)
    assert sum(len(numbers) for _, numbers in names["train"]) == 1000

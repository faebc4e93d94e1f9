"""Tests that the planted faults can be planted: what they replace and the tests that they name exist."""

from pathlib import Path

from support.planted_faults import FAULTS

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "src" / "dataset"


def test_each_text_to_replace_occurs_once():
    assert [fault.name for fault in FAULTS if (SOURCES / fault.path).read_text().count(fault.old) != 1] == []


def test_the_tests_that_are_named_exist():
    named = {tuple(path.split("::")) for fault in FAULTS for path in fault.tests.split()}
    assert [file for file, *_ in named if not (TESTS / file).exists()] == []
    functions = [(TESTS / file, function[0].partition("[")[0]) for file, *function in named if function]
    assert [name for file, name in functions if f"def {name}(" not in file.read_text()] == []

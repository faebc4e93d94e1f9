"""The tables of the docs name what is there."""

import re
from pathlib import Path

import pytest

from dataset import Dataset

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "tf_data.md").read_text()
ROWS = re.findall(r"^\| `(.*?)` \|.*\[(test_tf_\w+)\]\((.*?)\) \|$", TEXT, re.MULTILINE)


def test_the_table_of_methods_is_there():
    assert len(ROWS) > 45
    assert [name for name, _, _ in ROWS].count("map") == 1


@pytest.mark.parametrize(("method", "test", "link"), ROWS, ids=[row[0] for row in ROWS])
def test_each_method_is_there_and_its_test_is_about_it(method, test, link):
    path = (ROOT / "docs" / link).resolve()
    assert path.stem == test
    for name in re.split(r"`, `", method):
        if not name.startswith("tf.data."):
            assert hasattr(Dataset, name)
        word = {
            "tf.data.experimental.at": "experimental.at",
            "__bool__": "bool(",
            "__len__": "len(",
            "__iter__": "iter(",
        }
        assert word.get(name, name.removeprefix("tf.data.")) in path.read_text()


@pytest.mark.parametrize(
    "path", [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"], ids=lambda path: path.name
)
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / link).exists(), link

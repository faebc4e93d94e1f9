"""Tests of the docs: code blocks run and print the output shown; links and tables name existing things."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dataset import Dataset, io
from support.pages import blocks_of, with_outputs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "notebooks")  # these are tested as notebooks
PAGES.append(DOCS / "llms.txt")
RUNNABLE = [page for page in PAGES if any(with_outputs(page.read_text(encoding="utf-8")))]
TEXT = (DOCS / "tf_data.md").read_text(encoding="utf-8")
OPTIONAL = {"datasets", "jax", "keras", "lightning", "pandas", "polars"}
OPTIONAL |= {"ray", "tensorflow", "torch", "torchdata", "tqdm"}
ROWS = re.findall(r"^\| `(.*?)` \|.*\[(test_tf_\w+)\]\((.*?)\) \|$", TEXT, re.MULTILINE)


def name_of(page):
    return str(page.relative_to(ROOT))


def run_page(page, folder):
    command = [sys.executable, Path(__file__).parent / "support" / "pages.py", page]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)


@pytest.mark.explore
@pytest.mark.timeout(300)  # one page imports four frameworks
@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, tmp_path):
    imported = set(re.findall(r"^(?:import|from) (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    for name in sorted(imported & OPTIONAL):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    done = run_page(page, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_that_looks_like_python_is_one_that_is_run(page):
    text = page.read_text(encoding="utf-8")
    assert {block.language for block in blocks_of(text)} <= {"python", "text", "sh"}
    assert text.count("```") == 2 * len(blocks_of(text))
    outputs = [output for _, output in with_outputs(text) if output]
    assert len(outputs) == text.count("```text"), "an output must directly follow its block"


@pytest.mark.parametrize(
    ("shown", "printed", "is_so"),
    [
        ('title="Output"\na  1\n', "a  1\n", True),
        ('title="Output; numbers vary"\na  1.5 ms, 3\n', "a   200 us, 1,000\n", True),
        ('title="Output; numbers vary"\na 1\n', "a 1\nb\n", False),
        ('title="Output, in part; numbers vary"\na 1\nc\n', "a 2\nb\nc\n", True),
        ('title="Output, in part; numbers vary"\nc\na 1\n', "a 2\nb\nc\n", False),
    ],
)
def test_outputs_are_compared_as_their_title_says(shown, printed, is_so, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"```python\nprint({printed!r}, end='')\n```\n```text {shown}```\n")
    done = run_page(page, tmp_path)
    assert (done.returncode == 0) is is_so, done.stderr


def test_the_pages_and_the_table_of_methods_are_found():
    assert len(RUNNABLE) > 20
    assert len(ROWS) > 45


@pytest.mark.parametrize(("method", "test", "link"), ROWS, ids=[row[0] for row in ROWS])
def test_each_method_is_there_and_its_test_is_about_it(method, test, link):
    path = (DOCS / link).resolve()
    assert path.stem == test
    for name in re.split(r"`, `", method):
        module, _, own = name.rpartition(".")
        if not name.startswith("tf.data."):
            assert hasattr(io if module in {"tf.io", "tf.audio"} else Dataset, own)
        assert {"__bool__": "bool(", "__len__": "len(", "__iter__": "iter("}.get(own, own) in path.read_text()


@pytest.mark.parametrize("path", [*sorted(DOCS.rglob("*.md")), DOCS / "llms.txt", ROOT / "README.md"], ids=name_of)
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / link).exists(), link

"""Tests of the notebooks: they run, are stored without outputs, and match the pages in docs/notebooks."""

import os
import re
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("matplotlib.font_manager")  # its first import on a machine warns once while it searches for fonts
pytestmark = pytest.mark.explore

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PAGES = ROOT / "docs" / "notebooks"
PAGES_BYTES_MAX = 1_000_000

sys.path.insert(0, str(FOLDER))
from execute import NotebookError, complaints, executed  # noqa: E402
from render import linked  # noqa: E402

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def files():
    """Return the files of the notebooks' folder with their modification times."""
    return {
        path: path.stat().st_mtime_ns
        for path in FOLDER.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def code(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


# The notebooks.


@each_notebook
@pytest.mark.timeout(400)
def test_it_runs_without_a_complaint_and_leaves_nothing_behind(path):
    before = files()
    notebook = executed(path)
    assert complaints(notebook) == []
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert files() == before


@pytest.mark.timeout(400)
def test_the_one_on_tf_data_runs_without_tensorflow_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['tensorflow'] = None  # not to be found\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    notebook = executed(FOLDER / "coming_from.ipynb")
    assert complaints(notebook) == []
    texts = {cell.id: "".join(output.get("text", "") for output in cell.get("outputs", ())) for cell in notebook.cells}
    assert "TensorFlow is not installed" in texts["imports"]
    assert texts["tf-same"].count("not compared") == 6
    assert "tf.data" not in texts["tf-speed"]


@each_notebook
def test_it_is_stored_without_outputs_and_with_ids_and_needs_no_network(path):
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert re.fullmatch(r"[a-z][a-z0-9-]*", cell.id)
        assert cell.metadata == {}
        assert cell.cell_type == "markdown" or (cell.outputs == [] and cell.execution_count is None)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert re.findall(r"https?://|\bpip install|urllib|requests\.", "\n".join(code(notebook))) == []


# The pages.


@each_notebook
def test_the_page_holds_its_cells_texts_and_pictures_and_nothing_of_the_machine_that_it_was_made_on(path):
    text = (PAGES / f"{path.stem}.md").read_text()
    notebook, hint = nbformat.read(path, 4), f"run: python notebooks/render.py {path.stem}"
    assert re.findall(r"^```python\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL) == code(notebook), hint
    words = " ".join(text.split())
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert " ".join(linked(cell.source).split()) in words, hint
    named = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    pictures = sorted((PAGES / path.stem).iterdir())
    assert sorted(PAGES / name for name in named) == pictures
    for content in [text, *(picture.read_text() for picture in pictures if picture.suffix == ".svg")]:
        assert re.findall(r"\x1b|/tmp/|/home/|/root/|/work/|site-packages|ipykernel_\d|0x[0-9a-f]{6,}", content) == []


def test_pages_and_notebooks_are_the_same_and_the_pages_are_small():
    names = ["coming_from", "images", "language_model", "optimizer_and_autotuner", "queues_to_datasets"]
    assert [path.stem for path in NOTEBOOKS] == sorted(page.stem for page in PAGES.glob("*.md")) == names
    assert sum(path.stat().st_size for path in PAGES.rglob("*") if path.is_file()) < PAGES_BYTES_MAX


# Execution.


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def fail():\n    raise KeyError('lost')\n\nfail()", "KeyError: 'lost'"),
        ("import threading\nthreading.Event().wait()", ""),
        ("import os\nos._exit(3)", "died"),
    ],
)
def test_a_cell_that_fails_hangs_or_dies_is_told_by_its_name(source, told, tmp_path, monkeypatch):
    monkeypatch.setattr("execute.CELL_SECONDS_MAX", 5)
    cells = [nbformat.v4.new_code_cell(source, id="cell-0")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "broken.ipynb")
    with pytest.raises(NotebookError, match=rf"broken\.ipynb, cell 'cell-0'(.|\n)*{told}") as caught:
        executed(tmp_path / "broken.ipynb")
    assert "\x1b" not in str(caught.value)

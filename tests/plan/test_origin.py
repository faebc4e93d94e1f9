"""Where a user made an operation: in a file, or in the cell of a notebook."""

import pytest

from dataset import Dataset
from dataset.plan.origin import Origin

CELL = """\
from dataset import Dataset

def halved(x):
    return 10 // int(x)

numbers = Dataset.range(3).map(halved)
"""


@pytest.fixture
def shell(tmp_path, monkeypatch):
    core = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    terminal = pytest.importorskip("IPython.terminal.interactiveshell").TerminalInteractiveShell
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    core.clear_instance()
    terminal.clear_instance()
    yield terminal.instance(history_load_length=0)
    terminal.clear_instance()
    core.clear_instance()


def test_a_file_is_named_without_its_folder():
    assert str(Origin("/home/ann/train.py", 41)) == "train.py:41"
    assert str(Origin("<stdin>", 1)) == "<stdin>:1"


@pytest.mark.explore  # it needs IPython
def test_a_cell_is_named_as_in_the_tracebacks_of_ipython(shell):
    shell.run_cell("1", store_history=True)
    shell.run_cell(CELL, store_history=True)
    numbers = shell.user_ns["numbers"]
    assert repr(numbers) == "<Dataset: map(halved) from In[2]:6>"
    assert "halved at In[2]:3" in numbers.explain()
    with pytest.raises(ZeroDivisionError) as caught:
        next(iter(numbers))
    assert caught.value.__notes__ == ["in map(halved) from In[2]:6, element 0"]


@pytest.mark.explore
def test_what_is_no_cell_keeps_its_name_in_ipython(shell):
    assert repr(Dataset.range(3)).startswith("<Dataset: range(3) from test_origin.py:")

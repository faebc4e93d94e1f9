"""Run a notebook from top to bottom, in a copy of its folder, with the interpreter that runs this.

No kernel has to be registered for that, and nothing is left behind: the copy, the kernel's own files and its history
are in a temporary folder. What a user has set up for Jupyter at home is not looked at. render.py and the tests call
`executed`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

NOTEBOOKS = Path(__file__).parent
CELL_SECONDS_MAX = 120
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # what makes text on a terminal bold and coloured


class NotebookError(Exception):
    """A cell failed, took too long, or its kernel died. The message is what a reader needs."""


class _ThisInterpreter(KernelSpecManager):  # type: ignore[misc]  # untyped
    """Knows one kernel, that of this interpreter, whichever are registered on the machine."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The same for every name."""
        del kernel_name
        return KernelSpec(resource_dir="", **get_kernel_dict())


def notebooks() -> list[Path]:
    """All notebooks of the project."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def executed(path: Path) -> Any:
    """The notebook at `path` with the outputs of its cells.

    Raises:
        NotebookError: A cell failed. The message names it, and holds its source and the traceback, without colours.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="notebook-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch, path.parent.name)
        shutil.copytree(path.parent, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        _execute(notebook, path.name, folder, Path(scratch))
    return notebook


def _execute(notebook: Any, name: str, folder: Path, scratch: Path) -> None:
    environment = {
        **os.environ,
        "IPYTHONDIR": str(scratch / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "jupyter"),
        "TMPDIR": str(scratch),
        "TF_CPP_MIN_LOG_LEVEL": "3",  # Keras imports TensorFlow where it is installed, which says so on stderr
        "TF_ENABLE_ONEDNN_OPTS": "0",
    }
    environment.pop("MPLBACKEND", None)  # the kernel shows figures in the notebook unless this says otherwise
    # A notebook chooses. TensorFlow imports Keras, and with its torch backend the process aborts: two copies of LLVM.
    environment.pop("KERAS_BACKEND", None)
    manager = AsyncKernelManager(
        kernel_spec_manager=_ThisInterpreter(),
        connection_file=str(scratch / "kernel.json"),
        transport="tcp" if sys.platform == "win32" else "ipc",  # no port that others on the machine could connect to
    )
    begun: list[str] = []  # the ids of cells
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=CELL_SECONDS_MAX,
        coalesce_streams=True,
        on_cell_execute=lambda cell, cell_index: begun.append(cell.id),  # noqa: ARG005  # called by these names
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        client.execute(env=environment, cleanup_kc=True)  # or the kernel would go on
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        place = f"cell {begun[-1]!r}" if begun else "before its first cell"
        raise NotebookError(f"{name}, {place}:\n{ANSI.sub('', str(error))}") from None


def complaints(notebook: Any) -> list[str]:
    """What a reader should not find in the outputs of a notebook: failures, and anything on stderr."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                found.append(f"cell {cell.id!r} failed: {output.ename}: {output.evalue}")
            elif output.output_type == "stream" and output.name == "stderr":
                found.append(f"cell {cell.id!r} wrote to stderr: {output.text}")
    return found

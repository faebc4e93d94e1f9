"""Live progress: a dataset that shows the statistics of its pipeline while it is iterated over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from dataset.adapters.dataset_view import DatasetView
from dataset.amounts import REST_FACTOR
from dataset.dataset import Dataset
from dataset.extras import load_extra
from dataset.world import time

T_co = TypeVar("T_co", covariant=True)

_ARGUMENTS = {"file", "mininterval", "disable"}
_IN_PLACE_SECONDS = 0.5
_LINE_SECONDS = 10.0


class LiveProgress(DatasetView[T_co]):
    """A dataset that shows a table while it is iterated over. No thread is used: the loop itself updates it."""

    def __init__(self, dataset: Dataset[T_co], desc: str | None, arguments: dict[str, Any]) -> None:
        if wrong := sorted(arguments.keys() - _ARGUMENTS):
            raise TypeError(f"progress(live=True) takes no argument {wrong[0]!r}; it takes {sorted(_ARGUMENTS)}")
        super().__init__(dataset)
        self._prefix = f"{desc}: " if desc else ""
        self._file = arguments.get("file")
        self._interval = arguments.get("mininterval")
        self._disable = bool(arguments.get("disable"))
        if not self._disable and self._is_terminal():
            load_extra("rich.live", "progress", "progress(live=True) needs")

    def __iter__(self) -> Iterator[T_co]:
        with iter(self._dataset) as elements:
            if self._disable:
                yield from elements
                return
            in_place, show, end = self._display()
            interval = self._interval or (_IN_PLACE_SECONDS if in_place else _LINE_SECONDS)
            due = time.perf_counter() + interval
            try:
                for element in elements:
                    yield element
                    now = time.perf_counter()
                    if now >= due:
                        text = self._prefix + str(elements.stats())
                        show(text if in_place else text.partition("\n")[0])
                        done = time.perf_counter()
                        due = done + max(interval, REST_FACTOR * (done - now))
            finally:
                show(self._prefix + str(elements.stats()))
                end()

    def _is_terminal(self) -> bool:
        file = sys.stderr if self._file is None else self._file
        return bool(getattr(file, "isatty", bool)())

    def _display(self) -> tuple[bool, Callable[[str], object], Callable[[], object]]:
        """Return whether texts replace each other, a function that shows one, and one that ends the display."""
        if self._file is None and (cell := _notebook_cell()) is not None:
            return True, cell, _do_nothing
        if self._is_terminal():
            return True, *_terminal_display(self._file)
        file = sys.stderr if self._file is None else self._file
        return False, lambda text: print(text, file=file, flush=True), _do_nothing


def _do_nothing() -> None:
    """End a display that needs no end."""


def _notebook_cell() -> Callable[[str], object] | None:
    """Return a function that replaces its output in the current cell; None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # noqa: PLC0415  # it is loaded

    handle: Any = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)


def _terminal_display(file: Any) -> tuple[Callable[[str], object], Callable[[], object]]:
    from rich.console import Console, Group  # noqa: PLC0415  # an extra
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    is_screen = file is None  # then what the loop prints appears above the table
    console = Console(file=file, stderr=is_screen, highlight=False)
    prints_there = is_screen and sys.stdout is not None and sys.stdout.isatty()
    live = Live(console=console, auto_refresh=False, redirect_stdout=prints_there, redirect_stderr=is_screen)
    live.start()

    def show(text: str) -> None:
        lines = (Text(line, no_wrap="  " in line, overflow="crop") for line in text.split("\n"))  # rows are cropped
        live.update(Group(*lines), refresh=True)

    return show, live.stop

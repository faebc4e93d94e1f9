"""Exceptions: those that come out more than once, and those that are about the iteration and not about an element."""

from __future__ import annotations

import copy

from dataset.errors import ClosedError


class NoThreadError(RuntimeError):
    """The system has refused to start a thread. Nothing is lost: the next call tries again."""


def as_error_of_element(error: BaseException) -> BaseException:
    """What takes the place of an element for ``error`` of a user's function: itself, unless it would end a loop."""
    if isinstance(error, StopIteration | GeneratorExit):
        return RuntimeError(f"the function raised {type(error).__name__}, which would end the loop that calls it")
    return error


CANNOT_CONTINUE = "the iteration cannot continue"
"""The end of a note that makes any exception one about the whole iteration."""


def concerns_iteration(error: BaseException) -> bool:
    """Whether an exception is about the whole iteration. Then it never takes the place of an element, nor is ignored.

    That is so where the iterator is closed or has failed, where no thread can be started, where a note says so, and
    where the library itself finds no memory. A MemoryError of an element has a note that ends in its number: that of a
    user's function, say.
    """
    if any(note.endswith(CANNOT_CONTINUE) for note in getattr(error, "__notes__", ())):
        return True
    if isinstance(error, MemoryError):
        notes = getattr(error, "__notes__", ())
        return not any(note.startswith("in ") and note.rpartition(" ")[2].isdigit() for note in notes)
    return isinstance(error, ClosedError | NoThreadError)


def twin_of(error: Exception) -> Exception:
    """Another exception like this one, but for the traceback, whose frames would hold the iterator while it waits."""
    try:
        twin = copy.copy(error)
    except Exception:  # noqa: BLE001  # its constructor takes something else than its args
        twin = type(error).__new__(type(error), *error.args)
        vars(twin).update(vars(error))
    notes = getattr(error, "__notes__", None)
    if notes is not None:
        twin.__notes__ = list(notes)  # each has notes of its own
    return twin

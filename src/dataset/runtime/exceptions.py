"""Exceptions that come out more than once."""

from __future__ import annotations

import copy


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

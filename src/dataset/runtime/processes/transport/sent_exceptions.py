"""Failures: exceptions sent from a worker process.

The user's own exception object is sent if it can be pickled. Its traceback cannot be pickled, so it is added as text in
a note. Notes are printed last, right below the message, and are kept in copies of the exception.
"""

from __future__ import annotations

import pickle
import textwrap
import traceback
from dataclasses import dataclass

from dataset.runtime.processes.transport.encoding import decode, encode


@dataclass(frozen=True, slots=True)
class Failure:
    """Exception in a form that any process can read.

    Attributes:
        pickled: the exception, or None if it cannot be pickled.
        summary: its type and text.
        notes: its notes.
        traceback: its traceback as Python prints it.
    """

    pickled: bytes | None
    summary: str
    notes: tuple[str, ...]
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Convert an exception for sending; called in the worker."""
        notes = tuple(map(str, getattr(error, "__notes__", ())))
        return cls(_pickled(error), _summary(error), notes, _traceback(error))

    def exception(self) -> BaseException:
        """Return the exception to raise; called in the parent."""
        error = self._unpickled()
        if error is None:
            error = RuntimeError(f"{self.summary} (the exception itself cannot be sent between processes)")
        if not hasattr(error, "__notes__"):  # lost if the exception's own pickling code ignores notes
            for note in self.notes:
                error.add_note(note)
        error.add_note(f"In the worker process:\n{textwrap.indent(self.traceback.rstrip(), '  ')}")
        return error

    def _unpickled(self) -> BaseException | None:
        if self.pickled is None:
            return None
        try:
            error = decode(self.pickled, [])
        except Exception:  # noqa: BLE001  # for example, if its constructor does not accept its args
            return None
        return error if isinstance(error, BaseException) else None


def _pickled(error: BaseException) -> bytes | None:
    try:
        encoded = encode(error)
        if encoded.buffers:  # arrays in an exception are rare, and small enough to be pickled
            return pickle.dumps(error)
    except Exception:  # noqa: BLE001  # the exception's own pickling code may raise anything
        return None
    return encoded.pickled


def _summary(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).partition("\n")[0]


def _traceback(error: BaseException) -> str:
    """Return the traceback as Python prints it, with causes, but without the notes, which are printed anyway."""
    shown = traceback.TracebackException(type(error), error, error.__traceback__)
    shown.__notes__ = None
    return "".join(shown.format())

"""Exceptions: those that are raised more than once, and those that concern the iteration and not an element."""

from __future__ import annotations

import copy
import itertools
import re
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import NoReturn

from dataset.errors import ClosedError, StateError
from dataset.plan.node import Node
from dataset.plan.origin import is_ours


class NoThreadError(RuntimeError):
    """The system has refused to start a thread. No element is lost: the next call tries again."""


def as_error_of_element(error: BaseException) -> BaseException:
    """Return what takes an element's place for ``error`` of a user function: ``error``, unless it would end a loop."""
    if isinstance(error, StopIteration | GeneratorExit):
        return RuntimeError(f"the function raised {type(error).__name__}, which would end the loop that calls it")
    return error


CANNOT_CONTINUE = "the iteration cannot continue"
"""The end of a note that makes any exception concern the whole iteration."""


def concerns_iteration(error: BaseException) -> bool:
    """Return whether an exception concerns the whole iteration. It then takes no element's place and is never ignored.

    This is true if the iterator is closed or has failed, if no thread can be started, if a note says so, if a saved
    position cannot be restored, or if the library itself runs out of memory. A MemoryError or StateError of an element,
    such as that of a user function, has a note that ends with the element's number.
    """
    if any(note.endswith(CANNOT_CONTINUE) for note in getattr(error, "__notes__", ())):
        return True
    if isinstance(error, MemoryError | StateError):
        notes = getattr(error, "__notes__", ())
        return not any(note.startswith("in ") and note.rpartition(" ")[2].isdigit() for note in notes)
    return isinstance(error, ClosedError | NoThreadError)


def copy_exception(error: Exception) -> Exception:
    """Copy an exception without its traceback, whose frames would keep the iterator alive while it is stored."""
    try:
        copied = copy.copy(error)
    except Exception:  # noqa: BLE001  # its constructor does not accept its args
        copied = type(error).__new__(type(error), *error.args)
        vars(copied).update(vars(error))
    notes = getattr(error, "__notes__", None)
    if notes is not None:
        copied.__notes__ = list(notes)  # each copy has its own notes
    return copied


def with_location(error: BaseException, node: Node, position: int, what: str = "element") -> Exception:
    """Return an exception of user code with a note of its location: the same object, unless it would end a loop."""
    error = as_error_of_element(error)
    error.add_note(f"in {node}, {what} {position}")
    for note in _explanations(error):
        error.add_note(note)
    return error  # type: ignore[return-value]  # callers have caught what an element may raise


def _explanations(error: BaseException) -> Iterator[str]:
    """Yield what helps to understand an exception of user code: short text arguments of the function, and advice."""
    function = next((entry.tb_frame for entry in _entries(error) if not is_ours(entry.tb_frame)), None)
    if function is not None:
        names = function.f_code.co_varnames[: function.f_code.co_argcount]
        for name, value in ((name, function.f_locals.get(name)) for name in names):
            text = value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
            if isinstance(text, str) and len(text) <= _SHOWN_MAX and text.isprintable():
                yield f"when it failed, {name} was {value!r}"
    elif isinstance(error, TypeError) and _ARITY.search(str(error)):  # the call of the user's function has failed
        yield _ARITY_ADVICE
    if isinstance(error, TypeError | ValueError | AttributeError):
        advice = next((advice for message, advice in _ADVICE if message.search(str(error))), None)
        if advice is not None:
            yield advice


_SHOWN_MAX = 200  # characters of a text that is shown, such as the name of a file; longer ones are not shown
_ARITY = re.compile(r"takes .*positional arguments? but \d+ (was|were) given|missing \d+ required positional argument")
_ARITY_ADVICE = (
    "a function gets one argument for each component of a tuple, in random_map after the random generator: for pairs, "
    "write lambda image, label: ...; any other element, such as a dict, is one argument"
)
_BYTES = re.compile(
    r"\bstr\b.*\bbytes\b|\bbytes\b.*\bstr\b|must be (of type )?`?str\b|string pattern on a bytes-like|"
    r"^'bytes' object has no attribute"
)
_ADVICE = (
    (
        re.compile("is read-only$"),
        "the library may read this array again, so it cannot be changed in place: copy() it first",
    ),
    (re.compile("has no attribute 'numpy'$"), "values are NumPy arrays here: leave out numpy()"),
    (_BYTES, "text in elements is bytes: use text.decode() where a function needs a str"),
    (
        re.compile("inhomogeneous shape"),
        "lists of different lengths do not form an array: return RaggedTensor.from_rows(lists), or map before batch()",
    ),
)
"""What to do about a TypeError, ValueError or AttributeError of a common mistake in a function."""


def _entries(error: BaseException) -> Iterator[TracebackType]:
    entry = error.__traceback__
    while entry is not None:
        yield entry
        entry = entry.tb_next


_FRAMES_KEPT = 2


def shorten_traceback(error: BaseException) -> None:
    """Remove the frames of the library that only pass an exception on from its traceback.

    Of each run of our frames, the first remains, which the user's code has called, and the last two, which have failed
    or have called the user's function. Python's development mode (``python -X dev``) and failures of the library itself
    keep all frames. Keras and JAX shorten tracebacks in the same way.
    """
    if sys.flags.dev_mode or concerns_iteration(error):
        return
    kept: list[TracebackType] = []
    for ours, entries in itertools.groupby(_entries(error), lambda entry: is_ours(entry.tb_frame)):
        run = list(entries)
        kept += [run[0], *run[1:][-_FRAMES_KEPT:]] if ours else run
    for entry, following in itertools.pairwise(kept):
        entry.tb_next = following


def forget_own_frames(error: BaseException) -> None:
    """Remove the traceback of an exception that waits to be raised, if all its frames are the library's.

    A frame refers to its caller, so a traceback would keep the iterator until a garbage collection. That is accepted
    only for tracebacks that show user code.
    """
    if not sys.flags.dev_mode and all(is_ours(entry.tb_frame) for entry in _entries(error)):
        error.__traceback__ = None


def raise_with_location(error: BaseException, node: Node, position: int, what: str = "element") -> NoReturn:
    """Raise an exception of user code that was just caught, with a note of its location."""
    shown = with_location(error, node, position, what)
    try:
        if shown is error:
            raise shown
        raise shown from None
    finally:
        del error, shown  # see runtime/contract.py on exceptions that are kept

"""The public exceptions of the library.

    DatasetError                    base class of all others; never raised itself
    ├── SpecError (ValueError)      elements do not have the structure, shape or dtype that an operation needs
    ├── DataLossError (OSError)     a file is cut short or its bytes are corrupt
    ├── BrokenConnectionError (OSError)  a remote file could not be read completely after several tries
    ├── FileChangedError (OSError)  a file was changed while it was being read
    ├── ParseError (ValueError)     a record's bytes are intact, but cannot be parsed as the requested message
    ├── CardinalityError (ValueError)  a dataset has fewer or more elements than assert_cardinality was told
    ├── StateError (ValueError)     a saved iterator state does not fit the pipeline that it is loaded into
    ├── WorkerDiedError (RuntimeError)  a worker process was killed or exited while it was working
    ├── ClosedError (RuntimeError)  an iterator was used after close(), or in a forked child
    ├── OutOfRangeError (EOFError)  a queue is closed and has too few elements left, or an iterator none
    └── CancelledError (RuntimeError)  a queue is closed and takes no more elements

Invalid arguments raise plain ``TypeError`` and ``ValueError``; a missing file raises ``FileNotFoundError``. An
exception raised by a user's function keeps its type and gains a note with the operation, the source line and the
element.
"""

from functools import partial
from typing import Any

from dataset.redaction import redacted


class DatasetError(Exception):
    """Base class of the library's own exceptions."""


class SpecError(DatasetError, ValueError):
    """Elements do not have the structure, shape or dtype that an operation needs."""


class DataLossError(DatasetError, OSError):
    """A file is truncated or corrupt.

    Attributes:
        path: the file, with the secrets of a URL redacted.
        offset: the offset of the record's first byte in the uncompressed stream.
        record: the record's index in the file, from 0.
    """

    def __init__(self, message: str, *, path: str, offset: int, record: int) -> None:
        path = redacted(path)
        super().__init__(f"{path}, record {record}, at byte {offset}: {message}")
        self.message = message
        self.path = path
        self.offset = offset
        self.record = record

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle and copy need to rebuild the exception: its constructor takes keyword arguments."""
        return partial(type(self), path=self.path, offset=self.offset, record=self.record), (self.message,), None


class BrokenConnectionError(DatasetError, OSError):
    """A remote file could not be read after several tries. The last failure is the ``__cause__``.

    Attributes:
        path: the file, with the secrets of a URL redacted.
        tries: the number of tries.
    """

    def __init__(self, message: str, *, path: str, tries: int) -> None:
        path = redacted(path)
        super().__init__(f"{path}: {message}")
        self.message = message
        self.path = path
        self.tries = tries

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle and copy need to rebuild the exception: its constructor takes keyword arguments."""
        return partial(type(self), path=self.path, tries=self.tries), (self.message,), None


class FileChangedError(DatasetError, OSError):
    """A file was changed while it was being read. Readers that know the record raise ``DataLossError`` instead.

    Attributes:
        path: the file, with the secrets of a URL redacted.
    """

    def __init__(self, message: str, *, path: str) -> None:
        path = redacted(path)
        super().__init__(f"{path}: {message}")
        self.message = message
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle and copy need to rebuild the exception: its constructor takes a keyword argument."""
        return partial(type(self), path=self.path), (self.message,), None


class ParseError(DatasetError, ValueError):
    """A record could not be parsed as the requested message or into the requested features."""


class CardinalityError(DatasetError, ValueError):
    """A dataset has fewer or more elements than ``assert_cardinality`` was told."""


class StateError(DatasetError, ValueError):
    """A saved iterator state does not fit the pipeline that it is loaded into."""


class WorkerDiedError(DatasetError, RuntimeError):
    """A worker process of ``executor="process"`` or ``distribute`` died.

    Attributes:
        exit_code: the exit code of the process, as in ``subprocess``: negative for a signal, such as -9 for SIGKILL;
            None if no process could be started.
    """

    def __init__(self, message: str, *, exit_code: int | None) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle and copy need to rebuild the exception: its constructor takes a keyword argument."""
        return partial(type(self), exit_code=self.exit_code), self.args, None


class ClosedError(DatasetError, RuntimeError):
    """An iterator was used after it was closed, or in a process forked from the one that owns it."""


class OutOfRangeError(DatasetError, EOFError):
    """A queue is closed and has too few elements left, or an iterator none, like this error in TensorFlow."""


class CancelledError(DatasetError, RuntimeError):
    """A queue is closed and takes no more elements, like the error of this name in TensorFlow."""

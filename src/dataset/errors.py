"""The exceptions of the library. What a user may catch, and nothing else, lives here.

    DatasetError                    everything below; never raised itself
    ├── SpecError (ValueError)      elements do not have the structure, shape or dtype that an operation needs
    ├── DataLossError (OSError)     a file is cut short or its bytes are corrupt
    ├── BrokenConnectionError (OSError)  a server did not answer, or not to the end, in several tries
    ├── FileChangedError (OSError)  a file was changed while it was read, so what is left of it does not fit
    ├── ParseError (ValueError)     a record's bytes are whole, but are not the message that was asked for
    ├── CardinalityError (ValueError)  a dataset has fewer or more elements than assert_cardinality was told
    ├── StateError (ValueError)     a saved iterator state does not fit the pipeline that it is loaded into
    ├── WorkerDiedError (RuntimeError)  a worker process was killed, or ended by itself, in the middle of its work
    └── ClosedError (RuntimeError)  an iterator was used after close(), or in a forked child

Bad arguments raise plain ``TypeError`` and ``ValueError``; a missing file raises ``FileNotFoundError``. An exception
of a user's function keeps its own type and gains a note that says which operation, which source line and which element.
"""

from functools import partial
from typing import Any

from dataset.redaction import redacted


class DatasetError(Exception):
    """The base of the library's own exceptions."""


class SpecError(DatasetError, ValueError):
    """Elements do not have the structure, shape or dtype that an operation needs."""


class DataLossError(DatasetError, OSError):
    """A file is cut short or corrupt.

    Attributes:
        path: the file, without the secrets of a URL.
        offset: byte offset of the record's first byte, in the uncompressed stream.
        record: the record's number in the file, from 0.
    """

    def __init__(self, message: str, *, path: str, offset: int, record: int) -> None:
        path = redacted(path)
        super().__init__(f"{path}, record {record}, at byte {offset}: {message}")
        self.message = message
        self.path = path
        self.offset = offset
        self.record = record

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and sent to other processes: the constructor takes keywords, which pickle cannot know."""
        return partial(type(self), path=self.path, offset=self.offset, record=self.record), (self.message,), None


class BrokenConnectionError(DatasetError, OSError):
    """A remote file could not be read, though it was tried several times. The last failure is the ``__cause__``.

    Attributes:
        path: the file, without the secrets of a URL.
        tries: how many there were.
    """

    def __init__(self, message: str, *, path: str, tries: int) -> None:
        path = redacted(path)
        super().__init__(f"{path}: {message}")
        self.message = message
        self.path = path
        self.tries = tries

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and sent to other processes: the constructor takes keywords, which pickle cannot know."""
        return partial(type(self), path=self.path, tries=self.tries), (self.message,), None


class FileChangedError(DatasetError, OSError):
    """A file was changed while it was read. Readers that know the place in it raise ``DataLossError`` instead.

    Attributes:
        path: the file, without the secrets of a URL.
    """

    def __init__(self, message: str, *, path: str) -> None:
        path = redacted(path)
        super().__init__(f"{path}: {message}")
        self.message = message
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and sent to other processes: the constructor takes a keyword, which pickle cannot know."""
        return partial(type(self), path=self.path), (self.message,), None


class ParseError(DatasetError, ValueError):
    """A record could not be parsed as the message, or into the features, that were asked for."""


class CardinalityError(DatasetError, ValueError):
    """A dataset has fewer or more elements than ``assert_cardinality`` was told."""


class StateError(DatasetError, ValueError):
    """A saved iterator state does not fit the pipeline that it is loaded into."""


class WorkerDiedError(DatasetError, RuntimeError):
    """A worker process of an operation with ``executor="process"`` died.

    Attributes:
        exit_code: of the process, as in ``subprocess``: negative for a signal, so -9 if it was killed by SIGKILL; None
            if no process could be started.
    """

    def __init__(self, message: str, *, exit_code: int | None) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and sent to other processes: the constructor takes a keyword, which pickle cannot know."""
        return partial(type(self), exit_code=self.exit_code), self.args, None


class ClosedError(DatasetError, RuntimeError):
    """An iterator was used after it had been closed, or in a process forked from its owner."""

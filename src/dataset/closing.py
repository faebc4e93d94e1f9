"""Base class of objects that a ``with`` block closes: iterators, open files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Base class of context managers that call ``close`` on exit."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources. May be called more than once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

"""What is let go at the end of a ``with`` block: iterators, open files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["Closing"]


class Closing(ABC):
    """A ``with`` block closes it at its end, however that comes."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

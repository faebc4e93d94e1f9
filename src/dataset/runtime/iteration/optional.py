"""Optional: an element of an iterator, or its end, as a value."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)
_NOTHING: Any = object()


class Optional(Generic[T_co]):
    """What ``iterator.get_next_as_optional()`` returns: an element, or nothing at the end, like TensorFlow's.

    Args:
        value: the element; by default there is none.

    >>> Optional(3).has_value(), Optional().has_value()
    (True, False)
    """

    __slots__ = ("_value",)

    def __init__(self, value: T_co = _NOTHING) -> None:
        self._value = value

    def has_value(self) -> bool:
        """Return whether there is an element."""
        return self._value is not _NOTHING

    def get_value(self) -> T_co:
        """Return the element.

        Raises:
            ValueError: there is none.
        """
        if self._value is _NOTHING:
            raise ValueError("Optional.get_value(): there is no value, because the iterator had ended; see has_value()")
        return self._value

    def __repr__(self) -> str:
        return f"Optional({repr(self._value) if self.has_value() else ''})"

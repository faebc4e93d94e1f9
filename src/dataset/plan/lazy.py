"""Lazy attributes: values that are computed on first access and cached, without locks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy_property(Generic[T]):  # noqa: N801  # named like functools.cached_property
    """Property that is computed once per instance: ``functools.cached_property`` without its lock.

    Before Python 3.12, ``cached_property`` holds one lock for all instances, which could deadlock: a thread that runs a
    plan to find its spec waits for the plan's threads, and these would wait for the lock when they access a spec. Here
    two threads may compute the same value twice, which is harmless.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> Self | T:
        if instance is None:
            return self
        value = self._function(instance)
        vars(instance)[self._name] = value  # from now on, found before this descriptor is called
        return value


def once(method: Callable[[Any], T]) -> Callable[[Any], T]:
    """Cache the result of a method without arguments per object; the ``lazy_property`` of methods."""
    key = f"{method.__qualname__}()"  # no attribute can have this name; an overriding method has a different key

    @functools.wraps(method)
    def remembered(self: Any) -> T:
        found: dict[str, Any] = vars(self)
        if key not in found:
            found[key] = method(self)
        value: T = found[key]
        return value

    return remembered

"""Checks of arguments, with messages that say what was got and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np


def require_int(op: str, argument: str, value: Any, *, minimum: int | None = None, allow: tuple[int, ...] = ()) -> int:
    """``value`` as an int.

    Args:
        op: the method, for the message.
        argument: its argument, for the message.
        value: what the user gave.
        minimum: the least value that is right; default, any.
        allow: values below the minimum that have a meaning of their own.

    Raises:
        TypeError: if it is no int (a bool is not, nor is 2.0).
        ValueError: if it is too small.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{op}(): {argument} must be an int, got {value!r} of type {type(value).__name__}")
    if minimum is not None and value < minimum and value not in allow:
        raise ValueError(f"{op}(): {argument} must be at least {minimum}, got {value}")
    return int(value)


def require_callable(op: str, argument: str, value: Any) -> None:
    """Raise TypeError if ``value`` cannot be called."""
    if not callable(value):
        raise TypeError(f"{op}(): {argument} must be a function, got {value!r} of type {type(value).__name__}")


def require_bool(op: str, argument: str, value: Any) -> bool:
    """``value`` as a bool; TypeError if it is none."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{op}(): {argument} must be True or False, got {value!r}")
    return bool(value)


def require_parallelism(op: str, num_parallel_calls: Any, deterministic: Any) -> None:
    """Check the two arguments that every op with parallel work takes.

    Raises:
        TypeError: if they are neither None nor an int, or a bool.
        ValueError: if ``num_parallel_calls`` is less than 1 and not AUTOTUNE (-1).
    """
    if num_parallel_calls is not None:
        require_int(op, "num_parallel_calls", num_parallel_calls, minimum=1, allow=(-1,))
    if deterministic is not None:
        require_bool(op, "deterministic", deterministic)


def require_threads(op: str, synchronous: Any, use_unbounded_threadpool: Any, num_parallel_calls: int | None) -> None:
    """Check the arguments that say in which threads a user's function may be called.

    Raises:
        TypeError: if one is neither None nor a bool.
        ValueError: if calls are to be both synchronous and parallel.
    """
    if synchronous is not None:
        require_bool(op, "synchronous", synchronous)
    if use_unbounded_threadpool is not None:
        require_bool(op, "use_unbounded_threadpool", use_unbounded_threadpool)
    if synchronous and num_parallel_calls is not None:
        raise ValueError(
            f"{op}(): synchronous=True means that calls are made one by one, so it does not go together with "
            f"num_parallel_calls={num_parallel_calls}; leave out one of them"
        )

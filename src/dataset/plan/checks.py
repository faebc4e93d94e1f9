"""Argument checks, with messages that state the expected and the received value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dataset.plan.nested import is_dataset
from dataset.plan.node import Node
from dataset.plan.spec import Shape, as_shape


def require_int(
    op: str,
    argument: str,
    value: Any,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    allow: tuple[int, ...] = (),
) -> int:
    """Return ``value`` as an int.

    Args:
        op: the method, for the message.
        argument: its argument, for the message.
        value: the user's value.
        minimum: the least valid value; default, any.
        maximum: the greatest valid value; default, any.
        allow: special values below the minimum that are valid, too. The result is of their type, such as AUTOTUNE.

    Raises:
        TypeError: if ``value`` is not an int (True and 2.0 are not).
        ValueError: if it is too small or too large.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{op}(): {argument} must be an int, got {value!r} of type {type(value).__name__}")
    if value in allow:
        special = allow[allow.index(value)]
        return value if isinstance(value, type(special)) else special
    if minimum is not None and value < minimum:
        raise ValueError(f"{op}(): {argument} must be at least {minimum}, got {value}")
    if maximum is not None and value > maximum:
        raise ValueError(f"{op}(): {argument} must be at most {maximum}, got {value}")
    return int(value)


def require_ints(
    op: str, argument: str, values: Any, *, minimum: int | None = None, ascending: bool = False
) -> tuple[int, ...]:
    """Return ``values`` as a tuple of ints.

    Raises:
        TypeError: if they are not a list of ints.
        ValueError: if one is too small, or they are not strictly ascending although they must be.
    """
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str | bytes):
        raise TypeError(f"{op}(): {argument} must be a list of ints, got {values!r} of type {type(values).__name__}")
    numbers = [require_int(op, f"{argument}[{i}]", value, minimum=minimum) for i, value in enumerate(values)]
    if ascending and numbers != sorted(set(numbers)):
        raise ValueError(f"{op}(): {argument} must be strictly ascending, got {numbers}")
    return tuple(numbers)


def require_columns(op: str, columns: Any, argument: str = "columns") -> tuple[str, ...] | None:
    """Check and return ``columns``, the value of an argument, as a tuple of names, or None for all.

    Raises:
        TypeError: it is not a list of names. Sets are not, because their order is not defined.
        ValueError: it is empty, or names a column twice.
    """
    if columns is None:
        return None
    if isinstance(columns, str | bytes | Mapping | set | frozenset) or not isinstance(columns, Iterable):
        raise TypeError(f"{op}(): {argument} must be a list of names, got {columns!r}")
    names = tuple(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{op}(): {argument} must hold names, got {name!r} of type {type(name).__name__}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{op}(): {argument} must name at least one column, each only once, got {columns!r}")
    return names


def require_seconds(op: str, seconds: Any) -> None:
    """Raise TypeError if ``seconds`` is not a number, and ValueError if it is not positive and finite."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float | np.number):
        raise TypeError(f"{op}(): the time must be a number of seconds, got {seconds!r}")
    if not 0 < seconds < math.inf:
        raise ValueError(f"{op}(): the time must be a positive number of seconds, got {seconds!r}")


def require_callable(op: str, argument: str, value: Any) -> None:
    """Raise TypeError if ``value`` is not callable."""
    if not callable(value):
        raise TypeError(f"{op}(): {argument} must be a function, got {value!r} of type {type(value).__name__}")


def require_bool(op: str, argument: str, value: Any) -> bool:
    """Return ``value`` as a bool; TypeError if it is not one."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{op}(): {argument} must be True or False, got {value!r}")
    return bool(value)


def require_one_of(op: str, argument: str, value: Any, allowed: Iterable[str]) -> None:
    """Raise ValueError if ``value`` is not one of ``allowed``."""
    if value not in tuple(allowed):
        raise ValueError(f"{op}(): {argument} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def require_shape(op: str, argument: str, value: Any, *, minus_one: bool = True) -> Shape:
    """Return ``value``, an int or a sequence of ints and None, as a shape.

    Args:
        op: the method, for the message.
        argument: its argument, for the message.
        value: the user's value.
        minus_one: whether -1 means None.

    Raises:
        TypeError: if ``value`` is not a shape.
        ValueError: if a dimension is negative.
    """
    dims = value.tolist() if isinstance(value, np.ndarray) else value
    try:
        dims = [dims] if isinstance(dims, int | np.integer) else list(dims)
        return as_shape([None if minus_one and type(dim) is int and dim == -1 else dim for dim in dims])
    except (TypeError, ValueError) as error:
        raise type(error)(f"{op}(): {argument} must contain shapes of ints and None, got {value!r}") from None


def require_parallelism(op: str, num_parallel_calls: Any, deterministic: Any) -> None:
    """Check the two arguments that all parallel ops have.

    Raises:
        TypeError: if ``num_parallel_calls`` is neither None nor an int, or ``deterministic`` neither None nor a bool.
        ValueError: if ``num_parallel_calls`` is less than 1 and not AUTOTUNE (-1).
    """
    if num_parallel_calls is not None:
        require_int(op, "num_parallel_calls", num_parallel_calls, minimum=1, allow=(-1,))
    if deterministic is not None:
        require_bool(op, "deterministic", deterministic)


def require_plan(op: str, argument: str, value: Any) -> Node:
    """Return the plan of ``value``; TypeError if it is not a Dataset."""
    if not is_dataset(value):
        raise TypeError(f"{op}(): {argument} must be a Dataset, got {value!r} of type {type(value).__name__}")
    return value.plan


def require_plans(op: str, argument: str, values: Any) -> tuple[Node, ...]:
    """Return the plans of a list of datasets.

    Raises:
        TypeError: if ``values`` is not a list or tuple, or an item is not a Dataset.
        ValueError: if it is empty.
    """
    if not isinstance(values, list | tuple):
        raise TypeError(
            f"{op}(): {argument} must be a list of datasets, got {values!r} of type {type(values).__name__}"
        )
    if not values:
        raise ValueError(f"{op}(): {argument} must contain at least one dataset, got {values!r}")
    return tuple(require_plan(op, f"{argument}[{index}]", value) for index, value in enumerate(values))


def require_seed(op: str, seed: Any) -> int | None:
    """Return ``seed`` as an int or None; TypeError if it is anything else."""
    return None if seed is None else require_int(op, "seed", seed)


def require_threads(op: str, synchronous: Any, use_unbounded_threadpool: Any, num_parallel_calls: int | None) -> None:
    """Check the arguments that determine in which threads a user's function is called.

    Raises:
        TypeError: if one is neither None nor a bool.
        ValueError: if calls would be both synchronous and parallel.
    """
    if synchronous is not None:
        require_bool(op, "synchronous", synchronous)
    if use_unbounded_threadpool is not None:
        require_bool(op, "use_unbounded_threadpool", use_unbounded_threadpool)
    if synchronous and num_parallel_calls is not None:
        raise ValueError(
            f"{op}(): synchronous=True makes calls one by one, so it cannot be combined with "
            f"num_parallel_calls={num_parallel_calls}; leave out one of them"
        )


def missing_attribute(holder: Any, name: str) -> AttributeError:
    """Return the error for an attribute that a dataset does not have; only its iterators have a position."""
    advice = "; its iterators have it: iterator = iter(dataset)" if name in ("state_dict", "load_state_dict") else ""
    message = f"{type(holder).__name__!r} object has no attribute {name!r}{advice}"
    return AttributeError(message, name=name, obj=holder)


def require_unmasked(value: Any, caller: str = "") -> None:
    """Raise TypeError for a masked array: NumPy's functions for plain arrays, which callers use, drop masks."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{caller}a masked array, here of shape {value.shape} and dtype {value.dtype}, is not accepted, because "
            "its mask would be lost; use .filled(value), or two components, .data and np.ma.getmaskarray(array)"
        )

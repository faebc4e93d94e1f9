"""Checks of arguments, with messages that say what was got and what is right."""

from __future__ import annotations

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
    """``value`` as an int.

    Args:
        op: the method, for the message.
        argument: its argument, for the message.
        value: what the user gave.
        minimum: the least value that is right; default, any.
        maximum: the greatest; default, any.
        allow: values below the minimum that have a meaning of their own.

    Raises:
        TypeError: if it is no int (a bool is not, nor is 2.0).
        ValueError: if it is too small or too large.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{op}(): {argument} must be an int, got {value!r} of type {type(value).__name__}")
    if minimum is not None and value < minimum and value not in allow:
        raise ValueError(f"{op}(): {argument} must be at least {minimum}, got {value}")
    if maximum is not None and value > maximum:
        raise ValueError(f"{op}(): {argument} must be at most {maximum}, got {value}")
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


def require_shape(op: str, argument: str, value: Any, *, minus_one: bool = True) -> Shape:
    """``value``, an int or a sequence of ints and None, as a shape.

    Args:
        op: the method, for the message.
        argument: its argument, for the message.
        value: what the user gave.
        minus_one: whether -1 means None.

    Raises:
        TypeError: if it is none.
        ValueError: if a dimension is negative.
    """
    dims = value.tolist() if isinstance(value, np.ndarray) else value
    try:
        dims = [dims] if isinstance(dims, int | np.integer) else list(dims)
        return as_shape([None if minus_one and type(dim) is int and dim == -1 else dim for dim in dims])
    except (TypeError, ValueError) as error:
        raise type(error)(f"{op}(): {argument} must hold shapes of ints and None, got {value!r}") from None


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


def require_plan(op: str, argument: str, value: Any) -> Node:
    """Return the plan of ``value``; TypeError if it is no Dataset."""
    if not is_dataset(value):
        raise TypeError(f"{op}(): {argument} must be a Dataset, got {value!r} of type {type(value).__name__}")
    return value.plan


def require_plans(op: str, argument: str, values: Any) -> tuple[Node, ...]:
    """Return the plans of a list of datasets.

    Raises:
        TypeError: if it is no list or tuple, or something in it is no Dataset.
        ValueError: if it is empty.
    """
    if not isinstance(values, list | tuple):
        raise TypeError(
            f"{op}(): {argument} must be a list of datasets, got {values!r} of type {type(values).__name__}"
        )
    if not values:
        raise ValueError(f"{op}(): {argument} must hold at least one dataset, got {values!r}")
    return tuple(require_plan(op, f"{argument}[{index}]", value) for index, value in enumerate(values))


def require_seed(op: str, seed: Any) -> int | None:
    """``seed`` as an int or None; TypeError if it is anything else."""
    return None if seed is None else require_int(op, "seed", seed)


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

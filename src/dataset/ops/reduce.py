"""reduce(initial_state, reduce_func): all elements combined into one value. Runs at once; it has no node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dataset.plan.checks import require_callable
from dataset.plan.origin import caller, function_name
from dataset.runtime.carried import CarriedState, canonical_copy
from dataset.runtime.ownership import own


def reduce(elements: Iterable[Any], initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
    """``reduce_func`` of the state and each element in turn, starting from ``initial_state``."""
    require_callable("reduce", "reduce_func", reduce_func)
    described = f"reduce({function_name(reduce_func)})"
    where = f"{described} from {caller()}"
    state = CarriedState(described, canonical_copy(initial_state))
    for position, element in enumerate(elements):
        try:
            given = (state.give(), element)
            result = own(reduce_func(*given), given)
            state.replace(tuple(result) if type(result) is list else result)  # as in tf.data
        except Exception as error:
            error.add_note(f"in {where}, element {position}")
            raise
    return state.give()

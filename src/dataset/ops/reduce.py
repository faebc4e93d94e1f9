"""Implementation of reduce(initial_state, reduce_func): combine all elements into one value. Runs eagerly, no node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dataset.plan.checks import require_callable
from dataset.plan.origin import caller, function_name
from dataset.runtime.chunks.ownership import own
from dataset.runtime.functions.accumulator import Accumulator, canonical_copy
from dataset.runtime.resources.exceptions import as_error_of_element


def reduce(elements: Iterable[Any], initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
    """Return the result of folding ``reduce_func(state, element)`` over all elements from ``initial_state`` on."""
    require_callable("reduce", "reduce_func", reduce_func)
    described = f"reduce({function_name(reduce_func)})"
    where = f"{described} from {caller()}"
    state = Accumulator(described, canonical_copy(initial_state))
    for position, element in enumerate(elements):
        try:
            given = (state.give(), element)
            result = own(reduce_func(*given), given)
            state.replace(tuple(result) if type(result) is list else result)  # as in tf.data
        except (Exception, GeneratorExit) as error:  # noqa: BLE001  # raised again with the position
            shown = as_error_of_element(error)
            shown.add_note(f"in {where}, element {position}")
            raise shown from error.__cause__
    return state.give()

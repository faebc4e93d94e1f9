"""reduce(initial_state, reduce_func): all elements combined into one value. Runs at once; it has no node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dataset.errors import SpecError
from dataset.plan.checks import require_callable
from dataset.plan.origin import caller, function_name
from dataset.plan.spec import flatten_spec, spec_of
from dataset.plan.structure import StructureMismatchError, structure_of
from dataset.runtime.normalize import chunk_of_rows
from dataset.runtime.ownership import own


def reduce(elements: Iterable[Any], initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
    """``reduce_func`` of the state and each element in turn, starting from ``initial_state``."""
    require_callable("reduce", "reduce_func", reduce_func)
    where = f"reduce({function_name(reduce_func)}) from {caller()}"
    structure = structure_of(initial_state)
    state = chunk_of_rows([own(initial_state)], structure).rows()[0]  # a copy: the function may add to it in place
    dtypes = _dtypes(state)
    for position, element in enumerate(elements):
        try:
            result = own(reduce_func(state, element), (state, element))
            result = tuple(result) if type(result) is list else result
            state = chunk_of_rows([result], structure).rows()[0]
        except StructureMismatchError:
            raise SpecError(
                f"{where}: the function returned {structure_of(result)!r} for element {position}; it must return a "
                f"state of the structure of initial_state, {structure!r}"
            ) from None
        except Exception as error:
            error.add_note(f"in {where}, element {position}")
            raise
        if _dtypes(state) != dtypes:
            raise SpecError(
                f"{where}: the function returned the dtypes {_dtypes(state)} for element {position}; initial_state has "
                f"{dtypes}, and must have those that the function returns"
            )
    return state


def _dtypes(state: Any) -> list[str]:
    return [str(spec.dtype) for spec in flatten_spec(spec_of(state))[1]]

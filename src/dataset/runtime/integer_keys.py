"""The whole numbers that a user's function gives for elements: keys of groups, lengths, sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.plan.node import UnaryNode
from dataset.plan.structure import LEAF, tuple_of
from dataset.runtime.calls import ElementwiseOperator
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Operator

Integers = npt.NDArray[np.int64]


class KeyOperator(ElementwiseOperator):
    """Puts before each element the whole number that a function gives for it.

    Args:
        source: gives the elements.
        node: the operation that asks for the keys.
        function: takes an element as ``map`` passes it.
        argument: what the user knows the function as, for messages.
        keys: makes the keys of what the function returned.
    """

    one_to_one: ClassVar[bool] = True

    def __init__(
        self,
        source: Operator,
        node: UnaryNode,
        function: Callable[..., Any],
        argument: str,
        keys: Callable[[Integers], Integers] | None = None,
    ) -> None:
        super().__init__(source, node, function)
        self.argument = argument
        self.keys = keys

    def finish(self, inputs: Chunk, results: list[Any]) -> Chunk:
        if any(map(_is_no_integer_type, set(map(type, results)))):
            results = [as_integer(self.node, self.argument, result) for result in results]
        return self._keyed(inputs, np.array(results, np.int64))

    def finish_columns(self, inputs: Chunk, result: Any) -> Chunk:
        numbers = np.asarray(result)
        if numbers.dtype.kind not in "iu" or numbers.shape != (inputs.length,):
            raise SpecError(
                f"{self.node.described()}: a vectorized {self.argument} must return {inputs.length} ints, one for each "
                f"element, got dtype {numbers.dtype} and shape {numbers.shape}"
            )
        return self._keyed(inputs, numbers.astype(np.int64))

    def _keyed(self, inputs: Chunk, numbers: Integers) -> Chunk:
        keys = numbers if self.keys is None else self.keys(numbers)
        return Chunk(tuple_of(LEAF, inputs.structure), inputs.length, [keys, *inputs.columns()])


def as_integer(node: UnaryNode, argument: str, value: Any) -> int:
    """What the function ``argument`` of an operation returned, as an int.

    Raises:
        SpecError: if it is no whole number, or a bool.
    """
    number = np.asarray(value)
    if number.dtype.kind not in "iu" or number.ndim:
        raise SpecError(
            f"{node.described()}: {argument} must return an int, got {value!r:.100} of type {type(value).__name__}"
        )
    return int(number)


def _is_no_integer_type(kind: type[Any]) -> bool:
    return kind is not int and not issubclass(kind, np.integer)

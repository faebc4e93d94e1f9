"""Node of choose_from_datasets(datasets, choice_dataset): pull from several datasets in a given order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.amounts import AHEAD_BYTES, EACH_BYTES, EACH_ELEMENTS, STEP_ELEMENTS
from dataset.errors import SpecError
from dataset.ops.mix.mixing import MixOperator
from dataset.ops.mix.selector import Choices, ReadSelector, Selector
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.checks import require_bool
from dataset.plan.node import Node, holds_user_code, spec_is_static
from dataset.plan.spec import TensorSpec, common_spec
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.parallel.buffered_input import BufferedInput
from dataset.runtime.parallel.read_ahead import ReadAheadOperator

_CHOICE = TensorSpec((), np.int64)


@dataclass(frozen=True, eq=False)
class Mix(Node):
    """Base node of the ops that mix datasets; a subclass provides the selector."""

    sources: tuple[Node, ...]
    stop_on_empty_dataset: bool

    def __post_init__(self) -> None:
        stop = require_bool(self.op, "stop_on_empty_dataset", self.stop_on_empty_dataset)
        self._set("stop_on_empty_dataset", stop)
        # If a spec is only known by running a user function, a mismatch is detected at iteration time.
        static = [source.element_spec for source in self.sources if spec_is_static(source)]
        if static:
            common_spec(self.op, static)

    def _element_spec(self) -> Any:
        return common_spec(self.op, [source.element_spec for source in self.sources])

    def cardinality(self) -> int:
        endless = any(source.cardinality() == INFINITE_CARDINALITY for source in self.sources)
        return INFINITE_CARDINALITY if endless else UNKNOWN_CARDINALITY  # as in tf.data, ignoring the choices

    def label(self) -> str:
        return f"{self.op}({len(self.sources)} datasets)"

    def lower(self, context: ExecutionContext) -> Operator:
        feeds = [BufferedInput(source, context(source, index)) for index, source in enumerate(self.sources)]
        counts = context.counters.by_source
        counts += [0] * (len(feeds) - len(counts))
        mix = MixOperator(self, feeds, self._selector(context), counts, stop_on_empty=self.stop_on_empty_dataset)
        if not context.iteration.background or not context.input_is_replayable or holds_user_code(self):
            return mix
        width = len(feeds)
        most = max(STEP_ELEMENTS, width * EACH_ELEMENTS), max(AHEAD_BYTES, width * EACH_BYTES)
        return ReadAheadOperator(mix, context, elements_max=most[0], bytes_max=most[1], is_steady=False)

    def _selector(self, context: ExecutionContext) -> Selector:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class ChooseFromDatasets(Mix):
    """Node whose element ``i`` is the next element of ``sources[choices[i]]``."""

    op: ClassVar[str] = "choose_from_datasets"
    choices: Node

    def __post_init__(self) -> None:
        super().__post_init__()
        if spec_is_static(self.choices) and not _CHOICE.is_compatible_with(self.choices.element_spec):
            raise TypeError(
                f"{self.op}(): choice_dataset must have int64 scalars as elements, got {self.choices.element_spec!r}"
            )

    def _selector(self, context: ExecutionContext) -> Selector:
        return ChoiceSelector(self, self.choices, context(self.choices, len(self.sources)))


class ChoiceSelector(ReadSelector):
    """Selector whose choices are the elements of a dataset."""

    def convert(self, inputs: Chunk) -> Choices:
        (column,) = inputs.columns() if inputs.structure is LEAF else (None,)
        if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype == np.int64:
            return column
        if isinstance(column, list) and all(type(value) is np.int64 for value in column):
            return np.array(column, np.int64)
        raise SpecError(f"{self.node}: choice {self.position} must be an int64 scalar, got {inputs.rows()[0]!r:.200}")

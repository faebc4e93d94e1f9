"""Node of sample_from_datasets(datasets, weights): mix several datasets at random or in exact proportions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.ops.mix.choose_from_datasets import Mix
from dataset.ops.mix.quota import QuotaSelector
from dataset.ops.mix.selector import Choices, ReadSelector, Selector
from dataset.ops.take import Take
from dataset.plan.checks import require_bool, require_plans
from dataset.plan.nested import is_dataset
from dataset.plan.node import Node, spec_is_static
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import State
from dataset.runtime.random.streams import RandomPass, random_state


@dataclass(frozen=True, eq=False)
class SampleFromDatasets(Mix):
    """Node that chooses the source of each element by weight: one weight per source, or a dataset of weight vectors."""

    op: ClassVar[str] = "sample_from_datasets"
    weights: tuple[float, ...] | Node
    seed: InitVar[int | None] = None
    rerandomize_each_iteration: bool = False
    exact: bool = False

    def __post_init__(self, seed: int | None) -> None:
        super().__post_init__()
        if self.random is None and not self.exact:  # else the node is a copy
            self._set("random", random_state(self.op, seed))
        if isinstance(self.weights, Node) and spec_is_static(self.weights):
            self._check_weights_spec(self.weights.element_spec)

    def _check_weights_spec(self, spec: Any) -> None:
        count = len(self.sources)
        fits = isinstance(spec, TensorSpec) and spec.dtype.kind in "fiu" and spec.shape in {None, (None,), (count,)}
        if not fits:
            raise TypeError(
                f"{self.op}(): the elements of a weights dataset must be vectors of {count} numbers, got {spec!r}"
            )

    def _selector(self, context: ExecutionContext) -> Selector:
        if self.random is None:
            assert not isinstance(self.weights, Node)  # checked by sample_plan
            return QuotaSelector(self.weights)
        draws, again = context.draws(self.random), not self.rerandomize_each_iteration
        stream = RandomPass(draws, context.iteration.epochs, self.random, again=again)
        if isinstance(self.weights, Node):
            return VaryingSelector(self, stream, self.weights, context)
        return RandomSelector(stream, self.weights)


class RandomSelector(Selector):
    """Selector that makes choice ``i`` from random number ``i``; inputs that have ended are not chosen."""

    def __init__(self, random: RandomPass, weights: Sequence[float]) -> None:
        self.random = random
        self.weights = np.array(weights, np.float64)

    def draw(self, n: int) -> Choices:
        return np.searchsorted(_bounds(self.weights), self.random.stream.random(n), side="right").astype(np.int64)

    def leave_out(self, index: int, unused: int) -> bool:
        self.weights[index] = 0
        self.random.stream.seek(self.random.stream.position - unused)
        return True

    def live(self) -> list[int]:
        return np.flatnonzero(self.weights).tolist()

    def save(self) -> State:
        return {"random": self.random.save(), "weights": self.weights.copy()}

    def state_before(self, unused: int) -> State:
        random = self.random.save()
        return {"random": {**random, "drawn": random["drawn"] - unused}, "weights": self.weights.copy()}

    def load(self, state: State) -> None:
        self.random.load(state["random"])
        self.weights = state["weights"].copy()


class VaryingSelector(ReadSelector):
    """Selector that reads the weights of each choice from a dataset."""

    def __init__(self, node: SampleFromDatasets, random: RandomPass, weights: Node, context: ExecutionContext) -> None:
        super().__init__(node, weights, context(weights, len(node.sources)))
        self.random = random
        self.count = len(node.sources)

    def convert(self, inputs: Chunk) -> Choices:
        weights = self._weights(inputs)
        if weights is None:
            raise SpecError(
                f"{self.node}: weights {self.position} must be a vector of {self.count} finite numbers that "
                f"are at least 0 and not all 0, got {inputs.rows()[0]!r:.200}"
            )
        drawn = self.random.stream.random(inputs.length)[:, None]
        return np.asarray((_bounds(weights) <= drawn).sum(axis=1), np.int64)

    def _weights(self, inputs: Chunk) -> npt.NDArray[np.float64] | None:
        """Return a row of weights for each element; None if any element is invalid."""
        if inputs.structure is not LEAF:
            return None
        (column,) = inputs.columns()
        if isinstance(column, list):
            if any(not isinstance(value, np.ndarray) or value.shape != (self.count,) for value in column):
                return None
            column = np.stack(column)
        if column.dtype.kind not in "fiu" or column.shape[1:] != (self.count,):
            return None
        weights = column.astype(np.float64)
        usable = np.isfinite(weights).all() and (weights >= 0).all() and (weights.max(axis=1) > 0).all()
        return weights if usable else None

    def save(self) -> State:
        return {**super().save(), "random": self.random.save()}

    def load(self, state: State) -> None:
        super().load(state)
        self.random.load(state["random"])


def _bounds(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the upper bound of each input's interval in [0, 1]; inputs of weight 0 have an empty interval."""
    upper = np.cumsum(weights / weights.max(axis=-1, keepdims=True), axis=-1)
    bounds: npt.NDArray[np.float64] = upper / upper[..., -1:]
    return bounds


def sample_plan(
    datasets: Any, weights: Any, seed: Any, stop: Any, rerandomize: Any, *, exact: Any, name: str | None
) -> Node:
    """Return the plan of ``Dataset.sample_from_datasets``: sources of weight 0 are dropped, as in tf.data."""
    op = SampleFromDatasets.op
    sources = require_plans(op, "datasets", datasets)
    rerandomize = rerandomize is not None and require_bool(op, "rerandomize_each_iteration", rerandomize)
    exact = require_bool(op, "exact", exact)
    if exact and seed is not None:
        raise ValueError(f"{op}(): exact=True is deterministic and takes no seed, got seed={seed!r}")
    if is_dataset(weights):
        if exact:
            raise ValueError(f"{op}(): exact=True needs constant weights, a list of numbers, got a dataset")
        return SampleFromDatasets(sources, stop, weights.plan, seed, rerandomize, name=name)
    shares = (1.0,) * len(sources) if weights is None else _constant(op, weights, len(sources))
    node = SampleFromDatasets(sources, stop, shares, seed, rerandomize, exact, name=name)  # checks all sources
    used = [(source, share) for source, share in zip(sources, shares, strict=True) if share > 0]
    if len(used) == len(sources) > 1:
        return node
    if not used:
        return Take(sources[0], 0, name=name)
    if len(used) == 1:
        return used[0][0]
    sources, shares = zip(*used, strict=True)
    return SampleFromDatasets(sources, stop, shares, None, rerandomize, exact, random=node.random, name=name)


def _constant(op: str, weights: Any, count: int) -> tuple[float, ...]:
    """Return the user's weights as floats."""
    if not isinstance(weights, list | tuple | np.ndarray):
        raise TypeError(f"{op}(): weights must be a list of numbers or a Dataset, got {weights!r}")
    if len(weights) != count:
        raise ValueError(f"{op}(): weights must have one number per dataset ({count}), got {len(weights)}: {weights!r}")
    for weight in weights:
        if isinstance(weight, bool | np.bool_) or not isinstance(weight, int | float | np.integer | np.floating):
            raise TypeError(f"{op}(): weights must be numbers, got {weight!r} of type {type(weight).__name__}")
        if not np.isfinite(weight) or weight < 0:
            raise ValueError(f"{op}(): weights must be finite and at least 0, got {weights!r}")
    # Converted through its text so that a float32 keeps its short decimal form.
    return tuple(float(str(weight)) for weight in weights)

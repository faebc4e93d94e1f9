"""Node of sample_from_datasets(datasets, weights): mix several datasets at random or in exact proportions."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError, StateError
from dataset.ops.mix.choose_from_datasets import Mix
from dataset.ops.mix.quota import QuotaSelector
from dataset.ops.mix.schedule import Weights, WeightSchedule, is_schedule, schedule_of
from dataset.ops.mix.selector import SELECTOR, Choices, ReadSelector, Selector
from dataset.ops.repeat import Repeat
from dataset.ops.take import Take
from dataset.plan.checks import require_bool, require_one_of, require_plans
from dataset.plan.lazy import lazy_property
from dataset.plan.nested import is_dataset
from dataset.plan.node import Node, spec_is_static
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.position import Position
from dataset.runtime.random.streams import RandomPass, random_state
from dataset.runtime.resources.exceptions import raise_with_location

_ON_EMPTY = ("continue", "stop", "repeat")


@dataclass(frozen=True, eq=False)
class SampleFromDatasets(Mix):
    """Node that chooses the source of each element by weight.

    There is one weight per source, or a schedule of such weights, or a dataset of them.
    """

    op: ClassVar[str] = "sample_from_datasets"
    weights: tuple[float, ...] | WeightSchedule | Node
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
            assert isinstance(self.weights, tuple)  # checked by sample_plan
            return QuotaSelector(self.weights)
        draws, again = context.draws(self.random), not self.rerandomize_each_iteration
        stream = RandomPass(draws, context.iteration.epochs, self.random, again=again)
        if isinstance(self.weights, Node):
            return VaryingSelector(self, stream, self.weights, context)
        weights = self.weights
        return RandomSelector(
            self, stream, weights if isinstance(weights, WeightSchedule) else WeightSchedule((0,), (weights,))
        )

    @lazy_property
    def traits(self) -> Traits:
        calls = isinstance(self.weights, WeightSchedule) and self.weights.function is not None
        return super().traits.having(pure=not calls, stable=not self.rerandomize_each_iteration)

    def parameters(self) -> dict[str, Any]:
        """Return what must match a saved state. Later elements may have other weights."""
        found = super().parameters()
        if not self.exact and not isinstance(self.weights, Node):
            del found["weights"]
        return found

    def fingerprint_fields(self) -> Any:
        weights = self.weights
        if isinstance(weights, WeightSchedule):
            weights = (weights.numbers, weights.weights, weights.interpolation, weights.function)  # type: ignore[assignment]
        return [super().fingerprint_fields(), None if isinstance(weights, Node) else weights]


class RandomSelector(Selector):
    """Selector that makes choice ``i`` from random number ``i``; inputs that have ended are not chosen.

    A state has the weights. The pipeline that loads it may have others for later elements, but not for the last one,
    nor for those that were returned after the state of this operator was taken: they are chosen again.
    """

    def __init__(self, node: SampleFromDatasets, random: RandomPass, schedule: WeightSchedule) -> None:
        self.node = node
        self.random = random
        self.schedule = schedule
        self.seen_early = schedule.function is not None
        self._live = np.ones(len(node.sources), np.bool_)

    def draw(self, n: int) -> Choices:
        if len(self.schedule.numbers) == 1:
            bounds = _bounds(self._usable(np.array(self.schedule.weights)))[0]
            return np.searchsorted(bounds, self.random.stream.random(n), side="right").astype(np.int64)
        first = self._number(self.random.stream.position)
        try:
            weights = self.schedule.at(np.arange(first, first + n), len(self._live))
        except Exception as error:  # noqa: BLE001  # raised again with the number of the element
            if n > 1:
                return self.draw(1)  # those before it come first
            self.random.stream.random(1)
            raise_with_location(error, self.node, first, "weights of element")
        drawn = self.random.stream.random(n)[:, None]
        return np.asarray((_bounds(self._usable(weights)) <= drawn).sum(axis=1), np.int64)

    def _number(self, position: int) -> int:
        """Return the number of the element of a choice. That of an input that had just ended has none."""
        return position - int((~self._live).sum())

    def _usable(self, weights: Weights) -> Weights:
        """Return the weights of the inputs that are left; all equal if none of them has a weight."""
        usable = weights * self._live
        usable[~usable.any(axis=1)] = self._live
        return usable

    def leave_out(self, index: int, unused: int) -> bool:
        self._live[index] = False
        self.random.stream.seek(self.random.stream.position - unused)
        return True

    def live(self) -> list[int]:
        return np.flatnonzero(self._live).tolist()

    def save(self) -> Position:
        return self.position_before(0)

    def position_before(self, unused: int) -> Position:
        random = self.random.save()
        random["drawn"] -= unused
        return Position(SELECTOR, own={"random": random, "live": self._live.copy(), "weights": self._saved_weights()})

    def _saved_weights(self) -> dict[str, Any] | None:
        schedule = self.schedule
        if schedule.function is not None:
            return None  # saving calls no user code
        weights = np.array(schedule.weights)
        return {"at": list(schedule.numbers), "of": weights, "interpolation": schedule.interpolation}

    def load(self, position: Position) -> None:
        self.random.load(position.own["random"])
        self._live = np.array(position.own["live"], np.bool_)
        if position.own["weights"] is None or self.schedule.function is not None:
            return
        saved = self._loaded_weights(position.own["weights"])
        number, count = max(1, self._number(self.random.stream.position)), len(self._live)
        self.changed_from = saved.first_change(self.schedule, number - 1, count)
        if self.changed_from == number - 1:
            before, now = (
                schedule.at(np.array([number - 1]), count)[0].tolist() for schedule in (saved, self.schedule)
            )
            raise StateError(
                f"{self.node}: the weights of element {number - 1:,} were {before} in the saved pipeline, and are "
                f"{now}; only weights of later elements may change, such as in weights=[(0, {before}), ({number}, "
                f"{now})]"
            )

    def _loaded_weights(self, saved: Any) -> WeightSchedule:
        try:
            weights = [(float(value) for value in row) for row in saved["of"]]
            points = list(zip(saved["at"], weights, strict=True))
            found = schedule_of(self.node.op, points, saved["interpolation"], tuple)
            if any(len(row) != len(self._live) or not np.isfinite(row).all() or min(row) < 0 for row in found.weights):
                raise ValueError(f"weights of {len(self._live)} inputs were expected")  # noqa: TRY301
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(f"{self.node}: the saved weights are damaged: {error}") from error
        return found


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

    def save(self) -> Position:
        return super().save().having(own={"random": self.random.save()})

    def load(self, position: Position) -> None:
        super().load(position)
        self.random.load(position.own["random"])


def _bounds(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the upper bound of each input's interval in [0, 1]; inputs of weight 0 have an empty interval."""
    upper = np.cumsum(weights / weights.max(axis=-1, keepdims=True), axis=-1)
    bounds: npt.NDArray[np.float64] = upper / upper[..., -1:]
    return bounds


def sample_plan(
    datasets: Any,
    weights: Any,
    seed: Any,
    stop: Any,
    rerandomize: Any,
    *,
    exact: Any,
    interpolation: Any = "step",
    on_empty: Any = None,
    name: str | None,
) -> Node:
    """Return the plan of ``Dataset.sample_from_datasets``: sources of weight 0 are dropped, as in tf.data."""
    op = SampleFromDatasets.op
    sources = require_plans(op, "datasets", datasets)
    rerandomize = rerandomize is not None and require_bool(op, "rerandomize_each_iteration", rerandomize)
    exact = require_bool(op, "exact", exact)
    if exact and seed is not None:
        raise ValueError(f"{op}(): exact=True is deterministic and takes no seed, got seed={seed!r}")
    stop = _stops(op, stop, on_empty)
    if on_empty == "repeat":
        sources = tuple(Repeat(source, -1) for source in sources)
    schedule = _schedule(op, weights, interpolation, len(sources))
    if schedule is not None:
        if exact:
            raise ValueError(f"{op}(): exact=True needs constant weights, a list of numbers, got a schedule")
        return SampleFromDatasets(sources, stop, schedule, seed, rerandomize, name=name)
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


def _stops(op: str, stop: Any, on_empty: Any) -> Any:
    """Return whether the mix ends with the first source that ends, from the two arguments that can say so."""
    if on_empty is None:
        return stop
    require_one_of(op, "on_empty", on_empty, _ON_EMPTY)
    if stop:
        raise ValueError(f"{op}(): give stop_on_empty_dataset or on_empty, not both")
    return on_empty == "stop"


def _schedule(op: str, weights: Any, interpolation: Any, count: int) -> WeightSchedule | None:
    """Return the user's schedule; None for weights of other kinds."""
    if is_schedule(weights):
        return schedule_of(op, weights, interpolation, lambda values: _constant(op, values, count))
    if interpolation != "step":
        raise ValueError(f"{op}(): interpolation={interpolation!r} needs weights at several element numbers")
    return WeightSchedule(function=weights) if callable(weights) and not is_dataset(weights) else None


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

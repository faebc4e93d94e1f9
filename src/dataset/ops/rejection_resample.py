"""Nodes and operators of rejection_resample: drop and repeat elements to reach a target class distribution.

Let p be the initial and t the target distribution. As in tf.data, the result mixes two passes over the data. With
probability m = min(t / p), the next element is the next one of the first pass. Else it is the next accepted element of
the second pass, which accepts an element of class i with probability a_i = (t_i / p_i - m) / (max(t / p) - m). The end
of either pass ends the result. If p is not given, it is estimated block by block from the elements seen so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.ops.map import Map
from dataset.ops.mix.sample_from_datasets import SampleFromDatasets
from dataset.plan.checks import require_callable, require_seed
from dataset.plan.node import GroupingNode, Node, UnaryNode
from dataset.plan.origin import function_name
from dataset.plan.random_state import RandomState
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.parallel.buffered_operator import BufferedUnaryOperator
from dataset.runtime.position import Position
from dataset.runtime.random.streams import RandomPass, random_state

Distribution: TypeAlias = npt.NDArray[np.float64]

_BLOCK = 32  # elements between two estimates, as in tf.data
_SMOOTHING = 10  # initial count of each class, as in tf.data
_SUM_TOLERANCE = 1e-3  # for distributions written with few digits


@dataclass(frozen=True, eq=False)
class Labelled(Map):
    """Node that yields (class, element) pairs; ``function`` returns the pair and checks the class."""

    op: ClassVar[str] = "rejection_resample"
    shown: str = field(default="", kw_only=True, repr=False)

    def label(self) -> str:
        return f"{self.op}({self.shown})"

    def _element_spec(self) -> Any:
        element = self.source.element_spec
        if isinstance(element, tuple):
            element = element[0] if len(element) == 1 else tuple(element)
        return super()._element_spec()[0], element


@dataclass(frozen=True, eq=False)
class Accept(UnaryNode, counted=False):
    """Node that accepts pairs with a probability per class."""

    op: ClassVar[str] = "rejection_resample.accept"
    target: tuple[float, ...]
    initial: tuple[float, ...] | None
    random: RandomState = field(kw_only=True, repr=False)

    def lower(self, context: ExecutionContext) -> Operator:
        random = RandomPass(context.draws(self.random), context.iteration.epochs, self.random, again=True)
        return AcceptOperator(context(self.source), self, random)


@dataclass(frozen=True, eq=False)
class MixWeights(GroupingNode):
    """Node that yields the current estimate of (m, 1 - m) for each element of the data."""

    op: ClassVar[str] = "rejection_resample.weights"
    target: tuple[float, ...]

    def _element_spec(self) -> Any:
        return TensorSpec((2,), np.float64)

    def lower(self, context: ExecutionContext) -> Operator:
        return MixWeightsOperator(context(self.source), self)


class _Estimate:
    """Estimator of the class distribution from smoothed counts, updated per block."""

    def __init__(self, source: Operator, classes: int) -> None:
        self.source = source
        self.counts = np.full(classes, _SMOOTHING, np.int64)

    def read_block(self) -> list[Outcome]:
        """Read and count the next elements; failures keep their positions. Empty at the end."""
        block: list[Outcome] = []
        count = 0
        while count < _BLOCK:
            try:
                chunk = self.source.pull(_BLOCK - count)
            except Exception as error:  # noqa: BLE001  # raised at its position
                block.append(error)
                count += 1
                continue
            if chunk is None:
                break
            self.counts += np.bincount(classes_of(chunk), minlength=len(self.counts))
            block.append(chunk)
            count += chunk.length
        return block

    @property
    def shares(self) -> Distribution:
        shares: Distribution = self.counts / self.counts.sum()
        return shares


class AcceptOperator(BufferedUnaryOperator):
    """Operator that decides on element ``i`` with random number ``i``, not counting failures."""

    def __init__(self, source: Operator, node: Accept, random: RandomPass) -> None:
        super().__init__(source, node)
        self.random = random
        self.target = np.array(node.target)
        self._estimate = _Estimate(source, len(node.target)) if node.initial is None else None
        self._probabilities = None if node.initial is None else acceptance(self.target, np.array(node.initial))

    def produce(self, n: int) -> Chunk | None:
        while not self.outbox:
            block = self._next_block(n)
            if not block:
                return None
            for outcome in block:
                self._decide(outcome)
        return self.outbox.give(n)

    def _next_block(self, n: int) -> list[Outcome]:
        """Return the next elements, and exceptions in their places; an empty list at the end."""
        if self._estimate is None:
            chunk = self.source.pull(n)
            return [] if chunk is None else [chunk]
        block = self._estimate.read_block()
        self._probabilities = acceptance(self.target, self._estimate.shares)
        return block

    def _decide(self, outcome: Outcome) -> None:
        if isinstance(outcome, Chunk):
            assert self._probabilities is not None
            wanted = self._probabilities[classes_of(outcome)]
            kept = np.flatnonzero(self.random.stream.random(outcome.length) < wanted)
            if not len(kept):
                return
            outcome = outcome if len(kept) == outcome.length else outcome.take(kept)
        self.outbox.put(outcome)

    def save(self) -> Position:
        counts = {} if self._estimate is None else {"counts": self._estimate.counts.copy()}
        return super().save().having(own={"random": self.random.save(), **counts})

    def load(self, position: Position) -> None:
        super().load(position)
        self.random.load(position.own["random"])
        if self._estimate is not None:
            self._estimate.counts = position.own["counts"].copy()


class MixWeightsOperator(BufferedUnaryOperator):
    """Operator that computes one estimate per block."""

    def __init__(self, source: Operator, node: MixWeights) -> None:
        super().__init__(source, node)
        self.target = np.array(node.target)
        self._estimate = _Estimate(source, len(node.target))

    def produce(self, n: int) -> Chunk | None:
        if self._estimate.read_block():
            first = mixing(self.target, self._estimate.shares)
            self.outbox.put(Chunk(LEAF, _BLOCK, [np.tile([first, 1 - first], (_BLOCK, 1))]))
        return self.outbox.give(n)

    def save(self) -> Position:
        return super().save().having(own={"counts": self._estimate.counts.copy()})

    def load(self, position: Position) -> None:
        super().load(position)
        self._estimate.counts = position.own["counts"].copy()


def classes_of(chunk: Chunk) -> npt.NDArray[np.int64]:
    """Return the classes of labelled elements."""
    return np.asarray(chunk.columns()[0], np.int64)


def _ratios(target: Distribution, initial: Distribution) -> Distribution:
    # Classes with initial probability 0 are ignored; their target probability was checked to be 0.
    return np.divide(target, initial, out=np.zeros_like(target), where=initial > 0)


def mixing(target: Distribution, initial: Distribution) -> float:
    """Return the probability m of choosing the first pass."""
    return min(1.0, float(_ratios(target, initial).min()))


def acceptance(target: Distribution, initial: Distribution) -> Distribution:
    """Return the acceptance probability of the second pass per class."""
    ratios = _ratios(target, initial)
    least, most = ratios.min(), ratios.max()
    return (ratios - least) / (most - least) if most > least else np.ones_like(ratios)


def rejection_resample_plan(
    source: Node, class_func: Any, target_dist: Any, initial_dist: Any, seed: Any, name: str | None
) -> Node:
    """Return the plan of ``Dataset.rejection_resample``."""
    op = Labelled.op
    require_callable(op, "class_func", class_func)
    seed = require_seed(op, seed)
    target = _distribution("target_dist", target_dist)
    initial = None if initial_dist is None else _distribution("initial_dist", initial_dist)
    if initial is not None and len(initial) != len(target):
        raise ValueError(
            f"{op}(): target_dist and initial_dist must have the same size, got {len(target)} and {len(initial)}"
        )
    if initial is not None and ((initial == 0) & (target > 0)).any():
        raise ValueError(
            f"{op}(): initial_dist must not be 0 for a class that target_dist requests, got "
            f"target_dist={target_dist!r} and initial_dist={initial_dist!r}"
        )
    function = _labels(class_func, len(target))
    labelled = Labelled(source, function, shown=function_name(class_func), name=name)
    first = None if initial is None else mixing(target, initial)
    if first is not None and first > 1 - np.finfo(np.float32).eps:
        return labelled
    shares = None if initial is None else tuple(initial.tolist())
    wanted = tuple(target.tolist())
    accepted = Accept(labelled, wanted, shares, random=random_state(op, seed), name=name)
    if first == 0:
        return accepted
    weights = MixWeights(labelled, wanted, name=name) if first is None else (first, 1 - first)
    return SampleFromDatasets((labelled, accepted), True, weights, seed, name=name)


def _labels(class_func: Callable[..., Any], classes: int) -> Callable[..., tuple[Any, Any]]:
    """Return a function that labels an element with its class."""

    def labelled(*element: Any) -> tuple[Any, Any]:
        found = class_func(*element)
        label = np.asarray(found)
        if label.ndim or label.dtype.kind not in "iu":
            raise SpecError(
                f"rejection_resample(): class_func must return an int scalar, got {found!r} of type "
                f"{type(found).__name__}"
            )
        if not 0 <= label < classes:
            raise ValueError(
                f"rejection_resample(): class_func must return a class from 0 to {classes - 1}, an index of "
                f"target_dist, got {found!r}"
            )
        return found, element[0] if len(element) == 1 else element

    return labelled


def _distribution(argument: str, value: Any) -> Distribution:
    """Check and normalize a user's distribution over classes; its sum must be about 1."""
    try:
        shares = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"rejection_resample(): {argument} must be a vector of numbers, got {value!r}") from None
    if shares.ndim != 1 or not shares.size:
        raise ValueError(
            f"rejection_resample(): {argument} must be a vector, one probability per class, got shape {shares.shape}"
        )
    if not (shares >= 0).all():
        raise ValueError(f"rejection_resample(): {argument} must contain numbers of at least 0, got {value!r}")
    if not abs(shares.sum() - 1) <= _SUM_TOLERANCE:
        raise ValueError(f"rejection_resample(): {argument} must sum to 1, got {value!r} with sum {shares.sum()}")
    normalised: Distribution = shares / shares.sum()
    return normalised

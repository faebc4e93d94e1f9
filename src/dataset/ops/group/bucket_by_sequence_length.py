"""Node and operator of bucket_by_sequence_length(...): batch elements of similar length to reduce padding."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dataset.ops.batch.batch import Batch, BatchOperator
from dataset.ops.batch.padded_batch import PaddedBatch
from dataset.ops.group.group_by_window import GroupsOperator
from dataset.ops.group.integer_keys import Integers, KeyOperator
from dataset.plan.checks import require_bool, require_callable, require_ints
from dataset.plan.lazy import lazy_property
from dataset.plan.node import GroupingNode, Node, spec_is_static
from dataset.plan.origin import function_name
from dataset.plan.spec import Shape, flatten_spec, is_dense
from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class BucketBySequenceLength(GroupingNode, pure=False, takes_packed=True):
    """Node that batches elements whose lengths are between the same two boundaries.

    Bucket ``i`` holds lengths from ``bucket_boundaries[i - 1]`` to below ``bucket_boundaries[i]``. The first bucket has
    no lower bound, the last no upper bound.
    """

    op: ClassVar[str] = "bucket_by_sequence_length"
    element_length_func: Callable[..., Any]
    bucket_boundaries: Sequence[int]
    bucket_batch_sizes: Sequence[int]
    padded_shapes: Any = None
    padding_values: Any = None
    pad_to_bucket_boundary: bool = False
    no_padding: bool = False
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        require_callable(self.op, "element_length_func", self.element_length_func)
        for argument in ("pad_to_bucket_boundary", "no_padding", "drop_remainder"):
            self._set(argument, require_bool(self.op, argument, getattr(self, argument)))
        boundaries = require_ints(self.op, "bucket_boundaries", self.bucket_boundaries, ascending=True)
        sizes = require_ints(self.op, "bucket_batch_sizes", self.bucket_batch_sizes, minimum=1)
        if len(sizes) != len(boundaries) + 1:
            raise ValueError(
                f"{self.op}(): bucket_batch_sizes must have one more entry than bucket_boundaries, for lengths from "
                f"the last boundary on; got {len(sizes)} bucket_batch_sizes and {len(boundaries)} bucket_boundaries"
            )
        self._set("bucket_boundaries", boundaries)
        self._set("bucket_batch_sizes", sizes)
        self._check_padding()

    def _check_padding(self) -> None:
        if self.no_padding:
            return
        if not spec_is_static(self.source):
            if self.pad_to_bucket_boundary and self.padded_shapes is None:
                raise ValueError(
                    f"{self.op}(): pad_to_bucket_boundary needs padded_shapes here, because a function determines the "
                    "shapes of the elements; pass padded_shapes with None in the dimensions to pad"
                )
            return
        structure, specs = flatten_spec(self.source.element_spec)
        for index, spec in enumerate(specs):
            if not is_dense(spec):
                raise TypeError(
                    f"{self.op}(): {structure.component_name(index)} is a {spec!r}, which cannot be padded; use "
                    "no_padding=True"
                )
        self._batch_node(self.source, 1)  # checks shapes and values

    def _element_spec(self) -> Any:
        return self._batch_node(self.source, 1).element_spec

    def label(self) -> str:
        return f"{self.op}({function_name(self.element_length_func)}, {list(self.bucket_boundaries)})"

    def lower(self, context: ExecutionContext) -> Operator:
        function = self.element_length_func
        keyed = KeyOperator(
            context(self.source), self, function, "element_length_func", self._bucket_of, self._buckets_of
        )
        return BucketsOperator(context, keyed, self)

    @lazy_property
    def _bucket_of(self) -> Callable[[int], int]:
        """The function that returns the bucket index for a length."""
        find = partial(bisect.bisect_right, self.bucket_boundaries)
        return self._checked(find) if self.pad_to_bucket_boundary and not self.no_padding else find

    def _checked(self, find: Callable[[int], int]) -> Callable[[int], int]:
        def bucket_of(length: int) -> int:
            bucket = find(length)
            if bucket == len(self.bucket_boundaries):
                raise ValueError(
                    f"{self.label()}: with pad_to_bucket_boundary every length must be below the last boundary, "
                    f"got {length}; add a boundary or filter out such elements"
                )
            return bucket

        return bucket_of

    @lazy_property
    def _boundaries(self) -> Integers:
        """The boundaries as an array, clipped to the range of int64, which no length exceeds."""
        largest = np.iinfo(np.int64).max
        return np.array([max(-largest, min(boundary, largest)) for boundary in self.bucket_boundaries], np.int64)

    def _buckets_of(self, lengths: Integers) -> Integers:
        """Return the bucket indices, up to the first length without a bucket."""
        buckets = self._boundaries.searchsorted(lengths, side="right")
        if self.pad_to_bucket_boundary and not self.no_padding:
            too_long = buckets == len(self.bucket_boundaries)
            if too_long.any():
                return buckets[: too_long.argmax()]
        return buckets

    def batch_of(self, bucket: int) -> Batch:
        """Return the batch node for a full bucket."""
        length = self.bucket_boundaries[bucket] - 1 if self.pad_to_bucket_boundary and not self.no_padding else None
        return self._batch_node(self.source, self.bucket_batch_sizes[bucket], self.drop_remainder, length)

    def _batch_node(self, window: Node, size: int, drop_remainder: bool = False, length: int | None = None) -> Batch:
        """Return the batch node for a full window, padded to ``length`` if given."""
        if self.no_padding:
            return Batch(window, size, drop_remainder, origin=self.origin)
        return _PaddedBucket(
            window, size, drop_remainder, self._shapes, self.padding_values, length=length, origin=self.origin
        )

    @lazy_property
    def _shapes(self) -> Any:
        """The shapes to pad to: by default the static shapes of the elements."""
        if self.padded_shapes is not None or not spec_is_static(self.source):
            return self.padded_shapes
        structure, specs = flatten_spec(self.source.element_spec)
        return structure.unflatten([spec.shape for spec in specs])


@dataclass(frozen=True, eq=False)
class _PaddedBucket(PaddedBatch):
    """Padded batch node whose unknown dimensions are padded to ``length``."""

    op: ClassVar[str] = "bucket_by_sequence_length"
    length: int | None = None

    def shapes(self, structure: Structure) -> list[Shape]:
        shapes = super().shapes(structure)
        if self.length is None:
            return shapes
        return [shape and tuple(self.length if dim is None else dim for dim in shape) for shape in shapes]


class BucketsOperator(GroupsOperator):
    """Operator that makes a batch of each full bucket."""

    node: BucketBySequenceLength

    def __init__(self, context: ExecutionContext, source: KeyOperator, node: BucketBySequenceLength) -> None:
        super().__init__(context, source, node, min(node.bucket_batch_sizes), knows_sizes=True)
        self._stackers: dict[int, BatchOperator] = {}

    def size_of(self, bucket: int) -> int:
        return self.node.bucket_batch_sizes[bucket]

    def pull(self, n: int) -> Chunk | None:  # noqa: ARG002  # one batch per pull
        while (found := self.next_group()) is not None:
            bucket, elements = found
            if elements.length == self.size_of(bucket) or not self.node.drop_remainder:
                return self._stacker(bucket).stacked(elements)
        return None

    def _stacker(self, bucket: int) -> BatchOperator:
        stacker = self._stackers.get(bucket)
        if stacker is None:
            stacker = self._stackers[bucket] = self.node.batch_of(bucket).operator(self.source)
        return stacker

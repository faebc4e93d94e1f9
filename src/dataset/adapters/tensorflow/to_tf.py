"""A Dataset as a ``tf.data.Dataset``: each pass of TensorFlow is a pass over the Dataset.

TensorFlow calls Python for each element, which costs about a hundred microseconds. It releases the generator at the end
of a pass; then the Dataset's iterator is dropped, which ends its threads.

``from_generator`` does not set a cardinality, and ``assert_cardinality`` after it would fail if an element fails, since
that element is then missing. So if the length n is known, a map converts the positions 0 to n - 1 to the elements. The
pass to read from is identified by a number, which a generator keeps alive for as long as TensorFlow needs the pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from dataset.adapters.tensorflow.tensor_layout import TensorLayout
from dataset.dataset import Dataset
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import share_of, walk
from dataset.plan.spec import as_observed, map_spec


def tf_dataset(tf: Any, dataset: Dataset[Any], output_signature: Any = None) -> Any:
    """Return a ``tf.data.Dataset`` of the elements of a Dataset.

    Args:
        tf: TensorFlow.
        dataset: the Dataset.
        output_signature: the spec of its elements. Default: ``dataset.element_spec``, with the sizes of the first
            element where only user code determines them; an element of other sizes is an error.

    Raises:
        SpecError: if TensorFlow has no type for a component or for the structure.
    """
    spec = map_spec(as_observed, dataset.element_spec) if output_signature is None else output_signature
    layout = TensorLayout(tf, spec)
    count = dataset.cardinality()
    made = _counted(tf, dataset, layout, count) if count >= 0 else _uncounted(tf, dataset, layout, count)
    return made.with_options(tf_options(tf, dataset))


def tf_options(tf: Any, dataset: Dataset[Any]) -> Any:
    """Return the options for a Dataset's elements: this library decides what is prefetched, and which shares exist."""
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    if any(share_of(node) is not None for node in walk(dataset.plan)):  # tf.distribute would divide the share again
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options


def _uncounted(tf: Any, dataset: Dataset[Any], layout: TensorLayout, count: int) -> Any:
    flat = tf.data.Dataset.from_generator(lambda: _Pass(dataset, layout), output_signature=layout.signature)
    if count != UNKNOWN_CARDINALITY:
        flat = flat.apply(tf.data.experimental.assert_cardinality(INFINITE_CARDINALITY))
    return flat.map(tf.autograph.experimental.do_not_convert(layout.join))


def _counted(tf: Any, dataset: Dataset[Any], layout: TensorLayout, count: int) -> Any:
    passes = _Passes(dataset, layout)
    dtypes = [spec.dtype for spec in layout.signature]

    def element(position: Any, number: Any) -> Any:
        tensors = tf.numpy_function(passes.element, [number, position], dtypes)
        for tensor, spec in zip(tensors, layout.signature, strict=True):
            tensor.set_shape(spec.shape)
        return layout.join(*tensors)

    numbers = tf.data.Dataset.from_generator(passes.open, output_signature=tf.TensorSpec((), tf.int64))
    numbers = numbers.flat_map(tf.autograph.experimental.do_not_convert(_again_and_again(tf)))
    numbers = numbers.apply(tf.data.experimental.assert_cardinality(INFINITE_CARDINALITY))
    positions = tf.data.Dataset.range(count)
    return tf.data.Dataset.zip((positions, numbers)).map(tf.autograph.experimental.do_not_convert(element))


def _again_and_again(tf: Any) -> Any:
    return lambda number: tf.data.Dataset.from_tensors(number).repeat()


class _Pass(Iterator[Any]):
    """Iterator over the flat elements. It is a class because a generator would end when an element fails."""

    def __init__(self, dataset: Dataset[Any], layout: TensorLayout) -> None:
        self._iterator = iter(dataset)
        self._layout = layout
        self._position = 0

    def __next__(self) -> tuple[Any, ...]:
        self._position += 1
        return self._layout.split(next(self._iterator))

    def at(self, position: int) -> tuple[Any, ...]:
        """Return the element at a position. Positions must increase from call to call."""
        while self._position < position:
            self._position += 1
            next(self._iterator)
        return next(self)


class _Passes:
    """Registry of the open passes, by number."""

    def __init__(self, dataset: Dataset[Any], layout: TensorLayout) -> None:
        self._dataset = dataset
        self._layout = layout
        self._numbers = itertools.count()
        self._running: dict[int, _Pass] = {}

    def open(self) -> Iterator[int]:
        """Open a new pass and yield its number; closing the generator closes the pass."""
        number = next(self._numbers)
        self._running[number] = _Pass(self._dataset, self._layout)
        try:
            yield number
        finally:
            del self._running[number]

    def element(self, number: Any, position: Any) -> tuple[Any, ...]:
        """Return the flat element at a position of a pass."""
        return self._running[int(number)].at(int(position))

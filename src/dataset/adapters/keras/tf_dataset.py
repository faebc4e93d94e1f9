"""Batches as a tf.data.Dataset, for Keras on TensorFlow."""

from __future__ import annotations

import sys
from typing import Any

from dataset.adapters.keras.feed import Feed
from dataset.plan.spec import BYTES, TensorSpec, map_spec


def tf_dataset(feed: Feed) -> Any:
    """A tf.data.Dataset of which each iteration is a pass over ``feed``. Keras has imported TensorFlow by then."""
    tf = sys.modules["tensorflow"]

    def signature(spec: TensorSpec) -> Any:
        shape = None if spec.shape is None else (None, *spec.shape[1:])  # batches may differ in size
        return tf.TensorSpec(shape, tf.string if spec.dtype == BYTES else spec.dtype)

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False  # only the pipeline says what is made ahead
    return tf.data.Dataset.from_generator(
        lambda: iter(feed), output_signature=map_spec(signature, feed.batch_spec())
    ).with_options(options)

"""Batches as a tf.data.Dataset, for Keras on TensorFlow."""

from __future__ import annotations

import sys
from typing import Any

from dataset.adapters.keras.feed import Feed
from dataset.adapters.tensorflow.to_tf import tf_options
from dataset.plan.spec import BYTES, TensorSpec, map_spec


def tf_dataset(feed: Feed) -> Any:
    """Return a tf.data.Dataset; each iteration over it is a pass over ``feed``. Keras has already loaded TensorFlow."""
    tf = sys.modules["tensorflow"]

    def signature(spec: TensorSpec) -> Any:
        shape = None if spec.shape is None else (None, *spec.shape[1:])  # batches may differ in size
        return tf.TensorSpec(shape, tf.string if spec.dtype == BYTES else spec.dtype)

    spec = map_spec(signature, feed.batch_spec())
    # Passing a batch through TensorFlow costs about half a millisecond. With one batch prefetched, the model does not
    # wait for it.
    ahead = tf.data.Dataset.from_generator(lambda: iter(feed), output_signature=spec).prefetch(1)
    return ahead.with_options(_plain_options(tf, feed))


def _plain_options(tf: Any, feed: Feed) -> Any:
    """Return options for no further buffers and a single thread: passing batches between threads costs the most."""
    options = tf_options(tf, feed.dataset)
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.threading.private_threadpool_size = 1
    return options

"""TensorFlow: a Dataset as a ``tf.data.Dataset``, and the other way round.

The functions are given the TensorFlow that the caller has imported, so that this room loads none.
"""

from dataset.adapters.tensorflow.from_tf import TfDataset
from dataset.adapters.tensorflow.to_tf import tf_dataset

__all__ = ["TfDataset", "tf_dataset"]

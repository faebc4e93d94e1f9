"""TensorFlow adapters: a Dataset as a ``tf.data.Dataset``, and a ``tf.data.Dataset`` as a Dataset.

The caller passes the TensorFlow module that it has imported, so this package does not import TensorFlow.
"""

from dataset.adapters.tensorflow.from_tf import TfDataset
from dataset.adapters.tensorflow.to_tf import tf_dataset

__all__ = ["TfDataset", "tf_dataset"]

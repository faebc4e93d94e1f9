"""CSV codec: RFC 4180 as tf.data reads it. It works on bytes; source.py and batches_source.py make datasets of it."""

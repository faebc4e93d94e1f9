"""CSV codec: RFC 4180 as tf.data reads it. It works on bytes; source.py makes datasets of it."""

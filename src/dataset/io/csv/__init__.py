"""The CSV codec: RFC 4180 as tf.data reads it. It sees bytes; source.py is where datasets are made of it."""

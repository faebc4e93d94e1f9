"""``tf.train.Example``: message classes, parsing records into arrays (see parse.py), and encoding (see encode.py)."""

from dataset.lazy_imports import lazy_imports

with lazy_imports():
    from dataset.io.example import messages  # importing it builds the message classes

__all__ = ["messages"]

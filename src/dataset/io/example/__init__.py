"""``tf.train.Example``: the messages, and the way from records to arrays. Open parse.py first; encode.py to write."""

from dataset.lazy_imports import lazy_imports

with lazy_imports():
    from dataset.io.example import messages  # which builds the message classes when it is imported

__all__ = ["messages"]

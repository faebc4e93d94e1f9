"""``tf.train.Example``: the messages, and the way from records to arrays. Open parse.py first; encode.py to write."""

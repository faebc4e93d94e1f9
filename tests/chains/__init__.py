"""Random chains of ops as Python expressions, which run in two libraries and in a model in plain Python.

``kinds`` has the kinds of elements, ``names`` what the expressions call, ``model`` the model of an iteration, and
``chain`` a step and a chain. ``sources`` start a chain. ``steps`` preserve the kind of the elements and ``changes`` do
not; ``sequences`` combine several elements; ``inner`` has the ops with datasets for arguments. ``scope`` draws steps
from a table, and ``draw`` has the tables. Everything is a function of a ``random.Random``.
"""

"""Bridges from a Dataset to the frameworks that train, and from their data to a Dataset. One framework, one room.

An adapter knows the public Dataset and what a plan says of its elements; it opens no operators. It is imported by the
method of Dataset that needs it, when it is called, and so is its framework: ``import dataset`` loads neither.
"""

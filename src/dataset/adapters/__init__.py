"""Adapters between a Dataset and other frameworks, in both directions. One sub-package or module for each framework.

An adapter uses the public Dataset and the specs of its plan; it does not open operators. The Dataset method that needs
an adapter imports it and its framework when it is called, so ``import dataset`` loads neither.
"""

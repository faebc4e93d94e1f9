"""Descriptions of pipelines: nodes, structures, specs, cardinalities. Not part of the public API."""

from dataset.lazy_imports import lazy_imports

with lazy_imports():  # most pipelines have no ragged values
    from dataset.native.ragged_rows import copy_rows

__all__ = ["copy_rows"]

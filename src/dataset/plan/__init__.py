"""Descriptions of pipelines: nodes, structures, specs, cardinalities. Not part of the public API."""

"""Interleaving operators: read the datasets that a function returns, sequentially or interleaved."""

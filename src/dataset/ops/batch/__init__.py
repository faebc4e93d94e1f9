"""Batching operators: batch, padded_batch, ragged_batch, sparse_batch, window, unbatch and rebatch."""

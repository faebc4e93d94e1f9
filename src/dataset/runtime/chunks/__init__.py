"""Chunks: the runs of elements passed between operators, and how they are created and sliced."""

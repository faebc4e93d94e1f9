"""Chunks: the runs of elements that operators hand each other, and how they are made and cut."""

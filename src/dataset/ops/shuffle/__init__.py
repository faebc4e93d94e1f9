"""Shuffle operator, and checkpoints of its buffer."""

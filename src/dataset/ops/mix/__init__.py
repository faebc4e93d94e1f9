"""Mixing operators: interleave several datasets by a dataset of choices or at random."""

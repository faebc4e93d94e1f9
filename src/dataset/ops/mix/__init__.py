"""Datasets that are mixed: chosen from by a dataset of numbers, or at random."""

"""flat_map and interleave: datasets that a function returns, one after the other or side by side."""

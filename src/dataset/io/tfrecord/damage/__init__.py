"""Damaged TFRecord files: the search for the next intact record, and the log of what was skipped."""

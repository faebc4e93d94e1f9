"""Sequences of tokens in rows of one length, and batches of them by their number of tokens."""

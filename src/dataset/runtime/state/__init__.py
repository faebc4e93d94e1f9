"""Saved state: the envelope around it, chunks and elements in it, replay, and resharding."""

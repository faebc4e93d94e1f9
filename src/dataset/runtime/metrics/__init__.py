"""Metrics: what operators count, what may be tuned in them, and the profile of an iteration."""

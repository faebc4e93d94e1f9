"""Calls of user functions: one by one, vectorized, fused, and ahead of the request."""

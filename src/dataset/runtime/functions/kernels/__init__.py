"""Kernels: how a user function runs on a chunk."""

"""Caching operators: cache in memory and in files, and the code they share with snapshot."""

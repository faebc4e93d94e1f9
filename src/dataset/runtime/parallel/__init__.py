"""Parallel work: pending elements, tasks, their sizes, and the pool of workers that does them."""

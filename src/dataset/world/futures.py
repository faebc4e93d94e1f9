"""Futures and pools of threads: names of ``concurrent.futures``."""

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

__all__ = ["CancelledError", "Future", "ThreadPoolExecutor"]

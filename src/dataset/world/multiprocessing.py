"""Pipes and queues between processes: names of ``multiprocessing``."""

from multiprocessing import AuthenticationError, connection, parent_process, queues
from multiprocessing.reduction import ForkingPickler

__all__ = ["AuthenticationError", "ForkingPickler", "connection", "parent_process", "queues"]

"""Queues between threads: the names of ``queue``."""

from queue import *

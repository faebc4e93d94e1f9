"""Shared memory: the names of ``mmap``."""

from mmap import *

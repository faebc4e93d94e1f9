"""Waits for descriptors: the names of ``select``."""

from select import *

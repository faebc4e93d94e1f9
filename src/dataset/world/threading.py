"""Threads, locks and conditions: the names of ``threading``."""

from threading import *

"""Clocks and sleeps: the names of ``time``."""

from time import *

"""Signals: the names of ``signal``."""

from signal import *

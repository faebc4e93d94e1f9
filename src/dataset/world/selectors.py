"""Waits for descriptors: the names of ``selectors``."""

from selectors import *

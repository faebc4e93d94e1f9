"""Processes: names of ``subprocess``."""

from subprocess import DEVNULL, Popen, TimeoutExpired
from subprocess import _args_from_interpreter_flags as interpreter_flags  # type: ignore[attr-defined]

__all__ = ["DEVNULL", "Popen", "TimeoutExpired", "interpreter_flags"]  # multiprocessing uses the last one, too

"""Targets with planted faults, one of each kind, which the driver must find."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .target import Target


class _Planted(Target):
    """Target that calls ``fault`` for some inputs."""

    allowed = (ValueError,)
    tokens = (b"!",)
    fault: ClassVar[Callable[[], Any]]

    def make_samples(self) -> list[bytes]:
        return [b"abc"]

    def check(self, data: bytes) -> None:
        if b"!" in data:
            type(self).fault()


_FAULTS: dict[str, Callable[[], Any]] = {
    "raises": lambda: {}["planted"],  # an exception that is not documented
    "allocates": lambda: np.ones(1 << 30, np.uint8),  # far more memory than the size of the input
    "hangs": lambda: sum(itertools.repeat(0)),
    "dies": os.abort,  # as an uncaught exception of a C++ library does
}
PLANTED = {
    name: type(name, (_Planted,), {"name": name, "fault": staticmethod(fault)}) for name, fault in _FAULTS.items()
}

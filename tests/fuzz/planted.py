"""Targets with planted faults, one of each kind, which the driver must find."""

from __future__ import annotations

import os

import numpy as np

from .target import Target


class _Planted(Target):
    allowed = (ValueError,)
    tokens = (b"!",)

    def make_samples(self) -> list[bytes]:
        return [b"abc"]

    def check(self, data: bytes) -> None:
        if b"!" in data:
            self.fault()

    def fault(self) -> None:
        """Do what a reader must not do."""
        raise NotImplementedError


class RaisesAnother(_Planted):
    """Raises an exception that is not documented."""

    name = "raises"

    def fault(self) -> None:
        raise KeyError("planted")


class Allocates(_Planted):
    """Allocates far more memory than the size of the input."""

    name = "allocates"

    def fault(self) -> None:
        np.ones(1 << 30, np.uint8)


class Hangs(_Planted):
    """Never returns."""

    name = "hangs"

    def fault(self) -> None:
        while True:
            pass


class Dies(_Planted):
    """Ends the process, as an uncaught exception of a C++ library does."""

    name = "dies"

    def fault(self) -> None:
        os.abort()


PLANTED = {target.name: target for target in (RaisesAnother, Allocates, Hangs, Dies)}

"""The base class of the targets of the fuzzer."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from dataset import Dataset
from dataset.io.files.compression import DamagedStreamError

from .mutate import mutated

CONTENTS = (b"", b"abc" * 30, random.Random(2).randbytes(3000), bytes(1 << 20), b"line\n" * 20_000)
"""Texts to be compressed."""


def drained(stream: Any, size: int = 1000) -> tuple[bytes, DamagedStreamError | None]:
    """Return the content of a decompressing stream, read ``size`` bytes at a time, and the damage that ended it."""
    pieces: list[bytes] = []
    try:
        while piece := stream.read(size):
            assert len(piece) <= size
            pieces.append(piece)
    except DamagedStreamError as error:
        return b"".join(pieces), error
    return b"".join(pieces), None


class Target:
    """Fuzz target: a reader of the library, its inputs, and the exceptions that it may raise.

    Args:
        folder: an empty directory for this worker only.

    Attributes:
        name: the name on the command line.
        allowed: the documented exceptions of the reader.
        tokens: byte strings with a meaning in the format.
    """

    name: ClassVar[str]
    allowed: ClassVar[tuple[type[Exception], ...]]
    tokens: ClassVar[Sequence[bytes]] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.samples: Sequence[bytes] = self.make_samples()

    def make_samples(self) -> Sequence[bytes]:
        """Return valid inputs, the same in every process."""
        raise NotImplementedError

    def make_input(self, rng: random.Random) -> Any:
        """Return an input: a mutated sample, sometimes with corrected checksums."""
        return mutated(rng, rng.choice(self.samples), self.samples, self.tokens)

    def check(self, data: Any) -> None:
        """Pass an input to the library. Raises the exceptions in ``allowed``, and AssertionError for a fault.

        AssertionErrors of the library itself are also faults.
        """
        raise NotImplementedError

    def read(self, dataset: Dataset[Any]) -> None:
        """Read up to 200 elements, continue after each error as ``ignore_errors`` does, and raise the last one."""
        failure = None
        with iter(dataset) as iterator:
            for _ in range(200):
                try:
                    next(iterator)
                except StopIteration:
                    break
                except self.allowed as error:
                    failure = error
        if failure is not None:
            raise failure

    def warm_up(self) -> None:
        """Load what is loaded only once, before memory is limited; at least one sample must be accepted."""
        taken = 0
        for sample in self.samples:
            with contextlib.suppress(*self.allowed):
                self.check(sample)
                taken += 1
        assert taken, "all samples were refused"

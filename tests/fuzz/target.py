"""What a target of the fuzzer is."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from .mutate import mutated


class Target:
    """One reader of the library, what it is given, and what it may raise.

    Args:
        folder: an empty directory of the worker's own.

    Attributes:
        name: on the command line.
        allowed: the documented exceptions of the reader.
        tokens: pieces of bytes that mean something in the format.
    """

    name: ClassVar[str]
    allowed: ClassVar[tuple[type[Exception], ...]]
    tokens: ClassVar[Sequence[bytes]] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.samples: Sequence[bytes] = self.make_samples()

    def make_samples(self) -> Sequence[bytes]:
        """Valid inputs, the same in every process."""
        raise NotImplementedError

    def make_input(self, rng: random.Random) -> Any:
        """One input: a mutated sample, with its checksums made right now and then."""
        return mutated(rng, rng.choice(self.samples), self.samples, self.tokens)

    def check(self, data: Any) -> None:
        """Give an input to the library. Raises one of ``allowed`` where the library does, AssertionError for a fault.

        AssertionErrors of the library itself are faults, too.
        """
        raise NotImplementedError

    def warm_up(self) -> None:
        """Load whatever is loaded once, before memory is limited; at least one sample must be taken."""
        taken = 0
        for sample in self.samples:
            with contextlib.suppress(*self.allowed):
                self.check(sample)
                taken += 1
        assert taken, "all samples were refused"

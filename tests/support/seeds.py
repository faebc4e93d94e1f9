"""Random numbers of the tests. Every draw comes from here, so the same commit gives the same result twice.

The seed is the content of tests/seed, or the environment variable SEED, which ``make explore`` sets to a fresh one.
A draw depends on nothing but the seed and its key: neither the order of tests nor the number of processes changes it.
"""

from __future__ import annotations

import os
import random
import secrets
import zlib
from pathlib import Path

import numpy as np

IS_FRESH = "SEED" in os.environ
"""Whether this run draws cases that other runs do not."""

SEED = int(os.environ.get("SEED") or (Path(__file__).parents[1] / "seed").read_text())


def fresh_seed() -> int:
    """Return a seed for a program that searches for new cases."""
    return secrets.randbelow(10**9)


def rng(*key: object) -> random.Random:
    """Return a generator of Python's kind that belongs to the key."""
    return random.Random(":".join(map(str, (SEED, *key))))


def numpy_rng(*key: object) -> np.random.Generator:
    """Return a generator of NumPy's kind that belongs to the key."""
    return np.random.default_rng([SEED, zlib.crc32(":".join(map(str, key)).encode())])

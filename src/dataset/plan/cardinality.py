"""How many elements a dataset has: a count, or one of two constants with tf.data's values.

The arithmetic of the ops that combine inputs is here; ops with a rule of their own state it in their node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

INFINITE_CARDINALITY = -1
"""The cardinality of a dataset that never ends."""

UNKNOWN_CARDINALITY = -2
"""The cardinality of a dataset whose length only running it can tell."""


def is_known(cardinality: int) -> bool:
    """Return whether the cardinality is a count."""
    return cardinality >= 0


def map_known(function: Callable[[int], int], cardinality: int) -> int:
    """``function`` of a count; infinite and unknown stay what they are."""
    return function(cardinality) if is_known(cardinality) else cardinality


def endless_or_unknown(cardinality: int) -> int:
    """Of what a user's function makes of an input: endless input is taken to give endless output, as in tf.data."""
    return INFINITE_CARDINALITY if cardinality == INFINITE_CARDINALITY else UNKNOWN_CARDINALITY


def total(cardinalities: Sequence[int]) -> int:
    """Of inputs one after another: infinite if one is, else unknown if one is, else the sum."""
    if INFINITE_CARDINALITY in cardinalities:
        return INFINITE_CARDINALITY
    return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in cardinalities else sum(cardinalities)


def shortest(cardinalities: Sequence[int]) -> int:
    """Of inputs side by side: the least count, unknown if one is unknown, infinite if all are."""
    if UNKNOWN_CARDINALITY in cardinalities:
        return UNKNOWN_CARDINALITY
    return min((c for c in cardinalities if is_known(c)), default=INFINITE_CARDINALITY)

"""Cardinalities: the number of elements of a dataset, or one of two constants with tf.data's values.

The arithmetic for ops that combine inputs is here; ops with their own rule define it in their node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

INFINITE_CARDINALITY = -1
"""The cardinality of a dataset that never ends."""

UNKNOWN_CARDINALITY = -2
"""The cardinality of a dataset whose length is unknown before it runs."""


def is_known(cardinality: int) -> bool:
    """Return whether the cardinality is a count."""
    return cardinality >= 0


def map_known(function: Callable[[int], int], cardinality: int) -> int:
    """Apply ``function`` to a count; infinite and unknown cardinalities are returned unchanged."""
    return function(cardinality) if is_known(cardinality) else cardinality


def endless_or_unknown(cardinality: int) -> int:
    """Return the cardinality of the output of a user's function: infinite if the input is, as in tf.data."""
    return INFINITE_CARDINALITY if cardinality == INFINITE_CARDINALITY else UNKNOWN_CARDINALITY


def total(cardinalities: Sequence[int]) -> int:
    """Return the cardinality of concatenated inputs: infinite if one is, else unknown if one is, else the sum."""
    if INFINITE_CARDINALITY in cardinalities:
        return INFINITE_CARDINALITY
    return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in cardinalities else sum(cardinalities)


def shortest(cardinalities: Sequence[int]) -> int:
    """Return the cardinality of zipped inputs: unknown if one is, else the least count, or infinite if all are."""
    if UNKNOWN_CARDINALITY in cardinalities:
        return UNKNOWN_CARDINALITY
    return min((c for c in cardinalities if is_known(c)), default=INFINITE_CARDINALITY)

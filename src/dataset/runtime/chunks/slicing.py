"""Slicing: splits one component into its rows or runs of rows. The inverse is batching.py."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dataset.errors import SpecError
from dataset.plan.packed import RaggedColumn
from dataset.plan.structure import Structure
from dataset.plan.values import RaggedTensor, SparseTensor


def number_of_rows(where: Any, structure: Structure, components: Sequence[Any]) -> int:
    """Return the number of rows that all components of an element have.

    Args:
        where: names the node or the method in errors.
        structure: the structure of the element.
        components: its components.

    Raises:
        SpecError: if a component has no rows, or the numbers differ.
    """
    counts = []
    for index, value in enumerate(components):
        if not (isinstance(value, RaggedTensor) or (isinstance(value, np.ndarray | SparseTensor) and value.shape)):
            raise SpecError(
                f"{where}: {structure.component_name(index)} must be an array with rows, got a {type(value).__name__}"
            )
        counts.append(int(value.shape[0]))  # type: ignore[arg-type]  # a ragged tensor's number of rows is known, too
        if counts[index] != counts[0]:
            raise SpecError(
                f"{where}: all components must have the same number of rows; "
                f"{structure.component_name(0)} has {counts[0]}, {structure.component_name(index)} has {counts[index]}"
            )
    return counts[0]


def rows_of(component: RaggedTensor | SparseTensor) -> list[Any]:
    """Return the rows along the first dimension."""
    if isinstance(component, SparseTensor):
        return _sparse_rows(component)
    values = component.values
    return [values[start:stop] for start, stop in itertools.pairwise(component.row_splits.tolist())]


def rows_of_components(where: Any, structure: Structure, components: Sequence[Any]) -> tuple[list[Any], int]:
    """Return the rows of each component of an element, and their number. Arguments and errors as ``number_of_rows``."""
    length = number_of_rows(where, structure, components)
    return [value if isinstance(value, np.ndarray) else rows_of(value) for value in components], length


def uncut_rows_of(component: RaggedTensor | SparseTensor) -> Sequence[Any]:
    """Return the rows along the first dimension, sliced on access if possible."""
    if isinstance(component, SparseTensor) or not isinstance(component.values, np.ndarray):
        return rows_of(component)
    return RaggedColumn(component.values, component.row_splits.astype(np.int64, copy=False))


def slice_rows(component: Any, start: int, stop: int) -> Any:
    """Return rows ``start`` to ``stop`` of an array, ragged or ``row_major`` sparse tensor, sharing its memory."""
    if not isinstance(component, SparseTensor):
        return component[start:stop]
    first, last = np.searchsorted(component.indices[:, 0], [start, stop])
    indices = component.indices[first:last].copy()
    indices[:, 0] -= start
    return SparseTensor(indices, component.values[first:last], [stop - start, *component.shape[1:]])


def row_major(component: Any) -> Any:
    """Return the component; the cells of a sparse tensor are sorted by row, as required for slicing."""
    if not isinstance(component, SparseTensor) or np.all(component.indices[1:, 0] >= component.indices[:-1, 0]):
        return component
    order = np.lexsort(component.indices.T[::-1])
    return SparseTensor(component.indices[order], component.values[order], component.dense_shape)


def _sparse_rows(sparse: SparseTensor) -> list[SparseTensor]:
    order = np.lexsort(sparse.indices.T[::-1])
    indices, values = sparse.indices[order], sparse.values[order]
    bounds = np.searchsorted(indices[:, 0], np.arange(sparse.shape[0] + 1))
    return [
        SparseTensor(indices[start:stop, 1:], values[start:stop], sparse.dense_shape[1:])
        for start, stop in itertools.pairwise(bounds)
    ]

"""One component into many: the rows of ragged and sparse tensors. The inverse is batching.py."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from dataset.plan.values import RaggedTensor, SparseTensor


def rows_of(component: RaggedTensor | SparseTensor) -> list[Any]:
    """The rows along the first dimension."""
    return list(component) if isinstance(component, RaggedTensor) else _sparse_rows(component)


def _sparse_rows(sparse: SparseTensor) -> list[SparseTensor]:
    order = np.lexsort(sparse.indices.T[::-1])
    indices, values = sparse.indices[order], sparse.values[order]
    bounds = np.searchsorted(indices[:, 0], np.arange(sparse.shape[0] + 1))
    return [
        SparseTensor(indices[start:stop, 1:], values[start:stop], sparse.dense_shape[1:])
        for start, stop in itertools.pairwise(bounds)
    ]

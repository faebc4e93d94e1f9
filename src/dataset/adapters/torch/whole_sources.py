"""Whole sources: in a DataLoader worker, ``to_torch()`` divides the elements, so the sources return all of them.

Iterable datasets of torch divide themselves: they ask ``get_worker_info()`` for the number of the worker. If they did so
upstream of ``to_torch()``, the elements would be divided twice. So this object, of which each worker has one, describes
a single worker if a source asks. Other code, such as a function of ``map``, still finds the actual numbers.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from dataset.ops.sources.generator import GeneratorOperator

_OF_SOURCES = {GeneratorOperator._open.__code__, GeneratorOperator._collect.__code__}  # noqa: SLF001  # known by no other


def keep_sources_whole(worker: Any) -> None:
    """Let sources find a single worker, with the seed that all workers share; ``worker`` is torch's WorkerInfo."""
    kind: Any = type(worker)
    if kind.__module__ != __name__:
        alone = {"id": 0, "num_workers": 1, "seed": worker.seed - worker.id}
        members = {name: _member(getattr(worker, name), value) for name, value in alone.items()}
        changed = type(kind.__name__, (kind,), {"__slots__": (), "__module__": __name__, **members})
        object.__setattr__(worker, "__class__", changed)  # torch's class refuses all other assignments


def _member(actual: int, of_single: int) -> property:
    return property(lambda _: of_single if _is_in_source(sys._getframe(1)) else actual)  # noqa: SLF001  # the documented way


def _is_in_source(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code not in _OF_SOURCES:
        frame = frame.f_back
    return frame is not None

"""Whole sources: in a DataLoader worker, ``to_torch()`` divides the elements, so the sources return all of them.

Iterable datasets of torch divide themselves: they ask ``get_worker_info()`` for the number of the worker. Upstream of
``to_torch()``, that would divide the elements twice. So the answer, an object that each worker has once, describes a
single worker to sources. Other code, such as a function of ``map``, finds the actual numbers.
"""

import sys
from traceback import walk_stack
from typing import Any

from dataset.ops.sources.generator import GeneratorOperator

_OF_SOURCES = {GeneratorOperator._open.__code__, GeneratorOperator._collect.__code__}  # noqa: SLF001  # run user code


def keep_sources_whole(worker: Any) -> None:
    """Describe a single worker to sources, with the seed that all workers share; ``worker`` is torch's WorkerInfo."""
    kind: Any = type(worker)
    if kind.__module__ != __name__:
        single = {"id": 0, "num_workers": 1, "seed": worker.seed - worker.id}
        members = {name: _member(getattr(worker, name), value) for name, value in single.items()}
        changed = type(kind.__name__, (kind,), {"__slots__": (), "__module__": __name__, **members})
        object.__setattr__(worker, "__class__", changed)  # torch's class refuses to set attributes


def _member(actual: int, for_sources: int) -> property:
    def get(_: Any) -> int:
        return for_sources if any(frame.f_code in _OF_SOURCES for frame, _ in walk_stack(sys._getframe())) else actual  # noqa: SLF001  # the documented way

    return property(get)

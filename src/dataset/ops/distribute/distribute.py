"""Node of distribute(workers): the ops upstream run in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.ops import distribute as engines
from dataset.ops.distribute.engine import Engine
from dataset.ops.distribute.operator import DistributeOperator
from dataset.ops.distribute.share_runner import Division, ShareRunner
from dataset.options import AUTOTUNE, Options, bounded
from dataset.plan.checks import require_bool, require_int
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, walk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.metrics.profile import OpenObserver
from dataset.runtime.resources.cores import usable_cores
from dataset.runtime.resources.limits import Limits


@dataclass(frozen=True, eq=False)
class Distribute(UnaryNode, remote=True):
    """Node whose input runs in ``workers`` processes."""

    op: ClassVar[str] = "distribute"
    workers: int
    engine: str
    resources: Mapping[str, float] | None
    deterministic: bool | None
    max_restarts: int
    divide: Callable[[Node, int], Division] = field(repr=False)
    """Divides the input among workers."""
    open_observer: OpenObserver = field(repr=False)
    """Creates the observer of a share."""

    def __post_init__(self) -> None:
        self._set("workers", require_int(self.op, "workers", self.workers, minimum=1, allow=(AUTOTUNE,)))
        require_int(self.op, "max_restarts", self.max_restarts, minimum=0)
        if self.engine not in {"processes", "ray"}:
            raise ValueError(f'{self.op}(): engine must be "processes" or "ray", got {self.engine!r}')
        if self.resources is not None and self.engine != "ray":
            raise ValueError(f'{self.op}(): resources are for engine="ray", got {self.resources!r}')
        if self.deterministic is not None:
            require_bool(self.op, "deterministic", self.deterministic)

    @lazy_property
    def division(self) -> Division:
        """How the input is divided. With AUTOTUNE on Ray, the cluster is asked how many workers it has room for."""
        workers = self.workers
        if workers == AUTOTUNE:
            most = usable_cores() if self.engine == "processes" else engines.actors_that_fit(self.resources or {})
            workers = bounded(workers, most)
        return self.divide(self.source, workers)

    def parameters(self) -> dict[str, Any]:
        """Return what must match a saved state: the number of workers and their engine may change."""
        return {}

    def label(self) -> str:
        engine = "" if self.engine == "processes" else f", engine={self.engine!r}"
        return f"{self.op}({self.workers}{engine})"

    @property
    def engine_words(self) -> str:
        """Where the workers run."""
        return "Ray actors" if self.engine == "ray" else "processes"

    def annotation(self) -> str:
        division = self.division
        words = self.engine_words if division.workers > 1 else "Ray actor" if self.engine == "ray" else "process"
        shares = "" if division.way == "whole" or division.workers == 1 else f", divided by {division.way}"
        if division.way == "files" and any(part.traits.batches for part in walk(self.source)):
            shares += ", each with batches of its own"
        order = ", in any order" if self.deterministic is False else ""
        why = f" ({division.reason})" if division.reason and self.workers != 1 else ""
        return f"runs the ops below in {division.workers} {words}{shares}{order}{why}"

    def options_of_share(self, options: Options, limits: Limits) -> Options:
        """Return the options of the whole pipeline for one of its shares."""
        part, processes = Options(), self.division.workers
        if self.engine == "ray":
            part.autotune.cpu_budget = max(1, int((self.resources or {}).get("CPU", 1)))
            return options.merge(part)
        part.autotune.cpu_budget = max(1, limits.cores // processes)
        part.autotune.ram_budget = max(1, limits.ledger.budget // (processes + 1))
        return options.merge(part)

    def open_engine(self, runner: ShareRunner, patience: float) -> Engine:
        """Return the engine that starts workers."""
        if self.engine == "ray":
            return engines.RayEngine(runner, str(self), patience, self.resources or {})
        return engines.ProcessEngine(runner, str(self), patience)

    def lower(self, context: ExecutionContext) -> Operator:
        if not context.iteration.background:  # a single element is computed here
            return context(self.source)
        return DistributeOperator(context, self)

"""What one iteration may use: how many cores, and how much memory."""

from __future__ import annotations

from dataset.options import Options
from dataset.plan.lazy import lazy_property
from dataset.runtime.resources.cores import usable_cores
from dataset.runtime.resources.ledger import UNBOUNDED, Ledger
from dataset.runtime.resources.memory import default_budget


class Limits:
    """The limits of one iteration, from the options and the machine.

    Args:
        options: of the whole pipeline.
    """

    def __init__(self, options: Options) -> None:
        self._settings = options.autotune

    @lazy_property
    def cores(self) -> int:
        """The number of cores that AUTOTUNE may keep busy. Counted once: it takes reading some files."""
        return self._settings.cpu_budget or usable_cores()

    @lazy_property
    def ledger(self) -> Ledger:
        """Who holds how much of the memory budget."""
        if self._settings.ram_budget:
            return Ledger(self._settings.ram_budget, is_binding=True)
        return Ledger(UNBOUNDED if self._settings.enabled is False else default_budget)

"""Resource limits of one iteration: cores and memory."""

from __future__ import annotations

from dataset.amounts import ENDLESS
from dataset.options import Options
from dataset.plan.lazy import lazy_property
from dataset.runtime.resources.cores import usable_cores
from dataset.runtime.resources.ledger import Ledger
from dataset.runtime.resources.memory import default_budget


class Limits:
    """The limits of one iteration, from the options and the machine.

    Args:
        options: the options of the whole pipeline.
    """

    def __init__(self, options: Options) -> None:
        self._settings = options.autotune

    @lazy_property
    def cores(self) -> int:
        """The number of cores that AUTOTUNE may keep busy. Computed once, because it reads files."""
        return self._settings.cpu_budget or usable_cores()

    @lazy_property
    def ledger(self) -> Ledger:
        """The ledger of the memory budget."""
        if self._settings.ram_budget:
            return Ledger(self._settings.ram_budget, is_binding=True)
        return Ledger(ENDLESS if self._settings.enabled is False else default_budget)

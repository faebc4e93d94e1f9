"""A workload: the data, what each library does with it, what the machine could do at best, and how results are checked.

A file of benchmarks/workloads makes one and registers a runner for each library. Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Pipeline = Iterable[Any]
"""What gives the batches of an epoch, in the library's own form, each time that it is iterated."""


@dataclass(frozen=True)
class Runner:
    """What one library does.

    Args:
        library: its name, as its users write it.
        make: is given the folder with the data and makes the pipeline. Imports the library itself.
        settings: in words, what was chosen; shown beside the result.
        source: the page of the library's documentation that recommends it.
    """

    library: str
    make: Callable[[Path], Pipeline]
    settings: str = ""
    source: str = ""


@dataclass(frozen=True)
class Limit:
    """What the machine could do at best: the one step that no implementation gets around, with nothing around it.

    Args:
        step: in words: ``"page-cache read"``, ``"inflate, on all cores"``.
        run: is given the folder, does the step for all elements, and returns how many they were.
    """

    step: str
    run: Callable[[Path], int]


@dataclass
class Workload:
    """The same work for several libraries.

    Args:
        title: the chain, as the table shows it: ``"TFRecord -> GZIP -> batch(128)"``.
        make_data: fills a folder. ``scale`` is 1.0 for what is measured, and smaller for what is checked.
        count: the number of elements of one batch, of whatever form the libraries give. Cheap.
        digest: a sum over the elements of one batch, equal for equal elements in any order and in any batches; for
            checks only, never while time is taken.
        unit: what is counted.
        tolerance: how far the digests of two libraries may be apart, relative to the larger one. Not 0 only where they
            may rightly differ, as JPEG decoders do.
        small: the scale of the data that results are checked on.
        whole_first_epoch: whether the first pass has to be run to its end, as a cache wants it.
        cap_s: passes are cut short this many seconds after their first batch, where that is more than run.py's own cap:
            for work whose start takes so long, as that of processes does, that shorter passes would say little else.
        reference: the runner whose digest is right.
        notes: what a reader of the result has to know.
    """

    title: str
    make_data: Callable[[Path, float], None]
    count: Callable[[Any], int]
    digest: Callable[[Any], float]
    unit: str = "elements"
    tolerance: float = 0.0
    small: float = 0.05
    whole_first_epoch: bool = False
    cap_s: float = 0.0
    reference: str = "numpy"
    notes: str = ""
    runners: dict[str, Runner] = field(default_factory=dict)
    limits: list[Limit] = field(default_factory=list)

    def runner(
        self, library: str, *, settings: str = "", source: str = ""
    ) -> Callable[[Callable[[Path], Pipeline]], Callable[[Path], Pipeline]]:
        """Register what a library does. ``"numpy"`` is the loop by hand, on one thread: the floor."""

        def register(make: Callable[[Path], Pipeline]) -> Callable[[Path], Pipeline]:
            assert library not in self.runners, f"{self.title}: {library} twice"
            self.runners[library] = Runner(library, make, settings, source)
            return make

        return register

    def limit(self, step: str) -> Callable[[Callable[[Path], int]], Callable[[Path], int]]:
        """Register what the machine could do at best.

        Where there are several, shares are of the last one; what is registered before it is for orientation.
        """

        def register(run: Callable[[Path], int]) -> Callable[[Path], int]:
            self.limits.append(Limit(step, run))
            return run

        return register


@dataclass(frozen=True)
class Again:
    """A pipeline whose every epoch is made by calling ``epoch``: for generators and for loops by hand."""

    epoch: Callable[[], Iterable[Any]]

    def __iter__(self) -> Any:
        return iter(self.epoch())

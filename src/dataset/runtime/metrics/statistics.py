"""Statistics of a running pipeline as plain values: the result of ``iterator.stats()``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dataset.plan.drawing.brief import brief_bytes, brief_number, brief_seconds
from dataset.plan.drawing.summary import table
from dataset.runtime.metrics.background import WorkerFigures
from dataset.runtime.metrics.step_waits import WaitPercentiles


@dataclass(frozen=True)
class StepStatistics:
    """Statistics of one function of an operator that runs several together.

    Attributes:
        name: the op with its arguments, such as ``map(decode)``, or the user's label for it.
        location: the user's source line that created it.
        share: its share of the time of the operator's own work, from 0 to 1, estimated from samples.
    """

    name: str
    location: str
    share: float

    def __str__(self) -> str:
        return f"{self.name} in {self.location} takes {self.share:.0%}"


@dataclass(frozen=True)
class OperatorStatistics:
    """Statistics of one operator. Seconds are totals over elements and threads, so they may exceed the elapsed time.

    Attributes:
        name: the op with its arguments, such as ``map(decode)``, or the user's label for it.
        location: the user's source line that created it.
        depth: 0 for the op that the consumer iterates over, 1 for its inputs, and so on.
        elements: the number of output elements; an exception counts as one. See ``is_estimated``.
        nbytes: the approximate size of these elements.
        seconds: the time of its own work, without that of the operators below and without waiting for them.
        cpu_seconds: the CPU time of that work. It is less than ``seconds`` for work that waits for files or the
            network.
        input_wait_seconds: how long it waited for operators below that work in the background.
        consumer_wait_seconds: how long the operator above, or the consumer, waited for this one. Only for operators
            that work in the background.
        runs: where it runs: "in the consumer's thread", "in a thread", "in threads", "in processes", or "inline" if it
            could run in the background but does not because that is faster.
        parallelism: the current limit of concurrent calls; None if not applicable.
        mean_parallelism: the mean number of concurrent calls.
        buffer_size: the current limit of buffered elements; None if not applicable.
        buffered_elements: the number of buffered elements, including those being computed.
        buffered_bytes: the size of the finished buffered elements.
        is_tuned: whether the autotuner sets ``parallelism`` or ``buffer_size``.
        memory_refusals: how often it had to stop computing elements ahead because the memory budget was used up.
        skipped_elements: the number of elements dropped because they had failed (``ignore_errors``) or were damaged
            (``TFRecordDataset(on_error="skip")``), including those in datasets that it opened, such as the files of an
            interleave. The skipped rest of a file counts as one.
        workers: what each worker of ``distribute`` has done; empty for other operators.
        source_elements: the number of elements from each dataset, for ``sample_from_datasets`` and
            ``choose_from_datasets``; otherwise empty. Up to a thousand of them may be waiting to be taken.
        busy: the share of the elapsed time in which it did its own work, from 0 to 1. If ``parallelism`` is above
            1, the mean over these workers.
        capacity: the number of finished elements that it may hold before it pauses; None if it does not work in the
            background.
        is_estimated: whether ``elements`` is extrapolated, because only some of its pulls were measured. It is printed
            with "about".
        lock_seconds: how long its work held the interpreter lock, estimated from samples. None outside ``profile``.
        note: what was decided about it while it ran, such as where ``cache(AUTOTUNE)`` keeps elements.
        steps: for an op that runs several functions together, such as ``map(a) + map(b)``: the share of each, in the
            order of the calls. Empty before the first sample, and if they run in worker processes.
    """

    name: str
    location: str
    depth: int
    elements: int
    nbytes: int
    seconds: float
    cpu_seconds: float
    input_wait_seconds: float
    consumer_wait_seconds: float
    runs: str
    parallelism: int | None
    mean_parallelism: float | None
    buffer_size: int | None
    buffered_elements: int
    buffered_bytes: int
    is_tuned: bool
    memory_refusals: int
    skipped_elements: int = 0
    busy: float = 0.0
    capacity: int | None = None
    workers: tuple[WorkerFigures, ...] = ()
    source_elements: tuple[int, ...] = ()
    is_estimated: bool = False
    lock_seconds: float | None = None
    note: str = ""
    steps: tuple[StepStatistics, ...] = ()

    @property
    def source_shares(self) -> tuple[float, ...]:
        """The share of each dataset in ``source_elements``."""
        total = sum(self.source_elements)
        return tuple(count / total for count in self.source_elements) if total else ()

    @property
    def seconds_per_element(self) -> float:
        """The time of its own work per element."""
        return self.seconds / self.elements if self.elements else 0.0


@dataclass(frozen=True)
class Bottleneck:
    """The bottleneck of a pipeline.

    Attributes:
        name: the operator that would raise throughput most if it were twice as fast, or "the consumer".
        gain: the factor by which the throughput would then rise, as predicted by the model.
        bound: what limits the pipeline now: "the consumer", "the consumer's thread" with the operators that run in it,
            "cores", "interpreter lock", or the name of the operator whose threads do.
        operator: the position of the operator in ``operators``; None for the consumer.
        remedy: what to write instead, and why; empty if nothing is known.
        slowest: the function that takes most of its time, if the operator runs several together and was sampled.
    """

    name: str
    gain: float
    bound: str
    operator: int | None = None
    remedy: str = ""
    slowest: StepStatistics | None = None


@dataclass(frozen=True)
class PipelineStatistics:
    """Statistics of a pipeline, from the request of the first element until now.

    Attributes:
        elements: the number of elements that the consumer has got.
        seconds: the elapsed time.
        consumer_seconds: the part of it in which the consumer processed elements.
        wait_seconds: the part of it in which the consumer waited for elements.
        operators: from the one that the consumer iterates over down to the sources.
        bottleneck: None while too little is known.
        buffered_bytes: the current size of all buffers.
        ram_budget: the limit of that size in bytes; None for no limit.
        cpu_budget: the number of cores that AUTOTUNE may keep busy.
        native_kernels: "in use", or "not in use" and the reason; None if the pipeline reads no files.
        step_waits: how long single steps waited; None before the first.
        ended: whether the iteration has ended, so that the figures are final.
        garbage_collections: how often garbage was collected because of ``options.garbage_collection``.
        garbage_collection_seconds: how long that took.
    """

    elements: int
    seconds: float
    consumer_seconds: float
    wait_seconds: float
    operators: tuple[OperatorStatistics, ...]
    bottleneck: Bottleneck | None
    buffered_bytes: int
    ram_budget: int | None
    cpu_budget: int
    native_kernels: str | None = None
    step_waits: WaitPercentiles | None = None
    ended: bool = False
    garbage_collections: int = 0
    garbage_collection_seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """One sentence that says whether the consumer waits for elements, and what would help most."""
        if not self.elements or not self.seconds:
            return "The consumer has not received an element yet."
        waited, beside = self.wait_seconds / self.seconds, self._computed_beside() / self.seconds
        words = f"The consumer waited {waited:.0%} of the time"
        slowed = ""
        if beside >= _MUCH_BESIDE:
            slowed = (
                f"; threads of the pipeline computed for {beside:.0%}, and headspace() tells whether that slows steps"
            )
        if waited < _FEW:
            return f"The pipeline keeps up: the consumer waited {waited:.0%} of the time{slowed}."
        if self.bottleneck is None or self.bottleneck.operator is None:
            return f"{words} so far; with the present settings, its own work limits the throughput{slowed}."
        gain = f"would give {self.bottleneck.gain:.2f} times the throughput"
        where = "" if self.bottleneck.slowest is None else f", where {self.bottleneck.slowest}"
        return f"{words}: {self.bottleneck.name} is the bottleneck{where}; making it twice as fast {gain}."

    def _computed_beside(self) -> float:
        """Return the CPU time of the pipeline in threads of this process other than the consumer's."""
        beside = ("in a thread", "in threads", "in the thread")
        return sum(operator.cpu_seconds for operator in self.operators if operator.runs.startswith(beside))

    def to_dict(self) -> dict[str, Any]:
        """Return the same as numbers, strings, lists and dicts, for JSON."""
        data = dataclasses.asdict(self)
        if self.step_waits is not None:
            data["step_waits"]["by_period"] = list(map(list, self.step_waits.by_period))
        for operator in data["operators"]:
            operator["source_elements"] = list(operator["source_elements"])
            operator["workers"] = list(operator["workers"])
            operator["steps"] = list(operator["steps"])
        return {**data, "operators": list(data["operators"]), "verdict": self.verdict}

    def __repr__(self) -> str:
        workers = [_worker_line(operator, each) for operator in self.operators for each in operator.workers]
        return "\n".join(
            [self._summary(), *figures_table(_HEADER, list(map(_row, self.operators))), *workers, *self._last_lines()]
        )

    def _summary(self) -> str:
        if not self.seconds:
            return f"{self.elements:,} elements"
        rate = self.elements / self.seconds
        waited = self.wait_seconds / self.seconds
        return (
            f"{self.elements:,} elements in {brief_seconds(self.seconds)}: {brief_number(rate)}/s; "
            f"the consumer waited for them {waited:.0%} of the time"
        )

    def _last_lines(self) -> list[str]:
        records = [
            f"sources of {operator.name}: "
            + ", ".join(f"{count:,} ({share:.1%})" for count, share in zip(counts, operator.source_shares, strict=True))
            for operator in self.operators
            if 0 < len(counts := operator.source_elements) <= _SOURCES_MAX and operator.source_shares
        ]
        records += [f"{operator.name} {operator.note}" for operator in self.operators if operator.note]
        records += [] if self.native_kernels is None else [f"native kernels: {self.native_kernels}"]
        if self.garbage_collections:
            each = brief_seconds(self.garbage_collection_seconds / self.garbage_collections)
            records.append(f"garbage collections: {self.garbage_collections:,}, {each} each")
        if self.bottleneck is not None:
            name, gain, bound = self.bottleneck.name, self.bottleneck.gain, self.bottleneck.bound
            limit = f"; limited by: {bound}" if bound in SHARED_BOUNDS else ""
            records.append(f"bottleneck: {name} (if twice as fast: {gain:.2f} times the throughput{limit})")
            if self.bottleneck.slowest is not None:
                records.append(f"slowest part: {self.bottleneck.slowest} of its time")
            if self.bottleneck.remedy and self.wait_seconds >= _FEW * self.seconds:
                records.append(f"remedy: {self.bottleneck.remedy}")
        budget = "" if self.ram_budget is None else f" of a budget of {brief_bytes(self.ram_budget)}"
        records.append(f"memory: {brief_bytes(self.buffered_bytes)} in buffers{budget}; cores: {self.cpu_budget}")
        return records


_MUCH_BESIDE = 0.2  # of the time; threads that compute as long may slow down a consumer that computes, too
SHARED_BOUNDS = ("cores", "interpreter lock")
"""The bounds of a pipeline that are neither an operator nor a thread."""

_SOURCES_MAX = 16  # datasets whose shares are printed
_FEW = 0.05  # a consumer that waits for a smaller share of the time would gain nothing from a faster pipeline
_HEADER = (
    "operator",
    "elements",
    "skipped",
    "each",
    "cpu",
    "busy",
    "waits for input",
    "is waited for",
    "holds",
    "runs",
)


def _row(operator: OperatorStatistics) -> tuple[str, ...]:
    return (
        "  " * operator.depth + operator.name,
        f"{'about ' * operator.is_estimated}{operator.elements:,}",
        f"{operator.skipped_elements:,}" if operator.skipped_elements else "",
        brief_seconds(operator.seconds_per_element) if operator.seconds else "",
        f"{operator.cpu_seconds / operator.seconds:.0%}" if operator.seconds else "",
        f"{operator.busy:.0%}" if operator.busy else "",
        brief_seconds(operator.input_wait_seconds) if operator.input_wait_seconds else "",
        brief_seconds(operator.consumer_wait_seconds) if operator.consumer_wait_seconds else "",
        _held(operator),
        _runs(operator),
    )


def _worker_line(operator: OperatorStatistics, worker: WorkerFigures) -> str:
    node = f" on {worker.node}" if worker.node else ""
    memory = f", {brief_bytes(worker.memory)}" if worker.memory else ""
    return (
        f"{operator.name.partition('(')[0]} worker {worker.rank}{node}: {brief_number(worker.elements_per_second)}/s, "
        f"waiting {worker.waiting:.0%}, {worker.restarts} restarts{memory}"
    )


def _held(operator: OperatorStatistics) -> str:
    if not operator.buffered_elements and operator.buffer_size is None:
        return ""
    most = "" if operator.buffer_size is None else f" of {operator.buffer_size}"
    nbytes = f" ({brief_bytes(operator.buffered_bytes)})" if operator.buffered_bytes else ""
    return f"{operator.buffered_elements:,}{most}{nbytes}"


def _runs(operator: OperatorStatistics) -> str:
    calls = "" if operator.parallelism is None else f", {operator.parallelism} at once"
    if operator.mean_parallelism is not None and calls:
        calls += f" ({operator.mean_parallelism:.1f} busy)"
    return f"{operator.runs}{'' if operator.runs == 'inline' else calls}{', tuned' if operator.is_tuned else ''}"


def figures_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table of numbers between a name and a remark, without empty columns."""
    kept = [index for index in range(len(header)) if not index or any(row[index] for row in rows)]
    right = [place for place, index in enumerate(kept) if 0 < index < len(header) - 1]
    return table([[row[index] for index in kept] for row in (header, *rows)], right)

"""What is known of a running pipeline, as plain values: what ``iterator.stats()`` and ``tuning_log()`` return."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dataset.plan.brief import brief_bytes


@dataclass(frozen=True)
class OperatorStatistics:
    """One operator. Seconds are totals over all its elements and threads, so they may exceed those of the clock.

    Attributes:
        name: the op with its arguments, such as ``map(decode)``, or the user's label for it.
        location: the user's source line that made it.
        depth: 0 for what the consumer iterates over, one more for what that reads from, and so on.
        elements: that came out; an exception counts as one.
        nbytes: of these, about.
        seconds: of its own work, without that of the operators below and without waiting for these.
        cpu_seconds: how long the processor was busy for that. Work that waits for files or the network has less of it.
        input_wait_seconds: how long it waited for operators below that work in the background.
        consumer_wait_seconds: how long the operator above, or the consumer, waited for this one. Only for those that
            work in the background.
        runs: where: "in the consumer's thread", "in a thread", "in threads", "in processes", or "inline" where it
            could run in the background, and does not because that is quicker.
        parallelism: how many calls it may make at once now; None where it has no such number.
        mean_parallelism: how many it made, on average.
        buffer_size: how many elements it may hold ready now; None where it has no such number.
        buffered_elements: how many it holds, those that are being made included.
        buffered_bytes: of the finished ones.
        is_tuned: whether the autotuner sets ``parallelism`` or ``buffer_size``.
        memory_refusals: how often it had to stop making elements ahead because the memory budget was used up.
        skipped_elements: that it left out because they had failed (``ignore_errors``) or were damaged
            (``TFRecordDataset(on_error="skip")``), also in datasets that it opened, such as the files of an interleave.
            The rest of a file that was given up counts as one.
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

    @property
    def seconds_per_element(self) -> float:
        """Of its own work."""
        return self.seconds / self.elements if self.elements else 0.0


@dataclass(frozen=True)
class Bottleneck:
    """What holds up the rest.

    Attributes:
        name: of the operator which, made twice as fast, would raise throughput most; or "the consumer".
        gain: by that, the throughput would be so many times as high, as the model predicts.
        bound: what limits the pipeline now: "the consumer", "the consumer's thread" with the operators that run in it,
            "cores", "interpreter lock", or the name of the operator whose threads do.
    """

    name: str
    gain: float
    bound: str


@dataclass(frozen=True)
class PipelineStatistics:
    """A pipeline, from the first element that was asked for until now.

    Attributes:
        elements: that the consumer has got.
        seconds: on the clock.
        consumer_seconds: of these, how long the consumer was busy with the elements.
        wait_seconds: how long it waited for them: the rest.
        operators: from the one that the consumer iterates over down to the sources.
        bottleneck: None as long as too little is known.
        buffered_bytes: held in all buffers now.
        ram_budget: bytes that they may hold; None for no bound.
        cpu_budget: cores that AUTOTUNE may keep busy.
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

    def to_dict(self) -> dict[str, Any]:
        """The same as numbers, text, lists and dicts, for JSON."""
        return {**dataclasses.asdict(self), "operators": [dataclasses.asdict(operator) for operator in self.operators]}

    def __repr__(self) -> str:
        return "\n".join([self._summary(), *_table(list(map(_row, self.operators))), *self._last_lines()])

    def _summary(self) -> str:
        if not self.seconds:
            return f"{self.elements:,} elements"
        rate = self.elements / self.seconds
        waited = self.wait_seconds / self.seconds
        return (
            f"{self.elements:,} elements in {_seconds(self.seconds)}: {_number(rate)}/s; "
            f"the consumer waited for them {waited:.0%} of the time"
        )

    def _last_lines(self) -> list[str]:
        lines = []
        if self.bottleneck is not None:
            name, gain, bound = self.bottleneck.name, self.bottleneck.gain, self.bottleneck.bound
            limit = f"; what limits it: {bound}" if bound in _SHARED else ""
            lines.append(f"bottleneck: {name} (were it twice as fast, {gain:.2f} times the throughput{limit})")
        budget = "" if self.ram_budget is None else f" of a budget of {brief_bytes(self.ram_budget)}"
        lines.append(f"memory: {brief_bytes(self.buffered_bytes)} in buffers{budget}; cores: {self.cpu_budget}")
        return lines


@dataclass(frozen=True)
class Decision:
    """Something that was decided while a pipeline ran.

    Attributes:
        seconds: since the first element was asked for.
        operator: which one it is about.
        action: what was done: "try", "keep", "take back", "settle", "run inline", "run in background", "hold back".
        knob: the argument that was set, or "".
        before, after: its values.
        reason: why, with the numbers.
    """

    seconds: float
    operator: str
    action: str
    knob: str
    before: int | None
    after: int | None
    reason: str

    def __str__(self) -> str:
        change = "" if self.before is None else f" {self.knob} {self.before} -> {self.after}"
        return f"{self.seconds:8.2f} s  {self.operator}: {self.action}{change}: {self.reason}"


class TuningLog(list[Decision]):
    """Decisions in the order in which they were made. It prints as lines of text."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "TuningLog: nothing was decided"

    def to_dicts(self) -> list[dict[str, Any]]:
        """The same as plain data, for JSON."""
        return list(map(dataclasses.asdict, self))


_SHARED = ("cores", "interpreter lock")  # what is no operator, and no thread
_HEADER = ("operator", "elements", "skipped", "each", "busy", "waits for input", "is waited for", "holds", "runs")


def _row(operator: OperatorStatistics) -> tuple[str, ...]:
    return (
        "  " * operator.depth + operator.name,
        f"{operator.elements:,}",
        f"{operator.skipped_elements:,}" if operator.skipped_elements else "",
        _seconds(operator.seconds_per_element) if operator.seconds else "",
        f"{operator.cpu_seconds / operator.seconds:.0%}" if operator.seconds else "",
        _seconds(operator.input_wait_seconds) if operator.input_wait_seconds else "",
        _seconds(operator.consumer_wait_seconds) if operator.consumer_wait_seconds else "",
        _held(operator),
        _runs(operator),
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


def _table(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    """Columns as wide as what is in them; those that are empty throughout are left out."""
    kept = [index for index in range(len(_HEADER)) if not index or any(row[index] for row in rows)]
    table = [[row[index] for index in kept] for row in (_HEADER, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        first, *numbers = row
        cells = [first.ljust(widths[0])]
        for cell, width, index in zip(numbers, widths[1:], kept[1:], strict=True):
            cells.append(cell.ljust(width) if index == len(_HEADER) - 1 else cell.rjust(width))
        yield "  ".join(cells).rstrip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.0f} ns"

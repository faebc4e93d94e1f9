"""Profile report: the measurements of a pipeline that ran alone, and what to change in it, for ``Dataset.profile``."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from dataset.autotune.autotuner import Autotuner
from dataset.autotune.remedies import Remedy, row_for
from dataset.autotune.report import Measured
from dataset.io.dataset_files import FileSource, known_names
from dataset.io.files.atomic import AtomicFile
from dataset.io.files.opening import open_input
from dataset.ops.prefetch import Prefetch
from dataset.options import AUTOTUNE, Options
from dataset.plan.cardinality import is_known
from dataset.plan.checks import require_seconds
from dataset.plan.drawing.brief import brief_bytes, brief_number, brief_seconds
from dataset.plan.epochs import random_states
from dataset.plan.node import Node, holds_user_code, inputs_first
from dataset.plan.origin import Origin
from dataset.runtime.functions.kernels.vectorized import is_vectorized
from dataset.runtime.iteration.iterator import DatasetIterator
from dataset.runtime.metrics.lock_sampler import LockSampler
from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.metrics.profile import Observer, PipelineProfile
from dataset.runtime.metrics.statistics import (
    SHARED_BOUNDS,
    OperatorStatistics,
    PipelineStatistics,
    figures_table,
)
from dataset.runtime.metrics.trace import Trace
from dataset.runtime.random.streams import EpochLedger
from dataset.world import time

T = TypeVar("T")

_GAIN_MIN = 1.1  # suggestions that gain less are left out
_GAIN_SHOWN_MAX = 100
_FILES_MAX = 1000  # whose sizes are looked up
_FILES_OPENED = 9  # to see how long that takes
_LARGE_BYTES = 10e6
_LOCKED_MIN = 0.5  # of the time, for the suggestion of another process
_LOCKED_SECONDS = 1e-3  # per element; sending one takes some tenths of that
_HANDED_OVER_SECONDS = 1e-4  # elements that take less are not worth a thread
_HEADER = ("operator", "elements/s", "wall", "cpu", "lock", "waited for input", "bytes", "runs")


@dataclass(frozen=True)
class Suggestion:
    """One change of a pipeline.

    Attributes:
        operator: the op concerned, as in the statistics, or several consecutive ones, separated by commas.
        location: the user's source line of the op, or lines of the ops.
        code: the line of code to write there.
        reason: why it should help.
        gain: the factor of the throughput without a consumer that a model predicts if all goes well; None if that is
            unknown. For a cache, from the second epoch on. Printed as at most 100.
        is_safe: whether it never changes results, so that ``apply`` makes the change.
    """

    operator: str
    location: str
    code: str
    reason: str
    gain: float | None = None
    is_safe: bool = False

    def __str__(self) -> str:
        gain = ""
        if self.gain is not None:
            gain = f", up to {min(self.gain, _GAIN_SHOWN_MAX):.3g} times the throughput (predicted)"
        return f"{self.code} for {self.operator} in {self.location}{gain}: {self.reason}"


class ProfileReport(Generic[T]):
    """What ``Dataset.profile`` has measured. It prints as a table and a list of suggestions.

    Attributes:
        statistics: the statistics of the run, as of ``iterator.stats()``. The consumer did nothing.
        suggestions: what to change, with the largest predicted gain first.
    """

    def __init__(
        self,
        statistics: PipelineStatistics,
        suggestions: tuple[Suggestion, ...],
        trace: Trace,
        apply: Callable[[], T],
    ) -> None:
        self.statistics = statistics
        self.suggestions = suggestions
        self._trace = trace
        self._apply = apply

    def apply(self) -> T:
        """Return the dataset with the safe suggestions applied. Its elements and their order are the same.

        Functions may then be called in several threads at once, and for elements that are never requested.
        """
        return self._apply()

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write what each thread did when as JSON, for https://ui.perfetto.dev or ``chrome://tracing``.

        Each thread has a track. If elements are cheap, only some of the work is measured, so that a track has gaps.

        Args:
            path: the name of the file.

        Raises:
            OSError: if it cannot be written.
        """
        with AtomicFile(path) as target:
            target.file.write(json.dumps(self._trace.to_chrome()).encode())

    def __repr__(self) -> str:
        total = self.statistics
        rate = brief_number(total.elements / total.seconds) if total.seconds else "0"
        lines = [f"{total.elements:,} elements in {brief_seconds(total.seconds)} without a consumer: {rate}/s"]
        lines += figures_table(_HEADER, [_row(operator, total.seconds) for operator in total.operators])
        lines += [f"{number}. {suggestion}" for number, suggestion in enumerate(self.suggestions, 1)]
        safe = [str(number) for number, suggestion in enumerate(self.suggestions, 1) if suggestion.is_safe]
        if safe:
            lines.append(f"apply() makes the changes that keep all elements and their order: {', '.join(safe)}")
        return "\n".join(lines if self.suggestions else [*lines, self._nothing()])

    def _nothing(self) -> str:
        found = self.statistics.bottleneck
        if found is None or found.operator is None:
            return "no suggestions"
        limit = f", limited by: {found.bound}" if found.bound in SHARED_BOUNDS else ""
        return f"no suggestions; the bottleneck is {found.name}{limit}"


def _row(operator: OperatorStatistics, seconds: float) -> tuple[str, ...]:
    count = operator.elements
    return (
        "  " * operator.depth + operator.name,
        brief_number(count / seconds) if seconds else "",
        brief_seconds(operator.seconds_per_element) if operator.seconds else "",
        brief_seconds(operator.cpu_seconds / count) if operator.cpu_seconds and count else "",
        "" if operator.lock_seconds is None or not count else brief_seconds(operator.lock_seconds / count),
        brief_seconds(operator.input_wait_seconds) if operator.input_wait_seconds else "",
        brief_bytes(operator.nbytes / count) if operator.nbytes and count else "",
        operator.runs + ("" if operator.parallelism is None else f", {operator.parallelism} at once"),
    )


def profile(
    plan: Node,
    optimized: Node,
    options: Options,
    seconds: float,
    dataset_of: Callable[[Node], T],
    clock: Callable[[], float] = time.perf_counter,
) -> ProfileReport[T]:
    """Run a pipeline without a consumer and report on it.

    Args:
        plan: the plan as written.
        optimized: the plan as it runs.
        options: the options for running it.
        seconds: how long it runs, unless it ends before.
        dataset_of: makes a dataset of a plan.
        clock: the clock that ends the run.
    """
    require_seconds("profile", seconds)
    trace, observers = Trace(), list[Autotuner]()

    def observe(profile: PipelineProfile, options: Options) -> Observer:
        profile.top.trace = trace
        observers.append(Autotuner(profile, options))
        return observers[-1]

    complete = False
    with (
        DatasetIterator[Any](optimized, options, observe, epochs=EpochLedger(detached=True)) as iterator,
        LockSampler() as sampler,
    ):
        until = clock() + seconds
        while not complete and clock() < until:
            complete = next(iterator, iterator) is iterator
    measured = observers[0].measured(iterator.stats().elements)
    measured.add_lock_shares(trace.lock_shares(sampler.samples))
    statistics = measured.statistics()
    found = sorted(
        _suggestions(measured, complete=complete),
        key=lambda pair: -(pair[0].gain or 0.0),
    )
    safe = {target for suggestion, targets in found if suggestion.is_safe for target in targets}
    suggestions = tuple(suggestion for suggestion, _ in found)
    return ProfileReport(statistics, suggestions, trace, lambda: dataset_of(_improved(plan, safe)))


_Target = tuple[str, Origin] | None
"""The op and the source line of a node to run in parallel; None to end the plan with a prefetch."""


def _suggestions(measured: Measured, *, complete: bool) -> Iterator[tuple[Suggestion, list[_Target]]]:
    records, limits = list(measured.operators), measured.profile.limits
    for row, same in _remedies(measured):
        assert row.left is not None  # see _remedies
        gain = measured.speedup({record: row.left(measured.symptoms(record), limits.cores) for record in same})
        if gain >= _GAIN_MIN:
            nodes = [node for record in same for node in (record.node, *record.fused)]
            targets: list[_Target] = [(node.op, node.origin) for node in nodes if _may_be_parallel(node)]
            owns = [measured.operators[record] for record in reversed(same)]
            names, places = [own.name for own in owns], dict.fromkeys(own.location for own in owns)
            code, cause = row.code.format(op=same[0].node.op), row.cause.replace("`", "")
            is_safe = row.parallel and bool(targets)
            yield Suggestion(", ".join(names), ", ".join(places), code, cause, gain, is_safe), targets
    if (top := _to_prefetch(measured)) is not None:
        reason = "then the next element is computed while your loop uses this one"
        yield Suggestion(top.name, top.location, ".prefetch(AUTOTUNE)", reason, None, is_safe=True), [None]
    for record in records:
        for found in (_larger_files(measured, record), _index(measured, record)):
            if found is not None:
                yield found, []
    if (found := _distribute(measured)) is not None:
        yield found, []
    caches = [found for record in records if (found := _cache(measured, record, complete=complete)) is not None]
    if caches and not any(record.node.traits.keeps_pass for record in records):
        yield max(caches, key=lambda found: found.gain or 0.0), []


def _remedies(measured: Measured) -> list[tuple[Remedy, list[OpRecord]]]:
    """Return the rows of the table of remedies that apply, each with the consecutive ops that it applies to.

    A remedy for one of several similar functions alone may gain too little to be suggested.
    """
    found: list[tuple[Remedy, list[OpRecord]]] = []
    for record, own in measured.operators.items():
        row = row_for(measured.symptoms(record)) if own.elements and own.seconds else None
        if row is None or row.left is None:
            continue
        same = found[-1][1] if found and found[-1][0] is row else []
        if same and same[0].node.op == record.node.op and [*same[-1].below()] == [record]:
            same.append(record)
        else:
            found.append((row, [record]))
    return found


def _to_prefetch(measured: Measured) -> OperatorStatistics | None:
    """Return the statistics of the last op if it runs in the consumer's thread and its elements take long."""
    for record, own in measured.operators.items():
        each = measured.seconds / max(1, measured.elements)
        return own if record.stage is None and each >= _HANDED_OVER_SECONDS else None
    return None


def _larger_files(measured: Measured, record: OpRecord) -> Suggestion | None:
    """Return the suggestion of larger files, if a reader spends much time with opening its files."""
    own, node = measured.operators[record], record.node
    if not isinstance(node, FileSource) or node.compression_type or not own.seconds:
        return None
    if holds_user_code(node.source) or random_states(node.source) or not is_known(node.source.cardinality()):
        return None
    names = [name for name in known_names(node.op, node.source)[:_FILES_MAX] if Path(name).is_file()]
    nbytes = sum(Path(name).stat().st_size for name in names) / max(1, len(names))
    if len(names) < 2 or nbytes >= _LARGE_BYTES:
        return None
    opening = statistics.median(map(_seconds_to_open, names[:_FILES_OPENED]))
    opened = min(len(names), own.nbytes / max(1.0, nbytes))
    gain = measured.speedup({record: max(0.0, 1 - opened * opening / own.seconds)})
    reason = f"the files have {brief_bytes(nbytes)} on average, and opening one takes {brief_seconds(opening)}"
    return Suggestion(own.name, own.location, "fewer and larger files", reason, gain) if gain >= _GAIN_MIN else None


def _seconds_to_open(name: str) -> float:
    began = time.perf_counter()
    with contextlib.closing(open_input(name)) as file:
        file.read(1)
    return time.perf_counter() - began


def _index(measured: Measured, record: OpRecord) -> Suggestion | None:
    """Return the suggestion of an index, if records, or what is made of them, fill a large shuffle buffer."""
    own, node = measured.operators[record], record.node
    if not node.traits.permutes or not own.elements:
        return None
    (reader,) = node.inputs
    while reader.inputs and not isinstance(reader, FileSource) and len(reader.inputs) == 1:
        reader = reader.inputs[0]
    held = min(node.parameters()["buffer_size"], own.elements) * own.nbytes / own.elements
    seconds = record.meter.first.seconds
    if not isinstance(reader, FileSource) or not reader.has_index or reader.compression_type or held < _LARGE_BYTES:
        return None
    reason = (
        f"the buffer of {own.name} then holds no elements ({brief_bytes(held)} now), and a full shuffle(None) costs "
    )
    reason += f"no more; its first element took {brief_seconds(seconds)}"
    return Suggestion(reader.label(), str(reader.origin), f"{reader.op}(..., index=True)", reason)


def _distribute(measured: Measured) -> Suggestion | None:
    """Return the suggestion of another process, if the pipeline would keep the loop from running Python code."""
    locked = sum(own.lock_seconds or 0.0 for own in measured.operators.values())
    share = min(1.0, locked / measured.seconds) if measured.seconds else 0.0
    if (
        share < _LOCKED_MIN
        or locked < _LOCKED_SECONDS * measured.elements
        or any(record.node.traits.remote for record in measured.operators)
    ):
        return None
    own = next(iter(measured.operators.values()))
    reason = f"the pipeline holds the interpreter lock for {share:.0%} of the time, in which your loop cannot run; "
    reason += "headspace() tells whether your loop loses time in slower steps"
    return Suggestion(own.name, own.location, ".distribute(1)", reason)


def _cache(measured: Measured, record: OpRecord, *, complete: bool) -> Suggestion | None:
    """Return the suggestion of a cache after an op, if the elements are the same in each epoch and gain enough."""
    own, node, limits = measured.operators[record], record.node, measured.profile.limits
    if record.stage is not None and record.stage.relays:
        return None  # its input can be cached
    count = node.cardinality()
    if complete and not is_known(count):
        count = own.elements
    repeats = any(other.traits.passes != 1 for other in inputs_first(node))
    works = any(not other.traits.pure or other.traits.reads_files for other in inputs_first(node))
    if not is_known(count) or not own.nbytes or repeats or not works or random_states(node):
        return None
    gain = measured.speedup(dict.fromkeys(_at_and_below(record), 0.0))
    if gain < _GAIN_MIN:
        return None
    size = count * own.nbytes / own.elements
    code = ".cache()" if size <= limits.ledger.budget / 2 else ".cache(filename)"
    reason = f"from the second epoch on, if the functions are not random; the elements take about {brief_bytes(size)}"
    return Suggestion(own.name, own.location, code, reason, gain)


def _at_and_below(record: OpRecord) -> Iterator[OpRecord]:
    yield record
    for source in record.below():
        yield from _at_and_below(source)


def _may_be_parallel(node: Node) -> bool:
    if getattr(node, "num_parallel_calls", 0) is not None or getattr(node, "synchronous", False):
        return False
    return not is_vectorized(getattr(node, "function", None))  # type: ignore[arg-type]  # anything may be marked


def _improved(plan: Node, targets: set[_Target]) -> Node:
    """Return the plan with these nodes made parallel, in order, and a prefetch at its end if None is a target."""
    made: dict[Node, Node] = {}
    for node in inputs_first(plan):
        inputs = [made[source] for source in node.inputs]
        moved = any(new is not old for new, old in zip(inputs, node.inputs, strict=True))
        found = node.with_inputs(inputs) if moved else node
        if (node.op, node.origin) in targets and _may_be_parallel(node):
            changes: dict[str, Any] = {"num_parallel_calls": AUTOTUNE, "deterministic": True}
            found = dataclasses.replace(found, **changes)
        made[node] = found
    return Prefetch(made[plan], AUTOTUNE, origin=plan.origin) if None in targets else made[plan]

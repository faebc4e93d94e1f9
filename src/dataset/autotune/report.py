"""Statistics report of a running pipeline, from the counters of stages, the meters of ops, and the model."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dataset.amounts import ENDLESS
from dataset.autotune.model import Prediction, Section, predict
from dataset.autotune.remedies import Symptoms, remedy_for, remedy_for_idle_steps
from dataset.native.library import kernels_status
from dataset.runtime.metrics.meter import PullTotals
from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.metrics.profile import PipelineProfile
from dataset.runtime.metrics.statistics import Bottleneck, OperatorStatistics, PipelineStatistics, StepStatistics
from dataset.runtime.resources.cores import usable_cores
from dataset.world import time

CONSUMER = "the consumer"

_CROWDED = 0.5  # of its time: an op whose threads wait for a core for longer
_HIDDEN = 0.5  # of the CPU time of known threads; measured: 0.57 to 1.1 with two threads of OpenBLAS, else up to 0.26
_NOTABLE = 0.1  # of the time; measured: up to 0.07 with functions that only wait
_APART = {"jax", "tensorflow"}  # compute in threads of their own while the loop waits for elements
_FEW_CORES = 0.8  # of those that the process may use
_UNCHANGED: Mapping[OpRecord, float] = {}


class Measured:
    """Measurements of a pipeline up to now, or its end: the statistics of each op, and a model of what changes gain.

    Args:
        profile: the profile of the iteration.
        elements: the number of elements that the consumer has received.
    """

    def __init__(self, profile: PipelineProfile, elements: int) -> None:
        self.profile = profile
        self.elements = elements
        self.until = time.perf_counter() if profile.ended is None else profile.ended
        self.seconds = 0.0 if profile.began is None else self.until - profile.began
        self.operators: dict[OpRecord, OperatorStatistics] = {}
        for record in profile.top.below():
            self._measure(record, 0, elements, None, "in the consumer's thread", is_exact=True)

    def add_lock_shares(self, shares: Mapping[Any, float]) -> None:
        """Add which share of its time an op held the interpreter lock, by record."""
        for record, own in self.operators.items():
            self.operators[record] = replace(own, lock_seconds=own.seconds * shares.get(record, 0.0))

    # Costs of the ops

    def _measure(
        self, record: OpRecord, depth: int, asked: float, scale: float | None, runs: str, *, is_exact: bool
    ) -> None:
        """Add the statistics of the op and everything upstream of it.

        Args:
            record: the record of the op.
            depth: the number of ops between it and the consumer.
            asked: the number of elements taken from it, if it is the last op of a section.
            scale: the factor to extrapolate from the meters; None if it is the last op of a section.
            runs: where it runs.
            is_exact: whether its elements were counted.
        """
        if scale is None:
            scale = _scale(record, asked)
        took, below = self._took(record, scale), tuple(record.below())
        elements, seconds, cpu_seconds = took.elements, 0.0, 0.0
        stage, counters = record.stage, record.counters
        works_apart = stage is not None and bool(counters.elements)
        if works_apart and scale != 1.0:  # otherwise all pulls were measured, which is exact
            elements = max(elements, counters.taken)
        inline_seconds = took.seconds - took.waited_seconds
        if stage is None or inline_seconds > 0:
            from_below = [self._took(source, scale) for source in below]
            seconds = max(0.0, inline_seconds - sum(source.seconds for source in from_below))
            cpu_seconds = max(0.0, took.cpu_seconds - sum(source.cpu_seconds for source in from_below))
        if works_apart and stage is not None and not stage.relays:
            seconds += counters.work_seconds
            cpu_seconds += counters.cpu_seconds
        buffered, nbytes = (0, 0) if stage is None else stage.buffered()
        knob = None if stage is None else stage.knob
        calls = knob is not None and knob.name == "num_parallel_calls"
        workers = max(1, knob.value) if knob is not None and calls else 1
        self.operators[record] = OperatorStatistics(
            name=record.name,
            location=str(record.node.origin),
            depth=depth,
            elements=round(elements),
            nbytes=round(elements * record.meter.element_bytes),
            seconds=seconds,
            cpu_seconds=min(cpu_seconds, seconds),
            input_wait_seconds=sum(map(self._waited_for, below)),
            consumer_wait_seconds=self._waited_for(record),
            runs=runs if stage is None else stage.runs,
            parallelism=knob.value if knob is not None and calls else None,
            mean_parallelism=counters.work_seconds / self.seconds if calls and self.seconds else None,
            buffer_size=knob.value if knob is not None and not calls else None,
            buffered_elements=buffered,
            buffered_bytes=nbytes,
            is_tuned=knob is not None and not knob.is_fixed,
            memory_refusals=counters.refusals,
            skipped_elements=record.skipped.total,
            workers=() if stage is None else stage.worker_figures(),
            source_elements=tuple(record.counters.by_source),
            busy=min(1.0, seconds / self.seconds / workers) if self.seconds else 0.0,
            is_estimated=not is_exact,
            capacity=None if stage is None else stage.capacity,
            note=record.node.annotation() if record.node.traits.keeps_pass else "",
            steps=_steps(record),
        )
        are_counted = counters.taken <= counters.elements
        for source in below:
            if stage is None:
                self._measure(source, depth + 1, 0, scale, runs, is_exact=is_exact and scale == 1.0)
            else:
                asked, where = self._inputs(record, source), _threads_of(record, runs)
                self._measure(source, depth + 1, asked, None, where, is_exact=are_counted)

    def _took(self, record: OpRecord, scale: float) -> PullTotals:
        """Return the cost of all pulls of an op: the first, the others extrapolated, and the one in progress."""
        took, running = record.meter.total(scale), self._running(record)
        took.elements = _possible(record, took.elements)
        took.seconds += running
        took.waited_seconds += running * record.is_a_stage_now
        return took

    def _running(self, record: OpRecord) -> float:
        """Return the time since the pull in progress began, or 0."""
        since = record.meter.since
        return max(0.0, self.until - since) if since and self.profile.ended is None else 0.0

    def _waited_for(self, record: OpRecord) -> float:
        """Return how long the consumer of an op has waited for it; 0 if it is not a stage."""
        return record.counters.wait_seconds + (self._running(record) if record.is_a_stage_now else 0.0)

    def _inputs(self, record: OpRecord, source: OpRecord) -> float:
        """Return the number of elements that a stage has read, by its workers or (extrapolated) inline."""
        counted = record.counters.inputs
        made = record.counters.elements
        inline = max(0, record.counters.taken - made)
        if not inline:
            return counted
        measured = record.meter.total().elements
        each = source.meter.total().elements / measured if measured else counted / max(made, 1)
        return counted + inline * (each or 1.0)

    # The parts of the report

    def statistics(self) -> PipelineStatistics:
        """Return the whole report."""
        wait = self._wait_seconds()
        profile, limits = self.profile, self.profile.limits
        reads_files = any(record.node.traits.reads_files for record in self.operators)
        return PipelineStatistics(
            elements=self.elements,
            seconds=self.seconds,
            consumer_seconds=self.seconds - wait,
            wait_seconds=wait,
            operators=tuple(self.operators.values()),
            bottleneck=self._bottleneck(self.seconds - wait),
            buffered_bytes=limits.ledger.held,
            ram_budget=None if limits.ledger.budget == ENDLESS else limits.ledger.budget,
            cpu_budget=limits.cores,
            native_kernels=kernels_status() if reads_files else None,
            step_waits=None if profile.began is None else profile.waits.percentiles(profile.began, self.until),
            ended=profile.ended is not None,
            garbage_collections=0 if profile.garbage is None else profile.garbage.collections,
            garbage_collection_seconds=0.0 if profile.garbage is None else profile.garbage.seconds,
        )

    def _wait_seconds(self) -> float:
        """Return how long the consumer was inside ``next``."""
        return min(sum(map(self._seconds_inside, self.profile.top.below())), self.seconds)

    def _seconds_inside(self, record: OpRecord) -> float:
        """Return how long pulls of an op took. Waits are counted; the rest is sampled and extrapolated."""
        own = self.operators[record]
        if record.stage is None:
            return own.seconds + sum(map(self._seconds_inside, record.below()))
        took = self._took(record, _scale(record, own.elements))
        return self._waited_for(record) + max(0.0, took.seconds - took.waited_seconds)

    # The bottleneck

    def _bottleneck(self, consumer_seconds: float) -> Bottleneck | None:
        """Return the op, or the consumer, that would increase the throughput most if it were twice as fast."""
        if not self.elements or self.seconds <= 0:
            return None
        now = self._predicted(consumer_seconds)
        if now.seconds <= 0:
            return None
        gains: dict[OpRecord | None, float] = {
            record: now.seconds / self._predicted(consumer_seconds, {record: 0.5}).seconds
            for record, own in self.operators.items()
            if own.seconds > 0
        }
        gains[None] = now.seconds / self._predicted(consumer_seconds / 2).seconds
        best = max(gains, key=lambda record: gains[record])
        bound = now.binding.name if isinstance(now.binding, OpRecord) else str(now.binding)
        if bound == CONSUMER and best is not None:
            bound = "the consumer's thread"
        if best is None:
            remedy = "" if self._has_stages else remedy_for_idle_steps()
            return Bottleneck(CONSUMER, gains[best], bound, remedy=remedy)
        slowest = max(self.operators[best].steps, key=lambda step: step.share, default=None)
        position = list(self.operators).index(best)
        return Bottleneck(best.name, gains[best], bound, position, remedy_for(self.symptoms(best)), slowest)

    def symptoms(self, record: OpRecord) -> Symptoms:
        """Return what is known about an op, for the table of remedies."""
        ledger = self.profile.limits.ledger
        memory = ledger.held / max(1, ledger.budget)
        own, core_wait = self.operators[record], record.core_wait.ratio
        contention = own.lock_seconds / own.seconds if own.lock_seconds and own.seconds else 0.0
        # An op whose threads wait for a core for most of its time is crowded out. A profile suggests what to write,
        # whatever else runs on the machine.
        waits_for_cores = record.trace is None and core_wait * own.cpu_seconds > _CROWDED * own.seconds
        crowded = waits_for_cores and self._uses_few_cores()
        return Symptoms(
            record,
            own,
            contention,
            memory,
            self._has_stages,
            core_wait,
            is_crowded_out=crowded,
            hides_threads=self._hides_threads(),
        )

    def _hides_threads(self) -> bool:
        """Return whether much CPU time of this process is neither that of ops nor, possibly, of the loop that iterates.

        The loop counts as if it used all cores outside of ``next``.
        """
        known = sum(own.cpu_seconds for own in self.operators.values() if own.runs != "in processes")
        known += (self.seconds - self._wait_seconds()) * usable_cores()
        hidden = self.profile.cpu_seconds - known
        return hidden > max(_HIDDEN * known, _NOTABLE * self.seconds) and sys.modules.keys().isdisjoint(_APART)

    @property
    def _has_stages(self) -> bool:
        """Whether anything in the pipeline works in the background."""
        return any(record.stage is not None for record in self.operators)

    def _uses_few_cores(self) -> bool:
        """Return whether this process leaves cores to others, and has no worker processes, which may use them."""
        if any(record.node.traits.remote or own.runs == "in processes" for record, own in self.operators.items()):
            return False
        return self.profile.cpu_seconds < _FEW_CORES * usable_cores() * self.seconds

    def speedup(self, factors: Mapping[OpRecord, float]) -> float:
        """Return the predicted factor of the throughput if the own time of some ops is multiplied by these factors."""
        consumer_seconds = self.seconds - self._wait_seconds()
        changed = self._predicted(consumer_seconds, factors).seconds
        return self._predicted(consumer_seconds).seconds / changed if changed > 0 else math.inf

    def _predicted(self, consumer_seconds: float, factors: Mapping[OpRecord, float] = _UNCHANGED) -> Prediction:
        return predict(self._root(consumer_seconds, factors), self.profile.limits.cores)

    def _root(self, consumer_seconds: float, factors: Mapping[OpRecord, float]) -> Section:
        """Return the model of the pipeline, with the own time of ops multiplied by ``factors``."""
        root = Section(CONSUMER, serial_seconds=consumer_seconds / self.elements)
        self._add_inputs(root, self.profile.top, factors)
        return root

    def _add_inputs(self, section: Section, record: OpRecord, factors: Mapping[OpRecord, float]) -> None:
        """Add the ops upstream of an op of the section: to the section, or as sections from which it takes elements."""
        for source in record.below():
            own, stage, factor = self.operators[source], source.stage, factors.get(source, 1.0) / self.elements
            part = section
            if stage is None or stage.inline:
                section.serial_seconds += own.seconds * factor
            else:
                part = Section(source, own.elements / self.elements, own.seconds * factor, buffer=stage.capacity)
                part.workers = 1 if stage.relays else stage.knob.value
                section.inputs.append(part)
            part.cpu_seconds += own.cpu_seconds * factor
            part.lock_seconds += (own.lock_seconds or 0.0) * factor
            self._add_inputs(part, source, factors)


def _steps(record: OpRecord) -> tuple[StepStatistics, ...]:
    """Return the share of each function of a fused op; empty for other ops, and before the first sample."""
    seconds = list(record.step_times.seconds)
    total = sum(seconds)
    if not record.fused or not total:
        return ()
    return tuple(
        StepStatistics(node.name or node.label(), str(node.origin), spent / total)
        for node, spent in zip(record.nodes, seconds, strict=True)
    )


def _scale(record: OpRecord, asked: float) -> float:
    """Return the factor to extrapolate from the measured pulls after the first to all ``asked`` elements."""
    first, rest = record.meter.first, record.meter.rest
    return max(0.0, asked - first.elements) / rest.elements if rest.elements else 1.0


def _possible(record: OpRecord, elements: float) -> float:
    """Limit a number of elements to the cardinality: extrapolation overestimates, for example with full buffers."""
    available = record.node.cardinality()
    return min(elements, available * record.opened) if available >= 0 else elements


def _threads_of(record: OpRecord, runs: str) -> str:
    """Return where the inputs of an op run, if the op itself is pulled in ``runs``."""
    stage = record.stage
    if stage is None or stage.inline:
        return runs
    if stage.relays:
        return f"in the thread of {record.node.op}"
    return f"in the threads of {record.node.op}, one at a time"

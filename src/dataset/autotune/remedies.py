"""Table of remedies: what the statistics show, what the usual cause is, and what to write.

docs/howto/slow.md shows the same table. The first row that applies to the bottleneck is its remedy in ``stats()``. Rows
without a condition cannot be recognized from the statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.metrics.statistics import OperatorStatistics
from dataset.runtime.parallel.pool import CALLS_MAX

_MOSTLY = 0.5  # a share that counts as low below, and as high above
_NEARLY_FULL = 0.8
_CHEAP_SECONDS = 2e-5  # of a call; most of it is the interpreter's
_PREFETCH = ".prefetch(AUTOTUNE)"
_PARALLEL = ".{op}(..., num_parallel_calls=AUTOTUNE)"


@dataclass(frozen=True)
class Symptoms:
    """What is known about a bottleneck.

    Attributes:
        record: the record of the op.
        own: its statistics.
        contention: the share of its work during which it holds the interpreter lock, or waits for it, as far as known.
        memory: the share of the memory budget that is used.
        has_stages: whether anything in the pipeline works in the background.
        core_wait: how long its threads waited for a core, per second of CPU time.
        is_crowded_out: whether that is most of its time, although this process leaves cores to others.
        hides_threads: whether much of the CPU time of this process is that of threads which functions have started.
    """

    record: OpRecord
    own: OperatorStatistics
    contention: float
    memory: float
    has_stages: bool
    core_wait: float = 0.0
    is_crowded_out: bool = False
    hides_threads: bool = False

    @property
    def cpu_share(self) -> float:
        """The share of its time in which it computes, without the time in which it waits for a core."""
        cpu, seconds = self.own.cpu_seconds, self.own.seconds
        return cpu / max(cpu, seconds - self.core_wait * cpu) if cpu else 0.0

    @property
    def computes(self) -> bool:
        """Whether it computes for most of its time."""
        return self.cpu_share >= _MOSTLY

    @property
    def calls_function(self) -> bool:
        """Whether it calls a function of the user for single elements, in parallel if it is told to."""
        traits = self.record.node.traits
        is_parallel = hasattr(self.record.node, "num_parallel_calls")
        return is_parallel and not traits.pure and not traits.batches and not traits.expands_elements

    @property
    def decompresses(self) -> bool:
        """Whether it reads compressed files."""
        return self.record.node.traits.reads_files and bool(getattr(self.record.node, "compression_type", None))

    @property
    def parses(self) -> bool:
        """Whether its function itself calls ``io.parse_single_example``."""
        code = getattr(getattr(self.record.node, "called", None), "__code__", None)
        return code is not None and "parse_single_example" in code.co_names

    @property
    def calls_each(self) -> bool:
        """Whether it calls its function for each element, as far as the plan tells."""
        rules = (getattr(self.record.node, name, None) for name in ("columnwise", "column_function"))
        return self.calls_function and not any(rules)

    @property
    def takes_executor(self) -> bool:
        """Whether users can choose where it calls its function."""
        return "executor" in vars(self.record.node)

    @property
    def is_sequential(self) -> bool:
        """Whether it has no ``num_parallel_calls``."""
        return self.own.parallelism is None


def _waits(it: Symptoms, cores: int) -> float:  # noqa: ARG001  # the cores are not what it waits for
    return max(it.cpu_share, 1 / CALLS_MAX)


def _shared(it: Symptoms, cores: int) -> float:  # noqa: ARG001  # any work can be shared
    return 1 / cores


@dataclass(frozen=True)
class Remedy:
    """Row of the table, in Markdown.

    Attributes:
        sign, cause, remedy: the columns.
        applies: whether it concerns a bottleneck; None if the statistics cannot tell.
        code: a line of code that does it, with ``{op}`` for the name of the op.
        left: the share of the op's own time that is left afterwards, if all goes well, from its symptoms and the number
            of cores; None if that is unknown.
        parallel: whether it only sets ``num_parallel_calls=AUTOTUNE``, which does not change results.
    """

    sign: str
    cause: str
    remedy: str
    applies: Callable[[Symptoms], bool] | None = None
    code: str = ""
    left: Callable[[Symptoms, int], float] | None = None
    parallel: bool = False


_IDLE_STEPS = Remedy(
    "everything runs `in the consumer's thread`",
    "no step of training overlaps with making batches",
    "`prefetch(AUTOTUNE)` at the end of the chain",
    lambda it: not it.has_stages,
    _PREFETCH,
)

REMEDIES = (
    Remedy(
        "buffers are nearly empty although `memory:` is near its budget",
        "the budget allows no more",
        "smaller elements, or `options.autotune.ram_budget`",
        lambda it: it.own.memory_refusals > 0 and it.memory > _NEARLY_FULL,
        "options.autotune.ram_budget = ...",
    ),
    Remedy(
        "a map that calls `@` or `np.linalg` is the bottleneck, and `top` shows far more CPU time than its `cpu`",
        "each call has threads of its own, which wait for each other in busy loops",
        "`OPENBLAS_NUM_THREADS=1` in the environment, or `MKL_NUM_THREADS=1` if NumPy uses MKL",
        lambda it: it.calls_each and it.hides_threads and it.own.runs != "in processes",
    ),
    Remedy(
        "`top` shows other processes that compute, and all cores are busy",
        "the machine is overloaded; this process waits for cores that others use",
        "fewer processes on this machine, or another machine",
        lambda it: it.is_crowded_out and it.computes,  # what else it waits for has another remedy
    ),
    Remedy(
        "a reader is the bottleneck, with a low `cpu`",
        "it reads one file at a time, from slow storage",
        "several files and `interleave(TFRecordDataset, num_parallel_calls=AUTOTUNE)`",
        lambda it: it.record.node.traits.reads_files and it.is_sequential and not it.computes,
        ".interleave(..., num_parallel_calls=AUTOTUNE)",
        _waits,
    ),
    Remedy(
        "a reader of GZIP files is the bottleneck, with a high `cpu`",
        "decompression",
        "the extra `gzip`; several files at once; files without compression",
        lambda it: it.decompresses and it.is_sequential and it.computes,
        ".interleave(..., num_parallel_calls=AUTOTUNE)",
        _shared,
    ),
    Remedy(
        "a `filter` is the bottleneck",
        "its predicate is called for one element at a time",
        "`options.optimization.filter_parallelization = True`",
        lambda it: it.calls_each and it.is_sequential and it.record.node.op == "filter",
        "options.optimization.filter_parallelization = True",
        _shared,
    ),
    Remedy(
        "a map with a low `cpu` is the bottleneck",
        "its function waits: for files, servers, a database",
        "`num_parallel_calls=AUTOTUNE`, or a number above the number of cores",
        lambda it: it.calls_function and not it.computes and not it.own.is_tuned and it.own.runs != "inline",
        _PARALLEL,
        _waits,
        parallel=True,
    ),
    Remedy(
        "a map that calls `io.parse_single_example` is the bottleneck",
        "records are parsed one by one",
        "`.map(io.ExampleParser(features))`, which parses many at once",
        lambda it: it.calls_each and it.parses and it.own.seconds_per_element < _CHEAP_SECONDS,
        ".map(io.ExampleParser(features))",
        lambda it, cores: 0.0,  # noqa: ARG005
    ),
    Remedy(
        "a map that takes a few microseconds for each element, before `batch`",
        "Python calls cost more than the arithmetic",
        "`map` after `batch`, or `@dataset.vectorized`; `explain()` shows what prevents the optimizer from doing it",
        lambda it: it.calls_each and it.is_sequential and it.own.seconds_per_element < _CHEAP_SECONDS,
        "@dataset.vectorized",
        lambda it, cores: 0.0,  # noqa: ARG005
    ),
    Remedy(
        "a map runs `inline`, or in threads that hold each other up; or `profile()` shows that it holds the `lock`",
        "its function computes in Python and holds the lock, or is so cheap that threads cost more",
        '`@dataset.vectorized` on a function for whole columns, or `executor="process"`',
        lambda it: (
            it.calls_each
            and it.takes_executor
            and it.computes
            and it.own.runs != "in processes"
            and (it.own.runs == "inline" or it.contention > _MOSTLY)
        ),
        '.{op}(..., executor="process")',
        _shared,
    ),
    Remedy(
        "a map with a high `cpu`",
        "a single core does all the work",
        "`num_parallel_calls=AUTOTUNE`, and `executor=AUTOTUNE` if its function holds the interpreter's lock, as "
        "`profile()` tells",
        lambda it: it.calls_each and it.is_sequential,
        _PARALLEL,
        _shared,
    ),
    Remedy(
        "much time in `batch`, large elements",
        "copying them",
        "`batch(..., num_parallel_calls=AUTOTUNE)`; smaller dtypes until the device",
        lambda it: (
            it.record.node.traits.batches
            and it.is_sequential
            and it.computes
            and it.own.seconds_per_element > _CHEAP_SECONDS
        ),
        _PARALLEL,
        _shared,
        parallel=True,
    ),
    _IDLE_STEPS,
    Remedy(
        "each epoch is as slow as the first",
        "the same work is repeated",
        "`cache()` in memory, `cache(filename)` or `snapshot(path)` in files, after expensive operations and before "
        "random ones; then `list_files(shuffle=False)`, and a `shuffle` after the cache",
    ),
    Remedy(
        "the first batch takes long, the others do not",
        "a shuffle buffer is filled with expensive elements",
        "`shuffle` file names and records, then decode; with `TFRecordDataset(..., index=True)` a full `shuffle(None)` "
        "buffers only numbers",
    ),
    Remedy(
        "the consumer is the bottleneck",
        "training takes longer than the data",
        "nothing to do in the pipeline",
    ),
)


def row_for(symptoms: Symptoms) -> Remedy | None:
    """Return the first row that applies."""
    return next((row for row in REMEDIES if row.applies is not None and row.applies(symptoms)), None)


def remedy_for(symptoms: Symptoms) -> str:
    """Return what to write and why, in one line; empty if the table has nothing."""
    row = row_for(symptoms)
    if row is None:
        return ""
    return _in_words(row, "; profile() says what each of its functions needs" if symptoms.record.fused else "")


def remedy_for_idle_steps() -> str:
    """Return what to write if the consumer waits, and nothing works during its steps."""
    return _in_words(_IDLE_STEPS)


def _in_words(row: Remedy, more: str = "") -> str:
    return f"{row.remedy}: {row.cause}{more}".replace("`", "")


def untuned_advice(records: list[OpRecord]) -> str:
    """Return what to write so that the autotuner has something to decide; empty if it has, or could not help."""
    if any(record.knob is not None and not record.knob.is_fixed for record in records):
        return ""
    for record in records:
        node = record.node
        is_argument = node.op != "filter" and not node.traits.batches
        if not node.traits.pure and is_argument and getattr(node, "num_parallel_calls", 0) is None:
            return f"no operator has AUTOTUNE; write num_parallel_calls=AUTOTUNE in {record.name} to have it tuned"
    return ""

"""Dataset: the public class for building pipelines. Its methods are in api/, a file for each family.

- sources: from_tensors, from_tensor_slices, from_list, from_generator, from_queue, range, counter, random, list_files,
  from_csv, from_json_lines, from_parquet, from_arrow, from_arrow_ipc, from_image_folder
- adapters: from_torch, from_tf, from_ray, from_huggingface, from_pandas, from_polars, to_torch, to_keras, to_jax,
  to_tf, to_ray, to_queue, progress
- elements: map, random_map, scan, select, filter, flat_map, interleave, enumerate, ignore_errors, apply
- sequence: take, take_while, skip, skip_records, repeat, shuffle, unique, concatenate, zip, choose_from_datasets,
  sample_from_datasets, rejection_resample, assert_cardinality, pad_to_cardinality
- batching: batch, padded_batch, ragged_batch, sparse_batch, rebatch, unbatch, pack, batch_by_tokens, concat_split,
  bucket_by_sequence_length, window, sliding_window, group_by_window, group_by_reducer
- sharding: shard, shard_by_process, split, distribute
- caching: cache, prefetch, snapshot, save, load, write_tfrecord

The class itself has iteration, lookups, results, options, and what describes a dataset.

A Dataset only holds a plan. Names, arguments, defaults and semantics are those of ``tf.data.Dataset``; values are
NumPy's. Ops are in ops/, their execution in runtime/.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Never, TypeVar, cast, get_overloads, overload

import numpy as np

from dataset import deferred
from dataset.api import adapters, batching, caching, elements, sequence, sharding, sources
from dataset.api.base import S, T, T_co
from dataset.options import Options
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.checks import missing_attribute
from dataset.plan.nested import datasets_are_made_by
from dataset.plan.node import Node, restarted
from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Column
from dataset.runtime.random.streams import EpochLedger
from dataset.runtime.resources.cores import usable_cores
from dataset.runtime.resources.memory import default_budget

if TYPE_CHECKING:  # loaded by the methods that return them
    from dataset.autotune.profile_report import ProfileReport
    from dataset.runtime.iteration.device_prefetch import Convert
    from dataset.runtime.iteration.iterator import DatasetIterator
    from dataset.runtime.state.replay_log import ReplayMarks

Kind = TypeVar("Kind", bound="DatasetIterator[Any]")


class Dataset(
    sources.SourceMethods,
    adapters.AdapterMethods[T_co],
    elements.ElementMethods[T_co],
    sequence.SequenceMethods[T_co],
    batching.BatchingMethods[T_co],
    sharding.ShardingMethods[T_co],
    caching.CachingMethods[T_co],
):
    """Lazy sequence of elements, which are produced during iteration.

    Start from a source (``from_tensor_slices``, ``list_files``, ``TFRecordDataset``, ...), chain transformations, and
    iterate. Nothing runs before the iteration, and each iteration runs the pipeline again. An element is an array, a
    NumPy scalar, ``bytes``, or tuples, named tuples, dicts, dataclasses and attrs classes of these.

    All methods take a ``name``, which is shown in error notes and by ``explain()``.

    >>> dataset = Dataset.range(6).map(lambda x: x * x).batch(4)
    >>> for batch in dataset:
    ...     print(batch)
    [0 1 4 9]
    [16 25]
    """

    def __init__(self, plan: Node) -> None:
        """Create a dataset from a plan. Users call the static methods below instead."""
        if not isinstance(plan, Node):
            raise TypeError(
                f"Dataset() takes a plan, got {type(plan).__name__}; use a static method such as "
                "Dataset.from_tensor_slices, from_list, from_generator, from_torch or from_huggingface"
            )
        self._plan = plan

    if not TYPE_CHECKING:  # type checkers report unknown names

        def __getattr__(self, name: str) -> Never:
            raise missing_attribute(self, name)

    @property
    def plan(self) -> Node:
        """The plan as written, before optimization."""
        return self._plan

    def __iter__(self) -> DatasetIterator[T_co]:
        return deferred.DatasetIterator(self._optimized.plan, self._optimized.options, deferred.Autotuner)

    def __aiter__(self) -> AsyncIterator[T_co]:
        """Iterate with ``async for``: elements are computed in a thread, and the event loop stays free.

        After an element that fails, ``anext`` continues with the next one, as ``next`` does. A cancelled ``anext``, as
        by ``asyncio.wait_for``, loses nothing: the next one returns the element. The iterator has ``aclose()``; it is
        also closed at the end of the data, when it is dropped, and when the event loop ends.

        >>> import asyncio
        >>> async def total():
        ...     return sum([int(x) async for x in Dataset.range(4)])
        >>> asyncio.run(total())
        6
        """
        return deferred.AsyncElements(iter(self))

    def __getitem__(self, index: int) -> T_co:
        """Return element ``index`` without producing those before it; a negative index counts from the end.

        Works if every op has random access: arrays and ``range``, and ``map``, ``batch``, ``zip``, ``enumerate``,
        ``take``, ``skip``, ``shard``, ``repeat``, ``concatenate`` and similar ops. An element that fails counts like
        any other. Arrays, and records of files with an index, are looked up directly; after other ops the pipeline is
        opened for each lookup, which takes some tens of microseconds.

        Raises:
            TypeError: if ``index`` is not an int, or an op has no random access; the message names it.
            IndexError: if ``index`` is out of range.

        >>> Dataset.range(1000).map(lambda x: x * x).batch(100)[3][:4]
        array([90000, 90601, 91204, 91809])
        """
        element: T_co = deferred.element_at(self._plan, index)
        return element

    def as_numpy_iterator(self) -> DatasetIterator[T_co]:
        """Return an iterator over the elements; ``iter(dataset)`` is the same."""
        return iter(self)

    def get_single_element(self, name: str | None = None) -> T_co:
        """Return the only element of a dataset, for example to run a pipeline on a single value.

        Args:
            name: a label.

        Raises:
            ValueError: if the dataset is empty or has more than one element.

        >>> Dataset.from_tensors([1, 2]).map(lambda x: x * 10).get_single_element()
        array([10, 20])
        """
        return cast("T_co", deferred.get_single_element(self._plan, iter(self), name))

    def reduce(self, initial_state: S, reduce_func: Callable[[S, Any], S], name: str | None = None) -> S:
        """Combine all elements into one value.

        Args:
            initial_state: an element; the result for an empty dataset.
            reduce_func: takes the state and an element (a tuple as one argument), returns the next state.
            name: a label.

        Raises:
            SpecError: if ``reduce_func`` returns a state with another structure.

        >>> Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x)
        np.int64(10)
        """
        del name  # no op to label
        return cast("S", deferred.reduce(self, initial_state, reduce_func))

    @property
    def element_spec(self) -> Any:
        """The spec of an element: its structure, with a TensorSpec for each component.

        It is known without running anything, except after a user's function: then one element is produced, once. Its
        kinds, dtypes and ranks are assumed for all elements. Its sizes are not assumed: those dimensions are None.

        >>> Dataset.range(10).batch(4).element_spec
        TensorSpec(shape=(None,), dtype=int64)
        """
        return self._plan.element_spec

    def cardinality(self) -> int:
        """Return the number of elements, INFINITE_CARDINALITY (-1), or UNKNOWN_CARDINALITY (-2).

        >>> Dataset.range(10).batch(4).cardinality()
        3
        """
        return self._plan.cardinality()

    def __len__(self) -> int:
        cardinality = self.cardinality()
        if cardinality == INFINITE_CARDINALITY:
            raise TypeError(
                "this dataset is infinite and has no length; use take() or cardinality(); a DataLoader takes "
                "dataset.to_torch()"
            )
        if cardinality == UNKNOWN_CARDINALITY:
            raise TypeError(
                "the length of this dataset is unknown before it is run; use assert_cardinality(n) if you know it, "
                "TFRecordDataset(..., index=True) or TarDataset(..., index=True) to count the records of files, or "
                "sum(1 for _ in dataset) to count by running it; a DataLoader takes dataset.to_torch()"
            )
        return cardinality

    def __bool__(self) -> bool:
        return True  # as in tf.data: the truth value must not depend on the length

    def options(self) -> Options:
        """Return all settings of this dataset and its inputs, merged; they cannot be changed."""
        return deferred.options_of(self._plan).freeze()

    def with_options(self, options: Options, name: str | None = None) -> Dataset[T_co]:
        """Return the dataset with other settings. Settings made later in a chain take precedence.

        Args:
            options: the settings.
            name: a label.

        Raises:
            TypeError: if ``options`` is not an Options.

        >>> options = Options()
        >>> options.optimization.enabled = False
        >>> Dataset.range(3).with_options(options).options()
        Options(optimization=OptimizationOptions(enabled=False))
        """
        if not isinstance(options, Options):
            raise TypeError(f"with_options(): expected an Options, got {options!r} of type {type(options).__name__}")
        return Dataset(deferred.WithOptions(self._plan, options.freeze(), name=name))

    def fingerprint(self) -> np.uint64:
        """Return a hash of what determines the elements: equal for equal pipelines, also in other processes.

        It covers ops, parameters, seeds, the data of in-memory arrays, and the code of functions with captured values.
        It does not cover other data that functions read, nor the content of files. Of objects that serve the program,
        such as loggers and locks, only the class counts. Iterations do not change it, unless a function changes a value
        that it has captured. It may differ between versions of Python.

        >>> def make(factor):
        ...     return Dataset.range(3).map(lambda x: x * factor)
        >>> bool(make(2).fingerprint() == make(2).fingerprint())
        True
        >>> bool(make(2).fingerprint() == make(3).fingerprint())
        False
        """
        return np.uint64(deferred.content_fingerprint(self._plan))

    def explain(self, format: str = "text") -> str:
        """Return a description of the plan as written and as run, and of the rules that rewrote it or nearly did.

        Nothing runs, not even user functions. The text has the last operation on top. For each operation it shows the
        number of elements, its source line, that of its function, and its spec, as far as they are known.

        Args:
            format: ``"text"``, or ``"svg"`` for a picture of the plan as run, from the sources at the top to the last
                operation at the bottom, which notebooks show.

        Raises:
            ValueError: if the format is unknown.

        >>> print(Dataset.range(10).take(-1).batch(4).explain())
        as written:
          batch(4)   3 elements   ...  int64[?]
          take(-1)   10 elements  ...  int64
          range(10)  10 elements  ...  int64
        <BLANKLINE>
        as it runs:
          batch(4)   3 elements   ...  int64[?]
          range(10)  10 elements  ...  int64
        <BLANKLINE>
        rewritten:
          noop_elimination: take(-1) from ...
        """
        match format:
            case "text":
                return deferred.explain_text(self.options().dataset_name, self._plan, self._optimized)
            case "svg":
                return deferred.svg(self._optimized.plan, self._optimized.rules_of)
        raise ValueError(f'explain(): format must be "text" or "svg", got {format!r}')

    def profile(self, seconds: float = 10.0) -> ProfileReport[Dataset[T_co]]:
        """Run the pipeline alone, as fast as it can, and say what each op costs and what to change.

        The elements are dropped. The run does not count as an iteration, so later ones shuffle as without it. Functions
        are called, generators are read, and caches and snapshots are written as in any other iteration. With AUTOTUNE,
        the next iteration begins with the settings that the run has found.

        Args:
            seconds: how long to run, unless the data end before. A tuned pipeline needs a few seconds to settle.

        Returns:
            A report that prints as a table, with a ranked list of suggestions. ``apply()`` returns the dataset with the
            safe ones applied, and ``save_trace(path)`` writes a trace of its threads for Perfetto.

        Raises:
            TypeError: if ``seconds`` is not a number.
            ValueError: if ``seconds`` is not positive.
            Exception: the exception of the first element that fails.

        >>> import time
        >>> def fetch(x):
        ...     time.sleep(0.001)
        ...     return x
        >>> report = Dataset.range(100).map(fetch).batch(10).profile(seconds=0.1)
        >>> [suggestion.code for suggestion in report.suggestions[:3]]
        ['.cache()', '.map(..., num_parallel_calls=AUTOTUNE)', '.prefetch(AUTOTUNE)']
        >>> report.apply().plan.label()
        'prefetch(AUTOTUNE)'
        """
        return deferred.profile(self._plan, self._optimized.plan, self._optimized.options, seconds, Dataset)

    def _repr_svg_(self) -> str:
        return self.explain("svg")

    def __repr__(self) -> str:
        name = self.options().dataset_name
        return f"<{type(self).__name__}{f' {name!r}' if name else ''}: {self._plan}>"


def shared_among(dataset: Dataset[Any], processes: int, worker: Any = None) -> Dataset[Any]:
    """Return the dataset for one of several concurrent processes, with its share of the cores and the memory.

    ``worker`` is torch's WorkerInfo, by which the sources must not divide their elements again.
    """
    if worker is not None:
        deferred.keep_sources_whole(worker)
    settings = dataset.options().autotune
    options = Options()
    options.autotune.cpu_budget = max(1, (settings.cpu_budget or usable_cores()) // processes)
    options.autotune.ram_budget = max(1, (settings.ram_budget or default_budget()) // processes)
    return dataset.with_options(options)


def columns_at(dataset: Dataset[Any], places: Sequence[int]) -> tuple[Structure, Sequence[Column]] | None:
    """Return the elements at these existing positions, as columns.

    None if they must be looked up one by one. That is also the case if one fails, to find out which.
    """
    plan = deferred.elements_at(dataset.plan, np.array(places, np.int64))
    if plan is None:
        return None
    try:
        elements = deferred.first_elements(plan, len(places))
    except Exception:  # noqa: BLE001  # the lookup of the single element raises it again
        return None
    return elements.structure, elements.columns()


def device_iterator(dataset: Dataset[Any], convert: Convert, count: int, kind: type[Kind]) -> Kind:
    """Return an iterator over converted elements, for a framework.

    Args:
        dataset: the dataset whose elements are converted.
        convert: see ``runtime/iteration/device_prefetch.py``.
        count: how many elements may be pulled ahead of those that were returned.
        kind: the class of the iterator.
    """
    optimized = dataset._optimized  # noqa: SLF001  # its own class
    return kind(optimized.plan, optimized.options, deferred.Autotuner, deferred.DevicePrefetch(convert, count))


def tracing_iterator(
    dataset: Dataset[T],
    state: dict[str, Any] | None = None,
    moved: Callable[[str], str] | Mapping[str, str] | None = None,
    *,
    from_start: bool = False,
) -> DatasetIterator[T]:
    """Return an iterator that records provenance, whatever the options of the dataset are.

    The dataset does not count it as an iteration. It does not read the caches of the dataset, whose elements may have
    been stored without their provenance.

    Args:
        dataset: the dataset.
        state: a saved state to continue from.
        moved: as in ``load_state_dict``.
        from_start: whether to start at the beginning of the iteration in which the state was saved.
    """
    optimized, wanted = dataset._optimized, Options()  # noqa: SLF001  # its own class
    wanted.provenance = True
    plan = restarted(optimized.plan)
    options, epochs = optimized.options.merge(wanted), EpochLedger(detached=True)
    iterator: DatasetIterator[T] = deferred.DatasetIterator(plan, options, deferred.Autotuner, epochs=epochs)
    if state is not None:
        iterator._load(state, moved, from_start=from_start)  # noqa: SLF001  # as load_state_dict does
    return iterator


def replay_marks() -> ReplayMarks[dict[str, Any]]:
    """Return the marks of an adapter whose framework reads elements ahead of those that it has used."""
    return deferred.ReplayMarks()


def _complete_families() -> None:
    """Complete the families: give their modules the name Dataset, and name their methods ``Dataset.map`` and so on.

    Messages, pickles and fingerprints have these names.
    """
    for family in Dataset.__mro__[1:-2]:  # without Generic and object
        vars(sys.modules[family.__module__])["Dataset"] = Dataset  # their modules cannot import it
        for name, member in vars(family).items():
            if isinstance(member, FunctionType | staticmethod):
                for form in (*get_overloads(member), member):
                    function: Any = getattr(form, "__func__", form)
                    function.__module__, function.__qualname__ = __name__, f"Dataset.{name}"
                    if form is not member:
                        overload(form)  # registers it under the new name


_complete_families()
datasets_are_made_by(Dataset)

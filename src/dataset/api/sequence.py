"""Sequence: methods that determine which elements are returned, in what order, and from how many datasets."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np  # noqa: F401  # for the examples

from dataset import deferred
from dataset.api.base import DatasetMethods, R, S, T, T_co
from dataset.plan.checks import require_plan, require_plans
from dataset.plan.lazy import lazy_property
from dataset.plan.node import walk
from dataset.plan.structure import structure_of
from dataset.redaction import redacted

if TYPE_CHECKING:
    from dataset.dataset import Dataset  # at run time, dataset.py sets it
    from dataset.ops.skip import Skip
    from dataset.ops.take import Take


class SequenceMethods(DatasetMethods[T_co]):
    """Methods of Dataset that select, order, repeat and combine elements."""

    @lazy_property
    def _cuts(self) -> dict[int, Take | Skip]:
        """The first take or skip of each number of elements."""
        return {}

    def take(self, count: int, name: str | None = None) -> Dataset[T_co]:
        """Return the first elements.

        Args:
            count: how many; all of them if negative.
            name: a label.

        Warns:
            UserWarning: if ``skip`` of the same number is called on this dataset as well, and its order differs between
                iterations: then elements of one are also in the other. See ``split``.

        >>> [int(x) for x in Dataset.range(100).take(3)]
        [0, 1, 2]
        """
        return self._cut(deferred.Take(self._plan, count, name=name))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset[T_co]:
        """Return the elements before the first for which a function returns False.

        Args:
            predicate: takes an element as ``map`` passes it, returns a bool. It is not called after the first False.
            name: a label.

        Raises:
            TypeError: if ``predicate`` is not callable.
            SpecError: while iterating, if it returns anything but a bool.

        >>> [int(x) for x in Dataset.range(100).take_while(lambda x: x * x < 20)]
        [0, 1, 2, 3, 4]
        """
        return Dataset(deferred.TakeWhile(self._plan, predicate, name=name))

    def skip(self, count: int, name: str | None = None) -> Dataset[T_co]:
        """Return all elements except the first ones.

        Args:
            count: how many to leave out; all of them if negative.
            name: a label.

        Warns:
            UserWarning: as ``take``.

        >>> [int(x) for x in Dataset.range(5).skip(3)]
        [3, 4]
        """
        return self._cut(deferred.Skip(self._plan, count, name=name))

    def _cut(self, node: Take | Skip) -> Dataset[T_co]:
        """Return the dataset of a take or skip. Warn if both would divide a dataset without a stable order."""
        first = self._cuts.setdefault(node.count, node)
        if first.op != node.op and node.count > 0:
            unstable = next((part for part in walk(self._plan) if not part.traits.stable), None)
            if unstable is not None:
                warnings.warn(
                    f"{first} and {node.label()} overlap: {unstable} has another order in each iteration, so elements "
                    "of one are also in the other; use split() before it, or reshuffle_each_iteration=False",
                    stacklevel=3,
                )
        return Dataset(node)

    def skip_records(self, file: str | os.PathLike[str], name: str | None = None) -> Dataset[T_co]:
        """Leave out the elements that are made from records named in a skip list, such as damaged examples.

        The file has one JSON object per line, as ``python -m dataset state --records`` prints them and
        ``SourceRecord.to_dict()`` returns them: ``{"file": "/data/a.tfrecord", "number": 17}``. Other keys are ignored
        for records of files. For other sources, ``source`` takes the place of ``file``, and ``inputs`` and ``within``
        are compared if they are given. The file is read when this method is called. It may be empty: then the op costs
        nothing, and records can be added later without invalidating saved states.

        An element that is made from several records, such as a pair of ``zip``, is left out if any of them is listed.
        So use this op before ``batch``, preferably directly after the reader. A record that was in the buffer of an
        earlier op when a state was saved is also left out; one in the buffer of a later op, such as ``shuffle``, is
        not. Names that match no element in a whole pass are logged as a warning to the logger ``dataset``.

        Args:
            file: the path of the skip list, local or remote.
            name: a label.

        Raises:
            ValueError: a line of the file does not name a record.
            OSError: the file cannot be read.
            SpecError: while iterating, if the records that an element is made from are unknown.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "skip.jsonl")
        ...     with open(path, "w") as file:
        ...         _ = file.write('{"source": "letters", "number": 1}')
        ...     letters = Dataset.from_tensor_slices([b"a", b"b", b"c"], name="letters").skip_records(path)
        >>> list(letters)
        [b'a', b'c']
        """
        path = deferred.path_string(file)
        names = deferred.skip_list("skip_records", deferred.read_file(path).decode(), redacted(path))
        return Dataset(deferred.SkipRecords(self._plan, names, name=name))

    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset[T_co]:
        """Repeat the dataset. Each pass runs it again, with a different order if it is shuffled.

        Args:
            count: how often; infinitely if None or negative.
            name: a label.

        >>> [int(x) for x in Dataset.range(2).repeat(3)]
        [0, 1, 0, 1, 0, 1]
        """
        return Dataset(deferred.Repeat(self._plan, count, name=name))

    def shuffle(
        self,
        buffer_size: int | None,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
        *,
        clump: int | Literal["auto"] | None = None,
    ) -> Dataset[T_co]:
        """Shuffle the elements.

        A buffer is filled; each output element is drawn from it at random and replaced by the next input element.
        In-memory arrays and files with an index are shuffled by index, so a large buffer is cheap, and a buffer of all
        elements takes no space in a saved state.

        By index, each record of a file costs a read, which takes long if the file is remote. With ``clump``, runs of
        this many neighbors are read at once, in random order, and shuffled in the buffer. So elements come from the
        whole dataset, but those of one clump stay near each other: the larger the buffer is compared to a clump, the
        less. The boundaries between clumps change with each order.

        Args:
            buffer_size: the number of elements to draw from; None, or UNKNOWN_CARDINALITY (-2), for all of them.
            seed: makes the orders repeatable: a pipeline built again has the same sequence of orders.
            reshuffle_each_iteration: whether each epoch and each new iterator gets a different order; None means True.
            name: a label.
            clump: how many neighbors to read at once; ``"auto"`` for a 64th of ``buffer_size``. 1 is the same as
                None: no clumps.

        Raises:
            ValueError: if ``buffer_size`` or ``clump`` is less than 1; if ``clump`` is set and ``buffer_size`` is None,
                or the elements of the input cannot be read by position, as after ``map``.

        >>> sorted(int(x) for x in Dataset.range(5).shuffle(buffer_size=5, seed=1))
        [0, 1, 2, 3, 4]
        >>> sorted(int(x) for x in Dataset.range(9).shuffle(buffer_size=4, seed=1, clump=2))
        [0, 1, 2, 3, 4, 5, 6, 7, 8]
        """
        if clump is not None:
            plan = deferred.clump_shuffle(self._plan, buffer_size, seed, reshuffle_each_iteration, clump, name)
            return Dataset(plan)
        return Dataset(deferred.Shuffle(self._plan, buffer_size, seed, reshuffle_each_iteration, name=name))

    def unique(self, name: str | None = None) -> Dataset[T_co]:
        """Drop elements that have occurred before.

        Elements are equal if they have the same dtypes, shapes and values; NaN equals NaN. The elements seen so far are
        kept in memory, and in saved states.

        Args:
            name: a label.

        Raises:
            SpecError: while iterating, if an element contains an object that is not hashable.

        >>> [int(x) for x in Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique()]
        [3, 1, 2]
        """
        return Dataset(deferred.Unique(self._plan, name=name))

    def concatenate(self, dataset: Dataset[S], name: str | None = None) -> Dataset[T_co | S]:
        """Return the elements of this dataset, then those of another.

        Args:
            dataset: a dataset with elements of the same structure and dtypes.
            name: a label.

        Raises:
            TypeError: if ``dataset`` is not a Dataset, or its elements are not compatible.

        >>> [int(x) for x in Dataset.range(2).concatenate(Dataset.range(10, 12))]
        [0, 1, 10, 11]
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"concatenate(): expected a Dataset, got {dataset!r} of type {type(dataset).__name__}")
        return Dataset(deferred.Concatenate.of(self._plan, dataset.plan, name))

    @overload
    @staticmethod
    def zip(first: Dataset[T], second: Dataset[S], /, *, name: str | None = None) -> Dataset[tuple[T, S]]: ...

    @overload
    @staticmethod
    def zip(
        first: Dataset[T], second: Dataset[S], third: Dataset[R], /, *, name: str | None = None
    ) -> Dataset[tuple[T, S, R]]: ...

    @overload
    @staticmethod
    def zip(datasets: tuple[Dataset[T], Dataset[S]], /, *, name: str | None = None) -> Dataset[tuple[T, S]]: ...

    @overload
    @staticmethod
    def zip(dataset: Dataset[T], /, *, name: str | None = None) -> Dataset[T]: ...

    @overload
    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset[Any]: ...

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the combined elements of several datasets; it ends with the shortest.

        Args:
            *args: datasets, or one nested structure of datasets. The elements of a single dataset are unchanged.
            datasets: that structure as a keyword argument, instead of ``args``.
            name: a label.

        Raises:
            TypeError: if the structure contains anything other than Datasets, such as a list; or if both are given.

        >>> pairs = Dataset.zip(Dataset.range(3), Dataset.range(10, 20))
        >>> [(int(a), int(b)) for a, b in pairs]
        [(0, 10), (1, 11), (2, 12)]
        """
        if (datasets is None) == (not args):
            raise TypeError("zip(): give datasets, either as arguments or as datasets=, not both")
        nested = args if len(args) > 1 else args[0] if args else datasets
        structure = structure_of(nested)
        sources = structure.flatten(nested)
        if not sources:
            raise ValueError(f"zip(): give at least one dataset, got {nested!r}")
        for source in sources:
            if not isinstance(source, Dataset):
                hint = "; a list is data, use a tuple" if isinstance(source, list) else ""
                raise TypeError(f"zip(): expected a Dataset, got {source!r} of type {type(source).__name__}{hint}")
        return Dataset(deferred.Zip(structure, tuple(source.plan for source in sources), name=name))

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Dataset[T]],
        choice_dataset: Dataset[Any],
        stop_on_empty_dataset: bool = True,
        name: str | None = None,
    ) -> Dataset[T]:
        """Return a dataset of elements from several datasets, in the order of given choices.

        Args:
            datasets: a list of datasets with elements of the same structure and dtypes.
            choice_dataset: a dataset of int64 scalars: the index in ``datasets`` of the source of the next element.
            stop_on_empty_dataset: whether to end when a chosen dataset has ended. If False, such choices are skipped
                until the choices or all datasets have ended.
            name: a label.

        Raises:
            TypeError: if an argument is not a Dataset, or the elements are not compatible.
            ValueError: if there are no datasets; while iterating, in the place of a choice that is out of range.

        >>> letters = Dataset.from_tensor_slices(["a", "b"])
        >>> digits = Dataset.from_tensor_slices(["1", "2"])
        >>> choices = Dataset.from_tensor_slices([0, 1, 1, 0])
        >>> list(Dataset.choose_from_datasets([letters, digits], choices))
        [b'a', b'1', b'2', b'b']
        """
        sources = require_plans("choose_from_datasets", "datasets", datasets)
        choices = require_plan("choose_from_datasets", "choice_dataset", choice_dataset)
        return Dataset(deferred.ChooseFromDatasets(sources, stop_on_empty_dataset, choices, name=name))

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset[T]],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
        *,
        exact: bool = False,
        interpolation: str = "step",
        on_empty: str | None = None,
        name: str | None = None,
    ) -> Dataset[T]:
        """Return a dataset of elements from several datasets, mixed at random or in exact proportions.

        Each dataset keeps its own order. With ``exact`` (beyond tf.data) the mix is deterministic: after any n
        elements, each dataset has contributed its share of n to within one element (the quota method of Balinski and
        Young, 1975). Weights are then interpreted as exact decimal numbers.

        Args:
            datasets: a list of datasets with elements of the same structure and dtypes.
            weights: a number for each dataset, in any proportion; or a dataset of such vectors, one for each element.
                A dataset of weight 0 is left out. Default, all equal. Beyond tf.data, a schedule: pairs of an element
                number and the weights from there on, ``[(0, [1, 0]), (10_000, [1, 1])]``, or a function that takes the
                number of an element and returns weights. Elements are counted from 0 in each pass, over all processes.
                A saved state can be resumed with other weights of later elements.
            seed: makes the order repeatable.
            stop_on_empty_dataset: whether to end with the first dataset that ends. If False, the others continue, in
                the proportion of their weights.
            rerandomize_each_iteration: whether each epoch and each new iterator gets a different order. By default
                every pass over a dataset has the same order.
            exact: whether to keep the proportions exactly.
            interpolation: how weights change from one pair of a schedule to the next: ``"step"`` or ``"linear"``.
            on_empty: what happens when a dataset ends: ``"continue"`` with the others until all have ended,
                ``"stop"``, or ``"repeat"`` it; beyond tf.data. Default: as ``stop_on_empty_dataset`` says.
            name: a label.

        Raises:
            TypeError: if an argument is not a Dataset, the elements are not compatible, or weights are not numbers.
            ValueError: if there are no datasets; if weights are negative, not finite or too few; if ``exact`` is
                combined with a seed or with weights that vary; if the numbers of a schedule do not ascend from 0.

        >>> ones, twos = Dataset.from_tensors(1).repeat(), Dataset.from_tensors(2).repeat()
        >>> mixed = Dataset.sample_from_datasets([ones, twos], weights=[0.75, 0.25], exact=True)
        >>> [int(x) for x in mixed.take(8)]
        [1, 1, 1, 2, 1, 1, 1, 2]
        >>> scheduled = Dataset.sample_from_datasets([ones, twos], weights=[(0, [1, 0]), (3, [0, 1])])
        >>> [int(x) for x in scheduled.take(6)]
        [1, 1, 1, 2, 2, 2]
        """
        plan = deferred.sample_plan(
            datasets,
            weights,
            seed,
            stop_on_empty_dataset,
            rerandomize_each_iteration,
            exact=exact,
            interpolation=interpolation,
            on_empty=on_empty,
            name=name,
        )
        return Dataset(plan)

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[Any, T_co]]:
        """Drop or repeat elements to reach a target distribution of classes; elements become (class, element) pairs.

        The input is iterated up to three times in parallel, and ``class_func`` is called each time.

        Args:
            class_func: takes an element as ``map`` passes it, returns its class, an int from 0.
            target_dist: the target share of each class.
            initial_dist: the share of each class in the data. Default: estimated from the elements read so far.
            seed: makes the choice repeatable.
            name: a label.

        Raises:
            TypeError: if ``class_func`` is not callable, or a distribution is not a vector of numbers.
            ValueError: if a distribution does not add up to 1, or a target class does not occur in the data; while
                iterating, in the place of an element whose class is out of range.

        >>> numbers = Dataset.range(10_000)  # one in ten is of class 1
        >>> even = numbers.rejection_resample(lambda x: int(x % 10 == 0), [0.5, 0.5], [0.9, 0.1], seed=1)
        >>> classes = [label for label, number in even]
        >>> bool(0.45 < np.mean(classes) < 0.55)
        True
        """
        return Dataset(deferred.rejection_resample_plan(self._plan, class_func, target_dist, initial_dist, seed, name))

    def assert_cardinality(self, expected_cardinality: int, name: str | None = None) -> Dataset[T_co]:
        """Declare the number of elements where it is unknown, such as the number of records in files.

        Then ``len`` works, and so do progress bars, the number of steps in Keras, and ``to_torch()`` in a DataLoader.
        The number is checked during iteration. In tf.data it is ``tf.data.experimental.assert_cardinality``.

        Args:
            expected_cardinality: the number of elements, including those that fail, or ``INFINITE_CARDINALITY``.
            name: a label for errors and plans.

        Raises:
            TypeError: if the number is not an int.
            ValueError: if it is negative, or the plan has a different known cardinality.
            CardinalityError: while iterating: if there are fewer elements, after the last one; if there are more, in
                the place of the first extra element, where the iteration ends.

        >>> even = Dataset.range(10).filter(lambda x: x % 2 == 0).assert_cardinality(5)
        >>> len(even), len(even.batch(2))
        (5, 3)
        """
        return Dataset(deferred.AssertCardinality(self._plan, expected_cardinality, name=name))

    def pad_to_cardinality(
        self, cardinality: int, mask_key: str = "valid", name: str | None = None
    ) -> Dataset[dict[str, Any]]:
        """Append elements of zeros up to a number of elements, and mark the others with True under ``mask_key``.

        Then all batches are full and no data are dropped, for example in an evaluation. Text is empty in the zeros. If
        the element spec does not determine the shapes, they are those of the last element. It is
        ``tf.data.experimental.pad_to_cardinality``, which requires known shapes.

        Args:
            cardinality: the number of elements of the result.
            mask_key: the key of the mask, a bool: False in the appended elements. It replaces a component of that key.
            name: a label.

        Raises:
            TypeError: if the number is not an int, or the key is not text.
            ValueError: if the number of elements is unknown, infinite or larger; or if the elements are not dicts,
                which may be known only while iterating.

        >>> list(Dataset.from_tensor_slices({"a": [1, 2]}).pad_to_cardinality(3))[1:]
        [{'a': np.int64(2), 'valid': np.True_}, {'a': np.int64(0), 'valid': np.False_}]
        """
        return Dataset(deferred.PadToCardinality(self._plan, cardinality, mask_key, name=name))

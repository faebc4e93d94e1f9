"""Elements: methods that apply a function to each element, or to the dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVarTuple, overload

import numpy as np

from dataset import deferred
from dataset.api.base import DatasetMethods, S, T_co, Unknown
from dataset.options import AUTOTUNE
from dataset.plan.checks import require_parallelism, require_threads

if TYPE_CHECKING:  # at run time, dataset.py sets it
    from dataset.dataset import Dataset

Ts = TypeVarTuple("Ts")


class ElementMethods(DatasetMethods[T_co]):
    """Methods of Dataset that transform its elements."""

    @overload
    def map(
        self: ElementMethods[Unknown],
        map_func: Callable[..., S],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]: ...

    @overload
    def map(
        self: ElementMethods[tuple[*Ts]],
        map_func: Callable[[*Ts], S],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]: ...

    @overload
    def map(
        self,
        map_func: Callable[[T_co], S],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]: ...

    def map(
        self,
        map_func: Callable[..., S],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]:
        """Apply a function to each element.

        A tuple element is passed to the function as separate arguments, any other element as one argument. A function
        marked with ``@dataset.vectorized`` is called with whole columns. An exception is raised in the place of its
        element; the iteration can continue after it.

        With ``num_parallel_calls`` the function is called in the background for several elements at once, ahead of the
        consumer. The read-ahead is bounded: usually by the number of elements that are requested or produced at a time,
        at most 32 for each call. If one element takes long, at most the same number of elements after it, or 64 MiB,
        are produced meanwhile. Elements that take less than about a millisecond are processed in groups. If threads do
        not help, because the function is cheap or holds the interpreter lock, it is called in the consumer's thread.

        Args:
            map_func: takes an element, returns an element; always with the same structure.
            num_parallel_calls: the most calls at once. Default: one at a time, when an element is requested. With
                AUTOTUNE, the first calls show whether the function waits; then up to 64 calls run at once. For others,
                the caller's own thread and as many threads as this process may use cores are compared.
            deterministic: whether to keep the order of the elements. Default: the value of the options, which is True
                unless set. If False, elements are returned as soon as they are ready.
            synchronous: True means that calls are never made ahead or in parallel, whatever the options allow. It
                cannot be combined with ``num_parallel_calls``.
            use_unbounded_threadpool: whether the calls do not count against ``options.threading``'s
                ``private_threadpool_size``: for functions that mostly wait.
            name: a label.
            executor: where parallel calls run. "thread" suits functions that wait or release the interpreter lock, such
                as NumPy, decoders and file reads. "process" suits functions that compute in Python: they run in
                ``num_parallel_calls`` (default AUTOTUNE) worker processes. The function, elements and results must be
                serializable with pickle or cloudpickle, which the extra ``process`` installs. Large arrays are passed
                in shared memory. Side effects of the function are limited to the worker process. Processes that are
                idle when an iteration ends wait up to a minute for the next iteration of any dataset. With AUTOTUNE,
                if threads gain nothing, as the function holds the interpreter lock, processes are tried, too, and kept
                if they are faster. A function that cannot be sent stays in this process. Its side effects may happen in
                either place.

        Raises:
            TypeError: if ``map_func`` is not callable; while iterating, if it cannot be sent to a process.
            ValueError: if ``num_parallel_calls`` is less than 1 and not AUTOTUNE, or given with ``synchronous=True``;
                if the executor is unknown.
            WorkerDiedError: while iterating, in the place of the element during which a worker process died.

        >>> [int(x) for x in Dataset.range(4).map(lambda x: x * 10, num_parallel_calls=2)]
        [0, 10, 20, 30]
        """
        require_threads("map", synchronous, use_unbounded_threadpool, num_parallel_calls)
        return Dataset(
            deferred.Map(
                self._plan,
                map_func,
                num_parallel_calls=num_parallel_calls,
                deterministic=deterministic,
                synchronous=bool(synchronous),
                use_unbounded_threadpool=bool(use_unbounded_threadpool),
                executor=executor,
                name=name,
            )
        )

    def random_map(
        self,
        map_func: Callable[..., S],
        seed: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        executor: str | int = "thread",
    ) -> Dataset[S]:
        """Apply a function that draws random numbers to each element, such as an augmentation. Beyond tf.data.

        The function gets its own generator for each element. Its numbers depend only on the seed, the epoch and the
        position of the element: not on how many elements are processed at a time or in parallel, nor on where the
        iteration was resumed. Each epoch and each new iterator draws different numbers, and a pipeline built again
        draws the same sequence of them.

        Args:
            map_func: takes a ``np.random.Generator`` and an element as ``map`` passes it, returns an element.
            seed: makes the draws repeatable; without one, ``set_random_seed`` does.
            num_parallel_calls: the most calls at once, as for ``map``.
            deterministic: whether to keep the order of the elements, as for ``map``.
            name: a label.
            executor: where parallel calls run, as for ``map``; "process" suits augmentation in Python.

        Raises:
            TypeError: if ``map_func`` is not callable, or takes whole columns; if ``seed`` is not an int; while
                iterating, if the function cannot be sent to a process.
            ValueError: if ``num_parallel_calls`` is less than 1 and not AUTOTUNE; if the executor is unknown.
            WorkerDiedError: while iterating, in the place of the element during which a worker process died.

        >>> def flip(rng, image):
        ...     return image[:, ::-1] if rng.random() < 0.5 else image
        >>> images = np.arange(60).reshape(20, 1, 3)
        >>> def run(**settings):
        ...     dataset = Dataset.from_tensor_slices(images).random_map(flip, seed=4, **settings)
        ...     return [image.tolist() for image in dataset]
        >>> run() == run() == run(num_parallel_calls=2, executor="process")
        True
        """
        return Dataset(
            deferred.RandomMap(
                self._plan,
                map_func,
                seed,
                num_parallel_calls=num_parallel_calls,
                deterministic=deterministic,
                executor=executor,
                name=name,
            )
        )

    def scan(
        self, initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, S]], name: str | None = None
    ) -> Dataset[S]:
        """Apply a function that carries a state from one element to the next.

        An exception of the function or of the input leaves the state unchanged. The function may modify arrays of the
        state in place; modifications made before it raises remain.

        Args:
            initial_state: an element; the state for the first element of each pass.
            scan_func: takes the state and an element (a tuple as one argument), returns a pair of the next state, which
                may differ only in its shapes, and the output element.
            name: a label.

        Raises:
            TypeError: if ``scan_func`` is not callable, or takes whole columns.
            SpecError: while iterating, if it does not return a pair, or the state's structure or dtype changes.

        >>> sums = Dataset.range(1, 5).scan(np.int64(0), lambda total, x: (total + x, total + x))
        >>> [int(x) for x in sums]
        [1, 3, 6, 10]
        """
        return Dataset(deferred.Scan(self._plan, initial_state, scan_func, name=name))

    def select(self, *keys: Any, name: str | None = None) -> Dataset[Any]:
        """Select parts of each element, like ``operator.itemgetter``. Beyond tf.data, which needs a ``map``.

        Unlike a function in ``map``, it has no cost per element: it only drops columns.

        Args:
            *keys: keys of a dict, positions in a tuple, names of fields of a named tuple, dataclass or attrs class. One
                key selects the part itself, several keys a tuple of parts in this order.
            name: a label.

        Raises:
            TypeError: if no key is given.
            ValueError: if a key does not exist. If the keys are unknown before running, a SpecError while iterating.

        >>> people = Dataset.from_tensors({"name": "Ada", "born": 1815, "died": 1852})
        >>> next(iter(people.select("name")))
        b'Ada'
        >>> next(iter(people.select("died", "born")))
        (np.int64(1852), np.int64(1815))
        """
        return Dataset(deferred.Select(self._plan, keys, name=name))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset[T_co]:
        """Keep the elements for which a function returns True.

        Args:
            predicate: takes an element as ``map`` passes it, returns a bool.
            name: a label.

        Raises:
            TypeError: if ``predicate`` is not callable.
            SpecError: while iterating, if it returns anything but a bool.

        >>> [int(x) for x in Dataset.range(6).filter(lambda x: x % 2 == 0)]
        [0, 2, 4]
        """
        return Dataset(deferred.Filter(self._plan, predicate, name=name))

    def flat_map(self, map_func: Callable[..., Dataset[S]], name: str | None = None) -> Dataset[S]:
        """Map each element to a dataset, and return the elements of these datasets one after the other.

        Args:
            map_func: takes an element as ``map`` passes it, returns a Dataset.
            name: a label.

        Raises:
            TypeError: if ``map_func`` is not callable; while iterating, if it does not return a Dataset.

        >>> [int(x) for x in Dataset.range(4).flat_map(lambda n: Dataset.range(n))]
        [0, 0, 1, 0, 1, 2]
        """
        return Dataset(deferred.FlatMap(self._plan, map_func, name=name))

    def interleave(
        self,
        map_func: Callable[..., Dataset[S]],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[S]:
        """Map each element to a dataset, and return the elements of several of these datasets in turn.

        Args:
            map_func: takes an element as ``map`` passes it, returns a Dataset.
            cycle_length: how many datasets are open at a time. Default, and for AUTOTUNE, 4.
            block_length: how many consecutive elements to take from a dataset before the next one's turn. Default 1.
            num_parallel_calls: how many datasets to read at once, in background threads, each into a bounded buffer.
                In addition, ``map_func`` is called and the first elements are read ahead for the next
                ``min(cycle_length, num_parallel_calls)`` datasets after those of the cycle. Default: nothing is read
                before it is requested. AUTOTUNE begins with ``cycle_length``, as reading is mostly waiting; the
                autotuner then adjusts it.
            deterministic: whether the order is the same as when reading one dataset at a time. Default: the value of
                ``Options().deterministic``, which is True unless set. If False, elements are returned as soon as they
                are ready.
            name: a label.

        Raises:
            TypeError: if ``map_func`` is not callable; while iterating, if it does not return a Dataset.
            ValueError: if a number is too small.

        >>> numbers = Dataset.range(1, 4).interleave(
        ...     lambda n: Dataset.from_tensors(n).repeat(3), cycle_length=2, block_length=2)
        >>> [int(x) for x in numbers]
        [1, 1, 2, 2, 1, 2, 3, 3, 3]
        """
        require_parallelism("interleave", num_parallel_calls, deterministic)
        return Dataset(
            deferred.Interleave(
                self._plan,
                map_func,
                AUTOTUNE if cycle_length is None else cycle_length,
                1 if block_length is None else block_length,
                num_parallel_calls=num_parallel_calls,
                deterministic=deterministic,
                name=name,
            )
        )

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset[tuple[np.int64, T_co]]:
        """Pair each element with its number, as ``(number, element)``.

        Args:
            start: the first number.
            name: a label.

        >>> [(int(i), text) for i, text in Dataset.from_tensor_slices(["a", "b"]).enumerate(start=1)]
        [(1, b'a'), (2, b'b')]
        """
        return Dataset(deferred.Enumerate(self._plan, start, name=name))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset[T_co]:
        """Drop the elements that fail. Interrupts are not caught.

        After 100,000 consecutive failures, the last error is raised, because the input might fail forever.

        Args:
            log_warning: whether to log each error and its origin to the logger ``dataset``.
            name: a label.

        >>> numbers = Dataset.from_tensor_slices([1, 0, 4]).map(lambda x: 8 // int(x))
        >>> [int(x) for x in numbers.ignore_errors()]
        [8, 2]
        """
        return Dataset(deferred.IgnoreErrors(self._plan, log_warning, name=name))

    def apply(self, transformation_func: Callable[[Self], S]) -> S:
        """Apply a function to this dataset, so that custom transformations fit into a chain.

        Args:
            transformation_func: takes a Dataset, returns a Dataset.

        Raises:
            TypeError: if it returns anything else.

        >>> def every_other(dataset):
        ...     return dataset.shard(2, 0)
        >>> [int(x) for x in Dataset.range(6).apply(every_other)]
        [0, 2, 4]
        """
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"apply(): the function must return a Dataset, got {result!r}")
        return result

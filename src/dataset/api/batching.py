"""Batching: methods that combine several elements into one, or divide one into several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from dataset import deferred
from dataset.api.base import A, DatasetMethods, S, T_co, Unknown
from dataset.plan.checks import require_int

if TYPE_CHECKING:
    from dataset.dataset import Dataset  # at run time, dataset.py sets it
    from dataset.ops.group.group_by_reducer import Reducer

Array: TypeAlias = "npt.NDArray[Any]"
Scalar: TypeAlias = "np.generic | bytes | str | float"


class NamedFields(Protocol):
    """Type of named tuples: batches of them are named tuples, too."""

    def _asdict(self) -> dict[str, Any]: ...


class BatchingMethods(DatasetMethods[T_co]):
    """Methods of Dataset that make batches, windows and groups."""

    @overload
    def batch(
        self: BatchingMethods[Unknown],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Any]: ...

    @overload
    def batch(
        self: BatchingMethods[Scalar],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Array]: ...

    @overload
    def batch(
        self: BatchingMethods[np.ndarray[Any, np.dtype[A]]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[npt.NDArray[A]]: ...

    @overload
    def batch(
        self: BatchingMethods[NamedFields],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[T_co]: ...

    @overload
    def batch(
        self: BatchingMethods[tuple[np.ndarray[Any, np.dtype[A]], Scalar | Array]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[npt.NDArray[A], Array]]: ...

    @overload
    def batch(
        self: BatchingMethods[tuple[Any, Any]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[Any, Any]]: ...

    @overload
    def batch(
        self: BatchingMethods[tuple[Any, ...]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[tuple[Any, ...]]: ...

    @overload
    def batch(
        self: BatchingMethods[dict[str, Any]],
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]: ...

    @overload
    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[T_co]: ...

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Stack consecutive elements into arrays with a new first axis.

        Args:
            batch_size: elements per batch.
            drop_remainder: whether to leave out a last batch that is not full.
            num_parallel_calls: the most batches stacked at once, in the background, ahead of the consumer by at most
                this many batches. Default: one at a time, when it is requested. AUTOTUNE begins with the number of
                cores that this process may use. It pays off for large elements.
            deterministic: whether to keep the order of the batches, as for ``map``.
            name: a label.

        Raises:
            ValueError: if ``batch_size`` is less than 1.
            SpecError: while iterating, if the elements of a batch differ in structure, shape or dtype.

        >>> [batch.tolist() for batch in Dataset.range(5).batch(2)]
        [[0, 1], [2, 3], [4]]
        """
        return Dataset(
            deferred.Batch(
                self._plan,
                batch_size,
                drop_remainder,
                num_parallel_calls=num_parallel_calls,
                deterministic=deterministic,
                name=name,
            )
        )

    @overload
    def padded_batch(
        self: BatchingMethods[Unknown],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]: ...

    @overload
    def padded_batch(
        self: BatchingMethods[Scalar],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Array]: ...

    @overload
    def padded_batch(
        self: BatchingMethods[np.ndarray[Any, np.dtype[A]]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[npt.NDArray[A]]: ...

    @overload
    def padded_batch(
        self: BatchingMethods[NamedFields],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[T_co]: ...

    @overload
    def padded_batch(
        self: BatchingMethods[tuple[np.ndarray[Any, np.dtype[A]], Scalar | Array]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[tuple[npt.NDArray[A], Array]]: ...

    @overload
    def padded_batch(
        self: BatchingMethods[tuple[Any, Any]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[tuple[Any, Any]]: ...

    @overload
    def padded_batch(
        self: BatchingMethods[tuple[Any, ...]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[tuple[Any, ...]]: ...

    @overload
    def padded_batch(
        self: BatchingMethods[dict[str, Any]],
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]: ...

    @overload
    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[T_co]: ...

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Batch components of different sizes, padded at the end.

        Args:
            batch_size: elements per batch.
            padded_shapes: shapes in the structure of an element, None or -1 for the largest in the batch. Default: the
                largest in every dimension.
            padding_values: padding values in the structure of an element, or one for all. Default 0 or ``b""``.
            drop_remainder: whether to leave out a last batch that is not full.
            name: a label.

        Raises:
            ValueError: if ``batch_size`` is less than 1, or shapes are incompatible with the elements.
            SpecError: while iterating, if a component is larger than its padded shape.

        >>> rows = Dataset.range(1, 4).map(lambda n: np.full(n, n))
        >>> for batch in rows.padded_batch(3, padding_values=-1):
        ...     print(batch)
        [[ 1 -1 -1]
         [ 2  2 -1]
         [ 3  3  3]]
        """
        return Dataset(
            deferred.PaddedBatch(self._plan, batch_size, drop_remainder, padded_shapes, padding_values, name=name)
        )

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: npt.DTypeLike = np.int64,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Batch components of different sizes as RaggedTensors.

        A component is dense, as from ``batch``, if ``element_spec`` has its full shape. If a component has unknown
        dimensions, the last unknown one and all before it are ragged; after a ``map``, whose sizes are unknown, all
        dimensions are ragged. RaggedTensors are stacked and keep their row splits.

        Args:
            batch_size: elements per batch.
            drop_remainder: whether to leave out a last batch that is not full.
            row_splits_dtype: the dtype of row splits for dense components: int32 or int64.
            name: a label.

        Raises:
            ValueError: if ``batch_size`` is less than 1, or ``row_splits_dtype`` is another dtype.
            SpecError: while iterating, if elements of a batch differ in structure, dtype, rank or inner shape.

        >>> next(iter(Dataset.range(1, 4).map(lambda n: np.full(n, n)).ragged_batch(3)))
        RaggedTensor([[1], [2, 2], [3, 3, 3]], dtype=int64)
        """
        return Dataset(deferred.RaggedBatch(self._plan, batch_size, drop_remainder, row_splits_dtype, name=name))

    def sparse_batch(self, batch_size: int, row_shape: Any, name: str | None = None) -> Dataset[Any]:
        """Batch single dense components of different sizes as SparseTensors. Every cell is stored, including zeros.

        Args:
            batch_size: elements per batch; the last may have fewer.
            row_shape: the maximum shape of an element; None in a dimension for the largest in the batch.
            name: a label.

        Raises:
            TypeError: if elements have more than one component, or are ragged or sparse.
            ValueError: if ``batch_size`` is less than 1, or ``row_shape`` is incompatible with the elements.
            SpecError: while iterating, if an element is larger than ``row_shape``, or has another rank.

        >>> batch = next(iter(Dataset.range(1, 4).map(lambda n: np.full(n, n)).sparse_batch(3, row_shape=[4])))
        >>> batch.to_dense()
        array([[1, 0, 0, 0],
               [2, 2, 0, 0],
               [3, 3, 3, 0]])
        """
        return Dataset(deferred.SparseBatch(self._plan, batch_size, row_shape=row_shape, name=name))

    def rebatch(
        self, batch_size: int | Sequence[int], drop_remainder: bool = False, name: str | None = None
    ) -> Dataset[Any]:
        """Change the batch size: equivalent to ``unbatch().batch(batch_size)``, but at the cost of slicing.

        Args:
            batch_size: rows per batch; or several sizes, used in turn and repeated. A batch of size 0 is empty.
            drop_remainder: whether to leave out a last batch that is not full.
            name: a label.

        Raises:
            TypeError: if ``batch_size`` contains anything but ints.
            ValueError: if a size is negative or all sizes are 0, or components are scalars.
            SpecError: while iterating, if components differ in the number of rows, or the rows of a batch in shape.

        >>> [batch.tolist() for batch in Dataset.range(7).batch(4).rebatch([3, 0, 1])]
        [[0, 1, 2], [], [3], [4, 5, 6], []]
        """
        return Dataset(deferred.Rebatch(self._plan, batch_size, drop_remainder, name=name))

    def unbatch(self, name: str | None = None) -> Dataset[Any]:
        """Split each element into its rows.

        Args:
            name: a label.

        Raises:
            ValueError: if a component is a scalar.

        >>> [int(x) for x in Dataset.from_tensors([1, 2]).repeat(2).unbatch()]
        [1, 2, 1, 2]
        """
        return Dataset(deferred.Unbatch(self._plan, name=name))

    def pack(
        self,
        length: int,
        *,
        window: int = 1000,
        key: Any = None,
        too_long: str = "split",
        boundaries: str = "segment_ids",
        pad: Any = 0,
        max_sequences: int | None = None,
        shuffle: bool = False,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Pack sequences of tokens into rows of ``length`` tokens, with little padding.

        The components that are arrays are token features: one row per token, and in each element all of one length.
        They are cut at the same places. Other components, numbers and bytes, are values of a sequence: each row has an
        array of those of its sequences.

        The sequences of each ``window`` elements are placed by best-fit-decreasing. No sequence goes from one window to
        the next. Rows, and sequences within a row, are in the order of the input. Sequences without tokens are left
        out. A saved state holds the position of the window in the input, and no elements.

        Arrays of int32 that describe the sequences of a row are added: to a dict under their names, to a tuple as last
        components. A single array becomes a tuple with them. ``boundaries`` selects them:

        - ``"segment_ids"``: ``segment_ids``, of shape (length,), is 1 for the tokens of the first sequence, 2 for those
          of the second, and 0 for padding. ``positions``, of shape (length,), counts the tokens of each sequence from 0
          and is 0 for padding.
        - ``"cu_seqlens"``: ``cu_seqlens`` has the place of the first token of each sequence, and ``length`` last, as
          kernels for attention over sequences of different lengths take it. Padding is one more sequence, so that they
          compute every token. ``positions`` is as above.
        - ``"lengths"``: ``lengths`` has the number of tokens of each sequence, without the padding.

        A ``shard_by_process(remainder="keep")`` after it gives each process whole windows, and so does any remainder if
        ``repeat()`` precedes. Otherwise each process packs all windows, so that all get equally many rows.

        Args:
            length: tokens per row.
            window: elements that are packed together. More of them need less padding and more memory.
            key: the name or position of the token feature whose length counts. Default: the first.
            too_long: what becomes of a sequence with more than ``length`` tokens. ``"split"``: pieces of ``length``
                tokens and a shorter last one, each a sequence of its own; ``"truncate"``: its first ``length`` tokens;
                ``"drop"``: nothing; ``"error"``: a ValueError in its place.
            boundaries: how to tell the sequences of a row apart.
            pad: the token that fills a row, or a dict with one for some keys of the elements. Default 0 or ``b""``.
            max_sequences: the maximum number of sequences in a row. Default: any.
            shuffle: whether to shuffle the rows of each window, in a new order for each epoch.
            seed: the seed of that order.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type, or ``pad`` is not a value of the dtype of the tokens.
            ValueError: if an argument has a wrong value, the elements have no array, or a key that is added exists.
            SpecError: while iterating, if the token features of an element differ in length, or elements in dtypes.

        >>> texts = Dataset.range(1, 5).map(lambda n: np.full(n, n))
        >>> for tokens, segment_ids, positions in texts.pack(6):
        ...     print(tokens, segment_ids, positions)
        [1 3 3 3 0 0] [1 2 2 2 0 0] [0 0 1 2 0 0]
        [2 2 4 4 4 4] [1 1 2 2 2 2] [0 1 0 1 2 3]
        """
        return Dataset(
            deferred.Pack(
                self._plan, length, window, key, too_long, boundaries, pad, max_sequences, shuffle, seed, name=name
            )
        )

    def batch_by_tokens(
        self,
        max_tokens: int,
        *,
        length: Callable[..., Any] | None = None,
        window: int = 1000,
        layout: str = "padded",
        pad_to: int | Sequence[int] | None = None,
        pad: Any = 0,
        across_processes: bool | int = False,
        shuffle: bool = True,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Batch sequences of similar lengths, so that no batch has more than ``max_tokens`` tokens, padding included.

        The sequences of each ``window`` elements are sorted by length and cut into batches, which come in random order.
        Each element is in exactly one batch. A sequence that exceeds ``max_tokens`` by itself is a ValueError. A saved
        state holds the position of the window in the input, and no elements.

        Args:
            max_tokens: the maximum size of a batch. Padded: the number of elements times the length they are padded to;
                otherwise the number of tokens.
            length: takes an element, returns its number of tokens. Default: the length of its first array.
            window: elements that are sorted together.
            layout: ``"padded"``: as ``padded_batch``; ``"ragged"``: as ``ragged_batch``; ``"packed"``: the arrays of a
                batch are concatenated, and ``cu_seqlens`` and ``positions`` are added, as ``pack`` does.
            pad_to: lengths to pad to, so that there are fewer shapes: multiples of an int, or one of several lengths.
                Default: the longest in the batch.
            pad: the padding value, or a dict with one for some keys of the elements. Default 0 or ``b""``.
            across_processes: the number of processes that will share the batches, or True for the number that
                ``shard_by_process()`` finds. Each window then has equally many batches for each of them, and the
                batches of a step are similar in size. A ``shard_by_process`` after it deals them.
            shuffle: whether to shuffle the batches of a window, in a new order for each epoch; else the largest is
                first.
            seed: the seed of that order.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type, or ``pad`` is not a value of the dtype of the tokens.
            ValueError: if an argument has a wrong value, or the elements have no array.
            SpecError: while iterating, if elements of a batch differ in structure, dtype or rank.

        >>> texts = Dataset.range(1, 8).map(lambda n: np.full(n, n))
        >>> for batch in texts.batch_by_tokens(10, shuffle=False):
        ...     print(batch.tolist())
        [[4, 4, 4, 4, 0], [5, 5, 5, 5, 5]]
        [[1, 0, 0], [2, 2, 0], [3, 3, 3]]
        [[7, 7, 7, 7, 7, 7, 7]]
        [[6, 6, 6, 6, 6, 6]]
        """
        op = "batch_by_tokens"
        if across_processes is True:
            processes = deferred.process_rank(op)[1]
        elif across_processes is False:
            processes = 1
        else:
            processes = require_int(op, "across_processes", across_processes, minimum=1)
        return Dataset(
            deferred.BatchByTokens(
                self._plan, max_tokens, length, window, layout, pad_to, pad, processes, shuffle, seed, name=name
            )
        )

    def concat_split(
        self, length: int, separator: Any = None, drop_remainder: bool = False, name: str | None = None
    ) -> Dataset[Any]:
        """Concatenate all sequences of tokens into one stream, and cut it into rows of ``length`` tokens.

        No row has padding, but sequences begin and end anywhere. All components must be arrays with one row per token,
        in each element of one length. Sequences without tokens are left out. A saved state holds the tokens since the
        last full row.

        Args:
            length: tokens per row.
            separator: a token to add after each sequence, or a dict with one for some keys of the elements, and 0 or
                ``b""`` for the others. Default: none.
            drop_remainder: whether to leave out a last row that is not full.
            name: a label.

        Raises:
            TypeError: if ``separator`` is not a value of the dtype of the tokens.
            ValueError: if ``length`` is less than 1, or the elements have a component that is not an array.
            SpecError: while iterating, if the components of an element differ in length, or elements in dtypes.

        >>> texts = Dataset.range(1, 5).map(lambda n: np.full(n, n))
        >>> for tokens in texts.concat_split(5, separator=0):
        ...     print(tokens)
        [1 0 2 2 0]
        [3 3 3 0 4]
        [4 4 4 0]
        """
        return Dataset(deferred.ConcatSplit(self._plan, length, separator, drop_remainder, name=name))

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Batch elements of similar length together, so that little padding is needed.

        Args:
            element_length_func: takes an element as ``map`` passes it, returns its length, an int. A function that only
                reads a length, such as ``len`` or ``lambda tokens, label: len(tokens)``, is fastest: the lengths of
                thousands of rows in memory are then determined at once.
            bucket_boundaries: ascending lengths; bucket ``i`` holds the lengths below boundary ``i``, the last bucket
                the rest.
            bucket_batch_sizes: elements per batch for each bucket, one more than there are boundaries.
            padded_shapes: as in ``padded_batch``. Default: the largest in the batch.
            padding_values: as in ``padded_batch``.
            pad_to_bucket_boundary: whether to pad unknown dimensions to the bucket's boundary minus 1.
            no_padding: whether to disable padding, for sparse and ragged elements.
            drop_remainder: whether to leave out batches that are not full at the end.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type, or elements cannot be padded.
            ValueError: if the boundaries are not ascending, or the number of sizes does not match the boundaries; while
                iterating, with ``pad_to_bucket_boundary``, in the place of an element that is at least as long as the
                last boundary.

        >>> rows = Dataset.range(1, 6).map(lambda n: np.full(n, n))
        >>> for batch in rows.bucket_by_sequence_length(len, [3], [2, 3]):
        ...     print(batch)
        [[1 0]
         [2 2]]
        [[3 3 3 0 0]
         [4 4 4 4 0]
         [5 5 5 5 5]]
        """
        return Dataset(
            deferred.BucketBySequenceLength(
                self._plan,
                element_length_func,
                bucket_boundaries,
                bucket_batch_sizes,
                padded_shapes,
                padding_values,
                pad_to_bucket_boundary,
                no_padding,
                drop_remainder,
                name=name,
            )
        )

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Any]:
        """Group consecutive elements into datasets. ``flat_map`` turns them into elements, such as overlapping batches.

        For arrays of consecutive elements, ``sliding_window`` is shorter.

        A window of tuples is a tuple of datasets, a window of dicts a dict of datasets. The elements of a window are
        already in memory: it can be iterated at any time, and several times.

        Args:
            size: elements per window.
            shift: the distance between the starts of consecutive windows. Default ``size``.
            stride: the distance between the elements of a window.
            drop_remainder: whether to leave out the windows at the end that are not full.
            name: a label.

        Raises:
            ValueError: if a number is less than 1.

        >>> for window in Dataset.range(7).window(3, shift=2, drop_remainder=True):
        ...     print([int(x) for x in window])
        [0, 1, 2]
        [2, 3, 4]
        [4, 5, 6]
        >>> pairs = Dataset.range(4).window(2, shift=1, drop_remainder=True).flat_map(lambda window: window.batch(2))
        >>> [pair.tolist() for pair in pairs]
        [[0, 1], [1, 2], [2, 3]]
        """
        return Dataset(deferred.Window(self._plan, size, shift, stride, drop_remainder, name=name))

    def sliding_window(
        self, size: int, shift: int = 1, stride: int = 1, pad: Any = None, name: str | None = None
    ) -> Dataset[Any]:
        """Return windows of consecutive elements as arrays, with a new first axis.

        Element ``i`` holds the input elements ``i * shift``, ``i * shift + stride``, and so on. The windows are those
        of ``numpy.lib.stride_tricks.sliding_window_view``, and of ``window``, ``flat_map`` and ``batch``, for each
        component. They share memory and are read-only; ``batch`` copies them.

        If the input has random access, so have the windows: ``dataset[i]`` reads only what is in the window.

        Args:
            size: elements per window.
            shift: the distance between the starts of consecutive windows.
            stride: the distance between the elements of a window.
            pad: the value that fills the windows at the end that are not full, in all components or in the structure of
                the elements. By default, these windows are left out.
            name: a label.

        Raises:
            ValueError: if a number is less than 1.
            TypeError: if ``pad`` is not a value of a component's dtype.

        >>> [window.tolist() for window in Dataset.range(5).sliding_window(3)]
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        >>> [window.tolist() for window in Dataset.range(5).sliding_window(3, shift=2, pad=-1)]
        [[0, 1, 2], [2, 3, 4], [4, -1, -1]]
        >>> series = Dataset.from_tensor_slices({"time": [1, 2, 3], "load": [0.5, 0.7, 0.6]})
        >>> series.sliding_window(2)[1]
        {'time': array([2, 3]), 'load': array([0.7, 0.6])}
        """
        return Dataset(deferred.SlidingWindow(self._plan, size, shift, stride, pad=pad, name=name))

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Dataset[T_co]], Dataset[S]],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Dataset[S]:
        """Group elements by key into windows, and reduce each window with a function.

        As soon as there are enough elements with a key, ``reduce_func`` is called with the key and a dataset of them,
        and the elements of the returned dataset are output. Windows that are not full follow at the end, in the order
        of their keys.

        Args:
            key_func: takes an element as ``map`` passes it, returns an int.
            reduce_func: takes a key, as int64, and a Dataset of elements; returns a Dataset.
            window_size: elements per window.
            window_size_func: takes a key, returns the number of elements in its windows; an alternative to
                ``window_size``. Called once for each key.
            name: a label.

        Raises:
            TypeError: if a function is not callable; while iterating, if ``reduce_func`` does not return a Dataset.
            ValueError: if both or neither of ``window_size`` and ``window_size_func`` are given; if a size is less than
                1.
            SpecError: while iterating, if ``key_func`` or ``window_size_func`` does not return an int.

        >>> batches = Dataset.range(7).group_by_window(
        ...     key_func=lambda x: x % 2, reduce_func=lambda key, window: window.batch(3), window_size=3)
        >>> [batch.tolist() for batch in batches]
        [[0, 2, 4], [1, 3, 5], [6]]
        """
        return Dataset(
            deferred.GroupByWindow(self._plan, key_func, reduce_func, window_size, window_size_func, name=name)
        )

    def group_by_reducer(self, key_func: Callable[..., Any], reducer: Reducer, name: str | None = None) -> Dataset[Any]:
        """Group elements by key, and reduce each group to one element, in the order of the keys.

        It is ``tf.data.experimental.group_by_reducer``. Only a state for each key is held, not the elements. The first
        result needs all elements, and so does ``element_spec``, which computes it.

        Args:
            key_func: takes an element as ``map`` passes it, returns an int.
            reducer: the functions that make the initial state, the next state, and the result.
            name: a label.

        Raises:
            TypeError: if ``key_func`` is not callable, or ``reducer`` is not a Reducer.
            SpecError: while iterating, if ``key_func`` does not return an int, or the structure or a dtype of a state
                changes.

        >>> from dataset import Reducer
        >>> means = Reducer(
        ...     init_func=lambda key: (0, 0),
        ...     reduce_func=lambda state, x: (state[0] + x, state[1] + 1),
        ...     finalize_func=lambda total, count: total / count)
        >>> [float(mean) for mean in Dataset.range(7).group_by_reducer(lambda x: x % 2, means)]
        [3.0, 3.0]
        """
        return Dataset(deferred.group_by_reducer_plan(self._plan, key_func, reducer, name))

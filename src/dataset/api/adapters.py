"""Adapters: datasets from and for PyTorch, Keras, JAX, TensorFlow, Ray, Hugging Face, pandas, Polars and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np  # noqa: F401  # for the examples

from dataset import deferred
from dataset.api.base import DatasetMethods, T_co
from dataset.extras import load_extra
from dataset.options import AUTOTUNE, bounded
from dataset.plan.checks import require_bool, require_columns, require_int

if TYPE_CHECKING:  # imports against the layering: loaded by the methods that return them
    from dataset.adapters.jax import JaxDataset
    from dataset.adapters.live_progress import LiveProgress
    from dataset.adapters.progress import Progress
    from dataset.adapters.queue_feeder import QueueFeeder
    from dataset.adapters.torch.iterable import TorchIterableDataset
    from dataset.adapters.torch.map_style import TorchMapDataset
    from dataset.dataset import Dataset  # at run time, dataset.py sets it


class AdapterMethods(DatasetMethods[T_co]):
    """Methods of Dataset that convert from and to the objects of other libraries."""

    @property
    def _dataset(self) -> Dataset[T_co]:
        """This object, which is a Dataset."""
        return cast("Dataset[T_co]", self)

    @staticmethod
    def from_torch(dataset: Any, output_signature: Any = None, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the items of a PyTorch dataset, as NumPy arrays. Needs the extra ``torch``.

        A map-style dataset is a source with random access: ``shuffle``, ``skip`` and ``shard`` operate on indices, and
        only the required items are fetched, in batches if it has ``__getitems__``. The rows of a ``TensorDataset`` are
        read as by ``from_tensor_slices``. An IterableDataset or a DataLoader is iterated again by each iteration.
        Upstream of ``to_torch()``, which divides the elements among the workers of a DataLoader, an IterableDataset
        that divides itself finds a single worker (``docs/howto/sharding.md``).

        Tensors are detached and copied to the host. Arrays from a map-style dataset's tensors share their memory and
        are read-only; those from an iterable dataset are copies, since it may reuse its tensors. A list at the top
        level of an item is structure, like a tuple; other lists are data. bfloat16 and float8 require the package
        ml_dtypes.

        Args:
            dataset: a ``torch.utils.data.Dataset``, or any object with ``__getitem__`` and ``__len__``; an
                ``IterableDataset`` or a ``DataLoader``.
            output_signature: TensorSpec and so on in the structure of an element. Default: that of the first element.
            name: a label.

        Raises:
            TypeError: if ``dataset`` is none of these, or a signature contains anything but specs.
            ImportError: if torch is not installed; while iterating, if ml_dtypes is not.

        >>> import torch
        >>> pairs = torch.utils.data.TensorDataset(torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 2]))
        >>> for x, y in Dataset.from_torch(pairs).batch(2):
        ...     print(x.tolist(), y)
        [[0.0, 1.0], [2.0, 3.0]] [0 1]
        [[4.0, 5.0]] [2]
        """
        load_extra("torch", "torch", "from_torch() needs")
        signature = deferred.signature_of(None, None, output_signature, op="from_torch")
        source = deferred.torch_source
        if source.is_iterable(dataset):
            return Dataset(deferred.Generator(source.Iterating(dataset), (), signature, name=name))
        columns = source.columns_of(dataset) if signature is None else None
        if columns is not None:
            return Dataset(deferred.TensorSlices(columns, name=name))
        return Dataset(deferred.IndexedSource("from_torch", dataset, signature, source.element_of, name=name))

    @staticmethod
    def from_tf(tf_dataset: Any, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the elements of a ``tf.data.Dataset``. Each iteration iterates it again.

        Elements are those of ``as_numpy_iterator()``, with this library's ragged and sparse tensors and datasets. All
        values are copies. An element that fails raises TensorFlow's exception in its place. TensorFlow determines the
        read-ahead. A saved state counts elements: restoring it iterates from the start up to the position.

        Args:
            tf_dataset: a ``tf.data.Dataset``.
            name: a label.

        Raises:
            TypeError: if ``tf_dataset`` is not one, or a component is not an array, text, a ragged or sparse tensor or
                a dataset.
            RuntimeError: inside a ``tf.function``.
            ImportError: if TensorFlow is not installed.

        >>> import tensorflow as tf
        >>> dataset = Dataset.from_tf(tf.data.Dataset.range(4).batch(2))
        >>> len(dataset), list(dataset)
        (2, [array([0, 1]), array([2, 3])])
        """
        tf = load_extra("tensorflow", "tensorflow", "from_tf() needs")
        source = deferred.TfDataset(tf, tf_dataset)
        plan = deferred.ExternalSource(
            source, (), source.signature, method="from_tf", kind=source.kind, count=source.count, name=name
        )
        return Dataset(plan)

    @staticmethod
    def from_ray(dataset: Any, name: str | None = None) -> Dataset[Any]:
        """Return a dataset of the rows of a ``ray.data.Dataset``, as dicts of arrays by column name.

        Each iteration executes the Ray dataset again. Ray Data keeps the order of rows only if its option
        ``preserve_order`` is set. A saved state counts rows: restoring it reads the rows before it again.

        Args:
            dataset: a ``ray.data.Dataset``.
            name: a label.

        Raises:
            TypeError: if ``dataset`` is not one.

        >>> import ray  # doctest: +SKIP
        >>> next(iter(Dataset.from_ray(ray.data.range(3))))  # doctest: +SKIP
        {'id': np.int64(0)}
        """
        if not hasattr(dataset, "iter_rows"):
            raise TypeError(f"from_ray(): expected a ray.data.Dataset, got {type(dataset).__name__}")
        return Dataset(deferred.Generator(dataset.iter_rows, (), None, name=name))

    @staticmethod
    def from_huggingface(
        hf: Any,
        columns: Sequence[str] | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Return a dataset of the rows of a Hugging Face dataset, as dicts. Needs the extra ``huggingface``.

        Rows of a ``datasets.Dataset`` are read and converted only when they are requested, so it may be larger than
        memory. It has random access and is shuffled by index. It keeps the order that its own ``shuffle``, ``select``
        and ``filter`` produced. Types and nulls are handled as in ``from_parquet``, with the dtypes of the features. A
        ``ClassLabel`` is an int64, an ``Array2D`` an array, ``Json`` its text. Of a format, only the selection of
        columns is used.

        An ``Image`` is decoded into an array: uint8 of shape (height, width, 3) for RGB, (height, width) for gray; the
        indices of a palette become its colors. An ``Audio`` is a dict of ``array``, float32, and ``sampling_rate``, and
        needs torchcodec. To decode in parallel, use ``hf.cast_column("image", datasets.Image(decode=False))`` and
        decode in ``map``; the column then has ``bytes`` and ``path``, and either may be empty. A function passed to
        ``set_transform`` is called with as many rows as are requested at once.

        A ``datasets.IterableDataset`` is iterated from its first row in each pass, in the order of its own epoch; a
        ``shuffle()`` after this source gives each epoch a different order. Nothing is read ahead. Resuming from a saved
        state reads the earlier rows again.

        Args:
            hf: a ``datasets.Dataset`` or ``datasets.IterableDataset``; select one split of a ``DatasetDict``.
            columns: the columns to read, in the order of the keys; ``"a.b"`` is a field of a struct. Default: those of
                its format.
            fill_null: replacement values for nulls, by column.
            name: a label.

        Raises:
            TypeError: if ``hf`` is neither.
            ValueError: if a column does not exist, or ``columns`` are given for a dataset without known features; while
                iterating, in the place of a row with a null that its column's dtype cannot represent.
            SpecError: if a column's type is not supported, such as a list of structs, or a ``Video``.
            ImportError: if datasets is not installed.

        >>> import datasets
        >>> reviews = datasets.Dataset.from_dict({"text": ["good", "bad"], "stars": [5, 1]})
        >>> for row in Dataset.from_huggingface(reviews.select([1, 0])):
        ...     print(row)
        {'text': b'bad', 'stars': np.int64(1)}
        {'text': b'good', 'stars': np.int64(5)}
        """
        load_extra("datasets", "huggingface", "from_huggingface() needs")
        op = "from_huggingface"
        make = deferred.HuggingfaceMakers(
            table=partial(deferred.TableRows, name=name),
            rows=partial(deferred.IndexedSource, op, name=name),
            stream=partial(deferred.Generator, method=op, name=name),
            row_reader=partial(deferred.RowReader, op),
        )
        asked, fills = require_columns(op, columns), deferred.require_fill_null(op, fill_null)
        return Dataset(deferred.huggingface_plan(hf, asked, fills, make))

    @staticmethod
    def from_pandas(
        df: Any,
        columns: Sequence[str] | None = None,
        *,
        index: bool = False,
        fill_null: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Return a dataset of the rows of a pandas frame, as dicts. Needs the extra ``pandas``.

        It is like ``from_tensor_slices`` of the frame's columns: it has random access and is shuffled by index.
        Numbers and times are not copied; text is copied once, at this call. Later changes of the frame have no effect
        (with pandas 3, or with copy-on-write enabled).

        pandas' nullable dtypes become NumPy's, times with a time zone datetime64 in UTC, categories their values,
        sparse columns dense ones. Text is ``bytes``. Columns in Arrow's memory are handled as in ``from_arrow``, and so
        are Python objects, which must be of one kind: numbers, text, times, lists, dicts, or NumPy arrays. Arrays and
        lists of equal shape are rows of an array; their first dimension may differ, as in a RaggedTensor. A null (None,
        NaN, NaT, NA) is NaN in floats and NaT in times; in other dtypes it is an error, unless ``fill_null`` has a
        value for it.

        Args:
            df: a ``DataFrame``; or a ``Series``, whose values are the elements, not in a dict.
            columns: the columns to read, in the order of the keys. Default: all.
            index: whether to include the index as columns before the others, as ``df.reset_index()`` does.
            fill_null: replacement values for nulls, by column; ``"a.b"`` is a field of a column of dicts.
            name: a label.

        Raises:
            TypeError: if ``df`` is neither; if column names are not text, or have several levels.
            ValueError: if a column does not exist or is ambiguous; at the first row with a null that its column's dtype
                cannot represent.
            SpecError: if a column's type is not supported, such as periods and intervals; at the first row with an
                object of another kind.
            ImportError: if pandas or pyarrow is not installed.

        >>> import pandas as pd
        >>> people = pd.DataFrame({"name": ["Ann", "Bob"], "age": [31, 17]}, index=pd.Index([7, 9], name="id"))
        >>> for row in Dataset.from_pandas(people, index=True):
        ...     print(row)
        {'id': np.int64(7), 'name': b'Ann', 'age': np.int64(31)}
        {'id': np.int64(9), 'name': b'Bob', 'age': np.int64(17)}
        >>> next(iter(Dataset.from_pandas(people["age"]).batch(2)))
        array([31, 17])
        """
        load_extra("pandas", "pandas", "from_pandas() needs")
        load_extra("pyarrow", "pandas", "from_pandas() needs")
        require_bool("from_pandas", "index", index)
        asked, fills = require_columns("from_pandas", columns), deferred.require_fill_null("from_pandas", fill_null)
        of_arrow = partial(deferred.arrow_columns, "from_pandas")
        made = deferred.pandas_columns(df, asked, index=index, fill_null=fills, arrow_columns=of_arrow)
        return Dataset(deferred.PandasSlices(made, held=df.copy(deep=False), name=name))

    @staticmethod
    def from_polars(
        df: Any,
        columns: Sequence[str] | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Return a dataset of the rows of a polars frame, as dicts. Needs the extra ``polars``.

        It is like ``from_tensor_slices`` of the frame's columns: it has random access and is shuffled by index. Numbers
        and times are not copied if they are contiguous (``df.rechunk()``); bools and text are copied once, at this
        call. Types and nulls are handled as in ``from_parquet``: an ``Array`` is an array, a ``List`` an array of
        varying length, a ``Struct`` a dict; ``Categorical`` and ``Enum`` are their values, a ``Decimal`` is a float64,
        a ``Time`` a timedelta64 since midnight, a time with a time zone is in UTC.

        Args:
            df: a ``DataFrame``; a ``LazyFrame``, which is collected into memory at this call; or a ``Series``, whose
                values are the elements, not in a dict.
            columns: the columns to read, in the order of the keys; ``"a.b"`` is a field of a struct. Default: all.
            fill_null: replacement values for nulls, by column.
            name: a label.

        Raises:
            TypeError: if ``df`` is none of these.
            ValueError: if a column does not exist, or has a null that its dtype cannot represent.
            SpecError: if a column's type is not supported: ``Object``, ``Int128``, lists of structs.
            ImportError: if polars or pyarrow is not installed.

        >>> import polars as pl
        >>> frame = pl.DataFrame({"name": ["Ann", "Bob"], "scores": [[1.0, 2.0], []]})
        >>> for row in Dataset.from_polars(frame):
        ...     print(row)
        {'name': b'Ann', 'scores': array([1., 2.])}
        {'name': b'Bob', 'scores': array([], dtype=float64)}
        """
        polars = load_extra("polars", "polars", "from_polars() needs")
        load_extra("pyarrow", "polars", "from_polars() needs")
        asked, bare = require_columns("from_polars", columns), isinstance(df, polars.Series)
        made = deferred.arrow_columns("from_polars", deferred.polars_table(df, asked), asked, fill_null)
        return Dataset(deferred.PolarsSlices(made[df.name] if bare else made, name=name))

    @overload
    def to_torch(
        self, device: Any = None, pin_memory: bool = False, map_style: Literal[False] = False
    ) -> TorchIterableDataset: ...

    @overload
    def to_torch(
        self, device: Any = None, pin_memory: bool = False, *, map_style: Literal[True]
    ) -> TorchMapDataset: ...

    def to_torch(
        self, device: Any = None, pin_memory: bool = False, map_style: bool = False
    ) -> TorchIterableDataset | TorchMapDataset:
        """Return a ``torch.utils.data.IterableDataset`` of the elements, as tensors. Needs the extra ``torch``.

        Iterate over it directly, or pass it to a DataLoader. A tensor shares the memory of its array. PyTorch has no
        read-only tensors, so read-only arrays, such as views of a source or of a cache, are copied.

        ``DataLoader(dataset.to_torch(), batch_size=None, num_workers=4)`` runs the pipeline in processes. Each process
        produces a part of the elements. Each element is returned once, and in order if it is not shuffled. This pays
        off for functions that hold the interpreter lock; otherwise threads (``num_parallel_calls``) are cheaper. A
        ``shuffle`` of a source without random access shuffles within each worker's part. Each worker has its own memory
        cache, which lasts as long as the worker: use ``persistent_workers=True``. The cores and the memory that
        AUTOTUNE may use are divided among the workers.

        Passes are numbered from 0, also in workers, and the number determines the random orders; ``set_epoch(n)`` sets
        the number of the next pass. Iterators have ``state_dict()`` and ``load_state_dict()``, with which torchdata's
        ``StatefulDataLoader`` resumes in the middle of an epoch, with the same number of workers.

        Text is ``bytes``, and arrays of text are nested lists. A RaggedTensor becomes a nested tensor with the jagged
        layout, a SparseTensor a sparse COO tensor, a Dataset in an element a dataset of tensors. bfloat16 and float8
        arrays use the dtypes of ml_dtypes.

        Args:
            device: the device of the tensors, such as ``"cuda"``; default, host memory. For CUDA, one element is
                produced ahead and copied from pinned memory on a separate stream, while the device computes with the
                previous one. Not for use in the workers of a DataLoader.
            pin_memory: whether tensors in host memory are pinned, for non-blocking copies. Without an accelerator it
                warns, and has no effect.
            map_style: whether to return a ``torch.utils.data.Dataset`` with ``__getitem__`` and ``__len__`` instead,
                for PyTorch's samplers. It requires random access and a known length.

        Raises:
            TypeError: for a component that has no tensor type in PyTorch, such as datetime64 (while iterating, if that
                is unknown before running user code); with ``map_style``, if the op named in the message has no random
                access or the length is unknown.
            ValueError: if the device does not exist.
            ImportError: if torch is not installed.

        >>> dataset = Dataset.from_tensor_slices({"x": np.eye(4, dtype=np.float32), "y": [0, 1, 2, 3]}).batch(2)
        >>> for batch in dataset.to_torch():
        ...     print(batch["x"].shape, batch["y"])
        torch.Size([2, 4]) tensor([0, 1])
        torch.Size([2, 4]) tensor([2, 3])
        >>> dataset.to_torch(map_style=True)[-1]["y"]
        tensor([2, 3])
        """
        load_extra("torch", "torch", "to_torch() needs")
        require_bool("to_torch", "pin_memory", pin_memory)
        require_bool("to_torch", "map_style", map_style)
        return deferred.torch_dataset(self._dataset, device, pin_memory, map_style)

    def to_keras(self, class_weight: Mapping[int, float] | None = None) -> Any:
        """Return the dataset for ``fit``, ``evaluate`` and ``predict`` of Keras 3, on any backend.

        An element is one batch: ``x``, ``(x, y)`` or ``(x, y, sample_weight)``, each of them an array or, for models
        with several inputs or outputs, a tuple or dict of arrays. ``predict`` uses ``x``. Each epoch is a new pass over
        the dataset, so a shuffled dataset has a new order. Keras knows the number of steps if ``cardinality()`` is
        known. With ``steps_per_epoch`` an epoch continues where the last one stopped; infinite datasets require it.
        ``batch_size``, ``shuffle`` and ``validation_split`` of ``fit`` are for arrays in memory.

        Floats are converted to ``keras.config.floatx()``, as for arrays in memory; other dtypes are unchanged. Text is
        supported on the TensorFlow backend only. No batch is produced ahead except by ``prefetch``; on TensorFlow, one
        more. Keras itself takes one batch to build a model, and to determine the shapes of targets before its first
        training.

        An error in the pipeline is raised by ``fit`` unchanged; on TensorFlow as one of ``tf.errors``, with its type,
        traceback and notes in the message. If training stops within an epoch, the iterator is closed by the garbage
        collector. If the number of batches is unknown, Keras warns at the end of an epoch that data ran out.

        Args:
            class_weight: the weights of classes in the loss, by class number; other classes have weight 1. For elements
                ``(x, y)`` with one output. ``fit`` does not accept its own ``class_weight``, ``sample_weight`` or ``y``
                together with a dataset.

        Returns:
            An object for Keras that can be used any number of times. With Keras before 3.7 a ``keras.utils.PyDataset``,
            for which the number of batches must be known or infinite.

        Raises:
            ImportError: if Keras is not installed.
            ValueError: if elements are not batches, or Keras does not support them: single values, RaggedTensors,
                dataclasses, ... If that is unknown before running the pipeline, ``fit`` raises it.
            TypeError: if ``class_weight`` is not a dict of ints and numbers.

        >>> import keras
        >>> x = np.arange(100.0).reshape(50, 2)
        >>> train = Dataset.from_tensor_slices((x, x.sum(1))).shuffle(50).batch(10)
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(train.to_keras(), validation_data=train.to_keras(), epochs=2, verbose=0)
        >>> sorted(history.history)
        ['loss', 'val_loss']
        >>> model.predict(train.to_keras(), verbose=0).shape
        (50, 1)
        """
        load_extra("keras", "keras", "to_keras() needs")
        return deferred.keras_dataset(self._dataset, class_weight)

    def to_jax(self, sharding: Any = None, prefetch: int = 2) -> JaxDataset:
        """Return the elements as JAX arrays on devices; the next ones are copied while the current one is used.

        The result can be iterated any number of times and has this dataset's length. Its iterators support ``close``,
        ``with``, ``state_dict``, ``load_state_dict`` and ``stats`` like those of a Dataset; a state belongs to the
        element that was returned last. They also have ``get_state`` and ``set_state`` like those of Grain, so that
        Orbax can save them together with the weights. Structures do not change, including dataclasses and attrs
        classes. dtypes are JAX's: without ``jax_enable_x64``, 64-bit numbers are silently converted to 32 bits. No JAX
        array shares memory with an array outside of JAX.

        Read-ahead uses no thread: each step pulls the element ``prefetch`` positions ahead, and starts to copy it. Put
        ``prefetch`` at the end of this dataset, too, to produce the elements in the background.

        Args:
            sharding: a ``jax.sharding.Sharding`` or ``jax.Device`` for all components, or a structure of them that
                matches the elements' structure or its upper levels. If it includes devices of other processes, each
                process provides its own rows, the same number as the others, and gets global arrays: call
                ``shard_by_process`` before. Default: the default device.
            prefetch: the number of elements to pull and copy before they are needed. 0 for none.

        Raises:
            TypeError: if ``sharding`` is of another type, or its structure does not match the elements.
            SpecError: for components that JAX does not support (text, ragged or sparse tensors, datasets, objects), or
                shapes that cannot be sharded. Raised in the place of the element, unless the spec is known before.
            ValueError: if ``prefetch`` is negative.
            ImportError: if JAX is not installed.

        >>> images = Dataset.from_tensor_slices({"x": np.ones((4, 2), np.float32), "y": np.arange(4)})
        >>> for batch in images.batch(2).to_jax():
        ...     print(batch["x"].sum(), batch["y"])
        4.0 [0 1]
        4.0 [2 3]
        """
        count = require_int("to_jax", "prefetch", prefetch, minimum=0)
        load_extra("jax", "jax", "to_jax() needs")
        return deferred.JaxDataset(self._dataset, sharding, count)

    def to_tf(self, output_signature: Any = None) -> Any:
        """Return the elements as a ``tf.data.Dataset``, for TensorFlow's own ops and training loops.

        It has the same ``element_spec`` and cardinality, and each pass over it is a new pass over this dataset. Text
        becomes ``tf.string``; RaggedTensor, SparseTensor, tuples, named tuples, dicts, attrs classes and ``None``
        become TensorFlow's, and so do dataclasses with ``__tf_flatten__``. TensorFlow calls Python for each element,
        which takes a few hundred microseconds: batch first. Nothing is read ahead except by ``prefetch`` of this
        dataset or of TensorFlow. An element that fails raises a ``tf.errors`` exception in its place, with the text of
        the original. TensorFlow's checkpoints cannot save its iterators.

        Args:
            output_signature: TensorSpec, RaggedTensorSpec and so on in the structure of an element. Default:
                ``element_spec``. After a user's function, the sizes are those of the first element, and an element with
                other sizes is an error; use a signature with None for sizes that vary.

        Raises:
            SpecError: if TensorFlow has no type for a component, such as ``datetime64``, Python objects and datasets,
                or for the structure; as text, in the place of an element that does not match the signature.
            TypeError: if the signature contains anything but specs.
            ImportError: if TensorFlow is not installed.

        >>> batches = Dataset.range(4).map(lambda x: {"x": x}).batch(2, drop_remainder=True)
        >>> for element in batches.to_tf():
        ...     print(element)
        {'x': <tf.Tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>}
        {'x': <tf.Tensor: shape=(2,), dtype=int64, numpy=array([2, 3])>}
        """
        tf = load_extra("tensorflow", "tensorflow", "to_tf() needs")
        return deferred.tf_dataset(tf, self._dataset, output_signature)

    def to_ray(self, shares: int = AUTOTUNE) -> Any:
        """Return a ``ray.data.Dataset`` of the elements. Needs the extra ``distributed``.

        Each read task computes a share of the elements, divided as by ``distribute``. Rows are in the order of the
        shares. The keys of dicts become columns; other elements become the column ``item``, or ``item_0``, ``item_1``
        and so on for tuples.

        Args:
            shares: the number of read tasks. AUTOTUNE: one per core of the Ray cluster.

        Raises:
            ImportError: if Ray is not installed.

        >>> Dataset.range(3).map(lambda x: {"x": x * x}).to_ray(2).sum("x")  # doctest: +SKIP
        5
        """
        count = bounded(shares, deferred.actors_that_fit({})) if shares == AUTOTUNE else shares
        division = deferred.divide(self._plan, count)
        return deferred.to_ray([Dataset(division.share(rank)) for rank in range(division.workers)])

    def to_queue(self, queue: Any) -> QueueFeeder:
        """Put the elements into a queue, in a background thread. Beyond tf.data.

        At the end, the queue is closed: by ``close()``, by ``shutdown()``, or before Python 3.13 by an element
        ``StopIteration()`` in a ``queue.Queue``. An exception is put into the queue and ends the data.

        Args:
            queue: a queue of ``dataset.queues``, or a ``queue.Queue``.

        Returns:
            A handle of the thread, with ``join(timeout)`` and ``close()``; also a context manager, which closes it.

        Raises:
            TypeError: if ``queue`` is of another kind.

        >>> from dataset.queues import FIFOQueue
        >>> queue = FIFOQueue(capacity=10)
        >>> with Dataset.range(3).to_queue(queue):
        ...     queue.dequeue_many(3)
        array([0, 1, 2])
        """
        return deferred.QueueFeeder(self._dataset, queue)

    def progress(
        self, desc: str | None = None, *, live: bool = False, **arguments: Any
    ) -> Progress[T_co] | LiveProgress[T_co]:
        r"""Return the dataset with a tqdm progress bar: ``for batch in train.progress("epoch 1")``.

        Each iteration draws its own bar, which shows the total if ``cardinality()`` is known. The bar and the iterator
        are closed when the loop ends, also by ``break`` or an exception.

        With ``live=True``, the table of ``iterator.stats()`` takes the place of the bar. A terminal and the output of a
        notebook cell show it in place, and the loop updates it twice a second. Other files get a line every ten
        seconds, and the table at the end.

        Args:
            desc: the text before the bar or the table.
            live: whether to show the statistics instead of a bar. Then ``arguments`` may be ``file`` (default stderr),
                ``mininterval``, the seconds between two updates, and ``disable``.
            **arguments: other arguments of ``tqdm.auto.tqdm``, such as ``total``, ``unit`` (default ``"batch"``, or
                ``"element"`` if elements are not batches), ``leave``, ``file``, ``ncols``, ``mininterval``,
                ``disable``, ``position``, ``initial``, ``postfix``, ``colour``.

        Returns:
            An iterable that can be used any number of times, with the length of the dataset.

        Raises:
            ImportError: if tqdm, or rich for a table in a terminal, is not installed.
            TypeError: if an argument is not accepted.

        >>> import io
        >>> terminal = io.StringIO()
        >>> total = 0
        >>> for batch in Dataset.range(10).batch(4).progress("adding", file=terminal):
        ...     total += batch.sum()
        >>> print(terminal.getvalue().split("\r")[-1])
        adding: 100%|...| 3/3 [00:00<00:00, ...batch/s]
        """
        if require_bool("progress", "live", live):
            return deferred.LiveProgress(self._dataset, desc, arguments)
        load_extra("tqdm.auto", "progress", "progress() needs")
        return deferred.Progress(self._dataset, {"desc": desc, **arguments})

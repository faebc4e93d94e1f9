"""Sharding: methods that divide a dataset among processes, into parts, or among workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dataset import deferred
from dataset.api.base import DatasetMethods, T_co
from dataset.options import AUTOTUNE

if TYPE_CHECKING:  # at run time, dataset.py sets it
    from dataset.dataset import Dataset


class ShardingMethods(DatasetMethods[T_co]):
    """Methods of Dataset that divide it."""

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Dataset[T_co]:
        """Return every ``num_shards``-th element, starting at number ``index``, to split the data among workers.

        Shard early, preferably the file names, and before anything random.

        Args:
            num_shards: how many workers there are.
            index: which of them this is, from 0.
            name: a label.

        Raises:
            ValueError: if ``index`` is not below ``num_shards``.

        >>> [int(x) for x in Dataset.range(10).shard(num_shards=3, index=1)]
        [1, 4, 7]
        """
        return Dataset(deferred.Shard(self._plan, num_shards, index, name=name))

    def shard_by_process(
        self,
        rank: int | None = None,
        world_size: int | None = None,
        *,
        remainder: str = "drop",
        by: str = "auto",
        seed: int = 0,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Return this process's share of the elements, with the same number for each process of distributed training.

        Each element (each batch, if called after ``batch``) belongs to exactly one process. Each process avoids work on
        the others' elements: if whole files can be split, it reads only its own. Otherwise elements are split upstream
        of ``map`` functions, and rows of other processes are not read if the source has random access. ``explain()``
        shows where the split happens. Call it last, before ``prefetch``; ops after it see only this process's elements.
        For details see ``docs/howto/sharding.md``.

        All processes must build the same pipeline and start their iterations at the same time. They then use the same
        random numbers upstream. A shuffle of a source with random access has one order for all processes; any other
        shuffle reorders each process's own elements. Each pass of ``repeat`` is split separately. Upstream,
        ``deterministic=False`` has no effect. Functions that draw their own random numbers, or return datasets that do
        so without a seed, differ between processes; ``random_map`` does not.

        Args:
            rank: the rank of this process, from 0. Default: that of torch.distributed if it is initialised, else that
                of JAX, else the environment variable RANK, which torchrun sets; else 0 of 1. Determined at this call.
            world_size: the number of processes; given if and only if ``rank`` is.
            remainder: how to treat the last round, if there are not enough elements for all processes. ``"drop"``:
                leave it out. ``"pad"``: processes without an element get one of zeros (empty text), with the shapes and
                dtypes of their last one. ``"repeat"``: processes without an element get one from the beginning; not
                available with files. ``"keep"``: keep it, so some processes have one element more, which must not take
                part in a collective operation. With files, all processes get the smallest number (``"drop"``) or the
                largest (``"pad"``).
            by: ``"files"``: file ``i`` of the list, before shuffling, belongs to process ``i`` modulo ``world_size``.
                Ops after the files must not combine or count records of several files, as ``take``, ``enumerate`` and
                ``zip`` do. Also, unless the pipeline is infinite or ``remainder`` is ``"keep"``, the number of elements
                must follow from the numbers of records: each process then counts the records of all files once, when
                the first element is requested. ``"elements"``: element ``k`` belongs to process ``k`` modulo
                ``world_size``. ``"auto"``: files, if that is possible, there are at least as many as processes, and
                ``remainder`` is not ``"repeat"``; otherwise elements.
            seed: the seed for random ops without their own seed; the same in all processes.
            name: a label.

        Raises:
            ValueError: if ``rank`` is not below ``world_size``, or only one of them is given; if ``by`` is ``"files"``
                and the files cannot be split, or ``remainder`` is ``"repeat"``.
            TypeError: if an argument has the wrong type.

        >>> [int(x) for x in Dataset.range(7).shard_by_process(rank=1, world_size=3)]
        [1, 4]
        """
        if rank is None and world_size is None:
            rank, world_size = deferred.process_rank("shard_by_process")
        return Dataset(
            deferred.shard_plan(self._plan, rank, world_size, remainder=remainder, by=by, seed=seed, name=name)
        )

    def split(
        self,
        parts: Sequence[float] | Sequence[int],
        seed: int | None = None,
        *,
        by: str | Callable[..., Any] = "element",
        name: str | None = None,
    ) -> tuple[Dataset[T_co], ...]:
        """Divide the elements into datasets that never overlap, such as those for training and for validation.

        Each element is in exactly one of the parts: in the same one in each iteration, in each epoch, and in each run
        of the program with the same arguments and the same data. Within a part, the elements keep their order. Call it
        before ``shuffle`` and ``repeat``. ``docs/howto/training_and_validation.md`` is a guide.

        ``by="element"`` divides positions. With a seed, they are divided at random, where a known number of elements
        gives parts of exactly the stated sizes, and an unknown number approximately. Without a seed, the parts are
        consecutive: pass a seed, unless the elements are in random order, or the last ones are to be predicted from the
        first ones. Functions of ``map`` are not called for elements of other parts. A failing element keeps its
        position. Upstream, ``deterministic=False`` has no effect.

        ``by="file"`` divides the list of files that the dataset reads. Each part reads only its own files. A file that
        is listed several times, also by the name of a link to it, counts once and is in one part.

        ``by=function`` divides keys: all elements with the same key, such as the ID of a patient, are in the same part.
        The part depends only on the key and the seed, and so is the same in each dataset with this key, in any order.
        The fractions are those of the keys, approximately. Each part reads all elements and leaves out those of others.

        It corresponds to ``torch.utils.data.random_split``, scikit-learn's ``train_test_split`` and
        ``GroupShuffleSplit``, and ``keras.utils.split_dataset``.

        Args:
            parts: the fractions of the parts, which add up to 1; or the numbers of their elements (of files, with
                ``by="file"``), which add up to all of them. One number may be -1, for the rest.
            seed: determines the random division; None for consecutive parts. With keys, None means 0.
            by: ``"element"``, ``"file"``, or a function that takes an element as ``map`` passes it and returns its key,
                of numbers and text.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if the fractions or counts do not add up; if a part would be empty; if fractions of an unknown
                number have no seed; if an upstream op, such as ``shuffle``, moves elements to other positions in each
                iteration or, without a seed, in each run, so that parts would overlap; if the files cannot be divided.
            SpecError: while iterating, if a key is not made of numbers and text.

        >>> train, validation = Dataset.range(10).split([0.8, 0.2], seed=1)
        >>> [int(x) for x in validation]
        [7, 9]
        >>> people = Dataset.from_tensor_slices({"patient": [4, 7, 4, 7], "scan": [0, 1, 2, 3]})
        >>> parts = people.split([0.5, 0.5], seed=2, by=lambda row: row["patient"])
        >>> [[int(row["scan"]) for row in part] for part in parts]
        [[0, 2], [1, 3]]
        """
        return tuple(map(Dataset, deferred.split_plans(self._plan, parts, seed, by, name)))

    def distribute(
        self,
        workers: int = AUTOTUNE,
        *,
        engine: str = "processes",
        resources: Mapping[str, float] | None = None,
        deterministic: bool | None = None,
        max_restarts: int = 3,
        name: str | None = None,
    ) -> Dataset[T_co]:
        """Run all operations before this one in worker processes, on this machine or on a Ray cluster.

        The elements and their order are the same as without it, unless files are divided: then each worker shuffles and
        batches the elements of its own files. Each element is returned exactly once, also if workers die and are
        replaced. Operations after it run in this process. ``distribute(1)`` moves the pipeline out of the training
        process, whose interpreter it then does not slow down. Needs the extra ``process`` or ``distributed``.

        With several workers, each computes a share. Where positions can be counted without computing elements (arrays,
        ranges and indexed files, with ``map``, ``random_map``, ``batch``, ``zip``, ``enumerate``, and shuffles below
        them), worker ``k`` of n computes the elements k, k + n, and so on. Otherwise, files are divided. The order then
        depends on the number of workers, but not on their speed, and each worker ends with a short batch, or drops it
        with ``drop_remainder=True``: call ``batch`` after ``distribute`` to have one rest. A pipeline that cannot be
        divided runs in one worker. ``explain()`` shows the division and its reason. After an element has failed before
        a ``batch``, which moves all later batches, one worker computes the rest.

        A saved state has a position for each worker. It can be loaded with another number of workers if the pipeline is
        divided by elements.

        Args:
            workers: the number of workers. AUTOTUNE: as many as help, up to one per core of this machine, or up to as
                many actors as the Ray cluster has room for.
            engine: ``"processes"``: processes on this machine. ``"ray"``: actors of a Ray cluster, of the one that
                ``ray.init()`` has connected to, or else of one on this machine. If it has no room for an actor, one
                that runs does its work, too, and a warning is logged.
            resources: what a Ray actor needs, such as ``{"CPU": 2}``. Default: one CPU.
            deterministic: whether to keep the order. If False, elements are returned as they become available. Default:
                as the options say, normally True. The operations in a worker always keep their order.
            max_restarts: how often a worker is replaced within ten minutes, before its death is an error. A worker that
                shows no sign of life for ten seconds is killed and replaced, too.
            name: a label.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if ``workers`` is less than 1, or ``engine`` is unknown.
            ImportError: while iterating: if cloudpickle or Ray is not installed.
            WorkerDiedError: while iterating: if a worker has died too often. Names its exit reason and its element.

        >>> squares = Dataset.range(6).map(lambda x: x * x).distribute(2)
        >>> [int(x) for x in squares]
        [0, 1, 4, 9, 16, 25]
        """
        return Dataset(
            deferred.Distribute(
                self._plan,
                workers,
                engine,
                resources,
                deterministic,
                max_restarts,
                deferred.divide,
                deferred.Autotuner,
                name=name,
            )
        )

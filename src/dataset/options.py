"""Options: the settings of a pipeline, and the constant AUTOTUNE.

The names are those of ``tf.data.Options``. An option that only determines how TensorFlow runs a pipeline, and cannot
change its elements, is accepted with a warning that says that it has no effect. An option whose effect a user would
miss is rejected with a reason.
"""

from __future__ import annotations

import copy
import difflib
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Self


class Autotune(int):
    """Type of ``AUTOTUNE``: the integer -1, and perhaps an upper bound of what the library may choose.

    Attributes:
        max: the bound; None for only those of the library.

    >>> from dataset import AUTOTUNE, Dataset
    >>> AUTOTUNE == -1, AUTOTUNE(max=8) == AUTOTUNE
    (True, True)
    >>> print(Dataset.range(3).map(str, num_parallel_calls=AUTOTUNE(max=8)).explain())
    as written, and as it runs:
      map(str) AUTOTUNE(max=8) parallel calls  3 elements  ...
      range(3)                                 3 elements  ...
    """

    max: int | None

    def __new__(cls, max: int | None = None) -> Self:  # noqa: A002  # the argument that users write
        """Return -1 with this bound. Users call ``AUTOTUNE``, which checks it."""
        self = super().__new__(cls, -1)
        self.max = max
        return self

    def __call__(self, *, max: int) -> Autotune:  # noqa: A002  # the same
        """Return an ``AUTOTUNE`` that chooses at most ``max``.

        Raises:
            TypeError: if ``max`` is not an int.
            ValueError: if it is less than 1.
        """
        if isinstance(max, bool) or not hasattr(max, "__index__"):
            raise TypeError(f"AUTOTUNE(): max must be an int, got {max!r} of type {type(max).__name__}")
        if max.__index__() < 1:
            raise ValueError(f"AUTOTUNE(): max must be at least 1, got {max!r}")
        return Autotune(max.__index__())

    def __repr__(self) -> str:
        return "AUTOTUNE" if self.max is None else f"AUTOTUNE(max={self.max})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Autotune, (self.max,)


AUTOTUNE = Autotune()
"""Let the library choose a buffer size or a parallelism. The value equals tf.data's, so either constant works.

``AUTOTUNE(max=8)`` chooses at most 8, for example because a server allows 8 connections. It is valid wherever
``AUTOTUNE`` stands for a number. The bound changes no element and no saved state, except for ``num_parallel_reads``
with a bound below 4: as many files are then open at once.
"""


def bounded(requested: int, number: int) -> int:
    """Return ``number``, or the bound of ``requested`` if that is an AUTOTUNE with a lower one."""
    bound = requested.max if isinstance(requested, Autotune) else None
    return number if bound is None else min(number, bound)


def _other_option(self: _Settings, name: str) -> Any:
    """Return the field with this alias, or raise an error that suggests one."""
    if name in self._aliases:
        return getattr(self, self._aliases[name])
    if name in self._without_effect:
        return _IgnoredOption(f"{type(self).__name__}.{name}", self._without_effect[name])
    if name.startswith("__"):  # looked up by copy and pickle
        raise AttributeError(name)
    raise AttributeError(self._unknown(name))


def _set_option(self: _Settings, name: str, value: Any) -> None:
    name = self._aliases.get(name, name)
    if name in self._without_effect:
        _warn_once(f"{type(self).__name__}.{name}", self._without_effect[name])
        return
    if name not in self._types:
        raise AttributeError(self._unknown(name))
    if self._frozen:
        raise ValueError(f"these options belong to a dataset and cannot be changed: set {name!r} on a new Options()")
    object.__setattr__(self, name, self._checked(name, value))


class _Settings:
    """Base class of options: named fields that are None if not set.

    Unknown names are rejected, and a frozen object cannot be changed. A subclass lists its fields with the type of
    each: bool, int for a count, str, or another subclass for nested options.
    """

    _types: ClassVar[dict[str, Any]]
    _aliases: ClassVar[dict[str, str]] = {}
    """tf.data's older names of fields."""
    _refused: ClassVar[dict[str, str]] = {}
    """tf.data's fields that are not supported here, and what to do instead."""
    _without_effect: ClassVar[dict[str, str]] = {}
    """tf.data's fields that are accepted and ignored, and what is here in their place."""
    _frozen: bool

    def __init__(self) -> None:
        object.__setattr__(self, "_frozen", False)
        for name, kind in self._types.items():
            object.__setattr__(self, name, kind() if _nests(kind) else None)

    if not TYPE_CHECKING:  # checkers know the fields, and report all other names
        __getattr__ = _other_option
        __setattr__ = _set_option

    def _unknown(self, name: str) -> str:
        if name in self._refused:
            return (
                f"{type(self).__name__}.{name} is an option of tf.data that has no meaning here: {self._refused[name]}"
            )
        close = difflib.get_close_matches(name, [*self._types, *self._aliases], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(self._types))}"
        return f"{type(self).__name__} has no option {name!r}; {hint}"

    def _checked(self, name: str, value: Any) -> Any:
        kind = self._types[name]
        if value is None and not _nests(kind):
            return None
        if kind is int:
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise TypeError(f"{type(self).__name__}.{name} must be an int or None, got {value!r}")
            if value.__index__() < 0:
                raise ValueError(f"{type(self).__name__}.{name} must be at least 0, got {value!r}")
            return value.__index__()
        if not isinstance(value, kind):
            wanted = kind.__name__ if _nests(kind) else f"{'True, False' if kind is bool else 'text'} or None"
            raise TypeError(f"{type(self).__name__}.{name} must be {wanted}, got {value!r}")
        return value

    def names(self) -> list[str]:
        """Return the names of the options."""
        return list(self._types)

    def merge(self, other: Self) -> Self:
        """Return a copy of these settings in which those that ``other`` sets take precedence.

        Raises:
            TypeError: if ``other`` is of another class.
        """
        if type(other) is not type(self):
            raise TypeError(f"{type(self).__name__}.merge(): expected {type(self).__name__}, got {other!r}")
        merged = type(self)()
        for name in self._types:
            mine, theirs = getattr(self, name), getattr(other, name)
            value = mine.merge(theirs) if isinstance(mine, _Settings) else mine if theirs is None else theirs
            object.__setattr__(merged, name, value)
        return merged

    def freeze(self) -> Self:
        """Return a copy that cannot be changed."""
        frozen = copy.deepcopy(self)
        for name in self._types:
            value = getattr(frozen, name)
            if isinstance(value, _Settings):
                object.__setattr__(frozen, name, value.freeze())
        object.__setattr__(frozen, "_frozen", True)
        return frozen

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._types)

    __hash__ = None  # type: ignore[assignment]  # options are mutable

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self._types}
        unset = [None, *(kind() for kind in self._types.values() if _nests(kind))]
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value not in unset)
        return f"{type(self).__name__}({shown})"


_warned: set[str] = set()


def _warn_once(option: str, instead: str) -> None:
    if option not in _warned:
        _warned.add(option)
        warnings.warn(f"{option} has no effect here: {instead}", stacklevel=3)


class _IgnoredOption:
    """What reading an option without effect returns: false, and its own fields can be set, without effect."""

    _about: tuple[str, str]

    def __init__(self, option: str, instead: str) -> None:
        object.__setattr__(self, "_about", (option, instead))

    def __setattr__(self, name: str, value: Any) -> None:
        _warn_once(*self._about)

    def __bool__(self) -> bool:
        return False


def _nests(kind: type[Any]) -> bool:
    return issubclass(kind, _Settings)


class AutotuneOptions(_Settings):
    """What ``AUTOTUNE`` may use. None means the default.

    Attributes:
        enabled: whether the autotuner adjusts numbers given as ``AUTOTUNE`` while a pipeline runs. If not, they keep
            their initial values, which the docstrings of the methods state.
        cpu_budget: how many cores the ops whose parallelism is ``AUTOTUNE`` may keep busy, over all ops of a pipeline;
            each op has at least one worker. Calls count by the time they compute, not by the time they wait. Without
            tuning, it is the most calls that such an op makes at once. None, or 0, for the cores that this process may
            use.
        ram_budget: the most bytes that all buffers of an iteration hold together: those of ``prefetch``, parallel
            ``map``, ``batch`` and ``interleave``, including elements that are being produced, and those of ``shuffle``.
            A ``shuffle`` keeps its buffer size, so it leaves less for the others. The budget also limits buffers with a
            fixed size: they then hold fewer elements. Each buffer may always hold one element, however large. None, or
            0, for half of the memory that the process's control group and the machine have available when an iteration
            starts its background work; with ``enabled=False``, None means no bound. A number always applies. The size
            of an element is unknown before one is produced, so each op then produces its first element alone.
        memory: the path of a file that keeps what the autotuner has learned for the next run of the program: which work
            gains from threads, and in how many calls. It is plain JSON, by digests of the code of functions. It only
            says where tuning begins; measurements check it. None keeps it in this process.
    """

    _types: ClassVar[dict[str, Any]] = {"enabled": bool, "cpu_budget": int, "ram_budget": int, "memory": str}
    _without_effect: ClassVar[dict[str, str]] = {
        "autotune_algorithm": "there is one tuning algorithm",
        "initial_parallelism": "the autotuner chooses it; num_parallel_calls may be a number",
        "min_parallelism": "the autotuner chooses it; num_parallel_calls may be a number",
    }
    enabled: bool | None
    cpu_budget: int | None
    ram_budget: int | None
    memory: str | None


class ThreadingOptions(_Settings):
    """Limits on threads. None, and 0, mean no limit.

    Attributes:
        private_threadpool_size: the most threads that do the work of parallel ops at a time, over all ops of a
            pipeline. The ops share these threads, which are started when there is work. None for no limit other than
            each op's own parallelism. Work that waits needs more threads than cores. The thread of a ``prefetch`` does
            not count, as in tf.data, nor does the thread that iterates.
        max_intra_op_parallelism: the most threads that one step of the library's own work uses, such as parsing a
            batch; currently 1.
    """

    _types: ClassVar[dict[str, Any]] = {"private_threadpool_size": int, "max_intra_op_parallelism": int}
    private_threadpool_size: int | None
    max_intra_op_parallelism: int | None


class FilesOptions(_Settings):
    """How files with a scheme, such as ``s3://``, are read; see the guide to remote files.

    Attributes:
        cache: the path of a local folder that keeps blocks of these files for later reads and for other processes of
            the same user. It is created if it does not exist; the cache is a private folder in it. Empty for no cache.
            None for the environment variable ``DATASET_CACHE``. The option applies to the sources of the pipeline, the
            variable also to files that functions open, and to indexes.
        cache_bytes: the most bytes that the cache may occupy on the disk, at least 135 MB. A block that was not used
            for long makes room for a new one. None, or 0, for the environment variable ``DATASET_CACHE_BYTES``, and by
            default for half of the space on the disk that is free or already used by the cache.
    """

    _types: ClassVar[dict[str, Any]] = {"cache": str, "cache_bytes": int}
    cache: str | None
    cache_bytes: int | None


class MapVectorizationOptions(_Settings):
    """The switch of map vectorization, with fields as in TensorFlow 2.0 to 2.3; it is true if it is set to True.

    Attributes:
        enabled: what ``optimization.map_vectorization`` was set to; None means the default.
    """

    _types: ClassVar[dict[str, Any]] = {"enabled": bool}
    _without_effect: ClassVar[dict[str, str]] = {
        "use_choose_fastest": "a function is vectorized only where that is proved not to change its results",
    }
    enabled: bool | None

    def __bool__(self) -> bool:
        return self.enabled is True


class OptimizationOptions(_Settings):
    """The optimizer's rules for rewriting plans. None means the default: on, except for the opt-in rules.

    Rules that are on by default change neither the elements nor when a user's function is called. The opt-in rules
    keep the elements and their order, too, but call user code in other threads and for elements that have not been
    requested yet.

    Attributes:
        enabled: False turns all rules off; tf.data's name for it, ``apply_default_optimizations``, works, too.
        noop_elimination: remove operations that do nothing, such as ``take(-1)``.
        slice_pushdown: merge ``take``, ``skip`` and ``shard`` into a source of a range, in-memory arrays or file names.
        skip_by_seeking: do not produce the elements that ``skip`` drops, where the user cannot observe it.
        repeat_pushdown: repeat a short source without reopening it for each pass.
        shuffle_before_gather: shuffle the indices of in-memory arrays, and take the rows afterwards.
        shuffle_and_repeat_fusion: accepted for compatibility with tf.data; has no effect. A ``repeat`` of a ``shuffle``
            already behaves like tf.data's fused op and would not gain from fusion.
        map_vectorization: run a function on whole columns if it provably computes each element independently, such as
            plain arithmetic and many of NumPy's functions. tf.data's older name for it, ``map_vectorization.enabled``,
            works, too.
        parser_vectorization: parse many records at once in functions that only call ``io.parse_single_example``.
        parser_and_batch_fusion: keep the values of a batch of parsed Examples contiguous, and the records of a batch in
            the blocks of their file, if a function only passes them to ``io.parse_example``.
        parser_projection: do not decode features of Examples that a ``select`` drops.
        map_fusion: pass each element through consecutive maps in one step.
        filter_fusion: the same for consecutive filters.
        map_and_filter_fusion: the same for a filter of a map.
        map_and_batch_fusion: write the results of a map, or the values of a generator, directly into the arrays of the
            batch that follows.
        inject_prefetch: end a pipeline of batches with a prefetch, which starts once it pays off. By default only where
            the user cannot observe early elements, because no user function is called; True for all pipelines.
        map_parallelization: give ``map`` and ``random_map`` without ``num_parallel_calls`` AUTOTUNE. Opt-in.
        filter_parallelization: call the predicates of ``filter`` as with AUTOTUNE. Opt-in.
        parallel_batch: give ``batch`` without ``num_parallel_calls`` AUTOTUNE. Opt-in.
        seq_interleave_prefetch: let ``interleave`` without ``num_parallel_calls`` read ahead from all datasets of its
            cycle, as with AUTOTUNE. Opt-in. tf.data's option replaces a parallel interleave with a sequential one whose
            datasets prefetch: here these are one op.
    """

    _types: ClassVar[dict[str, Any]] = {
        "enabled": bool,
        "noop_elimination": bool,
        "slice_pushdown": bool,
        "skip_by_seeking": bool,
        "repeat_pushdown": bool,
        "shuffle_before_gather": bool,
        "shuffle_and_repeat_fusion": bool,
        "map_vectorization": MapVectorizationOptions,
        "parser_vectorization": bool,
        "parser_and_batch_fusion": bool,
        "parser_projection": bool,
        "map_fusion": bool,
        "filter_fusion": bool,
        "map_and_filter_fusion": bool,
        "map_and_batch_fusion": bool,
        "inject_prefetch": bool,
        "map_parallelization": bool,
        "filter_parallelization": bool,
        "parallel_batch": bool,
        "seq_interleave_prefetch": bool,
    }
    _aliases: ClassVar[dict[str, str]] = {"apply_default_optimizations": "enabled"}
    _must_be_asked_for: ClassVar[frozenset[str]] = frozenset(
        {"map_parallelization", "filter_parallelization", "parallel_batch", "seq_interleave_prefetch"}
    )
    enabled: bool | None
    noop_elimination: bool | None
    slice_pushdown: bool | None
    skip_by_seeking: bool | None
    repeat_pushdown: bool | None
    shuffle_before_gather: bool | None
    shuffle_and_repeat_fusion: bool | None
    map_vectorization: Any  # MapVectorizationOptions; a bool or None can be assigned, too
    parser_vectorization: bool | None
    parser_and_batch_fusion: bool | None
    parser_projection: bool | None
    map_fusion: bool | None
    filter_fusion: bool | None
    map_and_filter_fusion: bool | None
    map_and_batch_fusion: bool | None
    inject_prefetch: bool | None
    map_parallelization: bool | None
    filter_parallelization: bool | None
    parallel_batch: bool | None
    seq_interleave_prefetch: bool | None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "map_vectorization" and not isinstance(value, MapVectorizationOptions):
            self.map_vectorization.enabled = value
        else:
            super().__setattr__(name, value)

    def allows(self, rule: str) -> bool:
        """Return whether a rule is allowed."""
        wanted = getattr(self, rule)
        if isinstance(wanted, MapVectorizationOptions):
            wanted = wanted.enabled
        return self.enabled is not False and (rule not in self._must_be_asked_for if wanted is None else wanted)


class Options(_Settings):
    """Settings for ``Dataset.with_options``; they apply to the whole pipeline, and later ones take precedence.

    Where datasets with different settings are joined, the later argument takes precedence. tf.data's older names
    ``experimental_deterministic``, ``experimental_optimization`` and ``experimental_threading`` are aliases.

    Attributes:
        deterministic: whether parallel ops keep the order of the elements if their own argument ``deterministic`` is
            not given. None means that they do.
        dataset_name: a name for the whole pipeline, which ``repr`` and ``explain()`` show.
        provenance: whether iterators record which records each element is made from, for ``iterator.provenance()``.
            None means that they do not.
        garbage_collection: collect Python's garbage each time this number of elements has been requested, and not in
            between. In training over several processes, all of them then pause at the same steps instead of delaying
            each other at different ones. What exists when the first element is requested is not searched again
            (``gc.freeze``). At the end of the iteration, automatic collection continues as before. ``stats()`` says how
            long the collections took. None, or 0, leaves the garbage to Python.
        autotune: see AutotuneOptions.
        optimization: see OptimizationOptions.
        threading: see ThreadingOptions.
        files: see FilesOptions.

    >>> options = Options()
    >>> options.optimization.enabled = False
    >>> options
    Options(optimization=OptimizationOptions(enabled=False))
    >>> options.determinstic = True
    Traceback (most recent call last):
        ...
    AttributeError: Options has no option 'determinstic'; did you mean 'deterministic'?
    """

    _types: ClassVar[dict[str, Any]] = {
        "deterministic": bool,
        "dataset_name": str,
        "provenance": bool,
        "garbage_collection": int,
        "autotune": AutotuneOptions,
        "optimization": OptimizationOptions,
        "threading": ThreadingOptions,
        "files": FilesOptions,
    }
    _aliases: ClassVar[dict[str, str]] = {
        "experimental_deterministic": "deterministic",
        "experimental_optimization": "optimization",
        "experimental_threading": "threading",
    }
    _refused: ClassVar[dict[str, str]] = {
        "experimental_service": "a data service is not supported; distribute() runs a pipeline in other processes",
    }
    _without_effect: ClassVar[dict[str, str]] = {
        "experimental_distribute": "datasets are not divided automatically; shard() and shard_by_process() divide them",
        "experimental_external_state_policy": "functions are plain Python and may keep any state",
        "experimental_slack": "prefetch() at the end of the pipeline does this work",
        "experimental_symbolic_checkpoint": "iterators have state_dict() and load_state_dict()",
        "experimental_warm_start": "iterator.start() begins the work before the first element is requested",
        "framework_type": "it labels the statistics of TensorFlow; dataset_name is a label here",
    }
    deterministic: bool | None
    dataset_name: str | None
    provenance: bool | None
    garbage_collection: int | None
    autotune: AutotuneOptions
    optimization: OptimizationOptions
    threading: ThreadingOptions
    files: FilesOptions

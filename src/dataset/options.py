"""Settings of a pipeline, and the constant that leaves a number to the library. Values only.

The names are those of ``tf.data.Options``. What tf.data has and this library has no use for is refused with the reason,
because a setting that is accepted and does nothing would be a lie.
"""

from __future__ import annotations

import copy
import difflib
from typing import Any, ClassVar, Self

AUTOTUNE = -1
"""Leave a buffer size or a parallelism to the library; tf.data's value, so that either constant works."""


class _Settings:
    """Named fields, None where not set; unknown names are refused, and a frozen object cannot be changed.

    A subclass lists its fields with the type of each: bool, int for a count, str, or another subclass, which nests.
    """

    _types: ClassVar[dict[str, Any]]
    _aliases: ClassVar[dict[str, str]] = {}
    """tf.data's older names of fields."""
    _refused: ClassVar[dict[str, str]] = {}
    """tf.data's fields that are not here, and what to do instead."""
    _frozen: bool

    def __init__(self) -> None:
        object.__setattr__(self, "_frozen", False)
        for name, kind in self._types.items():
            object.__setattr__(self, name, kind() if _nests(kind) else None)

    def __getattr__(self, name: str) -> Any:
        """What is no field: an older name, or a mistake."""
        if name in self._aliases:
            return getattr(self, self._aliases[name])
        if name.startswith("__"):  # asked for by copy and pickle
            raise AttributeError(name)
        raise AttributeError(self._unknown(name))

    def __setattr__(self, name: str, value: Any) -> None:
        name = self._aliases.get(name, name)
        if name not in self._types:
            raise AttributeError(self._unknown(name))
        if self._frozen:
            raise ValueError(
                f"these options belong to a dataset and cannot be changed: set {name!r} on a new Options()"
            )
        object.__setattr__(self, name, self._checked(name, value))

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
        """The names of the options."""
        return list(self._types)

    def merge(self, other: Self) -> Self:
        """A copy of these settings in which those that ``other`` sets take precedence.

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
        """A copy that cannot be changed."""
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

    __hash__ = None  # type: ignore[assignment]  # can be changed

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self._types}
        unset = [None, *(kind() for kind in self._types.values() if _nests(kind))]
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value not in unset)
        return f"{type(self).__name__}({shown})"


def _nests(kind: type[Any]) -> bool:
    return issubclass(kind, _Settings)


class AutotuneOptions(_Settings):
    """What ``AUTOTUNE`` may use. None means the default.

    Attributes:
        enabled: whether the autotuner sets numbers given as ``AUTOTUNE`` while a pipeline runs. If not, they stay what
            they begin with; the docstrings of the methods say what that is.
        cpu_budget: how many cores the calls of ops whose parallelism is ``AUTOTUNE`` may keep busy, all ops of a
            pipeline together; each has at least one worker. Calls that wait count for what they compute. Without
            tuning, the most calls that such an op makes at once. None, or 0, for the cores that this process may use.
        ram_budget: the most bytes that the buffers of a pipeline hold, all of an iteration together: those of
            ``prefetch``, parallel ``map``, ``batch`` and ``interleave``, elements that are being made included, and of
            ``shuffle``, which holds what it was told to, so that less is left for the others. It bounds buffers whose
            size is a number, too: they hold fewer elements then. One element of each may always be held, however large.
            None, or 0, for half of the memory that the process's control group and the machine have available when an
            iteration begins to work in the background; with ``enabled=False``, None is no bound. A number always
            holds. As the size of an element is not known before one was made, each op then makes its first alone.
    """

    _types: ClassVar[dict[str, Any]] = {"enabled": bool, "cpu_budget": int, "ram_budget": int}
    _refused: ClassVar[dict[str, str]] = {
        "autotune_algorithm": "there is one way of tuning; leave it out",
        "initial_parallelism": "leave it out, or give num_parallel_calls a number",
        "min_parallelism": "leave it out, or give num_parallel_calls a number",
    }
    enabled: bool | None
    cpu_budget: int | None
    ram_budget: int | None


class ThreadingOptions(_Settings):
    """Bounds on threads. None, and 0, mean no bound.

    Attributes:
        private_threadpool_size: the most threads that do the work of parallel ops at a time, all of a pipeline's ops
            together. They are shared, and started when there is work. None for no bound beside what each op was given,
            where AUTOTUNE stands for the cores that this process may use: work that waits takes more threads than
            cores. The thread of a ``prefetch`` does not count, as in tf.data, nor the one that iterates.
        max_intra_op_parallelism: the most threads that one step of the library's own work uses, such as parsing a
            batch; it is 1 today.
    """

    _types: ClassVar[dict[str, Any]] = {"private_threadpool_size": int, "max_intra_op_parallelism": int}
    private_threadpool_size: int | None
    max_intra_op_parallelism: int | None


class OptimizationOptions(_Settings):
    """Which rewritings of the plan are made. None means the default: on, but for those that must be asked for.

    None that is on by default changes what comes out, or when a user's function is called. Those that must be asked for
    keep the elements and their order, too, but have user code called in other threads, and for elements that nobody has
    asked for yet.

    Attributes:
        enabled: False switches all of them off; tf.data's name for it, ``apply_default_optimizations``, works, too.
        noop_elimination: leave out operations that do nothing, such as ``take(-1)``.
        slice_pushdown: make ``take``, ``skip`` and ``shard`` of ranges, in-memory arrays and file names part of these.
        skip_by_seeking: pass over what ``skip`` leaves out without making it, where nobody can tell.
        repeat_pushdown: repeat a short source without opening it anew for each pass.
        shuffle_before_gather: shuffle the indices of in-memory arrays, and take the rows afterwards.
        shuffle_and_repeat_fusion: accepted as a name of tf.data's. A ``repeat`` of a ``shuffle`` gives what tf.data's
            fused op promises, and has nothing to gain from being one op: either value changes nothing.
        map_vectorization: run functions on whole columns that prove to compute each element for itself, such as plain
            arithmetic and many of NumPy's functions.
        parser_vectorization: parse many records at once in functions that only call ``io.parse_single_example``.
        parser_and_batch_fusion: leave the values of a batch of parsed Examples end to end.
        parser_projection: do not decode features of Examples that a ``select`` drops.
        map_fusion: take each element through maps one after another at once.
        filter_fusion: the same for filters.
        map_and_filter_fusion: the same for a filter over a map.
        map_and_batch_fusion: write the results of a map straight into the arrays of the batch above it.
        inject_prefetch: end a pipeline of batches with a prefetch, which starts once it pays. By default only where
            nobody can notice that elements are made early, because no user function is called; True for all.
        map_parallelization: give ``map`` and ``random_map`` without ``num_parallel_calls`` AUTOTUNE. Must be asked for.
        filter_parallelization: call the predicates of ``filter`` as with AUTOTUNE. Must be asked for.
        parallel_batch: give ``batch`` without ``num_parallel_calls`` AUTOTUNE. Must be asked for.
        seq_interleave_prefetch: have ``interleave`` without ``num_parallel_calls`` read from all datasets of its cycle
            ahead, as with AUTOTUNE. Must be asked for. tf.data's option starts from a parallel interleave, and makes it
            one that reads from one dataset at a time, each of which prefetches: here these are one op.
    """

    _types: ClassVar[dict[str, Any]] = {
        "enabled": bool,
        "noop_elimination": bool,
        "slice_pushdown": bool,
        "skip_by_seeking": bool,
        "repeat_pushdown": bool,
        "shuffle_before_gather": bool,
        "shuffle_and_repeat_fusion": bool,
        "map_vectorization": bool,
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
    map_vectorization: bool | None
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

    def allows(self, rule: str) -> bool:
        """Whether a rule may be used."""
        wanted = getattr(self, rule)
        return self.enabled is not False and (rule not in self._must_be_asked_for if wanted is None else wanted)


class Options(_Settings):
    """Settings for ``Dataset.with_options``; they hold for the whole pipeline, and later ones win.

    Where datasets with different settings are joined, the later argument wins. tf.data's older names
    ``experimental_deterministic``, ``experimental_optimization`` and ``experimental_threading`` mean the same fields.

    Attributes:
        deterministic: whether ops that work in parallel keep the order of the elements, where their own argument
            ``deterministic`` is not given. None means that they do.
        dataset_name: a name for the whole pipeline, which ``repr`` and ``explain()`` show.
        autotune: see AutotuneOptions.
        optimization: see OptimizationOptions.
        threading: see ThreadingOptions.

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
        "autotune": AutotuneOptions,
        "optimization": OptimizationOptions,
        "threading": ThreadingOptions,
    }
    _aliases: ClassVar[dict[str, str]] = {
        "experimental_deterministic": "deterministic",
        "experimental_optimization": "optimization",
        "experimental_threading": "threading",
    }
    _refused: ClassVar[dict[str, str]] = {
        "experimental_distribute": "nothing is split between workers by itself; use shard()",
        "experimental_external_state_policy": "functions are plain Python and keep what state they like",
        "experimental_service": "there is no data service",
        "experimental_slack": "use prefetch() at the end of the pipeline",
        "experimental_symbolic_checkpoint": "iterators have state_dict() and load_state_dict()",
        "experimental_warm_start": "an iterator starts its work at the first next()",
        "framework_type": "it labels TensorFlow's own statistics; use dataset_name",
    }
    deterministic: bool | None
    dataset_name: str | None
    autotune: AutotuneOptions
    optimization: OptimizationOptions
    threading: ThreadingOptions

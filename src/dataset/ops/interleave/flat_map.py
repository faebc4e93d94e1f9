"""Node and operator of flat_map(map_func): the datasets of all elements, one after another. See also interleave.py."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.ops.batch.window import Window, WindowOperator
from dataset.ops.interleave.subdatasets import Inputs, Subdataset, Subdatasets
from dataset.ops.interleave.window_batches import WindowBatches, WindowFunction
from dataset.plan.checks import require_callable
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, holds_user_code, spec_is_static
from dataset.plan.origin import function_name
from dataset.plan.random_state import RandomState
from dataset.plan.traits import Traits, calls_no_user_code
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.iteration.probing import probed_spec
from dataset.runtime.position import Position
from dataset.runtime.random.streams import function_random_state


@dataclass(frozen=True, eq=False)
class FlatMap(
    UnaryNode, pure=False, static_spec=False, expands_elements=True, reads_files=True, separable=True, counted=False
):
    """Node that yields all elements of the dataset ``function(element)`` for each element."""

    op: ClassVar[str] = "flat_map"
    function: Callable[..., Any]
    random: RandomState = field(default_factory=function_random_state, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        require_callable(self.op, "map_func", self.function)

    @lazy_property
    def traits(self) -> Traits:
        """A reader of files runs no user code, and its elements have the same spec for any file."""
        opened = self._opened
        if opened is None:
            is_known = self._window_function() is not None  # it only combines windows, whatever they are
            return super().traits.having(pure=is_known, reads_files=not is_known, steady=is_known)
        return super().traits.having(pure=not holds_user_code(opened), static_spec=spec_is_static(opened))

    @lazy_property
    def _opened(self) -> Node | None:
        """The plan of a dataset of no file, if the function is a reader of this library; it may have more arguments."""
        function: Any = self.function
        if calls_no_user_code(function.func if type(function) is functools.partial else function):
            with contextlib.suppress(Exception):  # its arguments are wrong, which the first call reports
                plan: Node = self.function(b"").plan
                return plan
        return None

    def _window_function(self) -> WindowFunction | None:
        """Return the function if it only combines the windows of the input, so that it need not be called for each."""
        source: Any = self.source
        return (
            WindowFunction.of(self.function, source.size) if type(self) is FlatMap and type(source) is Window else None
        )

    def _element_spec(self) -> Any:
        if self._opened is not None:
            with contextlib.suppress(Exception):  # only the files tell
                return self._opened.element_spec
        return probed_spec(self)

    def label(self) -> str:
        return f"{self.op}({function_name(self.function)})"

    def lower(self, context: ExecutionContext) -> Operator:
        source, datasets, function = context(self.source), self.datasets(context), self._window_function()
        if function is None or not isinstance(source, WindowOperator) or not datasets.may_skip_calls:
            return FlatMapOperator(source, datasets)
        source.packs, datasets.function = True, function
        return FlatMapOperator(source, datasets, function)

    def datasets(self, context: ExecutionContext) -> Subdatasets:
        """Return the factory that opens the datasets that the function returns."""
        datasets = Subdatasets(context, self, self.function, must_match_across_processes=self.random.agreed)
        datasets.context.may_be_packed = context.may_be_packed
        return datasets


class FlatMapOperator(Operator):
    """Operator that holds the open inner dataset.

    Args:
        source: the input.
        datasets: the factory of the inner datasets.
        windows: their function, if it is a function of windows whose result may be known without a call.
    """

    def __init__(self, source: Operator, datasets: Subdatasets, windows: WindowFunction | None = None) -> None:
        self.node = datasets.node
        self.datasets = datasets
        self.windows = windows
        self.inputs = Inputs(source, datasets)
        self.inner: Subdataset | None = None

    def pull(self, n: int) -> Chunk | None:
        while True:
            if self.inner is None:
                if self.windows is not None and self.inputs.may_take and (batches := self.windows.known(n)) is not None:
                    chunk = self._batches(batches, n)
                    if chunk is None or chunk.length:
                        return chunk
                    continue
                try:
                    self.inner = self.inputs.open_next(n)
                except Exception:
                    self.inputs.note()
                    raise
                self.inputs.note()
                if self.inner is None:
                    return None
            chunk = self.datasets.pull(self.inner, n)
            if chunk is None or self.inner.is_whole:
                self._close_inner()
            if chunk is not None:
                return chunk

    def _batches(self, batches: WindowBatches, n: int) -> Chunk | None:
        """Return the batches of the next windows, at most ``n``; None at the end of the input."""
        try:
            windows = self.inputs.take(n // batches.most)
        except Exception:
            self.inputs.note()
            raise
        self.inputs.note()
        if windows is None:
            return None
        chunk, count = batches.of(windows)
        if count < windows.length:
            self.inputs.put_back(windows.slice(count, windows.length))
        if chunk.length:
            self.datasets.check(chunk)
        return chunk

    def _close_inner(self) -> None:
        if self.inner is not None:
            self.inner.leave()
            self.inner = None

    def save(self) -> Position:
        return self.inputs.save([self.datasets.save(self.inner)], by_place=False)

    def load(self, position: Position) -> None:
        (inner,) = self.inputs.load(position)
        self.inner = None if inner is None else self.inputs.reopen(inner)

    def close(self) -> None:
        self._close_inner()
        self.inputs.close()

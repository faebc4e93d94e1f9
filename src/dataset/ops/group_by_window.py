"""group_by_window(key_func, reduce_func): datasets of elements with one key. By place instead: window.py.

``GroupsOperator`` is what bucket_by_sequence_length.py is made of, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dataset.plan.cardinality import endless_or_unknown
from dataset.plan.checks import require_callable, require_int
from dataset.plan.nested import dataset_of
from dataset.plan.node import UnaryNode, spec_is_static
from dataset.plan.origin import function_name
from dataset.plan.spec import DatasetSpec, TensorSpec
from dataset.plan.structure import LEAF, tuple_of
from dataset.runtime.calls import raise_placed
from dataset.runtime.chunk import Chunk
from dataset.runtime.elements import Elements
from dataset.runtime.inner import Inner, InnerDatasets
from dataset.runtime.integer_keys import KeyOperator, as_integer
from dataset.runtime.iterator import probed_spec
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.state import load_chunk, save_chunk


@dataclass(frozen=True, eq=False)
class GroupByWindow(UnaryNode):
    """The elements of ``reduce_func(key, window)`` for windows of elements with one key, as they get full."""

    op: ClassVar[str] = "group_by_window"
    calls_user_code: ClassVar[bool] = True
    spec_is_static: ClassVar[bool] = False
    key_func: Callable[..., Any]
    reduce_func: Callable[..., Any]
    window_size: int | None = None
    window_size_func: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        require_callable(self.op, "key_func", self.key_func)
        require_callable(self.op, "reduce_func", self.reduce_func)
        if (self.window_size is None) == (self.window_size_func is None):
            raise ValueError(
                f"{self.op}(): give window_size or window_size_func, and not both; got {self.window_size!r} and "
                f"{self.window_size_func!r}"
            )
        if self.window_size_func is not None:
            require_callable(self.op, "window_size_func", self.window_size_func)
        else:
            self._set("window_size", require_int(self.op, "window_size", self.window_size, minimum=1))

    def _element_spec(self) -> Any:
        return probed_spec(self)

    def cardinality(self) -> int:
        return endless_or_unknown(self.source.cardinality())

    def described(self) -> str:
        return f"{self.op}({function_name(self.key_func)}, {function_name(self.reduce_func)})"

    def lower(self, build: Build) -> Operator:
        keyed = KeyOperator(build(self.source), self, self.key_func, "key_func")
        groups = windows_of(build, self, self.reduce_func)
        if self.window_size is None:
            return GroupsOperator(keyed, self, groups, self._size_of, 1)
        size = self.window_size
        return GroupsOperator(keyed, self, groups, lambda _key: size, size)

    def _size_of(self, key: int) -> int:
        assert self.window_size_func is not None
        size = as_integer(self, "window_size_func", self.window_size_func(np.int64(key)))
        if size < 1:
            raise ValueError(f"{self.described()}: window_size_func must return at least 1, got {size} for key {key}")
        return size


def windows_of(build: Build, node: UnaryNode, function: Callable[..., Any]) -> InnerDatasets:
    """The inner datasets that ``function(key, window)`` returns."""
    return InnerDatasets(build, node, function, partial(_argument_spec, node), "window")


def _argument_spec(node: UnaryNode) -> Any:
    return TensorSpec((), np.int64), DatasetSpec(node.source.element_spec)


class _Group:
    """The elements of one key that wait until they are ``size``."""

    def __init__(self, size: int) -> None:
        self.missing = size
        self.chunks: list[Chunk] = []

    def add(self, elements: Chunk) -> None:
        self.chunks.append(elements)
        self.missing -= elements.length


class GroupsOperator(UnaryOperator):
    """Sorts the elements into groups, and reads the dataset that is made of a full one before it goes on.

    ``smallest`` is no more than any group's size. So long as no group can get full before, several elements are taken
    from the input at once: which is never more than the next element that comes out takes.
    """

    source: KeyOperator

    def __init__(
        self,
        source: KeyOperator,
        node: UnaryNode,
        windows: InnerDatasets,
        size_of: Callable[[int], int],
        smallest: int,
    ) -> None:
        super().__init__(source)
        self.node = node
        self.windows = windows
        self.size_of = size_of
        self.smallest = smallest
        self.sizes: dict[int, int] = {}  # of all keys that were seen: a key is asked for its size once
        self.groups: dict[int, _Group] = {}
        self.missing = [0] * smallest  # how many groups miss how many elements, where that is less than smallest
        self.inner: Inner | None = None
        self.ended = False

    def pull(self, n: int) -> Chunk | None:
        while True:
            if self.inner is not None:
                chunk = self.windows.pull(self.inner, n)
                if chunk is not None:
                    return chunk
                self._close_inner()
            key = self._next_key()
            if key is None:
                return None
            self.inner = self.windows.open(self._window(key))

    def _next_key(self) -> int | None:
        """The key of a group that is full; at the end, the least of the keys that are left."""
        while not self.ended:
            keyed = self.source.pull(self._safe_count())
            if keyed is None:
                self.ended = True
                break
            full = self._sort_in(keyed)
            if full is not None:
                return full
        return min(self.groups, default=None)

    def _safe_count(self) -> int:
        """How many elements can come before any group is full, the one that fills it included."""
        return next((count for count in range(1, self.smallest) if self.missing[count]), self.smallest)

    def _sort_in(self, keyed: Chunk) -> int | None:
        """Add elements to their groups; the key of the one that gets full by the last of them."""
        keys, *columns = keyed.columns()
        elements = Chunk(keyed.structure.children[1], keyed.length, columns)
        if keyed.length == 1:
            return self._add(int(keys[0]), elements)
        places: dict[int, list[int]] = {}
        for place, key in enumerate(np.asarray(keys).tolist()):
            places.setdefault(key, []).append(place)
        if len(places) == 1:
            return self._add(key, elements)
        full = [self._add(key, elements.take(np.array(indices))) for key, indices in places.items()]
        return next((key for key in full if key is not None), None)

    def _add(self, key: int, elements: Chunk) -> int | None:
        group = self.groups.get(key)
        if group is None:
            group = self._open_group(key)
            self.groups[key] = group
        else:
            self._count(group, -1)
        group.add(elements)
        self._count(group, 1)
        return key if group.missing == 0 else None

    def _open_group(self, key: int) -> _Group:
        size = self.sizes.get(key)
        if size is None:
            try:
                size = self.sizes[key] = self.size_of(key)
            except Exception as error:  # noqa: BLE001  # raised again, with its place
                raise_placed(error, self.node, self.source.position - 1)
        return _Group(size)

    def _count(self, group: _Group, change: int) -> None:
        if group.missing < self.smallest:
            self.missing[group.missing] += change

    def _window(self, key: int) -> Chunk:
        """What the function is called with for a group, which is over: should it fail, its elements are dropped."""
        group = self.groups.pop(key)
        self._count(group, -1)
        elements = Chunk.concatenate(group.chunks).read_only()
        source = self.node.source
        spec = partial(getattr, source, "element_spec")
        window = dataset_of(Elements(elements, spec, spec_is_static(source), origin=self.node.origin))
        return Chunk(tuple_of(LEAF, LEAF), 1, [np.array([key]), [window]])

    def _close_inner(self) -> None:
        if self.inner is not None:
            self.inner.operator.close()
            self.inner = None

    def state_dict(self) -> State:
        groups = [save_chunk(Chunk.concatenate(group.chunks)) for group in self.groups.values()]
        return {
            "op": self.node.op,
            **super().state_dict(),
            "sizes": np.array([list(self.sizes), list(self.sizes.values())], np.int64),
            "keys": np.array(list(self.groups), np.int64),
            "groups": groups,
            "opened": self.windows.opened,
            "inner": self.windows.save(self.inner),
            "ended": self.ended,
        }

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.sizes = dict(zip(*state["sizes"].tolist(), strict=True))
        for key, saved in zip(state["keys"].tolist(), state["groups"], strict=True):
            elements = load_chunk(saved, lambda: self.node.source.element_spec)
            assert elements is not None
            self._add(key, elements)
        self.windows.opened = int(state["opened"])
        self.inner = self.windows.load(state["inner"])
        self.ended = bool(state["ended"])

    def close(self) -> None:
        self._close_inner()
        super().close()

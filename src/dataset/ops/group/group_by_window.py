"""group_by_window(key_func, reduce_func): datasets of elements with one key. By place instead: window.py.

``GroupsOperator`` is what bucket_by_sequence_length.py is made of, too.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dataset.ops.group.integer_keys import KeyOperator, as_integer
from dataset.ops.group.lengths import LengthFunction
from dataset.ops.group.sorted_chunk import SortedChunk
from dataset.ops.interleave.subdatasets import Subdataset, Subdatasets
from dataset.plan.cardinality import endless_or_unknown
from dataset.plan.checks import require_callable, require_int
from dataset.plan.nested import dataset_of
from dataset.plan.node import Node, UnaryNode, holds_user_code, spec_is_static
from dataset.plan.origin import function_name
from dataset.plan.spec import DatasetSpec, TensorSpec, flatten_spec
from dataset.plan.structure import LEAF, structure_of, tuple_of
from dataset.runtime.chunks.batching import ColumnMismatchError, stack_column
from dataset.runtime.chunks.chunk import Chunk, Column, pack
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.functions.calls import raise_placed
from dataset.runtime.iteration.iterator import probed_spec
from dataset.runtime.random.streams import EpochCounter, function_counter, function_seed
from dataset.runtime.resources.interrupts import call
from dataset.runtime.state.elements import Elements
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk


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
    counter: EpochCounter = field(default_factory=function_counter, kw_only=True, repr=False)
    key: int = field(default_factory=function_seed, kw_only=True, repr=False)
    """What the random numbers depend on that are drawn in the datasets, where those have no seeds."""

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

    def lower(self, build: ExecutionContext) -> Operator:
        return WindowsOperator(build, KeyOperator(build(self.source), self, self.key_func, "key_func"), self)

    def size_of(self, key: int) -> int:
        """How many elements of a key make a window."""
        if self.window_size_func is None:
            assert self.window_size is not None
            return self.window_size
        size = as_integer(self, "window_size_func", self.window_size_func(np.int64(key)))
        if size < 1:
            raise ValueError(f"{self.described()}: window_size_func must return at least 1, got {size} for key {key}")
        return size


_AHEAD = 128  # elements at least that are read at once where nobody can notice it
_SORTED_MAX = 4096  # elements that are sorted at once, where a state need not hold them: the fixed cost is small then
_SORTED_BYTES = 512 * 1024  # the same, unless one element is larger
_AT_ONCE_MAX = 1024


def _reads_unseen(node: Node) -> bool:
    """Whether nobody can notice that elements are read before their turn, and they can be saved by value."""
    if holds_user_code(node) or not spec_is_static(node):
        return False
    specs = flatten_spec(node.element_spec)[1]
    return not any(isinstance(spec, DatasetSpec) or spec.dtype.kind == "O" for spec in specs)


class _Group:
    """The elements of one key that wait, and how many more there must be.

    They are in ``parts`` where many are sorted at once, else in ``rows``: to add one to a list costs least.
    """

    __slots__ = ("missing", "parts", "rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.missing = size
        self.rows: list[Any] = []
        self.parts: list[Chunk] = []

    def add(self, part: Chunk) -> None:
        """Add some, of which there are no more than missing."""
        self.parts.append(part)
        self.missing -= part.length


class GroupsOperator(UnaryOperator):
    """Sorts the elements into groups, and makes something of a full one before it goes on.

    It takes no more elements than the next that comes out takes. Of an input that calls user code those are taken that
    are needed whatever their keys are: as many as some group misses. Of any other a few more are taken at once, which
    wait; the key function is not called for them before. Where that only looks up a length, nobody can notice when it
    is called: then many are taken at once, and sorted by their keys.

    Args:
        build: opens the input.
        source: it, with the keys.
        node: the op.
        smallest: no group gets full with less elements.
        knows_sizes: whether ``size_of`` calls no user code.
    """

    source: KeyOperator

    def __init__(
        self, build: ExecutionContext, source: KeyOperator, node: UnaryNode, smallest: int, *, knows_sizes: bool
    ) -> None:
        super().__init__(source)
        self.node = node
        self.smallest = smallest = min(smallest, _AT_ONCE_MAX)
        """No more than any group's size, nor than is to be read at once."""
        self.sizes: dict[int, int] = {}  # of all keys that were seen: a key is asked for its size once
        self.groups: dict[int, _Group] = {}
        self.ended = False
        self._structure = LEAF  # of the elements, once there is one
        self._stacked: list[bool] = []  # which components came as rows of an array, with the last elements
        self._counts = [0] * (smallest + 1)  # how many groups miss how many elements, up to smallest
        self._least = smallest  # so many are missed by every group, or more
        self._at_once = max(smallest, _AHEAD) if build.background and _reads_unseen(node.source) else 0
        if self._at_once and knows_sizes:
            lengths = LengthFunction.of(source.function, structure_of(node.source.element_spec))
            if lengths is not None:
                source.run_unseen(lengths, build)
                self._at_once = 1  # and twice as many each time, until it is known how large they are
        self._sorted: SortedChunk | None = None

    @abstractmethod
    def size_of(self, key: int) -> int:
        """How many elements make a group full. May be user code."""

    def next_group(self) -> tuple[int, Chunk] | None:
        """The key and the elements of a group that is full; at the end, of that with the least key."""
        while not self.ended:
            found = self._next_sorted() if self.source.is_unseen else self._next_one_by_one()
            if found is not None:
                return found
        key = min(self.groups, default=None)
        return None if key is None else (key, self._elements_of(self.groups.pop(key)))

    def _next_one_by_one(self) -> tuple[int, Chunk] | None:
        """Sort a few elements in; the group that the last of them fills, if it does."""
        certain = self._safe_count()
        keyed = self.source.pull_until_full(self._at_once or certain, certain, self._room)
        if keyed is None:
            self.ended = True
            return None
        try:
            full = self._sort_in(keyed)
        except Exception:
            raise
        except BaseException:  # an interrupt, before any of them was sorted in
            self.source.unread(keyed)
            raise
        return None if full is None else (full, self._remove(full))

    def _next_sorted(self) -> tuple[int, Chunk] | None:
        """The next group that is full by what has been sorted; where none is, sort what comes next."""
        if self._sorted is not None:
            found = self._sorted.next_full()
            if found is not None:
                key, last = found
                group = self.groups.pop(key, None)
                return (key, Chunk.concatenate([*group.parts, last])) if group else found
            for key, part in self._sorted.waiting():
                (self.groups.get(key) or self._open_group(key)).add(part)
            self._sorted = None
        # What a state left there can't be put back behind what comes next.
        keyed = self.source.pull(1 if self.source.ready else self._at_once)
        if keyed is None:
            self.ended = True
            return None
        most = _SORTED_MAX if self.source.tells_places else _AHEAD
        self._at_once = max(1, min(2 * self._at_once, most, _SORTED_BYTES * keyed.length // max(1, keyed.nbytes)))
        self._sorted = SortedChunk(keyed, self._missing, self._size)
        return None

    def _missing(self, key: int) -> int:
        group = self.groups.get(key)
        return self._size(key) if group is None else group.missing

    def _safe_count(self) -> int:
        """How many elements can come before any group is full, the one that fills it included."""
        counts, least = self._counts, self._least
        while least < self.smallest and not counts[least]:
            least += 1
        self._least = least
        return least

    def _room(self, key: int) -> int:
        group = self.groups.get(key)
        return self.sizes.get(key, self.smallest) if group is None else group.missing

    def _sort_in(self, keyed: Chunk) -> int | None:
        """Add elements to their groups; the key of the one that gets full by the last of them."""
        self._structure = keyed.structure.children[1]
        keys, *columns = keyed.columns()
        if isinstance(keys, np.ndarray):
            keys = keys.tolist()
        groups = self.groups
        if keys[-1] not in groups:  # of those before it the size is known, or they would have been the last
            try:
                self._size(keys[-1])
            except Exception:
                if keyed.length > 1:
                    self._sort_in(keyed.slice(0, keyed.length - 1))
                raise
        for key, row in zip(keys, self._rows(columns, keyed.length), strict=True):
            (groups.get(key) or self._open_group(key)).rows.append(row)
        self._count_missing(set(keys))
        return None if groups[keys[-1]].missing else keys[-1]

    def _count_missing(self, keys: set[int]) -> None:
        """After elements with these keys have come."""
        smallest, counts = self.smallest, self._counts
        for key in keys:
            group = self.groups[key]
            before = group.missing
            missing = group.missing = group.size - len(group.rows)
            if missing < smallest:
                counts[min(before, smallest)] -= 1
                counts[missing] += 1
                self._least = min(self._least, missing)

    def _rows(self, columns: Sequence[Column], length: int) -> Iterable[Any]:
        """The elements, each a tuple of its components or, where there is one, that. None is a view of all."""
        self._stacked = [isinstance(column, np.ndarray) and column.ndim > 1 for column in columns]
        if length > 1 and any(self._stacked):
            pairs = zip(columns, self._stacked, strict=True)
            columns = [[row.copy() for row in column] if stacked else column for column, stacked in pairs]
        if len(columns) == 1:
            return columns[0]
        return zip(*columns, strict=True) if columns else [()] * length

    def _size(self, key: int) -> int:
        size = self.sizes.get(key)
        if size is None:
            try:
                size = self.sizes[key] = call(self.size_of, key)
            except (Exception, GeneratorExit) as error:  # noqa: BLE001  # raised again, with its place
                raise_placed(error, self.node, self.source.position - 1)
        return size

    def _open_group(self, key: int) -> _Group:
        group = self.groups[key] = _Group(self._size(key))
        self._counts[min(group.size, self.smallest)] += 1
        return group

    def _remove(self, key: int) -> Chunk:
        group = self.groups.pop(key)
        self._counts[min(group.missing, self.smallest)] -= 1
        self._least = max(1, self._least)
        return self._elements_of(group)

    def _elements_of(self, group: _Group) -> Chunk:
        if group.parts:
            return Chunk.concatenate(group.parts)
        rows = group.rows
        columns = [rows] if len(self._stacked) == 1 else zip(*rows, strict=True)
        return Chunk(self._structure, len(rows), list(map(pack, columns)))

    def state_dict(self) -> State:
        groups = {key: self._elements_of(group) for key, group in self.groups.items()}
        ahead = self._sorted
        if ahead is not None:
            for key, part in ahead.waiting():
                groups[key] = Chunk.concatenate([groups[key], part]) if key in groups else part
        read = None if ahead is None else ahead.rest()
        return {
            "op": self.node.op,
            "source": self.source.state_dict() if read is None else self.source.state_before(read),
            "sizes": np.array([list(self.sizes), list(self.sizes.values())], np.int64),
            "keys": np.array(list(groups), np.int64),
            "groups": list(map(save_chunk, groups.values())),
            "ended": self.ended,
        }

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.sizes = dict(zip(*state["sizes"].tolist(), strict=True))
        for key, saved in zip(state["keys"].tolist(), state["groups"], strict=True):
            elements = load_chunk(saved, lambda: self.node.source.element_spec)
            assert elements is not None
            if self.source.is_unseen:
                self._open_group(key).add(elements)
            else:
                columns = [[key] * elements.length, *elements.columns()]
                self._sort_in(Chunk(tuple_of(LEAF, elements.structure), elements.length, columns))
        self.ended = bool(state["ended"])


def _stacked_again(values: Column) -> Column:
    """Arrays as one, where they are all alike."""
    if set(map(type, values)) == {np.ndarray}:
        with contextlib.suppress(ColumnMismatchError):
            stacked: Column = stack_column(values)
            return stacked
    return values


class WindowsOperator(GroupsOperator):
    """Reads the dataset that is made of a full group before it goes on."""

    node: GroupByWindow

    def __init__(self, build: ExecutionContext, source: KeyOperator, node: GroupByWindow) -> None:
        super().__init__(build, source, node, node.window_size or 1, knows_sizes=node.window_size is not None)
        self.windows = Subdatasets(build, node, node.reduce_func, partial(_argument_spec, node), "window")
        self.inner: Subdataset | None = None

    def size_of(self, key: int) -> int:
        return self.node.size_of(key)

    def pull(self, n: int) -> Chunk | None:
        while True:
            if self.inner is not None:
                chunk = self.windows.pull(self.inner, n)
                if chunk is not None:
                    return chunk
                self._close_inner()
            argument = self.windows.argument
            if argument is None:
                found = self.next_group()
                if found is None:
                    return None
                argument = self._window(*found)
            self.inner = self.windows.open(argument)

    def _window(self, key: int, elements: Chunk) -> Chunk:
        """What the function is called with for a group. Should it fail, the elements are dropped."""
        source = self.node.source
        spec = partial(getattr, source, "element_spec")
        if any(self._stacked):  # as an array they are one thing to look at
            pairs = zip(elements.columns(), self._stacked, strict=True)
            columns = [_stacked_again(column) if stacked else column for column, stacked in pairs]
            elements = Chunk(elements.structure, elements.length, columns)
        elements = elements.read_only()
        window = dataset_of(Elements(elements, spec, spec_is_static(source), origin=self.node.origin))
        return Chunk(tuple_of(LEAF, LEAF), 1, [np.array([key]), [window]])

    def _close_inner(self) -> None:
        if self.inner is not None:
            self.inner.operator.close()
            self.inner = None

    def state_dict(self) -> State:
        opened, unopened = self.windows.save_argument()
        return {**super().state_dict(), "opened": opened, "inner": unopened or self.windows.save(self.inner)}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.windows.opened = int(state["opened"])
        self.inner = self.windows.load(state["inner"])

    def close(self) -> None:
        self._close_inner()
        super().close()


def _argument_spec(node: GroupByWindow) -> Any:
    return TensorSpec((), np.int64), DatasetSpec(node.source.element_spec)

"""Node and operators of group_by_window(key_func, reduce_func): windows of elements with equal keys.

See window.py for windows by position. bucket_by_sequence_length.py also uses ``GroupsOperator``.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dataset.amounts import AHEAD_BYTES, AHEAD_ELEMENTS, AHEAD_FIRST, STEP_ELEMENTS
from dataset.ops.group.integer_keys import KeyOperator, as_integer
from dataset.ops.group.lengths import LengthFunction
from dataset.ops.group.sorted_chunk import SortedChunk
from dataset.ops.interleave.subdatasets import Subdataset, Subdatasets
from dataset.plan.checks import require_callable, require_int
from dataset.plan.nested import dataset_of
from dataset.plan.node import GroupingNode, Node, UnaryNode, holds_user_code, spec_is_static
from dataset.plan.origin import function_name
from dataset.plan.packed import is_packed
from dataset.plan.random_state import RandomState
from dataset.plan.spec import DatasetSpec, TensorSpec, flatten_spec
from dataset.plan.structure import LEAF, structure_of, tuple_of
from dataset.runtime.chunks.batching import ColumnMismatchError, stack_column
from dataset.runtime.chunks.chunk import Chunk, Column, pack
from dataset.runtime.chunks.lineage import UNKNOWN, Rows
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, StoppingOperator, UnaryOperator
from dataset.runtime.iteration.probing import probed_spec
from dataset.runtime.metrics.background import BackgroundOperator
from dataset.runtime.position import Position, holding
from dataset.runtime.random.streams import function_random_state
from dataset.runtime.resources.exceptions import raise_with_location
from dataset.runtime.state.held_elements import Elements
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk
from dataset.world.interrupts import call


@dataclass(frozen=True, eq=False)
class GroupByWindow(GroupingNode, pure=False, static_spec=False):
    """Node that passes each full window of elements with one key to ``reduce_func(key, window)``."""

    op: ClassVar[str] = "group_by_window"
    key_func: Callable[..., Any]
    reduce_func: Callable[..., Any]
    window_size: int | None = None
    window_size_func: Callable[[Any], Any] | None = None
    random: RandomState = field(default_factory=function_random_state, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        require_callable(self.op, "key_func", self.key_func)
        require_callable(self.op, "reduce_func", self.reduce_func)
        if (self.window_size is None) == (self.window_size_func is None):
            raise ValueError(
                f"{self.op}(): pass either window_size or window_size_func, not both; got "
                f"window_size={self.window_size!r} and window_size_func={self.window_size_func!r}"
            )
        if self.window_size_func is not None:
            require_callable(self.op, "window_size_func", self.window_size_func)
        else:
            self._set("window_size", require_int(self.op, "window_size", self.window_size, minimum=1))

    def _element_spec(self) -> Any:
        return probed_spec(self)

    def label(self) -> str:
        return f"{self.op}({function_name(self.key_func)}, {function_name(self.reduce_func)})"

    def lower(self, context: ExecutionContext) -> Operator:
        return WindowsOperator(context, KeyOperator(context(self.source), self, self.key_func, "key_func"), self)

    def size_of(self, key: int) -> int:
        """Return the window size for a key."""
        if self.window_size_func is None:
            assert self.window_size is not None
            return self.window_size
        size = as_integer(self, "window_size_func", self.window_size_func(np.int64(key)))
        if size < 1:
            raise ValueError(f"{self.label()}: window_size_func must return at least 1, got {size} for key {key}")
        return size


def _reads_unseen(node: Node) -> bool:
    """Return whether reading ahead is unobservable and the elements can be saved by value."""
    if holds_user_code(node):
        return False
    while node.traits.prefetches:
        (node,) = node.inputs
    found = node.element_spec if spec_is_static(node) else node.traits.proved_spec
    specs = [] if found is None else flatten_spec(found)[1]
    return bool(specs) and not any(isinstance(spec, DatasetSpec) or spec.dtype.kind == "O" for spec in specs)


class _Group:
    """Group: the waiting elements of one key, and how many more it needs.

    The elements are in ``parts`` if many are sorted at once, else in ``rows``: appending to a list is cheapest.
    """

    __slots__ = ("lineage", "missing", "parts", "rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.missing = size
        self.rows: list[Any] = []
        self.parts: list[Chunk] = []
        self.lineage: list[Rows] = []  # of the last rows

    def add(self, part: Chunk) -> None:
        """Add at most ``missing`` elements."""
        self.parts.append(part)
        self.missing -= part.length


class GroupsOperator(UnaryOperator):
    """Base operator that sorts elements into groups and processes a full group before it continues.

    It consumes no more elements than the next result needs. From an input that calls user code, it pulls only as many
    elements as are needed whatever their keys are: the fewest that any group is missing. From any other input, it pulls
    a few more at once and buffers them without calling the key function. If the key function only looks up a length,
    calling it early is unobservable: then many elements are pulled at once and sorted by their keys. From an input that
    computes elements before they are requested, such as a parallel map, these are the ones that are ready. From a
    generator, or a map whose function calls a parser, these are the ones up to the first that fills its group.

    Args:
        context: the execution context.
        source: the input with keys.
        node: the node of the op.
        smallest: a lower bound of the group sizes.
        knows_sizes: whether ``size_of`` calls no user code.
    """

    saved = ("ended",)

    source: KeyOperator

    def __init__(
        self, context: ExecutionContext, source: KeyOperator, node: UnaryNode, smallest: int, *, knows_sizes: bool
    ) -> None:
        super().__init__(source)
        self.node = node
        self.smallest = smallest = min(smallest, STEP_ELEMENTS)
        """A lower bound of the group sizes, at most ``STEP_ELEMENTS``."""
        self.sizes: dict[int, int] = {}  # by key; the size of a key is computed once
        self.groups: dict[int, _Group] = {}
        self.ended = False
        self._structure = LEAF  # of the elements, after the first
        self._stacked: list[bool] = []  # which components of the last elements were rows of an array
        self._counts = [0] * (smallest + 1)  # number of groups by missing elements, capped at smallest
        self._least = smallest  # every group misses at least this many
        self._at_once = max(smallest, AHEAD_FIRST) if context.iteration.background and _reads_unseen(node.source) else 0
        if self._at_once and knows_sizes:
            lengths = LengthFunction.of(source.function, structure_of(node.source.element_spec))
            if lengths is not None:
                source.run_unseen(lengths, context)
                self._at_once = 1  # doubled each time, until the element size is known
        self._ahead: BackgroundOperator | None = None  # the input, if it computes elements before they are requested
        if knows_sizes and isinstance(source.source, BackgroundOperator) and not source.is_unseen:
            self._ahead = source.source
        # The input, if it can end a pull with the element that fills a group.
        self._stopping: StoppingOperator | None = None
        if knows_sizes and isinstance(source.source, StoppingOperator) and source.source.can_stop:
            self._stopping = source.source
        self._sorted: SortedChunk | None = None

    @abstractmethod
    def size_of(self, key: int) -> int:
        """Return the size of a full group. May call user code."""

    def next_group(self) -> tuple[int, Chunk] | None:
        """Return key and elements of a full group; at the end, of the group with the smallest key."""
        while not self.ended:
            found = self._next_sorted() if self.source.is_unseen else self._next_one_by_one()
            if found is not None:
                return found
        key = min(self.groups, default=None)
        return None if key is None else (key, self._elements_of(self.groups.pop(key)))

    def _next_one_by_one(self) -> tuple[int, Chunk] | None:
        """Sort in a few elements. Return the group that the last of them fills, if any."""
        certain = self._safe_count()
        keyed = self.source.pull_until_full(self._at_once or certain, certain, self._room)
        if keyed is None:
            self.ended = True
            return None
        try:
            full = self._sort_in(keyed)
        except Exception:
            raise
        except BaseException:  # an interrupt, before any element was sorted in
            self.source.unread_keyed(keyed)
            raise
        if full is None and (self._ahead is not None or self._stopping is not None):
            self._begin_to_sort(packed=any(map(is_packed, keyed.columns())))
        return None if full is None else (full, self._remove(full))

    def _begin_to_sort(self, *, packed: bool) -> None:
        """Pull many elements at once from here on, if the key function only looks up a length, and sort them."""
        lengths = LengthFunction.of(self.source.function, self._structure)
        stopping, self._stopping = self._stopping, None
        if lengths is None:
            self._ahead = None
            return
        if stopping is not None:
            self.source.stop_when_full(stopping, lengths, self._missing)
            self._at_once = AHEAD_FIRST
            if not packed:
                return  # appending objects to lists is cheaper than sorting them
        for group in self.groups.values():
            group.parts = [self._elements_of(group)]
        self.source.run_unseen(lengths)
        self._at_once = 1

    def _next_sorted(self) -> tuple[int, Chunk] | None:
        """Return the next full group of the sorted elements; if there is none, sort the next elements."""
        if self._sorted is not None:
            found = self._sorted.next_full()
            if found is not None:
                key, last = found
                group = self.groups.pop(key, None)
                return (key, Chunk.concatenate([*group.parts, last])) if group else found
            for key, part in self._sorted.waiting():
                (self.groups.get(key) or self._open_group(key)).add(part)
            self._sorted = None
        # Elements buffered by a loaded state cannot be put back after later elements, so they are pulled one by one.
        count = self._at_once if self._ahead is None else min(self._at_once, self._ahead.ready)
        keyed = self.source.pull(1 if self.source.outbox else max(1, count))
        if keyed is None:
            self.ended = True
            return None
        most = AHEAD_ELEMENTS if self.source.tells_places else AHEAD_FIRST
        self._at_once = max(1, min(2 * self._at_once, most, AHEAD_BYTES * keyed.length // max(1, keyed.nbytes)))
        self._sorted = SortedChunk(keyed, self._missing, self._size)
        return None

    def _missing(self, key: int) -> int:
        group = self.groups.get(key)
        return self._size(key) if group is None else group.missing

    def _safe_count(self) -> int:
        """Return how many elements can arrive until the first group may be full, including the one that fills it."""
        counts, least = self._counts, self._least
        while least < self.smallest and not counts[least]:
            least += 1
        self._least = least
        return least

    def _room(self, key: int) -> int:
        group = self.groups.get(key)
        return self.sizes.get(key, self.smallest) if group is None else group.missing

    def _sort_in(self, keyed: Chunk) -> int | None:
        """Add elements to their groups. Return the key of the group that the last element fills, if any."""
        self._structure = keyed.structure.children[1]
        keys, *columns = keyed.columns()
        if isinstance(keys, np.ndarray):
            keys = keys.tolist()
        groups = self.groups
        if keys[-1] not in groups:  # sizes of earlier keys are known
            try:
                self._size(keys[-1])
            except Exception:
                if keyed.length > 1:
                    self._sort_in(keyed.slice(0, keyed.length - 1))
                raise
        for key, row in zip(keys, self._rows(columns, keyed.length), strict=True):
            (groups.get(key) or self._open_group(key)).rows.append(row)
        if keyed.lineage is not None:
            for key, lineage in zip(keys, keyed.lineage, strict=True):
                groups[key].lineage.append(lineage)
        self._count_missing(set(keys))
        return None if groups[keys[-1]].missing else keys[-1]

    def _count_missing(self, keys: set[int]) -> None:
        """Update the counts after elements with these keys have arrived."""
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
        """Return the elements as tuples of components, or as single components. None of them is a view of a column."""
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
            except (Exception, GeneratorExit) as error:  # noqa: BLE001  # raised again with the position
                raise_with_location(error, self.node, self.source.at - 1)
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
        elements = Chunk(self._structure, len(rows), list(map(pack, columns)))
        if group.lineage:
            elements.lineage = [*[UNKNOWN] * (len(rows) - len(group.lineage)), *group.lineage]
        return elements

    def save(self) -> Position:
        groups = {key: self._elements_of(group) for key, group in self.groups.items()}
        ahead = self._sorted
        if ahead is not None:
            for key, part in ahead.waiting():
                groups[key] = Chunk.concatenate([groups[key], part]) if key in groups else part
        read = None if ahead is None else ahead.rest()
        own = {
            "sizes": np.array([list(self.sizes), list(self.sizes.values())], np.int64),
            "keys": np.array(list(groups), np.int64),
            "ended": self.ended,
        }
        source = self.source.save() if read is None else self.source.position_before(read)
        return Position(self.op, inputs=(source,), held=holding(groups=list(map(save_chunk, groups.values()))), own=own)

    def load(self, position: Position) -> None:
        super().load(position)
        self.sizes = dict(zip(*position.own["sizes"].tolist(), strict=True))
        for key, saved in zip(position.own["keys"].tolist(), position.held.get("groups", ()), strict=True):
            elements = load_chunk(saved, lambda: self.node.source.element_spec)
            assert elements is not None
            if self.source.is_unseen:
                self._open_group(key).add(elements)
            else:
                columns = [[key] * elements.length, *elements.columns()]
                structure = tuple_of(LEAF, elements.structure)
                self._sort_in(Chunk(structure, elements.length, columns, lineage=elements.lineage))


def _stacked_again(values: Column) -> Column:
    """Stack the values if they are arrays of one shape and dtype."""
    if set(map(type, values)) == {np.ndarray}:
        with contextlib.suppress(ColumnMismatchError):
            stacked: Column = stack_column(values)
            return stacked
    return values


class WindowsOperator(GroupsOperator):
    """Operator that reads the dataset returned for a full window before it continues."""

    node: GroupByWindow

    def __init__(self, context: ExecutionContext, source: KeyOperator, node: GroupByWindow) -> None:
        super().__init__(context, source, node, node.window_size or 1, knows_sizes=node.window_size is not None)
        self.windows = Subdatasets(context, node, node.reduce_func, partial(_argument_spec, node), "window")
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
        """Return the arguments of the function for a group. If the function fails, the elements are dropped."""
        source = self.node.source
        spec = partial(getattr, source, "element_spec")
        if any(self._stacked):  # a stacked array is one object
            pairs = zip(elements.columns(), self._stacked, strict=True)
            columns = [_stacked_again(column) if stacked else column for column, stacked in pairs]
            elements = Chunk(elements.structure, elements.length, columns, lineage=elements.lineage)
        elements = elements.read_only()
        window = dataset_of(Elements(elements, spec, spec_is_static(source), origin=self.node.origin))
        return Chunk(tuple_of(LEAF, LEAF), 1, [np.array([key]), [window]])

    def _close_inner(self) -> None:
        if self.inner is not None:
            self.inner.operator.close()
            self.inner = None

    def save(self) -> Position:
        opened, unopened = self.windows.save_argument()
        position = super().save()
        inputs = (position.source, unopened or self.windows.save(self.inner))
        return position.having(inputs=inputs).with_own(opened=opened)

    def load(self, position: Position) -> None:
        super().load(position)
        self.windows.opened = position.count("opened")
        self.inner = self.windows.load(position.inputs[1])

    def close(self) -> None:
        self._close_inner()
        super().close()


def _argument_spec(node: GroupByWindow) -> Any:
    return TensorSpec((), np.int64), DatasetSpec(node.source.element_spec)

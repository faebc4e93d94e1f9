"""Token features: the components of an element that hold one value per token, and their lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dataset.errors import SpecError
from dataset.ops.batch.padded_batch import padding_of
from dataset.ops.group.lengths import component_at
from dataset.ops.pack.window_operator import RowsOfWindowsOperator
from dataset.plan.checks import require_bool, require_int
from dataset.plan.drawing.summary import shortened
from dataset.plan.node import GroupingNode, UnaryNode, spec_is_static
from dataset.plan.packed import is_packed
from dataset.plan.spec import ComponentSpec, TensorSpec, flatten_spec, is_dense
from dataset.plan.structure import LEAF, Structure, is_dict, is_tuple, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.position import Position
from dataset.runtime.random.streams import random_state

T = TypeVar("T")

Lengths = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TokenFeatures:
    """The token features of elements of one structure.

    Attributes:
        structure: the structure of the elements.
        tokens: the indices of the components that are token features.
        key: the index of the component whose length is that of the sequence.
    """

    structure: Structure
    tokens: tuple[int, ...]
    key: int

    @classmethod
    def of(cls, structure: Structure, ranks: Sequence[int], key: Any) -> TokenFeatures:
        """Return the token features: all components that are arrays.

        Args:
            structure: the structure of the elements.
            ranks: the rank of each component; -1 for a ragged or sparse tensor.
            key: what the user has passed.

        Raises:
            ValueError: if a component cannot be cut, there is no token feature, or ``key`` does not name one.
        """
        for index, rank in enumerate(ranks):
            if rank < 0:
                raise ValueError(
                    f"{structure.component_name(index)} is a ragged or sparse tensor; sequences must be arrays with "
                    "one row per token, and not batches"
                )
        tokens = tuple(index for index, rank in enumerate(ranks) if rank)
        if not tokens:
            raise ValueError(
                f"the elements, {shortened(repr(structure), 80)}, have no array of tokens; convert text to "
                "tokens in map(), whose function must wrap a list that it returns in np.asarray(...), or return a dict"
            )
        if key is None:
            return cls(structure, tokens, tokens[0])
        found = component_at(structure, key if isinstance(key, tuple) else (key,))
        if found not in tokens:
            names = ", ".join(structure.component_name(index) for index in tokens)
            raise ValueError(f"key={key!r} is not a token feature of the elements; these are {names}")
        return cls(structure, tokens, found)

    @property
    def others(self) -> list[int]:
        """The indices of the components that hold one value per sequence."""
        return [index for index in range(self.structure.num_components) if index not in self.tokens]

    def name(self, index: int) -> str:
        """Return how messages name a component."""
        return self.structure.component_name(index)


def static_features(node: UnaryNode, key: Any) -> tuple[TokenFeatures, Sequence[ComponentSpec]]:
    """Return the token features of a node's input and the specs of its components.

    Raises:
        ValueError: if the elements have none.
    """
    structure, specs = flatten_spec(node.source.element_spec)
    ranks = [(1 if spec.shape is None else len(spec.shape)) if is_dense(spec) else -1 for spec in specs]
    try:
        return TokenFeatures.of(structure, ranks, key), specs
    except ValueError as error:
        raise ValueError(f"{node.op}(): {error}") from None


def token_of(op: str, argument: str, value: Any, features: TokenFeatures, index: int, dtype: np.dtype[Any]) -> Any:
    """Return the token that an argument says for a token feature: one for all, or a dict with one for some keys.

    Zero means the zero of any dtype, which is ``b""`` for text.

    Raises:
        ValueError: if the dict has other keys.
        TypeError: if the token is not a value of the dtype.
    """
    if isinstance(value, dict):
        structure = features.structure
        keys = structure.child_keys() if is_dict(structure) or is_tuple(structure) else ()
        sizes = [child.num_components for child in structure.children]
        owners = [key for key, size in zip(keys, sizes, strict=True) for _ in range(size)] if keys else []
        unknown = [key for key in value if key not in keys]
        if unknown:
            raise ValueError(f"{op}(): {argument} has the key {unknown[0]!r}, but the elements have the keys {keys}")
        value = value.get(owners[index]) if owners else None
    elif value == 0:
        value = None
    return padding_of(op, argument, features.name(index), dtype, value)


def with_entries(
    op: str, structure: Structure, components: Sequence[T], added: Mapping[str, T]
) -> tuple[Structure, list[T]]:
    """Add entries to a dict, or last components to a tuple; a single component becomes the first of a tuple.

    Args:
        op: the name of the op.
        structure: the structure of the elements.
        components: one value for each of its components.
        added: the values to add, by name.

    Returns:
        The new structure, and its components in order.

    Raises:
        ValueError: if the elements are of another class, or a dict has such a key.
    """
    numbers = list(range(structure.num_components + len(added)))
    element: Any = structure.unflatten(numbers[: structure.num_components])
    last = numbers[structure.num_components :]
    if is_dict(structure):
        taken = [name for name in added if name in element]
        if taken:
            raise ValueError(f"{op}(): the elements already have the key {taken[0]!r}, which the op adds; rename it")
        element = {**element, **dict(zip(added, last, strict=True))}
    elif structure is LEAF or is_tuple(structure):
        element = (*(element if is_tuple(structure) else (element,)), *last)
    else:
        raise ValueError(
            f"{op}(): the elements must be arrays, tuples or dicts, got {structure!r}; return a dict in map()"
        )
    found = structure_of(element)
    values = [*components, *added.values()]
    return found, [values[number] for number in found.flatten(element)]


class SequencesNode(GroupingNode):
    """Base class of nodes that make rows of the sequences of each window of ``window`` elements."""

    window: int
    pad: Any
    shuffle: bool

    def _set_window(self, seed: int | None) -> None:
        """Check the window, the order of its rows, and the spec if it is static. Called when all else is checked."""
        self._set("window", require_int(self.op, "window", self.window, minimum=1))
        self._set("shuffle", require_bool(self.op, "shuffle", self.shuffle))
        if seed is not None and not self.shuffle:
            raise ValueError(f"{self.op}(): seed={seed!r} has no effect with shuffle=False")
        if self.shuffle and self.random is None:  # else the node is a copy
            self._set("random", random_state(self.op, seed))
        if spec_is_static(self.source):
            self._element_spec()

    def padding(self, features: TokenFeatures, index: int, dtype: np.dtype[Any]) -> Any:
        """Return the padding value of a token feature."""
        return token_of(self.op, "pad", self.pad, features, index, dtype)

    def packed_spec(
        self,
        features: TokenFeatures,
        specs: Sequence[ComponentSpec],
        length: int | None,
        added: Mapping[str, int | None],
    ) -> Any:
        """Return the spec of rows of ``length`` tokens, with int32 entries of these lengths."""
        packed: list[ComponentSpec] = [
            TensorSpec(None if spec.shape is None else (length, *spec.shape[1:]), spec.dtype)
            if index in features.tokens
            else spec.batched(None)
            for index, spec in enumerate(specs)
        ]
        entries: dict[str, ComponentSpec] = {name: TensorSpec((size,), np.int32) for name, size in added.items()}
        structure, specs = with_entries(self.op, features.structure, packed, entries)
        return structure.unflatten(specs)


class SequencesOperator(RowsOfWindowsOperator):
    """Base operator for windows of sequences: finds their token features, and checks their lengths."""

    key: Any = None
    _known: TokenFeatures | None = None  # of the first element of the window

    @property
    def features(self) -> TokenFeatures:
        """The token features of the elements of the window, after the first was accepted."""
        assert self._known is not None
        return self._known

    def _begin_window(self) -> None:
        super()._begin_window()
        self._known = None

    def load(self, position: Position) -> None:
        super().load(position)
        if self._parts:
            self._known = self._features_of(self._parts[0])

    def _features_of(self, chunk: Chunk) -> TokenFeatures:
        return TokenFeatures.of(chunk.structure, [rank_of(column) for column in chunk.columns()], self.key)

    def accept(self, chunk: Chunk, position: int) -> Chunk | None:
        if self._known is None:
            try:
                self._known = self._features_of(chunk)
            except ValueError as error:
                return self._refuse(chunk, f"{self.node}: {error}")
        columns, known = chunk.columns(), self._known
        if known.structure is not chunk.structure and known.structure != chunk.structure:
            return self._refuse(
                chunk,
                f"{self.node}: all elements of a window must have the same structure, got {known.structure!r} and "
                f"{chunk.structure!r} in element {position}",
            )
        lengths = lengths_of(columns[known.key])
        fits = lengths >= 0
        for index in known.tokens:
            if index != known.key:
                fits &= lengths_of(columns[index]) == lengths
        if not fits.all():
            for place in np.flatnonzero(~fits).tolist():
                self.fail(self._mismatch(columns, place, position + place))
        is_accepted = self.accepts(lengths, fits, position)
        if is_accepted.all():
            return chunk
        return chunk.take(np.flatnonzero(is_accepted)) if is_accepted.any() else None

    def accepts(self, lengths: Lengths, fits: npt.NDArray[np.bool_], position: int) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return which of the sequences go into rows, given their lengths; ``fail`` for others.

        Args:
            lengths: the number of tokens of each.
            fits: which are sequences; the others have failed.
            position: the position of the first in the input.
        """
        return fits & (lengths > 0)

    def lengths_in(self, parts: list[Chunk]) -> Lengths:
        return np.concatenate([lengths_of(part.columns()[self.features.key]) for part in parts])

    def values_of(self, index: int, columns: Sequence[Column]) -> list[npt.NDArray[Any]]:
        """Return the arrays of a token feature.

        Raises:
            SpecError: if they differ in dtype or in the shape of a token.
        """
        values: list[npt.NDArray[Any]] = [value for column in columns for value in column]
        first = values[0]
        dtype, rank, inner = first.dtype, first.ndim, first.shape[1:]
        others = [  # the same object in most cases, and without inner axes
            value
            for value in values
            if (value.dtype is not dtype and value.dtype != dtype)
            or value.ndim != rank
            or (rank > 1 and value.shape[1:] != inner)
        ]
        if others:
            other = others[0]
            raise SpecError(
                f"{self.node}: {self.features.name(index)} must have one dtype and one shape per token, got "
                f"{other.dtype} of shape {other.shape} and {first.dtype} of shape {first.shape}"
                + ("; an element must be a single sequence, not a batch" if rank > 1 else "")
            )
        return values

    def _refuse(self, chunk: Chunk, message: str) -> Chunk | None:
        for _ in range(chunk.length):
            self.fail(SpecError(message))
        return None

    def _mismatch(self, columns: Sequence[Column], place: int, position: int) -> SpecError:
        features = self.features
        found = [f"{features.name(index)} has {_shown(columns[index][place])}" for index in features.tokens]
        return SpecError(
            f"{self.node}: all token features of an element must be arrays of one length, but in element {position} "
            f"{', '.join(found)}; leave out other arrays with select()"
        )


def lengths_of(column: Column) -> Lengths:
    """Return the lengths of the arrays of a column; -1 for values that are not arrays."""
    if is_packed(column):
        return column.lengths
    if isinstance(column, np.ndarray):
        return np.full(len(column), column.shape[1] if column.ndim > 1 else -1, np.int64)
    if set(map(type, column)) == {np.ndarray}:
        try:
            return np.fromiter(map(len, column), np.int64, len(column))
        except TypeError:  # an array without dimensions
            pass
    return np.array([len(v) if isinstance(v, np.ndarray) and v.ndim else -1 for v in column], np.int64)


def rank_of(column: Column) -> int:
    """Return the rank of the first value of a column; -1 for a ragged or sparse tensor."""
    if is_packed(column):
        return -1 if column.sparse else column.values.ndim
    first = column[0]
    return -1 if isinstance(first, RaggedTensor | SparseTensor) else np.ndim(first)


def _shown(value: Any) -> str:
    return f"shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"

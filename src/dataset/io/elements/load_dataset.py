"""Source node of load(path), which reads the elements that save() wrote; snapshot() shares it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.io.elements.codec import column_kind
from dataset.io.elements.metadata import Metadata, compression_of_elements
from dataset.io.elements.shard_dataset import SavedElements
from dataset.io.files.opening import local_folder
from dataset.ops.interleave.interleave import DEFAULT_CYCLE_LENGTH, Interleave
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.checks import require_bool, require_callable
from dataset.plan.lazy import lazy_property
from dataset.plan.nested import dataset_of, is_dataset
from dataset.plan.node import Node, holds_user_code
from dataset.plan.origin import function_name
from dataset.plan.spec import ComponentSpec, DatasetSpec, TensorSpec
from dataset.plan.structure import LEAF
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.state.held_elements import Elements
from dataset.world import threading

_POLL_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class Load(Node, reads_files=True):
    """Source node: the elements of ``saved``, as read by ``reader``.

    ``reader`` is not an input of the node: it is built from the files and not by the user, and rules do not change it.
    """

    op: ClassVar[str] = "load"
    saved: SavedElements = field(repr=False)
    reader: Node = field(repr=False)
    reader_func: Callable[..., Any] | None = None

    @lazy_property
    def traits(self) -> Traits:
        static = self.saved.spec is not None  # unknown if the dataset is empty
        return super().traits.having(
            static_spec=static, pure=self.reader_func is None or not holds_user_code(self.reader)
        )

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "saved": self.saved.identity}

    def _element_spec(self) -> Any:
        if self.saved.spec is None:
            raise SpecError(
                f"{self}: {self.saved.path!r} was saved without elements, so its element_spec is unknown; "
                "pass load(element_spec=...)"
            )
        return self.saved.spec

    def cardinality(self) -> int:
        """Return the number of saved elements, as in tf.data, or the cardinality of reader_func's result if known."""
        if self.reader_func is None:
            return self.saved.metadata.elements
        found = self.reader.cardinality()
        return self.saved.metadata.elements if found == UNKNOWN_CARDINALITY else found

    def label(self) -> str:
        reader = "" if self.reader_func is None else f", reader_func={function_name(self.reader_func)}"
        return f"{self.op}({Path(self.saved.path).name!r}{reader})"

    def lower(self, context: ExecutionContext) -> Operator:
        source: Operator = context(self.reader)
        return source if self.reader_func is None else LoadOperator(source, self.saved, self)


class LoadOperator(UnaryOperator):
    """Operator that checks that the elements of a ``reader_func`` match the saved ones."""

    def __init__(self, source: Operator, saved: SavedElements, node: Node) -> None:
        super().__init__(source)
        self._saved = saved
        self.node = node

    def pull(self, n: int) -> Chunk | None:
        chunk = self.source.pull(n)
        if chunk is not None:
            self._check(chunk)
        return chunk

    def _check(self, chunk: Chunk) -> None:
        structure = self._saved.structure
        if chunk.structure is not structure and chunk.structure != structure:
            raise SpecError(
                f"{self.node}: reader_func must return elements with the saved structure {structure!r}, "
                f"got {chunk.structure!r}; transform them downstream of it"
            )
        for index, (column, spec) in enumerate(zip(chunk.columns(), self._saved.components, strict=True)):
            if not _is_of(column, spec):
                raise SpecError(
                    f"{self.node}: reader_func must return elements of the saved kind, {spec!r} for "
                    f"{structure.component_name(index)}, got {column[0]!r:.100}; transform them downstream of it"
                )


def _is_of(column: Column, spec: ComponentSpec) -> bool:
    """Return whether the values have the kind and dtype of ``spec``."""
    try:
        kind = column_kind(column)
    except TypeError:
        return False
    dense = ("tensor", spec.dtype)
    return kind == dense if isinstance(spec, TensorSpec) else kind is not None and kind[1] == dense


def _itself(dataset: Any) -> Any:
    return dataset


def reader_plan(op: str, saved: SavedElements, reader_func: Callable[..., Any] | None) -> Node:
    """Return the plan that combines the shards: the user's function, or one element from each in turn."""
    shards = saved.shards()
    if reader_func is None and len(shards) == 1:
        return shards[0]
    datasets = list(map(dataset_of, shards))
    listed = Elements(Chunk(LEAF, len(datasets), [datasets]), partial(DatasetSpec, saved.spec))
    if reader_func is None:
        return Interleave(listed, _itself, DEFAULT_CYCLE_LENGTH, 1)
    result = reader_func(dataset_of(listed))
    if not is_dataset(result):
        raise TypeError(
            f"{op}(): reader_func must return a Dataset, got {result!r:.100} of type {type(result).__name__}"
        )
    return result.plan


def load(
    path: Any, element_spec: Any, compression: str | None, reader_func: Callable[..., Any] | None, wait: bool
) -> Node:
    """Return a plan for the elements saved at ``path``; the metadata is read immediately."""
    name = local_folder("load", path)
    if reader_func is not None:
        require_callable("load", "reader_func", reader_func)
    named = compression_of_elements("load", compression)
    metadata = _metadata(name, require_bool("load", "wait", wait))
    if compression not in {None, "AUTO"} and named != metadata.compression:
        raise ValueError(
            f"load(): compression is {compression!r}, but {name!r} was saved with {metadata.compression or None!r}; "
            "omit the argument, it is read from the metadata"
        )
    saved = SavedElements(name, metadata, _spec(name, metadata, element_spec))
    return Load(saved, reader_plan("load", saved, reader_func), reader_func)


def _metadata(path: str, wait: bool) -> Metadata:
    """Return the metadata. Network file systems do not notify about new files, so waiting polls twice a second."""
    never = threading.Event()  # an interrupt ends the wait immediately
    while True:
        try:
            return Metadata.read(path)
        except FileNotFoundError as error:
            if not wait:
                error.add_note(
                    "load(): nothing was saved there, or saving has not finished; wait=True waits until it has"
                )
                raise
        never.wait(_POLL_SECONDS)


def _spec(path: str, metadata: Metadata, given: Any) -> Any:
    """Return the spec of saved elements: the given one if they match it, or that of the metadata.

    Returns:
        The spec; None if there are no elements and no spec is known.

    Raises:
        SpecError: the elements do not match, or no spec is given and the metadata can't represent theirs.
        TypeError: the given spec is not a spec.
    """
    if given is not None:
        if misfit := metadata.misfit(given):
            raise SpecError(f"load(): the elements in {path!r} do not match: element_spec has {misfit}")
        return given
    structure = metadata.structure()
    if metadata.components is None:
        return None
    if structure is None:
        raise SpecError(
            f"load(): the elements in {path!r} are instances of user-defined classes, which are not stored in files; "
            f"pass element_spec, an instance that holds {', '.join(map(repr, metadata.components))}"
        )
    return structure.unflatten(list(metadata.components))

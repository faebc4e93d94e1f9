"""The plan: what a pipeline is, as immutable nodes. Nothing here runs; no threads, no files.

A node has inputs and parameters, and knows what comes out of it: the spec of its elements and how many there are. The
nodes themselves are in ops/ and io/, one op in one file. ``lower`` is the one bridge down to the runtime.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.lazy import lazy_property, once
from dataset.plan.origin import Origin, caller


@dataclass(frozen=True, eq=False)
class Node:
    """One operation of a pipeline.

    Subclasses are frozen dataclasses; the fields that are nodes, or tuples of nodes, are the inputs.

    Attributes:
        name: the user's own label, from the ``name=`` argument.
        origin: the user's source line that made the node.
    """

    op: ClassVar[str]
    """The method's name, the word used for it in messages and plans."""
    calls_user_code: ClassVar[bool] = False
    """Whether running it may call a user's function or iterate a user's object, so that reading ahead can be seen."""

    spec_is_static: ClassVar[bool] = True
    """Whether the node's spec follows from those of its inputs; False where only running user code can tell it."""

    seeks: ClassVar[bool] = False
    """Whether its operator can go forward over elements without making them, if those of its inputs can."""

    gives_elements: ClassVar[bool] = False
    """Whether ``element`` gives any element at once, with no operator opened for it."""

    stays_certain: ClassVar[bool] = False
    """Whether it is certain (``is_certain``) if its inputs are."""

    moves_only: ClassVar[bool] = False
    """Whether it hands on elements of its inputs as they are, some or all, in whatever order or side by side."""

    reads_files: ClassVar[bool] = False
    """Whether it reads or writes files that a parameter or an element of its input names, or may make such a node."""

    repeats_only: ClassVar[bool] = False
    """Whether it gives no element that is not among those of its input, and gives some of them more than once."""

    elastic: ClassVar[bool] = False
    """Whether its state fits in all processes that share the elements of its input, however many they are.

    So it has as many elements as they have, or these by a fixed size, and counts none that would be another's.
    """

    opens_elements: ClassVar[bool] = False
    """Whether each element of its input stands for many, as the name of a file does."""

    name: str | None = field(default=None, kw_only=True, repr=False)
    origin: Origin = field(default_factory=caller, kw_only=True, repr=False)

    @lazy_property
    def element_spec(self) -> Any:
        """The spec of the elements that come out."""
        return self._element_spec()

    def _element_spec(self) -> Any:
        raise NotImplementedError

    @property
    def holds_static_specs(self) -> bool:
        """Whether the specs of the datasets that a parameter holds, if there are any, are static, too."""
        return True

    def _set(self, name: str, value: Any) -> None:
        """Put the canonical form of an argument into its field, while the node is being made."""
        object.__setattr__(self, name, value)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Have each node count once, so that asking all nodes of a chain takes no longer than asking the last."""
        super().__init_subclass__(**keywords)
        if "cardinality" in vars(cls):
            cls.cardinality = once(cls.cardinality)  # type: ignore[method-assign,assignment]

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has, too: not what methods remember (see ``once``), since a copy may be given other fields."""
        return {key: value for key, value in vars(self).items() if not key.endswith("()")}

    def cardinality(self) -> int:
        """How many elements come out; may be INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return UNKNOWN_CARDINALITY

    def lower(self, build: Any) -> Any:
        """The operator that runs this node; ``build(input)`` gives those of its inputs.

        The ops state the types, ExecutionContext (runtime/context.py) and Operator (runtime/contract.py): a plan
        does not know what runs it.
        """
        raise NotImplementedError

    def element(self, position: int) -> Any:
        """The element at a position that exists, of a node that says so with ``gives_elements``."""
        raise NotImplementedError

    def picked(self, positions: Any) -> Node | None:  # noqa: ARG002  # few can
        """A plan of the elements at these positions, an array in ascending order; None where there is none.

        For nodes with random access of which each position gives one element, or an exception, and which give the same
        element whatever else is made.
        """
        return None

    @property
    def rows_per_element(self) -> int | None:
        """How many rows each component of an element has, where that is known whatever the spec."""
        return None

    @property
    def random_access(self) -> bool:
        """Whether any element can be made without those before it."""
        return self.seeks and all(source.random_access for source in self.inputs)

    @property
    def is_certain(self) -> bool:
        """Whether exactly ``cardinality()`` elements come, none of which can fail or takes user code to make.

        Then nobody can tell whether an element was made and thrown away, or passed over with ``seek``.
        """
        return self.stays_certain and all(source.is_certain for source in self.inputs)

    @property
    def never_fails(self) -> bool:
        """Whether none of its elements can fail or takes user code to make, in whatever order they come."""
        return self.is_certain or (self.moves_only and all(source.never_fails for source in self.inputs))

    @property
    def passes(self) -> int:
        """How often one run of it runs through its input; -1 for endlessly."""
        return 1

    @property
    def share(self) -> tuple[int, int] | None:
        """The number of the process whose share of its input it gives, and that of all processes, if it deals out."""
        return None

    @property
    def separates(self) -> bool:
        """Whether parts of its input, each in a process of its own, give all that it gives of the whole.

        So it is where the fate of an element depends on no other. Order, and what shares a batch, do not count.
        """
        return False

    def deal_below(self, deal: BlockCyclicShard) -> BlockCyclicShard | None:  # noqa: ARG002  # most ops need all of their input
        """How to deal out the elements of all inputs, so that this op makes ``deal`` of its own out of such a share.

        None, unless an op says otherwise, where it needs all of its input for any part of its elements.
        """
        return None

    def over_share(self, inputs: Sequence[Node], deal: BlockCyclicShard) -> Self:  # noqa: ARG002  # few need to know it
        """This op over the shares of its inputs in a ``deal`` of its own elements."""
        return self.with_inputs(inputs)

    def over_part(self, inputs: Sequence[Node]) -> Self:
        """This op, which ``separates``, over a part of what its inputs gave."""
        return self.with_inputs(inputs)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that this one reads from, in order."""
        return tuple(node for value in self._fields().values() for node in _nodes_in(value))

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The user's functions among the parameters."""
        return tuple(filter(callable, self._fields().values())) if self.calls_user_code else ()

    def with_inputs(self, inputs: Sequence[Node]) -> Self:
        """This node reading from other inputs."""
        replacement = {id(old): new for old, new in zip(self.inputs, inputs, strict=True)}
        changes: dict[str, Any] = {}
        for key, value in self._fields().items():
            if isinstance(value, Node):
                changes[key] = replacement.get(id(value), value)  # a node may also hold one that it does not read from
            elif _nodes_in(value):
                changes[key] = tuple(replacement.get(id(item), item) for item in value)
        return dataclasses.replace(self, **changes)

    def parameters(self) -> dict[str, Any]:
        """The fields that are neither inputs nor the label, by name, as plans and fingerprints show them."""
        return {key: value for key, value in self._fields().items() if not _nodes_in(value)}

    def content(self) -> Any:
        """All that decides over the elements beside the inputs, with the data: for fingerprints of what comes out.

        A seed counts; the numbers that are drawn where the user gives none do not.
        """
        return [self.parameters(), getattr(self, "seed", None)]

    def lasting_parameters(self) -> dict[str, Any]:
        """What of them must be the same where a saved state is loaded."""
        return self.parameters()

    def _fields(self) -> dict[str, Any]:
        """Fields by name, leaving out the label, the origin and what is shared between iterators."""
        names = _field_names(type(self))  # type: ignore[arg-type]  # a class is hashable
        return {name: getattr(self, name) for name in names}

    def described(self) -> str:
        """The op with what tells it from others of its kind: ``map(decode)``, ``batch(128)``."""
        return self.op

    def detail(self) -> str:
        """What the optimizer decided about the op, as plans show it behind the op."""
        return ""

    def located(self) -> str:
        """How errors name the node: ``map(decode) from train.py:41``."""
        named = f" named {self.name!r}" if self.name else ""
        return f"{self.described()}{named} from {self.origin}"


@dataclass(frozen=True, eq=False)
class UnaryNode(Node):
    """A node with one input, whose elements it passes on unless it says otherwise."""

    source: Node

    def _element_spec(self) -> Any:
        return self.source.element_spec

    @property
    def rows_per_element(self) -> int | None:
        """As many as in the input's elements, if they are passed on as they are, which their spec says."""
        passed_on = type(self)._element_spec is UnaryNode._element_spec  # noqa: SLF001  # whether it is overridden
        return self.source.rows_per_element if passed_on else None

    def cardinality(self) -> int:
        """As many as the input has."""
        return self.source.cardinality()


@functools.cache
def _field_names(kind: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.repr]


def _nodes_in(value: Any) -> tuple[Node, ...]:
    """The nodes in a field: one, or those of a tuple."""
    if isinstance(value, Node):
        return (value,)
    return tuple(item for item in value if isinstance(item, Node)) if isinstance(value, tuple) else ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything it reads from, inputs after their reader; what is read twice comes twice."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(found.inputs))


def inputs_first(node: Node, without: Container[Node] = ()) -> list[Node]:
    """The node and everything it reads from, each once, behind its inputs.

    Those in ``without`` are left out, and with them what is only read through them.
    """
    found: dict[Node, None] = {}
    waiting = [] if node in without else [(node, iter(node.inputs))]
    while waiting:
        reader, inputs = waiting[-1]
        source = next((source for source in inputs if source not in found and source not in without), None)
        if source is not None:
            waiting.append((source, iter(source.inputs)))
        else:
            found[reader] = None
            waiting.pop()
    return list(found)


def holds_user_code(node: Node) -> bool:
    """Whether running the plan calls user code anywhere, so that an early read could be noticed."""
    return any(part.calls_user_code for part in walk(node))


def spec_is_static(node: Node) -> bool:
    """Whether ``element_spec`` is known without running anything. Many ops ask as they are made, so nodes remember."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        unasked = [source for source in part.inputs if _STATIC not in vars(source)]
        if unasked:
            waiting += [part, *unasked]
        else:
            below = all(vars(source)[_STATIC] for source in part.inputs)
            vars(part)[_STATIC] = below and part.spec_is_static and part.holds_static_specs
    found: bool = vars(node)[_STATIC]
    return found


_STATIC = "spec_is_static()"  # where the answer is kept; no attribute can be called so

"""Nodes: the immutable operations that make up a plan. A plan only describes a pipeline; nothing here runs.

A node has inputs and parameters, and knows its output: the spec of its elements and their cardinality. The concrete
nodes are in ops/ and io/, one op per file. ``lower`` is the only link to the runtime.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias

from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import UNKNOWN_CARDINALITY, endless_or_unknown
from dataset.plan.lazy import lazy_property, once
from dataset.plan.origin import Origin, caller
from dataset.plan.random_state import RandomState
from dataset.plan.traits import Traits


@dataclass(frozen=True, eq=False)
class Node:
    """One operation of a pipeline.

    Subclasses are frozen dataclasses; the fields that are nodes, or tuples of nodes, are the inputs.

    Attributes:
        name: the user's own label, from the ``name=`` argument.
        random: the random state of an op that draws random numbers, or whose functions do.
        origin: the user's source line that made the node.
    """

    op: ClassVar[str]
    """The method's name, used in messages and plans."""
    _declared: ClassVar[Traits] = Traits()  # by the class statements

    name: str | None = field(default=None, kw_only=True, repr=False)
    random: RandomState | None = field(default=None, kw_only=True, repr=False)
    origin: Origin = field(default_factory=caller, kw_only=True, repr=False)

    @lazy_property
    def element_spec(self) -> Any:
        """The spec of the elements of the output."""
        return self._element_spec()

    def _element_spec(self) -> Any:
        raise NotImplementedError

    def _set(self, name: str, value: Any) -> None:
        """Store the canonical form of an argument in its field, while the node is being created."""
        object.__setattr__(self, name, value)

    def __init_subclass__(cls, **traits: Any) -> None:
        """Set the traits that differ from those of the base class, and cache ``cardinality`` per node.

        Without the cache, calling it on all nodes of a chain would take quadratic time.
        """
        super().__init_subclass__()
        cls._declared = dataclasses.replace(cls._declared, **traits)
        if "cardinality" in vars(cls):
            cls.cardinality = once(cls.cardinality)  # type: ignore[method-assign,assignment]

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without the results that methods cache (see ``once``): a copy may get other fields."""
        return {key: value for key, value in vars(self).items() if not key.endswith("()")}

    def cardinality(self) -> int:
        """Return the number of elements of the output, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return UNKNOWN_CARDINALITY

    def lower(self, context: Any) -> Any:
        """Return the operator that runs this node; ``context(input)`` returns the operator of an input.

        The overrides state the types, ExecutionContext (runtime/context.py) and Operator (runtime/contract.py): the
        plan does not depend on the runtime.
        """
        raise NotImplementedError

    def input_positions(self, positions: Any) -> Any:
        """Return the positions of the input elements from which the op makes the elements at ``positions``.

        Positions are arrays, in any order. The op over the input elements at the result yields these elements. The
        result is None if there is no such array, or if it is unknown.
        """
        return positions if self.traits.aligned else None

    def simplified(self) -> Node | None:
        """Return an equal plan with fewer operations, such as the input if it is returned unchanged; otherwise None."""
        return None

    @property
    def traits(self) -> Traits:
        """What may be assumed about the node; by default what its class declares."""
        return self._declared

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Node | None:  # noqa: ARG002  # used by overrides
        """Return a plan of one shard of this op's elements; None if the op needs its whole input for any of them.

        Args:
            shard: the shard. A list of files has shards of whole files, which are the only shards of a source.
            below: returns a plan of a shard of an input.
        """
        return None

    def restarted(self) -> Self:
        """Return the op without the elements that earlier iterations have left in it."""
        return self

    @lazy_property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that this one reads from, in order."""
        return tuple(node for value in self._fields().values() for node in _nodes_in(value))

    def with_inputs(self, inputs: Sequence[Node]) -> Self:
        """Return this node with other inputs."""
        replacement = {id(old): new for old, new in zip(self.inputs, inputs, strict=True)}
        changes: dict[str, Any] = {}
        for key, value in self._fields().items():
            if isinstance(value, Node):
                changes[key] = replacement.get(id(value), value)  # a field may hold a node that is not an input
            elif _nodes_in(value):
                changes[key] = tuple(replacement.get(id(item), item) for item in value)
        return dataclasses.replace(self, **changes)

    def parameters(self) -> dict[str, Any]:
        """Return the fields that are neither inputs nor the label, by name. Saved states require them to be equal."""
        return {key: value for key, value in self._fields().items() if not _nodes_in(value)}

    def fingerprint_fields(self) -> Any:
        """Return everything besides the inputs that determines the elements, including the data, for fingerprints.

        Seeds given by the user count; seeds drawn at random do not.
        """
        return [self.parameters(), None if self.random is None else self.random.seed]

    def _fields(self) -> dict[str, Any]:
        """Return the fields by name, without the label, the origin and what iterators share."""
        names = _field_names(type(self))  # type: ignore[arg-type]  # a class is hashable
        return {name: getattr(self, name) for name in names}

    def label(self) -> str:
        """Return the op with its distinguishing parameters: ``map(decode)``, ``batch(128)``."""
        return self.op

    def annotation(self) -> str:
        """Return what the optimizer decided about the op; plans show it after the op."""
        return ""

    def __str__(self) -> str:
        """Return how errors name the node: ``map(decode) from train.py:41``."""
        named = f" named {self.name!r}" if self.name else ""
        return f"{self.label()}{named} from {self.origin}"


@dataclass(frozen=True, eq=False)
class UnaryNode(Node):
    """Base class of nodes with one input. By default the element spec and the cardinality are those of the input."""

    source: Node

    def _element_spec(self) -> Any:
        return self.source.element_spec

    def cardinality(self) -> int:
        """Return the cardinality of the input, or UNKNOWN_CARDINALITY if the op is not ``counted``."""
        return self.source.cardinality() if self._declared.counted else UNKNOWN_CARDINALITY

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Node | None:
        """Return the op over a shard of its input, if the traits say that the elements correspond one to one."""
        one_to_one = self.traits.aligned and self.traits.elastic
        return self.with_inputs([below(self.source, shard)]) if one_to_one else None


class GroupingNode(UnaryNode):
    """Base class of nodes that make each element from several of the input, and whose number is not known before."""

    def cardinality(self) -> int:
        """Return INFINITE_CARDINALITY for an endless input, otherwise UNKNOWN_CARDINALITY."""
        return endless_or_unknown(self.source.cardinality())


@dataclass(frozen=True)
class Miss:
    """Record of a rule that does not apply to a node for a ``reason``, which says what the user could change."""

    reason: str


class RewritableNode(Node):
    """Base class of nodes that a rule of the optimizer runs in another way, whatever the nodes downstream are."""

    rule: ClassVar[str]
    """The name of the rule's option."""

    def rewritten(self) -> Node | Miss | None:
        """Return the op, set to run in the other way, or why not; None if the rule does not concern it."""
        raise NotImplementedError


class MemoryNode(Node):
    """Base class of nodes whose elements may all be in memory."""

    def elements_in_memory(self) -> Any:
        """Return all elements as a chunk, without lineage, if the library has them or can compute them now; or None.

        The overrides state the type, Chunk (runtime/chunks/chunk.py).
        """
        raise NotImplementedError


def elements_in_memory(node: Node) -> Any:
    """Return all elements of a node as a chunk if they are in memory, otherwise None."""
    return node.elements_in_memory() if isinstance(node, MemoryNode) else None


@dataclass(frozen=True, eq=False)
class RowsNode(Node):
    """Base class of nodes whose elements can be selected by position before they are read."""

    def subrange(self, places: slice) -> Node | None:  # noqa: ARG002  # used by overrides
        """Return a node with the elements at these positions; None if there is no such node."""
        return None

    def gathered(self) -> Node | None:
        """Return an equal node with the trait ``gathers``; None if there is no such node."""
        return None


@dataclass(frozen=True, eq=False)
class ParallelNode(UnaryNode, RewritableNode):
    """Base class of nodes that several workers may run.

    Attributes:
        num_parallel_calls: the number of workers; None for no threads, AUTOTUNE (-1) to let the tuner decide.
        deterministic: whether the op keeps the order of its elements; if None, the options decide.
    """

    rule: ClassVar[str] = ""
    num_parallel_calls: int | None = field(default=None, kw_only=True, repr=False)
    deterministic: bool | None = field(default=None, kw_only=True, repr=False)

    def rewritten(self) -> Node | Miss | None:
        """Return the op, set to make as many calls at once as there are cores, in order."""
        if self.num_parallel_calls is not None:
            return None
        return dataclasses.replace(self, num_parallel_calls=-1, deterministic=True)

    def parallelism(self) -> str:
        """Return the description of the workers in plans."""
        if self.num_parallel_calls is None:
            return ""
        calls = str(self.num_parallel_calls)  # AUTOTUNE tells its bound, but other packages have -1
        calls = "AUTOTUNE" if calls == "-1" else calls
        return f"{calls} parallel calls{', in any order' if self.deterministic is False else ''}"

    def annotation(self) -> str:
        """Return how the op runs."""
        return self.parallelism()


@dataclass(frozen=True, eq=False)
class ShareNode(Node):
    """Base class of nodes that may output only the share of one process."""

    share: BlockCyclicShard | None = field(default=None, kw_only=True, repr=False)


def share_of(node: Node) -> BlockCyclicShard | None:
    """Return which share the node outputs; None if it does not divide its elements among processes."""
    return node.share if isinstance(node, ShareNode) else None


Sharding: TypeAlias = Callable[[Node, BlockCyclicShard], Node]
"""Returns a plan of one shard of the elements of a node."""


@functools.cache
def _field_names(kind: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.repr]


def _nodes_in(value: Any) -> tuple[Node, ...]:
    """Return the nodes in a field: one, or those in a tuple."""
    if isinstance(value, Node):
        return (value,)
    return tuple(item for item in value if isinstance(item, Node)) if isinstance(value, tuple) else ()


def held_nodes(node: Node) -> list[Node]:
    """Return the nodes in the fields of a node that are not inputs, such as those that it replaces."""
    return [value for value in list(vars(node).values()) if isinstance(value, Node) and value not in node.inputs]


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and everything upstream of it, each node before its inputs; a shared input comes repeatedly."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(found.inputs))


def sources(node: Node) -> Iterator[Node]:
    """Yield the nodes without inputs in a plan, including those in fields of other nodes."""
    for part in walk(node):
        for held in held_nodes(part):
            yield from sources(held)
        if not part.inputs:
            yield part


def inputs_first(node: Node, without: Container[Node] = ()) -> list[Node]:
    """Return the node and everything upstream of it, each once, after its inputs.

    Nodes in ``without`` are left out, and so is everything that is only upstream of them.
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


def rebuilt(plan: Node, change: Callable[[Node], Node]) -> Node:
    """Return the plan with each node replaced by the result of ``change``, inputs first; shared nodes stay shared."""
    found: dict[Node, Node] = {}
    for node in inputs_first(plan):
        inputs = [found[source] for source in node.inputs]
        moved = any(new is not old for new, old in zip(inputs, node.inputs, strict=True))
        found[node] = change(node.with_inputs(inputs) if moved else node)
    return found[plan]


def restarted(plan: Node) -> Node:
    """Return the plan without the elements that earlier iterations have left in its ops."""
    return rebuilt(plan, lambda node: node.restarted())


def has_random_access(node: Node) -> bool:
    """Return whether the plan can produce any element without those before it."""
    return all(part.traits.seekable for part in walk(node))


def rows_per_element(node: Node) -> int | None:
    """Return the number of rows of each component of an element, if it is known independently of the spec."""
    while node.traits.rows is None and isinstance(node, UnaryNode):
        if type(node)._element_spec is not UnaryNode._element_spec:  # noqa: SLF001  # elements pass if the spec does
            break
        node = node.source
    return node.traits.rows


def is_exact(node: Node) -> bool:
    """Return whether the plan yields exactly ``cardinality()`` elements, none can fail, and no user code runs.

    Then discarding an element and skipping it with ``seek`` are indistinguishable to the user.
    """
    return all(part.traits.exact for part in walk(node))


def is_infallible(node: Node) -> bool:
    """Return whether no element can fail or needs user code, whatever the order of the elements."""
    found: dict[Node, tuple[bool, bool]] = {}  # whether it is exact, and infallible
    for part in inputs_first(node):
        traits, inputs = part.traits, [found[source] for source in part.inputs]
        exact = traits.exact and all(exact for exact, _ in inputs)
        safe = (traits.infallible or traits.only_reorders) and all(safe for _, safe in inputs)
        found[part] = exact, exact or safe
    return found[node][1]


def holds_user_code(node: Node) -> bool:
    """Return whether running the plan may call user code, so that read-ahead is observable."""
    return not all(part.traits.pure for part in walk(node))


def may_wait(node: Node) -> bool:
    """Return whether running the plan may wait for a server, or call user code that waits for something."""
    return any(part.traits.waits or not (part.traits.pure or part.traits.computes) for part in walk(node))


def spec_is_static(node: Node) -> bool:
    """Return whether ``element_spec`` is known without running anything. Nodes cache it, as many ops need it."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        unasked = [source for source in part.inputs if _STATIC not in vars(source)]
        if unasked:
            waiting += [part, *unasked]
        else:
            below = all(vars(source)[_STATIC] for source in part.inputs)
            vars(part)[_STATIC] = below and part.traits.static_spec
    found: bool = vars(node)[_STATIC]
    return found


_STATIC = "spec_is_static()"  # key of the cached result; no attribute can have this name

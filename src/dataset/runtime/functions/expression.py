"""Expression graphs: what a user function computes, read from its bytecode without calling it.

A graph holds the operations of a function in the order of execution. It includes the code of plain Python helpers,
methods, partials and closures that it calls. A branch divides the rest of the code: each side is a block of its own.

A graph is only made of code that has no effects and that user code can't change: what it reads outside of its arguments
is looked up again before each use (``Graph.current``), and must still be of the kind that was found. A function may do
anything on one side of a branch. Then that side is a block without a result, and elements that take it end the use of
the graph. If the beginning of a function is known, but not all of the rest, it can be divided there.

Loops and comprehensions are unrolled if the number of their steps is known, as that of a loop over a tuple of names.

A trace is a graph of any function, for matchers of functions that are called in any case. It also has operations that
may have effects or belong to user code.

The arguments of a function are unknown here. evaluate.py runs a graph on columns of elements, and refuses operations
that may not give the same for a column as for single elements.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from dataset.plan.lazy import lazy_property
from dataset.plan.packed import TAKES_BLOCKS
from dataset.plan.structure import Structure, is_dict, is_tuple
from dataset.runtime.functions import column_operations, text_operations
from dataset.runtime.functions.bytecode import (
    GENERATOR,
    ITERATOR_STAYS,
    UNBOUND,
    VARIADIC,
    Constant,
    Frame,
    LocalFunction,
    NotProvedError,
    Variable,
    arity_of,
    instructions_of,
    is_unusual,
    names_in,
    names_in_handlers,
    unknown_python,
)
from dataset.runtime.functions.places import Place, Step, class_name, has_fixed_truth, kind_of, method_of, value_at

TWIN = "__dataset_column_twin__"
"""Attribute of a function of one element and one argument: the function that returns its results for a column."""

TWINS_OF_BUILTINS: dict[Any, Callable[[], tuple[Any, tuple[str, ...]]]] = {}
"""Functions that return such a twin and the names of the parameters, by functions that can't have attributes."""

_LEAVES_MAX = 16
"""Branches multiply: a function with more ways through it is not proved."""

_STEPS_MAX = 5000
"""A function with more instructions, counted once for each way through it, would take 10 ms or longer to prove."""

_DICT_METHODS = frozenset({"copy", "get", "pop", "update", "setdefault"})
_METHODS = column_operations.KNOWN_METHODS | text_operations.KNOWN_METHODS | _DICT_METHODS
_TYPES = frozenset({bytes, str, list, tuple, dict, np.ndarray, np.generic, np.integer, np.floating, np.number})
_PLAIN = frozenset({type(None), str, bytes, type(Ellipsis), slice})


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """One operation of a function, or a value that it begins with.

    Attributes:
        kind: "argument" (position), "constant" (value) and "read" (place) are values; all others are operations.
        operands: expressions, and other values that are part of the operation.
    """

    kind: str
    operands: tuple[Any, ...]

    @property
    def is_constant(self) -> bool:
        """Whether its value is known before the function is called."""
        return self.kind == "constant"


@dataclass(frozen=True, eq=False, slots=True)
class Branch:
    """Division of the elements by the truth of a value."""

    test: Expression
    then: CodeBlock
    otherwise: CodeBlock


@dataclass(frozen=True, eq=False, slots=True)
class CodeBlock:
    """Operations in the order of execution, and what follows.

    Attributes:
        operations: the operations.
        end: the result; a branch; or the reason why the rest of the code isn't proved.
    """

    operations: tuple[Expression, ...]
    end: Expression | Branch | NotProvedError

    def blocks(self) -> Iterator[CodeBlock]:
        """Yield this block and those after it."""
        yield self
        if isinstance(self.end, Branch):
            yield from self.end.then.blocks()
            yield from self.end.otherwise.blocks()


@dataclass(frozen=True, slots=True)
class Read:
    """Something outside of its arguments that a function reads.

    Attributes:
        place: where it is found.
        expected: the object; for numbers and arrays of numbers, the result of ``kind_of``: they may change.
        is_of_library: whether it belongs to a module of NumPy or of this package.
    """

    place: Place
    expected: Any
    is_of_library: bool = False

    def allows(self, value: Any) -> bool:
        """Return whether the proof holds for this value, too."""
        kind = kind_of(value)
        if kind is not None:
            return bool(kind == self.expected)
        return value is self.expected or (_is_comparable(value) and bool(value == self.expected))


def _is_comparable(value: Any) -> bool:
    """Return whether comparing the value runs no user code."""
    kind = type(value)
    return all(map(_is_comparable, value)) if kind is tuple else kind in {str, bytes, CodeType, int, float, bool}


@dataclass(frozen=True, eq=False)
class Graph:
    """What a function computes from its arguments, and on which conditions.

    Attributes:
        arity: the number of its arguments.
        body: its operations.
        reads: everything that it reads outside of its arguments.
        code: its code; weak, because graphs are kept by code. None if it is not a plain function.
        division: where it can be divided, if the graph is not whole.
        kept: for a trace, values that code uses which is not in it: after an unproved end, or where it handles errors.
        waits: whether more of the function may be known once the structure of its elements is.
    """

    arity: int
    body: CodeBlock
    reads: tuple[Read, ...]
    code: weakref.ref[CodeType] | None = None
    division: Division | None = None
    kept: frozenset[Expression] = frozenset()
    waits: bool = False

    def current(self, function: Any) -> dict[Place, Any] | None:
        """Return the current values of what a function with this code reads; None if the graph isn't its own now."""
        if self.code is not None and self.code() is not function.__code__:
            return None
        found: dict[Place, Any] = {(): function}
        for read in self.reads:
            value = value_at(read.place, found)
            if value is UNBOUND or not read.allows(value):
                return None
        return found

    @lazy_property
    def operations(self) -> tuple[Expression, ...]:
        """All operations."""
        return tuple(operation for block in self.body.blocks() for operation in block.operations)

    @lazy_property
    def is_whole(self) -> bool:
        """Whether the graph covers all of the function. If not, its other parts may have effects."""
        return not any(isinstance(block.end, NotProvedError) for block in self.body.blocks())

    @lazy_property
    def reads_nothing(self) -> bool:
        """Whether nothing can be rebound between two calls except functions of NumPy and of this package."""
        return all(read.is_of_library for read in self.reads)

    @lazy_property
    def calls_library(self) -> bool:
        """Whether it calls functions of NumPy or of this package, which it reads from a module."""
        return any(read.is_of_library for read in self.reads)

    @lazy_property
    def reads_containers(self) -> bool:
        """Whether it reads arrays, lists or tables, which can be written to."""
        kinds = (read.expected[0] for read in self.reads if type(read.expected) is tuple and read.expected)
        are_arrays = any(kind is np.ndarray or kind is list for kind in kinds)
        return are_arrays or any(one.kind == "lookup" for one in self.operations)

    @lazy_property
    def uses(self) -> dict[Expression, list[Expression | None]]:
        """The operations that use each expression, once for each use; None for the end of a block."""
        found: dict[Expression, list[Expression | None]] = {}
        for block in self.body.blocks():
            ends = [block.end.test] if isinstance(block.end, Branch) else [block.end]
            for user, operands in [*((one, one.operands) for one in block.operations), (None, ends)]:
                for operand in _expressions(operands):
                    found.setdefault(operand, []).append(user)
        return found

    @lazy_property
    def modified(self) -> frozenset[Expression]:
        """The expressions whose values are modified in place."""
        return frozenset(
            one.operands[one.kind == "operator"]
            for one in self.operations
            if one.kind == "store" or (one.kind == "operator" and _is_in_place(one.operands[0]))
        )

    @lazy_property
    def twins(self) -> tuple[Expression, ...]:
        """The calls of functions that have a twin for columns."""
        return tuple(one for one in self.operations if one.kind == "twin")

    @lazy_property
    def called_one_by_one(self) -> str | None:
        """The name of a function that is called for each row of a column; None if there is none."""
        called = [one.operands[0] for one in self.operations if one.kind == "call"]
        return next((_name_of(one) for one in called if column_operations.is_one_by_one(one)), None)

    @lazy_property
    def takes_blocks(self) -> bool:
        """Whether the arguments are only read by functions that take a BytesColumn of them."""
        users = [user for one, users in self.uses.items() if one.kind == "argument" for user in users]
        readers = [user for user in users if user is not None and user.kind == "twin"]
        return bool(users) and len(readers) == len(users) and all(parses_records(user.operands[0]) for user in readers)

    def keys_used(self, expression: Expression) -> frozenset[str] | None:
        """Return the keys that are looked up in a dict; None if it is used in another way."""
        users = self.uses.get(expression, [])
        if not all(user is not None and user.kind == "item" and user.operands[0] is expression for user in users):
            return None
        keys = [user.operands[1] for user in users if user is not None]
        return frozenset(key.operands[0] for key in keys) if all(key.is_constant for key in keys) else None

    def keys_decoded(self, expression: Expression) -> frozenset[str]:
        """Return the keys of a dict whose values are only passed to functions that decode raw bytes."""
        items = [user for user in self.uses.get(expression, []) if user is not None and user.kind == "item"]
        decoded, others = set[str](), set[str]()
        for item in items:
            users = self.uses.get(item, [])
            is_raw = all(
                one is not None and one.kind == "twin" and not parses_records(one.operands[0]) for one in users
            )
            (decoded if is_raw and users else others).add(item.operands[1].operands[0])
        return frozenset(decoded - others)


@dataclass(frozen=True, eq=False)
class Division:
    """Place in a function up to which its operations are known.

    Attributes:
        graph: computes a tuple: the values that the local variables have there.
        names: these variables, which the code after the place may use.
        place: the function that is divided: the one called, or the one in a method, partial or callable object.
        code: its code.
        offset: the position in the bytecode of the first instruction after the place.
        line: the line of that instruction.
        reason: why the rest isn't known, if that is of use.
    """

    graph: Graph
    names: tuple[str, ...]
    place: Place
    code: CodeType
    offset: int
    line: int | None
    reason: str | None


def parses_records(twin: Any) -> bool:
    """Return whether a twin parses records: it returns a dict, and takes a BytesColumn. Others decode raw bytes."""
    return bool(getattr(twin, TAKES_BLOCKS, False))


def _expressions(operands: Any) -> Iterator[Expression]:
    """Yield the expressions in operands or abstract values."""
    for operand in operands:
        match operand:
            case Expression():
                yield operand
            case tuple() | list():
                yield from _expressions(operand)
            case dict():
                yield from _expressions(operand.values())
            case _Attribute():
                yield operand.owner
            case _Items():
                yield from _expressions((operand.items, operand.of))
            case LocalFunction():
                yield from _expressions((operand.free, operand.defaults))


# Abstract values


@dataclass(frozen=True, eq=False, slots=True)
class _Outside:
    """Abstract value: an object outside of the function. It is noted as a read only if it is used."""

    place: Place
    value: Any
    is_of_library: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class _Method:
    """Abstract value: a method of an object outside of the function; its name if it is that of a dict."""

    function: Any
    owner: _Outside


@dataclass(frozen=True, eq=False, slots=True)
class _Attribute:
    """Abstract value: an attribute or a method of a computed value."""

    owner: Expression
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class _Items:
    """Abstract value: an iterator or a view.

    Attributes:
        items: its items; None if their number is unknown, which only traces allow.
        of: the value that it iterates over, if the items are unknown.
        view: "keys", "values" or "items" if the items are the keys of the dict ``of``, and it iterates over this view.
        names: the keys of that dict.
        is_entered: whether the body of the loop over unknown items has been executed.
        is_iterator: whether the items can be taken only once.
        at: how many changes there had been when the items were computed, if the function computes them later.
    """

    items: tuple[Any, ...] | None
    of: Any = None
    view: str | None = None
    names: tuple[str, ...] = ()
    is_entered: bool = False
    is_iterator: bool = False
    at: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class _Entered:
    """Abstract value: the result of a call that begins now."""

    frame: Frame


@dataclass(frozen=True, eq=False, slots=True)
class _Boundary:
    """A moment between two statements of the function.

    Attributes:
        frame: a copy of the frame.
        operations: the list of operations; it grows later.
        count: how many there were.
        reads: what had been read.
    """

    frame: Frame
    operations: list[Expression]
    count: int
    reads: dict[Place, Read]


# The graph of a function


def graph_of(
    function: Callable[..., Any], is_called: Callable[[Any], bool] | None = None, *, enters_all: bool = True
) -> Graph | str | None:
    """Return the graph of a function; or the reason why there is none; or None if no reason is of use.

    If a dataset is created for each element of another, its function objects are new each time, but not their code. So
    the graph of a code is kept.

    With ``is_called``, return a trace: the graph of all that any function does, even if it has effects. An operation
    "unknown" stands for anything that is done with its operands, "carried" for any value of a variable in a loop, and
    "next" for any item. The body of a loop whose number of steps is unknown occurs once.

    Args:
        function: a function.
        is_called: for a trace, tells of an object whether a call of it is one operation, "call".
        enters_all: whether a trace has the operations of functions that only get constants; a logger may be large. If
            not, the function may have effects on what it reads later.
    """
    return read_function(function, is_called, enters_all=enters_all).graph


class Reading(NamedTuple):
    """What is known of a function.

    Attributes:
        graph: what ``graph_of`` returns.
        division: where the function can be divided, if that is not a whole graph.
        waiting: a graph for which ``Graph.waits`` is true, if there is one; it may have no operations.
    """

    graph: Graph | str | None
    division: Division | None = None
    waiting: Graph | None = None


def read_function(
    function: Callable[..., Any],
    is_called: Callable[[Any], bool] | None = None,
    *,
    enters_all: bool = True,
    structure: Structure | None = None,
) -> Reading:
    """Return what is known of a function; ``structure`` is that of the elements, if it is known."""
    code = function.__code__ if type(function) is FunctionType else None
    graphs = {} if code is None or structure is not None else _FOUND.setdefault(code, {})
    known = graphs.get(is_called)
    if known is not None and known.arity == arity_of(function) and known.current(function) is not None:  # type: ignore[arg-type]  # it has code
        return Reading(known, known.division, known if known.waits else None)
    is_weak = type(function) in {FunctionType, functools.partial} and is_called is None
    if is_weak and (reason := _REFUSED.get(function)) is not None:
        return Reading(reason)
    reader = _Reader(function, is_called, enters_all, structure)
    try:
        graph = reader.graph()
        division = None if is_called is not None or graph.is_whole else reader.division(None)
    except NotProvedError as error:
        division = reader.division(error.reason)
        if is_weak and division is None and isinstance(error, _EndError) and error.reason is not None:
            _REFUSED[function] = error.reason
        unread = CodeBlock((), NotProvedError())
        waiting = Graph(reader.arity, unread, (), reader.code, waits=True) if reader.waits else None
        return Reading(error.reason, division, waiting)
    finally:
        reader.boundary = None  # it refers to the reader, and both to the function: a reference cycle
    if division is None:
        graphs[is_called] = graph
    else:
        graph = replace(graph, division=division)  # it refers to objects of the user, so it is not kept
    return Reading(graph, division, graph if graph.waits else None)


_FOUND: weakref.WeakKeyDictionary[CodeType, dict[Any, Graph]] = weakref.WeakKeyDictionary()
_REFUSED: weakref.WeakKeyDictionary[Callable[..., Any], str] = weakref.WeakKeyDictionary()
"""Why functions are not proved, if finding that out takes long: each rule asks, and a pipeline may be built again."""


@dataclass(eq=False)
class _Reader:
    """Reads the code of a function and of those that it calls."""

    function: Any
    is_called: Callable[[Any], bool] | None = None  # for a trace
    enters_all: bool = True
    structure: Structure | None = None  # of the elements
    waits: bool = False  # whether the code uses the keys of elements, but they are unknown
    reads: dict[Place, Read] = field(default_factory=dict)
    operations: list[Expression] = field(default_factory=list)
    values: dict[Place, Expression] = field(default_factory=dict)
    steps: int = 0
    leaves: int = 1
    code: weakref.ref[CodeType] | None = None
    arity: int = 0
    boundary: _Boundary | None = None
    kept: set[Expression] = field(default_factory=set)
    consumed: set[_Items] = field(default_factory=set)
    changes: int = 0

    def graph(self) -> Graph:
        if (reason := unknown_python()) is not None:
            raise NotProvedError(reason)
        arity = self.arity = self._arity()
        arguments = [Expression("argument", (position,)) for position in range(arity)]
        if type(self.function) is FunctionType:
            value = self._enter(_Outside((), self.function), list(arguments), {})
            if (code := self.function.__code__).co_flags & VARIADIC and self.is_called is None:
                raise NotProvedError
            for name in set(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]) & value.frame.locals.keys():
                value.frame.locals[name] = Expression("argument", (arity,))  # the rest of them
        else:
            value = self._call(_Outside((), self.function), list(arguments), {})
        body = self._block([value.frame]) if isinstance(value, _Entered) else None
        if body is None:
            body = CodeBlock(tuple(self.operations), self._use(value))
        if isinstance(body.end, NotProvedError) and self.is_called is None:
            raise NotProvedError(body.end.reason)  # the other one would refer to this frame, which refers to it
        reads = tuple(self.reads.values())
        return Graph(arity, body, reads, self.code, kept=frozenset(self.kept), waits=self.waits)

    def _arity(self) -> int:
        """Return the number of arguments without a default."""
        function, bound, names = self.function, 0, frozenset[str]()
        while type(function) is functools.partial:
            bound, names = bound + len(function.args), names | frozenset(function.keywords)
            function = function.func
        if type(function) is MethodType:
            bound, function = bound + 1, function.__func__
        elif type(function) is not FunctionType:
            new = _NEW.value_in(function) if _FIELDS.value_in(function) is not UNBOUND else UNBOUND
            bound, function = bound + 1, method_of(function, "__call__") if new is UNBOUND else new
        if type(function) is not FunctionType:
            raise NotProvedError
        arity = arity_of(function)
        return len([name for name in function.__code__.co_varnames[bound:arity] if name not in names])

    def _block(self, frames: list[Frame]) -> CodeBlock:
        """Execute the innermost frame until the function ends or branches, and return the operations."""
        operations: list[Expression] = []
        self.operations = operations
        while True:
            try:
                if (found := self._step(frames)) is not None:
                    end = found if isinstance(found, Branch) else self._use(found)
                    return CodeBlock(tuple(operations), end)
            except NotProvedError as error:
                if self.is_called is None and isinstance(error, _EndError):
                    raise
                reason = NotProvedError(error.reason)  # without references to frames
                reason.line = error.line
                if self.is_called is None:
                    return CodeBlock((), reason)
                left = tuple(self._left(frames[-1]))
                if len(frames) == 1:
                    self.kept.update(left)
                    return CodeBlock(tuple(operations), reason)
                frames.pop()  # this call is an operation
                frames[-1].stack.append(self._record("unknown", left))

    def _step(self, frames: list[Frame]) -> Branch | Expression | None:
        """Execute an instruction; return the branch or the result of the function, if it ends here."""
        frame = frames[-1]
        instructions, indices = instructions_of(frame.code)
        instruction = instructions[frame.position]
        self._note_boundary(frames)
        frame.position += 1
        self.steps += 1
        if self.steps > _STEPS_MAX or self.leaves > _LEAVES_MAX:
            raise _EndError("it is too long, or has too many branches")
        try:
            if instruction.opname == "FOR_ITER":
                return self._next(frames, indices[instruction.argval])
            if instruction.opname in _JUMPS:
                return self._jump(frames, instruction, indices)
            if self.is_called is not None and instruction.argval in _READS_LOCALS:
                frame.position = 0  # it may read all variables
                frame.unknown(instruction.opname)
            frame.execute(instruction)
        except NotProvedError as error:
            self._locate(error, frames, instruction)
            raise
        if frame.handled:
            self.kept.update(_expressions([frame.locals.get(name) for name in frame.handled]))
        if frame.stack and isinstance(frame.stack[-1], _Entered):
            entered = frame.stack.pop()
            frames.append(entered.frame)
            if any(other.code is entered.frame.code for other in frames[:-1]):
                raise NotProvedError("it calls itself")
        elif instruction.opname in {"RETURN_VALUE", "RETURN_CONST"}:
            return self._returned(frames)
        return None

    def _left(self, frame: Frame) -> Iterator[Expression]:
        """Yield the values that the rest of a frame's code may use."""
        instructions, indices = instructions_of(frame.code)
        jumps = ((n, indices[one.argval]) for n, one in enumerate(instructions) if one.opname in _JUMPS)
        start = min([frame.position, *(target for n, target in jumps if target < n)])  # a loop may run code again
        named = names_in(frame.code, start)
        yield from _expressions([frame.stack, frame.yielded, [frame.locals.get(name) for name in named]])

    def _note_boundary(self, frames: list[Frame]) -> None:
        """Note a moment at which the function can be divided: before a statement, and before any branch."""
        if len(frames) == 1 and self.leaves == 1 and not frames[0].stack:
            self.boundary = _Boundary(frames[0].copy(), self.operations, len(self.operations), self.reads.copy())

    def division(self, reason: str | None) -> Division | None:
        """Return where the function can be divided; ``reason`` is why its rest isn't known."""
        if self.boundary is None or not self.boundary.count:
            return None
        frame, operations, self.reads = self.boundary.frame, self.boundary.operations, self.boundary.reads
        code, (instructions, indices) = frame.code, instructions_of(frame.code)
        at, rest = instructions[frame.position], instructions[frame.position :]
        offset = getattr(at, "start_offset", at.offset)  # which includes an EXTENDED_ARG since Python 3.13
        if (
            instructions[frame.position - 1].opname == "EXTENDED_ARG"
            or code.co_cellvars
            or code.co_flags & (VARIADIC | GENERATOR)
            or len(code.co_varnames) > _LOCALS_MAX
            or _READS_LOCALS.intersection(code.co_names)
            or any(one.opcode in _JUMPING and indices[one.argval] < frame.position for one in rest)
        ):
            return None
        named = names_in(code, frame.position)
        named |= frame.locals.keys() & code.co_varnames[: code.co_argcount]  # which notes of exceptions show
        names = tuple(name for name in code.co_varnames if name in named and name in frame.locals)
        last = code.co_varnames.index(names[-1]) if names else 0
        if named.intersection(code.co_varnames[:last]) - frame.locals.keys():
            return None  # some variable has no value yet, but would become a parameter
        self.operations = operations[: self.boundary.count]
        try:
            whole = self._record("tuple", tuple(self._kept(frame.locals[name]) for name in names))
        except NotProvedError:
            return None
        block = CodeBlock(tuple(self.operations), whole)
        graph = Graph(self.arity, block, tuple(self.reads.values()), self.code)
        place = frame.evaluate.args[0]  # type: ignore[attr-defined]  # see _enter
        line = at.positions.lineno if at.positions else None
        return Division(graph, names, place, code, offset, line, reason)

    def _kept(self, value: Any) -> Expression:
        """Return the expression for an abstract value that the known operations don't use: it may be any object."""
        if not isinstance(value, _Outside):
            return self._use(value)
        kind = kind_of(value.value)
        self._note(value, value.value if kind is None else kind)
        return Expression("read", (value.place,))

    def _returned(self, frames: list[Frame]) -> Expression | None:
        """Leave the innermost frame; return the result of the function if it was the last one."""
        frame = frames[-1]
        if len(frame.stack) != 1:
            raise NotProvedError
        value = frame.stack[0]
        if frame.code.co_flags & GENERATOR:
            value = _Items(frame.yielded, value, is_iterator=True, at=self.changes)
        if len(frames) > 1:
            frames.pop()
            frames[-1].stack.append(value)
            return None
        result = self._use(value)
        if result.is_constant and result.operands[0] is None and self.is_called is None:
            raise NotProvedError("it returns None")
        return result

    def _next(self, frames: list[Frame], end: int) -> Branch | Expression | None:
        """Continue with the next item of a loop, or at its end, the instruction with index ``end``."""
        frame = frames[-1]
        instructions, _ = instructions_of(frame.code)
        first, iterated = frame.position, frame.stack[-1]
        if not isinstance(iterated, _Items):
            raise NotProvedError
        if iterated.items or iterated.view is not None:
            self._check(iterated)
        if iterated.items:
            frame.stack[-1:] = [replace(iterated, items=iterated.items[1:]), self._viewed(iterated, iterated.items[0])]
            return None
        stored = names_in(frame.code, first, end, stored=True) & frame.locals.keys()
        if iterated.is_entered:
            left = [self._use(frame.locals[name]) for name in stored]
            return self._record("carried", (*left, *_expressions([frame.yielded])))
        sides = [frames]
        if iterated.items is None:  # the body stands for all steps, with any values of what it stores
            for name in stored:
                frame.locals[name] = self._record("carried", tuple(_expressions([frame.locals[name]])))
            built = (one for one in frame.stack if isinstance(one, Expression) and one.kind in {"list", "dict"})
            carried = {one: self._record("carried", (one,)) for one in built}
            frame.stack = [carried.get(one, one) if isinstance(one, Expression) else one for one in frame.stack]
            sides = [[other.copy() for other in frames], frames]
            item = self._record("next", self._use(iterated.of))
            sides[0][-1].stack[-1:] = [_Items(None, iterated.of, is_entered=True), item]
            frame.yielded = None
            self.leaves += 1
        frame.position = end + (instructions[end].opname == "END_FOR")
        if not ITERATOR_STAYS:
            frame.stack.pop()
        return Branch(item, *map(self._block, sides)) if len(sides) > 1 else None

    def _locate(self, error: NotProvedError, frames: list[Frame], instruction: Any) -> None:
        """Complete the reason by the line."""
        if error.reason is None or error.line is UNBOUND:
            return
        line = instruction.positions.lineno if instruction.positions else None
        code = next(one.code for one in frames[::-1] if one.code.co_name not in _COMPREHENSIONS or one is frames[0])
        if self.code is None or code is not self.code():
            error.reason += f" (line {line}, in {code.co_name})"
        elif line not in {None, code.co_firstlineno}:
            error.reason += f" (line {line})"
        error.line = UNBOUND  # type: ignore[assignment]  # it is in the reason now

    def _jump(self, frames: list[Frame], instruction: Any, indices: dict[int, int]) -> Branch | None:
        """Continue at the target of a jump, or do not; return the branch if that depends on the element."""
        frame = frames[-1]
        when, keeps = _JUMPS[instruction.opname]
        target = indices[instruction.argval]
        if target < frame.position and instructions_of(frame.code)[0][target].opname != "FOR_ITER":
            raise _EndError("it contains a loop whose number of steps is not known")
        if when is None:
            frame.position = target
            return None
        tested = frame.stack.pop()
        if when in {"None", "not None"}:
            test = self._is(tested, Constant(None), negated=when == "not None")
            truth: bool | None = self._truth(test)
        else:
            test, truth = tested, self._truth(tested)
            truth = truth if truth is None or when == "true" else not truth
        if truth is None:
            test = self._use(test)  # which may be an operation of this block
            self.leaves += 1
            jumping = [other.copy() for other in frames]
            jumping[-1].position = target
            if keeps:
                jumping[-1].stack.append(tested)
            jumped, passed = self._block(jumping), self._block(frames)
            are_unknown = isinstance(jumped.end, NotProvedError) and isinstance(passed.end, NotProvedError)
            if are_unknown and self.is_called is None:
                raise passed.end  # type: ignore[misc]  # it is an error
            sides = (jumped, passed) if when != "false" else (passed, jumped)
            return Branch(test, *sides)
        if truth:
            frame.position = target
            if keeps:
                frame.stack.append(tested)
        return None

    # Operations

    def _evaluate(self, place: Place, function: Any, operation: str, *operands: Any) -> Any:
        try:
            return self._operate(place, function, operation, *operands)
        except NotProvedError:
            if self.is_called is None or operation in {"unknown", "iterate"}:
                raise
            unknown = self._record("unknown", tuple(_expressions(operands)))
            return [unknown] * operands[1] if operation == "unpack" else unknown

    def _operate(self, place: Place, function: Any, operation: str, *operands: Any) -> Any:  # noqa: C901, PLR0912  # a table
        match operation, *operands:
            case "variable", Variable() as variable:
                value = variable.value_in(function)
                if value is UNBOUND:
                    raise NotProvedError
                return _Outside((*place, variable), value)
            case "attribute", owner, name:
                return self._attribute(owner, name)
            case "subscript", owner, key:
                return self._subscript(owner, key)
            case "call", called, arguments, keywords:
                return self._call(called, arguments, keywords)
            case "is", left, right, negated:
                return self._is(left, right, negated=negated)
            case "spread", called, arguments, keywords:
                items = self._items(arguments)
                if items is None:
                    raise NotProvedError("it calls a function with a number of arguments that is not known")
                return self._call(called, [*items], {} if keywords is None else self._keywords(keywords))
            case "iterate", Expression() as value if (view := self._view(value, "keys")) is not None:
                return view
            case "iterate", _Items(view=str()) as value:
                return value
            case "iterate", value:
                items = self._items(value)
                if items is None and self.is_called is None:
                    self._wait(value)
                    raise NotProvedError("it contains a loop whose number of steps is not known")
                return _Items(items, value, at=value.at if isinstance(value, _Items) else None)
            case "unpack", value, count:
                items = self._items(value)
                if items is not None and len(items) == count:
                    return [*items]
                whole = self._use(value)
                self._record("unpack", whole, count)
                return [self._record("item", whole, Expression("constant", (index,))) for index in range(count)]
            case (("tuple" | "list" | "slice"), values):
                return self._built(operation, values)
            case "dict", keys, values:
                return self._record("dict", tuple(map(self._use, keys)), tuple(map(self._use, values)))
            case "append", target, value:
                return self._extended(target, (value,))
            case "extend", target, value if (items := self._items(value)) is not None:
                return self._extended(target, items)
            case "as tuple", Expression("list", (parts,)):
                self._forget(operands[0])
                return self._built("tuple", parts)
            case "merge", Expression("dict", (keys, values)), other if (more := self._pairs(other)) is not None:
                self._forget(operands[0])
                return self._record("dict", (*keys, *more.keys()), (*values, *map(self._use, more.values())))
            case "add", Expression("dict", (keys, values)), key, value:
                self._forget(operands[0])
                return self._record("dict", (*keys, self._use(key)), (*values, self._use(value)))
            case "add", target, key, value:
                item = self._record("dict", (self._use(key),), (self._use(value),))
                return self._record("merge", self._use(target), item)
            case "text", made_by, values:
                return self._text(made_by, tuple(map(self._use, values)))
            case (("merge" | "extend" | "store" | "delete"), *values):
                if isinstance(values[0], _Outside) and self.is_called is None:
                    raise NotProvedError(
                        f"it modifies an object outside of it, of type {class_name(type(values[0].value))}"
                    )
                return self._record(operation, *map(self._use, values))
            case "contains", container, value, negated:
                return self._contains(container, self._use(value), negated=negated)
            case "unary", symbol, value:
                return self._operator(symbol, self._number(value))
            case "binary", symbol, Expression("list" | "extend"), _ if _is_in_place(symbol):
                raise NotProvedError("it modifies a list")
            case "binary", symbol, left, right:
                return self._operator(symbol, self._number(left), self._number(right))
            case "unknown", opname:
                raise NotProvedError(_UNKNOWN.get(opname))
        raise NotProvedError

    def _operator(self, symbol: str, *operands: Expression) -> Expression:
        if symbol in _FOLDED and not self._may_differ():
            found = _folded(lambda *values: column_operations.operate_on_constants(symbol, values), operands)
            if found is not None:
                return found
        return self._record("operator", symbol, *operands)

    def _text(self, made_by: Any, parts: tuple[Expression, ...]) -> Any:
        if (found := _folded(made_by, parts)) is not None:
            return found
        if self.is_called is not None:
            raise NotProvedError("it formats a string")
        return self._record("call", made_by, parts, (), ())

    def _contains(self, container: Any, value: Expression, *, negated: bool) -> Expression:
        """Return whether a container holds a value: a constant, if both are known."""
        is_table = isinstance(container, _Outside) and type(container.value) in _TABLES and value.is_constant
        if is_table and self.is_called is None:
            container = self._built("tuple", self._items_outside(container))
        whole = self._use(container)
        if whole.is_constant and type(whole.operands[0]) in {tuple, frozenset} and not self._may_differ():
            items = [Expression("constant", (item,)) for item in whole.operands[0]]
            if (found := _folded(lambda text, *others: (text in others) != negated, [value, *items])) is not None:
                return found
        return self._record("contains", whole, value, negated)

    # Loops and containers

    def _items(self, value: Any) -> tuple[Any, ...] | None:
        """Return the items of a value; None if it is not a container whose items are known."""
        match value:
            case tuple():
                return value
            case _Items():
                self._check(value)
                if value.is_iterator:
                    self.consumed.add(value)
                if value.view is None:
                    return value.items
                return tuple(self._viewed(value, key) for key in value.items or ())
            case _Outside(_, found) if type(found) in _CONTAINERS and self.is_called is None:
                return self._items_outside(value)
            case Constant(tuple() as found) | Expression("constant", (tuple() as found,)):
                return tuple(map(Constant, found))
            case Expression("tuple", (parts,)) | Expression("build", (_, parts)):
                return tuple(parts)
            case Expression("list", (parts,)) if self.is_called is None:  # evaluate.py does not modify lists
                return tuple(parts)
            case Expression() if (view := self._view(value, "keys")) is not None:
                return self._items(view)
        return None

    def _items_outside(self, container: _Outside) -> tuple[Any, ...]:
        step, found = Step("keys"), container.value
        keys = UNBOUND if len(found) > _STEPS_MAX else step.value_in(found)
        if keys is UNBOUND:
            raise NotProvedError("it contains a loop over a large container, or over one of objects")
        self._note(_Outside((*container.place, step), None), keys)
        if type(found) is not list and type(found) is not tuple:
            return tuple(map(Constant, found))
        return tuple(_Outside((*container.place, Step("item", n)), item) for n, item in enumerate(found))

    def _view(self, owner: Expression, view: str) -> _Items | None:
        """Return the keys, values or items of a dict; None if its keys are unknown."""
        names = self._keys_of(owner) if self.is_called is None else None
        return None if names is None else _Items(tuple(map(Constant, names)), owner, view, names)

    def _viewed(self, items: _Items, item: Any) -> Any:
        """Return what an iterator gives for one of its items. The values of a dict are read when they are used."""
        if items.view in {None, "keys"}:
            return item
        value = self._record("item", items.of, self._use(item))
        return value if items.view == "values" else (item, value)

    def _keys_of(self, owner: Expression) -> tuple[str, ...] | None:
        """Return the keys that a dict probably has: evaluate.py checks them."""
        match owner:
            case Expression("dict", (keys, _)) if all(key.is_constant for key in keys):
                return tuple(dict.fromkeys(key.operands[0] for key in keys))
            case Expression("merge", (first, second)) | Expression("operator", ("|", first, second)):
                mine, more = self._keys_of(first), self._keys_of(second)
                return None if mine is None or more is None else tuple(dict.fromkeys((*mine, *more)))
            case Expression("method", (whole, "copy", *_)):
                return self._keys_of(whole)
            case Expression("twin", (twin, _, *given)) if parses_records(twin):
                return tuple(given[0] if given else twin.args[0].features)
            case Expression("argument" | "item"):
                structure: Any = self._structure_of(owner)
                return structure.keys if structure is not None and is_dict(structure) else None
        return None

    def _wait(self, value: Any) -> None:
        """Note that the keys of an argument, or of a part of it, are used, if they may be known later."""
        self.waits |= self.structure is None and isinstance(value, Expression) and value.kind in _DICTS

    def _structure_of(self, value: Expression) -> Structure | None:
        """Return the structure of an argument or a part of it; None if it is unknown."""
        if value.kind == "argument":
            if self.structure is None or not is_tuple(self.structure):
                return self.structure
            position: int = value.operands[0]
            return self.structure.children[position]
        if value.kind != "item" or (whole := self._structure_of(value.operands[0])) is None:
            return None
        key, names = value.operands[1], whole.child_keys()
        is_part = key.is_constant and type(key.operands[0]) in {str, int} and key.operands[0] in names
        return whole.children[list(names).index(key.operands[0])] if is_part else None

    def _check(self, items: _Items) -> None:
        """Check that an iterator has not been used, and that its items would be the same now."""
        if items.view is not None:
            self._record("keys", items.of, items.names)
        if items in self.consumed:
            raise NotProvedError("it uses an iterator twice")
        if items.at not in {None, self.changes}:
            raise NotProvedError("it modifies something while it uses an iterator")

    def _pairs(self, value: Any) -> dict[Expression, Any] | None:
        """Return the values of a dict by the expressions of its keys; None if they are not known."""
        if isinstance(value, _Outside) and type(value.value) is dict and (names := self._items(value)) is not None:
            return {self._use(name): self._subscript(value, name) for name in names}
        return None

    def _forget(self, value: Any) -> None:
        """Remove the operation that made a container, from which another one is made that replaces it."""
        if value in self.operations:
            self.operations.remove(value)

    def _extended(self, target: Any, items: Sequence[Any]) -> Expression:
        parts = tuple(map(self._use, items))
        if isinstance(target, Expression) and target.kind == "list":
            self._forget(target)
            return self._record("list", (*target.operands[0], *parts))
        return self._record("extend", self._use(target), self._record("list", parts))

    def _keywords(self, value: Any) -> dict[str, Any]:
        match value:
            case Expression("dict", (keys, values)) if all(key.is_constant for key in keys):
                self._forget(value)  # a new dict
                given = {key.operands[0]: one for key, one in zip(keys, values, strict=True)}
                if len(given) == len(keys):
                    return given
            case Expression("merge", (_, other)):
                if (view := self._view(value, "items")) is not None:
                    return {key.value: item for key, item in self._items(view) or ()}
                self._wait(other)
        raise NotProvedError("it calls a function with keyword arguments that are not known")

    def _record(self, kind: str, *operands: Any) -> Expression:
        expression = Expression(kind, operands)
        is_change = kind in _CHANGES or (kind == "operator" and _is_in_place(operands[0]))
        self.changes += is_change or (not self.enters_all and kind not in _PURE)  # which may run user code
        self.operations.append(expression)
        return expression

    def _built(self, kind: str, values: Sequence[Any]) -> Expression:
        parts = tuple(map(self._use, values))
        if kind == "slice" and all(part.is_constant for part in parts):
            return Expression("constant", (slice(*(part.operands[0] for part in parts)),))
        if kind == "tuple" and all(part.is_constant for part in parts):
            return Expression("constant", (tuple(part.operands[0] for part in parts),))
        return self._record(kind, parts)

    def _use(self, value: Any) -> Expression:
        """Return the expression for an abstract value, and note what it reads."""
        if isinstance(value, Expression):
            return value
        if isinstance(value, tuple):
            return self._built("tuple", value)
        if isinstance(value, _Items) and value.items is None:
            return self._use(value.of)
        if isinstance(value, Constant):
            return Expression("constant", (value.value,))
        if isinstance(value, _Attribute):
            if self.is_called is None and value.name not in column_operations.KNOWN_ATTRIBUTES:
                raise NotProvedError(f"it uses the attribute {value.name} of a value")
            return self._record("attribute", value.owner, value.name)
        if not isinstance(value, _Outside):
            raise NotProvedError
        known = self.values.get(value.place)
        if known is None:
            known = self.values[value.place] = self._read(value)
        return known

    def _read(self, outside: _Outside) -> Expression:
        kind = kind_of(outside.value)
        if kind is None and not _is_safe(outside.value) and self.is_called is None:
            raise NotProvedError(_what_was_read(outside))
        self._note(outside, outside.value if kind is None else kind)
        if kind is None:
            return Expression("constant", (outside.value,))
        return Expression("read", (outside.place,))

    def _note(self, outside: _Outside, expected: Any) -> None:
        self.reads[outside.place] = Read(outside.place, expected, outside.is_of_library)

    def _number(self, value: Any) -> Expression:
        """Return the operand of an operator, which must not be an object with operators of its own."""
        found = self._use(value)
        one = found.operands[0] if found.is_constant else 0
        is_dtype = isinstance(one, np.dtype) or (type(one) is type and one in column_operations.SCALARS)
        is_object = kind_of(one) is None and type(one) not in _OPERANDS and not is_dtype
        if self.is_called is None and is_object:
            raise NotProvedError(_what_was_read(value) if isinstance(value, _Outside) else None)
        return found

    def _truth(self, value: Any) -> bool | None:
        """Return the truth of a value, if it is the same for all elements; then the proof depends on it."""
        if isinstance(value, _Outside):
            if self._may_differ():
                return None
            kind = kind_of(value.value)
            if has_fixed_truth(value.value):
                truth = bool(value.value)
                self._note(_Outside((*value.place, _TRUTH), truth), _TRUTH.value_in(value.value))
                return truth
            if kind is None and (type(value.value) in _TESTED or type(value.value) in {FunctionType, MethodType, type}):
                self._note(value, value.value)
                return bool(value.value)
        if isinstance(value, Constant):
            value = self._use(value)
        if isinstance(value, Expression) and value.is_constant and type(value.operands[0]) in _TESTED:
            return bool(value.operands[0])
        return None

    def _may_differ(self) -> bool:
        """Return whether a trace has called user code, which may have changed what the function reads."""
        return not self.enters_all and self.changes > 0

    def _require_same(self, called: Any) -> None:
        """Check that a function is still the one that was found, if it is in an object."""
        found = called.owner if isinstance(called, _Method) else called
        if isinstance(found, _Outside) and self._may_differ() and not found.is_of_library:
            step = found.place[-1] if found.place else None
            if isinstance(step, Step) and step.kind in {"attribute", "item"}:
                raise NotProvedError

    def _is(self, left: Any, right: Any, *, negated: bool) -> Expression:
        mine, other = self._use(left), self._use(right)
        if mine.is_constant and other.is_constant and not self._may_differ():
            return Expression("constant", ((mine.operands[0] is other.operands[0]) != negated,))
        return self._record("is", mine, other, negated)

    def _attribute(self, owner: Any, name: str) -> Any:
        is_text = isinstance(owner, _Outside) and type(owner.value) in text_operations.TEXTS
        if isinstance(owner, _Outside) and kind_of(owner.value) is None and not is_text:
            step = Step("attribute", name)
            found = step.value_in(owner.value)
            if found is not UNBOUND:
                return _Outside((*owner.place, step), found, _is_library(owner.value))
            if type(owner.value) is dict and name in {"items", "keys", "values", "get"}:
                return _Method(name, owner)
            is_class = type(owner.value) is type
            for kind in ("method", "static", "class method"):
                step = Step(kind, name)
                found = step.value_in(owner.value)
                if type(found) is FunctionType:
                    function = _Outside((*owner.place, step), found)
                    if kind == "class method":
                        cls = owner if is_class else _Outside((*owner.place, Step("class")), type(owner.value))
                        return _Method(function, cls)
                    return _Method(function, owner) if kind == "method" and not is_class else function
            raise NotProvedError(_what_was_read(owner))
        if isinstance(owner, Expression) and owner.kind == "build" and name in _FIELDS.value_in(owner.operands[0]):
            cls, parts = owner.operands
            return parts[_FIELDS.value_in(cls).index(name)]
        if isinstance(owner, _Attribute | _Method):
            owner = self._use(owner)
        return _Attribute(self._use(owner), name)

    def _subscript(self, owner: Any, key: Any) -> Any:
        index = self._use(key)
        if isinstance(owner, _Outside) and type(owner.value) in {dict, list, tuple}:
            if index.is_constant and type(index.operands[0]) in {str, int, bytes}:
                step = Step("item", index.operands[0])
                found = step.value_in(owner.value)
                if found is UNBOUND:
                    raise NotProvedError
                return _Outside((*owner.place, step), found)
            return self._look_up(owner, index)
        return self._record("item", self._use(owner), index)

    def _look_up(self, table: _Outside, *operands: Any) -> Expression:
        """Return what a dict, list or tuple contains at a computed key, or the default."""
        if self.is_called is not None:
            raise NotProvedError(_what_was_read(table))
        kind = _Outside((*table.place, Step("class")), type(table.value))
        self._note(kind, kind.value)
        return self._record("lookup", Expression("read", (table.place,)), *map(self._use, operands))

    # Calls

    def _call(self, called: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        self._require_same(called)
        if isinstance(called, LocalFunction):
            return self._enter_local(called, arguments, keywords)
        if isinstance(called, _Method) and type(called.function) is str:
            return self._call_of_dict(called.owner, called.function, arguments, keywords)
        if isinstance(called, _Method):
            if self.is_called is not None and self.is_called(called.function.value):
                return self._call_outside(called.function, [called.owner, *arguments], keywords)
            return self._enter(called.function, [called.owner, *arguments], keywords)
        if isinstance(called, _Attribute):
            return self._call_method(called, arguments, keywords)
        if not isinstance(called, _Outside):
            raise NotProvedError("it calls a computed value")
        return self._call_outside(called, arguments, keywords)

    def _call_method(self, called: _Attribute, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if called.name in {"keys", "values", "items"} and not arguments and not keywords:
            if (view := self._view(called.owner, called.name)) is not None:
                return view
            self._wait(called.owner)
        if self.is_called is None and called.name not in _METHODS:
            raise NotProvedError(f"it calls the method {called.name}()")
        given = self._given(map(self._sequence, arguments) if called.name == "join" else arguments, keywords)
        if called.name in text_operations.KNOWN_METHODS and not keywords:
            found = _folded(lambda text, *values: getattr(text, called.name)(*values), [called.owner, *given[0]])
            if found is not None:
                return found
        return self._record("method", called.owner, called.name, *given)

    def _call_of_dict(self, owner: _Outside, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if name == "get" and len(arguments) == 2 and not keywords:
            key = self._use(arguments[0])
            if not key.is_constant or self.is_called is not None or type(key.operands[0]) not in {str, int, bytes}:
                return self._look_up(owner, *arguments)
            self._items_outside(owner)
            return self._subscript(owner, key) if key.operands[0] in owner.value else arguments[1]
        pairs = None if name == "get" else self._pairs(owner)
        if pairs is None or arguments or keywords:
            raise NotProvedError
        return _Items(tuple(getattr(pairs, name)()))

    def _call_outside(self, called: _Outside, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        function = called.value
        if (of_items := self._of_items(function, arguments, keywords)) is not None:
            self._note(called, function)
            return of_items
        if self.is_called is not None and self.is_called(function):
            self._use(called)
            return self._record("call", function, *self._given(arguments, keywords))
        if (found := _twin_of(function)) is not None:
            return self._call_twin(called, *found, arguments, keywords)
        if function is dict and len(arguments) < 2 and (items := self._dict_of(arguments, keywords)) is not None:
            self._use(called)
            return items
        if self._is_known(function):
            self._use(called)
            arguments = [*map(self._sequence, arguments)] if function in _ITERATING else arguments
            return self._record("call", function, *self._given(arguments, keywords))
        if self.is_called is None and (function is tuple.__new__ or _FIELDS.value_in(function) is not UNBOUND):
            return self._call_named_tuple(called, arguments, keywords)
        return self._call_object(called, arguments, keywords)

    def _dict_of(self, arguments: list[Any], keywords: dict[str, Any]) -> Expression | None:
        """Return a dict of another one or of pairs, and of keyword arguments."""
        names = tuple(Expression("constant", (name,)) for name in keywords)
        named = names, tuple(map(self._use, keywords.values()))
        if not arguments:
            return self._record("dict", *named)
        (given,) = arguments
        if self.is_called is not None:
            return None
        if isinstance(given, _Items):
            pairs = [self._items(pair) or () for pair in self._items(given) or ()]
            if any(len(pair) != 2 for pair in pairs):
                return None
            keys, values = ([self._use(pair[at]) for pair in pairs] for at in (0, 1))
            return self._record("dict", (*keys, *named[0]), (*values, *named[1]))
        if not isinstance(given, Expression) or self._keys_of(given) is None:
            self._wait(given)
            return None
        copied = self._record("merge", self._record("dict", (), ()), given)
        return self._record("merge", copied, self._record("dict", *named)) if names else copied

    def _is_known(self, function: Any) -> bool:
        """Return whether a call of a function is one operation. In a trace, formatting may call methods of the user."""
        return _is_known(function) and (self.is_called is None or function not in text_operations.FORMATTERS)

    def _call_named_tuple(self, called: _Outside, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Return a named tuple: the result of its class, or of ``tuple.__new__``, which the class calls."""
        if called.value is not tuple.__new__:
            made_by = _Outside((*called.place, _NEW), _NEW.value_in(called.value))
            if type(made_by.value) is FunctionType:
                return self._enter(made_by, [called, *arguments], keywords)
            raise NotProvedError
        cls, items = arguments[0], self._items(arguments[-1])
        names: Any = _FIELDS.value_in(cls.value) if isinstance(cls, _Outside) else UNBOUND
        if items is None or names is UNBOUND or len(items) != len(names) or keywords:
            raise NotProvedError
        self._forget(arguments[-1])
        self._note(called, called.value)
        self._note(cls, cls.value)
        self._note(_Outside((*cls.place, _FIELDS), names), names)
        return self._record("build", cls.value, tuple(map(self._use, items)))

    def _call_object(self, called: _Outside, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Return the result of a function, a method, a partial or a callable object whose code is read."""
        place, function = called.place, called.value
        if type(function) is functools.partial:
            step = Step("names")
            self._note(_Outside((*place, step), None), step.value_in(function))
            given = [_Outside((*place, Step("given", n)), value) for n, value in enumerate(function.args)]
            named = {
                name: _Outside((*place, Step("keyword", name)), value) for name, value in function.keywords.items()
            }
            inner = _Outside((*place, Step("called")), function.func)
            return self._call(inner, [*given, *arguments], named | keywords)
        if type(function) is MethodType and type(function.__func__) is FunctionType:  # others have no code to read
            owner = _Outside((*place, Step("self")), function.__self__)
            return self._enter(_Outside((*place, Step("function")), function.__func__), [owner, *arguments], keywords)
        if type(function) is FunctionType:
            return self._enter(called, arguments, keywords)
        step = Step("method", "__call__")
        method = step.value_in(function)
        if type(method) is not FunctionType:
            raise NotProvedError(_why_unknown(function) or f"it calls {_name_of(function)}()")
        return self._enter(_Outside((*place, step), method), [called, *arguments], keywords)

    def _sequence(self, value: Any) -> Any:
        """Return the items of an iterator for a function that takes any iterable."""
        items = self._items(value) if isinstance(value, _Items) else None
        return value if items is None else items

    def _given(self, arguments: Iterable[Any], keywords: dict[str, Any]) -> tuple[Any, ...]:
        names = tuple(keywords)
        return tuple(map(self._use, arguments)), names, tuple(map(self._use, keywords.values()))

    def _call_twin(
        self, called: _Outside, twin: Any, names: Sequence[str], arguments: list[Any], keywords: dict[str, Any]
    ) -> Expression:
        given = dict(zip(names, arguments, strict=False)) | keywords
        if len(arguments) + len(keywords) != len(names) or given.keys() != set(names):
            raise NotProvedError(f"it calls {called.value.__name__}() with other arguments than {', '.join(names)}")
        self._use(called)
        part, *others = (self._use(given[name]) for name in names)
        if part.kind in {"constant", "read"} or not all(other.is_constant for other in others):
            raise NotProvedError
        return self._record("twin", twin, part, *(other.operands[0] for other in others))

    def _enter(self, called: _Outside, arguments: list[Any], keywords: dict[str, Any]) -> _Entered:
        """Return a frame for a call of a plain Python function."""
        place, function = called.place, called.value
        code = function.__code__
        is_given = any(isinstance(one, Expression) and not one.is_constant for one in (*arguments, *keywords.values()))
        if is_unusual(code) or code.co_flags & GENERATOR or (place and not is_given and not self.enters_all):
            raise NotProvedError(f"it calls {function.__name__}(), whose code is only run for single elements")
        if place:
            self._note(_Outside((*place, _CODE), code), code)  # which may be that of another function object later
        else:
            self.code = weakref.ref(code)
        evaluate = functools.partial(self._evaluate, place, function)
        return self._entered(code, evaluate, arguments, keywords, functools.partial(self._default, called))

    def _enter_local(self, called: LocalFunction, arguments: list[Any], keywords: dict[str, Any]) -> _Entered:
        """Return a frame for a call of a function that the code creates."""
        if is_unusual(called.code):
            raise NotProvedError
        defaults = (None if called.defaults is None else self._items(called.defaults)) or ()
        names = called.code.co_varnames[len(arguments) : called.code.co_argcount]
        optional = dict(zip(names[::-1], defaults[::-1], strict=False))
        entered = self._entered(called.code, called.evaluate, arguments, optional | keywords)
        entered.frame.locals |= called.free
        return entered

    def _entered(
        self, code: CodeType, evaluate: Any, arguments: list[Any], keywords: dict[str, Any], default: Any = None
    ) -> _Entered:
        count = code.co_argcount
        names = code.co_varnames[: count + code.co_kwonlyargcount]
        rest = code.co_varnames[len(names) : len(names) + bool(code.co_flags & VARIADIC)]
        if len(arguments) > count and not rest:
            raise NotProvedError
        given = dict(zip(names[:count], arguments, strict=False))
        if not keywords.keys() <= set(names[code.co_posonlyargcount :]) or keywords.keys() & given.keys():
            raise NotProvedError
        given |= keywords
        for position, name in enumerate(names):
            if name not in given:
                if default is None:
                    raise NotProvedError
                given[name] = default(position, name)
        given |= dict.fromkeys(rest, tuple(arguments[count:]))
        frame = Frame(code, evaluate, given)
        frame.handled = frozenset() if self.is_called is None else names_in_handlers(code)
        return _Entered(frame)

    def _of_items(self, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Return the result of a builtin for containers whose items are known; otherwise None."""
        if type(function) is type:
            return self._iterated(function, arguments, keywords) if function in _OF_ITEMS else None
        is_sorted = function is sorted and self.is_called is None
        items = self._items(arguments[0]) if (function is len or is_sorted) and len(arguments) == 1 else None
        if items is None or keywords:
            self._wait(arguments[0] if is_sorted and arguments else None)
            return None
        if not is_sorted:
            return None if isinstance(arguments[0], _Items) and arguments[0].is_iterator else Constant(len(items))
        found = _folded(lambda *values: tuple(sorted(values)), [*map(self._use, items)])
        return None if found is None else self._built("list", self._items(found) or ())

    def _iterated(self, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Return the result of a function that iterates over its arguments, or counts."""
        if function is map and len(arguments) == 2:
            evaluate = functools.partial(self._evaluate, (), _mapped)
            return self._enter_local(LocalFunction(_mapped.__code__, evaluate, {}), arguments, keywords)
        named = {zip: {"strict"}, enumerate: {"start"}}.get(function, set())
        options = arguments if function is range else [*arguments[1:] * (function is enumerate), *keywords.values()]
        values: list[Any] = list(map(self._number_of, options))
        if not keywords.keys() <= named or None in values:
            return None
        if function is range:
            is_known = values and values[2:] != [0] and len(range(*values)) <= _STEPS_MAX
            return _Items(tuple(map(Constant, range(*values)))) if is_known else None
        given = arguments[: None if function is zip else 1]
        iterators = [one for one in given if isinstance(one, _Items) and one.is_iterator]
        found = [items for items in map(self._items, given) if items is not None]
        if not found or len(found) < len(given) or (iterators and function is reversed):
            for value in given:
                self._wait(value)
            return None
        if any(values) and function is zip and len({*map(len, found)}) > 1:
            return None
        if function is tuple or function is list:
            return self._built(function.__name__, found[0])
        if function is enumerate:
            start = sum(values)
            found = [tuple(map(Constant, range(start, start + len(found[0])))), *found]
        items = found[0][::-1] if function is reversed else tuple(zip(*found, strict=False))
        may_change = any(_is_dict(one) for one in given) or any(one.at is not None for one in iterators)
        at = self.changes if may_change else None
        return _Items(items, is_iterator=True, at=at)

    def _number_of(self, value: Any) -> int | None:
        """Return the value of an integer that is known before the function is called; then the proof depends on it."""
        if isinstance(value, _Outside) and type(value.value) is int:
            step = Step("exactly")
            self._note(_Outside((*value.place, step), None), step.value_in(value.value))
            return value.value
        known = value.value if isinstance(value, Constant) else None
        if isinstance(value, Expression) and value.is_constant:
            known = value.operands[0]
        return known if type(known) is int or type(known) is bool else None

    def _default(self, called: _Outside, position: int, name: str) -> _Outside:
        function = called.value
        step: Any = Step("keyword default", name)
        if position < function.__code__.co_argcount:
            step = Variable("default", name, position - arity_of(function))
        is_missing = isinstance(step, Variable) and step.position < 0
        value = UNBOUND if is_missing else step.value_in(function)
        if value is UNBOUND:
            raise NotProvedError
        return _Outside((*called.place, step), value)


def _is_dict(value: Any) -> bool:
    """Return whether an abstract value with known items is a dict or a view of one."""
    if isinstance(value, _Items):
        return value.view is not None
    return isinstance(value, Expression) and value.kind not in {"tuple", "list", "build", "constant"}


def _is_in_place(symbol: str) -> bool:
    return symbol[-1] == "=" and symbol not in {"==", "!=", "<=", ">="}


def _mapped(function: Any, values: Any) -> Any:
    """Return what ``map`` returns."""
    return (function(value) for value in values)


def _folded(function: Callable[..., Any], parts: Sequence[Expression]) -> Expression | None:
    """Return what a function without effects gives for constants that are text or integers; None for others."""
    if all(part.is_constant and type(part.operands[0]) in {str, int} for part in parts):
        with contextlib.suppress(Exception):  # the function raises it
            return Expression("constant", (function(*(part.operands[0] for part in parts)),))
    return None


class _EndError(NotProvedError):
    """Internal error: a function has a loop, or more operations than a graph may have, on any side of a branch."""


_CODE, _TRUTH, _FIELDS, _NEW = Step("code"), Step("truth"), Step("fields"), Step("static", "__new__")
_TESTED = frozenset({type(None), str, bytes, tuple, dict, int, float, bool})
_CONTAINERS, _OF_ITEMS = frozenset({tuple, list, dict}), frozenset({tuple, list, zip, enumerate, reversed, range, map})
_ITERATING = frozenset({sum, min, max})
_DICTS = frozenset({"argument", "item", "merge", "method", "operator"})
_TABLES = frozenset({dict, list, set, frozenset})
_COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<genexpr>"})
_READS_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec", "f_locals"})
_CHANGES = frozenset({"store", "delete", "method", "unknown"})
_PURE = frozenset({"call", "twin", "tuple", "list", "dict", "slice", "build"})
_FOLDED = frozenset({"+", "-", "*", "//", "%", "<", "<=", "==", "!=", ">", ">="})
_OPERANDS = frozenset({tuple, str, bytes})

_JUMPS: dict[str, tuple[str | None, bool]] = {
    "JUMP_FORWARD": (None, False),
    "JUMP_BACKWARD": (None, False),
    "JUMP_BACKWARD_NO_INTERRUPT": (None, False),
    "JUMP_IF_FALSE_OR_POP": ("false", True),
    "JUMP_IF_TRUE_OR_POP": ("true", True),
    **{
        f"POP_JUMP_{way}IF_{name.upper().replace(' ', '_')}": (name, False)
        for way in ("", "FORWARD_", "BACKWARD_")
        for name in ("true", "false", "None", "not None")
    },
}
"""When each instruction jumps, and whether it then leaves the tested value on the stack."""

_LOCALS_MAX = 256  # so that the operand of an instruction can name each of them
_JUMPING = frozenset({*dis.hasjrel, *dis.hasjabs})

_UNKNOWN = {
    "MAKE_FUNCTION": "it contains a function of its own",
    "RAISE_VARARGS": "it raises an exception",
}
"""Reasons why some instructions are not part of a graph."""


def _twin_of(function: Any) -> tuple[Any, tuple[str, ...]] | None:
    """Return the twin of a function for columns and the names of its parameters, or None."""
    if type(function) is BuiltinFunctionType:
        found = TWINS_OF_BUILTINS.get(function)
        return None if found is None else found()
    if type(function) is FunctionType:
        twin = vars(function).get(TWIN)
        return None if twin is None else (twin, function.__code__.co_varnames[:2])
    twin = type.__getattribute__(type(function), "__dict__").get(TWIN)
    if twin is None:
        return None
    bound = functools.partial(twin, function)
    setattr(bound, TAKES_BLOCKS, parses_records(twin))
    return bound, ("serialized",)


def _is_safe(value: Any) -> bool:
    """Return whether a value may be passed to functions of NumPy and of this package: no user code belongs to it."""
    kind = type(value)
    if kind is tuple:
        return all(kind_of(item) is not None or _is_safe(item) for item in value)
    if kind in _PLAIN or kind is dict or issubclass(kind, np.dtype) or value is dict:
        return True
    return _is_known(value) or (kind is type and value in _TYPES) or _twin_of(value) is not None


def _is_known(function: Any) -> bool:
    if type(function) not in _CALLABLES:  # isinstance() would look up the __class__ of an object
        return False
    is_of_columns = column_operations.is_known(function) or column_operations.is_pure(function)
    return is_of_columns or function is isinstance or function in text_operations.FORMATTERS


_CALLABLES = frozenset({FunctionType, BuiltinFunctionType, type, np.ufunc, type(np.sum)})


def _is_library(value: Any) -> bool:
    return type(value) is ModuleType and str(vars(value).get("__name__")).partition(".")[0] in {"numpy", "dataset"}


def _what_was_read(outside: _Outside) -> str | None:
    """Return the reason why a value that the function reads is not supported."""
    value, step = outside.value, outside.place[-1] if outside.place else None
    if callable(value) or type(value) is ModuleType or step is None:
        return _why_unknown(value)
    kind = class_name(type(value))
    if isinstance(step, Variable):
        what = {"global": "the global", "closure": "the variable", "default": "the default of"}[step.source]
        return f"it reads {what} {step.name}, of type {kind}; only numbers and arrays of numbers are safe"
    return f"it reads {step.name!r} of an object, of type {kind}; only numbers and arrays of numbers are safe"


def _why_unknown(function: Any) -> str | None:
    return column_operations.why_unknown(function) if type(function) in _CALLABLES else None


def _name_of(function: Any) -> str:
    return str(function.__name__) if type(function) in _CALLABLES else class_name(type(function))

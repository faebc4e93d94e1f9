"""Node and operator of from_generator(generator): the values of a Python generator, rerun for each iteration."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any, ClassVar

from dataset.amounts import STEP_ELEMENTS
from dataset.errors import ClosedError
from dataset.plan.checks import require_callable
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.plan.origin import function_name
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk, Outcome, read_only_component
from dataset.runtime.chunks.lineage import LineageWriter
from dataset.runtime.chunks.normalization import canonical_component
from dataset.runtime.chunks.ownership import WRITTEN, collect, collect_by_python
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import Operator, StoppingOperator
from dataset.runtime.functions.signature_rows import SignatureRows
from dataset.runtime.iteration.probing import probed_spec
from dataset.runtime.parallel.blocks import Block
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.parallel.row_writer import RowWriter
from dataset.runtime.position import Position
from dataset.runtime.resources.exceptions import with_location
from dataset.world.interrupts import call, interruptible

_ENDED = "this exception ended the generator, as in plain Python: no element comes after it"


@dataclass(frozen=True, eq=False)
class Generator(Node, pure=False):
    """Source node over ``iter(function(*arguments))``."""

    op: ClassVar[str] = "from_generator"
    function: Callable[..., Iterable[Any]]
    arguments: tuple[Any, ...] = field(default=(), repr=False)
    signature: Any = None
    method: str = field(default="from_generator", kw_only=True, repr=False)
    """The name of the source's Dataset method, for messages and plans."""
    write_into_batch: bool = field(default=False, kw_only=True, repr=False)
    """Set by the optimizer if the values will be written into the arrays of a batch downstream."""

    def __post_init__(self) -> None:
        if isinstance(self.function, Iterator):
            raise TypeError(
                f"from_generator(): generator must be a function that returns an iterable, got {self.function!r}, "
                "which can be iterated only once: pass the function without calling it, and its arguments in args"
            )
        require_callable("from_generator", "generator", self.function)
        if not isinstance(self.arguments, tuple | list):
            raise TypeError(f"from_generator(): args must be a tuple, got {self.arguments!r}")
        self._set("arguments", tuple(map(_argument, self.arguments)))

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(static_spec=self.signature is not None)

    def parameters(self) -> dict[str, Any]:
        return {"function": self.function, "arguments": self.arguments, "signature": repr(self.signature)}

    def _element_spec(self) -> Any:
        return probed_spec(self) if self.signature is None else self.signature

    def label(self) -> str:
        return f"{self.method}({function_name(self.function)})"

    def annotation(self) -> str:
        return "into arrays" if self.write_into_batch else ""

    def lower(self, context: ExecutionContext) -> Operator:
        rows = SignatureRows(f"{self.label()} yielded", self.signature)
        operator = GeneratorOperator(self, rows, source_lineage(context, self, op=self.method))
        operator.write_into_batch = self.write_into_batch
        return operator


class GeneratorOperator(StoppingOperator):
    """Operator that runs the generator from the first pull to its end.

    A generator that raises has ended, as in plain Python: its exception follows the values it yielded, and then comes
    the end. An iterator of a user-defined class may continue.
    A saved state is the number of values returned. To resume, the generator is rerun and this many values are discarded
    without being converted. The same happens after an interrupt, which ends a generator and may lose the value that it
    was about to yield.
    """

    write_into_batch = False

    def __init__(self, node: Any, rows: SignatureRows, lineage: LineageWriter | None = None) -> None:
        self.node = node
        self._lineage = lineage
        self._left = 0  # values to discard before the position
        self._values: Any = None  # an iterator
        self._interrupted: Any = None  # the iterator that was interrupted, until another one is at the position
        self._writer = RowWriter()
        self._ready = OutcomeQueue()
        self._ended = False
        self._rows = rows
        self._is_last: Callable[[Any], bool] | None = None  # see pull_until

    def pull(self, n: int) -> Chunk | None:
        while not self._ready:
            if self._ended:
                return None
            chunk = self._advance(n)
            if chunk is not None:
                return chunk
        return self._ready.give(n)

    def pull_until(self, n: int, is_last: Callable[[Any], bool]) -> Chunk | None:
        self._is_last = is_last
        try:
            return self.pull(n)
        finally:
            self._is_last = None

    def _advance(self, n: int) -> Chunk | None:
        """Take up to ``n`` values. Usually returns them as a chunk; otherwise puts the results into ``_ready``."""
        rows: list[Any] = []
        failure: BaseException | None = None
        try:
            if self._values is None:
                self._start()
            self._collect(rows, n)
        except StopIteration:
            self._ended = True
        except (Exception, GeneratorExit) as error:  # noqa: BLE001  # raised at its position
            self._end_with(error)
            failure = error
        except BaseException:  # an interrupt is raised immediately and loses nothing
            chunk = self._convert(rows) if rows else None
            if chunk is not None:
                self._ready.put(chunk)
            if self._values is not None:
                self._values, self._interrupted = None, self._values
            raise
        try:
            chunk = self._convert(rows) if rows else None
            if failure is None:
                return chunk
            if chunk is not None:
                self._ready.put(chunk)
            self._fail(failure)
        finally:
            del failure
        return None

    def _end_with(self, error: BaseException) -> None:
        """End the iteration after an exception, unless the values may continue."""
        if self._left and isinstance(error, ClosedError):  # the position was not reached, and the next pull tries again
            self._values = None
            raise error
        is_generator = isinstance(self._values, GeneratorType)
        self._ended = is_generator or self._values is None
        if is_generator and _ENDED not in getattr(error, "__notes__", ()):
            error.add_note(_ENDED)

    def _start(self) -> None:
        """Run the generator, up to the position of a saved state or an interrupt."""
        self._left = self.at
        values = call(self._open)
        if self._left and values is self._interrupted:
            raise self._too_few(0)
        self._values = values
        while self._left:
            rows: list[Any] = []
            try:
                self._collect(rows, min(self._left, STEP_ELEMENTS))
            except StopIteration:
                raise self._too_few(self.at - self._left + len(rows)) from None
            except (Exception, GeneratorExit):
                if isinstance(values, GeneratorType):
                    raise
                self._left -= 1
            finally:
                self._left -= len(rows)
            if rows:
                self._rows.learn(rows)
        self._interrupted = None

    def _open(self) -> Iterator[Any]:
        return iter(self.node.function(*self.node.arguments))

    @interruptible
    def _collect(self, rows: list[Any], n: int) -> None:
        """Append up to ``n`` values to the list."""
        if self._is_last is not None and not self._left:
            collect_by_python(self._values, None, n, rows, self._is_last)
        elif n == 1 or self._left:
            collect(self._values, None, n, rows)
        else:
            n = min(n, max(STEP_ELEMENTS, self.at))  # arrays for all may not fit into memory
            self._writer.begin(Block(n) if self.write_into_batch else None)
            try:
                self._writer.collect(self._values, None, n, rows)
            finally:
                self._writer.begin(None)

    def _too_few(self, count: int) -> Exception:  # noqa: ARG002  # for subclasses
        """Return what is raised if only ``count`` values come before the position."""
        if self._interrupted is None:
            return StopIteration()
        return ClosedError(
            f"{self.node}: an interrupt came while element {self.at} was computed. To continue, the "
            f"function must repeat the earlier elements, but it does not; return a new generator from each call"
        )

    def _convert(self, rows: list[Any]) -> Chunk | None:
        """Convert the values to a chunk. If any is invalid, queue them, with exceptions, and return None."""
        written = self._writer.take(rows) if rows[0] is WRITTEN else None
        outcomes: list[Outcome] = [] if written is None else [written]
        if rows:
            outcomes += self._rows.outcomes(rows)
            if written is None and len(rows) > 1 and isinstance(outcomes[0], Chunk):
                self._writer.learn(rows[0], outcomes[0], self._rows.specs)
        if len(outcomes) == 1 and isinstance(outcomes[0], Chunk):
            return self._placed(outcomes[0])
        while outcomes:  # no variable keeps an exception, see runtime/contract.py
            self._queue(outcomes.pop(0))
        return None

    def _placed(self, chunk: Chunk) -> Chunk:
        """Return a chunk of the next values, which are counted."""
        if self._lineage is not None:
            chunk.lineage = self._lineage.run(self.at, chunk.length)
        self.at += chunk.length
        return chunk

    def _queue(self, outcome: Outcome) -> None:
        if isinstance(outcome, Chunk):
            self._ready.put(self._placed(outcome))
        else:
            self._fail(outcome)

    def _fail(self, error: BaseException) -> None:
        self._ready.put(with_location(error, self.node, self.at))
        self.at += 1

    def save(self) -> Position:
        ended = self._ended and not self._ready
        return Position(self.op, self.at - len(self._ready), own={"ended": ended})

    def load(self, position: Position) -> None:
        self.at, self._ended = position.at, position.like("ended", False)

    def close(self) -> None:
        close = getattr(self._values, "close", None)
        self._values, self._interrupted, self._ended = iter(()), None, True
        if close is not None:
            with contextlib.suppress(ValueError):  # another thread is running the generator, which ends when it returns
                close()


def _argument(value: Any) -> Any:
    """Convert an argument for the function: a read-only component, or the user's value."""
    if value is None or isinstance(value, dict):
        return value
    return read_only_component(canonical_component(list(value) if isinstance(value, tuple) else value))

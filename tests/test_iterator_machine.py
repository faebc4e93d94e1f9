"""State machine of iterators: random calls on the iterators of a random pipeline, against a list and positions in it.

Pipelines work in threads, and calls are interrupted: by signals and by a function of the user.
``SEED=7 EXAMPLES=20 pytest tests/test_iterator_machine.py`` makes new sequences of calls, and 20 times as many.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import itertools
import os
import pickle
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, multiple, precondition, rule

from chains import changes, steps
from chains.chain import Chain, Step
from chains.draw import ANY, pipelines, shuffled_pipelines
from chains.model import END, plain
from dataset import AUTOTUNE, INFINITE_CARDINALITY, ClosedError, Dataset, DatasetError, DatasetIterator
from dataset.plan.epochs import with_epoch
from dataset.plan.node import Node
from dataset.testing import no_leaks, outcomes
from support.interrupting import AtMoment
from support.libraries import Ours
from support.resuming import examples, from_json, to_json

LENGTH_MIN = 4  # outcomes of a pipeline
MOMENTS = st.integers(0, 40) | st.integers(0, 600)  # of one call; the signal is not sent if it has fewer
COUNTS = st.integers(0, 5)  # of outcomes
CALLS = st.lists(st.sampled_from([2, AUTOTUNE, None, 1, 3]), min_size=1, max_size=3)


class StopError(KeyboardInterrupt):
    """What a function of the user raises to stop the program."""


STOPS: list[StopError] = []
"""What the next calls of ``stop_or_pass`` raise."""


def stop_or_pass(*element: Any) -> bool:
    """Let all elements pass, as the function of a filter."""
    with contextlib.suppress(IndexError):
        raise STOPS.pop()
    return True


def is_stop(error: Any) -> bool:
    """Return whether an exception is a StopError that was about to be raised when a state was saved."""
    return isinstance(error, DatasetError) and str(error).startswith("StopError")


class StopStep(Step):
    """A filter that calls ``stop_or_pass``."""

    def apply(self, lib: Any, dataset: Any = None) -> Any:
        return dataset.filter(stop_or_pass)


STOP = StopStep(".filter(stop_or_pass)", None, lambda source: source)
OPS = {
    "prefetch": steps.prefetch,
    "map": changes.map_number,
    "shuffle": steps.shuffle,
    "repeat": steps.repeat,
    "batch": changes.batch,
}


def is_long(pipeline: Chain) -> bool:
    """Return whether there are some positions between the first and the last."""
    return len(pipeline.model(LENGTH_MIN)) == LENGTH_MIN


@st.composite
def programs(draw: st.DrawFn) -> Chain:
    """Draw a pipeline and, after it, some ops that work in threads, hold elements back or start again."""
    pipeline = draw((pipelines() | shuffled_pipelines()).filter(is_long))
    for _ in range(draw(st.integers(0, 4))):
        op = draw(st.sampled_from(sorted(OPS)))
        if op == "shuffle" and pipeline.make(Ours()).cardinality() == INFINITE_CARDINALITY:
            continue
        step = OPS[op](draw(st.randoms(use_true_random=False)), pipeline.kind, ANY)
        if step is not None and is_long(pipeline.followed_by(step)):
            pipeline = pipeline.followed_by(step)
    place = draw(st.integers(0, len(pipeline.steps)))
    stop = (STOP,) if place else ()  # without functions, the iterator pulls several elements at once
    return Chain((*pipeline.steps[:place], *stop, *pipeline.steps[place:]))


def in_parallel(node: Node, calls: Iterator[int | None]) -> Node:
    """Return the plan with these numbers of workers, but call ``stop_or_pass`` in the thread that pulls."""
    node = node.with_inputs([in_parallel(source, calls) for source in node.inputs])
    if not hasattr(node, "num_parallel_calls") or getattr(node, "predicate", None) is stop_or_pass:
        return node
    return replace(node, num_parallel_calls=next(calls))


class Origin:
    """A dataset, with the number of the next iteration over it."""

    def __init__(self, pipeline: Chain, calls: list[int | None]) -> None:
        self.dataset = Dataset(in_parallel(pipeline.make(Ours()).plan, itertools.cycle(calls)))
        self.next_epoch = 0


@dataclass(frozen=True)
class Saved:
    """A state, its text, and the position that it describes."""

    state: Any
    text: str
    epoch: int
    place: int


class Reader:
    """An iterator, and its position in the model: the number of the iteration, and that of outcomes before."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.iterator: DatasetIterator[Any] | None = iter(origin.dataset)
        self.epoch = origin.next_epoch
        self.place = self.first_place = 0
        origin.next_epoch += 1
        self._turn = self.epoch, origin.next_epoch

    def has_loaded(self, saved: Saved) -> None:
        """Move to a position. Later iterations count on from it, unless their numbers are taken already."""
        is_unused = self.place == self.first_place and self._turn[1] == self.origin.next_epoch
        before = self._turn[0] if is_unused else self.origin.next_epoch
        self.origin.next_epoch = max(before, saved.epoch + 1)
        self._turn = before, self.origin.next_epoch
        self.epoch, self.place, self.first_place = saved.epoch, saved.place, saved.place


class Iterators(RuleBasedStateMachine):
    """Iterators over one pipeline."""

    readers: Bundle[Reader] = Bundle("readers")
    saved: Bundle[Saved] = Bundle("saved")

    def __init__(self) -> None:
        super().__init__()
        self.signal: AtMoment | None = None  # during the next call
        self.stops = itertools.count()
        self.raised: Counter[int] = Counter()  # the numbers of interrupts of ``stop_or_pass``
        self.open: list[Reader] = []
        self.states: list[Saved] = []
        self.leaks = contextlib.ExitStack()
        self.runs: dict[int, list[Any]] = {}

    @initialize(target=readers, pipeline=programs(), calls=CALLS)
    def begin(self, pipeline: Chain, calls: list[int | None]) -> Reader:
        note(f"{pipeline}, {calls}")
        self.pipeline, self.model = pipeline, pipeline.model()
        self.leaks.enter_context(no_leaks())
        self.is_shuffled = "shuffle" in repr(pipeline)
        # The passes over a cache omit failures, but it depends on the other iterators which pass fills it.
        self.is_independent = "cache" not in repr(pipeline)
        return self.start(calls)

    def expected(self, epoch: int) -> list[Any]:
        """Return the outcomes of an iteration."""
        if not self.is_shuffled:
            return self.model
        if epoch not in self.runs:
            stops, STOPS[:] = STOPS[:], []
            made = Dataset(with_epoch(self.pipeline.make(Ours()).plan, epoch))
            self.runs[epoch] = [plain(outcome) for outcome in outcomes(iter(made))]
            STOPS[:] = stops
        return self.runs[epoch]

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a call returns, or raise what it raises. An interrupt that was due is raised as StopError."""
        how, self.signal = self.signal, None
        gc.disable()  # Hypothesis measures collections in a callback, in which Python ignores interrupts
        try:
            with how or contextlib.nullcontext():
                result = function(*arguments)
        except StopError as error:
            self.raised[error.args[0]] += 1
            assert max(self.raised.values()) == 1, "an interrupt is raised twice"
            raise
        except KeyboardInterrupt:
            if how is None or not how.fired:
                raise
            raise StopError(next(self.stops)) from None
        finally:
            gc.enable()
        assert how is None or not how.fired, "an interrupt is swallowed"
        return result

    def retried(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a call returns that is made again when it is interrupted."""
        while True:
            with contextlib.suppress(StopError):
                return self.call(function, *arguments)

    def move(self, reader: Reader) -> None:
        """Take the next outcome, unless this is interrupted."""
        try:
            outcome = plain(self.call(next, reader.iterator))
        except StopError:
            return
        except StopIteration:
            outcome = END
        except Exception as error:  # it is an outcome
            if is_stop(error):
                return
            outcome = plain(error)
        expected = self.expected(reader.epoch)
        assert outcome == [*expected, END][reader.place], f"outcome {reader.place} of {expected}"
        reader.place += outcome is not END

    def _opened(self, origin: Origin) -> Reader:
        reader = Reader(origin)
        self.open.append(reader)
        if self.is_shuffled:
            reader.iterator.state_dict()  # all shuffles take their number now, and not when they are reached
        return reader

    @rule(target=readers, calls=CALLS)
    def start(self, calls: list[int | None]) -> Reader:
        return self._opened(Origin(self.pipeline, calls))

    @precondition(lambda self: self.is_independent)
    @rule(target=readers, reader=readers)
    def open_another(self, reader: Reader) -> Reader:
        return self._opened(reader.origin)

    @rule(reader=readers, count=COUNTS)
    def advance(self, reader: Reader, count: int) -> None:
        for _ in range(count):
            self.move(reader)

    @rule(reader=readers)
    def finish(self, reader: Reader) -> None:
        for _ in range(len(self.expected(reader.epoch)) - reader.place + 2):
            self.move(reader)

    @rule(moment=MOMENTS)
    def send_signal(self, moment: int) -> None:
        self.signal = AtMoment(moment)

    @rule(reader=readers, count=COUNTS)
    def stop(self, reader: Reader, count: int) -> None:
        STOPS.append(StopError(next(self.stops)))
        for _ in range(count):
            self.move(reader)

    @rule(target=saved, reader=readers, count=COUNTS)
    def save(self, reader: Reader, count: int) -> Saved:
        self.advance(reader, count)
        state = self.retried(reader.iterator.state_dict)
        saved = Saved(state, to_json(state), reader.epoch, reader.place)
        self.states.append(saved)
        return saved

    @precondition(lambda self: self.is_independent)
    @rule(reader=readers, saved=saved, count=COUNTS)
    def load(self, reader: Reader, saved: Saved, count: int) -> None:
        self.retried(reader.iterator.load_state_dict, from_json(saved.text))
        reader.has_loaded(saved)
        self.advance(reader, count)

    @rule(target=readers, saved=saved, calls=CALLS, count=COUNTS)
    def resume(self, saved: Saved, calls: list[int | None], count: int) -> Any:
        """Load a state into an iterator of a pipeline built anew, and begin the next iteration beside it."""
        reader = self._opened(Origin(self.pipeline, calls))
        self.load(reader, saved, count)
        if not self.is_independent:
            return reader
        another = self.open_another(reader)
        self.advance(another, count)
        return multiple(reader, another)

    @rule(reader=consumes(readers))
    def close(self, reader: Reader) -> None:
        iterator = reader.iterator
        self.retried(iterator.close)
        for use in (iterator.__next__, iterator.state_dict):
            with pytest.raises(ClosedError):
                use()
        iterator.close()
        self.open.remove(reader)

    @rule(reader=consumes(readers))
    def drop(self, reader: Reader) -> None:
        reader.iterator = None
        self.open.remove(reader)

    @rule(reader=readers, saved=saved, calls=CALLS, opens_another=st.booleans())
    def fork(self, reader: Reader, saved: Saved, calls: list[int | None], opens_another: bool) -> None:
        """In the child, the open iterators refuse, and new ones continue from states."""

        def resumed() -> list[Any]:
            with pytest.raises(ClosedError):
                next(reader.iterator)
            for inherited in self.open:
                inherited.iterator.close()
            origin = reader.origin if opens_another and self.is_independent else Origin(self.pipeline, calls)
            with iter(origin.dataset) as iterator:
                iterator.load_state_dict(from_json(saved.text))
                return [plain(outcome) for outcome in outcomes(iterator) if not is_stop(outcome)]

        assert result_of_child(resumed) == self.expected(saved.epoch)[saved.place :]

    def teardown(self) -> None:
        STOPS.clear()
        for reader in self.open:
            reader.iterator.close()
        assert [to_json(saved.state) for saved in self.states] == [saved.text for saved in self.states]
        self.leaks.close()


def result_of_child(function: Callable[[], Any]) -> Any:
    """Return what the function returns, or the text of what it raises, in a forked child, which ends with it."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.register(signal.SIGALRM, sys.__stderr__, chain=True)
        signal.alarm(30)
        STOPS.clear()
        try:
            result = function()
        except BaseException as error:  # the parent shows it
            result = repr(error)
        os.write(sending, pickle.dumps(result))
        os._exit(0)
    os.close(sending)
    with open(receiving, "rb") as pipe:  # noqa: PTH123  # a descriptor
        written = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, "the child has died or did not end"
    return pickle.loads(written)  # from the child


# Phase.explain traces, as AtMoment does.
Iterators.TestCase.settings = settings(examples(150), stateful_step_count=25, phases=set(Phase) - {Phase.explain})


@pytest.mark.timeout(0 if "EXAMPLES" in os.environ else 600)
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # from Python 3.12 on, if there are threads
class TestIterators(Iterators.TestCase):
    pass

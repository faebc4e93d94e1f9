"""Random search for states that resume inexactly.

    python tests/support/resume_search.py --count 1000                 1000 cases from a fresh seed
    python tests/support/resume_search.py --first 0 --count 100000     the cases 0 to 99,999
    python tests/support/resume_search.py --first 123 --count 1        one case again
    python tests/support/resume_search.py --seconds 600 --corpus build/corpus    write what fails as cases of the corpus

A case is a chain of ops (chains/draw.py), and up to three places at which its iteration is interrupted. Each time,
the state is serialized, and a pipeline built anew continues from it, in one of ten cases in another process. All
outcomes together must equal those of a run without interruption: elements, dtypes, failures, the positions that they
name, and the end. Half of the cases resume once instead, but at one place of each stage, where the state has another
structure. A failing case is printed as a Python expression, and again with as few ops as still fail.

The cases run in a worker process. If one crashes, or does not end, the tracebacks of its threads are printed, it counts
as a failure, and the search continues in a new worker.
"""

# ruff: noqa: T201  # a program that prints what it finds

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import faulthandler
import gc
import itertools
import json
import logging
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1])]  # for the worker, which is this file run as a program

import numpy as np  # noqa: E402

import dataset  # noqa: E402
from chains.chain import Chain, Step  # noqa: E402
from chains.draw import draw_chain, with_other_parallelism  # noqa: E402
from chains.names import build  # noqa: E402
from dataset import ClosedError, Dataset, RaggedTensor, SparseTensor, StateError, checkpoint  # noqa: E402
from explore import corpus  # noqa: E402
from support.resume_files import write_files  # noqa: E402
from support.seeds import fresh_seed  # noqa: E402

LENGTH_MAX = 250
_REST = 10**6
_SECONDS_MAX = 60  # of a case
_SHRINK_SECONDS = 30
_STAGES_MAX = 6  # places that a case tries
_TWO_WRITERS = "two iterators that fill one file cache at the same time are an error"

# Cases


class Stop(NamedTuple):
    """An interruption.

    Attributes:
        where: "start"; "middle"; "stage" for a place whose state has another structure than others, as at the ends of
            epochs; "error" for a place right after a failure; "end" before StopIteration; "over" after it; "at" for the
            outcome number ``at``.
        at: selects among such places, in [0, 1); or the number of outcomes.
        in_file: whether the state is saved to a file instead of as JSON.
        in_process: whether another process resumes.
        is_saved_again: whether the resumed iterator saves the state that is used at once.
        is_moved: whether the iterator is at another position before the state is loaded; if it has filled a cache, this
            is an error.
        shares: whether the pipeline finds the files that the first run has written. Failures are not among them.
        seed: selects the parallelism of the resumed pipeline; 0 for that of the first run.
        is_filled: whether another iterator fills the caches in files after the state was loaded.
    """

    where: str
    at: float = 0
    in_file: bool = False
    in_process: bool = False
    is_saved_again: bool = False
    is_moved: bool = False
    shares: bool = False
    seed: int = 0
    is_filled: bool = False

    def __str__(self) -> str:
        words = [f"{self.where} {self.at:.4g}"]
        words += [name for name, value in self._asdict().items() if value is True]
        return ", ".join([*words, *[f"other parallelism {self.seed}"] * (self.seed > 0)])


@dataclass(frozen=True)
class Case:
    """A chain, and where it is interrupted.

    Attributes:
        chain: the pipeline.
        stops: the interruptions of one run.
        at_each_stage: whether there is only one stop, and instead several runs that each resume once, at one place of
            each stage.
        earlier: how much of earlier epochs runs before, in outcomes.
        checks_next_epoch: whether the iteration after the resumed one is compared, too.
    """

    chain: Chain
    stops: tuple[Stop, ...]
    at_each_stage: bool = False
    earlier: tuple[int, ...] = ()
    checks_next_epoch: bool = False

    def __str__(self) -> str:
        lines = [str(self.chain), *(f"    resumed at {stop}" for stop in self.stops)]
        if self.at_each_stage:
            lines[1] += ", and at one place of each other stage"
        if self.earlier:
            lines.append(f"    after earlier iterations of {self.earlier} outcomes")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the case as values of JSON. It depends on no generator: the chain is its text."""
        flags = {
            "by_chance": self.chain.by_chance,
            "stores_elements": self.chain.stores_elements,
            "at_each_stage": self.at_each_stage,
            "earlier": list(self.earlier),
            "checks_next_epoch": self.checks_next_epoch,
        }
        stops = [{key: value for key, value in stop._asdict().items() if value} for stop in self.stops]
        return {"chain": str(self.chain), "stops": stops} | {key: value for key, value in flags.items() if value}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Case:
        """Return the case that ``to_json`` has written."""
        ops = (
            Step(found["chain"], None, keeps_order=found.get("stores_elements", False)),
            Step("", None, by_chance=found.get("by_chance", False)),
        )
        return cls(
            Chain(ops),
            tuple(Stop(**stop) for stop in found["stops"]),
            found.get("at_each_stage", False),
            tuple(found.get("earlier", ())),
            found.get("checks_next_epoch", False),
        )


_WHERE = ["start", *["middle"] * 3, *["stage"] * 4, *["error"] * 2, "end", "over"]


def case(seed: int) -> Case:
    """Return the case with this number."""
    rng = random.Random(seed)
    chain = draw_chain(rng)
    stops = [
        Stop(
            rng.choice(_WHERE),
            rng.random(),
            in_file=rng.random() < 0.1,
            is_saved_again=rng.random() < 0.15,
            is_moved=rng.random() < 0.15 and not chain.stores_elements,
            shares=rng.random() < 0.2,
            seed=rng.choice([0, 0, 0, 0, 0, rng.randrange(1, 10**6)]),
        )
        for _ in range(rng.choice([1, 1, 2, 2, 3, 3]))
    ]
    at_each_stage = rng.random() < 0.5
    if at_each_stage:
        stops[1:] = []
    if rng.random() < 0.1:
        place = rng.randrange(len(stops))
        stops[place] = stops[place]._replace(in_process=True, is_moved=False, shares=False)
    earlier = tuple(rng.choice([3, LENGTH_MAX]) for _ in range(rng.choice([0, 0, 0, 0, 1, 2])))
    checks_next_epoch = rng.random() < 0.15
    if "folder" in str(chain) and chain.is_repeatable and not earlier:
        stops = [stop._replace(is_filled=rng.random() < 0.5) for stop in stops]
    return Case(chain, tuple(stops), at_each_stage, earlier, checks_next_epoch)


class MismatchError(AssertionError):
    """A resumed run that differs."""


class Unsuitable(Exception):  # noqa: N818  # not an error
    """A case that shows nothing: it is too long, or its pipeline cannot be built."""


class Refused(Exception):  # noqa: N818  # not an error
    """A case in which a state was refused for a known reason."""


class Run:
    """The runs of one case: in this process, and in another one."""

    def __init__(self, case: Case, files: Path, other: Worker | None):
        self.case = case
        self._files = files
        self._other = other
        self._numbers = itertools.count()
        self._folder: Path | None = None
        self._first: Path | None = None
        self._stages: defaultdict[str, list[int]] = defaultdict(list)  # places by the structure of their states

    def check(self) -> list[str]:
        """Check the case. Return the kinds of places at which it was resumed.

        Raises:
            MismatchError: if a resumed run differs.
            Unsuitable: if the case shows nothing.
            Refused: if a state was refused.
        """
        try:
            return self._check()
        finally:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)

    def _check(self) -> list[str]:
        case = self.case
        probe = self._probe()
        routes = [sorted([(self._place(stop, probe), stop) for stop in case.stops], key=lambda found: found[0])]
        if case.at_each_stage:
            rng = random.Random(len(probe))
            places = [rng.choice(places) for places in self._stages.values()]
            routes += [[(place, case.stops[0])] for place in rng.sample(places, min(len(places), _STAGES_MAX))]
        self._first = self._new_folder()
        whole = self._build(self._first)
        for count in case.earlier:
            with iter(whole) as iterator:
                advanced(iterator, count)
        found: list[str] = []
        states = {}
        with iter(whole) as iterator:
            for place, stop in sorted((route[0] for route in routes), key=lambda found: found[0]):
                found += advanced(iterator, place - len(found))
                states[place] = self._saved(iterator, stop)
            found += advanced(iterator, LENGTH_MAX - len(found))
        _require_short(found)
        if any(outcome.startswith("!") for outcome in found):
            self._first = None  # no later run finds its files, because failures are not among them
        if case.chain.is_repeatable and not case.earlier:
            self._compare(found, probe, "the first run, from which a state was taken,")
        for route in routes:
            self._follow(route, states[route[0][0]], found)
        if case.checks_next_epoch and self._resumed_dataset is not None and not case.chain.by_chance:
            self._check_next_epoch(whole)
        return [stop.where for route in routes for _, stop in route]

    def _follow(self, route: list[tuple[int, Stop]], state: Any, found: list[str]) -> None:
        """Resume from a state of the first run, save again at the next place, and so on."""
        got = found[: route[0][0]]
        for (place, stop), (following, next_stop) in itertools.pairwise([*route, (_REST, None)]):
            more, state = self._resumed(stop, state, following - len(got), next_stop)
            got += more
            expected = found[: len(got)] if next_stop else found
            self._compare(got, expected, f"resumed at {place},", is_whole=next_stop is None)

    def _probe(self) -> list[str]:
        """Return the outcomes of a whole run, and note its stages if there are stops at some."""
        found: list[str] = []
        with iter(self._build(self._new_folder())) as iterator:
            has_stages = self.case.at_each_stage or any(stop.where == "stage" for stop in self.case.stops)
            while has_stages and len(found) < LENGTH_MAX:
                with contextlib.suppress(StateError):
                    self._stages[_structure(iterator.state_dict()["operator"])].append(len(found))
                more = advanced(iterator, 1)
                if not more:
                    break
                found += more
            found += advanced(iterator, LENGTH_MAX - len(found))
        _require_short(found)
        return found

    def _place(self, stop: Stop, probe: list[str]) -> int:
        """Return the number of outcomes before a stop; one more than there are means that the end was seen."""
        length = len(probe)
        failures = [place + 1 for place, outcome in enumerate(probe) if outcome.startswith("!")]
        if stop.where == "at":
            return int(stop.at)
        if stop.where == "stage":
            rng = random.Random(stop.at)
            return rng.choice(self._stages[rng.choice(list(self._stages))])
        if stop.where == "error" and failures:
            return failures[int(stop.at * len(failures))]
        return {"start": 0, "end": length, "over": length + 1}.get(stop.where, int(stop.at * (length + 1)))

    def _resumed(self, stop: Stop, state: Any, count: int, next_stop: Stop | None) -> tuple[list[str], Any]:
        """Return the next outcomes after a state, and the state after them if there is another stop."""
        self._resumed_dataset = None
        expression = str(self.case.chain)
        if stop.seed and not self.case.chain.by_chance:
            expression = with_other_parallelism(expression, random.Random(stop.seed))
        if stop.in_process and self._other is not None:
            answer = self._other.ask("resume", self.case, expression, stop, state, count, next_stop, self._new_folder())
            if isinstance(answer, Exception):
                raise answer
            return answer
        # A function that builds a dataset is edited by another parallelism in it, so files of the first run do not fit.
        is_edited = expression != str(self.case.chain) and "lambda" in expression
        keeps = stop.shares and self._first is not None and not is_edited
        folder = self._first if keeps and self._first is not None else self._new_folder()
        again = self._build(folder, expression)
        if not (keeps or stop.is_saved_again or self.case.chain.stores_elements):  # each iterator counts as an epoch
            self._resumed_dataset = again
        return resume(again, stop, state, count, next_stop, self._new_folder, lambda: self._build(folder, expression))

    _resumed_dataset: Any = None

    def _saved(self, iterator: Any, stop: Stop) -> Any:
        return saved(iterator, stop, self._new_folder)

    def _check_next_epoch(self, whole: Any) -> None:
        epochs = []
        for pipeline in (self._resumed_dataset, whole):
            with iter(pipeline) as iterator:
                epochs.append(advanced(iterator, LENGTH_MAX))
        self._compare(*epochs, "the next iteration of the resumed dataset")

    def _compare(self, got: list[str], expected: list[str], what: str, *, is_whole: bool = True) -> None:
        if self.case.chain.by_chance:
            mine, theirs = (Counter(outcome.partition(_NOTES)[0] for outcome in found) for found in (got, expected))
            if is_whole and mine != theirs:
                raise MismatchError(f"{what} lost {dict(theirs - mine)}, repeated {dict(mine - theirs)}")
            return
        if got != expected:
            place = next((i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b), "the end")
            raise MismatchError(f"{what} differs at {place}:\n    expected {expected}\n    got      {got}")

    def _build(self, folder: Path, expression: str = "") -> Any:
        try:
            return build(expression or str(self.case.chain), self._files, folder)
        except (TypeError, ValueError, SyntaxError, NameError) as error:
            raise Unsuitable(f"cannot be built: {error!r:.200}") from error

    def _new_folder(self) -> Path:
        """Return a new folder; if the chain writes nothing, a path only."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="resuming-"))
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        return folder


def _structure(state: Any) -> str:
    """Return what a state has besides the values of its numbers."""
    if isinstance(state, dict):
        return "{" + ",".join(f"{key}:{_structure(value)}" for key, value in state.items()) + "}"
    if isinstance(state, list):
        return f"[{','.join(map(_structure, state[:3]))}]"
    if isinstance(state, int):
        return str(min(state, 1))
    return str(state) if isinstance(state, str | None) else type(state).__name__


def _require_short(found: list[str]) -> None:
    if len(found) >= LENGTH_MAX:
        raise Unsuitable("too long")


def saved(iterator: Any, stop: Stop, new_folder: Any) -> Any:
    """Return the iterator's state in a serialized form.

    Raises:
        Refused: if there is no state.
    """
    with _known_reasons():
        if stop.in_file:
            path = new_folder() / "state"
            checkpoint.save(path, iterator)
            return path.read_bytes()
        return json.dumps(checkpoint.to_json(iterator.state_dict()))


_REFUSAL = "the cache now holds another pass"  # documented


@contextlib.contextmanager
def _known_reasons() -> Iterator[None]:
    """Raise Unsuitable or Refused in the place of an exception with a known reason."""
    try:
        yield
    except (ClosedError, FileExistsError) as error:
        if "FileExistsError" not in repr(error):
            raise
        raise Unsuitable(_TWO_WRITERS) from error
    except StateError as error:
        is_known = _REFUSAL in str(error)
        raise Refused(_REFUSAL) if is_known else MismatchError(f"a state is refused: {error}") from error


def loaded(pipeline: Any, stop: Stop, state: Any, new_folder: Any) -> Any:
    iterator = iter(pipeline)
    try:
        with _known_reasons():
            if stop.is_moved:
                advanced(iterator, 2)
            if isinstance(state, bytes):
                path = new_folder() / "state"
                path.write_bytes(state)
                checkpoint.restore(path, iterator)
            else:
                iterator.load_state_dict(json.loads(state))
    except BaseException:
        iterator.close()
        raise
    return iterator


def resume(
    pipeline: Any, stop: Stop, state: Any, count: int, next_stop: Stop | None, new_folder: Any, same: Any
) -> tuple[list[str], Any]:
    """Continue from a state. Return the next ``count`` outcomes, and the state after them if there is another stop.

    ``same`` builds a pipeline with the same files.
    """
    if stop.is_saved_again:
        with loaded(pipeline, stop, state, new_folder) as iterator:
            state = saved(iterator, stop, new_folder)
    with loaded(pipeline, stop, state, new_folder) as iterator:
        if stop.is_filled:
            with iter(same()) as other:
                advanced(other, LENGTH_MAX)
        found = advanced(iterator, min(count, 2 * LENGTH_MAX))
        return found, saved(iterator, next_stop, new_folder) if next_stop else None


# Outcomes, as texts that another process can return

_NOTES = "; "  # between a message and where it was raised
_ELSEWHERE = "In the worker process:"  # a traceback, which depends on the sizes of chunks
_FOLDER = re.compile(r"[^' ]*/resuming-[^/]*/\w+")


def advanced(iterator: Any, count: int) -> list[str]:
    """Return the next ``count`` outcomes, or fewer if there are no more. Failures begin with an exclamation mark."""
    found: list[str] = []
    for _ in range(count):
        try:
            with _known_reasons():
                found.append(shown(next(iterator)))
        except StopIteration:
            break
        except (ClosedError, Unsuitable, Refused, MismatchError):
            raise
        except Exception as error:
            notes = " ".join(note for note in getattr(error, "__notes__", ()) if not note.startswith(_ELSEWHERE))
            found.append(f"!{type(error).__name__}: {error}{_NOTES}{_FOLDER.sub('folder', notes)}")
    return found


def shown(value: Any) -> str:
    """Return a text that is equal only for equal values of equal types."""
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype}{list(value.shape) if value.shape else ''} {value.tolist()}"
    if isinstance(value, tuple):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {shown(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Dataset):
        with iter(value) as iterator:
            return f"dataset of {advanced(iterator, LENGTH_MAX)}"
    if isinstance(value, RaggedTensor):
        return f"ragged {shown(value.flat_values)} {[shown(splits) for splits in value.nested_row_splits]}"
    if isinstance(value, SparseTensor):
        return f"sparse {shown(value.indices)} {shown(value.values)} {value.dense_shape}"
    return f"{type(value).__name__} {value!r}"


# Smaller cases


def shrunk(case: Case, files: Path, seconds: float) -> tuple[Case, str]:
    """Return a smaller case that fails, and how. It is resumed once, at every place, if that is enough."""
    end = time.monotonic() + seconds
    message = _failure(case, files) or "does not fail every time"
    while time.monotonic() < end:
        for smaller in _smaller(case):
            if time.monotonic() > end:
                break
            found = _failure(smaller, files)
            if found:
                case, message = smaller, found
                break
        else:
            break
    return case, message


def _smaller(case: Case) -> Iterator[Case]:
    plain = dataclasses.replace(case, at_each_stage=False, earlier=(), checks_next_epoch=False)
    chains = case.chain.smaller()
    if len(case.stops) > 1 or case.stops[0].where != "at":
        for place in range(40):
            yield dataclasses.replace(plain, stops=(Stop("at", place),))
        for index in range(len(case.stops) if len(case.stops) > 1 else 0):
            yield dataclasses.replace(case, stops=case.stops[:index] + case.stops[index + 1 :])
    if case.earlier or case.checks_next_epoch or case.at_each_stage:
        yield plain
    for chain in chains:
        yield dataclasses.replace(case, chain=chain)
    if len(case.stops) == 1:
        for chain in chains:
            for place in range(20):
                yield dataclasses.replace(case, chain=chain, stops=(case.stops[0]._replace(where="at", at=place),))


def _failure(case: Case, files: Path) -> str:
    """Return how a case fails, or an empty text."""
    try:
        Run(case, files, None).check()
    except (Unsuitable, Refused):
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


# Worker processes

_SERVE = "import sys; from support.resume_search import serve; serve(sys.argv[1])"


class DiedError(Exception):
    """The worker has ended: it crashed, or did not end its work in time."""


class Worker:
    """A process that runs cases, one after another."""

    def __init__(self, files: Path):
        paths = [str(Path(dataset.__file__).parents[1]), str(Path(__file__).parents[1])]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def ask(self, *request: Any) -> Any:
        """Return what the worker answers to a request.

        Raises:
            DiedError: if it has died of it.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            self.close()
            raise DiedError(f"the process has crashed, or hung for {_SECONDS_MAX} s") from error

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def serve(folder: str) -> None:
    """Answer requests from standard input until it ends.

    Args:
        folder: contains the files that the pipelines read.
    """
    files = Path(folder)
    logging.disable(logging.WARNING)
    gc.freeze()  # the modules
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    other: Worker | None = None
    while True:
        try:
            kind, *given = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        if kind == "run" and other is None:
            other = Worker(files)
        faulthandler.dump_traceback_later(_SECONDS_MAX * (3 if kind == "shrink" else 1), exit=True)
        try:
            answer = _answer(kind, given, files, other)
        except DiedError:
            raise
        except Exception as error:
            error.__cause__ = error.__context__ = None
            answer = error
        faulthandler.cancel_dump_traceback_later()
        pickle.dump(answer, answers)
        answers.flush()
    if other is not None:
        other.close()


def _answer(kind: str, given: list[Any], files: Path, other: Worker | None) -> Any:
    if kind == "run":
        return _outcome(case(given[0]), files, other)
    if kind == "shrink":
        return shrunk(case(given[0]), files, _SHRINK_SECONDS)
    whole, expression, stop, state, count, next_stop, folder = given
    run = Run(whole, files, None)
    run._folder = folder

    def same() -> Any:
        return run._build(folder, expression)

    return resume(same(), stop, state, count, next_stop, run._new_folder, same)


@dataclass
class Outcome:
    """What came of a case: the kinds of places at which it was resumed, or why it was not, or how it failed."""

    places: list[str] = field(default_factory=list)
    skipped: str = ""
    refused: str = ""
    failure: str = ""
    in_process: bool = False


def _outcome(whole: Case, files: Path, other: Worker | None) -> Outcome:
    in_process = any(stop.in_process for stop in whole.stops)
    try:
        return Outcome(Run(whole, files, other).check(), in_process=in_process)
    except Unsuitable as error:
        return Outcome(skipped=str(error))
    except Refused as error:
        return Outcome(refused=str(error))
    except DiedError:
        raise
    except Exception as error:
        return Outcome(failure=f"{type(error).__name__}: {error}")


# The search


@dataclass
class Totals:
    """The counts of a search."""

    cases: int = 0
    resumes: int = 0
    in_process: int = 0
    places: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, seed: int, found: Outcome) -> None:
        self.cases += 1
        self.resumes += len(found.places)
        self.in_process += found.in_process
        self.places.update(found.places)
        self.skipped.update([found.skipped] * bool(found.skipped))
        self.refused.update([found.refused] * bool(found.refused))
        if found.failure:
            self.failures[seed] = found.failure

    def __str__(self) -> str:
        return (
            f"{self.cases} cases, {self.resumes} resumes, {self.in_process} cases in two processes, "
            f"{self.skipped.total()} skipped, {self.refused.total()} refused, {len(self.failures)} failed"
        )


@contextlib.contextmanager
def prepared() -> Iterator[Path]:
    """Write the files that the pipelines read."""
    with tempfile.TemporaryDirectory(prefix="resume-files") as folder:
        write_files(Path(folder))
        yield Path(folder)


def search(
    seeds: Iterator[int], files: Path, totals: Totals, *, shrinks: bool = True, folder: Path | None = None
) -> None:
    """Try cases in a worker process, and print those that fail.

    Args:
        seeds: the numbers of the cases.
        files: what ``prepared`` has written.
        totals: gets the outcomes.
        shrinks: whether to look for the smallest case that fails.
        folder: where failing cases are written for the corpus, if anywhere.
    """
    worker: Worker | None = None
    for seed in seeds:
        worker = worker or Worker(files)
        try:
            found = worker.ask("run", seed)
        except DiedError as error:
            worker, found = None, Outcome(failure=str(error))
        if isinstance(found, Exception):
            found = Outcome(failure=repr(found))
        totals.add(seed, found)
        if found.failure:
            smallest, message = case(seed), found.failure
            print(f"\nseed {seed} fails: {smallest}\n    {message}", flush=True)
            if shrinks and worker is not None:
                try:
                    smallest, message = worker.ask("shrink", seed)
                    print(f"smallest that fails: {smallest}\n    {message}", flush=True)
                except DiedError:
                    worker = None
            if folder is not None:
                path = corpus.write(folder, "resume", smallest.to_json(), message)
                print(f"written to {path}", flush=True)
    if worker is not None:
        worker.close()


def main() -> int:
    """Search. Return 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, help="the first seed (default: a fresh one)")
    parser.add_argument("--count", type=int, default=1000, help="how many cases to try")
    parser.add_argument("--seconds", type=float, help="try cases for so long, whatever --count says")
    parser.add_argument(
        "--corpus", type=Path, metavar="FOLDER", help="write failing cases here, as tests/corpus has them"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at a time")
    parser.add_argument("--only", default="", help="try only pipelines with this text in them")
    parser.add_argument("--no-shrink", action="store_true", help="print failing cases as they are")
    parser.add_argument("--stop", type=int, default=100, metavar="N", help="stop after N failures")
    given = parser.parse_args()
    first = fresh_seed() if given.first is None else given.first
    totals = Totals()
    started = reported = time.monotonic()

    def seeds() -> Iterator[int]:
        nonlocal reported
        while (seed := next(numbers, None)) is not None and len(totals.failures) < given.stop:
            if given.seconds is not None and time.monotonic() > started + given.seconds:
                break
            if time.monotonic() > reported + 60:
                reported = time.monotonic()
                print(f"{reported - started:.0f} s: {totals}", flush=True)
            if given.only in str(case(seed)):
                yield seed

    numbers = iter(range(first, first + given.count)) if given.seconds is None else itertools.count(first)
    print(f"seeds from {first}", flush=True)
    with prepared() as files, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for done in [
            pool.submit(search, seeds(), files, totals, shrinks=not given.no_shrink, folder=given.corpus)
            for _ in range(given.jobs)
        ]:
            done.result()
    for counts in (totals.places, totals.skipped, totals.refused):
        print("   ", dict(counts.most_common(12)))
    if totals.failures:
        print("failing seeds:", *sorted(totals.failures))
    print(f"seeds from {first} in {time.monotonic() - started:.0f} s: {totals}")
    return int(bool(totals.failures))


if __name__ == "__main__":
    sys.exit(main())

"""Random cases for distribute(): a pipeline, faults of its workers, a position to resume from, and numbers of workers.

``draw_case(seed)`` returns a case and ``check_case`` runs it. The stream of the distributed pipeline must equal that of
the same pipeline without faults and without workers; if files are divided, that of the same workers without faults.
"""

from __future__ import annotations

import os
import random
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dataset import Dataset, TextLineDataset

FAULTS = ("kill", "stop", "exit", "raise")


def number(*element: Any) -> int:
    """Return a number that depends on all parts of an element."""
    total = 0
    for part in element:
        if isinstance(part, tuple):
            total += number(*part)
        elif isinstance(part, dict):
            total += number(*part.values())
        elif isinstance(part, bytes):
            total += int(part)
        else:
            total += int(np.sum(part))
    return total


class Faulty:
    """The identity, with a fault at the elements with certain numbers, which is permanent if it is "raise"."""

    def __init__(self, faults: dict[int, str | type[BaseException]], folder: str) -> None:
        self.faults = faults
        self.folder = folder

    def __call__(self, *element: Any) -> Any:
        found = number(*element)
        kind = self.faults.get(found)
        if kind == "raise":
            raise ValueError(f"element {found}")
        if kind is not None and self.is_first(found):
            if kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif kind == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            elif isinstance(kind, type):
                raise kind
            else:
                os._exit(137)  # as if killed by the system for lack of memory, inside a container
        return element[0] if len(element) == 1 else element

    def is_first(self, found: int) -> bool:
        try:
            Path(self.folder, str(found)).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def jitter(rng: Any, element: Any) -> Any:
    return element + int(rng.integers(1000)) * 1000


def is_odd(element: Any) -> bool:
    return bool(number(element) % 2)


def of_range(size: int, function: Any, folder: str) -> Dataset[Any]:
    return Dataset.range(size).map(function)


def shuffled(size: int, function: Any, folder: str) -> Dataset[Any]:
    return Dataset.from_tensor_slices(np.arange(size)).shuffle(size, seed=3).map(function).random_map(jitter, seed=5)


def batched(size: int, function: Any, folder: str) -> Dataset[Any]:
    return Dataset.from_tensor_slices(np.arange(size)).shuffle(7, seed=1).repeat(2).batch(3).map(function).prefetch(2)


def zipped(size: int, function: Any, folder: str) -> Dataset[Any]:
    numbers = Dataset.range(size)
    return Dataset.zip((numbers, numbers.map(lambda x: x * 2))).map(function, num_parallel_calls=2).enumerate()


def files(size: int, function: Any, folder: str) -> Dataset[Any]:
    names = [str(Path(folder, f"numbers-{part}.txt")) for part in range(4)]
    for part, name in enumerate(names):
        Path(name).write_text("".join(f"{number}\n" for number in range(part, size, 4)))
    return (
        Dataset.from_tensor_slices(names).interleave(TextLineDataset, cycle_length=2).map(function).shuffle(5, seed=2)
    )


def undivided(size: int, function: Any, folder: str) -> Dataset[Any]:
    return Dataset.range(size).map(function).filter(is_odd).shuffle(4, seed=9)


def grouped(size: int, function: Any, folder: str) -> Dataset[Any]:
    return Dataset.from_tensor_slices(np.arange(size)).shuffle(size, seed=4).map(function).batch(3).enumerate()


PIPELINES = (of_range, shuffled, batched, zipped, files, undivided, grouped)


@dataclass(frozen=True)
class Case:
    """A case; its text is enough to repeat it."""

    pipeline: str
    size: int
    faults: tuple[tuple[int, str], ...]
    resume_at: int
    workers: int
    later_workers: int


def draw_case(seed: int, faults: tuple[str, ...] = FAULTS, workers_max: int = 4) -> Case:
    """Return a random case. ``stop`` costs a heartbeat deadline each."""
    rng = random.Random(seed)
    size = rng.randint(1, 60)
    drawn = {rng.randrange(size + 1): rng.choice(faults) for _ in range(rng.choice((0, 1, 1, 2)))}
    pipeline = rng.choice(PIPELINES)
    workers = rng.randint(1, workers_max)
    later = workers if pipeline is files else rng.randint(1, workers_max)
    return Case(pipeline.__name__, size, tuple(drawn.items()), rng.randint(0, size), workers, later)


def outcomes(iterator: Any, count: int = 1 << 60) -> list[Any]:
    """Return up to ``count`` elements as plain values, with texts in the places of exceptions."""
    found: list[Any] = []
    while len(found) < count:
        try:
            found.append(_plain(next(iterator)))
        except StopIteration:
            break
        except ValueError as error:
            found.append(str(error))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value if isinstance(value, bytes) else value.tolist()


def check_case(case: Case, folder: str, **arguments: Any) -> None:
    """Run a case; ``arguments`` are those of distribute()."""
    build = globals()[case.pipeline]
    errors = {key: kind for key, kind in case.faults if kind == "raise"}
    local = build(case.size, Faulty(errors, folder), folder)
    if build is files and case.workers > 1:
        local = local.distribute(case.workers, **arguments)
    with iter(local) as iterator:
        expected = outcomes(iterator)
    faulty = build(case.size, Faulty(dict(case.faults), folder), folder)
    with iter(faulty.distribute(case.workers, **arguments)) as iterator:
        found = outcomes(iterator, case.resume_at)
        state = iterator.state_dict()
    again = build(case.size, Faulty(dict(case.faults), folder), folder)
    with iter(again.distribute(case.later_workers, **arguments)) as iterator:
        iterator.load_state_dict(state)
        found += outcomes(iterator)
    assert found == expected, case

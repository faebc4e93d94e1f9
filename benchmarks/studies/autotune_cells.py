"""The cells of the AUTOTUNE study: pipelines whose function, position, length and consumer differ.

The functions are written as users write them: helpers, methods, closures, partials, results as dicts. A label such as
"50 us" is the cost in pure Python or NumPy that `scale` finds for this machine; other functions cost what they cost.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from parallel import decode, photo, seconds, spin, steps_for, use_one_thread_for_each_call

from dataset import AUTOTUNE, Dataset

Function = Callable[..., Any]


class Setting(NamedTuple):
    """How a pipeline runs: the arguments of its functions, and the size of its prefetch if it has one."""

    calls: int | None = None
    executor: str | int = "thread"
    buffer: int = 2

    def __str__(self) -> str:
        calls = "AUTOTUNE" if self.calls == AUTOTUNE else self.calls
        return f"{calls}{' processes' * (self.executor == 'process')}{', no buffer' * (self.buffer == 0)}"


Source = Callable[[int], Dataset[Any]]
Stage = Callable[[Dataset[Any], Setting], Dataset[Any]]

WAITS, BOTH, FILES = "waits", "waits and computes", "files that wait"
HELD, PROCESSES, RELEASED, COLUMNS = "lock held", "processes", "lock released", "on columns"
PARSE, AUGMENT, TOKENS, CHANGING = "cheap", "augmentation", "tokenizing", "changing"

SHORT, LONG = 0.3, 3.0

BATCH, SHUFFLE, PREFETCH, SHUFFLED = "before batch", "before shuffle", "before prefetch", "after shuffle"


@dataclass(frozen=True)
class Cell:
    """A pipeline and how it is used.

    Attributes:
        kind: the class of its functions. PROCESSES: they hold the lock, and may run in worker processes.
        title: what it computes.
        stages: apply its functions, each with the same setting.
        batch: the number of elements in a batch.
        source: makes the input, of so many elements.
        position: BATCH: directly before batch; SHUFFLE: before shuffle and batch; PREFETCH: before batch and prefetch;
            SHUFFLED: after a shuffle and before batch.
        epoch: seconds that the best fixed setting takes for one.
        rebuilt: whether each epoch has a pipeline of its own.
        consumer: what is done with a batch: "free": nothing; "sleeping" or "computing": a step of 5 ms.
        held_out: whether it is reported apart, as it was never used to choose a constant of the controller.
    """

    kind: str
    title: str
    stages: tuple[Stage, ...]
    batch: int = 32
    source: Source = Dataset.range
    position: str = BATCH
    epoch: float = SHORT
    rebuilt: bool = True
    consumer: str = "free"
    held_out: bool = False

    @property
    def name(self) -> str:
        parts = [f"{self.kind}: {self.title}", self.position, f"{self.epoch:g} s"]
        parts += ["rebuilt" if self.rebuilt else "iterated", self.consumer]
        return ", ".join(parts)

    def build(self, count: int, setting: Setting) -> Dataset[Any]:
        """Return the pipeline for an epoch of about ``count`` elements."""
        dataset = self.source(count)
        if self.position == SHUFFLED:
            dataset = dataset.shuffle(8 * self.batch, seed=1)
        for stage in self.stages:
            dataset = stage(dataset, setting)
        if self.position == SHUFFLE:
            dataset = dataset.shuffle(8 * self.batch, seed=1)
        dataset = dataset.batch(self.batch)
        return dataset.prefetch(setting.buffer) if self.position == PREFETCH else dataset

    @property
    def tuned(self) -> Setting:
        """AUTOTUNE for everything that this cell leaves open."""
        return Setting(AUTOTUNE, AUTOTUNE if self.kind == PROCESSES else "thread", AUTOTUNE)

    def settings(self, calls: tuple[int | None, ...]) -> list[Setting]:
        """Return the fixed settings with these numbers of calls, and those that only this cell has."""
        settings = [Setting(number) for number in calls]
        if self.position == PREFETCH:
            settings.append(Setting(None, buffer=0))
        if self.kind == PROCESSES:
            settings.append(Setting(2, "process"))
        return settings


# Stages and sources


def each(function: Function) -> Stage:
    def stage(dataset: Dataset[Any], setting: Setting) -> Dataset[Any]:
        return dataset.map(function, num_parallel_calls=setting.calls, executor=setting.executor)

    return stage


def randomly(function: Function) -> Stage:
    return lambda dataset, setting: dataset.random_map(function, seed=1, num_parallel_calls=setting.calls)


def read_files(opening: float, reading: float, block: int = 1) -> Stage:
    """Interleave files which wait when they are opened, and again before each block of records.

    The elements of the input are the numbers of records in the files.
    """

    def records(count: int) -> Iterator[int]:
        time.sleep(opening)
        for record in range(count):
            if record % block == 0:
                time.sleep(reading)
            yield record

    def read(count: Any) -> Dataset[Any]:
        return Dataset.from_generator(lambda: records(int(count)), output_signature=Dataset.range(1).element_spec)

    return lambda dataset, setting: dataset.interleave(read, cycle_length=16, num_parallel_calls=setting.calls)


def file_sizes(count: int) -> Dataset[Any]:
    """The numbers of records in 64 files."""
    return Dataset.from_tensor_slices(np.full(64, max(1, count // 64)))


def repeated(make: Callable[[], list[Any]]) -> Source:
    """The values of a list over and over, made once."""
    values = functools.cache(make)
    return lambda count: Dataset.from_tensor_slices(values()).repeat().take(count)


@functools.cache
def scale() -> tuple[int, int]:
    """Return how many steps of `spin`, and sines of blocks of 4,096 numbers, fit into a second here."""
    return steps_for(1), int(10 / min(seconds(lambda: sines(10, None)) for _ in range(200)))


_NUMBERS = np.linspace(0, 100, 1 << 12)


def holds_lock(duration: float) -> Function:
    """A function in pure Python that holds the interpreter lock for so many seconds."""
    return functools.partial(spin, max(1, int(scale()[0] * duration)))


def sines(blocks: int, x: Any) -> Any:
    for _ in range(blocks):
        np.sin(_NUMBERS)
    return x


def releases_lock(duration: float) -> Function:
    """A function in NumPy that takes so many seconds, and lets other threads run meanwhile."""
    return functools.partial(sines, max(1, int(scale()[1] * duration)))


# Functions


def waits(duration: float) -> Function:
    def fetch(x: Any) -> Any:
        time.sleep(duration)
        return x

    return fetch


def fetch_row(key: Any) -> dict[str, Any]:
    """A row from a slow table."""
    time.sleep(0.01)
    return {"key": key, "value": float(key) / 2}


class Store:
    """A client of a remote store, used through a method."""

    def __init__(self, latency: float, then: Function) -> None:
        self.latency = latency
        self.then = then

    def get(self, key: Any) -> Any:
        time.sleep(self.latency)
        return self.then(key)


_DOCUMENT = json.dumps({"id": 7, "tags": ["a", "b"], "scores": [index / 7 for index in range(40)]})


def parse_document(key: Any) -> dict[str, Any]:
    document = json.loads(_DOCUMENT)
    return {"key": key, "scores": np.array(document["scores"], np.float32)}


_BUFFER = bytes(range(256)) * 1024


def digest(x: Any) -> dict[str, Any]:
    """About 2 ms of hashing, which releases the lock."""
    found = hashlib.sha256(_BUFFER)
    for _ in range(11):
        found.update(_BUFFER)
    return {"x": x, "digest": np.frombuffer(found.digest(), np.uint8)}


def pure(x: Any) -> Any:
    return x * 3 + 1


def photos() -> list[bytes]:
    use_one_thread_for_each_call()
    return [photo(seed) for seed in range(8)]


def samples() -> list[bytes]:
    rng = np.random.default_rng(0)
    return [bytes([label % 10 + 1]) + rng.integers(1, 255, 64, np.uint8).tobytes() for label in range(512)]


def split(record: bytes) -> tuple[int, Any]:
    return record[0], np.frombuffer(record, np.uint8, offset=1)


def parse_sample(record: bytes) -> dict[str, Any]:
    """About 4 us: a label and the pixels of a small image."""
    label, pixels = split(record)
    return {"label": np.int64(label), "pixels": pixels.reshape(8, 8).astype(np.float32) / np.float32(255) - 0.5}


def images() -> list[Any]:
    return list(np.random.default_rng(0).integers(0, 255, (64, 32, 32, 3), np.uint8))


def augment(rng: np.random.Generator, image: Any) -> Any:
    """Flip, crop and change the brightness, in small operations."""
    if rng.random() < 0.5:
        image = image[:, ::-1]
    padded = np.pad(image, ((4, 4), (4, 4), (0, 0)))
    top, left = rng.integers(0, 8, 2)
    image = padded[top : top + 32, left : left + 32].astype(np.float32) / 255
    return np.clip(image * rng.uniform(0.8, 1.2) + rng.uniform(-0.1, 0.1), 0, 1)


def normalize(image: Any) -> Any:
    return (image - np.float32(0.45)) / np.float32(0.22)


SENTENCE = "the quick brown fox jumps over a lazy dog while seven new boxes of old wine wait near every harbour"
WORDS = SENTENCE.split()


def sentences() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, 40)).capitalize() + "." for _ in range(256)]


class Tokenizer:
    """A vocabulary of words; the others are split into characters."""

    def __init__(self, words: list[str], length: int) -> None:
        self.ids = {word: index for index, word in enumerate([*words, *"abcdefghijklmnopqrstuvwxyz.,"], 1)}
        self.length = length

    def encode(self, text: Any) -> dict[str, Any]:
        text = text.decode() if isinstance(text, bytes) else str(text)
        ids: list[int] = []
        for word in re.findall(r"\w+|[^\w\s]", text.lower()):
            found = self.ids.get(word)
            ids.extend([found] if found is not None else [self.ids.get(letter, 0) for letter in word])
        ids = ids[: self.length] + [0] * (self.length - len(ids))
        return {"ids": np.array(ids, np.int32), "mask": np.array([bool(token) for token in ids])}


TOKENIZER = Tokenizer(WORDS[:14], 64)


# The cells

ITERATED: dict[str, Any] = {"rebuilt": False}
TRAINING: dict[str, Any] = {"position": PREFETCH, "epoch": LONG, "rebuilt": False, "consumer": "computing"}
"""A pipeline beside a training step."""


@functools.cache  # scales functions when it is called first, so that the work is the same in all forks
def tuned_cells() -> list[Cell]:
    """Return the cells that the controller was developed on."""
    return [
        Cell(WAITS, "1 ms", (each(waits(1e-3)),)),
        Cell(WAITS, "0.2 ms", (each(waits(2e-4)),), 128),
        Cell(WAITS, "1 ms", (each(waits(1e-3)),), position=SHUFFLE, epoch=LONG, rebuilt=False, consumer="sleeping"),
        Cell(WAITS, "10 ms", (each(waits(1e-2)),)),
        Cell(WAITS, "10 ms", (each(waits(1e-2)),), **TRAINING),
        Cell(WAITS, "10 ms, dict", (each(fetch_row),), position=SHUFFLED, **ITERATED),
        Cell(WAITS, "1 ms, then a cheap map", (each(waits(1e-3)), each(pure))),
        Cell(BOTH, "1 ms, 100 us of Python", (each(Store(1e-3, holds_lock(1e-4)).get),)),
        Cell(BOTH, "2 ms, 500 us of NumPy", (each(Store(2e-3, releases_lock(5e-4)).get),), **TRAINING),
        Cell(BOTH, "5 ms, then JSON", (each(Store(5e-3, parse_document).get),), position=SHUFFLED, **ITERATED),
        Cell(BOTH, "maps of 2 ms and 200 us of Python", (each(waits(2e-3)), each(holds_lock(2e-4)))),
        Cell(FILES, "64 files", (read_files(5e-3, 5e-4),), source=file_sizes),
        Cell(FILES, "64 files", (read_files(5e-3, 5e-4),), source=file_sizes, **ITERATED),
        Cell(FILES, "and 1 ms", (read_files(1e-2, 2e-4), each(waits(1e-3))), source=file_sizes, epoch=LONG),
        Cell(FILES, "in blocks", (read_files(1e-2, 2e-3, 4),), 32, file_sizes, PREFETCH, consumer="sleeping"),
        Cell(HELD, "200 us", (each(holds_lock(2e-4)),), **ITERATED),
        Cell(HELD, "5 us", (each(holds_lock(5e-6)),), 128),
        Cell(HELD, "50 us", (each(holds_lock(5e-5)),), 64, position=SHUFFLE),
        Cell(HELD, "50 us", (each(holds_lock(5e-5)),), 64, **TRAINING),
        Cell(HELD, "2 ms", (each(holds_lock(2e-3)),), 8, position=PREFETCH, consumer="sleeping"),
        Cell(HELD, "maps of 50 and 200 us", (each(holds_lock(5e-5)), each(holds_lock(2e-4)))),
        Cell(PROCESSES, "200 us", (each(holds_lock(2e-4)),), position=SHUFFLED),
        Cell(PROCESSES, "200 us", (each(holds_lock(2e-4)),), epoch=LONG),
        Cell(PROCESSES, "2 ms", (each(holds_lock(2e-3)),), 8, **TRAINING),
        Cell(PROCESSES, "words", (each(TOKENIZER.encode),), 32, repeated(sentences), **ITERATED),
        Cell(RELEASED, "1 ms of NumPy", (each(releases_lock(1e-3)),), 16),
        Cell(RELEASED, "2 ms of hashing", (each(digest),), 8, **TRAINING),
        Cell(RELEASED, "2 ms of hashing", (each(digest),), 8, position=SHUFFLED),
        Cell(RELEASED, "JPEG", (each(decode),), 8, repeated(photos), **ITERATED),
        Cell(RELEASED, "1 ms of NumPy", (each(releases_lock(1e-3)),), 16, position=SHUFFLE, consumer="sleeping"),
        Cell(
            RELEASED, "maps of 200 us and 1 ms", (each(releases_lock(2e-4)), each(releases_lock(1e-3))), 16, **ITERATED
        ),
        Cell(COLUMNS, "a lambda", (each(lambda x: x * 3 + 1),), 128),
        Cell(COLUMNS, "a function", (each(pure),), 128, position=SHUFFLE, **ITERATED),
        Cell(COLUMNS, "a dict", (each(lambda x: {"x": x, "y": x * 0.5 - 2}),), 128, **TRAINING),
        Cell(COLUMNS, "two lambdas", (each(lambda x: x + 7), each(lambda x: x * x)), 128),
        Cell(PARSE, "4 us", (each(parse_sample),), 128, repeated(samples), SHUFFLED),
        Cell(PARSE, "4 us", (each(parse_sample),), 128, repeated(samples), SHUFFLED, LONG, rebuilt=False),
        Cell(PARSE, "4 us", (each(parse_sample),), 128, repeated(samples), SHUFFLED, consumer="computing", **ITERATED),
        Cell(AUGMENT, "random_map", (randomly(augment),), 32, repeated(images)),
        Cell(AUGMENT, "random_map", (randomly(augment),), 32, repeated(images), **TRAINING),
        Cell(AUGMENT, "and map", (randomly(augment), each(normalize)), 32, repeated(images), SHUFFLED, **ITERATED),
        Cell(TOKENS, "words", (each(TOKENIZER.encode),), 32, repeated(sentences)),
        Cell(
            TOKENS,
            "words",
            (each(TOKENIZER.encode),),
            32,
            repeated(sentences),
            SHUFFLED,
            consumer="sleeping",
            **ITERATED,
        ),
    ]

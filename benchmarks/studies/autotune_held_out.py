"""Cells of the AUTOTUNE study that are held out: reported apart, and never used to choose a constant of the controller.

They are of the same classes as the others, with other functions, and of one more: work that changes.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
import sqlite3
import struct
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from autotune_cells import (
    AUGMENT,
    BOTH,
    CHANGING,
    COLUMNS,
    FILES,
    HELD,
    ITERATED,
    LONG,
    PARSE,
    PREFETCH,
    PROCESSES,
    RELEASED,
    SHUFFLE,
    SHUFFLED,
    TOKENS,
    TRAINING,
    WAITS,
    Cell,
    Setting,
    each,
    holds_lock,
    randomly,
    repeated,
    sentences,
)

from dataset import Dataset

# Waits


def jittered(x: Any) -> Any:
    """Wait for 0 to 4 ms, as a busy server makes its clients wait."""
    time.sleep((int(x) * 2654435761 % 1000) * 4e-6)
    return x


def poll(event: threading.Event, x: Any) -> Any:
    """Wait for an event that never comes, with a time-out."""
    event.wait(3e-3)
    return {"x": x, "is_set": event.is_set()}


class Cache:
    """A cache that all threads share: one of four elements is missing, which takes 3 ms."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: dict[int, float] = {}

    def __call__(self, x: Any) -> float:
        key = int(x) % 1000
        with self.lock:
            found = self.values.get(key)
        if found is None or key % 4 == 0:
            if key % 4 == 0:
                time.sleep(3e-3)
            found = key**0.5
            with self.lock:
                self.values[key] = found
        return found


def packed() -> list[bytes]:
    rng = np.random.default_rng(0)
    return [zlib.compress(rng.integers(0, 50, 60_000, np.uint8).tobytes(), 1) for _ in range(16)]


def unpack(contents: bytes) -> Any:
    return np.frombuffer(zlib.decompress(contents), np.uint8)


def download(contents: bytes) -> Any:
    """Wait for 4 ms, then decompress."""
    time.sleep(4e-3)
    return unpack(contents).reshape(200, 300).mean(axis=0)


def shards(dataset: Dataset[Any], setting: Setting) -> Dataset[Any]:
    """Read 8 files at a time, of different lengths, whose records wait for 1 ms each."""

    def wait(x: Any) -> Any:
        time.sleep(1e-3)
        return x

    def read(number: Any) -> Dataset[Any]:
        time.sleep(2e-3)
        return Dataset.range(int(number) % 24 + 1).map(wait)

    return dataset.interleave(read, cycle_length=8, block_length=2, num_parallel_calls=setting.calls)


# Functions that hold the lock


def events() -> list[str]:
    return [
        json.dumps({"user": index, "items": [{"id": item, "price": item / 3} for item in range(index % 40 + 20)]})
        for index in range(200)
    ]


def parse_event(line: Any) -> dict[str, Any]:
    event = json.loads(line)
    prices = [item["price"] for item in event["items"] if item["id"] % 2]
    return {"user": event["user"], "total": sum(prices), "most": max(prices)}


_LINE = re.compile(
    r"(?P<address>[\d.]+) \S+ \S+ \[(?P<time>[^\]]+)\] \"(?P<verb>\w+) (?P<path>\S+)[^\"]*\" (?P<status>\d+)"
)


def log_lines() -> list[str]:
    return [
        f'10.0.{n}.7 - - [01/Jan/2026:00:00:{n % 60}] "GET /a/{n}?q={n} HTTP/1.1" {200 + n % 3}' for n in range(256)
    ]


def parse_line(line: Any) -> dict[str, Any]:
    found = _LINE.match(line.decode() if isinstance(line, bytes) else str(line))
    assert found
    fields = found.groupdict()
    return {"status": int(fields["status"]), "depth": fields["path"].count("/"), "address": fields["address"]}


def label(x: Any) -> str:
    return f"sample-{int(x):08d}/{int(x) % 10}.png".upper()


def ranking(x: Any) -> Any:
    """Sort 300 keys with a Python function."""
    values = [(int(x) * 7919 + index * 104729) % 10007 for index in range(300)]
    return np.array(sorted(values, key=lambda value: (value % 10, -value)))


@functools.cache  # in the process that iterates: a connection must not be used behind a fork
def table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE samples (key INTEGER PRIMARY KEY, label TEXT, weight REAL)")
    connection.executemany("INSERT INTO samples VALUES (?, ?, ?)", ((n, f"label {n}", n / 3) for n in range(10_000)))
    return connection


def look_up(key: Any) -> dict[str, Any]:
    query = "SELECT label, weight FROM samples WHERE key = ?"
    name, weight = table().execute(query, (int(key) % 10_000,)).fetchone()
    return {"label": name, "weight": weight}


HEADER = struct.Struct("<IHHfd")


def headers() -> list[bytes]:
    return [HEADER.pack(n + 1, 3, n % 7 + 1, n / 3 + 1, n / 7 + 1) for n in range(500)]


def parse_header(record: bytes) -> tuple[int, int, float]:
    key, _, kind, weight, score = HEADER.unpack_from(record)
    return key, kind, weight * score


def pairs(text: Any) -> dict[str, Any]:
    """Count the pairs of letters."""
    text = text.decode() if isinstance(text, bytes) else str(text)
    counts: dict[str, int] = {}
    for first, second in itertools.pairwise(text):
        counts[first + second] = counts.get(first + second, 0) + 1
    return {"distinct": len(counts), "most": max(counts.values())}


# Functions of NumPy


def signals() -> list[Any]:
    return list(np.random.default_rng(0).standard_normal((16, 16_384)).astype(np.float32))


def spectrum(signal: Any) -> Any:
    frames = signal.reshape(64, 256) * np.hanning(256)
    return np.log1p(np.abs(np.fft.rfft(frames, axis=1)))


def median_of(signal: Any) -> Any:
    return {"median": np.sort(signal)[len(signal) // 2], "range": np.ptp(signal)}


def noisy(rng: np.random.Generator, signal: Any) -> Any:
    """Shift, scale, add noise and mask, as for audio."""
    signal = np.roll(signal[:2048], rng.integers(0, 2048)) * np.float32(rng.uniform(0.5, 1.5))
    signal += rng.normal(0, 0.1, 2048).astype(np.float32)
    start = rng.integers(0, 1900)
    signal[start : start + 100] = 0
    return signal


def category(x: Any) -> dict[str, Any]:
    return {"even": x % 2 == 0, "bucket": (x * 37 + 11) % 1024, "score": (x + 0.5) / 100}


def thumbnails() -> list[Any]:
    return list(np.random.default_rng(0).integers(0, 255, (64, 8, 8), np.uint8))


def to_float(image: Any) -> Any:
    return image.astype(np.float32) / 255


# Work that changes


def alternating(costly: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Cheap elements, and one of eight that is expensive."""
    return lambda x: costly(x) if x % 8 == 0 else x


def phases(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Compute for 512 elements, wait 1 ms for each of the next 512, and so on."""

    def function(x: Any) -> Any:
        if x // 512 % 2:
            time.sleep(1e-3)
            return x
        return compute(x)

    return function


@functools.cache
def held_out_cells() -> list[Cell]:
    """Return the cells that are reported apart."""
    sleeping: dict[str, Any] = {"position": PREFETCH, "rebuilt": False, "consumer": "sleeping"}
    every = [
        Cell(WAITS, "0 to 4 ms", (each(jittered),)),
        Cell(
            WAITS, "3 ms, an event", (each(functools.partial(poll, threading.Event())),), position=SHUFFLED, **ITERATED
        ),
        Cell(WAITS, "a shared cache", (each(Cache()),), 64, **TRAINING),
        Cell(BOTH, "4 ms, then zlib", (each(download),), 32, repeated(packed)),
        Cell(FILES, "8 of different lengths", (shards,), source=lambda n: Dataset.range(n // 12 + 1), position=SHUFFLE),
        Cell(PROCESSES, "JSON", (each(parse_event),), 64, repeated(events)),
        Cell(HELD, "a regular expression", (each(parse_line),), 64, repeated(log_lines), SHUFFLED, **ITERATED),
        Cell(HELD, "strings", (each(label),), 128, **sleeping),
        Cell(PROCESSES, "sorting", (each(ranking),), 32, epoch=LONG),
        Cell(HELD, "SQLite", (each(look_up),), 128),
        Cell(PARSE, "struct", (each(parse_header),), 128, repeated(headers), SHUFFLED),
        Cell(TOKENS, "pairs of letters", (each(pairs),), 32, repeated(sentences), **sleeping),
        Cell(RELEASED, "zlib", (each(unpack),), 16, repeated(packed)),
        Cell(RELEASED, "FFT", (each(spectrum),), 16, repeated(signals), **TRAINING),
        Cell(
            RELEASED,
            "sorting, then a map",
            (each(median_of), each(lambda row: {**row, "half": row["range"] / 2})),
            16,
            repeated(signals),
        ),
        Cell(AUGMENT, "audio", (randomly(noisy),), 32, repeated(signals), SHUFFLE),
        Cell(COLUMNS, "a dict of three", (each(category),), 256, **ITERATED),
        Cell(COLUMNS, "images to float", (each(to_float),), 128, repeated(thumbnails), PREFETCH),
        Cell(CHANGING, "one of eight takes 1 ms of Python", (each(alternating(holds_lock(1e-3))),), 64),
        Cell(
            CHANGING,
            "100 us of Python or 1 ms of waiting",
            (each(phases(holds_lock(1e-4))),),
            epoch=LONG,
            rebuilt=False,
        ),
    ]
    return [dataclasses.replace(cell, held_out=True) for cell in every]

"""Measures functions that parse MNIST Examples, in many forms (function_forms.py), beside plain loops.

    python benchmarks/studies/functions.py [--rounds 5] [--only TEXT]

Each pipeline is ``TFRecordDataset(...).map(function).shuffle(2000).batch(128)``, with the function in sequence and with
``num_parallel_calls=AUTOTUNE``. The loop runs the same function: it reads with struct, parses with protobuf, shuffles
in a list, and stacks with NumPy. They take turns, epoch by epoch, in one process; the first turn is a warm-up. The
study prints the medians in microseconds per element, and how many times as fast as the loop the pipeline is, as the
median over the turns.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import function_forms
import numpy as np
from loops import shuffled

from dataset import AUTOTUNE, TFRecordDataset, io
from dataset.io.example.messages import Example

COUNT = 60_000
BATCH = 128
BUFFER = 2000


def make_file(path: Path) -> None:
    rng = np.random.default_rng(0)
    with io.TFRecordWriter(path) as writer:
        for number in range(COUNT):
            writer.write(io.encode_example({"image": rng.bytes(784), "label": number % 10}))


def parse_with_protobuf(record: bytes, features: object) -> dict[str, Any]:
    feature = Example.FromString(record).features.feature
    return {"image": feature["image"].bytes_list.value[0], "label": np.int64(feature["label"].int64_list.value[0])}


def plain_forms() -> dict[str, Callable[[bytes], Any]]:
    """The functions of the loops: the same code, which parses with protobuf and NumPy."""
    assert function_forms.__spec__ is not None
    module = importlib.util.module_from_spec(function_forms.__spec__)
    assert function_forms.__spec__.loader is not None
    function_forms.__spec__.loader.exec_module(module)
    module.io = SimpleNamespace(parse_single_example=parse_with_protobuf, decode_raw=np.frombuffer)
    forms: dict[str, Callable[[bytes], Any]] = module.FORMS
    return forms


def records_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while header := file.read(12):
            yield file.read(struct.unpack("<Q", header[:8])[0])
            file.read(4)


def stacked(elements: list[Any]) -> Any:
    first = elements[0]
    if isinstance(first, dict):
        return {name: np.stack([element[name] for element in elements]) for name in first}
    return tuple(map(np.stack, zip(*elements, strict=True)))


def loop(path: Path, function: Callable[[bytes], Any]) -> Iterator[Any]:
    batch: list[Any] = []
    for element in shuffled(map(function, records_of(path)), BUFFER):
        batch.append(element)
        if len(batch) == BATCH:
            yield stacked(batch)
            batch = []
    if batch:
        yield stacked(batch)


def seconds_of(batches: Iterable[Any]) -> float:
    started = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - started


def measure(path: Path, name: str, plain: Callable[[bytes], Any], rounds: int) -> tuple[float, float]:
    records, function = TFRecordDataset(path), function_forms.FORMS[name]
    sides: tuple[Iterable[Any], ...] = (
        records.map(function, num_parallel_calls=AUTOTUNE).shuffle(BUFFER, seed=1).batch(BATCH),
        records.map(function).shuffle(BUFFER, seed=1).batch(BATCH),
    )
    turns = [[seconds_of(loop(path, plain)), *map(seconds_of, sides)] for _ in range(1 + rounds)][1:]
    medians = [statistics.median(column) / COUNT * 1e6 for column in zip(*turns, strict=True)]
    tuned, sequential = (statistics.median(turn[0] / turn[side] for turn in turns) for side in (1, 2))
    print(f"{name:18}", *(f"{median:10.2f}" for median in medians), f"{tuned:10.2f} {sequential:10.2f}", flush=True)
    return tuned, sequential


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only forms with this text in their name")
    arguments = parser.parse_args()
    print(f"{'us per element':18}       loop   AUTOTUNE sequential   AUTOTUNE/loop, sequential/loop")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mnist.tfrecord")
        make_file(path)
        forms = {name: plain for name, plain in plain_forms().items() if arguments.only in name}
        found = [measure(path, name, plain, arguments.rounds) for name, plain in forms.items()]
    means = [statistics.geometric_mean(column) for column in zip(*found, strict=True)]
    print(f"{'geometric mean':51}", *(f"{mean:10.2f}" for mean in means))


if __name__ == "__main__":
    main()

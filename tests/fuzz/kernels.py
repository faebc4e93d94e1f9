"""Fuzzer of the native kernels, compiled with AddressSanitizer and UndefinedBehaviorSanitizer.

    python -m tests.fuzz.kernels --seconds 60 --seed 7

Each kernel is compared with its twin on mutated inputs. Buffers come from malloc, so that the sanitizer notices access
outside of them. It ends the process at the first error, after a report.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dataset import Dataset
from dataset.io.csv.layout import layout_of
from dataset.io.csv.rows import parse_rows, read_rows
from dataset.io.example.columns import MessageReader
from dataset.io.example.encode import encode_example
from dataset.io.example.kernel_columns import KernelReader, kernels_for_strings
from dataset.io.example.messages import SequenceExample
from dataset.io.image.resize import METHODS, axis_of, resample, resize
from dataset.io.tfrecord.frame_finder import find_frames
from dataset.io.tfrecord.frames import framed_all, walk_frames
from dataset.native import library
from dataset.native.ragged_rows import copy_by_numpy, copy_rows
from dataset.plan.values import object_column
from dataset.testing import outcomes
from support.example_columns import contents, in_blocks, steps_of
from support.row_results import give, results, without_row_loop
from support.seeds import fresh_seed

from .mutate import mutated

ROOT = Path(__file__).parents[2]
SANITIZERS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
COMPILER = os.environ.get("CC", "cc").split()


def try_frames(rng: random.Random) -> bool:
    """Compare ``find_frames`` with its twin."""
    content = framed_all([rng.randbytes(int(rng.expovariate(0.02))) for _ in range(rng.randrange(6))])
    block = mutated(rng, content, [content]) if rng.random() < 0.5 else content[: rng.randrange(len(content) + 1)]
    arguments = block, rng.choice((0, 0, 0, 1, 50)), rng.randrange(3)
    return find_frames(*arguments) == walk_frames(*arguments)


def try_features(rng: random.Random) -> bool:
    """Compare the kernels of Examples with their twin."""
    keys, records = ["a", "ab", "b"], []
    for _ in range(rng.randrange(1, 5)):
        values = {"a": [rng.getrandbits(rng.randrange(1, 64)) - rng.randrange(2) for _ in range(rng.randrange(12))]}
        values |= {"ab": [rng.randbytes(rng.randrange(9)) for _ in range(rng.randrange(4))], "b": [rng.random()]}
        record = encode_example(dict(rng.sample(list(values.items()), rng.randrange(4))))
        records.append(mutated(rng, record, records or [record]) if rng.random() < 0.3 else record)
    reader = KernelReader(kernels_for_strings(), keys)
    form = rng.choice([object_column, in_blocks])
    found = contents(lambda: reader.columns(form(records)), len(records), keys)
    return bool(found == contents(lambda: MessageReader(keys).columns(records), len(records), keys))


def try_steps(rng: random.Random) -> bool:
    """Compare the kernels of SequenceExamples with their twin: mostly lists whose steps are all of one kind."""
    keys, records = ["a", "ab", "b"], []
    kinds = {key: rng.choice(list(VALUES)) for key in keys}
    for _ in range(rng.randrange(1, 5)):
        message = SequenceExample()
        for key in rng.sample(keys, rng.randrange(4)):
            for _ in range(rng.randrange(6)):
                step, size = message.feature_lists.feature_list[key].feature.add(), rng.randrange(9)
                kind = kinds[key] if rng.random() < 0.97 else rng.choice([*VALUES, ""])
                if kind:
                    getattr(step, kind).value.extend(VALUES[kind](rng) for _ in range(size))
        record = message.SerializeToString(deterministic=True)
        records.append(mutated(rng, record, records or [record]) if rng.random() < 0.3 else record)
    reader = KernelReader(kernels_for_strings(), keys, in_lists=True)
    found = steps_of(lambda: reader.steps(object_column(records)), keys)
    return bool(found == steps_of(lambda: MessageReader(keys).steps(records), keys))


def try_rows(rng: random.Random) -> bool:
    """Compare the kernels of CSV with their twin."""
    layout = rng.choice(LAYOUTS)
    fields = [rng.choice(FIELDS) + rng.choice(FIELDS) if rng.random() < 0.3 else rng.choice(FIELDS) for _ in range(60)]
    fields += [b"%.*f" % (rng.randrange(18), rng.gauss(0, 10 ** rng.randrange(9))) for _ in range(20)]
    rows = [rng.choice((b",", b",", b"\t")).join(rng.choices(fields, k=3)) for _ in range(rng.randrange(12))]
    block = rng.choice((b"\n", b"\r\n", b"\r")).join(rows) + rng.choice((b"\n", b"\r", b""))
    if block and rng.random() < 0.3:
        block = mutated(rng, block, [block])
    start = rng.choice((0, 0, rng.randrange(len(block) + 1)))
    found, expected = read_rows(block, start, layout), parse_rows(block, start, layout)
    errors = [[(row, str(error)) for row, error in rows.errors.items()] for rows in (found, expected)]
    columns = [
        repr([np.delete(column, list(rows.errors)).tolist() for column in rows.columns]) for rows in (found, expected)
    ]
    return list(found.starts) == list(expected.starts) and columns[0] == columns[1] and errors[0] == errors[1]


def try_images(rng: random.Random) -> bool:
    """Compare the kernel of images with its twin."""
    old, new, channels = rng.sample(range(1, 20), 2), rng.sample(range(1, 20), 2), rng.randrange(1, 9)
    method, antialias = rng.choice([method for method in METHODS if method != "nearest"]), rng.random() < 0.5
    pixels = np.frombuffer(rng.randbytes(old[0] * old[1] * channels), np.uint8)
    image = pixels.reshape(*old, channels).astype(rng.choice((np.uint8, np.float32)))
    image = image * np.float32(rng.random()) if image.dtype == np.float32 else image
    rows, columns = (axis_of(*sides, method, antialias) for sides in zip(old, new, strict=True))
    return np.array_equal(resize(image, new, method, antialias), resample(image, rows, columns))


def try_ragged_rows(rng: random.Random) -> bool:
    """Compare the kernel of rows with its twin. If splits are damaged, it must only stay within the arrays."""
    values = np.frombuffer(rng.randbytes(3 * rng.randrange(20)), "V3")
    splits = np.array(sorted(rng.choices(range(len(values) + 1), k=rng.randrange(1, 9))), np.int64)
    lengths = np.diff(splits)
    indices = (
        None if rng.random() < 0.5 else np.array(rng.choices(range(len(lengths)), k=9 if len(lengths) else 0), int)
    )
    shape = (len(lengths), lengths.max(initial=0)) if indices is None else (lengths[indices].sum(),)
    found, expected = np.zeros(shape, "V3"), np.zeros(shape, "V3")
    if rng.random() < 0.3:
        splits[rng.randrange(len(splits))] = rng.choice((-1, len(values) + 1, 2**63 - 1, -(2**63)))
        with contextlib.suppress(ValueError):
            copy_rows(values, splits, found, indices)
        return True
    copy_rows(values, splits, found, indices)
    copy_by_numpy(values, splits, expected, indices)
    return bool((found == expected).all())


def try_row_loop(rng: random.Random) -> bool:
    """Compare the row loop with its twin."""
    made, size = results(rng, rng.randrange(2, 40)), rng.randrange(2, 12)
    values, batch = Dataset.range(len(made)).map(lambda i: give(made[i])), rng.random() < 0.5
    given = Dataset.from_generator(lambda: map(give, made))

    def found() -> list[str]:
        return [
            repr(list(outcomes(iter(data.batch(size) if batch else data.prefetch(size))))) for data in (values, given)
        ]

    mine = found()
    with without_row_loop():
        return mine == found()


VALUES: dict[str, Callable[[random.Random], Any]] = {
    "int64_list": lambda rng: rng.getrandbits(rng.randrange(1, 64)),
    "float_list": random.Random.random,
    "bytes_list": lambda rng: rng.randbytes(rng.randrange(9)),
}
FIELDS = b"0 -17 4294967296 9223372036854775807 1.5 -0.30000000000000004 1e-30 . e nan -inf text".split()
FIELDS += b'123456789012345678901 "a,b" " NA'.split()
FIELDS += [b"", b" 1 ", b"x" * 70, b"a\0", b'"a""b\n"']
DEFAULTS = [
    [bytes, np.int64, np.float64(0)],
    [np.float32, b"", np.int32(7)],
    [np.float32(1), np.float32, np.float32(2)],
]
LAYOUTS = [
    layout_of("fuzz", *options)
    for options in itertools.product(DEFAULTS, (",", "\t", "1", "e"), (True, False), ("", "NA", "-17"))
]
LAYOUTS += [
    layout_of("fuzz", DEFAULTS[0][:2], select_cols=[0, 2]),
    layout_of("fuzz", [np.float64, bytes], exclude_cols=[1]),
]


TRIALS = {
    "copy_rows": try_ragged_rows,
    "copy_texts": try_rows,
    "decode_features": try_features,
    "find_features": try_features,
    "find_frames": try_frames,
    "find_steps": try_steps,
    "read_rows": try_rows,
    "resample": try_images,
    "row_loop": try_row_loop,
}
"""By kernel: a function that draws an input and returns whether the kernel and its twin agree."""


def main() -> int:
    """Run the fuzzer; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kernels", description="Try mutated inputs.")
    parser.add_argument("--seconds", type=float, default=60, help="for all kernels together (default: 60)")
    parser.add_argument("--count", type=int, default=sys.maxsize, help="at most this many inputs for each kernel")
    parser.add_argument("--seed", type=int, help="default: a fresh one")
    parser.add_argument("--library", type=Path, help="the compiled kernels; default: compile them and start again")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = fresh_seed()
    if arguments.library is None:
        limits = {"seconds": arguments.seconds, "count": arguments.count, "seed": arguments.seed}
        return _with_sanitizers([part for name, value in limits.items() for part in (f"--{name}", str(value))])
    library.LIBRARY = arguments.library
    sys.stdout.write(f"seed {arguments.seed}; native kernels: {library.kernels_status()}\n")
    for name, agree in TRIALS.items():
        rng, tried, end = random.Random(arguments.seed), 0, time.monotonic() + arguments.seconds / len(TRIALS)
        while tried < arguments.count and time.monotonic() < end:
            tried += 1
            if not agree(rng):
                sys.stdout.write(f"{name}: input {tried} differs from the twin\n")
                return 1
        sys.stdout.write(f"{name:16} {tried:9,} inputs\n")
    return 0


def _with_sanitizers(arguments: list[str]) -> int:
    found = subprocess.run([*COMPILER, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False)
    if not Path(found.stdout.strip()).is_absolute():
        sys.stdout.write(f"{COMPILER[0]} has no AddressSanitizer that can be preloaded; the kernels are not tried\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        target = Path(folder, "kernels.so")
        if reasons := runpy.run_path(os.fspath(ROOT / "hatch_build.py"))["compile_kernels"](target, *SANITIZERS):
            sys.stdout.write(f"{reasons}\n")
            return 1
        settings = {"LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
        settings |= {"PYTHONMALLOC": "malloc", "DATASET_NATIVE": "1"}
        command = [sys.executable, "-m", "tests.fuzz.kernels", "--library", target, *arguments]
        return subprocess.run(command, cwd=ROOT, env=os.environ | settings, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

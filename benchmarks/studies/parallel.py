"""Measures what is promised of parallel pipelines, and prints what was got beside what was wanted.

    python benchmarks/studies/parallel.py [--runs 5] [--only TEXT]

Every number is a ratio, or a difference, of two things done in turn in one process, run by run; what is printed is the
median over the runs. The first run of each is a warm-up and not counted. Where a limit of the machine bounds the
number, such as two plain threads over the same calls, it stands below it, with nothing wanted.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dataset import Dataset, Options, io

CASES: dict[str, Callable[[int], None]] = {}
WIDTH = 78


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each side")
    parser.add_argument("--only", default="", help="only cases with this text in their name")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{platform.python_implementation()} {platform.python_version()}, {cores} cores\n")
    print(f"{'':<{WIDTH}}{'got':>12}{'wanted':>12}")
    for name, case in CASES.items():
        if arguments.only in name:
            measure(name, case, arguments.runs)


def measure(name: str, case: Callable[[int], None], runs: int) -> None:
    print(name)
    try:
        case(runs)
    except Exception as error:  # noqa: BLE001  # the other cases are worth having
        print(f"  {type(error).__name__}: {error}")
    print(flush=True)


def case(name: str) -> Callable[[Callable[[int], None]], Callable[[int], None]]:
    def register(function: Callable[[int], None]) -> Callable[[int], None]:
        CASES[name] = function
        return function

    return register


def report(
    what: str, got: float, *, at_least: float | None = None, at_most: float | None = None, unit: str = ""
) -> None:
    """Print a line; without a bound, it is there to compare with."""
    wanted = "" if at_least is at_most else f">= {at_least:g}" if at_most is None else f"<= {at_most:g}"
    is_ok = (at_least is None or got >= at_least) and (at_most is None or got <= at_most)
    verdict = "" if not wanted else "  ok" if is_ok else "  NOT OK"
    print(f"  {what:<{WIDTH - 2}}{got:>12.2f}{wanted:>12} {unit:<5}{verdict}", flush=True)


def seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def in_turn(runs: int, *sides: Callable[[], float]) -> list[tuple[float, ...]]:
    """What the sides return, run by run; each does its work and returns how long it took."""
    return [tuple(side() for side in sides) for _ in range(runs + 1)][1:]


def median_ratios(rounds: list[tuple[float, ...]]) -> list[float]:
    """By how much each side but the first is faster than the first."""
    return [statistics.median(times[0] / times[side] for times in rounds) for side in range(1, len(rounds[0]))]


def timed(dataset: Iterable[Any]) -> Callable[[], float]:
    """A side that iterates once."""
    return lambda: seconds(lambda: consume(dataset))


def consume(elements: Iterable[Any]) -> None:
    for _ in elements:
        pass


def measured_sleep(duration: float, threads: int) -> float:
    """What ``time.sleep`` takes here when that many threads sleep at a time; never less than was asked for."""

    def nap(_: int) -> float:
        return statistics.fmean(seconds(lambda: time.sleep(duration)) for _ in range(50))

    with ThreadPoolExecutor(threads) as pool:
        return statistics.fmean(pool.map(nap, range(threads)))


def tensorflow() -> Any:
    """TensorFlow, or None where it is not installed."""
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    try:
        import tensorflow as tf
    except ImportError:
        return None
    return tf


# Files that are slow to open and to read

FILES, RECORDS, OPEN, READ, WORK, AT_ONCE = 64, 100, 0.01, 0.0002, 0.001, 16


def records(number: int) -> Iterator[int]:
    """The records of a simulated file."""
    time.sleep(OPEN)
    for record in range(RECORDS):
        time.sleep(READ)
        yield int(number) * RECORDS + record


def work(record: Any) -> Any:
    time.sleep(WORK)
    return record


def files_dataset() -> Dataset[Any]:
    def read(number: Any) -> Dataset[Any]:
        return Dataset.from_generator(lambda: records(number), output_signature=Dataset.range(1).element_spec)

    numbers = Dataset.range(FILES).interleave(read, cycle_length=AT_ONCE, num_parallel_calls=AT_ONCE)
    return numbers.map(work, num_parallel_calls=AT_ONCE).batch(32)


def files_tensorflow(tf: Any) -> Any:
    def read(number: Any) -> Any:
        return tf.data.Dataset.from_generator(records, output_signature=tf.TensorSpec((), tf.int64), args=(number,))

    def call(record: Any) -> Any:
        return tf.numpy_function(work, [record], tf.int64)

    numbers = tf.data.Dataset.range(FILES).interleave(read, cycle_length=AT_ONCE, num_parallel_calls=AT_ONCE)
    return numbers.map(call, num_parallel_calls=AT_ONCE).batch(32)


def files_by_hand() -> None:
    """One pool reads files, another one works on the records of those that were read."""
    with ThreadPoolExecutor(AT_ONCE) as readers, ThreadPoolExecutor(AT_ONCE) as workers:
        results: list[Any] = []
        for content in readers.map(lambda number: list(records(number)), range(FILES)):
            results += [workers.submit(work, record) for record in content]
        values = (result.result() for result in results)
        while batch := list(itertools.islice(values, 32)):
            np.array(batch)


def ideal_seconds(opening: float, reading: float, working: float) -> float:
    """The slowest stage, which all others can hide behind."""
    return max(FILES * (opening + RECORDS * reading), FILES * RECORDS * working) / AT_ONCE


def measured_ideal_seconds() -> float:
    return ideal_seconds(*(measured_sleep(duration, AT_ONCE) for duration in (OPEN, READ, WORK)))


@case("64 slow files, interleave(16 at once), map(1 ms, 16 at once), batch(32)")
def slow_files(runs: int) -> None:
    measured = measured_ideal_seconds()
    rounds = in_turn(min(runs, 3), timed(files_dataset()), lambda: seconds(files_by_hand))
    ours, by_hand = (statistics.median(side) for side in zip(*rounds, strict=True))
    report("time / ideal, with sleeps as asked for", ours / ideal_seconds(OPEN, READ, WORK), at_most=1.15)
    report("time / ideal, with sleeps as measured", ours / measured, at_most=1.15)
    report("two ThreadPoolExecutors by hand: time / ideal, as measured", by_hand / measured)


# Photos

PHOTOS = 300


def photo(seed: int) -> bytes:
    """A JPEG of 400x300 pixels that compresses like a photo: smooth colours, edges, a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:300, 0:400] / 400
    waves = [np.sin(rng.uniform(2, 12) * x + rng.uniform(2, 12) * y + rng.uniform(0, 6)) for _ in range(3)]
    edges = (x * rng.uniform(0.5, 2) + y > rng.uniform(0.3, 1.5)) * 40
    pixels = 120 + 70 * np.stack(waves, -1) + edges[..., np.newaxis] + rng.normal(0, 6, (300, 400, 3))
    return io.encode_jpeg(pixels.clip(0, 255).astype(np.uint8), quality=90)


def decode(contents: bytes) -> Any:
    return io.resize(io.decode_jpeg(contents), (224, 224))


def use_one_thread_for_each_call() -> None:
    """Keep OpenCV from spreading one call over all cores, which is no base to compare two calls at once with."""
    import cv2

    cv2.setNumThreads(1)


@case("JPEG decode and resize of 400x300 photos")
def photos(runs: int) -> None:
    contents = [photo(seed) for seed in range(20)] * (PHOTOS // 20)
    source = Dataset.from_tensor_slices(contents)
    halves = contents[::2], contents[1::2]
    use_one_thread_for_each_call()

    def two_threads() -> None:
        with ThreadPoolExecutor(2) as pool:
            consume(pool.map(lambda half: consume(map(decode, half)), halves))

    rounds = in_turn(
        runs,
        timed(source.map(decode)),
        timed(source.map(decode, num_parallel_calls=2)),
        lambda: seconds(two_threads),
    )
    ours, limit = median_ratios(rounds)
    report("num_parallel_calls=2 / one at a time", ours, at_least=1.8)
    report("two plain threads, half of the photos each / one at a time: the machine's limit", limit)


# Worker processes


def spin(steps: int, x: Any) -> Any:
    """Pure Python that holds the interpreter. The steps of a loop over a range would be proved, and run on columns."""
    total = step = 0
    while step < steps:
        total += step * step % 7
        step += 1
    return x + total


def steps_for(duration: float) -> int:
    return int(1000 * duration / min(seconds(lambda: spin(1000, 0)) for _ in range(200)))


def behind_the_first(dataset: Dataset[Any]) -> float:
    """How long the elements behind the first take."""
    with iter(dataset) as iterator:
        next(iterator)
        return seconds(lambda: consume(iterator))


@case("pure Python function of 200 us, executor='process', 2 at once")
def pure_python(runs: int) -> None:
    function = functools.partial(spin, steps_for(200e-6))
    source = Dataset.range(5000)
    in_processes = source.map(function, num_parallel_calls=2, executor="process")
    rounds = in_turn(min(runs, 3), timed(source.map(function)), timed(in_processes))
    warm = in_turn(min(runs, 3), lambda: behind_the_first(source.map(function)), lambda: behind_the_first(in_processes))
    report("processes / one at a time, behind the first element", *median_ratios(warm), at_least=1.7)
    report("processes / one at a time, with their start, 5,000 elements", *median_ratios(rounds))
    first = [seconds(lambda: first_of(in_processes)) for _ in range(runs)]
    report("first element after", statistics.median(first) * 1e3, unit="ms")


@functools.cache
def ready_batch() -> Any:
    return np.random.default_rng(0).random((32, 224, 224, 3), np.float32)


def give_batch(_: Any) -> Any:
    return ready_batch()


def make_batch(x: Any) -> Any:
    return np.full((32, 224, 224, 3), x, np.float32)


BATCHES = 120


@case("batches of 32x224x224x3 float32 from worker processes")
def large_batches(runs: int) -> None:
    size = ready_batch().nbytes / 1e9 * (BATCHES - 1)
    numbers = Dataset.range(BATCHES)
    given = numbers.map(give_batch, num_parallel_calls=2, executor="process")
    made = numbers.map(make_batch, num_parallel_calls=2, executor="process")
    batch = ready_batch()
    rounds = in_turn(
        min(runs, 3),
        lambda: behind_the_first(given),
        lambda: behind_the_first(made),
        lambda: seconds(lambda: consume(batch.copy() for _ in range(BATCHES - 1))),
    )
    ours, with_making, copying = (size / statistics.median(side) for side in zip(*rounds, strict=True))
    report("the same batch again and again", ours, at_least=2, unit="GB/s")
    report("batches made by np.full in the worker", with_making, unit="GB/s")
    report("array.copy() in one thread: what a copy costs here", copying, unit="GB/s")


# Cheap functions


def noop(x: Any) -> Any:
    return x


def as_int(x: Any) -> int:
    return int(x) + 1


_VECTOR = np.linspace(0, 1, 1500)


def numpy_20_us(x: Any) -> Any:
    return np.sin(_VECTOR).sum() + x


def unvectorized(dataset: Dataset[Any]) -> Dataset[Any]:
    """Each element through the function itself, as with a function that the library can't see through."""
    options = Options()
    options.optimization.map_vectorization = False
    return dataset.with_options(options)


@case("hand-over of elements to threads and back")
def hand_over(runs: int) -> None:
    count = 200_000
    one, parallel = (
        unvectorized(Dataset.range(count).map(noop, num_parallel_calls=calls).batch(128)) for calls in (None, 4)
    )
    rounds = in_turn(runs, timed(one), timed(parallel))
    extra = statistics.median(after - before for before, after in rounds) / count * 1e6
    report("map(no-op, num_parallel_calls=4).batch(128), more than with one at a time", extra, at_most=0.5, unit="us")
    report("map(no-op).batch(128), one at a time", statistics.median(r[0] for r in rounds) / count * 1e6, unit="us")


@case("map(cheap function, num_parallel_calls=4) / one at a time")
def cheap_functions(runs: int) -> None:
    cost = min(seconds(lambda: numpy_20_us(1)) for _ in range(200)) * 1e6
    for function, count, name in [
        (noop, 100_000, "no-op"),
        (as_int, 100_000, "int(x) + 1"),
        (numpy_20_us, 10_000, f"NumPy, {cost:.0f} us"),
    ]:
        for batch in (128, None):
            one, parallel = (cheap(function, count, calls, batch) for calls in (None, 4))
            (ratio,) = median_ratios(in_turn(runs, timed(one), timed(parallel)))
            report(f"{name}, {'bare' if batch is None else f'batch({batch})'}", ratio, at_least=0.8)


def cheap(function: Callable[[Any], Any], count: int, calls: int | None, batch: int | None) -> Dataset[Any]:
    dataset = Dataset.range(count).map(function, num_parallel_calls=calls)
    return unvectorized(dataset if batch is None else dataset.batch(batch))


# Slow elements

_SLOW = np.random.default_rng(0).random(1600) < 0.05


def sometimes_slow(x: Any) -> Any:
    time.sleep(0.02 if _SLOW[x] else 0.001)
    return x


@case("5% of the elements 20 times slower (1 ms, 20 ms)")
def slow_elements(runs: int) -> None:
    for calls in (4, 8):
        ordered, unordered = (
            Dataset.range(len(_SLOW)).map(sometimes_slow, num_parallel_calls=calls, deterministic=order)
            for order in (True, False)
        )
        (ratio,) = median_ratios(in_turn(min(runs, 4), timed(unordered), timed(ordered)))
        report(f"in order / without order, {calls} at once", ratio, at_least=0.9)


# Latency and overlap


def first_of(dataset: Dataset[Any]) -> None:
    with iter(dataset) as iterator:
        next(iterator)


def first_seconds(dataset: Dataset[Any]) -> float:
    """Until the first element is there; what it takes to close is not counted."""
    with iter(dataset) as iterator:
        return seconds(lambda: next(iterator))


def ten_ms(x: Any) -> Any:
    time.sleep(0.01)
    return x


@case("first element of map(10 ms, num_parallel_calls=4)")
def first_element(runs: int) -> None:
    dataset = Dataset.range(100).map(ten_ms, num_parallel_calls=4)
    found = statistics.median(first_seconds(dataset) for _ in range(3 * runs))
    report("after", found * 1e3, at_most=12, unit="ms")
    report("time.sleep(0.01) itself", measured_sleep(0.01, 1) * 1e3, unit="ms")


def five_ms(x: Any) -> Any:
    time.sleep(0.005)
    return x


@case("prefetch of batches: 5 ms to make one, 5 ms to use it")
def overlap(runs: int) -> None:
    count = 80
    batches = Dataset.range(count * 8).batch(8).map(five_ms)
    sleep = measured_sleep(0.005, 2)

    def use(dataset: Dataset[Any]) -> Callable[[], float]:
        return lambda: seconds(lambda: consume(map(five_ms, dataset)))

    rounds = in_turn(min(runs, 3), use(batches), use(batches.prefetch(2)))
    alone, overlapped = (statistics.median(side) for side in zip(*rounds, strict=True))
    report("time / ideal, which is the slower side alone", overlapped / ((count + 1) * sleep), at_most=1.15)
    report("without prefetch", alone / ((count + 1) * sleep))


# Last, because TensorFlow's threads, once started, stay and slow down what runs beside them


@case("64 slow files, the same with tf.data")
def slow_files_tensorflow(runs: int) -> None:
    tf = tensorflow()
    if tf is None:
        print("  TensorFlow is not installed")
        return
    rounds = in_turn(min(runs, 2), timed(files_tensorflow(tf)))
    report(
        "time / ideal, with sleeps as measured",
        statistics.median(*zip(*rounds, strict=True)) / measured_ideal_seconds(),
    )


if __name__ == "__main__":
    main()

"""Steps that combine several elements: with state, in windows and groups, and by choices.

The models document tf.data's order of operations where it is not obvious.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chains import kinds, sources
from chains.changes import batches
from chains.kinds import INT, ROW, Leaf, number, number_in, taking
from chains.model import END, KNOWN_DIFFERENCES, Failure, Open, Pipeline, Step, each, streaming
from chains.steps import Drawn, checks, take_of
from dataset import TensorSpec


def scan(draw: st.DrawFn, kind: Any) -> Drawn:
    """A running sum; a failure does not change the state."""
    check, model, shown = checks(draw)

    def apply(lib: Any, dataset: Any) -> Any:
        def add(state: Any, element: Any) -> Any:
            checked = lib.call(check, TensorSpec((), np.int64))(number_in(lib, kind, element))
            return state + checked, (state, checked)

        return dataset.scan(lib.const(5, np.int64), add)

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        state = 5
        for outcome in outcomes:
            checked = outcome if isinstance(outcome, Failure) else model(number(outcome))
            if isinstance(checked, Failure):
                yield checked
            else:
                yield state, checked
                state += checked

    return Step(f"scan(sum, {shown})", apply, streaming(run)), (INT, INT)


def take_while(draw: st.DrawFn, kind: Any) -> Drawn:
    """Failures of elements and of the predicate are returned, and the elements after them are still taken."""
    check, model, shown = checks(draw)
    modulus = draw(st.integers(2, 9))

    def apply(lib: Any, dataset: Any) -> Any:
        below = lib.call(lambda x: np.bool_(check(x) % modulus != 1), TensorSpec((), np.bool_))
        return dataset.take_while(taking(kind, lambda element: below(number_in(lib, kind, element))))

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        for outcome in outcomes:
            checked = outcome if isinstance(outcome, Failure) else model(number(outcome))
            if isinstance(checked, Failure):
                yield checked
            elif checked % modulus != 1:
                yield outcome
            else:
                return

    return Step(f"take_while(x % {modulus} != 1, {shown})", apply, streaming(run)), kind


def select(draw: st.DrawFn, kind: Any) -> Drawn:
    """tf.data does not have this op; a map replaces it there."""
    keys = draw(
        st.lists(st.sampled_from(list(kind) if isinstance(kind, dict) else range(len(kind))), min_size=1, max_size=3)
    )

    def parts_of(element: Any) -> Any:
        return element[keys[0]] if len(keys) == 1 else tuple(element[key] for key in keys)

    def apply(lib: Any, dataset: Any) -> Any:
        if lib.name == "dataset":
            return dataset.select(*keys)
        return dataset.map(taking(kind, parts_of))

    return Step(f"select{tuple(keys)}", apply, each(lambda element: [parts_of(element)])), parts_of(kind)


def ignore_errors(draw: st.DrawFn, kind: Any) -> Drawn:
    present = lambda outcomes: (outcome for outcome in outcomes if not isinstance(outcome, Failure))
    return Step("ignore_errors()", lambda _, d: d.ignore_errors(), streaming(present)), kind


def unique(draw: st.DrawFn, kind: Any) -> Drawn:
    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        seen: list[Any] = []  # without failures, so each of them is returned
        for outcome in outcomes:
            if outcome not in seen:
                yield outcome
            if not isinstance(outcome, Failure):
                seen.append(outcome)

    return Step("unique()", lambda _, d: d.unique(), streaming(run)), kind


def window(draw: st.DrawFn, kind: Any) -> Drawn:
    """Windows of a leaf or a tuple of leaves, each converted back to a batch.

    A failure has a position in windows like any element. A window that contains it fails; between windows it vanishes.
    """
    size, shift, stride = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    drop = draw(st.booleans())
    span = (size - 1) * stride + 1

    def join(lib: Any, windows: Any) -> Any:
        if not isinstance(kind, tuple):
            return windows.batch(size)
        return lib.Dataset.zip(tuple(part.batch(size) for part in windows))

    def apply(lib: Any, dataset: Any) -> Any:
        return dataset.window(size, shift, stride, drop).flat_map(taking(kind, lambda windows: join(lib, windows)))

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        held: list[Any] = []
        while True:
            held += itertools.islice(outcomes, span - len(held))
            if not held or (drop and len(held) < span):
                return
            rows = held[:span:stride]
            failures = [outcome for outcome in rows if isinstance(outcome, Failure)]
            if failures:
                KNOWN_DIFFERENCES.append("window: an op behind it may take a failure for the end in tf.data")
            yield failures[0] if failures else kinds.stack(kind, rows)
            passed_over = list(itertools.islice(outcomes, max(0, shift - len(held))))
            if any(isinstance(outcome, Failure) for outcome in passed_over):
                KNOWN_DIFFERENCES.append("window: behind a failure between windows tf.data may take the data as ended")
            held = held[shift:]

    name = f"window({size}, {shift}, {stride}, {drop}) -> flat_map(batch)"
    return Step(name, apply, streaming(run)), kinds.batched(kind)


def group_by_window(draw: st.DrawFn, kind: Any) -> Drawn:
    """Batches of elements whose numbers have the same remainder; incomplete batches are returned by ascending key."""
    modulus, size = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    check, model, shown = checks(draw)

    def apply(lib: Any, dataset: Any) -> Any:
        def key_of(element: Any) -> Any:
            return lib.call(check, TensorSpec((), np.int64))(number_in(lib, kind, element)) % modulus

        return dataset.group_by_window(taking(kind, key_of), lambda _, group: group.batch(size), window_size=size)

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        groups: dict[int, list[Any]] = {}
        for outcome in outcomes:
            checked = outcome if isinstance(outcome, Failure) else model(number(outcome))
            if isinstance(checked, Failure):
                KNOWN_DIFFERENCES.append("group_by_window: tf.data's enumerate() may take a failure for the end")
                yield checked
                continue
            group = groups.setdefault(checked % modulus, [])
            group.append(outcome)
            if len(group) == size:
                yield kinds.stack(kind, groups.pop(checked % modulus))
        for _, group in sorted(groups.items()):
            yield kinds.stack(kind, group)

    return Step(f"group_by_window(number % {modulus}, {size}, {shown})", apply, streaming(run)), kinds.batched(kind)


def rebatch(draw: st.DrawFn, kind: Any) -> Drawn:
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    drop = draw(st.booleans())
    row = kinds.unbatched(kind)

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        rows: list[Any] = []
        turns = itertools.cycle(sizes)
        size = next(turns)
        for outcome in outcomes:
            more = [outcome] if isinstance(outcome, Failure) else kinds.unstack(kind, outcome)
            if any(isinstance(one, Failure) for one in more):
                rows = []  # a failure drops the batch so far, and the next batch starts after it
                yield from more
                continue
            rows += more
            while len(rows) >= size:
                yield kinds.stack(row, rows[:size])
                rows = rows[size:]
                size = next(turns)
        if rows and not drop:
            yield kinds.stack(row, rows)

    given = sizes[0] if len(sizes) == 1 else sizes
    return Step(f"rebatch({given}, {drop})", lambda _, d: d.rebatch(given, drop), streaming(run)), kind


def ragged_batch(draw: st.DrawFn, kind: Any) -> Drawn:
    size, drop = draw(st.integers(1, 6)), draw(st.booleans())
    model = batches(size, drop, list)
    return Step(f"ragged_batch({size}, {drop})", lambda _, d: d.ragged_batch(size, drop), model), Leaf("rows", 2)


def choose_from_datasets(draw: st.DrawFn, kind: Any, choices: Pipeline, other: Pipeline | None) -> Drawn:
    """Chooses from itself, a shortened copy and another pipeline. A failure also uses up its choice."""
    shorten = take_of(draw(st.integers(0, 5)))
    stop = draw(st.booleans())
    count = 2 if other is None else 3

    def apply(lib: Any, dataset: Any) -> Any:
        inputs = [dataset, shorten.apply(lib, dataset)] + ([other.make(lib)] if other else [])
        choice = choices.make(lib).map(lambda x: x % count)
        return lib.Dataset.choose_from_datasets(inputs, choice, stop_on_empty_dataset=stop)

    def model(source: Open) -> Open:
        third = other.open() if other else None
        chooser = choices.open()

        def run() -> Iterator[Any]:
            inputs = [source(), shorten.model(source)()] + ([third()] if third else [])
            ended: set[int] = set()
            for choice in chooser():
                if isinstance(choice, Failure):
                    yield choice
                    continue
                index = choice % count
                outcome = END if index in ended else next(inputs[index], END)
                if outcome is not END:
                    yield outcome
                    continue
                ended.add(index)
                if stop or len(ended) == count:
                    return

        return run

    name = f"choose(itself, itself.{shorten.name}, {other}, by {choices}, {stop})"
    return Step(name, apply, model), kind


def bucket_by_sequence_length(draw: st.DrawFn, kind: Any) -> Drawn:
    boundaries = sorted(draw(st.sets(st.integers(1, 4), min_size=1, max_size=2)))
    sizes = draw(st.lists(st.integers(1, 4), min_size=len(boundaries) + 1, max_size=len(boundaries) + 1))
    drop = draw(st.booleans())

    def apply(lib: Any, dataset: Any) -> Any:
        return dataset.bucket_by_sequence_length(
            lambda row: lib.cast(lib.length(row), np.int32), boundaries, sizes, drop_remainder=drop
        )

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        buckets: dict[int, list[Any]] = {}
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                KNOWN_DIFFERENCES.append("bucket_by_sequence_length: as group_by_window")
                yield outcome
                continue
            key = sum(len(outcome) >= boundary for boundary in boundaries)
            bucket = buckets.setdefault(key, [])
            bucket.append(outcome)
            if len(bucket) == sizes[key]:
                yield kinds.pad(ROW, buckets.pop(key))
        if not drop:
            for _, bucket in sorted(buckets.items()):
                yield kinds.pad(ROW, bucket)

    name = f"bucket_by_sequence_length({boundaries}, {sizes}, {drop})"
    return Step(name, apply, streaming(run)), kinds.batched(kind)


def counter(start: int, step: int, n: int) -> Drawn:
    def make(lib: Any) -> Any:
        return lib.Dataset.counter(start, step).take(n)

    return sources.source(f"counter({start}, {step}) -> take({n})", make, [start + step * i for i in range(n)]), INT


COUNTER = st.builds(counter, st.integers(-3, 3), st.sampled_from([1, 2, -1]), sources.SIZES)

"""Steps that combine several elements: with state, in windows and groups, and by choices.

The models document tf.data's order of operations where it is not obvious.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from chains import kinds
from chains.chain import Step
from chains.inner import variant
from chains.kinds import INT, ROW, ROWS, TEXT, Leaf
from chains.model import END, KNOWN_DIFFERENCES, Failure, Open, streaming
from chains.steps import draw_check, number_of, seed

if TYPE_CHECKING:
    from chains.scope import Scope


def scan(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """A running sum; a failure does not change the state."""
    if kinds.has_windows(kind):
        return None
    if not scope.is_modelled and rng.randrange(2):
        return Step(".scan(np.int64(0), running_total)", INT, is_stateful=True, needs_order=True)
    check, function = draw_check(rng)

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        state = 5
        for outcome in outcomes:
            checked = outcome if isinstance(outcome, Failure) else check((outcome,))
            if isinstance(checked, Failure):
                yield checked
            else:
                yield state, checked
                state += checked

    text = f".scan(np.int64(5), lambda s, e: (s + {function}(e), (s, {function}(e))))"
    return Step(text, (INT, INT), streaming(run), is_stateful=True, needs_order=True)


def window(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """Windows as elements, or the datasets of their elements one after the other, each perhaps as a batch.

    A failure has a position in windows like any element. A window that contains it fails; between windows it vanishes.
    """
    parts = kind if isinstance(kind, tuple) else (kind,)
    if kinds.has_windows(kind) or (scope.is_modelled and not all(map(kinds.is_simple, parts))):
        return None
    size, stride = rng.randint(1, 4), rng.choice([1, 1, 1, 2, 3])
    shift, drop = rng.choice([None, 1, 2, 3, 5]), rng.randrange(2) == 0
    step, span = shift or size, (size - 1) * stride + 1
    endings: list[tuple[str, Any, Callable[[list[Any]], list[Any]]]] = [(".flat_map(joined)", kind, list)] * 2
    if kinds.can_be_batched(kind):
        batched = f".flat_map(lambda *w: joined(*w).batch({size}))"
        endings += [(batched, kinds.batched(kind), lambda rows: [kinds.stack(kind, rows)])] * 2
    if not scope.is_modelled:
        endings = [
            *endings[::2],
            ("", Leaf("window", of=kind), list),
            (".map(lambda *w: joined(*w).take(2))", Leaf("window", of=kind), list),
        ]
    ending, after, combined = rng.choice(endings)

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
            yield from failures[:1] if failures else combined(rows)
            passed_over = list(itertools.islice(outcomes, max(0, step - len(held))))
            if any(isinstance(outcome, Failure) for outcome in passed_over):
                KNOWN_DIFFERENCES.append("window: behind a failure between windows tf.data may take the data as ended")
            held = held[step:]

    text = f".window({size}, {shift}, {stride}, {drop}){ending}"
    growth = size if shift == 1 else 1.5
    return Step(text, after, streaming(run), is_stateful=True, growth=growth, needs_order=True)


def group_by_window(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """Groups of elements whose numbers have the same remainder; incomplete ones are returned by ascending key."""
    if kinds.has_windows(kind):
        return None
    classes, size = rng.randint(1, 4), rng.randint(1, 5)
    reducers: list[tuple[str, Any, Callable[[int, list[Any]], list[Any]]]] = [
        ("group", kind, lambda _, rows: rows),
        ("group.repeat(2)", kind, lambda _, rows: rows * 2),
        ("group.map(lambda *e: (key, number(*e)))", (INT, INT), lambda key, rows: [(key, number_of(e)) for e in rows]),
    ]
    if kinds.can_be_batched(kind):
        batches = lambda _, rows: [kinds.stack(kind, rows)]
        reducers += [(f"group.batch({size})", kinds.batched(kind), batches)] * (4 if scope.is_modelled else 1)
    if not scope.is_modelled:
        reducers += [
            (f"group.shuffle(3, {seed(rng, scope)})", kind, lambda _, rows: rows),
            ("group.map(failing(4, 1))", kinds.whole(kind), lambda _, rows: rows),
            ("group.map(row).padded_batch(2)", Leaf("int", 2), lambda _, rows: rows),
        ]
    reduced, after, reduce = rng.choice(reducers)
    check, function = draw_check(rng)
    function = f"lambda *e: {function}(*e) % {classes}"
    if not scope.is_modelled and rng.randrange(2):
        function = f"lambda x: x % {classes}" if kind == INT else f"lambda *e: number(*e) % {classes}"
    limit = f"window_size={size}"
    if not scope.is_modelled and rng.randrange(3) == 0:
        limit = "window_size_func=lambda key: key + 1"

    def run(outcomes: Iterator[Any]) -> Iterator[Any]:
        groups: dict[int, list[Any]] = {}
        for outcome in outcomes:
            checked = outcome if isinstance(outcome, Failure) else check(outcome)
            if isinstance(checked, Failure):
                KNOWN_DIFFERENCES.append("group_by_window: tf.data's enumerate() may take a failure for the end")
                yield checked
                continue
            key = checked % classes
            group = groups.setdefault(key, [])
            group.append(outcome)
            if len(group) == size:
                yield from reduce(key, groups.pop(key))
        for key, group in sorted(groups.items()):
            yield from reduce(key, group)

    text = f".group_by_window({function}, lambda key, group: {reduced}, {limit})"
    growth = 2 if "repeat" in reduced else 1
    return Step(text, after, streaming(run), is_stateful=True, growth=growth, needs_order=True)


def bucket_by_sequence_length(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if kind != ROW:
        return None
    boundaries = sorted({rng.randint(1, 4) for _ in range(2)})
    sizes = [rng.randint(1, 4) for _ in range(len(boundaries) + 1)]
    drop = rng.randrange(2) == 0

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

    text = f".bucket_by_sequence_length(len, {boundaries}, {sizes}, drop_remainder={drop})"
    return Step(text, kinds.batched(kind), streaming(run), is_stateful=True, needs_order=True)


def rebatch(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if not kinds.is_dense(kind) or not kinds.can_be_unbatched(kind):
        return None
    sizes = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
    if not scope.is_modelled and rng.randrange(3) == 0:
        sizes = [2, 0, 1]
    drop = rng.randrange(2) == 0
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

    text = f".rebatch({sizes[0] if len(sizes) == 1 else sizes}, {drop})"
    return Step(text, kind, streaming(run), is_stateful=True, needs_order=True)


def choose(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    """Chooses from itself, a variant of itself and perhaps another pipeline. A failure also uses up its choice."""
    # For other shapes, tf.data loses what its concatenate() needs.
    if scope.is_modelled and (not scope.depth or not kinds.consists_of(kind, INT, TEXT)):
        return None
    other, vary = variant(rng, scope)
    inputs = ["d", other]
    third = scope.numbers(rng) if scope.is_modelled and kind == INT and rng.randrange(2) else None
    if third is not None:
        inputs.append(str(third))
    if scope.is_modelled:
        chooser = scope.numbers(rng)
        choices = f"{chooser}.map(lambda x: x % {len(inputs)})"
    else:
        choices = rng.choice(
            ["Dataset.range(40).map(lambda x: x * x % 2)", "Dataset.range(2).shuffle(2, seed=1).repeat(20)"]
        )
    stop = rng.randrange(2) == 0

    def model(source: Open) -> Open:
        last = third.open() if third else None
        choose = chooser.open()

        def run() -> Iterator[Any]:
            opened = [source(), vary(source)()] + ([last()] if last else [])
            ended: set[int] = set()
            for choice in choose():
                if isinstance(choice, Failure):
                    yield choice
                    continue
                index = choice % len(opened)
                outcome = END if index in ended else next(opened[index], END)
                if outcome is not END:
                    yield outcome
                    continue
                ended.add(index)
                if stop or len(ended) == len(opened):
                    return

        return run

    arguments = f"[{', '.join(inputs)}], {choices}, stop_on_empty_dataset={stop}"
    text = f".apply(lambda d: Dataset.choose_from_datasets({arguments}))"
    return Step(text, kind, model, is_stateful=True, growth=2, needs_order=True, reads_twice=True)


# Steps without a model


def sample(rng: random.Random, kind: Any, scope: Scope) -> Step:
    other = variant(rng, scope)[0]
    if kind == INT and rng.randrange(6) == 0:
        other = "Dataset.range(4).shuffle(4, seed=1)"
    weights = rng.choice(
        ["None", "[0.7, 0.3]", "[0.2, 0.8]", "[(0, [1, 2]), (3, [0, 1]), (6, [3, 1])]", "lambda n: [1, n % 3]"]
    )
    more = rng.choice(["", "", ", rerandomize_each_iteration=True", ", stop_on_empty_dataset=True"])
    arguments = f"{weights}, {seed(rng, scope)}{more}" if rng.randrange(5) else "[0.7, 0.3], exact=True"
    text = f".apply(lambda d: Dataset.sample_from_datasets([d, {other}], {arguments}))"
    return Step(text, kind, is_stateful=True, growth=2, needs_order=True, reads_twice=True)


def resample(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if kinds.has_windows(kind):
        return None
    initial = rng.choice(["[0.5, 0.5]", "None"])
    text = f".rejection_resample(lambda *e: number(*e) % 2, [0.3, 0.7], {initial}, {seed(rng, scope)}).select(1)"
    return Step(text, kind, is_stateful=True, needs_order=True, reads_twice=True)


def pack(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if not kinds.consists_of(kind, ROW, INT, TEXT) or ROW not in kinds.leaves(kind):
        return None
    if isinstance(kind, dict) and "lengths" in kind:
        return None
    shuffle = rng.choice(["", "", f", shuffle=True, {seed(rng, scope)}"])
    too_long = rng.choice(["", ", too_long='error'", ", too_long='drop'"])
    settings = f"window={rng.choice([1, 2, 4, 9])}, boundaries='lengths'{shuffle}{too_long}"
    packed = kinds.map_kind(lambda leaf: Leaf(leaf.base, 1), kind)
    if isinstance(kind, dict):
        after: Any = {**packed, "lengths": ROW}
    else:
        after = (*(packed if isinstance(kind, tuple) else (packed,)), ROW)
    return Step(f".pack({rng.choice([2, 3, 5])}, {settings})", after, is_stateful=True, needs_order=True)


def batch_by_tokens(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if kind != ROW:
        return None
    more = rng.choice(["", ", length=len", ", across_processes=2"])
    text = f".batch_by_tokens({rng.choice([3, 6])}, window={rng.choice([1, 2, 4, 9])}, {seed(rng, scope)}{more})"
    return Step(text, ROWS, is_stateful=True, needs_order=True)


def concat_split(rng: random.Random, kind: Any, scope: Scope) -> Step | None:
    if not kinds.consists_of(kind, ROW):
        return None
    separator, drop = rng.choice(["", ", separator=7"]), rng.choice(["", ", drop_remainder=True"])
    text = f".concat_split({rng.choice([1, 2, 3, 5])}{separator}{drop})"
    return Step(text, kind, is_stateful=True, needs_order=True)

"""Sources of chains: an expression, the kind of its elements, and the model, which ignores its input."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

from chains.chain import Step
from chains.kinds import INT, ROW, TEXT, Leaf, batched, stack
from chains.model import Failure, list_of
from chains.names import TEXTS

SIZES = [1, 2, 3, 4, 5, 6, 7, 9, 12, 17, 24, 0]
KINDS = [INT, TEXT, ROW, (INT, TEXT), {"a": INT, "b": TEXT}, (INT, {"b": ROW, "c": (TEXT,)})]


def source(text: str, kind: Any, outcomes: list[Any]) -> Step:
    return Step(text, kind, lambda _: list_of(outcomes), growth=len(outcomes))


def values(kind: Any, n: int) -> list[Any]:
    """Return ``n`` elements of a dense kind, as Python values."""
    if isinstance(kind, dict):
        columns = [values(part, n) for part in kind.values()]
        return [dict(zip(kind, row, strict=True)) for row in zip(*columns, strict=True)]
    if isinstance(kind, tuple):
        return list(zip(*[values(part, n) for part in kind], strict=True))
    if kind == TEXT:
        return [TEXTS[i % len(TEXTS)] for i in range(n)]
    return list(range(n)) if kind == INT else [[3 * i, 3 * i + 1, -i] for i in range(n)]


def shown(kind: Any, n: int) -> str:
    """Return the expression of the same elements, stacked in arrays."""
    if isinstance(kind, dict):
        return "{" + ", ".join(f"{key!r}: {shown(part, n)}" for key, part in kind.items()) + "}"
    if isinstance(kind, tuple):
        return "(" + "".join(f"{shown(part, n)}, " for part in kind) + ")"
    return f"{'np.arange' if kind == INT else 'texts' if kind == TEXT else 'rows'}({n})"


def a_range(rng: random.Random, n: int) -> Step:
    return source(f"Dataset.range({n})", INT, list(range(n)))


def any_range(rng: random.Random, n: int) -> Step:
    limits = rng.randint(-5, 5), rng.randint(-9, 9), rng.choice([1, 2, 3, -1, -2])
    return source(f"Dataset.range{limits}", INT, list(range(*limits)))


def counter(rng: random.Random, n: int) -> Step:
    start, step = rng.randint(-3, 3), rng.choice([1, 2, -1])
    return source(f"Dataset.counter({start}, {step}).take({n})", INT, [start + step * i for i in range(n)])


def slices(rng: random.Random, n: int) -> Step:
    kind = rng.choice([INT, *KINDS])
    return source(f"Dataset.from_tensor_slices({shown(kind, n)})", kind, values(kind, n))


def tensors(rng: random.Random, n: int) -> Step:
    kind = rng.choice(KINDS)
    return source(f"Dataset.from_tensors({shown(kind, 4)})", batched(kind), [stack(kind, values(kind, 4))])


def generator(rng: random.Random, n: int) -> Step:
    """If it raises, the outcomes are the error and then the end."""
    if rng.randrange(3):
        return source(f"numbers_in(range({n}))", INT, list(range(n)))
    return source(f"numbers_in(range({n}), fails=True)", INT, [*range(n), Failure("over")])


def row_generator(rng: random.Random, n: int) -> Step:
    elements = [(TEXTS[i % len(TEXTS)], [i] * (i % 3 + 1)) for i in range(n)]
    return source(f"texts_and_rows({n})", (TEXT, ROW), elements)


def sparse(rng: random.Random, n: int) -> Step:
    elements = [[(i + 1) * (i % 3 == place) for place in range(3)] for i in range(max(n, 1))]
    return source(f"Dataset.from_tensor_slices(sparse({max(n, 1)}))", Leaf("sparse", 1), elements)


def ragged(rng: random.Random, n: int) -> Step:
    n = max(n, 1)
    elements = [[list(range(i, i + (i + row) % 4 + 1)) for row in range(i % 3 + 1)] for i in range(n)]
    return source(f"Dataset.from_tensor_slices(ragged({n}))", Leaf("ragged", 2), elements)


def endless(rng: random.Random, n: int) -> Step:
    n = max(n, 1)
    return Step(f"Dataset.range({n}).repeat()", INT, lambda _: lambda: itertools.cycle(range(n)))


MODELLED: list[Callable[[random.Random, int], Step]] = [
    *[a_range, slices] * 2,
    any_range,
    counter,
    tensors,
    generator,
    row_generator,
    sparse,
    ragged,
]

EXAMPLES = "TFRecordDataset(files.parts('example')[:2])"
QUERY = "SELECT number, word FROM numbers ORDER BY number"


def from_files(rng: random.Random, n: int) -> Step:
    """Return a source that reads files, or one that only this library has. It has no model."""
    numbered: Any = {"n": INT, "row": ROW}
    text, kind, length = rng.choice(
        [
            (f"Dataset.range({n}).filter(others(7, 6))", INT, n),
            (f"Dataset.from_tensor_slices(RaggedTensor.from_rows([[i] * (i % 3) for i in range({n})]))", ROW, n),
            (f"objects_in([(np.int64(i), b'%d' % i) for i in range({n})])", (INT, TEXT), n),
            (f"Dataset.from_tensors(np.arange({n})).unbatch()", INT, n),
            (f"Dataset.random(seed=3).map(number).take({n})", INT, n),
            ("Dataset.from_tensors(np.int64(7)).repeat(3)", INT, 3),
            ("TFRecordDataset(files.parts('plain')[:2])", TEXT, 11),
            ("TFRecordDataset(files.parts('gzip')[:2], 'GZIP')", TEXT, 11),
            (f"{EXAMPLES}.shuffle({3 * n}, seed=3).map(io.ExampleParser(EXAMPLE))", numbered, 25),
            (f"{EXAMPLES}.shuffle({3 * n}, seed=2).map(of_example, num_parallel_calls=2)", INT, 25),
            (
                f"{EXAMPLES}.shuffle(13, seed=3).batch({n + 4}).map(of_examples, num_parallel_calls=2)",
                ROW,
                25 // (n + 4) + 1,
            ),
            ("TFRecordDataset(files.parts('zstd')[:2], 'ZSTD')", TEXT, 11),
            ("TFRecordDataset(files.parts('plain')[:2], index=True)", TEXT, 11),
            ("TFRecordDataset(files.parts('plain')[:2], num_parallel_reads=2)", TEXT, 11),
            ("TextLineDataset(files.parts('text')[:2])", TEXT, 11),
            ("FixedLengthRecordDataset(files.parts('fixed')[:2], 4, 4)", TEXT, 11),
            ("CsvDataset(files.parts('csv')[:2], [np.int64, bytes], select_cols=[0, 2])", (INT, TEXT), 11),
            ("JsonLinesDataset(files.parts('json')[:2], ['n', 'text']).ignore_errors()", {"n": INT, "text": TEXT}, 11),
            (
                "JsonLinesDataset(files.parts('json')[:2], ['row'], fill_null={'row': 0}).map(lambda x: x['row'])",
                ROW,
                11,
            ),
            ("TarDataset(files.parts('shard')[:2], ['txt']).ignore_errors().map(lambda x: x['txt'])", TEXT, 11),
            ("TarDataset(files.parts('shard')[:2], index=True).ignore_errors().map(lambda x: x['txt'])", TEXT, 11),
            ("Dataset.load(str(files.folder / 'saved'))", (INT, TEXT), 14),
            ("Dataset.list_files(str(files.folder / 'text-*'), seed=1).interleave(TextLineDataset, 2, 2)", TEXT, 18),
            ("Dataset.from_arrow_ipc(files.parts('batches')[:2])", {"x": INT, "name": TEXT}, 11),
            ("Dataset.from_parquet(files.parts('table')[:2])", {"x": INT, "name": TEXT}, 11),
            (f"SqlDataset('sqlite', str(files.folder / 'numbers.sqlite'), {QUERY!r}, (int, bytes))", (INT, TEXT), 12),
        ]
    )
    return Step(text, kind, growth=length)

"""Random chains of ops for the search for states that resume inexactly, as Python expressions.

``draw_chain(rng)`` returns a source followed by two to six ops, at least two of them with a state of their own. The
text of a chain is an expression: ``build`` evaluates it with this module's names, so that another process, and the
reader of a failure, build the same pipeline. The elements are integers, texts, rows of varying length, batches, tuples,
dicts and nested datasets; the kind of the elements determines which ops may follow.
"""

from __future__ import annotations

import random
import re
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dataset
from dataset import Dataset, Options, RaggedTensor, SparseTensor, io
from support.resume_files import Files

# What the expressions call


def number(*element: Any) -> Any:
    """Return a number that depends on all parts of an element of any kind."""
    return np.int64(_total(element) % 10007)


def _total(value: Any) -> int:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return sum((place + 1) * _total(part) for place, part in enumerate(value))
    if isinstance(value, bytes):
        return zlib.crc32(value) % 10007
    if isinstance(value, RaggedTensor):
        return _total(value.flat_values)
    if isinstance(value, SparseTensor):
        return _total(value.values)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return sum(map(_total, value.ravel()))
    return int(np.sum(value))


def text(*element: Any) -> Any:
    return b"%d" % number(*element)


def row(*element: Any) -> Any:
    """Return a row of one to three numbers."""
    return np.full(int(number(*element)) % 3 + 1, number(*element))


def pair(*element: Any) -> Any:
    return number(*element), text(*element)


def record(*element: Any) -> Any:
    return {"n": number(*element), "row": row(*element)}


def unchanged(*element: Any) -> Any:
    return element[0] if len(element) == 1 else element


def every(divisor: int, rest: int) -> Callable[..., Any]:
    """Return a predicate that is true for one of ``divisor`` elements."""
    return lambda *element: number(*element) % divisor == rest


def others(divisor: int, rest: int) -> Callable[..., Any]:
    return lambda *element: number(*element) % divisor != rest


def failing(divisor: int, rest: int) -> Callable[..., Any]:
    """Return the identity, which fails for one of ``divisor`` elements."""

    def check(*element: Any) -> Any:
        if number(*element) % divisor == rest:
            raise ValueError(f"bad {number(*element)}")
        return unchanged(*element)

    return check


def noisy(draws: Any, *element: Any) -> Any:
    return number(*element) * 10 + draws.integers(10)


def running_total(total: Any, element: Any) -> Any:
    total = (total + number(element)) % 1009
    return total, total


def numbers_in(values: list[Any]) -> Any:
    """Return a dataset of numbers from a generator."""
    return Dataset.from_generator(lambda: iter(np.array(values)), output_signature=Dataset.range(1).element_spec)


def objects_in(values: list[Any]) -> Any:
    """Return a dataset from a generator without a signature."""
    return Dataset.from_generator(lambda: iter(values))


def slow(x: Any) -> Any:
    """Return the argument after a time that is enough for a cache to choose this place."""
    time.sleep(0.0005)
    return x


def joined(*window: Any) -> Any:
    """Return the dataset of a window's elements, whatever their structure."""
    return window[0] if len(window) == 1 and isinstance(window[0], Dataset) else Dataset.zip(unchanged(*window))


def options(**settings: Any) -> Options:
    """Return options; names with a dot are written with two underscores."""
    found = Options()
    for name, value in settings.items():
        group, _, field = name.rpartition("__")
        setattr(getattr(found, group) if group else found, field, value)
    return found


EXAMPLE = {"n": io.FixedLenFeature((), np.int64), "row": io.RaggedFeature(np.int64)}


def of_example(example: Any) -> Any:
    return io.parse_single_example(example, EXAMPLE)["n"] * 2


def of_examples(examples: Any) -> Any:
    return io.parse_example(examples, EXAMPLE)["n"] * 2


NAMES = {
    **{name: getattr(dataset, name) for name in dataset.__all__},
    "EXAMPLE": EXAMPLE,
    "np": np,
    **{name: value for name, value in globals().items() if name.islower()},
}


def build(expression: str, files: Path, folder: Path) -> Any:
    """Build the pipeline of an expression.

    Args:
        expression: the text of a chain.
        files: the folder that ``write_files`` has filled.
        folder: the folder in which the pipeline may write.
    """
    return eval(expression, {**NAMES, "files": Files(files, folder), "folder": str(folder)})  # noqa: S307  # it is ours


# Chains


@dataclass(frozen=True)
class Window:
    """The kind of an element that is a dataset."""

    of: Any


Kind = Any
"""The kind of elements: "int", "text", "row", "texts", "rows" or "ragged"; a Window; or a tuple or dict of kinds."""


@dataclass(frozen=True)
class Op:
    """One op of a chain.

    Attributes:
        text: the call, as it follows the expression of its input; the expression itself, of a source.
        kind: the kind of its elements.
        is_stateful: whether its operator has a state besides the position of its input.
        growth: about how many elements it returns for each element of its input.
        by_chance: whether the order of its elements is not deterministic.
        needs_order: whether its elements depend on the order of its input.
        keeps_order: whether the ops upstream of it keep a deterministic order because of it.
        reads_twice: whether it reads its input in several places at the same time.
    """

    text: str
    kind: Kind
    is_stateful: bool = False
    growth: float = 1
    by_chance: bool = False
    needs_order: bool = False
    keeps_order: bool = False
    reads_twice: bool = False


@dataclass(frozen=True)
class Chain:
    """A pipeline: its ops, of which the first is the source, and the text of its options."""

    ops: tuple[Op, ...]
    options: str = ""

    def __str__(self) -> str:
        return "".join(op.text for op in self.ops) + (f".with_options({self.options})" if self.options else "")

    @property
    def by_chance(self) -> bool:
        """Whether two runs may return the elements in different orders."""
        found = False
        for op in self.ops:
            found = (found or op.by_chance) and not op.keeps_order
        return found

    @property
    def is_comparable(self) -> bool:
        """Whether two runs return the same elements, in any order.

        They may not if a cache is read in two places at the same time: the first pass to end is the one that is kept.
        Which one that is depends on threads and, if passes differ, on how many elements are requested at once. Two
        caches in a row are filled in another order by a resumed run, which first repeats one pass and then the other.
        They may not either if threads decide at random whether the elements that were read ahead include the end of a
        pass that is left early, and passes differ.
        """
        if _PASS_LEFT_EARLY.search(str(self)):
            return False
        kept = [index for index, op in enumerate(self.ops) if op.keeps_order]
        is_filled_twice = kept and any(op.reads_twice for op in self.ops[kept[0] :])
        if is_filled_twice and (len(kept) > 1 or re.search("prefetch|parallel", str(self))):
            return False
        if is_filled_twice and re.search(_PASSES_DIFFER, "".join(op.text for op in self.ops[: kept[0]])):
            return False
        found = False
        for op in self.ops:
            if found and op.needs_order:
                return False
            found = (found or op.by_chance) and not op.keeps_order
        return True

    @property
    def is_repeatable(self) -> bool:
        """Whether a pipeline that is built anew returns the same elements."""
        return "seed=None" not in str(self) and not self.by_chance

    @property
    def stores_elements(self) -> bool:
        return any(op.keeps_order for op in self.ops)

    def smaller(self) -> list[Chain]:
        """Return the chains with one op less, those with a simpler source, and the one without options."""
        found = [Chain(self.ops[:index] + self.ops[index + 1 :], self.options) for index in range(1, len(self.ops))]
        found += [Chain((source, *self.ops[1:]), self.options) for source in _SIMPLE if _is_simpler(source, self)]
        if self.options:
            found.append(Chain(self.ops))
        return [chain for chain in found if chain.is_comparable]


_PASSES_DIFFER = "(shuffle|random|resample|failing)"

_PASS_LEFT_EARLY = re.compile(
    _PASSES_DIFFER + r".*\.(cache|snapshot)\(.*"
    r"(parallel.*|prefetch.*)\.(take\(|take_while|zip|choose|sample).*(repeat|concatenate|resample)"
)

_SIMPLE = [Op(f"Dataset.range({n})", "int") for n in (1, 2, 3, 5, 8)]


def _is_simpler(source: Op, chain: Chain) -> bool:
    mine = chain.ops[0]
    return mine not in _SIMPLE or _SIMPLE.index(source) < _SIMPLE.index(mine)


def with_other_parallelism(expression: str, rng: random.Random) -> str:
    """Return the expression with another number of parallel calls in each op that has one: a state fits all of them."""
    return re.sub(
        r"num_parallel_calls=[^,)]+",
        lambda _: f"num_parallel_calls={rng.choice(['None', '1', '2', '4', 'AUTOTUNE'])}",
        expression,
    )


Draw = Callable[[random.Random, Kind, int], Op | None]

LENGTH = 40
"""About the maximum number of elements of a chain."""


def draw_chain(rng: random.Random) -> Chain:
    """Draw a chain. One of two has only a few different ops, so that each meets itself and the others often."""
    while True:
        tables = STATEFUL, OPS
        if rng.random() < 0.5:
            stateful = rng.sample(STATEFUL, 2)
            tables = stateful, [*stateful, *rng.sample(OPS, 2)]
        ops = _draw_ops(rng, _source(rng), rng.choice([2, 3, 4, 4, 5, 5, 6, 6]), tables)
        chain = Chain(_distributed(ops), _options(rng))
        if chain.is_comparable and sum(op.is_stateful for op in ops) >= 2:
            return chain


DISTRIBUTED = 0.003
"""The share of chains of which a part runs in worker processes, which start slowly."""


def _distributed(ops: list[Op]) -> tuple[Op, ...]:
    """Let worker processes run a part of the ops now and then; other chains stay as they are drawn."""
    rng = random.Random("".join(op.text for op in ops))
    places = [place for place, op in enumerate(ops, 1) if not _has_windows(op.kind)]
    if not places or rng.random() >= DISTRIBUTED:
        return tuple(ops)
    place = rng.choice(places)
    return *ops[:place], Op(f".distribute({rng.choice([1, 2, 3])})", ops[place - 1].kind), *ops[place:]


def _draw_ops(
    rng: random.Random, source: Op, count: int, tables: tuple[list[Draw], list[Draw]], depth: int = 0
) -> list[Op]:
    """Draw ops on a source: two from the first table, the others from the second.

    Often the first one is random, so that passes differ, and the last one repeats all others.
    """
    ops = [source]
    length = source.growth
    stateful = rng.sample(range(count), min(2, count))
    choices = [tables[place not in stateful] for place in range(count)]
    if count and rng.random() < 0.3:
        choices[0] = [_shuffle, _shuffle, _random_map, _failing]
    if count > 1 and rng.random() < 0.4:
        choices[-1] = [_repeat, _repeat, _repeat_and_take]
    if count > 2 and rng.random() < 0.05:  # only the pass that fills a cache differs from the others
        choices[:2] = [_shuffle, _random_map], [_cache]
    for choice in choices:
        for _ in range(20):
            op = rng.choice(choice)(rng, ops[-1].kind, depth)
            if op is not None and (length * op.growth <= LENGTH or op.growth <= 1):
                ops.append(op)
                length *= op.growth
                break
    return ops


def _inner(rng: random.Random, source: str, depth: int, length: int = 4) -> tuple[str, Kind]:
    """Draw the expression of a dataset that a function returns, and its kind."""
    ops = _draw_ops(rng, Op(source, "int", growth=length), rng.randint(0, 2), (STATEFUL, OPS), depth + 1)
    chain = Chain(tuple(op for op in ops if not (op.by_chance or op.keeps_order)))
    return str(chain), chain.ops[-1].kind


_OPT_IN = [
    "map_parallelization",
    "filter_parallelization",
    "parallel_batch",
    "seq_interleave_prefetch",
    "inject_prefetch",
]
_DEFAULT_RULES = [name for name in Options().optimization.names() if name not in {*_OPT_IN, "enabled"}]
_LIMITS = [
    "autotune__enabled=False",
    "autotune__ram_budget=1",
    "autotune__ram_budget=200",
    "autotune__cpu_budget=1",
    "threading__private_threadpool_size=1",
    "provenance=True",
]


def _options(rng: random.Random) -> str:
    found: list[str] = []
    drawn = rng.random()
    if drawn < 0.2:
        found = ["optimization__enabled=False"]
    elif drawn < 0.3:
        found = [f"optimization__{name}=False" for name in rng.sample(_DEFAULT_RULES, rng.randint(1, 6))]
    elif drawn < 0.4:
        found = [f"optimization__{name}=True" for name in rng.sample(_OPT_IN, rng.randint(1, 3))]
    if rng.random() < 0.15:
        found.append(rng.choice(_LIMITS))
    return f"options({', '.join(found)})" if found else ""


# Kinds


def _mapped(kind: Kind, leaf: Callable[[Any], Any]) -> Kind:
    if isinstance(kind, tuple):
        return tuple(_mapped(part, leaf) for part in kind)
    if isinstance(kind, dict):
        return {key: _mapped(part, leaf) for key, part in kind.items()}
    return leaf(kind)


def _leaves(kind: Kind) -> list[Any]:
    found: list[Any] = []
    _mapped(kind, found.append)
    return found


_BATCHED = {"int": "row", "text": "texts", "row": "rows"}
_UNBATCHED = {"row": "int", "texts": "text", "rows": "row", "ragged": "row"}


def _is(kind: Kind, *leaves: str) -> bool:
    """Return whether all components are of these kinds."""
    return all(leaf in leaves for leaf in _leaves(kind))


def _has_windows(kind: Kind) -> bool:
    return any(isinstance(leaf, Window) for leaf in _leaves(kind))


# Sources


_EXAMPLES = "TFRecordDataset(files.parts('example')[:2])"
_QUERY = "SELECT number, word FROM numbers ORDER BY number"


def _source(rng: random.Random) -> Op:
    n = rng.choice([1, 2, 3, 4, 5, 6, 8])
    kind: Kind
    expression, kind, length = rng.choice(
        [
            (f"Dataset.range({n})", "int", n),
            (f"Dataset.range({n})", "int", n),
            (f"Dataset.range({n}).filter(others(7, 6))", "int", n),
            (f"Dataset.from_tensor_slices(np.arange({n}))", "int", n),
            (f"Dataset.from_tensor_slices(np.arange({n}))", "int", n),
            (f"Dataset.from_tensor_slices((np.arange({n}), [b'%d' % i for i in range({n})]))", ("int", "text"), n),
            (
                f"Dataset.from_tensor_slices({{'n': np.arange({n}), 'row': np.arange({2 * n}).reshape({n}, 2)}})",
                {"n": "int", "row": "row"},
                n,
            ),
            (f"Dataset.from_tensor_slices(RaggedTensor.from_rows([[i] * (i % 3) for i in range({n})]))", "row", n),
            (f"numbers_in(range({n}))", "int", n),
            (f"objects_in([(np.int64(i), b'%d' % i) for i in range({n})])", ("int", "text"), n),
            (f"Dataset.counter(3, 2).take({n})", "int", n),
            (f"Dataset.from_tensors(np.arange({n})).unbatch()", "int", n),
            (f"Dataset.random(seed=3).map(number).take({n})", "int", n),
            ("Dataset.from_tensors(np.int64(7)).repeat(3)", "int", 3),
            ("TFRecordDataset(files.parts('plain')[:2])", "text", 11),
            ("TFRecordDataset(files.parts('gzip')[:2], 'GZIP')", "text", 11),
            (
                f"{_EXAMPLES}.shuffle({3 * n}, seed=3).map(io.ExampleParser(EXAMPLE))",
                {"n": "int", "row": "row"},
                25,
            ),
            (
                f"{_EXAMPLES}.shuffle({3 * n}, seed=2).map(of_example, num_parallel_calls=2)",
                "int",
                25,
            ),
            (
                f"{_EXAMPLES}.shuffle(13, seed=3).batch({n + 4}).map(of_examples, num_parallel_calls=2)",
                "row",
                25 // (n + 4) + 1,
            ),
            ("TFRecordDataset(files.parts('zstd')[:2], 'ZSTD')", "text", 11),
            ("TFRecordDataset(files.parts('plain')[:2], index=True)", "text", 11),
            ("TFRecordDataset(files.parts('plain')[:2], num_parallel_reads=2)", "text", 11),
            ("TextLineDataset(files.parts('text')[:2])", "text", 11),
            ("FixedLengthRecordDataset(files.parts('fixed')[:2], 4, 4)", "text", 11),
            ("CsvDataset(files.parts('csv')[:2], [np.int64, bytes], select_cols=[0, 2])", ("int", "text"), 11),
            (
                "JsonLinesDataset(files.parts('json')[:2], ['n', 'text']).ignore_errors()",
                {"n": "int", "text": "text"},
                11,
            ),
            (
                "JsonLinesDataset(files.parts('json')[:2], ['row'], fill_null={'row': 0}).map(lambda x: x['row'])",
                "row",
                11,
            ),
            ("TarDataset(files.parts('shard')[:2], ['txt']).ignore_errors().map(lambda x: x['txt'])", "text", 11),
            ("TarDataset(files.parts('shard')[:2], index=True).ignore_errors().map(lambda x: x['txt'])", "text", 11),
            ("Dataset.load(str(files.folder / 'saved'))", ("int", "text"), 14),
            ("Dataset.list_files(str(files.folder / 'text-*'), seed=1).interleave(TextLineDataset, 2, 2)", "text", 18),
            ("Dataset.from_arrow_ipc(files.parts('batches')[:2])", {"x": "int", "name": "text"}, 11),
            ("Dataset.from_parquet(files.parts('table')[:2])", {"x": "int", "name": "text"}, 11),
            (
                f"SqlDataset('sqlite', str(files.folder / 'numbers.sqlite'), {_QUERY!r}, (int, bytes))",
                ("int", "text"),
                12,
            ),
        ]
    )
    return Op(expression, kind, growth=length)


# Ops. Each function returns an op for elements of a kind, or None if there is none.


def _seed(rng: random.Random) -> str:
    return f"seed={rng.choice(['1', '1', '1', '2', '2', '3', '3', 'None'])}"


def _calls(rng: random.Random, *, often: bool = False) -> tuple[str, bool]:
    """Return the arguments of parallel calls, which may be none, and whether the order is left to chance."""
    if not often and rng.random() < 0.6:
        return "", False
    by_chance = rng.random() < 0.12
    calls = rng.choice(["1", "2", "3", "AUTOTUNE"])
    return f", num_parallel_calls={calls}{', deterministic=False' if by_chance else ''}", by_chance


def _shuffle(rng: random.Random, kind: Kind, depth: int) -> Op:
    size = rng.choice(["1", "2", "2", "3", "3", "5", "40", "None"])
    again = ", reshuffle_each_iteration=False" if rng.random() < 0.2 else ""
    return Op(f".shuffle({size}, {_seed(rng)}{again})", kind, is_stateful=True)


def _repeat(rng: random.Random, kind: Kind, depth: int) -> Op:
    count = rng.choice([1, 2, 2, 2, 3])
    return Op(f".repeat({count})", kind, is_stateful=True, growth=count)


def _repeat_and_take(rng: random.Random, kind: Kind, depth: int) -> Op:
    count = rng.randint(1, 30)
    return Op(f".repeat().take({count})", kind, is_stateful=True, growth=3, needs_order=True)


def _interleave(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    calls, by_chance = _calls(rng)
    cycle, block = rng.choice([1, 2, 3]), rng.choice([1, 1, 2, 3])
    if _has_windows(kind):
        if not isinstance(kind, Window):
            return None
        function, returned, growth = "joined", kind.of, 3
    elif depth:
        function, returned, growth = "lambda *e: Dataset.range(number(*e) % 3)", "int", 2
    else:
        inner, returned = _inner(rng, "Dataset.range(number(*e) % 5, number(*e) % 5 + 3)", depth)
        function, growth = f"lambda *e: {inner}", 3
    return Op(
        f".interleave({function}, cycle_length={cycle}, block_length={block}{calls})",
        returned,
        is_stateful=True,
        growth=growth,
        by_chance=by_chance,
        needs_order="seed=None" in function,
    )


def _flat_map(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if isinstance(kind, Window):
        function = rng.choice(["joined", "joined", "lambda *w: joined(*w).shuffle(3, seed=1)"])
        return Op(f".flat_map({function})", kind.of, is_stateful=True, growth=2)
    if depth or _has_windows(kind):
        return None
    if rng.random() < 0.4:  # one dataset that the function returns several times
        seed, passes = _seed(rng), rng.choice([1, 2])
        shared = f"Dataset.range(3).shuffle(3, {seed}).repeat({passes})"
        text = f".apply(lambda d, s={shared}: d.flat_map(lambda *e: s.map(lambda x: x + number(*e))))"
        return Op(text, "int", is_stateful=True, growth=3 * passes, needs_order="seed=None" in seed)
    inner, returned = _inner(rng, "Dataset.range(number(*e) % 4)", depth)
    return Op(f".flat_map(lambda *e: {inner})", returned, is_stateful=True, growth=2, needs_order="seed=None" in inner)


def _cache(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if depth:
        return None
    passes = rng.choice(["", ".repeat(2)", ".repeat(2)", ".repeat(3)"])
    folder = "" if rng.random() < 0.75 or _has_windows(kind) else f"folder + '/{rng.randrange(10**6)}'"
    kept = f".snapshot({folder})" if folder and rng.random() < 0.4 else f".cache({folder})"
    growth = int(passes[8]) if passes else 1
    return Op(kept + passes, kind, is_stateful=True, keeps_order=True, growth=growth)


def _window(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if isinstance(kind, Window) or (depth and _has_windows(kind)):
        return None
    size, shift, stride = rng.choice([1, 2, 3, 4]), rng.choice(["None", "1", "2", "3", "5"]), rng.choice([1, 1, 1, 2])
    drop = rng.choice([", drop_remainder=True", ""])
    after, returned = rng.choice(
        [
            ("", Window(kind)),
            (".flat_map(joined)", kind),
            (".flat_map(joined)", kind),
            (".map(lambda *w: joined(*w).take(2))", Window(kind)),
        ]
    )
    text = f".window({size}, {shift}, {stride}{drop}){after}"
    return Op(text, returned, is_stateful=True, growth=size if shift == "1" else 1.5, needs_order=True)


def _group_by_window(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    classes, size = rng.choice([1, 2, 3]), rng.choice(["2", "3", "5"])
    size = rng.choice([f"window_size={size}", f"window_size={size}", "window_size_func=lambda key: key + 1"])
    reduced, returned = rng.choice(
        [
            ("group", kind),
            ("group.repeat(2)", kind),
            (f"group.shuffle(3, {_seed(rng)})", kind),
            ("group.map(lambda *e: (key, number(*e)))", ("int", "int")),
            ("group.map(failing(4, 1))", kind),
            ("group.map(row).padded_batch(2)", "rows"),
        ]
    )
    key = f"lambda x: x % {classes}" if kind == "int" and rng.random() < 0.6 else f"lambda *e: number(*e) % {classes}"
    text = f".group_by_window({key}, lambda key, group: {reduced}, {size})"
    return Op(text, returned, is_stateful=True, growth=2 if "repeat" in reduced else 1, needs_order=True)


def _sample(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    others = ["d", "d.take(2)", "d.skip(1)", "d.shuffle(3, seed=4)", "d.repeat(2)", "d.prefetch(1)"]
    if kind == "int":
        others.append("Dataset.range(4).shuffle(4, seed=1)")
    seed, weights = (
        _seed(rng),
        rng.choice(
            ["None", "[0.7, 0.3]", "[0.2, 0.8]", "[(0, [1, 2]), (3, [0, 1]), (6, [3, 1])]", "lambda n: [1, n % 3]"]
        ),
    )
    more = rng.choice(["", "", ", rerandomize_each_iteration=True", ", stop_on_empty_dataset=True"])
    text = (
        f".apply(lambda d: Dataset.sample_from_datasets([d, {rng.choice(others)}], {weights}, {seed}{more}))"
        if rng.random() < 0.8
        else f".apply(lambda d: Dataset.sample_from_datasets([d, {rng.choice(others)}], [0.7, 0.3], exact=True))"
    )
    return Op(text, kind, is_stateful=True, growth=2, needs_order=True, reads_twice=True)


def _choose(rng: random.Random, kind: Kind, depth: int) -> Op:
    stop = rng.choice(["True", "False"])
    other = rng.choice(["d", "d.take(2)", "d.shuffle(3, seed=4)"])
    choices = rng.choice(
        ["Dataset.range(40).map(lambda x: x * x % 2)", "Dataset.range(2).shuffle(2, seed=1).repeat(20)"]
    )
    text = f".apply(lambda d: Dataset.choose_from_datasets([d, {other}], {choices}, stop_on_empty_dataset={stop}))"
    return Op(text, kind, is_stateful=True, growth=2, needs_order=True, reads_twice=True)


def _prefetch(rng: random.Random, kind: Kind, depth: int) -> Op:
    return Op(f".prefetch({rng.choice(['1', '2', '3', '8', 'AUTOTUNE'])})", kind, is_stateful=True)


def _map(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    function, returned = rng.choice(
        [
            ("number", "int"),
            ("text", "text"),
            ("row", "row"),
            ("pair", ("int", "text")),
            ("record", {"n": "int", "row": "row"}),
            ("unchanged", kind),
            *[("lambda x: x * 3 + 1", "int"), ("lambda x: (x, -x)", ("int", "int"))] * (kind == "int"),
        ]
    )
    calls, by_chance = _calls(rng)
    return Op(f".map({function}{calls})", returned, is_stateful=bool(calls), by_chance=by_chance)


def _parallel_map(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    function, returned = rng.choice([("number", "int"), ("row", "row"), ("unchanged", kind), ("failing(5, 3)", kind)])
    calls, by_chance = _calls(rng, often=True)
    return Op(f".map({function}{calls})", returned, is_stateful=True, by_chance=by_chance)


def _failing(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    calls, _ = _calls(rng)
    calls = calls.removesuffix(", deterministic=False")
    ignored = rng.choice(["", "", ".ignore_errors()"])
    divisor = rng.choice([2, 3, 5])
    text = f".map(failing({divisor}, {rng.randrange(divisor)}){calls}){ignored}"
    return Op(text, kind, is_stateful=bool(calls))


def _filter(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    function = "lambda x: x % 3 != 0" if kind == "int" and rng.random() < 0.5 else f"others(3, {rng.randrange(3)})"
    return Op(f".filter({function})", kind)


def _skip_records(rng: random.Random, kind: Kind, depth: int) -> Op:
    return Op(".skip_records(files.folder / 'skip.jsonl')", kind)


def _random_map(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    calls, by_chance = _calls(rng)
    text = f".random_map(noisy, {_seed(rng)}{calls})"
    return Op(text, "int", is_stateful=True, by_chance=by_chance, needs_order=True)


def _take(rng: random.Random, kind: Kind, depth: int) -> Op:
    return Op(f".take({rng.choice([0, 1, 2, 3, 5, 9, 33])})", kind, needs_order=True)


def _skip(rng: random.Random, kind: Kind, depth: int) -> Op:
    return Op(f".skip({rng.choice([1, 1, 2, 4])})", kind, needs_order=True)


def _slice(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    while_ = "lambda x: x < 6" if kind == "int" else "others(9, 8)"
    return Op(rng.choice([".shard(2, 1)", ".shard(2, 0)", f".take_while({while_})"]), kind, needs_order=True)


def _batch(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    size, drop = rng.choice([1, 2, 3, 5]), rng.choice(["", "", ", drop_remainder=True"])
    calls, by_chance = _calls(rng)
    batches = []
    if _is(kind, "int", "text"):
        batches += [(f".batch({size}{drop}{calls})", _BATCHED)] * 3
    if _is(kind, *_BATCHED):
        batches.append((f".padded_batch({size}{drop})", _BATCHED))
    if _is(kind, "row"):
        batches.append((f".ragged_batch({size}{drop})", {"row": "ragged"}))
    if kind == "row":
        batches.append((".bucket_by_sequence_length(len, [2, 3], [2, 3, 2])", _BATCHED))
    if not batches:
        return None
    text, kinds = rng.choice(batches)
    by_chance = by_chance and calls in text
    after = ".unbatch()" if rng.random() < 0.4 else ""
    returned = kind if after else _mapped(kind, lambda leaf: kinds[leaf])
    return Op(text + after, returned, is_stateful=True, growth=1, by_chance=by_chance, needs_order=True)


def _unbatch(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if not _is(kind, *_UNBATCHED):
        return None
    return Op(".unbatch()", _mapped(kind, lambda leaf: _UNBATCHED[leaf]), is_stateful=True, growth=2)


def _rebatch(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if not _is(kind, "row", "texts"):
        return None
    return Op(f".rebatch({rng.choice(['2', '3', '[2, 0, 1]'])})", kind, is_stateful=True, needs_order=True)


def _pack(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if (
        not _is(kind, "row", "int", "text")
        or "row" not in _leaves(kind)
        or (isinstance(kind, dict) and "lengths" in kind)
    ):
        return None
    shuffle = rng.choice(["", "", f", shuffle=True, {_seed(rng)}"])
    too_long = rng.choice(["", ", too_long='error'", ", too_long='drop'"])
    settings = f"window={rng.choice([1, 2, 4, 9])}, boundaries='lengths'{shuffle}{too_long}"
    packed = _mapped(kind, lambda leaf: "texts" if leaf == "text" else "row")
    if isinstance(kind, dict):
        returned = {**packed, "lengths": "row"}
    else:
        returned = (*(packed if isinstance(kind, tuple) else (packed,)), "row")
    return Op(f".pack({rng.choice([2, 3, 5])}, {settings})", returned, is_stateful=True, needs_order=True)


def _batch_by_tokens(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if kind != "row":
        return None
    settings = (
        f"window={rng.choice([1, 2, 4, 9])}, {_seed(rng)}{rng.choice(['', ', length=len', ', across_processes=2'])}"
    )
    return Op(f".batch_by_tokens({rng.choice([3, 6])}, {settings})", "rows", is_stateful=True, needs_order=True)


def _concat_split(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if not _is(kind, "row"):
        return None
    separator, drop = rng.choice(["", ", separator=7"]), rng.choice(["", ", drop_remainder=True"])
    return Op(f".concat_split({rng.choice([1, 2, 3, 5])}{separator}{drop})", kind, is_stateful=True, needs_order=True)


def _concatenate(rng: random.Random, kind: Kind, depth: int) -> Op:
    other = rng.choice(["d", "d.take(2)", "d.skip(1)", "d.shuffle(2, seed=1)", "d.repeat(2)"])
    other = "Dataset.range(3)" if kind == "int" and rng.random() < 0.3 else other
    return Op(f".apply(lambda d: d.concatenate({other}))", kind, is_stateful=True, growth=2, needs_order="(" in other)


def _zip(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    other = rng.choice(["d", "d.skip(1)", "d.repeat(2)", "d.shuffle(2, seed=1)", "Dataset.range(9)", "d.prefetch(2)"])
    return Op(
        f".apply(lambda d: Dataset.zip(d, {other})).map(number)",
        "int",
        is_stateful=True,
        needs_order=True,
        reads_twice=True,
    )


def _unique(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    return Op(".unique()", kind, is_stateful=True) if kind in ("int", "text") else None


def _scan(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    return Op(".scan(np.int64(0), running_total)", "int", is_stateful=True, needs_order=True)


def _enumerate(rng: random.Random, kind: Kind, depth: int) -> Op:
    select = "" if kind == "int" else ".map(number)"
    if _has_windows(kind):
        return Op(".enumerate().select(1)", kind, needs_order=True)
    return Op(f".enumerate(){select}", "int" if select else ("int", "int"), needs_order=True)


def _select(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if isinstance(kind, tuple) and not _has_windows(kind):
        place = rng.randrange(len(kind))
        return Op(f".select({place})", kind[place])
    if isinstance(kind, dict):
        key = rng.choice(list(kind))
        return Op(f".select({key!r})", kind[key])
    return None


def _resample(rng: random.Random, kind: Kind, depth: int) -> Op | None:
    if _has_windows(kind):
        return None
    initial = rng.choice(["[0.5, 0.5]", "None"])
    text = f".rejection_resample(lambda *e: number(*e) % 2, [0.3, 0.7], {initial}, {_seed(rng)}).select(1)"
    return Op(text, kind, is_stateful=True, needs_order=True, reads_twice=True)


STATEFUL: list[Draw] = [
    *[_shuffle] * 4,
    *[_repeat] * 3,
    _repeat_and_take,
    _interleave,
    _flat_map,
    *[_cache] * 2,
    _window,
    _pack,
    _concat_split,
    _batch_by_tokens,
    _group_by_window,
    _sample,
    _prefetch,
    *[_parallel_map] * 2,
]
OPS: list[Draw] = [
    *STATEFUL,
    _skip_records,
    _map,
    _map,
    _failing,
    _failing,
    *[_filter] * 2,
    _random_map,
    _take,
    _take,
    _skip,
    _slice,
    *[_batch] * 5,
    *[_unbatch] * 2,
    *[_rebatch] * 2,
    *[_pack] * 2,
    _concat_split,
    _batch_by_tokens,
    _concatenate,
    _zip,
    _choose,
    _unique,
    _scan,
    _enumerate,
    _select,
    _resample,
]

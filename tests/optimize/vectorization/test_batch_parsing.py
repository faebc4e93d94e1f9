"""Functions of batches of records that may get them in blocks: those that only pass them to parse_example."""

import functools
import logging
import types

import numpy as np
import pytest

import dataset
from dataset import io
from dataset.io import parse_example
from dataset.optimize.vectorization.parsing_functions import batch_parsing_function
from dataset.plan.packed import BytesColumn

# These functions are what users write:
# ruff: noqa: F821, PLW0108, S307

FEATURES = {"x": io.FixedLenFeature((), np.int64)}
LOGGER = logging.getLogger(__name__)
PARSER = io.ExampleParser(FEATURES)
RECORDS = [io.encode_example({"x": i}) for i in range(5)]


def computes(records):
    """With a loop, a branch and a context manager after the call."""
    examples = io.parse_example(records, FEATURES)
    total = 0
    for value in examples["x"]:
        total += value if value > 1 else 0
    with np.errstate(all="ignore"):
        parts = [total, *examples["x"][1:]]
    return np.array(parts)


def parses_twice(batch):
    first, second = parse_example(batch, FEATURES), parse_example(batch, {**FEATURES})
    return first["x"] + second["x"]


def catches(records):
    try:
        return io.parse_example(records, FEATURES)
    except io.ParseError:
        return None


def prepares(records, features=FEATURES):
    chosen = {"x": features["x"]}
    examples = dataset.io.parse_example(features=chosen, serialized=records)
    return examples["x"] if len(examples) else None


def enclosed(features):
    def parse(records):
        examples = io.parse_example(records, features)
        return {**examples, "y": examples["x"] * 2}

    return parse


def parse_with(parse, records, features):
    return parse(records, features)


def parsed(records, features=FEATURES):
    return io.parse_example(records, features)


def with_helpers(records):
    LOGGER.debug("a batch")
    features = {"x": io.FixedLenFeature((), np.int64)}
    examples = parsed(records, features)
    LOGGER.debug("parsed %d", len(examples))
    return examples


def one_way_or_the_other(records):
    if LOGGER.isEnabledFor(10):
        return io.parse_example(records, FEATURES)
    return {"x": parsed(records)["x"]}


def after_a_loop(records):
    total = 0
    for name in ("x", "y"):
        total += len(name)
    for _ in LOGGER.handlers:
        total += 1
    return {"x": parsed(records)["x"] + 0 * total}


class Pipeline:
    def __init__(self):
        self.features = FEATURES
        self.parser = PARSER

    def parse(self, records):
        return self.convert(io.parse_example(records, self.features))

    def convert(self, examples):
        return {f"{name}": value + 1 for name, value in examples.items()}

    def __call__(self, records):
        return self.parser.parse_batch(records)


PROVED = [
    with_helpers,
    one_way_or_the_other,
    after_a_loop,
    Pipeline().parse,
    Pipeline(),
    functools.partial(parsed, features=FEATURES),
    lambda records: PARSER.parse_batch(records),
    lambda records: parse_with(io.parse_example, records, features=FEATURES),
    lambda records: io.parse_example(records, FEATURES),
    lambda records: io.parse_example(records, FEATURES)["x"].reshape(-1, 1)[:, 0],
    computes,
    parses_twice,
    catches,
    prepares,
    enclosed(FEATURES),
    io.parse_example,
    functools.partial(io.parse_example, features=FEATURES),
    PARSER.parse_batch,
]


@pytest.mark.parametrize("function", PROVED)
def test_a_function_that_only_parses_gets_the_same_from_blocks(function):
    proved = batch_parsing_function(function)
    assert proved is not None
    assert proved.holds()
    if function is io.parse_example:
        return  # a map calls it with one argument, which fails in any case
    found, expected = proved(BytesColumn.of(RECORDS)), function(np.array(RECORDS, object))
    if not isinstance(found, dict):
        found, expected = {"": found}, {"": expected}
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


class Derived(io.ExampleParser):
    pass


class Changing:
    """Changes in the middle of the function what is read outside of it."""

    def __init__(self):
        self.is_over = False
        self.last = None
        self.function = io.parse_example

    def tick(self):
        self.is_over, self.last, self.function = True, 1, another_parse_example

    def tests_truth(self, records):
        self.tick()
        return len(records) if self.is_over else parsed(records)

    def tests_identity(self, records):
        self.tick()
        return parsed(records) if self.last is None else len(records)

    def calls_another(self, records):
        self.tick()
        return self.function(records, FEATURES)


DERIVED = Derived(FEATURES)


def another_parse_example(records, features):
    return records


def looks_at_a_copy_after_a_failure(records):
    try:
        examples = records
        examples = io.parse_example(examples, FEATURES)
    except io.ParseError:
        return examples
    return examples


def helped_to_look(records):
    def look(value):
        return f"{value}"

    return look(records), parsed(records)


def collects(records):
    held = [records for _ in LOGGER.handlers]
    return parsed(records), held


def yields_to_itself(records):
    return tuple(records for _ in LOGGER.handlers), parsed(records)


def replaces(records):
    parsers = [io.parse_example]
    parsers[0] = len
    return parsers[0](records, FEATURES)


def creates_a_reader(records):
    def read():
        return records

    return parsed(records), read


def renames(records):
    batch = records
    examples = io.parse_example(records, FEATURES)
    return examples, len(batch)


def loops(records):
    while True:
        examples = io.parse_example(records, FEATURES)
        if examples:
            return examples


def in_a_loop(records):
    parse = io.parse_example
    for _ in range(2):
        examples = parse(records, FEATURES)
        parse = another_parse_example
    return examples


NEVER = [
    lambda records: records,
    lambda records: 1,
    lambda: io.parse_example(RECORDS, FEATURES),
    lambda records, others: io.parse_example(records, FEATURES),
    lambda *records: io.parse_example(records, FEATURES),
    lambda records: io.parse_example(records[:2], FEATURES),
    lambda records: io.parse_example(list(records), FEATURES),
    lambda records: io.parse_example(FEATURES, records),
    lambda records: io.parse_example(records, records),
    lambda records: io.parse_single_example(records, FEATURES),
    lambda records: another_parse_example(records, FEATURES),
    lambda records: records(io.parse_example, FEATURES),
    lambda records: records.tolist(),
    lambda records: records + records,
    lambda records: (io.parse_example(records, FEATURES), records),
    lambda records: {"records": records, **io.parse_example(records, FEATURES)},
    lambda records: undefined(records, FEATURES),
    lambda records: io.parse_example(records, FEATURES) if len(records) > 3 else None,
    looks_at_a_copy_after_a_failure,
    Changing().tests_truth,
    Changing().tests_identity,
    Changing().calls_another,
    helped_to_look,
    collects,
    yields_to_itself,
    replaces,
    creates_a_reader,
    renames,
    loops,
    in_a_loop,
    lambda records: (io.parse_example(records, FEATURES), locals()),
    lambda records: (io.parse_example(records, FEATURES), eval("records")),
    lambda records: (yield io.parse_example(records, FEATURES)),
    len,
    PARSER,
    Derived(FEATURES).parse_batch,
    lambda records: Derived(FEATURES).parse_batch(records),
    lambda records: DERIVED.parse_batch(records),
    lambda records: PARSER.parse_batch([records]),
    functools.partial(io.parse_example, RECORDS),
    functools.partial(io.parse_example, serialized=RECORDS),
    functools.partial(another_parse_example, features=FEATURES),
    functools.wraps(io.parse_example)(another_parse_example),
]


@pytest.mark.parametrize("function", NEVER)
def test_any_other_function_gets_objects(function):
    assert batch_parsing_function(function) is None


def test_a_function_gets_objects_once_its_names_have_other_values():
    received = []

    def parse(records, features):
        received.append(records)
        return parse_example(records, features)

    names = {"parse_example": parse_example, "FEATURES": FEATURES}
    function = types.FunctionType((lambda records: parse_example(records, FEATURES)).__code__, names)
    proved = batch_parsing_function(function)
    assert proved is not None
    column = BytesColumn.of(RECORDS)
    expected = proved(column)["x"].tolist()
    names["parse_example"] = parse
    assert not proved.holds()
    assert proved(column)["x"].tolist() == expected
    names["parse_example"] = parse_example
    function.__code__ = (lambda records: records).__code__
    received.append(proved(column))
    for records in received:
        assert type(records) is np.ndarray
        assert records.tolist() == RECORDS
    assert len(received) == 2

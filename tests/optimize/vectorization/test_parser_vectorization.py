"""parser_vectorization: functions that only call parse_single_example parse whole columns."""

import functools
import inspect
import traceback
import types

import numpy as np
import pytest

import dataset
from dataset import Dataset, io, vectorized
from dataset.io import parse_single_example
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes
from support.pipelines import fired, unoptimized

FEATURES = {
    "image": io.FixedLenFeature((), bytes),
    "label": io.FixedLenFeature((), np.int64),
    "words": io.VarLenFeature(np.int64),
}
OTHERS = {"label": io.FixedLenFeature((), np.int64, default_value=-1)}
RECORDS = [io.encode_example({"image": b"%d" % i, "label": i, "words": [i] * (i % 4)}) for i in range(70)]
module = types.ModuleType("module")
module.FEATURES = FEATURES
module.io = io
parse = parse_single_example
NAME = "label"


def closure(features=FEATURES):
    return lambda record: parse(record, features)


PARSER = io.ExampleParser(FEATURES)


class Holder:
    parse_single_example = staticmethod(io.parse_single_example)
    features = FEATURES
    name = "image"

    def picked(self, record):
        return {"image": self.parse_single_example(record, self.features)[self.name]}


def picks(record):
    example = io.parse_single_example(record, FEATURES)
    return example["image"], example["label"]


def nests(record):
    example = parse_single_example(record, FEATURES)
    features = {"image": example["image"], "words": (example["words"],)}
    return features, example["label"]


def stores(record):
    image_and_all = dataset.io.parse_single_example(features=FEATURES, serialized=record)
    label = image_and_all["label"]
    return {"label": label}


def catches(record):
    try:
        return io.parse_single_example(record, FEATURES)
    except dataset.ParseError:
        return {"image": b"", "label": np.int64(-1), "words": io.parse_single_example(RECORDS[0], FEATURES)["words"]}


FIRES = {
    "whole": lambda record: io.parse_single_example(record, FEATURES),
    "keyword": lambda record: parse(record, features=FEATURES),
    "of a module": lambda record: module.io.parse_single_example(record, module.FEATURES),
    "one": lambda record: parse(record, FEATURES)["label"],
    "tuple": lambda record: (parse(record, FEATURES)["words"],),
    "closure": closure(),
    "picks": picks,
    "nests": nests,
    "stores": stores,
    "catches": catches,
    "partial": functools.partial(io.parse_single_example, features=FEATURES),
    "partial of a function": functools.partial(picks),
    "default": lambda record, features=FEATURES: io.parse_single_example(record, features),
    "helper": lambda record: nests(record),  # noqa: PLW0108
    "name of a feature": lambda record: parse(record, FEATURES)[NAME],
    "static method": lambda record: Holder.parse_single_example(record, Holder.features),
    "parser": lambda record: (PARSER(record)["label"],),
    "method": Holder().picked,
}


def other_result(record):
    parse(record, FEATURES)
    return record


def looks_up_nothing(record):
    example = parse(record, FEATURES)
    nothing = example["nothing"]  # noqa: F841  # it fails
    return example["label"]


def reads_nothing(record):
    nothing = UNDEFINED  # noqa: F821, F841  # it fails
    return parse(record, FEATURES)


NEVER = [
    lambda r: io.parse_single_example(r, FEATURES)["label"] ** 2,
    lambda r: io.parse_single_example(r, {"label": io.FixedLenFeature((), np.int64)}),
    other_result,
    bytes,
    looks_up_nothing,
    reads_nothing,
    io.ExampleParser(FEATURES),
]
NEVER += [lambda r: [parse(r, FEATURES)[name] for name in ("label", "image")], lambda r: parse(*(r, FEATURES))]
NEVER += [lambda r: parse(r, FEATURES)["bytes"], lambda r: ()]
NEVER += [lambda r: (parse(r, FEATURES)["label"], 3), lambda r: (parse(r, FEATURES)["label"], r)]
NEVER += [lambda r: (parse(r, FEATURES)["label"], parse(r, FEATURES)["image"]), lambda r: parse(r, FEATURES).copy()]
NEVER += [closure({"label": 3}), closure({}), closure(3)]
NEVER += [lambda r: parse(r, FEATURES if r else OTHERS), lambda r: io.parse_example(r, FEATURES)]
NEVER += [lambda r: parse(FEATURES, r), lambda *r: parse(r[0], FEATURES)]
NEVER += [lambda r: (yield parse(r, FEATURES)), vectorized(closure()), functools.wraps(picks)(lambda *r: picks(*r))]  # noqa: PLW0108
NEVER += [functools.partial(parse, RECORDS[0], features=FEATURES)]
NEVER += [functools.partial(parse, features=FEATURES, serialized=RECORDS[0])]


def records(*bad):
    return Dataset.from_tensor_slices(np.array([b"bad" if i in bad else RECORDS[i] for i in range(70)], object))


@pytest.fixture
def calls(monkeypatch):
    """How many records are parsed at a time."""
    counts = []
    parse_columns = io.ExampleParser.parse_columns

    def counting(self, serialized, *arguments, **keywords):
        counts.append(len(serialized))
        return parse_columns(self, serialized, *arguments, **keywords)

    monkeypatch.setattr(io.ExampleParser, "parse_columns", counting)
    return counts


@pytest.mark.parametrize("function", FIRES.values(), ids=FIRES)
def test_fires(function, calls):
    parsed = records().map(function)
    plan = f"batch(35) <- {parsed.plan.label()} <- from_tensor_slices"
    check_rule("parser_vectorization", lambda: records(3, 40, 41).map(function).batch(35), plan)
    assert "parser_vectorization" in fired(parsed)
    assert "on columns" in parsed.explain()
    calls.clear()
    assert len(list(parsed.batch(35))) == 2
    assert calls == [35, 35]


@pytest.mark.parametrize("function", NEVER)
def test_does_not_fire(function):
    assert "parser_vectorization" not in fired(Dataset.range(3).map(function))
    mapped = Dataset.from_tensor_slices(np.array(RECORDS, object)).map(function).take(69)
    if not inspect.isgeneratorfunction(function):  # which has another result at each call
        assert_elements_equal(outcomes(iter(mapped)), outcomes(iter(unoptimized(mapped))))


def test_does_not_fire_where_the_function_goes_to_a_process():
    assert "parser_vectorization" not in fired(records().map(picks, executor="process"))


def test_few_records_are_parsed_one_by_one(calls):
    assert len(list(records().map(picks).batch(31))) == 3
    assert len(list(records().map(picks))) == 70
    assert calls == []


@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("bad", [(0,), (34, 35, 69), tuple(range(0, 70, 9))])
def test_failures_keep_their_places_and_tell_of_the_function(calls, bad):
    expected = outcomes(iter(unoptimized(records(*bad).map(picks).batch(35))))
    found = check_operator(lambda: records(*bad).map(picks, num_parallel_calls=calls).batch(35), expected, positions=2)
    for failure in (outcome for outcome in found if isinstance(outcome, Exception)):
        note, argument = failure.__notes__
        assert note.startswith("in map(picks) from test_parser_vectorization.py:")
        assert argument == "when it failed, record was b'bad'"
        assert int(note.rpartition(" ")[2]) in bad
        frames = [frame.f_code for frame, _ in traceback.walk_tb(failure.__traceback__)]
        assert picks.__code__ in frames  # the user's line is in the traceback


@pytest.mark.parametrize(
    "rows",
    [[1, 2, 3] * 20, ["a"] * 60, np.full((60, 2), b"a", object), {"a": [b"x"] * 60}, ([b"x"] * 60, [1] * 60)],
    ids=repr,
)
def test_elements_that_are_no_records_fail_as_before(rows):
    parsed = Dataset.from_tensor_slices(rows).map(FIRES["whole"]).batch(40)
    assert_elements_equal(outcomes(iter(parsed)), outcomes(iter(unoptimized(parsed))))


def test_features_that_change_later_are_those_that_count(calls):
    features = {"label": io.FixedLenFeature((), np.int64), "image": io.FixedLenFeature((), bytes)}
    parsed = records().map(closure(features))
    batches = iter(parsed.batch(35))
    assert list(next(batches)) == ["label", "image"]
    features["label"] = io.FixedLenFeature((1,), np.int64)
    assert next(batches)["label"].shape == (35, 1)
    assert calls == [35]
    features["label"] = io.FixedLenFeature((), np.float32)
    with pytest.raises(dataset.ParseError, match="holds int64, but float32 was requested"):
        next(iter(parsed.batch(35)))

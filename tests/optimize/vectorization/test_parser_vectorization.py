"""parser_vectorization: functions that only call parse_single_example parse whole columns."""

import functools
import types

import numpy as np
import pytest

import dataset
from dataset import Dataset, io, vectorized
from dataset.io import parse_single_example
from dataset.optimize.driver import optimize
from dataset.optimize.vectorization import parsing_functions
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes
from support.pipelines import no_rules

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
NAME = "label"


def closure(features=FEATURES):
    return lambda record: io.parse_single_example(record, features)


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
    "keyword": lambda record: io.parse_single_example(record, features=FEATURES),
    "keywords": lambda record: io.parse_single_example(features=FEATURES, serialized=record),
    "name": lambda record: parse_single_example(record, FEATURES),
    "long name": lambda record: dataset.io.parse_single_example(record, FEATURES),
    "of a module": lambda record: module.io.parse_single_example(record, module.FEATURES),
    "one": lambda record: io.parse_single_example(record, FEATURES)["label"],
    "tuple": lambda record: (io.parse_single_example(record, FEATURES)["words"],),
    "closure": closure(),
    "picks": picks,
    "nests": nests,
    "stores": stores,
    "catches": catches,
    "partial": functools.partial(io.parse_single_example, features=FEATURES),
}


def two_calls(record):
    return io.parse_single_example(record, FEATURES)["label"], io.parse_single_example(record, FEATURES)["image"]


def other_result(record):
    io.parse_single_example(record, FEATURES)
    return record


def loops(record):
    example = io.parse_single_example(record, FEATURES)
    return [example[name] for name in ("label", "image")]


def writes(record):
    Holder.last = io.parse_single_example(record, FEATURES)
    return record


def picks_twice(record):
    example = io.parse_single_example(record, FEATURES)
    return example["label"], example["label"]


def changes(record):
    example = io.parse_single_example(record, FEATURES)
    example["label"] = 3
    return example


def makes_features(record):
    return io.parse_single_example(record, {"label": io.FixedLenFeature((), np.int64)})


def takes_two(record, features=FEATURES):
    return io.parse_single_example(record, features)


def yields(record):
    yield io.parse_single_example(record, FEATURES)


@vectorized
def marked(record):
    return io.parse_single_example(record, FEATURES)


@functools.wraps(picks)
def wraps(record):
    return picks(record)


class Holder:
    parse_single_example = staticmethod(io.parse_single_example)
    features = FEATURES


class Mapping(dict):
    pass


NEVER = {
    "more": lambda record: io.parse_single_example(record, FEATURES)["label"] + 1,
    "no such feature": lambda record: io.parse_single_example(record, FEATURES)["bytes"],
    "key in a variable": lambda record: io.parse_single_example(record, FEATURES)[NAME],
    "twice": picks_twice,
    "nothing": lambda record: (),
    "constant": lambda record: (io.parse_single_example(record, FEATURES)["label"], 3),
    "record": lambda record: (io.parse_single_example(record, FEATURES)["label"], record),
    "of an object": lambda record: Holder.parse_single_example(record, FEATURES),
    "features of an object": lambda record: io.parse_single_example(record, Holder.features),
    "another mapping": closure(Mapping(FEATURES)),
    "wrong features": closure({"label": 3}),
    "no features": closure({}),
    "no dict": closure(3),
    "parse_example": lambda record: io.parse_example(record, FEATURES),
    "condition": lambda record: io.parse_single_example(record, FEATURES if record else OTHERS),
    "method": lambda record: io.parse_single_example(record, FEATURES).copy(),
    "positions": lambda record: io.parse_single_example(FEATURES, record),
    "star": lambda record: io.parse_single_example(*(record, FEATURES)),
    "any arguments": lambda *record: io.parse_single_example(record[0], FEATURES),
    "two_calls": two_calls,
    "other_result": other_result,
    "loops": loops,
    "writes": writes,
    "changes": changes,
    "makes_features": makes_features,
    "takes_two": takes_two,
    "yields": yields,
    "marked": marked,
    "wraps": wraps,
    "partial of positions": functools.partial(io.parse_single_example, RECORDS[0]),
    "partial of another": functools.partial(picks),
    "partial of more": functools.partial(io.parse_single_example, features=FEATURES, serialized=RECORDS[0]),
    "ExampleParser": io.ExampleParser(FEATURES),
    "bytes": bytes,
}


def records(*bad, count=70):
    found = [b"bad" if i in bad else RECORDS[i] for i in range(count)]
    return Dataset.from_tensor_slices(np.array(found, object))


def fires(dataset):
    return "parser_vectorization" in [fired.rule for fired in optimize(dataset.plan).fired]


def counted(monkeypatch):
    """A list of how many records are parsed at a time."""
    calls = []
    parse_columns = io.ExampleParser.parse_columns

    def counting(self, serialized, *arguments, **keywords):
        calls.append(len(serialized))
        return parse_columns(self, serialized, *arguments, **keywords)

    monkeypatch.setattr(io.ExampleParser, "parse_columns", counting)
    return calls


@pytest.mark.parametrize("function", FIRES.values(), ids=FIRES)
def test_fires(function, monkeypatch):
    calls = counted(monkeypatch)
    described = records().map(function).plan.label()
    check_rule("parser_vectorization", lambda: records().map(function), f"{described} <- from_tensor_slices")
    check_rule("parser_vectorization", lambda: records(3, 40, 41).map(function).batch(35), _batched(described, 35))
    assert fires(records().map(function))
    assert "on columns" in records().map(function).explain()
    calls.clear()
    assert len(list(records().map(function).batch(35))) == 2
    assert calls == [35, 35]


def _batched(described, size):
    return f"batch({size}) <- {described} <- from_tensor_slices"


@pytest.mark.parametrize("function", NEVER.values(), ids=NEVER)
def test_does_not_fire(function, monkeypatch):
    calls = counted(monkeypatch)
    assert not fires(Dataset.range(3).map(function))
    outcomes(iter(Dataset.from_tensor_slices(np.array(RECORDS, object)).map(function).take(69)))
    assert calls == [] or isinstance(function, io.ExampleParser)


@pytest.mark.parametrize("name", ["more", "loops", "makes_features", "takes_two"])
def test_says_what_is_in_the_way(name):
    explained = Dataset.range(3).map(NEVER[name]).explain()
    assert "parser_vectorization" in explained
    assert "use a dataset.io.ExampleParser in one map" in explained
    assert "ExampleParser, and" not in Dataset.range(3).map(bytes).explain()


def test_does_not_fire_where_the_function_goes_to_a_process():
    assert not fires(records().map(picks, executor="process"))


def test_few_records_are_parsed_one_by_one(monkeypatch):
    calls = counted(monkeypatch)
    assert len(list(records().map(picks).batch(31))) == 3
    assert len(list(records().map(picks))) == 70
    assert calls == []


@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("bad", [(), (0,), (34, 35), (69,), tuple(range(0, 70, 9))])
def test_failures_keep_their_places_and_tell_of_the_function(calls, bad):
    expected = outcomes(iter(records(*bad).map(picks).batch(35).with_options(no_rules())))
    check_operator(lambda: records(*bad).map(picks, num_parallel_calls=calls).batch(35), expected, positions=3)
    for outcome in outcomes(iter(records(*bad).map(picks, num_parallel_calls=calls).batch(35))):
        if isinstance(outcome, Exception):
            (note,) = outcome.__notes__
            assert note.startswith("in map(picks) from test_parser_vectorization.py:")
            assert int(note.rpartition(" ")[2]) in bad
            frames = []
            traceback = outcome.__traceback__
            while traceback is not None:
                frames.append(traceback.tb_frame.f_code)
                traceback = traceback.tb_next
            assert picks.__code__ in frames  # the user's line is in the traceback


@pytest.mark.parametrize(
    "rows",
    [[1, 2, 3] * 20, ["a"] * 60, np.full((60, 2), b"a", object), {"a": [b"x"] * 60}, ([b"x"] * 60, [1] * 60)],
    ids=repr,
)
def test_elements_that_are_no_records_fail_as_before(rows):
    make = Dataset.from_tensor_slices(rows).map(FIRES["whole"]).batch(40)
    assert_elements_equal(outcomes(iter(make)), outcomes(iter(make.with_options(no_rules()))))


def test_features_that_change_later_are_those_that_count(monkeypatch):
    calls = counted(monkeypatch)
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


def test_variables_that_are_bound_to_something_else_are_seen(monkeypatch):
    batches = iter(records().map(FIRES["of a module"]).batch(35))
    assert list(next(batches)) == list(FEATURES)
    monkeypatch.setattr(module, "FEATURES", OTHERS)
    with pytest.raises(dataset.SpecError, match="the same structure"):
        next(batches)
    assert list(next(iter(records().map(FIRES["of a module"]).batch(35)))) == ["label"]
    monkeypatch.setattr(module, "io", types.SimpleNamespace(parse_single_example=lambda record, features: 3))
    assert next(iter(records().map(FIRES["of a module"]).batch(35))).tolist() == [3] * 35
    monkeypatch.delattr(module, "io")
    with pytest.raises(AttributeError):
        next(iter(records().map(FIRES["of a module"]).batch(35)))


def test_a_function_that_is_given_other_code_runs_that():
    def function(record):
        return io.parse_single_example(record, FEATURES)

    batches = iter(records().map(function).batch(35))
    assert list(next(batches)) == list(FEATURES)
    function.__code__ = (lambda record: {"image": record, "label": 0, "words": 1}).__code__
    assert next(batches)["image"].tolist() == RECORDS[35:]


def test_a_variable_of_an_enclosing_function_may_get_its_value_later(monkeypatch):
    calls = counted(monkeypatch)

    def enclosing():
        def function(record):
            return io.parse_single_example(record, features)

        parsed = records().map(function)
        plan_without = optimize(parsed.plan)
        features = OTHERS
        return parsed, plan_without

    parsed, early = enclosing()
    assert "parser_vectorization" not in [fired.rule for fired in early.fired]
    assert fires(parsed)
    assert next(iter(parsed.batch(70)))["label"].tolist() == list(range(70))
    assert calls == [70]


def test_instructions_that_are_not_known_prove_nothing(monkeypatch):
    for opname in list(parsing_functions._STEPS):
        with monkeypatch.context() as without:
            without.delitem(parsing_functions._STEPS, opname)
            if opname in {"LOAD_FAST", "CALL", "RESUME"}:
                assert parsing_functions.parsing_function(picks) is None

"""Tests of parsed SequenceExamples and of SparseFeature against tf.io's: values, dtypes, defaults, refusals."""

import inspect
import itertools

import numpy as np
import pytest
from compare import theirs

from dataset import ParseError, RaggedTensor, SparseTensor, io
from support.sequence_examples import sequence_example

STEPS = {
    "one value in each": [[1], [300], [-5]],
    "two values in each": [[1, 2], [3, 4]],
    "different numbers": [[1, 2, 3], [], [4]],
    "a step without a kind": [[1], None, [2]],
    "only steps without a kind": [None, None],
    "no steps": [],
    "another kind": [[1], [2.5]],
    "bytes": [[b"a"], [b""]],
    "missing": None,
}
FEATURES = {
    "fixed": lambda lib: lib.FixedLenSequenceFeature([], np.int64),
    "fixed that may be missing": lambda lib: lib.FixedLenSequenceFeature([], np.int64, allow_missing=True),
    "fixed in pairs": lambda lib: lib.FixedLenSequenceFeature([2], np.int64, allow_missing=True),
    "fixed bytes": lambda lib: lib.FixedLenSequenceFeature([], "string", allow_missing=True),
    "sparse": lambda lib: lib.VarLenFeature(np.int64),
    "sparse bytes": lambda lib: lib.VarLenFeature("string"),
    "ragged": lambda lib: lib.RaggedFeature(np.int64, row_splits_dtype=np.int64),
    "ragged floats": lambda lib: lib.RaggedFeature(np.float32, row_splits_dtype=np.int64),
    "in uniform rows": lambda lib: lib.RaggedFeature(
        np.int64, partitions=[lib.RaggedFeature.UniformRowLength(2)], row_splits_dtype=np.int64
    ),
    "in rows of given lengths": lambda lib: lib.RaggedFeature(
        np.int64, value_key="x", partitions=[lib.RaggedFeature.RowLengths("lengths")], row_splits_dtype=np.int64
    ),
}
CONTEXT = {
    "label": lambda lib: lib.FixedLenFeature([], np.int64, -1),
    "name": lambda lib: lib.FixedLenFeature([2], "string", ["?", "!"]),
    "weights": lambda lib: lib.VarLenFeature(np.float32),
    "ids": lambda lib: lib.RaggedFeature(np.int64, row_splits_dtype=np.int64),
}


def plain(value):
    """Return a value as nested lists, with its kind, dtype and shape."""
    if isinstance(value, RaggedTensor):
        return "ragged", value.to_list(), name_of(value.dtype)
    if isinstance(value, SparseTensor):
        parts = [np.asarray(part) for part in (value.indices, value.values, value.dense_shape)]
        return "sparse", *[part.tolist() for part in parts], name_of(value.dtype)
    array = np.asarray(value)
    return "dense", array.tolist(), array.shape, array.dtype.name if array.dtype.kind not in "SO" else "bytes"


def name_of(dtype):
    return "bytes" if np.dtype(dtype).kind == "O" else np.dtype(dtype).name


def outcome(parse, errors):
    """Return dicts of values, or that they are refused."""
    try:
        return list(parse())
    except errors:
        return "refused"


def shown(found):
    return found if found == "refused" else [{name: plain(value) for name, value in one.items()} for one in found]


def refusals(tf):
    return (tf.errors.InvalidArgumentError, ValueError)


def compare(records, context, lists):
    """Compare both functions, for the first record and for all."""

    def parsed(functions, errors, every):
        args = [{name: make(functions) for name, make in features.items()} for features in (context, lists)]
        return (
            outcome(lambda: functions.parse_single_sequence_example(records[0], *args), errors),
            outcome(lambda: functions.parse_sequence_example(every, *args), errors),
        )

    found = parsed(io, (ParseError, ValueError), records)
    expected = theirs(lambda lib: parsed(lib.tf.io, refusals(lib.tf), lib.const(records, bytes)), records)
    assert list(map(shown, found)) == list(map(shown, expected))
    return shown(found[1])


# TensorFlow splits the values of all steps together, so that a uniform row can come from two steps.
SPLIT_ACROSS = {
    ("in uniform rows", steps) for steps in ("one value in each", "different numbers", "a step without a kind")
}


@pytest.mark.parametrize(
    ("feature", "steps"), [case for case in itertools.product(FEATURES, STEPS) if case not in SPLIT_ACROSS]
)
def test_feature_lists(feature, steps):
    values = STEPS[steps]
    given = {} if values is None else {"x": values, "lengths": [[len(step or ())] for step in values]}
    records = [sequence_example(**given), sequence_example(x=[[7, 8]], lengths=[[1, 1]])]
    records = [*records, records[0]] if values is None or steps == "no steps" else [records[0]] * 2
    compare(records, {}, {"x": FEATURES[feature]})


def test_records_with_different_numbers_of_steps():
    records = [sequence_example(x=[[n]] * n, y=[[b"a"] * (n + 1)] * (4 - n)) for n in range(4)]
    found = compare(records, {}, {"x": FEATURES["fixed"], "y": FEATURES["sparse bytes"]})
    assert found != "refused"
    assert found[2]["x"][1] == [0, 1, 2, 3]
    assert compare([*records, b""], {}, {"x": FEATURES["fixed"]}) == "refused"


def test_the_context():
    full = {"label": [3], "name": [b"a", b"b"], "weights": [0.5, 1.5], "ids": [1, 2, 3]}
    records = [sequence_example(full, x=[[1]]), sequence_example({}, x=[[2]]), sequence_example({"ids": []})]
    for lists in ({}, {"x": FEATURES["sparse"]}):
        assert compare(records, CONTEXT, lists) != "refused"
    required = {"label": lambda lib: lib.FixedLenFeature([], np.int64)}
    assert compare(records[1:], required, {}) == "refused"
    assert compare([sequence_example({"label": [0.5]})], required, {}) == "refused"


@pytest.mark.parametrize("record", [b"\xff\xff", b"\x0a\x05abc", sequence_example(x=[[1]])[:-1]])
def test_damaged_records(record):
    assert compare([record], {}, {"x": FEATURES["sparse"]}) == "refused"


def test_no_records_and_no_features():
    lists = {name: FEATURES[name] for name in ("sparse", "ragged", "fixed")}
    found = io.parse_sequence_example([], {}, {name: make(io) for name, make in lists.items()})

    def parsed(lib):
        made = {name: make(lib.tf.io) for name, make in lists.items()}
        return lib.tf.io.parse_sequence_example(lib.tf.zeros([0], lib.tf.string), {}, made)

    expected = theirs(parsed)
    assert {k: plain(v) for k, v in found[1].items() if k != "fixed"} == {
        k: plain(v) for k, v in expected[1].items() if k != "fixed"
    }
    assert plain(found[2]["fixed"]) == plain(expected[2]["fixed"])
    assert compare([b""], {}, {}) == "refused"


@pytest.mark.parametrize("name", ["parse_sequence_example", "parse_single_sequence_example"])
def test_signatures(name):
    def parameters(functions):
        found = inspect.signature(getattr(functions, name)).parameters.values()
        return [(p.name, "required" if p.default is p.empty else p.default) for p in found]

    assert parameters(io) == theirs(lambda lib: parameters(lib.tf.io))


def test_sparse_feature_has_the_fields_of_tensorflow():
    fields = theirs(lambda lib: list(lib.tf.io.SparseFeature("i", "v", lib.tf.float32, 3)._asdict()))
    ours = io.SparseFeature("i", "v", np.float32, 3)
    assert list(vars(ours)) == fields
    assert (ours.size, ours.already_sorted) == (3, False)


SPARSE = {
    "unsorted": [{"i": [5, 2, 7], "v": [1.0, 2.0, 3.0]}, {"i": [3], "v": [4.0]}],
    "with an empty record": [{}, {"i": [3, 0], "v": [4.0, 5.0]}, {"i": np.zeros(0, int), "v": np.zeros(0)}],
    "the same place twice": [{"i": [4, 1, 4], "v": [1.0, 2.0, 3.0]}],
    "another kind of values": [{"i": [1], "v": [2]}],
    "another kind of indices": [{"i": [1.0], "v": [2.0]}],
    "fewer values": [{"i": [1, 2], "v": [2.0]}],
}


@pytest.mark.parametrize("records", SPARSE)
@pytest.mark.parametrize("already_sorted", [False, True])
def test_sparse_features(records, already_sorted):
    encoded = [io.encode_example(record) for record in SPARSE[records]]
    first = SPARSE[records][0]
    pairs = [io.encode_example({**first, "j": first.get("i", np.zeros(0, int))})]

    def parsed(functions, errors):
        one = {"s": functions.SparseFeature("i", "v", np.float32, 10, already_sorted)}
        two = {"s": functions.SparseFeature(["i", "j"], "v", np.float32, [10, 20], already_sorted)}
        return (
            outcome(lambda: [functions.parse_example(encoded, one)], errors),
            outcome(lambda: [functions.parse_single_example(encoded[0], one)], errors),
            outcome(lambda: [functions.parse_example(pairs, two)], errors),
        )

    expected = theirs(lambda lib: parsed(lib.tf.io, refusals(lib.tf)), encoded, pairs)
    assert list(map(shown, parsed(io, ParseError))) == list(map(shown, expected))

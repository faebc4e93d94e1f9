"""Tests of parsed SequenceExamples and of SparseFeature against tf.io's: values, dtypes, defaults, refusals."""

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
I64 = {"dtype": np.int64, "row_splits_dtype": np.int64}
FEATURES = {
    "fixed": lambda lib: lib.FixedLenSequenceFeature([], np.int64),
    "fixed that may be missing": lambda lib: lib.FixedLenSequenceFeature([], np.int64, allow_missing=True),
    "fixed in pairs": lambda lib: lib.FixedLenSequenceFeature([2], np.int64, allow_missing=True),
    "fixed bytes": lambda lib: lib.FixedLenSequenceFeature([], "string", allow_missing=True),
    "sparse": lambda lib: lib.VarLenFeature(np.int64),
    "sparse bytes": lambda lib: lib.VarLenFeature("string"),
    "ragged": lambda lib: lib.RaggedFeature(**I64),
    "ragged floats": lambda lib: lib.RaggedFeature(np.float32, row_splits_dtype=np.int64),
    "in uniform rows": lambda lib: lib.RaggedFeature(partitions=[lib.RaggedFeature.UniformRowLength(2)], **I64),
    "in rows of given lengths": lambda lib: lib.RaggedFeature(
        value_key="x", partitions=[lib.RaggedFeature.RowLengths("lengths")], **I64
    ),
}
CONTEXT = {
    "label": lambda lib: lib.FixedLenFeature([], np.int64, -1),
    "name": lambda lib: lib.FixedLenFeature([2], "string", ["?", "!"]),
    "weights": lambda lib: lib.VarLenFeature(np.float32),
    "ids": lambda lib: lib.RaggedFeature(**I64),
}


def plain(value):
    """Return a value as nested lists, with its kind, dtype and shape."""
    if isinstance(value, RaggedTensor):
        return "ragged", value.to_list(), name_of(value.dtype)
    if isinstance(value, SparseTensor):
        parts = [np.asarray(part).tolist() for part in (value.indices, value.values, value.dense_shape)]
        return "sparse", *parts, name_of(value.dtype)
    array = np.asarray(value)
    return "dense", array.tolist(), array.shape, name_of(array.dtype)


def name_of(dtype):
    return "bytes" if np.dtype(dtype).kind in "SO" else np.dtype(dtype).name


def outcome(parse, errors):
    """Return dicts of values, or that they are refused."""
    try:
        return list(parse())
    except errors:
        return "refused"


def shown(found):
    return found if found == "refused" else [{name: plain(value) for name, value in one.items()} for one in found]


def in_both(parsed, *given):
    """Return the outcomes of ``parsed``, given the functions of a library and its refusals, which must be the same."""
    ours = list(map(shown, parsed(io, (ParseError, ValueError))))
    expected = theirs(lambda lib: parsed(lib.tf.io, (lib.tf.errors.InvalidArgumentError, ValueError)), *given)
    assert ours == list(map(shown, expected))
    return ours


def compare(records, context, lists):
    """Compare both functions, for the first record and for all. Return the outcome for all."""

    def parsed(functions, errors):
        args = [{name: make(functions) for name, make in features.items()} for features in (context, lists)]
        return (
            outcome(lambda: functions.parse_single_sequence_example(records[0], *args), errors),
            outcome(lambda: functions.parse_sequence_example(records, *args), errors),
        )

    return in_both(parsed, records)[1]


# TensorFlow splits the values of all steps together, so that a uniform row can come from two steps.
SPLIT_ACROSS = {
    ("in uniform rows", steps) for steps in ("one value in each", "different numbers", "a step without a kind")
}
CASES = [case for case in itertools.product(FEATURES, STEPS) if case not in SPLIT_ACROSS]


@pytest.mark.parametrize(("feature", "steps"), CASES)
def test_feature_lists(feature, steps):
    values = STEPS[steps]
    given = {} if values is None else {"x": values, "lengths": [[len(step or ())] for step in values]}
    records = [sequence_example(**given), sequence_example(x=[[7, 8]], lengths=[[1, 1]])]
    records = [*records, records[0]] if values is None or steps == "no steps" else [records[0]] * 2
    compare(records, {}, {"x": FEATURES[feature]})


def test_records_with_different_numbers_of_steps():
    records = [sequence_example(x=[[n]] * n, y=[[b"a"] * (n + 1)] * (4 - n)) for n in range(4)]
    found = compare(records, {}, {"x": FEATURES["fixed"], "y": FEATURES["sparse bytes"]})
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


def test_what_is_refused():
    for record in (b"\xff\xff", b"\x0a\x05abc", sequence_example(x=[[1]])[:-1]):
        assert compare([record], {}, {"x": FEATURES["sparse"]}) == "refused"
    assert compare([b""], {}, {}) == "refused"


def test_no_records():
    def parsed(functions, records):
        made = {name: FEATURES[name](functions) for name in ("sparse", "ragged", "fixed")}
        _, values, lengths = functions.parse_sequence_example(records, {}, made)
        del values["fixed"]
        return values, {"fixed": lengths["fixed"]}

    assert shown(parsed(io, [])) == shown(theirs(lambda lib: parsed(lib.tf.io, lib.const([], bytes))))


def test_sparse_feature_has_the_fields_of_tensorflow():
    fields = theirs(lambda lib: list(lib.tf.io.SparseFeature("i", "v", lib.tf.float32, 3)._asdict()))
    ours = io.SparseFeature("i", "v", np.float32, 3)
    assert list(vars(ours)) == fields
    assert (ours.size, ours.already_sorted) == (3, False)


NONE = np.zeros(0, int)
SPARSE = {
    "unsorted": [{"i": [5, 2, 7], "v": [1.0, 2.0, 3.0]}, {"i": [3], "v": [4.0]}],
    "with an empty record": [{}, {"i": [3, 0], "v": [4.0, 5.0]}, {"i": NONE, "v": np.zeros(0)}],
    "the same place twice": [{"i": [4, 1, 4], "v": [1.0, 2.0, 3.0]}],
    "another kind of values": [{"i": [1], "v": [2]}],
    "another kind of indices": [{"i": [1.0], "v": [2.0]}],
    "fewer values": [{"i": [1, 2], "v": [2.0]}],
}


@pytest.mark.parametrize("records", SPARSE)
@pytest.mark.parametrize("already_sorted", [False, True])
def test_sparse_features(records, already_sorted):
    first, *_ = SPARSE[records]
    encoded = [io.encode_example(record) for record in SPARSE[records]]
    pairs = [io.encode_example({**first, "j": first.get("i", NONE)})]

    def parsed(functions, errors):
        one = {"s": functions.SparseFeature("i", "v", np.float32, 10, already_sorted)}
        two = {"s": functions.SparseFeature(["i", "j"], "v", np.float32, [10, 20], already_sorted)}
        return (
            outcome(lambda: [functions.parse_example(encoded, one)], errors),
            outcome(lambda: [functions.parse_single_example(encoded[0], one)], errors),
            outcome(lambda: [functions.parse_example(pairs, two)], errors),
        )

    in_both(parsed, encoded, pairs)

"""Tests of SequenceExamples and of SparseFeature: errors, several features of one key, and use in ``map``."""

import numpy as np
import pytest

from dataset import Dataset, ParseError, io
from support.sequence_examples import sequence_example

pytestmark = pytest.mark.usefixtures("native")
INTS = io.FixedLenSequenceFeature((), np.int64)


@pytest.mark.parametrize(
    ("lists", "features", "message"),
    [
        ({"x": [[1], None]}, {"x": INTS}, r"feature 'x' in step 1 of record 2 holds 0 values, but shape \(\) needs 1"),
        (
            {"x": [[1], [0.5]]},
            {"x": io.VarLenFeature(int)},
            r"feature 'x' in step 1 of record 2 holds float32, but int64",
        ),
        ({"y": []}, {"x": INTS}, r"feature list 'x' of record 2 is required, but missing\. Set allow_missing=True"),
        (
            {"x": [[1], [2]], "n": [[1]]},
            {"r": io.RaggedFeature(int, "x", [io.RaggedFeature.RowLengths("n")])},
            r"feature list 'r' of record 2 has 2 steps, but its partition 'n' has 1",
        ),
        (
            {"x": [[1], [2]], "n": [[1], [7]]},
            {"r": io.RaggedFeature(int, "x", [io.RaggedFeature.RowLengths("n")])},
            r"feature 'r' in step 1 of record 2 has 1 values, which do not match its RowLengths 'n'",
        ),
    ],
)
def test_errors_name_the_feature_the_step_and_the_record(lists, features, message):
    good = sequence_example(x=[[1], [2]], n=[[1], [1]])
    empty = sequence_example(x=[], n=[])
    with pytest.raises(ParseError, match=f"^parse_sequence_example: {message}"):
        io.parse_sequence_example([good, empty, sequence_example(**lists)], None, features)


def test_wrong_arguments():
    good = sequence_example(x=[[1]])
    for parse, given in ((io.parse_single_sequence_example, good), (io.parse_sequence_example, [good])):
        with pytest.raises(ValueError, match="must name at least one feature, got none"):
            parse(given)
        with pytest.raises(
            TypeError, match="feature 'x' must be one of FixedLenSequenceFeature, VarLenFeature, Ragged"
        ):
            parse(given, sequence_features={"x": io.FixedLenFeature((), int)})
    with pytest.raises(TypeError, match="serialized must be bytes, got str"):
        io.parse_single_sequence_example("x", None, {"x": INTS})
    with pytest.raises(TypeError, match=r"Parse a single record with parse_single_sequence_example\(\)"):
        io.parse_sequence_example(good, None, {"x": INTS})
    with pytest.raises(TypeError, match="parse_sequence_example: records must be bytes, got int at position 1"):
        io.parse_sequence_example([good, 3], None, {"x": INTS})


def test_sparse_features_in_map():
    records = [io.encode_example({"i": [3, n], "v": [1.0, 2.0]}) for n in range(3)]
    parser = io.ExampleParser({"s": io.SparseFeature("i", "v", np.float32, 5), "v": io.RaggedFeature(np.float32)})
    parsed = Dataset.from_tensor_slices(np.array(records, object)).map(parser)
    assert parsed.element_spec["s"].shape == (5,)
    dense = [element["s"].to_dense().tolist() for element in parsed]
    assert dense == [[2, 0, 0, 1, 0], [0, 2, 0, 1, 0], [0, 0, 2, 1, 0]]
    (batch,) = parsed.batch(3)
    assert batch["s"].to_dense().tolist() == dense


@pytest.mark.parametrize("index", [5, -1, 1 << 62])
def test_an_index_outside_of_the_size_is_an_error(index):
    features = {"s": io.SparseFeature("i", "v", np.float32, 5)}
    records = [io.encode_example({"i": [1], "v": [1.0]}), io.encode_example({"i": [0, index], "v": [1.0, 2.0]})]
    with pytest.raises(ParseError, match=rf"feature 's' of record 1 has the index {index} in 'i', which must be .* 5$"):
        io.parse_example(records, features)
    with pytest.raises(ParseError, match="feature 's' has the index"):
        io.parse_single_example(records[1], features)


@pytest.mark.parametrize(
    "arguments",
    [("", "v", int, 3), ("i", "", int, 3), ("i", "v", int, 0), (["i"], "v", int, [1, 2]), ("i", "v", "u1", 2)],
)
def test_invalid_sparse_features(arguments):
    with pytest.raises(ValueError, match=r"^SparseFeature: "):
        io.SparseFeature(*arguments)

"""Tests of JSON Lines: values, nulls, inferred columns, errors with file, line and column, and exact positions."""

from __future__ import annotations

import decimal
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chains.model import plain
from dataset import (
    Dataset,
    JsonLinesDataset,
    ParseError,
    RaggedTensorSpec,
    SpecError,
    TensorSpec,
    testing,
)
from dataset.io.json_lines import parser, reader
from dataset.io.json_lines.columns import JsonColumns, inferred_tree
from dataset.io.json_lines.reader import JsonLinesFile
from support.block_files import check_places
from support.seeds import rng


def write(path, rows, between="\n"):
    path.write_bytes(
        b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + between.encode() for row in rows)
    )
    return str(path)


def outcomes(dataset):
    """Return the elements as Python values, and the text of each error in its place."""
    return [str(one) if isinstance(one, Exception) else plain(one) for one in testing.outcomes(iter(dataset))]


# Values


def test_each_kind_of_value_has_its_component(tmp_path):
    path = write(tmp_path / "a", [
        {"int": 1, "float": 1, "flag": True, "text": "é", "ints": [1, 2], "texts": ["a"], "deep": [[1.5], []],
         "who": {"name": "Ann", "age": 3}, "chat": [{"role": "user"}], "mixed": 1, "nothing": None, "empty": []},
        {"int": -2, "float": 2.5, "flag": False, "text": "", "ints": [], "texts": [], "deep": [],
         "who": {"age": 4, "name": "Bob"}, "chat": [], "mixed": "x", "nothing": None, "empty": []},
    ])  # fmt: skip
    dataset = JsonLinesDataset(path)
    assert dataset.element_spec == {
        "int": TensorSpec((), np.int64),
        "float": TensorSpec((), np.float64),
        "flag": TensorSpec((), np.bool_),
        "text": TensorSpec((), bytes),
        "ints": RaggedTensorSpec((None,), np.int64, 0),
        "texts": RaggedTensorSpec((None,), bytes, 0),
        "deep": RaggedTensorSpec((None, None), np.float64, 1),
        "who": {"name": TensorSpec((), bytes), "age": TensorSpec((), np.int64)},
        **dict.fromkeys(("chat", "mixed", "nothing", "empty"), TensorSpec((), bytes)),
    }
    first, second = dataset
    assert list(first) == list(dataset.element_spec) == [
        "int", "float", "flag", "text", "ints", "texts", "deep", "who", "chat", "mixed", "nothing", "empty",
    ]  # fmt: skip
    assert plain(first) == {
        "int": 1, "float": 1.0, "flag": True, "text": "é".encode(), "ints": [1, 2], "texts": [b"a"],
        "deep": [[1.5], []], "who": {"name": b"Ann", "age": 3}, "chat": b'[{"role":"user"}]', "mixed": b"1",
        "nothing": b"null", "empty": b"[]",
    }  # fmt: skip
    assert plain(second)["who"] == {"name": b"Bob", "age": 4}
    assert [type(second[name]) for name in ("int", "float", "flag", "text")] == [np.int64, np.float64, np.bool_, bytes]
    (batch,) = dataset.batch(2)
    assert batch["ints"].to_list() == [[1, 2], []]
    assert batch["mixed"].tolist() == [b"1", b'"x"']
    assert dataset.element_spec["ints"].is_compatible_with(first["ints"])


def test_requested_types_read_no_file_before_the_first_element_and_convert(tmp_path):
    types = {
        "x": np.float32, "n": np.uint8, "any": object, "pair": TensorSpec((2,), np.int16),
        "box": TensorSpec((2, 2), np.float64), "who": {"name": bytes}, "words": RaggedTensorSpec((None,), bytes, 0),
    }  # fmt: skip
    dataset = JsonLinesDataset(tmp_path / "a", types)
    row = {"x": 1, "n": 255, "any": {"b": [1, None]}, "pair": [3, 4], "box": [[1, 2], [3, 4]], "extra": 0}
    write(tmp_path / "a", [{**row, "who": {"name": "Ann", "age": 1}, "words": ["a", "b"]}])
    (element,) = dataset
    assert element["x"].dtype == np.float32
    assert element["n"].dtype == np.uint8
    assert element["any"] == b'{"b":[1,null]}'
    assert element["pair"].tolist() == [3, 4]
    assert element["pair"].dtype == np.int16
    assert element["box"].shape == (2, 2)
    assert element["who"] == {"name": b"Ann"}
    assert element["words"].tolist() == [b"a", b"b"]


@pytest.mark.parametrize(
    ("types", "row", "words"),
    [
        ({"n": np.int64}, {"n": 1.5}, "column 'n': it is a number, expected int64"),
        ({"n": np.int64}, {"n": True}, "column 'n': it is a bool, expected int64"),
        ({"n": np.int8}, {"n": 128}, "column 'n': a number is outside the range of int8"),
        ({"x": np.float32}, {"x": 1e300}, "column 'x': a number is outside the range of float32"),
        ({"s": bytes}, {"s": 1}, "column 's': it is an integer, expected bytes"),
        ({"a": {"b": int}}, {"a": 3}, "column 'a': it is an integer, expected an object"),
        ({"a": {"b": int}}, {"a": {"b": "x"}}, "column 'a.b': it is text, expected int64"),
        ({"p": TensorSpec((2,), int)}, {"p": [1, 2, 3]}, "column 'p': a list has 3 values, expected 2"),
        ({"p": TensorSpec((2,), int)}, {"p": 1}, "column 'p': it is an integer, expected lists of int64"),
        ({"r": RaggedTensorSpec((None,), int, 0)}, {"r": ["x"]}, "column 'r': it is text, expected lists of int64"),
        ({"r": RaggedTensorSpec((None,), float, 0)}, {}, "column 'r': it is null or missing"),
        ({"n": np.int64}, {}, "column 'n': it is null or missing, which int64 cannot represent; pass fill_null"),
        ({"n": np.int64}, [1], "column 1: the line must hold an object, got list"),
    ],
)
def test_a_value_that_does_not_match_is_an_error_in_its_place(tmp_path, types, row, words):
    good = {"n": 1, "x": 1, "s": "a", "a": {"b": 1}, "p": [1, 2], "r": [1]}
    path = write(tmp_path / "a", [good, row, good])
    first, error, last = outcomes(JsonLinesDataset(path, types))
    assert first == last
    assert f"{path}, line 2, {words}" in error


# Nulls


def test_a_null_and_a_missing_key_are_nan_in_floats_and_an_error_elsewhere_unless_there_is_a_replacement(tmp_path):
    path = write(tmp_path / "a", [{"x": 1.5, "n": 1, "s": "a"}, {"x": None, "n": None, "s": None}, {}])
    first, *others = outcomes(JsonLinesDataset(path))
    assert first == {"x": 1.5, "n": 1, "s": b"a"}
    assert all("column 'n': it is null or missing" in error for error in others)
    filled = [plain(row) for row in JsonLinesDataset(path, fill_null={"n": np.int32(-1), "s": b"?"})]
    assert [(row["n"], row["s"]) for row in filled] == [(1, b"a"), (-1, b"?"), (-1, b"?")]
    assert math.isnan(filled[1]["x"])
    assert math.isnan(filled[2]["x"])


def test_replacements_in_lists_and_objects(tmp_path):
    path = write(tmp_path / "a", [{"l": [1, None], "f": [0.5, None], "o": {"n": 1}}, {"l": None, "f": [], "o": None}])
    fills = {"l": 0, "o.n": -1}
    first, second = (plain(row) for row in JsonLinesDataset(path, fill_null=fills))
    assert first["l"] == [1, 0]
    assert math.isnan(first["f"][1])
    assert second == {"l": [], "f": [], "o": {"n": -1}}
    types = {"l": TensorSpec((2,), int)}
    assert [plain(row)["l"] for row in JsonLinesDataset(path, types, fill_null={"l": 7})] == [[1, 7], [7, 7]]


@pytest.mark.parametrize(
    ("fills", "words"),
    [
        ({"y": 1}, "names 'y', but the columns are"),
        ({"n": "x"}, "it is text, expected int64"),
        ({"n": None}, "a value"),
    ],
)
def test_a_replacement_that_does_not_fit_is_refused_at_once(tmp_path, fills, words):
    path = write(tmp_path / "a", [{"n": 1}])
    with pytest.raises(ValueError, match=words):
        JsonLinesDataset(path, fill_null=fills)


# Inferred columns


def test_a_key_or_a_type_that_the_inspected_rows_do_not_have_is_an_error_that_says_what_to_do(tmp_path):
    path = write(tmp_path / "a", [{"n": 1}, {"n": 2, "new": 3}, {"n": 0.5}])
    dataset = Dataset.from_json_lines(path, num_rows_for_inference=1)
    first, extra, other = outcomes(dataset)
    assert first == {"n": 1}
    assert "line 2, column 'new': the rows from which the columns were inferred do not have this key" in extra
    assert "line 3, column 'n': it is a number, expected int64; pass the types in columns" in other
    assert [plain(row) for row in Dataset.from_json_lines(path, ["n"])] == [{"n": 1.0}, {"n": 2.0}, {"n": 0.5}]
    assert "pass fill_null" in outcomes(Dataset.from_json_lines(path, num_rows_for_inference=None))[0]
    path = write(tmp_path / "b", [{"n": 1}, {"n": 2, "new": 3}, {"n": 4}])  # without another error, read at once
    assert [type(row) for row in outcomes(Dataset.from_json_lines(path, num_rows_for_inference=1))] == [dict, str, dict]


def test_the_rows_for_inference_are_counted_over_all_files(tmp_path):
    paths = [write(tmp_path / "a", [{"n": 1}, b"oops"]), write(tmp_path / "b", [{"n": 0.5}])]
    assert outcomes(JsonLinesDataset(paths))[::2] == [{"n": 1.0}, {"n": 0.5}]
    dtypes = [Dataset.from_json_lines(paths, num_rows_for_inference=n).element_spec["n"].dtype for n in (1, 3)]
    assert dtypes == [np.int64, np.float64]


def test_arguments_that_are_wrong(tmp_path):
    path = write(tmp_path / "a", [{"n": 1}])
    for columns, error, words in (
        (["m"], ValueError, "no column 'm' in the first 1 rows; they have \\['n'\\]"),
        ({}, ValueError, "columns must name at least one column"),
        ({"n": np.complex64}, TypeError, "the type of column 'n' must be"),
        ({"n": {"m": "M8[s]"}}, TypeError, "the type of column 'n.m' must be"),
        ({"n": TensorSpec((None, 2), int)}, ValueError, "the shape of column 'n'"),
        ("n", TypeError, "columns must be a list of names"),
    ):
        with pytest.raises(error, match=words):
            JsonLinesDataset(path, columns)
    (tmp_path / "empty").write_bytes(b"\n{}\n")
    with pytest.raises(ValueError, match=r"no row with a key was found in .*empty"):
        JsonLinesDataset(tmp_path / "empty")
    with pytest.raises(ValueError, match="num_rows_for_inference"):
        Dataset.from_json_lines(path, num_rows_for_inference=0)


# Lines


def test_blank_lines_a_byte_order_mark_and_carriage_returns_are_not_data(tmp_path):
    (tmp_path / "a").write_bytes(b'\xef\xbb\xbf{"n": 1}\r\n\r\n  \t\n{"n": 2}\n\n{"n":\n\n{"n": 3}')
    for size in (None, 3):
        found = outcomes(JsonLinesDataset(tmp_path / "a", {"n": int}, buffer_size=size))
        assert [row for row in found if isinstance(row, dict)] == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert "line 6, column 6: Expecting value" in found[2]


@pytest.mark.parametrize("size", [None, 1])
def test_a_byte_order_mark_within_a_file_is_not_valid(tmp_path, size):
    (tmp_path / "a").write_bytes(b'{"n": 1}\n\xef\xbb\xbf{"n": 2}\n{"n": 3}\n')
    first, error, last = outcomes(JsonLinesDataset(tmp_path / "a", {"n": int}, buffer_size=size))
    assert [first, last] == [{"n": 1}, {"n": 3}]
    assert "line 2, column 1: Expecting value" in error


@pytest.mark.parametrize(
    "line",
    [
        b"", b" ", b"1", b"[]", b"null", b"{", b'{"a":1}}', b'{"a":01}', b'{"a":NaN}', b'{"a":-Infinity}',
        b'{"a":1e400}',
        b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{"a":"\\ud83d\\ude00"}', b'{"a":"\x01"}', b'{"a":1,"a":2}', b'{"a":1} x',
        b'{"a":18446744073709551615}', b"{'a':1}",
        b'{"a":' + b"9" * 5000 + b"}", b'{"a":' + b"[" * 100_000, b'{"a":0.1}', b'{"a":1E5}', b"\xef\xbb\xbf{}",
        b'{"a":1,}',
    ],
)  # fmt: skip
def test_both_parsers_take_and_refuse_the_same_lines(line):
    pytest.importorskip("orjson")
    results = []
    for parse in (parser.line_parser(), parser.parse_line):
        try:
            results.append(repr(parse(line)))
        except (ValueError, RecursionError) as error:
            results.append(parser.syntax_error(line, error)[:7])
    assert results[0] == results[1]


def number(draws):
    """Return the JSON text of a number that tests the limits of integers and floats."""
    power = 1 << draws.choice([31, 53, 62, 63, 64, 65, 100, 1000])
    exact = decimal.Context(2000).multiply(2 * draws.getrandbits(53) + 1, decimal.Decimal(2) ** draws.randint(-60, 60))
    return draws.choice([
        str(draws.choice([1, -1]) * power + draws.randint(-1, 1)),
        f"{draws.randint(-(10**20), 10**20)}.{draws.randint(0, 10**25)}",
        f"{draws.randint(1, 10**17)}{draws.choice(['e', 'E+', 'E-', 'e-3'])}{draws.randint(0, 9)}",
        str(exact), "-0", "-0.0", "4.9e-324", "2.4e-324", "1.7976931348623157e308",
    ])  # fmt: skip


@pytest.mark.parametrize("parse", [parser.line_parser(), parser.parse_line], ids=["fastest", "standard library"])
def test_numbers_are_those_of_the_json_module(parse, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "line_parser", lambda: parse)
    for case in range(100):
        draws = rng("numbers of JSON", case)
        texts = [number(draws) for _ in range(draws.randint(1, 5))]
        values = list(map(json.loads, texts))
        path = write(tmp_path / "a", [f'{{"a":{text},"b":["e+",{text}]}}'.encode() for text in texts])
        rows = list(JsonLinesDataset(path, {"a": object, "b": object}))
        assert [row["a"] for row in rows] == [json.dumps(value).encode() for value in values]
        assert [json.loads(row["b"])[1] for row in rows] == values
        for element, value in zip(JsonLinesDataset(path), values, strict=True):
            found = plain(element["a"])
            assert (json.loads(found) if isinstance(found, bytes) else found) == (
                float(value) if isinstance(found, float) else value
            )


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_values_that_are_nested_deeply_are_json_text_or_an_error_in_their_place(opening, closing, tmp_path):
    lines = [f'{{"a":{opening * depth}1{closing * depth}}}'.encode() for depth in (2, 500, 100_000)]
    last, found, error = outcomes(JsonLinesDataset(write(tmp_path / "a", lines), {"a": object}))
    assert (last["a"], found["a"]) == (lines[0][5:-1], lines[1][5:-1])
    assert f"{tmp_path / 'a'}, line 3, column 1: the values are nested too deeply to be parsed; store" in error
    (element,) = outcomes(JsonLinesDataset(write(tmp_path / "b", lines[1:2])))
    for _ in range(31 if opening != "[" else 0):
        element = element["a"]
    assert json.loads(element["a"])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(rows=st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), min_size=1, max_size=8))
def test_values_survive_in_any_inferred_columns(rows, tmp_path_factory):
    """Compares each component with the parsed value that it represents."""
    layout = JsonColumns(inferred_tree(rows), is_closed=True)
    path = write(tmp_path_factory.mktemp("rows") / "a", rows)
    with JsonLinesFile(path, layout) as file:
        for row in rows:
            try:
                columns = file.columns(1)
            except ParseError as error:
                assert "is null or missing" in str(error)  # noqa: PT017  # the only error of inferred columns
                continue
            for leaf, column in zip(layout.leaves, columns, strict=True):
                expected = row
                for name in leaf.name.split("."):
                    expected = (expected or {}).get(name)
                assert_represents(plain(column[0]), expected, leaf)
        assert file.columns(1) is None


def assert_represents(found, expected, leaf):
    if leaf.is_json:
        assert json.loads(found) == expected
    elif isinstance(found, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_represents(one, other, leaf)
    elif expected is None:
        assert math.isnan(found)
    elif isinstance(found, float):
        assert found == float(expected)  # an integer among other numbers is the nearest float64
    else:
        assert found == (expected.encode() if isinstance(expected, str) else expected)


LINES = st.sampled_from([b'{"n": 1}', b'{"n": 2, "s": "text"}', b"", b" ", b"{", b'{"n": "x"}', b'{"n": 3}\r', b"[1]"])


@settings(deadline=None, max_examples=100)
@given(lines=st.lists(LINES, max_size=12), size=st.sampled_from([None, 1, 7]), n=st.integers(1, 4))
def test_reading_continues_exactly_from_every_position(lines, size, n, tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "a"
    path.write_bytes(b"\n".join(lines))
    layout = JsonColumns({"n": JsonColumns(inferred_tree([{"n": 1}]), is_closed=False).leaves[0]}, is_closed=False)
    found = check_places(JsonLinesFile(path, layout, None, size), n)
    valid = [line for line in lines if line.startswith(b'{"n": ') and b"x" not in line.split(b",")[0]]
    assert [one for one in found if not isinstance(one, str)] == [json.loads(line)["n"] for line in valid]


# Files


def test_patterns_are_sorted_and_recursive(tmp_path):
    for name in ("data/train/b.jsonl", "data/a.jsonl", "data/test.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / name, [{"n": len(name)}])
    found = Dataset.from_json_lines(str(tmp_path / "data/**/*.jsonl"))
    assert [plain(row)["n"] for row in found] == [12, 18]


def test_files_whose_columns_differ_need_columns_in_an_interleave(tmp_path):
    paths = [write(tmp_path / "a", [{"n": 1}]), write(tmp_path / "b", [{"n": 1.5, "more": 2}])]
    names = Dataset.from_tensor_slices([str(path) for path in paths])
    with pytest.raises(SpecError, match="needs them as an argument, such as JsonLinesDataset"):
        list(names.interleave(JsonLinesDataset))
    found = list(names.interleave(lambda path: JsonLinesDataset(path, {"n": float})).batch(2))
    assert [batch["n"].tolist() for batch in found] == [[1.0, 1.5]]

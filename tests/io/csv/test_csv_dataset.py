"""Tests of CsvDataset and from_csv as pipelines: the contract of operators, errors, and headers."""

import numpy as np
import pytest

from dataset import CsvDataset, Dataset, ParseError
from dataset.testing import check_operator

DEFAULTS = [np.int64, np.float32(0.5), bytes]
FILE = b'1,2.5,a\n2,,b\n3,x,c\n4,1,"d\ne"\n5,6\n7,8,f\n'


def good(file):
    return b"".join(b"%d,%d,%d\n" % (file, i, i * i) for i in range(6))


def test_the_contract(save):
    paths = [save(FILE), save(b""), save(FILE)]
    for size in (20, None):
        found = check_operator(lambda size=size: CsvDataset(paths, DEFAULTS, None, size))
        assert [isinstance(row, ParseError) for row in found] == [False, False, True, False, True, False] * 2


def test_the_contract_of_from_csv(save):
    paths = [save(b"b,a,c\n" + good(k)) for k in range(2)]
    make = lambda seed=1: Dataset.from_csv(paths, 4, label_name="a", num_epochs=2, shuffle_seed=seed)
    found = check_operator(make, positions=8)
    orders = [[row for batch, _ in one for row in batch["c"].tolist()] for one in (found, make(), make(2))]
    assert sorted(orders[0]) == sorted([0, 1, 4, 9, 16, 25] * 4)
    assert orders[0] == orders[1] != orders[2]


def test_an_error_says_file_line_column_text_and_the_users_line(save):
    path = save(FILE)
    iterator = iter(CsvDataset(path, DEFAULTS))
    next(iterator), next(iterator)
    with pytest.raises(ParseError) as caught:
        next(iterator)
    assert f"{path}, line 3, column 1: b'x' is not a number" in str(caught.value)
    assert "correct the file, or pass another dtype for the column" in str(caught.value)
    assert any("CsvDataset from test_csv_dataset.py:" in note for note in caught.value.__notes__)
    assert next(iterator)[2] == b"d\ne"


# from_csv


def test_what_a_header_may_not_be(save):
    with pytest.raises(ValueError, match=r"line 1, column 1: the name b'\\xff' is not valid utf-8"):
        Dataset.from_csv(save(b"a,\xff\n1,2\n"), 1)
    found = Dataset.from_csv(save(b"a,\xff\n1,2\n"), 1, encoding="latin-1")
    assert set(found.element_spec) == {"a", "ÿ"}
    with pytest.raises(ValueError, match=r"'utf-16' can't be read; convert"):
        Dataset.from_csv(save(b"a,b\n1,2\n"), 1, encoding="utf-16")


def test_a_header_that_can_not_be_read_is_an_error_of_the_call(save):
    for content, words in (
        (b'a"b,c\n1,2\n', "line 1, column 0: the header can't be read: a field that does not begin"),
        (b"", "the file is empty; header=True requires a first row"),
        (b'"a', "line 1, column 0: the quotation mark that opens here is never closed"),
        (b'\xef\xbb\xbfa,"b\n', "line 1, column 1: the quotation mark that opens here is never closed"),
    ):
        with pytest.raises(ParseError, match=words):
            Dataset.from_csv(save(content), 1)


def test_names_are_given_in_any_ordered_collection(save):
    path = save(b"1,2\n")
    for names in (["x", "y"], ("x", "y"), np.array(["x", "y"]), {"x": 0, "y": 0}.keys()):
        assert list(Dataset.from_csv(path, 1, names, header=False).element_spec) == ["x", "y"]
    for names, error, words in (
        ("xy", TypeError, "column_names must be a list of names, got 'xy'"),
        (["x", 2], TypeError, "column_names must hold names, got 2 of type int"),
        ([], ValueError, "column_names must name at least one column"),
        (["x", "x"], ValueError, "each only once"),
    ):
        with pytest.raises(error, match=words):
            Dataset.from_csv(path, 1, names)
    with pytest.raises(ValueError, match=r"column names must be unique, got \['x'\] more than once; pass column_names"):
        Dataset.from_csv(save(b"x,x\n1,2\n"), 1)


def test_a_byte_order_mark_is_no_part_of_a_name(save):
    for encoding in ("utf-8", "utf-8-sig"):
        found = Dataset.from_csv(save(b"\xef\xbb\xbfa,b\n1,2\n"), 1, encoding=encoding)
        assert list(found.element_spec) == ["a", "b"]


def test_rows_that_can_not_be_read_fail_where_types_are_found(save):
    path = save(b"a,b\n1,2\n3\n4,x\n")
    with pytest.raises(ParseError, match=r"line 3: the row has 1 field, expected 2"):
        Dataset.from_csv(path, 1)
    found = Dataset.from_csv(path, 1, num_epochs=1, shuffle=False, ignore_errors=True)
    assert [batch["b"].tolist() for batch in found] == [[b"2"], [b"x"]]

"""Tests of CsvDataset, decode_csv and from_csv against tf.data's.

These are tf.data.experimental.CsvDataset, tf.io.decode_csv and tf.data.experimental.make_csv_dataset.
"""

import gzip
import itertools
import random
import warnings
import zlib

import numpy as np
import pytest
from compare import FAILED, Ours, assert_both_raise, assert_same, attempt, in_both, refused, same, theirs

import dataset
from support.combinations import diagonals

I32, I64, F32, F64 = NUMBERS = [np.int32, np.int64, np.float32, np.float64]


@pytest.fixture
def save(tmp_path):
    """Return a function that writes bytes to a new file and returns its path."""
    numbers = itertools.count()

    def write(content):
        path = tmp_path / f"{next(numbers)}.csv"
        path.write_bytes(content)
        return str(path)

    return write


TEXTS = """12| 12 |+12|-12|- 12|--1|1_000|nan|NaN|-nan|NAN|nan(1)|inf|-inf|+inf
Infinity|INF|infin|0x10|0X1F|0x1p3|+0x10|0x
0x1g|1e5|1E+05|1e|1e400|-1e400|1e-400|1e39
1e-46|1e-45|1.4e-45|7e-46|1.|.5|.|-.5|-.|5.0|007|-0|-0.0|+|-|.e5|e5|1e1.5|1e5 | nan
 inf|1\x001|1\x00| |  |\t1|1\t|\x0b1|\x0c1|1\x0b|1 2|1.5f|1d5|1L|true|'1'|++1|+-1|+ 1|0b1|1,5
1..5|.1.5|1.5.
2147483647|2147483648|-2147483648|-2147483649
9223372036854775807|9223372036854775808|-9223372036854775808
-9223372036854775809|99999999999999999999999999|000000000000000000000000000001|16777217|16777217.0000000001
1.00000005960464477539062500001|1.000000059604644775390625|0.1|0.30000000000000004|123456789012345678|9007199254740993
0.000000000000000000000000000000000001|12345678.12345678|1234567890.12345678|12345678901.123456789|1e0000000005
""".replace("\n", "|").split("|")
TEXTS += ["1" * 40, "0." + "1" * 40, "1" * 400, " " * 20 + "1" + " " * 20, "9" * 19, "9" * 18, "0." + "0" * 20 + "1"]
TEXTS = [text for text in TEXTS if "," not in text]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers(save, dtype):
    rng = random.Random(1)
    kinds = [
        lambda: repr(rng.choice([1, -1]) * rng.randrange(10 ** rng.randrange(1, 21))),
        lambda: f"{rng.gauss(0, 10 ** rng.randrange(6)):.{rng.randrange(1, 20)}f}",
        lambda: repr(rng.gauss(0, 1) * 10.0 ** rng.randrange(-50, 50)),
    ]
    path = save("\n".join([*TEXTS, *(rng.choice(kinds)() for _ in range(3000))]).encode())
    found = assert_same(lambda lib: lib.CsvDataset(path, [dtype]), limit=4000)
    assert len(found) - 15 > found.count(FAILED) > 0
    for text in TEXTS:
        for records in (f"{text},a", [f"{text},a", "1,b"] * 30):
            assert_same_columns(records, [dtype(5), bytes])


def assert_same_columns(records, defaults, **keywords):
    def decoded(lib):
        columns = attempt(lambda lib: lib.decode_csv(records, defaults, **keywords), lib)
        return FAILED if isinstance(columns, Exception) else [np.asarray(column).tolist() for column in columns]

    ours, theirs = in_both(decoded)
    assert repr(ours) == repr(theirs)  # including NaN


FILES = {
    "nothing": b"",
    "one line end": b"\n",
    "line ends only": b"\n\r\n\r",
    "no line end at the end": b"1,2\n3,4",
    "an empty line": b"1,2\n\n3,4\n",
    "returns": b"1,2\r3,4\r\n5,6\n\r7,8\r\r9,0\r",
    "a delimiter too many": b"1,2,\n3,4\n",
    "rows of other lengths": b"1\n2,3\n4,5,6\n7,8\n",
    "empty fields": b",\n1,\n,2\n",
    "quoted": b'"a,b","c""d"\n"e\nf",g\r\n"h\r\ni",""\n"""","\r"\n',
    "quoted numbers": b'"1","2"\n" 3 ","4\n"\n"""5""",6\n',
    "text behind a quote": b'"a"b,c\nd,e\n',
    "text behind a quote that closes later": b'"a"b",c\nd,e\n"f" ,"g"\nh,i\n',
    "a quote inside": b'a"b,c\nd,e\nf,g"\n"h",i\n',
    "blank before a quote": b'a, "b"\nd,e\n',
    "never closed": b'a,b\nc,"d\ne,f\n',
    "never closed behind two": b'a,b\nc,"d""\n',
    "a lone quote at the end": b'a,b\nc,"',
    "a quoted field at the end": b'a,"b"',
    "zero bytes": b"a\0b,c\0\n",
    "no text in any encoding": b"\xff,\xfe\n\xc3,(\n",
    "a delimiter at the end": b"1,2\n3,",
}


@pytest.mark.parametrize(("content", "size"), diagonals(2, FILES, [None, 1, 3, 7]))
def test_files(save, content, size):
    path = save(FILES[content])
    for defaults in (["x", "y"], [bytes, bytes], [I64, np.float64(0.5)], [np.int64(7), "z"], ["one"]):
        assert_same(lambda lib, defaults=defaults: lib.CsvDataset(path, defaults, None, size))
        assert_same(lambda lib, defaults=defaults: lib.CsvDataset([path, path], defaults, "", size, header=True))
    for options in ({"use_quote_delim": False}, {"field_delim": " "}):
        assert_same(lambda lib, options=options: lib.CsvDataset(path, ["x", "y"], **options))


ROWS = b'1,2\n3,x,5\n6\n7,8,9,10\n"a"b,1\n2,"3\n",4\n,\n5,"6\n'
COLUMNS = [{"select_cols": columns} for columns in ([1], [0], [4], [])]
COLUMNS += [{"exclude_cols": columns} for columns in ([1], [0], [0, 1], [5], [1, 7], [])]
test_columns = same(
    "CsvDataset(save(ROWS), defaults, **columns)",
    columns=COLUMNS,
    defaults=[[bytes], [I64], [np.int64(5)], ["x", "y"]],
    fixture="save",
)
NA_ROWS = b'NA,1\n,NA\n NA,2\n"NA",3\n"a""b",1\n"a""""b","1"\n , 1\n'
test_na_value = same(
    "CsvDataset(save(NA_ROWS), defaults, na_value=value)",
    value=["NA", "", "1", 'a"b', 'a""b', " "],
    defaults=[["x", np.int64(7)], [bytes, np.int64(7)], ["x", F64], ["x", "y"]],
    fixture="save",
)
COLUMNS_OF_THREE = b"1,2,x\n-3,4.5,y\n"
test_delimiters = same(
    "CsvDataset(save(COLUMNS_OF_THREE.replace(b',', mark.encode())), [I64, F64, bytes], field_delim=mark)",
    mark=["|", "\t", " ", ";", "a", "0", "-", "."],
    fixture="save",
)
MANY = b"".join(b"%d,%d\n" % (i, i * i) for i in range(3000))
COMPRESSED = {"GZIP": gzip.compress(MANY, mtime=0), "ZLIB": zlib.compress(MANY)}
test_compressed_files = same(
    "CsvDataset(save(COMPRESSED[compression]), [I64, I64], compression)",
    compression=list(COMPRESSED),
    fixture="save",
    limit=4000,
    fails=False,
)
test_a_missing_file = same(
    "CsvDataset([save(b'1\\n2\\n'), '/no/such/file'], [I64])", fixture="save", limit=3, fails=True
)
WRONG_VALUES = [{"record_defaults": defaults} for defaults in ([], [[1, 2]], [[[1]]])]
WRONG_VALUES += [{"record_defaults": [I64, I64], "select_cols": columns} for columns in ([1, 0], [0, 0])]
WRONG_VALUES += [{"select_cols": [0, 1]}, {"select_cols": [-1]}, {"select_cols": [0], "exclude_cols": [1]}]
WRONG_VALUES += [{"exclude_cols": [1, 1]}, {"exclude_cols": [-1]}, {"compression_type": "gz"}, {"buffer_size": 0}]
WRONG_VALUES += [{"field_delim": delimiter} for delimiter in ("", ";;", "é")]
WRONG_TYPES = [{"record_defaults": defaults} for defaults in (3, [None], [np.int8(3)], [np.bool_])]
WRONG_TYPES += [{"select_cols": ["a"]}, {"select_cols": [0.5]}, {"header": "yes"}, {"use_quote_delim": "yes"}]
WRONG_TYPES += [{"na_value": 3}, {"field_delim": 3}, {"buffer_size": 2.5}]
test_what_is_refused = refused(
    {ValueError: WRONG_VALUES, TypeError: WRONG_TYPES},
    "CsvDataset(save(b'1,2\\n'), **{'record_defaults': [I64], **case})",
    fixture="save",
)
RECORDS = ["a,b", "", "a,b\n", "\na,b", "a,\nb", "a,\r\nb", "a\n,b", "a", "a,b,c", "a,", ",", ",b", "1,2", "x,", "a,b,"]
RECORDS += ["a,b\r", "\n", "\n\n", '"a",b', '"a","b"', '"a"\n,b', '"a","b"\n', '"a""b","c,d"', '"a"b,c', '"a" ,c']
RECORDS += ['"a,b', 'a"b,c', '"","""",', '"a","b""', '"a","b"""', '"a","b', '"', 'a,"', '"a",', '"a\nb","\r\n"']
RECORDS += ['a,"b\n"', '"a",\n', '"x",y']
KEYWORDS = [{}, {"use_quote_delim": False}, {"select_cols": [0, 1]}, {"na_value": "a"}]


@pytest.mark.parametrize("record", [*RECORDS, "a,b,c", 'a,b,"c', 'a,b,c,"d"', 'a,"b"c'])
def test_records(record):
    for keywords in KEYWORDS:
        for records in (record, [record], [["p,q", record]], ["p,q", record, '"r","s"'], [record, record] * 30):
            for defaults in (["x", "y"], [bytes, bytes], [np.int64(5), "y"]):
                assert_same_columns(records, defaults, **keywords)
    for select in ([0], [1], [0, 2], [3]):
        for records in (record, ["p,q,r,s", record] * 30):
            assert_same_columns(records, ["x"] * len(select), select_cols=select)


def test_what_decode_csv_refuses():
    for keywords in ({"select_cols": [1, 0]}, {"select_cols": []}, {"select_cols": [0]}, {"field_delim": ""}):
        assert_both_raise(lambda lib, given=keywords: lib.decode_csv("a,b", ["x", "y"], **given), Exception)


# from_csv against make_csv_dataset

PEOPLE = b'name,age,height,city\nann,31,1.65,"Bonn, old"\nbob,,1.8,\neve,27,,Rome\n'


def batches(path, **keywords):
    """Return the batches of both libraries as plain data; floats are rounded to those of 32 bits, as in tf.data."""

    def plain(batch):
        if isinstance(batch, tuple):
            return tuple(map(plain, batch))
        if isinstance(batch, dict):
            return {name: plain(values) for name, values in batch.items()}
        values = np.asarray(batch)
        return (values.astype(F32) if values.dtype == F64 else values).tolist()

    arguments = {"num_epochs": 1, "shuffle": False, **keywords}
    return in_both(lambda lib: [plain(batch) for batch in lib.from_csv(path, 2, **arguments).as_numpy_iterator()])


KEYWORDS = [{}, {"label_name": "age"}, {"select_columns": ["name"], "label_name": "name"}, {"na_value": "Rome"}]
KEYWORDS += [{"select_columns": ["city", "age"]}, {"select_columns": [0, 2]}, {"column_names": ["a", "b", "c", "d"]}]
KEYWORDS += [{"column_defaults": ["x", np.int32(5), np.float32(0.5), "y"]}, {"num_epochs": 2}]
KEYWORDS += [{"column_defaults": [np.int64(5), "y"], "select_columns": [1, 3]}, {"num_rows_for_inference": 1}]
KEYWORDS += [{"num_rows_for_inference": None}, {"prefetch_buffer_size": 0}, {"num_parallel_reads": 1}]


@pytest.mark.parametrize("keywords", KEYWORDS, ids=str)
def test_from_csv(save, keywords):
    ours, theirs = batches(save(PEOPLE), **keywords)
    assert repr(ours) == repr(theirs)
    assert ours


KINDS = {
    int: ["1", "-1", " 1", "9223372036854775807"],
    float: ["9223372036854775808", "1.5", "1e5", "1e39", "1.", ".5"],
    bytes: ["1e400", "nan", "inf", "0x10", "x", "", "NA", "."],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in KINDS.items() for text in texts])
def test_inferred_types(save, kind, text):
    for rows in ([text], ["1", text], ["1.5", text], [text, "2"], [text, "z"]):
        path = save(b"a,b\n" + b"".join(f"{row},q\n".encode() for row in rows))
        keywords = {"num_epochs": 1, "shuffle": False, "na_value": "NA"}
        with warnings.catch_warnings():  # NumPy warns about converting 1e39 to float32
            warnings.simplefilter("ignore")
            ours, expected = in_both(lambda lib: lib.from_csv(path, 2, **keywords).element_spec["a"])
        assert ours.dtype.kind == expected.dtype.kind
        assert ours.dtype == np.dtype(kind) or rows != [text]


def test_from_csv_of_several_files(save):
    paths = [save(b"a,b\n" + b"".join(b"%d,%d\n" % (k, i) for i in range(n))) for k, n in enumerate((3, 0, 5, 1))]
    for reads in (None, 1, 2, 3):
        found = batches(paths, num_parallel_reads=reads, column_defaults=[I64, I64])
        ours, theirs = ([row for b in one for row in zip(b["a"], b["b"], strict=True)] for one in found)
        assert sorted(ours) == sorted(theirs)
        assert found[0] == found[1] or reads in {2, 3}


def test_from_csv_without_end_gives_full_batches_only(save):
    path = save(PEOPLE)

    def check(lib):
        made = lib.from_csv(path, 2, shuffle_seed=1)
        assert made.cardinality() == Ours.INFINITE
        assert {len(batch["age"]) for batch in made.take(7).as_numpy_iterator()} == {2}

    in_both(check)


def test_from_csv_can_ignore_errors(save):
    path = save(b"a,b\n1,2\n3\n4,5\nx,6\n7,8\n")
    found = batches(path, ignore_errors=True, column_defaults=[I64, I64])
    assert found == ([{"a": [1, 4], "b": [2, 5]}, {"a": [7], "b": [8]}],) * 2


REFUSED = [{"header": False}, {"column_names": ["a", "a", "b", "c"]}, {"label_name": "none"}]
REFUSED += [{"select_columns": columns} for columns in (["none"], [9], ["age", "age"])]
REFUSED += [{"column_defaults": [I64], "select_columns": ["age", "name"]}, {"compression_type": "gz"}]
test_what_from_csv_refuses = refused(
    {ValueError: REFUSED}, "from_csv(save(PEOPLE), 2, num_epochs=1, **case)", fixture="save"
)
test_headers_that_differ = refused(
    {ValueError: [[b"a,b\n1,2\n", b"a,c\n1,2\n"], [b""]]},
    "from_csv([save(content) for content in case], 2)",
    fixture="save",
)


def test_spec_of_from_csv(save):
    path = save(PEOPLE)
    names, label = dataset.Dataset.from_csv(path, 2, label_name="age").element_spec
    assert set(names) == {"name", "height", "city"}
    assert label == dataset.TensorSpec((2,), np.int64)
    assert theirs(lambda lib: lib.from_csv(path, 2, label_name="age").element_spec[1]).shape == label.shape

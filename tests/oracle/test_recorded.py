"""Tests of the record of tf.data's results: that it belongs to the tests, and that nothing is lost in it."""

import collections
import re
from pathlib import Path

import numpy as np
import pytest
import recorded
from cases import NUMBERS, Point
from recorded import HERE, REMEDY, Record, Results, decode, encode, record_of, syntax

from dataset import DatasetSpec, RaggedTensor, RaggedTensorSpec, SparseTensor, SparseTensorSpec, SpecError, TensorSpec
from dataset.testing import assert_elements_equal

NAMES = sorted({path.stem for folder in (HERE, recorded.FOLDER) for path in folder.glob("test_tf_*")})


@pytest.mark.parametrize("name", NAMES)
def test_each_test_has_a_record_and_each_record_a_test(name, request):
    module = HERE / f"{name}.py"
    record = record_of(module)
    assert record.fault() is None, record.fault()
    collected = pytest.Module.from_parent(request.node.parent.parent, path=module).collect()
    assert {escaped_once(item.name) for item in collected} == set(map(escaped_once, record.results)), REMEDY


def escaped_once(name):
    """Return the name of a test without the backslashes that pytest adds when it collects a module again."""
    return re.sub(r"\\+", r"\\", name)


VALUES = [None, True, 3, -(2**70), 0.1, "ü", ["a", [1]], float("inf"), -float("inf"), -0.0, 1e300, b"", b"a\0\xff"]
VALUES += [(), (1, ("a",)), Point(np.int64(1), None), {}, {"b": 1, "a": {2: b"x"}}, {1, 2}, frozenset(["a"])]
VALUES += [collections.OrderedDict([("b", 1), ("a", 2)]), np.dtype("S"), np.dtype(np.float16)]
VALUES += [(TensorSpec(None, bytes), {"a": RaggedTensorSpec((None, 2, None), np.int8, 2, np.int32)})]
VALUES += [DatasetSpec((SparseTensorSpec((None, 3), np.uint8), None), (2,))]


def test_python_data_and_specs_stay_the_same():
    for value, found in zip(VALUES, decode(encode(VALUES)), strict=True):
        assert found == value
        assert repr(found) == repr(value)
        assert type(found) is type(value)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_stay_the_same(dtype):
    array = np.array([0, 1, 3]).astype(dtype)
    values = [array, array[2], array[:0].reshape(0, 4), array.reshape(1, 3, 1), array[1:2].reshape(())]
    if array.dtype.kind in "fc":
        values += [array / np.array(3, dtype), np.array([np.nan, -np.inf], dtype)]
    assert_elements_equal(decode(encode(values)), values)


def test_components_stay_the_same():
    values = [
        np.array([b"a\0", b""], object),
        np.zeros((0, 2), object),
        RaggedTensor.from_nested_row_splits(np.arange(3), [np.array([0, 1], np.int32), np.array([0, 3], np.int32)]),
        SparseTensor(np.array([[0, 1]]), np.array([b"x"], object), np.array([2, 3])),
    ]
    assert_elements_equal(decode(encode(values)), values)


def test_exceptions_keep_their_name_and_their_builtin_class():
    found = decode(encode(SpecError("b")))
    assert (type(found).__name__, isinstance(found, ValueError)) == ("SpecError", True)


def test_the_folder_of_a_test_is_no_part_of_its_record():
    data = encode([b"/x/1/a", "/x/1", {"/x/1/b": b"/y"}], "/x/1")
    assert decode(data, "/z") == [b"/z/a", "/z", {"/z/b": b"/y"}]


def test_what_cannot_be_recorded():
    with pytest.raises(TypeError, match="cannot be recorded"):
        encode([object()])


def test_the_syntax_of_a_program_is_compared_without_its_comments_and_docstrings():
    program = "def f(x):\n    '''Text.'''\n    return [x, 1]\n"
    assert syntax(program) == syntax("def f( x ):  # text\n    return [\n        x, 1]\n")
    for other in ("return [x, 2]", "return [x, 1.0]", "return [x, '1']", "return [x]", "yield [x, 1]"):
        assert syntax(program) != syntax(f"def f(x):\n    {other}\n")


def test_the_programs_of_a_module_are_those_that_it_imports():
    names = {path.relative_to(HERE.parent).as_posix() for path in recorded._sources(HERE / "test_tf_chains.py")}
    assert {"oracle/test_tf_chains.py", "oracle/compare.py", "support/libraries.py", "chains/changes.py"} <= names
    assert "oracle/recorded.py" not in names


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a test module with a record of two results of a test, the second one for what the test gave."""
    module = tmp_path / "oracle" / "test_tf_x.py"
    module.parent.mkdir()
    module.write_text("import y\n")
    Path(tmp_path, "y.py").write_text("a = 1\n")
    monkeypatch.setattr(recorded, "HERE", tmp_path / "oracle")
    monkeypatch.setattr(recorded, "FOLDER", tmp_path / "record")
    monkeypatch.setattr(recorded, "MODE", "record")
    results = Results(module, "test_a")
    results.next(lambda: 5, ())
    results.next(lambda: [np.int8(6)], (b"given",))
    Record(module).write({"test_a": results.made}, "2.0")
    monkeypatch.setattr(recorded, "MODE", "")
    return module


@pytest.fixture(autouse=True)
def _nothing_is_remembered():
    yield
    forget()


def forget():
    for cached in (recorded.programs, recorded._imported, recorded.record_of):
        cached.cache_clear()


def test_results_come_back_in_order_and_only_for_what_the_test_gave(written):
    results = Results(written, "test_a")
    assert results.next(pytest.fail, ()) == 5
    with pytest.raises(AssertionError, match="requested 1 of 2 recorded results"):
        results.finish()
    with pytest.raises(AssertionError, match="what tf\\.data receives has changed"):
        Results(written, "test_a").next(pytest.fail, (b"other",))
    assert results.next(pytest.fail, (b"given",)) == [6]
    results.finish()
    for one, name, count in ((results, "test_a", 2), (Results(written, "test_b"), "test_b", 0)):
        with pytest.raises(AssertionError, match=f"{name} has {count} recorded results and requests more: run make"):
            one.next(pytest.fail, ())


def test_results_of_cases_come_in_any_order(written, monkeypatch):
    monkeypatch.setattr(recorded, "MODE", "record")
    results = Results(written, "test_a")
    for case in "xyz":
        results.of(case, lambda case=case: case * 2)
    Record(written).write({"test_a": results.made}, "2.0")
    monkeypatch.setattr(recorded, "MODE", "")
    forget()
    results = Results(written, "test_a")
    assert [results.of(case, pytest.fail) for case in "zx"] == ["zz", "xx"]
    with pytest.raises(LookupError):
        results.of("w", pytest.fail)
    results.finish()


@pytest.mark.parametrize("changed", ["oracle/test_tf_x.py", "y.py"])
def test_results_of_other_programs_are_not_used(written, tmp_path, changed):
    path = tmp_path / changed
    path.write_text(path.read_text() + "b = 2\n")
    forget()
    with pytest.raises(AssertionError, match=r"test_tf_x.py, or .* changed since .* recorded: run make oracle"):
        Results(written, "test_a").next(pytest.fail, ())

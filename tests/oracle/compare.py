"""Comparison of a pipeline in both libraries: everything that a user can observe.

All that tests learn of tf.data is what ``theirs`` returns: TensorFlow computes it, or it was recorded. See recorded.py.
"""

from __future__ import annotations

import ast
import gzip
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np
import pytest
from recorded import current

import dataset
from dataset.plan.node import spec_is_static
from dataset.plan.spec import flatten_spec
from dataset.testing import assert_elements_equal
from support import libraries
from support.combinations import diagonals
from support.libraries import map_plain, spec_from_tensorflow

FAILED = "an element that failed"
ENDS_LATER = "and so on"
INT64 = dataset.TensorSpec((), np.int64)


def int64(value: Any) -> Any:
    """Return a NumPy value that has the same meaning in both libraries."""
    return np.asarray(value, np.int64)[()]


class _WithMethodsOfDataset:
    """Library class whose other attributes are those of its Dataset: ``lib.range(5)`` is ``lib.Dataset.range(5)``."""

    Dataset: Any
    arrays = libraries.arrays
    counting = libraries.counting

    def check(self: Any, *bad: int) -> Any:
        """Return a function of a number that returns it but fails for these."""
        return self.call(libraries.fail_at(*bad), INT64)

    def failing(self: Any, *bad: int, size: int = 7) -> Any:
        """Return a dataset of the numbers below ``size`` that fails at these numbers."""
        return self.range(size).map(self.check(*bad))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.Dataset, name)


class Ours(_WithMethodsOfDataset, libraries.Ours):
    """This library."""


class TensorFlow(_WithMethodsOfDataset, libraries.TensorFlow):
    """tf.data."""


@cache
def oracle() -> TensorFlow:
    """Return tf.data, imported once per process."""
    return TensorFlow()


def theirs(use: Callable[[Any], Any], *given: Any) -> Any:
    """Return what ``use(lib)`` returns for tf.data, computed or recorded, as plain data.

    Tensors become this library's components, datasets their elements, and specs this library's.

    Args:
        use: returns tensors, datasets, specs, exceptions, or Python data of them.
        given: what this library made and ``use`` reads, such as the content of files. A recorded result is valid only
            for the same.
    """
    return current().next(lambda: to_numpy(oracle().tf, use(oracle())), given)


def theirs_for(case: str, use: Callable[[Any], Any]) -> Any:
    """Return what ``theirs`` does, recorded for ``case`` instead of for the place of the call in the test.

    Raises:
        LookupError: nothing is recorded for it.
    """
    return current().of(case, lambda: to_numpy(oracle().tf, use(oracle())))


def in_both(use: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return what ``use(lib)`` returns for this library and for tf.data. What it asserts is checked in both."""
    return use(Ours()), theirs(use)


def assert_same(
    build: Callable[[Any], Any], *, limit: int = 100, spec: str = "equal", cardinality: bool = True
) -> list[Any]:
    """Check that ``build(lib)``, a dataset, is the same in both libraries.

    Compared are, in this order: whether it can be built, its cardinality, its spec, and up to ``limit`` elements, with
    structure, dtypes, shapes and values, each failure at its place, and the end.

    Args:
        build: returns a dataset of a library, given one of the classes of libraries.py.
        limit: the maximum number of elements, for infinite datasets.
        spec: "equal", except for sizes downstream of a function, which tf.data finds by tracing and this library does
            not claim to know; "compatible"; "any".
        cardinality: whether to compare the cardinalities.

    Returns:
        The elements of this library, FAILED for each failure.
    """

    def observed(lib: Any) -> Any:
        built = attempt(build, lib)
        if isinstance(built, Exception):
            return built
        return (
            int(built.cardinality()) if cardinality else None,
            built.element_spec if spec != "any" else None,
            outcomes_of(lib, built, limit),
        )

    seen, ours = theirs(observed), attempt(build, Ours())
    if isinstance(seen, Exception) or isinstance(ours, Exception):
        if not (isinstance(seen, Exception) and isinstance(ours, Exception)):
            raise AssertionError(f"only one cannot be built: tf.data {seen!r}, dataset {ours!r}")
        return []
    expected_cardinality, expected_spec, expected = seen
    if cardinality:
        assert ours.cardinality() == expected_cardinality, (
            f"cardinality {ours.cardinality()}, in tf.data {expected_cardinality}"
        )
    if spec != "any":
        compare_specs(ours.element_spec, expected_spec, as_known(ours, spec))
    found = outcomes_of(Ours(), ours, limit)
    assert_outcomes_equal(found, expected)
    return found


def attempt(build: Callable[[Any], Any], lib: Any) -> Any:
    """Return what ``build`` returns or raises. A program that uses an unknown name is wrong."""
    try:
        return build(lib)
    except (NameError, SyntaxError):
        raise
    except Exception as error:
        return error


def outcomes(elements: Iterator[Any], convert: Callable[[Any], Any], limit: int) -> list[Any]:
    """Return up to ``limit`` elements, FAILED for those that raise, and ENDS_LATER at the end if there are more."""
    found: list[Any] = []
    while len(found) < limit:
        try:
            found.append(convert(next(elements)))
        except StopIteration:
            return found
        except AssertionError:
            raise
        except Exception:
            found.append(FAILED)
    return [*found, ENDS_LATER]


def outcomes_of(lib: Any, dataset: Any, limit: int = 100) -> list[Any]:
    """Return the outcomes of a dataset of a library, with this library's classes for components."""
    return outcomes(iter(dataset), plain if lib.name == "dataset" else lambda value: to_numpy(lib.tf, value), limit)


def has_failed(found: list[Any]) -> bool:
    """Return whether the outcomes that ``assert_same`` returned contain a failure."""
    return any(outcome is FAILED for outcome in found)


def assert_outcomes_equal(found: list[Any], expected: list[Any]) -> None:
    """Raise AssertionError with both lists if they differ."""
    try:
        assert_elements_equal(found, expected)
    except AssertionError as error:
        raise AssertionError(f"{error}\nours:    {found!r:.1500}\ntf.data: {expected!r:.1500}") from None


def plain(element: Any) -> Any:
    """Return an element of this library, with nested datasets replaced by their elements."""
    return map_plain(
        lambda part: inner_outcomes(iter(part), plain) if isinstance(part, dataset.Dataset) else part, element
    )


def inner_outcomes(elements: Iterator[Any], convert: Callable[[Any], Any]) -> Any:
    return ("dataset", tuple(outcomes(elements, convert, 100)))


def to_numpy(tf: Any, value: Any) -> Any:
    """Return an element of tf.data, or Python data of elements and specs, with this library's classes."""

    def component(part: Any) -> Any:
        if isinstance(part, list):
            return [to_numpy(tf, one) for one in part]
        if isinstance(part, tf.Tensor):
            return part.numpy()
        if isinstance(part, tf.RaggedTensor):
            splits = [one.numpy() for one in part.nested_row_splits]
            return dataset.RaggedTensor.from_nested_row_splits(part.flat_values.numpy(), splits)
        if isinstance(part, tf.SparseTensor):
            return dataset.SparseTensor(part.indices.numpy(), part.values.numpy(), part.dense_shape.numpy())
        if isinstance(part, tf.data.Dataset):
            return inner_outcomes(iter(part), lambda inner: to_numpy(tf, inner))
        if isinstance(part, tf.TypeSpec):
            return spec_from_tensorflow(tf, part)
        return part

    return map_plain(component, value)


def uncompressed(path: Any, compression: str = "") -> bytes:
    """Return the content of a file, which is the same whatever compresses it."""
    return {"": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}[compression](Path(path).read_bytes())


def as_known(ours: Any, how: str) -> str:
    """Return how to compare the spec of a dataset: downstream of a function, it need only be compatible."""
    return "allows" if how == "equal" and not spec_is_static(ours.plan) else how


def compare_specs(ours: Any, theirs: Any, how: str) -> None:
    (structure, mine), (other_structure, others) = flatten_spec(ours), flatten_spec(theirs)
    same = structure == other_structure
    for a, b in zip(mine, others, strict=False):
        same = same and {"equal": a.__eq__, "allows": a.allows}.get(how, a.is_compatible_with)(b)
    assert same, f"element_spec {ours!r}, in tf.data {theirs!r}"


def assert_both_refuse(build: Callable[[Any], Any], error: type[Exception] | tuple[type[Exception], ...]) -> None:
    """Check that building or the first iteration fails in both libraries; in this one, building raises ``error``."""
    found = theirs(lambda lib: attempt(lambda lib: list(build(lib).take(5)), lib))
    assert isinstance(found, Exception), f"tf.data accepts it: {found!r}"
    ours = attempt(build, Ours())
    assert isinstance(ours, error), f"expected {error!r}, got {ours!r}"


def assert_both_raise(use: Callable[[Any], Any], error: type[Exception] | tuple[type[Exception], ...]) -> None:
    """Check that ``use(lib)`` raises ``error`` in both libraries."""
    ours, expected = in_both(lambda lib: attempt(use, lib))
    assert isinstance(ours, error), f"expected {error!r}, got {ours!r}"
    assert isinstance(expected, error), f"expected {error!r} in tf.data, got {expected!r}"


class Program(str):
    """The text of an expression that both libraries evaluate.

    Its names are, in this order: the values of its test, ``lib``, ``np`` and ``int64``, what its module has, and the
    members of ``lib`` and ``lib.Dataset``, so that ``range(5)`` is ``lib.Dataset.range(5)``. A function of the module
    whose first parameter is ``lib`` has it from here.
    """

    __slots__ = ("module",)
    module: dict[str, Any]

    def run(self, lib: Any, values: Mapping[str, Any] = MappingProxyType({})) -> Any:
        """Return what it evaluates to in a library, given the values of its test by name."""
        names = {"lib": lib, "np": np, "int64": int64, **values}
        for node in ast.walk(ast.parse(self, mode="eval")):
            if isinstance(node, ast.Name) and node.id in self.module:
                names.setdefault(node.id, self.module[node.id])
            elif isinstance(node, ast.Name) and hasattr(lib, node.id):
                names.setdefault(node.id, getattr(lib, node.id))
        return eval(self, {name: _meant(lib, value) for name, value in names.items()})  # noqa: S307  # it is ours


def _meant(lib: Any, value: Any) -> Any:
    """Return the value of a program, and a function without the parameter ``lib``."""
    if isinstance(value, Program):
        return value.run(lib)
    takes_lib = isinstance(value, FunctionType) and value.__code__.co_varnames[:1] == ("lib",)
    return partial(value, lib) if takes_lib else value


def programs(texts: Any = (), /, module: dict[str, Any] | None = None, **named: str) -> dict[str, Program]:
    """Return programs by name, given their texts by name or in a list. They belong to the module of the caller."""
    found = {name: Program(text) for name, text in [*_items(texts), *named.items()]}
    for program in found.values():
        program.module = module or sys._getframe(1).f_globals
    return found


def same(
    texts: Any, *, step: int = 1, fixture: str = "", by: Callable[..., Any] = assert_same, **tables: Any
) -> Callable[..., None]:
    """Return a test that programs are the same in both libraries.

    Args:
        texts: a program, or several, which are tested one by one: in a list, or in a dict by name.
        step: test only every ``step``-th combination of values and programs; see ``diagonals``.
        fixture: the name of a fixture; its value has the same name in the program.
        by: what compares one pipeline.
        tables: lists of values, or dicts of values by name; each value has the name of its table in the program. There
            is a test for each combination. But ``limit``, ``spec`` and ``cardinality`` are options of ``by``, or
            functions of the names of the values and of the program that return them, and ``fails`` is whether some of
            the elements must fail.
    """
    options = {name: tables.pop(name) for name in ("limit", "spec", "cardinality", "fails") if name in tables}
    module = sys._getframe(1).f_globals
    one = programs([texts], module)[texts] if isinstance(texts, str) else None

    def test(case: Any, request: pytest.FixtureRequest) -> None:
        values = dict(zip(tables, (value for _, value in case), strict=False))
        program = one or case[-1][1]
        if fixture:
            values[fixture] = request.getfixturevalue(fixture)
        chosen = {
            key: option(*(name for name, _ in case)) if callable(option) else option for key, option in options.items()
        }
        fails = chosen.pop("fails", None)
        try:
            found = by(lambda lib: program.run(lib, values), **chosen)
            assert fails is None or has_failed(found) is fails, found
        except AssertionError as error:
            error.add_note(f"The program: {program}")
            raise

    chosen = [*map(_items, tables.values()), *([] if one else [_items(programs(texts, module))])]
    return _for_each(test, diagonals(step, *chosen), fixture)


def refused(cases: dict[Any, Any], text: str = "", *, fixture: str = "") -> Callable[..., None]:
    """Return a test that both libraries refuse what a program makes of ``case``.

    ``cases`` has the cases by the exceptions that this library raises for them, in lists or in dicts by name. Without
    ``text``, they are the programs.
    """
    module = sys._getframe(1).f_globals
    one = programs([text], module)[text]

    def test(case: Any, request: pytest.FixtureRequest) -> None:
        ((_, (error, value)),) = case
        values = {"case": value} | ({fixture: request.getfixturevalue(fixture)} if fixture else {})
        assert_both_refuse(lambda lib: (one or value).run(lib, values), error)

    tables = {error: table if text else programs(table, module) for error, table in cases.items()}
    every = [((name, (error, value)),) for error, table in tables.items() for name, value in _items(table)]
    return _for_each(test, every, fixture)


def _items(table: Any) -> list[tuple[Any, Any]]:
    return list(table.items()) if isinstance(table, dict) else [(value, value) for value in table]


def _for_each(test: Callable[..., None], cases: list[Any], fixture: str) -> Callable[..., None]:
    """Return a test of each case, a tuple of pairs of a name and a value."""
    if fixture:  # which may have parameters
        test = pytest.mark.usefixtures(fixture)(test)
    ids = ["-".join(_shown(name, index) for name, _ in case) for index, case in enumerate(cases)]
    return pytest.mark.parametrize("case", cases, ids=ids)(test)


def _shown(name: Any, index: int) -> str:
    """Return the text for a value in the name of a test, which must be the same in every process."""
    if isinstance(name, str | type):
        return getattr(name, "__name__", name)
    text = repr(name)
    return str(index) if " at 0x" in text else text

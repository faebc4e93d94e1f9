"""Results of tf.data in files, so that tests compare with them where TensorFlow is not installed.

``ORACLE`` in the environment says where results come from:

- unset: from ``record/``, a file for each test module;
- ``live``: from TensorFlow;
- ``record``: from TensorFlow, and each test that passes writes them to ``record/``.

A file names the version of TensorFlow and a digest of the programs that produced it. It has the results of each test in
the order in which the test requested them, as JSON: see ``encode``.
"""

from __future__ import annotations

import ast
import base64
import builtins
import functools
import hashlib
import importlib
import json
import math
import os
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dataset import DatasetSpec, RaggedTensor, RaggedTensorSpec, SparseTensor, SparseTensorSpec, TensorSpec

MODE = os.environ.get("ORACLE", "")
assert MODE in {"", "live", "record"}, f"ORACLE={MODE}: expected live or record"

HERE = Path(__file__).parent
FOLDER = HERE / "record"
REMEDY = "run make oracle"
LONG = 2000  # characters; a longer result is stored compressed
PLACE = "{tmp_path}"  # in the place of the temporary folder of a test


# Values


def encode(value: Any, folder: str = "") -> Any:
    """Return a value as JSON data.

    None, bools, ints, finite floats, texts and lists stay what they are. All else is an object with one member, whose
    name is the type: ``{"int64": 5}`` is a NumPy scalar, ``{"array": ["int64", [2], [5, 6]]}`` an array.

    Args:
        value: an element, an outcome, a spec, an exception, or Python data of them.
        folder: a path that differs from run to run; it is replaced by PLACE.
    """
    inside = functools.partial(encode, folder=folder)
    kind = type(value)
    if value is None or kind in {bool, int} or (kind is float and math.isfinite(value)):
        return value
    if kind is float:
        return {"float": repr(value)}
    if kind is str:
        return value.replace(folder, PLACE) if folder else value
    if kind is list:
        return list(map(inside, value))
    return _object(value, inside)


def _object(value: Any, inside: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the object for a value; ``inside`` encodes its parts."""
    kind = type(value)
    if kind is bytes:
        return {"bytes": inside(value.decode("latin1"))}
    if kind is tuple:
        return {"tuple": list(map(inside, value))}
    if isinstance(value, tuple):
        return {"named tuple": [kind.__module__, kind.__qualname__, *map(inside, value)]}
    if kind in {dict, OrderedDict}:
        return {kind.__name__: [[inside(key), inside(part)] for key, part in value.items()]}
    if kind in {set, frozenset}:
        return {kind.__name__: sorted(map(inside, value), key=repr)}
    if isinstance(value, np.generic):
        return {value.dtype.name: inside(_numbers(value)[0])}
    if kind is np.ndarray:
        return {"array": [value.dtype.name, list(value.shape), inside(_numbers(value))]}
    if isinstance(value, type):
        return {"class": value.__qualname__}
    if isinstance(value, np.dtype):
        return {"dtype": "bytes" if value.kind == "S" else value.name}
    if kind in FIELDS:
        return {kind.__name__: [inside(getattr(value, field)) for field in FIELDS[kind]]}
    if isinstance(value, Exception):
        base = next(cls for cls in kind.__mro__ if getattr(builtins, cls.__name__, None) is cls)
        return {"exception": [kind.__name__, base.__name__]}
    raise TypeError(f"this value cannot be recorded: {value!r}")


FIELDS: dict[type, tuple[str, ...]] = {
    RaggedTensor: ("flat_values", "nested_row_splits"),
    SparseTensor: ("indices", "values", "dense_shape"),
    TensorSpec: ("shape", "dtype"),
    RaggedTensorSpec: ("shape", "dtype", "ragged_rank", "row_splits_dtype"),
    SparseTensorSpec: ("shape", "dtype"),
    DatasetSpec: ("element_spec", "shape"),
}
CLASSES: dict[str, Callable[..., Any]] = {
    **{cls.__name__: cls for cls in FIELDS},
    "RaggedTensor": RaggedTensor.from_nested_row_splits,
    "tuple": lambda *parts: tuple(parts),
    "named tuple": lambda module, name, *parts: getattr(importlib.import_module(module), name)(*parts),
    "dict": lambda *items: dict(items),
    "OrderedDict": lambda *items: OrderedDict(items),
    "set": lambda *parts: set(parts),
    "frozenset": lambda *parts: frozenset(parts),
    "array": lambda name, shape, numbers: _array(name, numbers).reshape(shape),
    "exception": lambda name, base: (_exception(name, base))("as recorded"),
}


def decode(data: Any, folder: str = "") -> Any:
    """Return the value that ``encode`` encoded. Of an exception, the name and the builtin base class are the same."""
    inside = functools.partial(decode, folder=folder)
    if isinstance(data, str):
        return data.replace(PLACE, folder) if folder else data
    if isinstance(data, list):
        return list(map(inside, data))
    if not isinstance(data, dict):
        return data
    ((name, content),) = data.items()
    if name == "float":
        return float(content)
    if name == "bytes":
        return inside(content).encode("latin1")
    if name == "dtype":
        return np.dtype("S" if content == "bytes" else content)
    if name in CLASSES:
        return CLASSES[name](*inside(content))
    return _array(name, [inside(content)])[0]


def _numbers(value: Any) -> list[Any]:
    """Return the cells of an array as Python values; complex numbers as pairs."""
    flat = np.asarray(value).ravel()
    if flat.dtype.kind == "c":
        return [[number.real, number.imag] for number in flat.tolist()]
    return list(flat.tolist())


def _array(name: str, numbers: list[Any]) -> Any:
    if name == "object":
        array = np.empty(len(numbers), object)
        array[:] = numbers
        return array
    if name == "bfloat16":
        import ml_dtypes  # noqa: F401  # which defines this dtype
    if name.startswith("complex"):
        numbers = [complex(*pair) for pair in numbers]
    return np.array(numbers, name)


@functools.cache
def _exception(name: str, base: str) -> type[Exception]:
    parent: type[Exception] = getattr(builtins, base)
    return parent if name == base else type(name, (parent,), {})


# Programs


@functools.cache
def programs(path: Path) -> str:
    """Return a digest of a test module and of all modules of the tests that it imports: of what they do, as syntax."""
    digest = hashlib.sha256()
    for source in sorted(_sources(path)):
        digest.update(source.relative_to(HERE.parent).as_posix().encode() + b"\0")
        digest.update(syntax(source.read_text("utf-8")).encode())
    return digest.hexdigest()


def syntax(text: str) -> str:
    """Return the syntax tree of a program as text that is the same in all versions of Python, without docstrings."""

    def shown(node: Any) -> str:
        if isinstance(node, list):
            return f"[{' '.join(map(shown, node))}]"
        if not isinstance(node, ast.AST):
            return repr(node)
        fields = {name: part for name, part in ast.iter_fields(node) if part not in ([], None)}  # newer ones are empty
        fields.pop("is_lazy", None)  # 0 for an import, since Python 3.15
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            fields["body"] = node.body[1:]
        return f"({type(node).__name__} {' '.join(f'{name}={shown(part)}' for name, part in fields.items())})"

    return shown(ast.parse(text))


def _sources(path: Path) -> set[Path]:
    found, waiting = set(), [path]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting += _imported(source)
    return found


@functools.cache
def _imported(path: Path) -> list[Path]:
    """Return the files of the modules of the tests that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    places = [root / f"{name.replace('.', '/')}.py" for name in names for root in (HERE, HERE.parent)]
    return [place for place in places if place.exists() and place != Path(__file__)]


# Files


class Record:
    """The recorded results of a test module, by the name of the test."""

    def __init__(self, module: Path) -> None:
        self.module = module
        self.path = FOLDER / f"{module.stem}.json"
        self._content = json.loads(self.path.read_text("utf-8")) if self.path.exists() else {"results": {}}
        self.results: dict[str, list[Any]] = self._content["results"]

    def fault(self) -> str | None:
        """Return why the results cannot be used, or None."""
        if not self.results:
            return f"{self.module.name} has no recorded results: {REMEDY}"
        if self._content["programs"] != programs(self.module):
            changed = f"{self.module.name}, or a module that it imports, has changed"
            return f"{changed} since its results were recorded: {REMEDY}"
        return None

    def write(self, results: dict[str, list[Any]], version: str) -> None:
        """Write new results, each test in a line, so that a comparison of two versions shows the tests."""
        header = {"tensorflow": version, "programs": programs(self.module)}
        lines = [f"{_json(name)}: {_json(results[name])}" for name in sorted(results)]
        head = ",\n".join(f"{_json(key)}: {_json(value)}" for key, value in header.items())
        FOLDER.mkdir(exist_ok=True)
        self.path.write_text(f'{{\n{head},\n"results": {{\n' + ",\n".join(lines) + "\n}\n}\n", "utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@functools.cache
def record_of(module: Path) -> Record:
    """Return the record of a test module, read once per process."""
    return Record(module)


# Tests


class Results:
    """The results of tf.data that one test requests, each computed or taken from the record."""

    def __init__(self, module: Path, name: str, folder: str = "") -> None:
        self.made: list[Any] = []
        self._name = name
        self._folder = folder
        self._fault = None if MODE else record_of(module).fault()
        self._recorded = [] if MODE else record_of(module).results.get(name, [])

    def next(self, compute: Callable[[], Any], given: tuple[Any, ...]) -> Any:
        """Return the result of ``compute``, or the next recorded one, which must be for the same ``given``."""
        if MODE == "live":
            return compute()
        key = self._key(given) if given else ""
        place = len(self.made)
        if MODE == "record":
            self.made.append([key, _packed(encode(compute(), self._folder))])
            return decode(_unpacked(self.made[-1][1]), self._folder)
        assert self._fault is None, self._fault
        assert place < len(self._recorded), f"{self._name} has {place} recorded results and requests more: {REMEDY}"
        self.made.append(self._recorded[place])
        given_then, data = self._recorded[place]
        assert given_then == key, f"what tf.data receives has changed since result {place} was recorded: {given!r:.500}"
        return decode(_unpacked(data), self._folder)

    def of(self, case: str, compute: Callable[[], Any]) -> Any:
        """Return the result of ``compute``, or the one recorded for ``case``, in any order.

        Raises:
            LookupError: none is recorded.
        """
        if MODE:
            return self.next(compute, (case,))
        assert self._fault is None, self._fault
        self.made = self._recorded  # a test need not request all of them
        return decode(_unpacked(dict(self._recorded)[self._key((case,))]), self._folder)

    def _key(self, given: Any) -> str:
        return hashlib.sha256(_json(encode(given, self._folder)).encode()).hexdigest()[:16]

    def finish(self) -> None:
        """Raise AssertionError if not all recorded results were requested."""
        if not MODE:
            assert len(self.made) == len(self._recorded), (
                f"{self._name} requested {len(self.made)} of {len(self._recorded)} recorded results: {REMEDY}"
            )


def _packed(data: Any) -> Any:
    text = _json(data)
    return data if len(text) <= LONG else {"zlib": base64.b64encode(zlib.compress(text.encode(), 9)).decode()}


def _unpacked(data: Any) -> Any:
    if isinstance(data, dict) and "zlib" in data:
        return json.loads(zlib.decompress(base64.b64decode(data["zlib"])))
    return data


_running: list[Results] = []


@contextmanager
def running(results: Results) -> Iterator[None]:
    """Make these the results of the test that runs."""
    _running.append(results)
    yield
    _running.pop()


def current() -> Results:
    """Return the results of the test that runs."""
    return _running[-1]

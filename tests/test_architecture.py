"""Tests of the architecture: the packages of src/dataset are ordered, and each imports only earlier ones."""

import ast
from pathlib import Path

import pytest

import dataset

ROOT = Path(dataset.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
ARROW = [
    "version",
    "lazy_imports",
    "redaction",
    "errors",
    "name_guard",
    "closing",
    "extras",
    "options",
    "plan",
    "runtime",
    "ops",
    "io",
    "optimize",
    "autotune",
]
ARROW += ["deferred", "dataset", "readers", "adapters", "checkpoint", "commands", "__main__", "testing"]
"""Each package may import itself and earlier ones. ``options`` contains only values, so any op may read it."""

INSIDE = {
    "runtime": [
        "chunks",
        "random",
        "contract",
        "resources",
        "metrics",
        "context",
        "state",
        "processes",
        "parallel",
        "functions",
        "iteration",
    ],
    "ops": ["sources", "", "shuffle", "interleave", "mix", "batch", "group", "cache", "shard", "rejection_resample"],
    "io": ["files", "", "text", "example", "tfrecord", "csv", "arrow", "parquet", "sql", "image", "elements"],
}
"""The order of the sub-packages of a package; the empty string means its own modules."""

ROOM_MAX = 18  # modules
MANY = {"ops": 25}  # one op each

BENEATH_OPTIONS = {"plan"}  # a plan does not depend on the options
FRAMEWORKS = {"torch", "keras", "jax", "tensorflow", "cv2", "simplejpeg", "attr", "attrs", "pyarrow", "fsspec", "isal"}
FRAMEWORKS |= {"cloudpickle", "datasets", "pandas", "polars", "tqdm", "torchdata", "lightning"}


def room_of(module):
    """Return the package of a module: ``plan`` for ``dataset.plan.node``; the empty string for ``dataset`` itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def module_of(path):
    parts = ["dataset", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path):
    """Yield (line, module) for every import, including those in functions and under TYPE_CHECKING."""
    found = []

    class Visitor(ast.NodeVisitor):
        def visit_Import(self, node):
            found.extend((node.lineno, alias.name) for alias in node.names)

        def visit_ImportFrom(self, node):
            assert not node.level, f"{path}:{node.lineno}: relative imports hide their direction"
            base = node.module
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.append((node.lineno, inner if is_module(inner) else base))

    Visitor().visit(ast.parse(path.read_text()))
    return found


def is_module(name):
    if not name.startswith("dataset"):
        return False
    place = ROOT.joinpath(*name.split(".")[1:])
    return place.is_dir() or place.with_suffix(".py").is_file()


def crosses_a_bridge(path, line, module):
    """Return whether this is the deferred import of an adapter or its type: the only import of a later package."""
    is_indented = path.read_text().splitlines()[line - 1].startswith("    ")  # deferred, or only for the type checker
    return path.name in {"dataset.py", "deferred.py"} and room_of(module) == "adapters" and is_indented


def names(path):
    return path.relative_to(ROOT).as_posix()


def test_every_file_is_in_a_room_of_the_arrow():
    rooms = {room_of(module_of(path)) for path in FILES} - {""}
    assert rooms <= set(ARROW), "say in ARROW where the new room stands"


@pytest.mark.parametrize("path", FILES, ids=names)
def test_imports_follow_the_arrow(path):
    mine = room_of(module_of(path))
    if not mine:
        return  # the top-level package re-exports names
    wrong = []
    for line, module in imports(path):
        if module.split(".")[0] != "dataset":
            continue
        theirs = room_of(module)
        assert theirs or mine in {"adapters", "commands", "testing"}, f"{path}:{line} imports the front door"
        if theirs and ARROW.index(theirs) > ARROW.index(mine) and not crosses_a_bridge(path, line, module):
            wrong.append(f"line {line}: {mine} imports {module}")
        if theirs == "options" and mine in BENEATH_OPTIONS:
            wrong.append(f"line {line}: {mine} imports {module}")
    assert not wrong


def inner_room_of(module):
    """Return the sub-package: ``chunks`` for ``dataset.runtime.chunks.chunk``, empty for ``dataset.ops.map``."""
    room, name, *rest = [*module.split(".")[1:], ""]
    return name if rest and (name in INSIDE[room] or any(rest)) else ""


@pytest.mark.parametrize("path", [p for p in FILES if room_of(module_of(p)) in INSIDE], ids=names)
def test_imports_inside_a_room_follow_its_order(path):
    mine = module_of(path)
    room = room_of(mine)
    order = INSIDE[room]
    if path.name == "__init__.py":
        return  # it re-exports names
    wrong = [
        f"line {line}: {module}"
        for line, module in imports(path)
        if module.startswith(f"dataset.{room}.")
        and order.index(inner_room_of(module)) > order.index(inner_room_of(mine))
    ]
    assert not wrong


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=names)
def test_a_room_can_be_overlooked(folder):
    limit = MANY.get(folder.relative_to(ROOT).as_posix(), ROOM_MAX)
    assert len(list(folder.glob("*.py"))) <= limit


@pytest.mark.parametrize("path", [p for p in FILES if ROOT / "adapters" in p.parents], ids=names)
def test_adapters_know_datasets_and_plans_and_not_what_runs_them(path):
    known = {"", "adapters", "dataset", "readers", "errors", "closing", "extras", "options", "plan"}
    wrong = [
        f"line {line}: {module}"
        for line, module in imports(path)
        if module.startswith("dataset") and room_of(module) not in known
    ]
    assert not wrong


def defines_a_source(path):
    """Return whether a file of io/ connects codecs to the plan: it defines or creates nodes."""
    return any(module.startswith("dataset.ops") or module == "dataset.plan.node" for _, module in imports(path))


IO_FILES = [path for path in FILES if ROOT / "io" in path.parents and path.name != "__init__.py"]
SOURCES = {"list_files.py"}


def is_source(path):
    """Return whether a file connects codecs and operators, according to its name."""
    return "dataset" in path.stem or "source" in path.stem


@pytest.mark.parametrize("path", IO_FILES, ids=names)
def test_codecs_know_nothing_of_what_runs(path):
    if defines_a_source(path) or is_source(path):
        return
    wrong = [
        f"line {line}: {module}"
        for line, module in imports(path)
        if room_of(module) in {"runtime", "ops", "optimize", "dataset"} and module.startswith("dataset.")
    ]
    assert not wrong


def test_a_file_of_io_that_knows_nodes_says_that_it_is_a_source():
    for path in IO_FILES:
        if defines_a_source(path):
            assert path.name in SOURCES or is_source(path)


def test_there_are_no_cycles_between_files():
    graph = {
        module_of(p): {
            module
            for line, module in imports(p)
            if module.startswith("dataset") and not crosses_a_bridge(p, line, module)
        }
        - {module_of(p)}
        for p in FILES
    }
    done, path = set(), []

    def visit(module):
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        path.append(module)
        for other in graph.get(module, ()):
            visit(other)
        path.pop()
        done.add(module)

    for module in graph:
        visit(module)


@pytest.mark.parametrize("path", [p for p in FILES if ROOT / "adapters" not in p.parents], ids=names)
def test_frameworks_are_imported_only_where_they_are_used(path):
    tree = ast.parse(path.read_text())
    at_the_top = {
        alias.name.split(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in ([ast.alias(node.module or "")] if isinstance(node, ast.ImportFrom) else node.names)
    }
    assert not at_the_top & FRAMEWORKS


@pytest.mark.parametrize("path", FILES, ids=names)
def test_a_module_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name == "plan"], ids=names)
def test_a_plan_knows_no_threads_and_no_files(path):
    assert not {module.split(".")[0] for _, module in imports(path)} & {"threading", "queue", "io", "pathlib", "mmap"}


def test_no_operation_is_a_dataset():
    from dataset import Dataset
    from dataset.plan.node import Node

    assert not issubclass(Node, Dataset)
    assert not issubclass(Dataset, Node)

"""Tests of the architecture: the packages of src/dataset are ordered, and each imports only earlier ones."""

import ast
import functools
import importlib
import itertools
import re
import sys
from pathlib import Path

import dataset
from dataset import Dataset, TFRecordDataset
from dataset.io.tfrecord.reader import TFRecordFile
from dataset.plan.node import Node
from dataset.runtime.context import ExecutionContext, open_plan
from dataset.runtime.contract import Operator
from support.tfrecord_files import frames

ROOT = Path(dataset.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
ARROW = (
    "version amounts world lazy_imports redaction errors name_guard closing ramp shared_calls extras native live"
    " options plan runtime ops io optimize autotune deferred api dataset readers queues adapters checkpoint commands"
    " __main__ testing"
)
"""Each package may import itself and earlier ones. ``options`` contains only values, so any op may read it."""

INSIDE = {
    "runtime": "chunks position random contract resources choice metrics context state processes parallel functions "
    "iteration",
    "ops": "sources . shuffle batch interleave mix group pack cache shard distribute rejection_resample",
    "io": "files . indexed text example tfrecord csv arrow json_lines parquet arrow_ipc tar sql image elements",
}
"""The order of the sub-packages of a package; a dot means its own modules."""

ROOM_MAX = 18  # modules
MANY = {"ops": 25}  # one op each

BENEATH_OPTIONS = {"plan"}  # a plan does not depend on the options
FRAMEWORKS = {"torch", "keras", "jax", "tensorflow", "cv2", "simplejpeg", "attr", "attrs", "pyarrow", "fsspec", "isal"}
FRAMEWORKS |= {"cloudpickle", "datasets", "pandas", "polars", "tqdm", "torchdata", "lightning", "ray"}
FRAMEWORKS |= {"orjson", "backports", "cramjam", "rich", "IPython", "opentelemetry"}

SOURCES = {"list_files.py"}


def room_of(module):
    """Return the package of a module: ``plan`` for ``dataset.plan.node``; the empty string for ``dataset`` itself."""
    return [*module.split("."), ""][1]


def inner_room_of(module):
    """Return the sub-package: ``chunks`` for ``dataset.runtime.chunks.chunk``, a dot for ``dataset.ops.map``."""
    room, name, *rest = [*module.split(".")[1:], ""]
    return name if rest and (name in INSIDE[room].split() or any(rest)) else "."


def module_of(path):
    parts = ["dataset", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


@functools.cache
def imports(path):
    """Return (place, module) for every import, including those in functions and under TYPE_CHECKING."""
    found = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            assert not getattr(node, "level", 0), f"{place}: relative imports hide their direction"
            for alias in node.names:
                name = f"{base}{alias.name}"
                is_deferred = node.col_offset > 0  # in a function, or only for the type checker
                found.append((place, name if not base or is_module(name) else node.module, is_deferred))
    return [(place, module) for place, module, is_deferred in found if not is_bridge(path, module, is_deferred)]


BRIDGES = {"deferred": {"adapters"}, "api": {"adapters", "dataset"}}
"""The imports of later packages: of adapters at their first use, and of types of results for type checkers."""


def is_bridge(path, module, is_deferred):
    return is_deferred and room_of(module) in BRIDGES.get(room_of(module_of(path)), ())


def is_module(name):
    place = ROOT.joinpath(*name.split(".")[1:])
    return name.startswith("dataset") and (place.is_dir() or place.with_suffix(".py").is_file())


def own_imports(files):
    """Yield (module, place, imported module) for imports of the package itself."""
    for path in files:
        for place, module in imports(path):
            if module.split(".")[0] == "dataset":
                yield module_of(path), place, module


def files_in(*rooms):
    return [path for path in FILES if room_of(module_of(path)) in rooms]


def test_every_file_is_in_a_room_of_the_arrow():
    rooms = {room_of(module_of(path)) for path in FILES} - {""}
    assert rooms <= set(ARROW.split()), "say in ARROW where the new room stands"


def test_imports_follow_the_arrow():
    wrong, order = [], ARROW.split()
    for importer, place, module in own_imports(FILES):
        mine, theirs = room_of(importer), room_of(module)
        if not mine:
            continue  # the top-level package re-exports names
        if not theirs and mine not in {"adapters", "commands", "testing"}:
            wrong.append(f"{place} imports the front door")
        if theirs and order.index(theirs) > order.index(mine):
            wrong.append(f"{place}: {mine} imports {module}")
        if theirs == "options" and mine in BENEATH_OPTIONS:
            wrong.append(f"{place}: {mine} imports {module}")
    assert not wrong


def test_imports_inside_a_room_follow_its_order():
    wrong = []
    for path in files_in(*INSIDE):
        room = room_of(module_of(path))
        for importer, place, module in own_imports([path]):
            if path.name == "__init__.py" or not module.startswith(f"dataset.{room}."):
                continue  # it re-exports names
            order = INSIDE[room].split()
            if order.index(inner_room_of(module)) > order.index(inner_room_of(importer)):
                wrong.append(f"{place}: {module}")
    assert not wrong


def test_a_room_can_be_overlooked():
    for folder in {path.parent for path in FILES}:
        name = folder.relative_to(ROOT).as_posix()
        assert len(list(folder.glob("*.py"))) <= MANY.get(name, ROOM_MAX), name


def test_adapters_know_datasets_and_plans_and_not_what_runs_them():
    known = {"", "adapters", "amounts", "dataset", "readers", "errors", "closing", "extras", "options", "plan", "world"}
    assert not [found for found in own_imports(files_in("adapters")) if room_of(found[2]) not in known]


def test_codecs_know_nothing_of_what_runs_and_files_that_know_nodes_are_named_sources():
    wrong = []
    for path in files_in("io"):
        if path.name == "__init__.py":
            continue
        modules = {module for _, _, module in own_imports([path])}
        is_source = "dataset" in path.stem or "source" in path.stem
        defines_a_source = any(module.startswith("dataset.ops") or module == "dataset.plan.node" for module in modules)
        if defines_a_source and not is_source and path.name not in SOURCES:
            wrong.append(f"{path.name} knows nodes")
        if not defines_a_source and not is_source:
            rooms = {room_of(module) for module in modules}
            wrong += [f"{path.name} imports {room}" for room in rooms & {"runtime", "ops", "optimize", "dataset"}]
    assert not wrong


def test_there_are_no_cycles_between_files():
    graph = {module_of(path): {module for _, _, module in own_imports([path])} - {module_of(path)} for path in FILES}
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


def test_frameworks_are_imported_only_where_they_are_used():
    wrong = []
    for path in FILES:
        if room_of(module_of(path)) == "adapters":
            continue
        for node in parsed(path).body:
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            wrong += [(path, module) for module in modules if module.split(".")[0] in FRAMEWORKS]
    assert not wrong


def test_a_module_says_what_it_is_for():
    assert not [path for path in FILES if not ast.get_docstring(parsed(path))]


def test_the_docstring_of_the_module_lists_the_methods_of_each_family():
    items = re.findall(r"^- (\w+): (.*(?:\n  .*)*)", dataset.dataset.__doc__, re.MULTILINE)
    listed = {family: sorted(re.split(r",\s+", names)) for family, names in items}
    methods = {base.__module__: sorted(name for name in vars(base) if name[0] != "_") for base in Dataset.__bases__}
    assert {f"dataset.api.{family}": names for family, names in listed.items()} == methods


def test_a_plan_knows_no_threads_and_no_files():
    forbidden = {"io", "pathlib"}
    for path in (ROOT / "plan").glob("*.py"):
        modules = {module for _, module in imports(path)}
        assert not {module.split(".")[0] for module in modules} & forbidden, path
        assert "world" not in map(room_of, modules), path


OUTSIDE = {"_thread", "concurrent", "mmap", "multiprocessing", "queue", "select", "selectors", "signal", "socket"}
OUTSIDE |= {"socketserver", "subprocess", "threading", "time"}


def test_only_the_world_imports_clocks_threads_processes_sockets_and_signals():
    wrong = []
    for path in FILES:
        if room_of(module_of(path)) != "world":
            wrong += [found for found in imports(path) if found[1].split(".")[0] in OUTSIDE]
            names = [node.attr for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute)]
            wrong += [path] * ("register_at_fork" in names)
    assert not wrong, "write, for example: from dataset.world import time"


CREATED = {
    "optimize/parallelism/inject_prefetch.py": {"Prefetch"},
    "optimize/sharding/by_elements.py": {"PadMissing", "ShardByProcess"},
    "optimize/sharding/by_files.py": {"EqualizeShards", "PadMissing"},
    "optimize/sharding/among_workers.py": {"ShardByProcess"},
    "optimize/sharding/splitting.py": {"Skip", "SplitByKey", "SplitByPosition", "Take"},
    "optimize/sharding/counting.py": {"AssertCardinality"},
    "autotune/profile_report.py": {"Prefetch"},
}
"""The rewrites that add an op to a plan: they call its class. Everything else is in traits and methods of nodes."""


def test_what_handles_all_ops_knows_the_class_of_none():
    for path in files_in("plan", "runtime", "optimize", "autotune"):
        imported, called = op_classes_in(path), set()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called.add(node.func)
        used = {node.id for node in ast.walk(parsed(path)) if isinstance(node, ast.Name) and node not in called}
        where = path.relative_to(ROOT).as_posix()
        assert imported <= CREATED.get(where, set()), f"{where} imports ops: declare a trait"
        assert not imported & used, f"{where} compares the class of a node: declare a trait"


def op_classes_in(path):
    """Return the names of the classes of ops that a file imports; a base class of several ops has no name of an op."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and room_of(node.module) in {"ops", "io"}:
            values = vars(importlib.import_module(node.module))
            kinds = {alias.asname or alias.name: values.get(alias.name) for alias in node.names}
            classes = {name: kind for name, kind in kinds.items() if isinstance(kind, type)}
            found |= {name for name, kind in classes.items() if issubclass(kind, Node) and hasattr(kind, "op")}
    return found


MEMBERS_MAX = {"Operator": 10, "ExecutionContext": 16, "Node": 18}
"""What an author of an operator must know."""


def test_the_contract_stays_small():
    for kind in (Operator, ExecutionContext, Node):
        members = {*dir(kind), *kind.__annotations__}
        public = [name for name in members if not name.startswith("_")]
        assert len(public) <= MEMBERS_MAX[kind.__name__], sorted(public)


FRAMES_MAX, CALLS_MAX = 9, 80
"""Python frames from the last operator to the file, and calls per batch, besides those of the user's function.

``next`` and an inline prefetch add three of each.
"""


def test_few_frames_and_calls_are_between_a_batch_and_the_file(tmp_path):
    (tmp_path / "a").write_bytes(frames([b"%8d" % i for i in range(5000)]))
    plan = TFRecordDataset(tmp_path / "a").map(decoded).shuffle(500, seed=1).batch(32).plan
    coordinator, operator = open_plan(plan)
    for _ in range(10):
        operator.pull(1)
    calls, depths = [], []

    def note(frame, event, _):
        if event == "call" and frame.f_code is not decoded.__code__:
            calls.append(frame.f_code.co_qualname)
            if frame.f_code is TFRecordFile.columns.__code__:
                depths.append(sum(1 for _ in itertools.takewhile(lambda at: at is not here, outer(frame))) - 1)

    here, before = sys._getframe(), sys.getprofile()
    sys.setprofile(note)
    try:
        for _ in range(100):
            operator.pull(1)
    finally:
        sys.setprofile(before)
        coordinator.shut_down(operator.close, wait=True)
    assert depths
    assert max(depths) <= FRAMES_MAX
    assert len(calls) <= 100 * CALLS_MAX


def decoded(record):
    return record[:4]


def outer(frame):
    while frame is not None:
        yield frame
        frame = frame.f_back

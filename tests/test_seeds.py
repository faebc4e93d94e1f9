"""Every random draw in the tests depends on tests/seed: see support/seeds.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from dataset import Dataset
from dataset.runtime.random import streams
from support.seeds import rng

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("*.py"))
GLOBAL = {"random", "np.random", "numpy.random"}
GENERATORS = {"Random", "default_rng", "rng", "numpy_rng"}
ENTROPY = {"SystemRandom", "urandom", "getrandom", "token_bytes", "token_hex", "randbits", "randbelow"}
OTHER_KINDS = {
    "support/seeds.py": {"secrets.randbelow"},  # the helper
    "runtime/processes/test_processes.py": {"np.random.random"},  # the subject is a function that draws
    "optimize/vectorization/test_map_vectorization.py": {"np.random.rand"},  # and here
}


def dotted(node: ast.AST) -> str:
    """Return the name that an expression such as ``np.random.random`` consists of."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls(node: ast.AST, *, at_import: bool = True) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the calls in a module, and whether they run when it is imported."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(child, ast.Call):
            yield child, at_import
        yield from calls(child, at_import=at_import and not is_function)


def other_draws(source: str) -> list[str]:
    """Return the draws in a module that do not depend on the seed, or that importing the module makes."""
    found = []
    for call, at_import in calls(ast.parse(source)):
        name = dotted(call.func)
        parent, _, last = name.rpartition(".")
        is_global = parent in GLOBAL and last not in {*GENERATORS, "Generator", "Philox"}
        is_unseeded = last in GENERATORS - {"rng", "numpy_rng"} and not (call.args or call.keywords)
        is_seeded_draw = last in {"rng", "numpy_rng"} and not parent
        if last in ENTROPY or is_global or is_unseeded or (at_import and is_seeded_draw):
            found.append(name)
    return found


def test_every_draw_comes_from_the_helper():
    found = {path.relative_to(TESTS).as_posix(): set(other_draws(path.read_text("utf-8"))) for path in FILES}
    assert {name: draws for name, draws in found.items() if draws} == OTHER_KINDS


def test_an_op_without_a_seed_draws_one_from_the_generator_of_its_test(request):
    one, other = ([int(x) for x in Dataset.range(100).shuffle(100)] for _ in range(2))
    assert one != other
    own = rng(request.node.nodeid)
    assert [own.getrandbits(64) for _ in range(3)][-1] == streams.SeedSequence(None).draw()

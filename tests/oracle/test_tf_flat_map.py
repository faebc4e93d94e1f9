"""Tests of flat_map against tf.data's."""

import pytest
from cases import ELEMENTS, FINITE
from compare import Ours, attempt, programs, refused, same, theirs

INNER = programs(
    growing="range",
    repeated="lambda x: from_tensors(x).repeat(2)",
    rows="lambda x: from_tensor_slices(stack([x, x + 10]))",
    filtered="lambda x: range(4).filter(lambda y: y > x)",
    nested="lambda x: range(x).flat_map(range)",
    failing="lambda x: failing(0, 2, size=3)",
    tuples="lambda x: zip(range(x), range(1, 4))",
    dicts="lambda x: from_tensors({'b': x, 'a': b'x'})",
    endless="lambda x: from_tensors(x).repeat()",
)


def spec(source, inner):
    """Return how to compare specs that depend on an element."""
    return "any" if "empty" in source + inner or source == "one" or inner in {"nested", "filtered"} else "equal"


test_sources = same("source.flat_map(inner)", source=FINITE, inner=INNER, limit=30, spec=spec)
test_empty_datasets = same("source.flat_map(lambda x: range(0))", source=FINITE, spec="any")
test_endless_data = same("range(3).repeat().flat_map(inner)", inner=INNER, limit=30, spec=lambda inner: spec("", inner))
test_structures = same("range(2).flat_map(lambda x: from_tensors(element))", element=ELEMENTS, spec="compatible")
test_arguments = same(
    "from_tensors(element).repeat(2).flat_map(lambda *args: from_tensors(args))",
    element={name: ELEMENTS[name] for name in ("tuple", "tuple of one", "None in a tuple", "named tuple", "nested")},
)
test_failures = same(
    {
        "of the source": "failing(*bad, size=5).flat_map(lambda x: range(x, x + 2))",
        "inside": "range(2).flat_map(lambda x: failing(*bad, size=5))",
        "in turn": "range(3).flat_map(lambda x: range(x, x + 3).map(check(*bad)))",
        "of the function": "range(5).flat_map(lambda x: from_tensors(check(*bad)(x)).repeat(2))",
    },
    bad=[(0,), (1,), (2,), (4,), (0, 1), (0, 4), (1, 2), (1, 2, 3), (0, 1, 2, 3)],
)


@pytest.mark.parametrize("method", ["flat_map", "interleave"])
@pytest.mark.parametrize("result", [lambda x: x, lambda x: None, lambda x: (x,), lambda x: [1]])
def test_what_is_no_dataset(method, result):
    """tf.data traces the function at construction; here it is first called when an element is requested."""
    build = lambda lib: getattr(lib.range(3), method)(result)
    assert isinstance(theirs(lambda lib: attempt(build, lib)), Exception)
    with pytest.raises(TypeError, match="must return a Dataset"):
        next(iter(build(Ours())))


test_what_is_no_function = refused({TypeError: [None, 3, "abs"]}, "range(3).flat_map(case)")
test_names = same("range(3).flat_map(map_func=from_tensors, name='label')")

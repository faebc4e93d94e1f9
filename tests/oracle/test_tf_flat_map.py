"""Tests of flat_map against tf.data's."""

import pytest
from cases import ELEMENTS, SOURCES, check, failing
from compare import attempt, refused, same, theirs

from dataset import Dataset

INNER = {
    "growing": lambda lib, x: lib.range(x),
    "all empty": lambda lib, x: lib.range(0),
    "repeated": lambda lib, x: lib.from_tensors(x).repeat(2),
    "rows": lambda lib, x: lib.from_tensor_slices(lib.stack([x, x + 10])),
    "filtered": lambda lib, x: lib.range(4).filter(lambda y: y > x),
    "nested": lambda lib, x: lib.range(x).flat_map(lib.range),
    "failing": lambda lib, x: failing(lib, 0, 2, size=3),
    "tuples": lambda lib, x: lib.zip(lib.range(x), lib.range(1, 4)),
    "dicts": lambda lib, x: lib.from_tensors({"b": x, "a": b"x"}),
}


UNKNOWN = {"all empty", "nested", "filtered"}  # their specs depend on the element
FINITE = {name: make for name, make in SOURCES.items() if name != "endless"}
test_sources = same(
    lambda lib, source, inner: source(lib).flat_map(lambda x: inner(lib, x)),
    FINITE,
    INNER,
    limit=30,
    spec=lambda source, inner: "any" if "empty" in source or source == "one" or inner in UNKNOWN else "equal",
)
test_endless_data = same(
    lambda lib, inner: SOURCES["endless"](lib).flat_map(lambda x: INNER[inner](lib, x)),
    [inner for inner in INNER if inner != "all empty"],
    limit=30,
    spec=lambda inner: "any" if inner in UNKNOWN else "equal",
)
test_structures = same(
    lambda lib, element: lib.range(2).flat_map(lambda x: lib.from_tensors(element(lib))), ELEMENTS, spec="compatible"
)
test_arguments = same(
    lambda lib, element: (
        lib.from_tensors(ELEMENTS[element](lib)).repeat(2).flat_map(lambda *args: lib.from_tensors(args))
    ),
    ["tuple", "tuple of one", "nested tuples", "None in a tuple", "named tuple", "nested"],
)
test_endless_inner_datasets = same(lambda lib: lib.range(3).flat_map(lambda x: lib.from_tensors(x).repeat()), limit=12)
FAILING = {
    "of the source": lambda lib, bad: failing(lib, *bad, size=5).flat_map(lambda x: lib.range(x, x + 2)),
    "inside": lambda lib, bad: lib.range(2).flat_map(lambda x: failing(lib, *bad, size=5)),
    "in turn": lambda lib, bad: lib.range(3).flat_map(lambda x: lib.range(x, x + 3).map(check(lib, *bad))),
    "of the function": lambda lib, bad: lib.range(5).flat_map(
        lambda x: lib.from_tensors(check(lib, *bad)(x)).repeat(2)
    ),
}
test_failures = same(FAILING, [(0,), (1,), (2,), (4,), (0, 1), (0, 4), (1, 2), (1, 2, 3), (0, 1, 2, 3)])


@pytest.mark.parametrize("result", [lambda x: x, lambda x: None, lambda x: (x,), lambda x: [1]])
def test_what_is_no_dataset(result):
    """tf.data traces the function at construction; here it is first called when an element is requested."""
    assert isinstance(theirs(lambda lib: attempt(lambda lib: lib.range(3).flat_map(result), lib)), Exception)
    with pytest.raises(TypeError, match="must return a Dataset"):
        next(iter(Dataset.range(3).flat_map(result)))


test_what_is_no_function = refused({TypeError: [None, 3, "abs"]}, lambda lib, function: lib.range(3).flat_map(function))
test_names = same(lambda lib: lib.range(3).flat_map(map_func=lib.Dataset.from_tensors, name="label"))

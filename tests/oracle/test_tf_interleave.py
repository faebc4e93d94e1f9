"""Tests of interleave against tf.data's."""

from cases import ELEMENTS, SOURCES
from compare import programs, refused, same

CYCLES = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 5), (3, 2), (4, 1), (16, 3)]
INNER = programs(
    as_many_as_its_number="lambda x: from_tensors(x).repeat(x)",
    fewer_and_fewer="lambda x: range(x, 7)",
    all_empty="lambda x: range(0)",
    unknown="lambda x: range(5).filter(lambda y: y != x)",
    failing="lambda x: failing(0, 2, size=4)",
    endless="lambda x: from_tensors(x).repeat()",
)
test_cycles = same(
    "range(1, 6).interleave(inner, *cycle)",
    inner=INNER,
    cycle=CYCLES,
    limit=30,
    spec=lambda inner, _: "any" if inner == "all_empty" else "equal",
)
test_sources = same(
    "source.interleave(lambda x: range(x, x + 3), *cycle)",
    source=SOURCES,
    cycle=[(1, 1), (2, 1), (3, 2)],
    limit=30,
    spec=lambda source, _: "any" if "empty" in source else "equal",
)
test_structures = same(
    "range(2).interleave(lambda x: from_tensors(element).repeat(2), 2)", element=ELEMENTS, spec="compatible"
)
test_arguments = same(
    "from_tensors(element).repeat(3).interleave(lambda *args: from_tensors(args), 2)",
    element={name: ELEMENTS[name] for name in ("tuple", "tuple of one", "None in a tuple", "named tuple", "nested")},
)
# tf.data uses the number of cores; with equal elements, the difference cannot be observed.
test_a_cycle_that_is_left_to_the_library = same(
    "range(1).interleave(lambda x: range(4), **arguments)",
    arguments=[{"cycle_length": None}, {"cycle_length": -1}, {"block_length": None}],
)
WRONG_VALUES = [{"cycle_length": 0}, {"cycle_length": -2}, {"block_length": 0}]
WRONG_TYPES = [{"cycle_length": 2.0}, {"cycle_length": "2"}, {"block_length": 1.5}]
WRONG_TYPES += [{"map_func": function} for function in (None, 3, "abs")]
test_what_is_refused = refused(
    {ValueError: WRONG_VALUES, TypeError: WRONG_TYPES},
    "range(3).interleave(**{'map_func': range, 'cycle_length': np.int64(2), **case})",
)

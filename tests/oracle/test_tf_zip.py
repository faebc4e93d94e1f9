"""Tests of zip against tf.data's."""

from collections import OrderedDict  # noqa: F401  # programs use it

import numpy as np
from cases import SOURCES, Pair  # noqa: F401  # programs use Pair
from compare import programs, refused, same

COLUMNS = {"s": ["a", "b"], "n": (np.arange(2.0), np.arange(2))}
NESTINGS = {
    "one": "range(3)",
    "three arguments": "range(3), range(10, 20), range(2)",
    "a tuple": "(range(3), range(2))",
    "a tuple of one": "(range(3),)",
    "tuples as arguments": "(range(3), range(2)), range(4)",
    "nested": "(range(3), (range(2), (range(4),)))",
    "a dict": "{'b': range(3), 'a': range(5, 9)}",
    "an ordered dict": "OrderedDict([('b', range(3)), ('a', range(5, 9))])",
    "a dict in a tuple": "({'a': range(3)}, range(2))",
    "a named tuple": "Pair(range(3), range(2))",
    "datasets=": "datasets=(range(3), range(2))",
    "datasets= of one": "datasets=range(3)",
    "zips": "zip(range(3)), zip(range(3))",
    "structures": "from_tensor_slices(COLUMNS), range(5).batch(2)",
    "tensors of every kind": "from_tensors(ragged([[1], [2, 3]])), from_tensors(sparse([[1]], np.array([5.0]), [3]))",
    "a name": "range(3), name='pairs'",
}
test_nestings = same(
    {name: f"zip({arguments})" for name, arguments in NESTINGS.items()},
    spec=lambda name: "compatible" if name == "tensors of every kind" else "equal",
)
OTHERS = programs(
    unknown_and_endless="range(9).repeat().filter(lambda x: x % 2 == 0)",
    failing="failing(0, 2, size=5)",
    failing_at_the_end="failing(3, size=4)",
)
LENGTHS = {name: SOURCES[name] for name in ("known", "empty", "unknown", "endless")} | OTHERS
test_lengths_and_failures = same("zip(first, second)", first=LENGTHS, second=LENGTHS, limit=12, spec="compatible")
REFUSED = ["", "[range(3), range(3)]", "(range(3), [range(3)])", "range(3), datasets=range(3)", "range(3), 3"]
REFUSED += ["(range(3), np.arange(3))", "()", "{}"]
test_what_is_refused = refused({(TypeError, ValueError): [f"zip({arguments})" for arguments in REFUSED]})

"""Tests of reduce against tf.data's. The result is compared as the only element of a dataset."""

import numpy as np
from cases import FINITE, Point  # noqa: F401  # programs use Point
from compare import programs, refused, same

from dataset import TensorSpec

VECTOR = TensorSpec((None,), np.int64)
STARTS = programs(
    sum="int64(5), lambda total, x: total + x",
    last="int64(5), lambda total, x: x",
    none="int64(5), lambda total, x: total",
    tuple="(int64(0), np.float32(1)), lambda s, x: (s[0] + x, s[1])",
    tuple_of_one="(int64(0),), lambda s, x: (s[0] + x,)",
    nested="(int64(0), (int64(1),)), lambda s, x: (s[1][0], (s[0] + x,))",
    dict="{'b': int64(0), 'a': int64(5)}, lambda s, x: {'a': s['b'], 'b': s['a'] + x}",
    named_tuple="Point(int64(0), int64(5)), lambda s, x: Point(s.x, s.y + x)",
    text="b'a\\0', lambda s, x: s",
    vector="int64([1, 2]), lambda s, x: s + x",
    list_for_tuple="(int64(0), int64(1)), lambda s, x: [s[1], s[0] + x]",
    sparse="sparse([[1]], int64([5]), [3]), lambda s, x: s",
)
RETURNING = {name: source for name, source in FINITE.items() if not name.startswith("fails")}
test_states = same("from_tensors(source.reduce(*start))", source=RETURNING, start=STARTS)
test_elements = same(
    [
        "from_tensors(range(4).map(lambda x: (x, x * 2)).reduce(int64(1), lambda s, e: s + e[0] * e[1]))",
        "from_tensors(range(4).map(lambda x: {'b': x, 'a': x + 1}).reduce(int64(1), lambda s, e: s + e['b'] * e['a']))",
        "from_tensors(range(4).map(lambda x: (x, {'y': (x, None)})).reduce(int64(1), lambda s, e: s + e[1]['y'][0]))",
        "from_tensors(range(4).map(lambda x: Point(x, x + 1)).reduce(int64(1), lambda s, e: s + e.x * e.y))",
        "from_tensors(range(3).reduce(initial_state=int64(0), reduce_func=lambda s, x: s + x, name='label'))",
    ]
)
test_a_state_that_grows = same("from_tensors(range(4).reduce(int64([]), call(np.append, VECTOR)))", spec="compatible")
test_failures = same(
    [
        "from_tensors(failing(bad).reduce(int64(0), lambda s, x: s + x))",
        "from_tensors(range(7).reduce(int64(0), lambda s, x: check(bad)(x)))",
    ],
    bad=[0, 3, 6],
)
WRONG = [lambda s, x: (s, x), lambda s, x: None, lambda s, x: b"text", lambda s: s, lambda s, x, y: s]
test_what_is_refused = refused(
    {Exception: WRONG, TypeError: [None, 3, "add"]}, "from_tensors(range(3).reduce(int64(0), case))"
)

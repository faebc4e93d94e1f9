"""Tests of reduce against tf.data's. The result is compared as the only element of a dataset."""

import numpy as np
from cases import SOURCES, Point, check, failing, int64
from compare import refused, same

from dataset import TensorSpec

FINITE = [source for source in SOURCES if source != "endless" and not source.startswith("fails")]


def reduced(lib, dataset, initial, function):
    return lib.from_tensors(dataset.reduce(initial, function))


def summed(state, x):
    return state + x


FOLDS = {
    "sum": (int64(5), summed),
    "last": (int64(5), lambda total, x: x),
    "none": (int64(5), lambda total, x: total),
    "tuple": ((int64(0), int64(1)), lambda state, x: (state[0] + 1, state[1] * 2 + x)),
}
test_sources = same(lambda lib, source, fold: reduced(lib, SOURCES[source](lib), *fold), FINITE, FOLDS)


STATES = {
    "tuple": (lambda lib: (int64(0), np.float32(1)), lambda s, x: (s[0] + x, s[1])),
    "tuple of one": (lambda lib: (int64(0),), lambda s, x: (s[0] + x,)),
    "nested": (lambda lib: (int64(0), (int64(1),)), lambda s, x: (s[1][0], (s[0] + x,))),
    "dict": (lambda lib: {"b": int64(0), "a": int64(5)}, lambda s, x: {"a": s["b"], "b": s["a"] + x}),
    "named tuple": (lambda lib: Point(int64(0), int64(5)), lambda s, x: Point(s.x, s.y + x)),
    "text": (lambda lib: b"a\x00", lambda s, x: s),
    "vector": (lambda lib: int64([1, 2]), lambda s, x: s + x),
    "list for tuple": (lambda lib: (int64(0), int64(1)), lambda s, x: [s[1], s[0] + x]),
    "sparse": (lambda lib: lib.sparse([[1]], int64([5]), [3]), lambda s, x: s),
}


test_states = same(lambda lib, case, size: reduced(lib, lib.range(size), case[0](lib), case[1]), STATES, [0, 1, 4])
ELEMENTS = {
    "tuple": (lambda lib, x: (x, x * 2), lambda s, e: s + e[0] * e[1]),
    "tuple of one": (lambda lib, x: (x,), lambda s, e: s + (e[0] if isinstance(e, tuple) else e)),
    "dict": (lambda lib, x: {"b": x, "a": x + 1}, lambda s, e: s + e["b"] * e["a"]),
    "nested": (lambda lib, x: (x, {"y": (x, None)}), lambda s, e: s + e[0] + e[1]["y"][0]),
    "named tuple": (lambda lib, x: Point(x, x + 1), lambda s, e: s + e.x * e.y),
}


test_elements = same(
    lambda lib, case: reduced(lib, lib.range(4).map(lambda x: case[0](lib, x)), int64(1), case[1]), ELEMENTS
)
test_a_state_that_grows = same(
    lambda lib: reduced(lib, lib.range(4), int64([]), lib.call(np.append, TensorSpec((None,), np.int64))),
    spec="compatible",
)
test_failures = same(
    {
        "of an element": lambda lib, bad: reduced(lib, failing(lib, bad), int64(0), summed),
        "of the function": lambda lib, bad: reduced(lib, lib.range(7), int64(0), lambda s, x: check(lib, bad)(x)),
    },
    [0, 3, 6],
)
WRONG = [lambda s, x: (s, x), lambda s, x: None, lambda s, x: b"text", lambda s: s, lambda s, x, y: s]
test_what_is_refused = refused(
    {Exception: WRONG, TypeError: [None, 3, "add"]},
    lambda lib, function: reduced(lib, lib.range(3), int64(0), function),
)
test_names = same(
    lambda lib: lib.from_tensors(lib.range(3).reduce(initial_state=int64(0), reduce_func=summed, name="label"))
)

"""Tests of reduce against tf.data's. The result is compared as the only element of a dataset."""

import numpy as np
import pytest
from cases import INT64, SOURCES, Point, failing, int64
from compare import assert_both_refuse, assert_same

from dataset import TensorSpec
from support.libraries import fail_at

FINITE = [source for source in SOURCES if source != "endless" and not source.startswith("fails")]


def reduced(lib, dataset, initial, function):
    return lib.Dataset.from_tensors(dataset.reduce(initial, function))


@pytest.mark.parametrize("source", FINITE)
def test_sources(source):
    def build(lib, initial, function):
        return reduced(lib, SOURCES[source](lib), initial, function)

    assert_same(lambda lib: build(lib, int64(5), lambda total, x: total + x))
    assert_same(lambda lib: build(lib, int64(5), lambda total, x: x))
    assert_same(lambda lib: build(lib, int64(5), lambda total, x: total))
    assert_same(lambda lib: build(lib, (int64(0), int64(1)), lambda state, x: (state[0] + 1, state[1] * 2 + x)))


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


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("size", [0, 1, 4])
def test_states(state, size):
    initial, function = STATES[state]
    assert_same(lambda lib: reduced(lib, lib.Dataset.range(size), initial(lib), function))


ELEMENTS = {
    "tuple": (lambda lib, x: (x, x * 2), lambda s, e: s + e[0] * e[1]),
    "tuple of one": (lambda lib, x: (x,), lambda s, e: s + (e[0] if isinstance(e, tuple) else e)),
    "dict": (lambda lib, x: {"b": x, "a": x + 1}, lambda s, e: s + e["b"] * e["a"]),
    "nested": (lambda lib, x: (x, {"y": (x, None)}), lambda s, e: s + e[0] + e[1]["y"][0]),
    "named tuple": (lambda lib, x: Point(x, x + 1), lambda s, e: s + e.x * e.y),
}


@pytest.mark.parametrize("element", ELEMENTS)
def test_elements(element):
    make, function = ELEMENTS[element]
    assert_same(lambda lib: reduced(lib, lib.Dataset.range(4).map(lambda x: make(lib, x)), int64(1), function))


def test_a_state_that_grows():
    def build(lib):
        append = lib.call(np.append, TensorSpec((None,), np.int64))
        return reduced(lib, lib.Dataset.range(4), int64([]), append)

    assert_same(build, spec="compatible")


def test_failures():
    for bad in (0, 3, 6):
        check = fail_at(bad)
        assert_same(lambda lib, bad=bad: reduced(lib, failing(lib, bad), int64(0), lambda s, x: s + x))
        assert_same(
            lambda lib, check=check: reduced(
                lib, lib.Dataset.range(7), int64(0), lib.call(lambda s, x: check(x), INT64)
            )
        )


@pytest.mark.parametrize(
    "function",
    [
        lambda s, x: (s, x),
        lambda s, x: None,
        lambda s, x: b"text",
        lambda s: s,
        lambda s, x, y: s,
    ],
)
def test_what_the_function_may_not_return(function):
    assert_both_refuse(lambda lib: reduced(lib, lib.Dataset.range(3), int64(0), function), Exception)


@pytest.mark.parametrize("function", [None, 3, "add"], ids=repr)
def test_what_is_no_function(function):
    assert_both_refuse(lambda lib: reduced(lib, lib.Dataset.range(3), int64(0), function), TypeError)


def test_names():
    assert_same(
        lambda lib: lib.Dataset.from_tensors(
            lib.Dataset.range(3).reduce(initial_state=int64(0), reduce_func=lambda s, x: s + x, name="label")
        )
    )

"""Tests of ignore_errors against tf.data's."""

import numpy as np
from cases import failing
from compare import refused, same

from dataset import TensorSpec
from support.libraries import fail_at


def broken_generator(lib):
    def generate():
        yield 1
        raise ValueError("over")

    return lib.from_generator(generate, output_signature=lib.TensorSpec((), np.int64))


PIPELINES = {
    "nothing fails": lambda lib: lib.range(3),
    "empty": lambda lib: lib.range(0),
    "endless": lambda lib: failing(lib, 2).repeat(),
    "some": lambda lib: failing(lib, 0, 2, 6),
    "in a row": lambda lib: failing(lib, 2, 3, 4),
    "all": lambda lib: failing(lib, *range(7)),
    "batch": lambda lib: failing(lib, 2).batch(3),
    "last batch": lambda lib: failing(lib, 6).batch(3),
    "enumerate": lambda lib: failing(lib, 2).enumerate(),
    "zip": lambda lib: lib.zip((failing(lib, 2), lib.range(7))),
    "both of a zip": lambda lib: lib.zip((failing(lib, 2), failing(lib, 4))),
    "predicate": lambda lib: lib.range(6).filter(lib.call(lambda x: fail_at(2)(x) % 2 == 0, TensorSpec((), np.bool_))),
    "take": lambda lib: failing(lib, 2).take(4),
    "skip": lambda lib: failing(lib, 5).skip(3),
    "concatenate": lambda lib: failing(lib, 1, size=3).concatenate(failing(lib, 0, size=2)),
    "inner": lambda lib: lib.range(3).flat_map(lambda x: failing(lib, 1, size=3)),
    "generator": broken_generator,
    "scan": lambda lib: failing(lib, 2).scan(lib.const(0, np.int64), lambda s, x: (s + x, s)),
    "take_while": lambda lib: failing(lib, 2).take_while(lambda x: x < 4),
}


def spec_of(pipeline, *_):
    """Return how to compare specs: if every call of a function fails, this library does not know the spec."""
    return "any" if pipeline == "all" else "equal"


test_leaves_out_what_fails = same(
    lambda lib, pipeline, log: pipeline(lib).ignore_errors(log), PIPELINES, [False, True], limit=15, spec=spec_of
)
test_before_other_ops = same(
    {
        "batch": lambda lib, pipeline: PIPELINES[pipeline](lib).ignore_errors().batch(2),
        "repeat": lambda lib, pipeline: PIPELINES[pipeline](lib).ignore_errors().take(3).repeat(2),
        "enumerate": lambda lib, pipeline: PIPELINES[pipeline](lib).ignore_errors().enumerate(),
        "ignore_errors": lambda lib, pipeline: PIPELINES[pipeline](lib).ignore_errors().ignore_errors(),
    },
    ["some", "in a row", "all", "nothing fails"],
    spec=spec_of,
)
test_what_is_no_bool = refused({TypeError: ["yes", 1]}, lambda lib, log: lib.range(3).ignore_errors(log_warning=log))

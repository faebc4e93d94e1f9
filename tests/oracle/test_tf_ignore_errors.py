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
    "some": lambda lib: failing(lib, 0, 2, 6),
    "in a row": lambda lib: failing(lib, 2, 3, 4),
    "all": lambda lib: failing(lib, *range(7)),
    "batch": lambda lib: failing(lib, 2).batch(3),
    "predicate": lambda lib: lib.range(6).filter(lib.call(lambda x: fail_at(2)(x) % 2 == 0, TensorSpec((), np.bool_))),
    "inner": lambda lib: lib.range(3).flat_map(lambda x: failing(lib, 1, size=3)),
    "generator": broken_generator,
}


def spec_of(pipeline, *_):
    """Return how to compare specs: if every call of a function fails, this library does not know the spec."""
    return "any" if pipeline == "all" else "equal"


test_leaves_out_what_fails = same(
    lambda lib, pipeline, log: pipeline(lib).ignore_errors(log), PIPELINES, [False, True], limit=15, spec=spec_of
)
test_what_is_no_bool = refused({TypeError: ["yes", 1]}, lambda lib, log: lib.range(3).ignore_errors(log_warning=log))

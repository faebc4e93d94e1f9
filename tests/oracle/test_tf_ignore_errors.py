"""Tests of ignore_errors against tf.data's."""

import numpy as np
from compare import refused, same

from dataset import TensorSpec
from support.libraries import fail_at


def even(lib, *bad):
    return lib.call(lambda x: fail_at(*bad)(x) % 2 == 0, TensorSpec((), np.bool_))


def breaks():
    yield 1
    raise ValueError("over")


PIPELINES = {
    "nothing fails": "range(3)",
    "some": "failing(0, 2, 6)",
    "in a row": "failing(2, 3, 4)",
    "all": "failing(*np.arange(7))",
    "batch": "failing(2).batch(3)",
    "predicate": "range(6).filter(even(2))",
    "inner": "range(3).flat_map(lambda x: failing(1, size=3))",
    "generator": "from_generator(breaks, output_signature=lib.TensorSpec((), np.int64))",
}
# If every call of a function fails, this library does not know the spec.
test_leaves_out_what_fails = same(
    {name: f"{pipeline}.ignore_errors(log)" for name, pipeline in PIPELINES.items()},
    log=[False, True],
    limit=15,
    spec=lambda log, name: "any" if name == "all" else "equal",
)
test_what_is_no_bool = refused({TypeError: ["yes", 1]}, "range(3).ignore_errors(log_warning=case)")

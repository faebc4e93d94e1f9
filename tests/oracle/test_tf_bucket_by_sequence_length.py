"""Tests of bucket_by_sequence_length against tf.data's."""

import numpy as np
from cases import failing
from compare import refused, same

LENGTHS = [1, 2, 3, 4, 5, 0, 7, 2, 3, 2]


def rows(lib, lengths=LENGTHS, dtype=np.int64):
    """Return a dataset of vectors of the given lengths; the length is unknown in the spec."""
    arrays = [np.full(length, length).astype(dtype) for length in lengths]
    return lib.from_generator(lambda: iter(arrays), output_signature=lib.TensorSpec((None,), dtype))


def length(lib):
    return lambda row: lib.cast(lib.length(row), np.int32)


def bucket(lib, dataset, *arguments, **options):
    return dataset.bucket_by_sequence_length(length(lib), *arguments, **options)


def two_lengths(lib, **options):
    return bucket(lib, rows(lib, [2, 4, 2, 4, 2]), [3], [2, 2], no_padding=True, **options)


def in_dicts(lib, **options):
    return lib.zip({"b": rows(lib), "a": lib.range(20)}).bucket_by_sequence_length(
        lambda parts: length(lib)(parts["b"]), [3, 5], [2, 3, 1], **options
    )


BOUNDARY = {"bucket_boundaries": [3, 8], "pad_to_bucket_boundary": True}
OPTIONS = {
    "plain": {},
    "drop_remainder": {"drop_remainder": True},
    "equal sizes, drop_remainder": {"bucket_batch_sizes": [2, 2, 2], "drop_remainder": True},
    "no boundaries": {"bucket_boundaries": [], "bucket_batch_sizes": [3]},
    "a boundary of zero": {"bucket_boundaries": [0, 3]},
    "tuples of numbers": {"bucket_boundaries": (3, 5), "bucket_batch_sizes": (2, 3, 1)},
    "arrays of numbers": {"bucket_boundaries": np.array([3, 5]), "bucket_batch_sizes": np.array([2, 3, 1])},
    "to the boundary": BOUNDARY,
    "to the boundary, as given": {**BOUNDARY, "padded_shapes": [None]},
    "padded_shapes": {"padded_shapes": [9]},
    "padded_shapes and boundary": {**BOUNDARY, "padded_shapes": [9]},
    "padded_shapes too small": {"padded_shapes": [3]},
    "padding_values": {"padding_values": np.int64(-1)},
    "no_padding": {"no_padding": True},
}
USUAL = {"bucket_boundaries": [3, 5], "bucket_batch_sizes": [2, 3, 1]}
test_options = same(lambda lib, options: bucket(lib, rows(lib), **USUAL | options), OPTIONS)

CASES = {
    "floats": lambda lib: bucket(lib, rows(lib, dtype=np.float32), [3, 5], [2, 3, 1]),
    "no_padding of equals": lambda lib: two_lengths(lib, padded_shapes=[9]),
    "no_padding and boundary": lambda lib: two_lengths(lib, pad_to_bucket_boundary=True),
    "one shape": lambda lib: bucket(lib, lib.range(9).batch(2, drop_remainder=True), [3, 5], [2, 3, 1]),
    "one shape, boundary": lambda lib: bucket(
        lib, lib.range(9).batch(2, drop_remainder=True), [4, 5], [2, 3, 1], pad_to_bucket_boundary=True
    ),
    "empty": lambda lib: bucket(lib, rows(lib, []), [3, 5], [2, 3, 1]),
    "endless": lambda lib: bucket(lib, rows(lib).repeat(), [3, 5], [2, 3, 1]),
    "beside numbers": lambda lib: lib.zip(rows(lib), lib.range(20)).bucket_by_sequence_length(
        lambda row, x: length(lib)(row), [3, 8], [2, 3, 1], pad_to_bucket_boundary=True
    ),
    "in dicts": in_dicts,
    "with shapes in dicts": lambda lib: in_dicts(lib, padded_shapes={"a": [], "b": [None]}),
}
test_buckets = same(CASES, limit=12)
TEXTS = [np.array(text, object) for text in ([b"a"], [b"b", b"c"], [b"d"], [b"e", b"f\0"])]
test_texts = same(
    lambda lib, no_padding: bucket(
        lib,
        lib.from_generator(lambda: iter(TEXTS), output_signature=lib.TensorSpec((None,), bytes)),
        [2],
        [2, 2],
        no_padding=no_padding,
    ),
    [False, True],
)


def of_one_length(lib, component, number, **options):
    dataset = lib.from_tensors(component(lib)).repeat(3)
    return dataset.bucket_by_sequence_length(lambda x: lib.const(number, np.int32), [2], [2, 2], **options)


UNPADDABLE = {
    "sparse": lambda lib: lib.sparse([[0], [2]], np.array([5, 6]), [3]),
    "ragged": lambda lib: lib.ragged([[1, 2], [], [3]]),
}
test_without_padding = same(
    lambda lib, component: of_one_length(lib, component, 3, no_padding=True), UNPADDABLE, spec="compatible"
)
test_what_cannot_be_padded = refused({TypeError: UNPADDABLE}, lambda lib, component: of_one_length(lib, component, 1))
test_failures = same(
    lambda lib, bad: bucket(lib, failing(lib, *bad, size=6).map(lambda x: lib.fill([x], x)), [2, 4], [2, 2, 1]),
    [(0,), (2,), (5,), (1, 2, 3)],
    spec="compatible",
)
test_arguments_that_do_not_fit = refused(
    {
        ValueError: [
            *({"bucket_batch_sizes": [2, 3]}, {"bucket_boundaries": [3]}),
            *({"bucket_batch_sizes": [0, 0, 0]}, {"padded_shapes": [3, 3]}),
        ],
        TypeError: [
            *({"bucket_batch_sizes": [2, 3.0, 1]}, {"bucket_boundaries": [3.0, 5.0]}),
            *({"bucket_boundaries": 3, "bucket_batch_sizes": [2, 3]}, {"padding_values": b"x"}),
        ],
    },
    lambda lib, options: bucket(lib, rows(lib), **USUAL | options),
)

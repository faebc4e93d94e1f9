"""Tests of bucket_by_sequence_length against tf.data's."""

import numpy as np
from compare import programs, refused, same

TEXTS = [np.array(text, object) for text in ([b"a"], [b"b", b"c"], [b"d"], [b"e", b"f\0"])]
USUAL = {"bucket_boundaries": [3, 5], "bucket_batch_sizes": [2, 3, 1]}
BOUNDARY = {"bucket_boundaries": [3, 8], "pad_to_bucket_boundary": True}


def rows(lib, lengths=(1, 2, 3, 4, 5, 0, 7, 2, 3, 2), dtype=np.int64):
    """Return a dataset of vectors of the given lengths; the length is unknown in the spec."""
    return lib.arrays([np.full(length, length) for length in lengths], (None,), dtype)


def bucket(lib, dataset, length=lambda row: row, **options):
    """Return the buckets of the rows that ``length`` finds in the elements."""
    count = lambda *element: lib.cast(lib.length(length(*element)), np.int32)
    return dataset.bucket_by_sequence_length(count, **USUAL | options)


OPTIONS = [{}, {"drop_remainder": True}, {"bucket_batch_sizes": [2, 2, 2], "drop_remainder": True}]
OPTIONS += [{"bucket_boundaries": [], "bucket_batch_sizes": [3]}, {"bucket_boundaries": [0, 3]}]
OPTIONS += [{name: kind(numbers) for name, numbers in USUAL.items()} for kind in (tuple, np.array)]
OPTIONS += [BOUNDARY, {**BOUNDARY, "padded_shapes": [None]}, {**BOUNDARY, "padded_shapes": [9]}, {"no_padding": True}]
OPTIONS += [{"padded_shapes": [9]}, {"padded_shapes": [3]}, {"padding_values": np.int64(-1)}]
test_options = same("bucket(rows(), **options)", options=OPTIONS)
test_buckets = same(
    {
        "floats": "bucket(rows(dtype=np.float32))",
        "no_padding of equals": "bucket(rows([2, 4, 2, 4, 2]), no_padding=True, padded_shapes=[9])",
        "no_padding and boundary": "bucket(rows([2, 4, 2, 4, 2]), no_padding=True, pad_to_bucket_boundary=True)",
        "one shape": "bucket(range(9).batch(2, True))",
        "one shape, boundary": "bucket(range(9).batch(2, True), bucket_boundaries=[4, 5], pad_to_bucket_boundary=True)",
        "empty": "bucket(rows([]))",
        "endless": "bucket(rows().repeat())",
        "beside numbers": "bucket(zip(rows(), range(20)), lambda row, x: row, **BOUNDARY)",
        "in dicts": "bucket(zip({'b': rows(), 'a': range(20)}), lambda parts: parts['b'])",
        "with shapes in dicts": "bucket(zip({'b': rows()}), lambda parts: parts['b'], padded_shapes={'b': [None]})",
        "texts": "bucket(arrays(TEXTS, (None,), bytes), bucket_boundaries=[2], bucket_batch_sizes=[2, 2])",
        "texts, no_padding": "bucket(arrays(TEXTS, (None,), bytes), no_padding=True)",
    },
    limit=12,
)


def of_one_length(lib, component, number, **options):
    dataset = lib.from_tensors(component).repeat(3)
    return dataset.bucket_by_sequence_length(lambda x: lib.const(number, np.int32), [2], [2, 2], **options)


UNPADDABLE = programs(sparse="sparse([[0], [2]], np.array([5, 6]), [3])", ragged="ragged([[1, 2], [], [3]])")
test_without_padding = same("of_one_length(component, 3, no_padding=True)", component=UNPADDABLE, spec="compatible")
test_what_cannot_be_padded = refused({TypeError: UNPADDABLE}, "of_one_length(case, 1)")
test_failures = same(
    "bucket(failing(*bad, size=6).map(lambda x: fill([x], x)))",
    bad=[(0,), (2,), (5,), (1, 2, 3)],
    spec="compatible",
)
WRONG_VALUES = [{"bucket_batch_sizes": [2, 3]}, {"bucket_boundaries": [3]}, {"bucket_batch_sizes": [0, 0, 0]}]
WRONG_TYPES = [{"bucket_batch_sizes": [2, 3.0, 1]}, {"bucket_boundaries": [3.0, 5.0]}, {"padding_values": b"x"}]
WRONG_TYPES += [{"bucket_boundaries": 3, "bucket_batch_sizes": [2, 3]}]
test_arguments_that_do_not_fit = refused(
    {ValueError: [*WRONG_VALUES, {"padded_shapes": [3, 3]}], TypeError: WRONG_TYPES}, "bucket(rows(), **case)"
)

"""Tests of assert_cardinality against tf.data.experimental.assert_cardinality."""

from compare import same


def asserted(lib, count, expected):
    dataset = lib.range(count).filter(lambda x: True)
    if lib.name == "dataset":
        return dataset.assert_cardinality(expected)
    return dataset.apply(lib.tf.data.experimental.assert_cardinality(expected))


COUNTS = [(0, 0), (5, 5), (5, -1), (3, 4), (4, 3), (0, 1), (1, 0)]
# tf.data raises the error forever.
test_elements_before_the_error_and_the_number = same(
    "asserted(*counts)", counts=COUNTS, limit=lambda counts: 1 + (min(counts) if counts[1] >= 0 else counts[0])
)

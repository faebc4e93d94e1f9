"""Tests of prefetch against tf.data's."""

import numpy as np
from cases import ELEMENTS, SOURCES
from compare import refused, same

test_sizes = same(lambda lib, source, size: source(lib).prefetch(size), SOURCES, [0, 1, 2, 100, -1, None], limit=12)
test_autotune = same(lambda lib: lib.range(5).prefetch(buffer_size=lib.AUTOTUNE, name="label"))
test_structures = same(lambda lib, element: lib.from_tensors(element(lib)).repeat(3).prefetch(2), ELEMENTS)
test_what_is_no_size = refused(
    {ValueError: [-2, -5], TypeError: [2.0, "2", [2], np.array([2])]}, lambda lib, size: lib.range(5).prefetch(size)
)

"""Tests of prefetch against tf.data's."""

import numpy as np
from cases import ELEMENTS, SOURCES
from compare import refused, same

test_sizes = same("source.prefetch(size)", source=SOURCES, size=[0, 1, 2, 100, -1, None], limit=12)
test_autotune = same("range(5).prefetch(buffer_size=AUTOTUNE, name='label')")
test_structures = same("from_tensors(element).repeat(3).prefetch(2)", element=ELEMENTS)
test_what_is_no_size = refused(
    {ValueError: [-2, -5], TypeError: [2.0, "2", [2], np.array([2])]}, "range(5).prefetch(case)"
)

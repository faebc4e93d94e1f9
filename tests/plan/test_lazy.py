"""A property that is computed once, and for which no thread waits."""

import numpy as np
import pytest

from dataset import Dataset, TensorSpec
from dataset.plan.lazy import lazy_property
from support.process_helpers import in_thread


class Counted:
    def __init__(self):
        self.calls = 0

    @lazy_property
    def value(self):
        """What it is."""
        self.calls += 1
        if self.calls == 1:
            raise KeyError("not yet")
        return self.calls


def test_is_computed_once_and_again_where_that_failed():
    counted = Counted()
    with pytest.raises(KeyError, match="not yet"):
        _ = counted.value
    assert [counted.value, counted.value, counted.calls] == [2, 2, 2]
    assert Counted().calls == 0
    assert Counted.value.__doc__ == "What it is."


def test_another_instance_can_be_used_while_one_computes():
    class Waiting:
        def __init__(self, other):
            self.other = other

        @lazy_property
        def value(self):
            return "done" if self.other is None else in_thread(lambda: self.other.value).result()

    assert Waiting(Waiting(None)).value == "done"


def test_a_spec_found_by_running_needs_no_patience_where_a_background_thread_uses_a_spec():
    rows = Dataset.from_tensor_slices(np.zeros((4, 2)))
    dataset = Dataset.range(2).flat_map(lambda _: rows.batch(2).filter(lambda x: True).prefetch(1))
    assert in_thread(lambda: dataset.element_spec).result() == TensorSpec((None, None), np.float64)

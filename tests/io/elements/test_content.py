"""content_fingerprint: what makes a snapshot another one, and what does not."""

import functools
import subprocess
import sys

import numpy as np
import pytest

from dataset import Dataset
from dataset.plan.content import content_fingerprint

SCALE = 2


def named(dataset):
    return content_fingerprint(dataset.plan)


def scaled(x):
    return x * SCALE


def closing_over(value):
    return lambda x: x + value


class Adder:
    def __init__(self, much):
        self.much = much

    def __call__(self, x):
        return x + self.much


def test_the_same_pipeline_built_again_is_the_same():
    def make():
        arrays = {"a": np.arange(4), "b": np.array([b"x"] * 4, object)}
        return Dataset.from_tensor_slices(arrays).map(lambda e: e["a"]).shuffle(3).filter(lambda x: x > 1).batch(2)

    assert named(make()) == named(make())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Dataset.range(3), Dataset.range(4)),
        (Dataset.range(3), Dataset.range(3).batch(1)),
        (Dataset.range(3).map(lambda x: x + 1), Dataset.range(3).map(lambda x: x + 2)),
        (Dataset.range(3).map(lambda x: x + 1), Dataset.range(3).map(lambda x: x - 1)),
        (Dataset.range(3).map(lambda x, y=1: x), Dataset.range(3).map(lambda x, y=2: x)),
        (Dataset.range(3).map(lambda x: np.sin(x) + 1), Dataset.range(3).map(lambda x: np.cos(x) + 1)),
        (Dataset.range(3).map(np.sin), Dataset.range(3).map(np.cos)),
        (Dataset.range(3).map(closing_over(1)), Dataset.range(3).map(closing_over(2))),
        (Dataset.range(3).map(closing_over(np.arange(3))), Dataset.range(3).map(closing_over(np.arange(1, 4)))),
        (Dataset.range(3).map(Adder(1)), Dataset.range(3).map(Adder(2))),
        (Dataset.range(3).map(Adder(1).__call__), Dataset.range(3).map(Adder(2).__call__)),
        (Dataset.range(3).map(functools.partial(max, 1)), Dataset.range(3).map(functools.partial(max, 2))),
        (Dataset.from_tensor_slices([1, 2]), Dataset.from_tensor_slices([1, 3])),
        (Dataset.from_tensor_slices([b"a"]), Dataset.from_tensor_slices([b"b"])),
        (Dataset.from_tensors(np.zeros(2)), Dataset.from_tensors(np.ones(2))),
    ],
)
def test_another_pipeline_is_another(one, other):
    assert named(one) != named(other)


def test_a_global_that_a_function_uses_counts(monkeypatch):
    before = named(Dataset.range(3).map(scaled))
    monkeypatch.setitem(globals(), "SCALE", 3)
    assert named(Dataset.range(3).map(scaled)) != before


def test_seeds_that_were_drawn_do_not_count():
    assert named(Dataset.range(9).shuffle(4)) == named(Dataset.range(9).shuffle(4))


def test_functions_may_refer_to_themselves():
    def down(x):
        return x if x < 1 else down(x - 1)

    assert named(Dataset.range(3).map(down)) == named(Dataset.range(3).map(down))


def test_another_process_finds_the_same():
    code = (
        "from dataset import Dataset\nfrom dataset.plan.content import content_fingerprint\nimport numpy as np\n"
        "K = {'b', 'a', 'c'}\n"
        "f = lambda x: (x, 'a' in K, [y for y in (1, 2)], np.ones(2), x in {3, 4, 'five', None})\n"
        "print(content_fingerprint(Dataset.from_tensor_slices(np.arange(5.0)).map(f).shuffle(2).plan))"
    )
    run = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "123"
    ]
    assert len(set(run)) == 1
    assert len(run[0].strip()) == 32

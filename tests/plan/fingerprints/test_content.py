"""Fingerprints over data and code: equal for pipelines built alike, different where what comes out may differ."""

import dataclasses
import functools
import subprocess
import sys

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, io
from support.pipelines import Pair

SCALE = 3


def doubled(x):
    return x * 2


def scaled(x):
    return doubled(x) * SCALE


@dataclasses.dataclass
class Scaler:
    factor: int

    def __call__(self, x):
        return x * self.factor


class Offset:
    def __init__(self, by):
        self.by = by

    def add(self, x):
        return x + self.by


def mapped(function):
    return Dataset.range(3).map(function)


def times(factor):
    return lambda x: x * factor


ALIKE = {
    "range": lambda: Dataset.range(1, 9, 2),
    "slices": lambda: Dataset.from_tensor_slices({"a": np.arange(6).reshape(3, 2), "b": ["x", "y", "z"]}),
    "tensors": lambda: Dataset.from_tensors((1.5, None, b"a\0", Pair(1, np.float32(2)))),
    "ragged": lambda: Dataset.from_tensors(RaggedTensor.from_rows([[1], []])),
    "sparse": lambda: Dataset.from_tensors(SparseTensor([[0, 1]], [5], [2, 2])),
    "lambda": lambda: mapped(lambda x: x + 1),
    "nested functions": lambda: mapped(lambda x: [y + 1 for y in (x, scaled(x))]),
    "captured": lambda: mapped(times(2)),
    "captured array": lambda: mapped(times(np.arange(3))),
    "partial": lambda: mapped(functools.partial(scaled)),
    "callable object": lambda: mapped(Scaler(2)),
    "method": lambda: mapped(Offset(1).add),
    "ufunc": lambda: mapped(np.sqrt),
    "builtin": lambda: mapped(abs),
    "class": lambda: mapped(str),
    "parser": lambda: mapped(io.ExampleParser({"a": io.FixedLenFeature((), np.int64)})),
    "unseeded shuffle": lambda: Dataset.range(9).shuffle(3),
    "seeded shuffle": lambda: Dataset.range(9).shuffle(3, seed=5),
    "generator": lambda: Dataset.from_generator(range, args=(3,)),
    "zip": lambda: Dataset.zip({"a": Dataset.range(3), "b": Dataset.range(4)}),
    "padded": lambda: Dataset.range(3).padded_batch(2, padding_values=np.int64(7)),
    "dataset inside": lambda: Dataset.from_tensors(Dataset.range(3)),
}


@pytest.mark.parametrize("plan", ALIKE)
def test_what_is_built_alike_is_equal_and_like_nothing_else(plan):
    mine = ALIKE[plan]().fingerprint()
    assert isinstance(mine, np.uint64)
    assert ALIKE[plan]().fingerprint() == mine
    assert sum(make().fingerprint() == mine for make in ALIKE.values()) == 1


DIFFERENT = {
    "data": lambda n: Dataset.from_tensor_slices([1, 2, n]),
    "bytes": lambda n: Dataset.from_tensor_slices([b"a", b"a" + b"\0" * n]),
    "dtype": lambda n: Dataset.from_tensor_slices(np.zeros(3, ["f4", "i4"][n])),
    "shape": lambda n: Dataset.from_tensor_slices(np.zeros([(2, 6), (2, 3, 2)][n])),
    "nesting": lambda n: Dataset.from_tensors([(1, (2, 3)), ((1, 2), 3)][n]),
    "element": lambda n: Dataset.from_tensors({"a": n}),
    "captured": lambda n: mapped(times(n)),
    "captured array": lambda n: mapped(times(np.arange(4)[n:])),
    "constant": lambda n: mapped([lambda x: x + 1, lambda x: x + 2][n]),
    "default": lambda n: mapped(lambda x, by=n: x + by),
    "keyword default": lambda n: mapped(lambda x, *, by=n: x + by),
    "partial": lambda n: mapped(functools.partial(divmod, n)),
    "callable object": lambda n: mapped(Scaler(n)),
    "method": lambda n: mapped(Offset(n).add),
    "seed": lambda n: Dataset.range(9).shuffle(3, seed=n),
    "argument": lambda n: Dataset.range(9).take(n),
    "order": lambda n: [Dataset.range(9).take(3).skip(1), Dataset.range(9).skip(1).take(3)][n],
    "dataset inside": lambda n: Dataset.from_tensors(Dataset.range(n)),
    "generator's argument": lambda n: Dataset.from_generator(range, args=(n,)),
}


@pytest.mark.parametrize("plan", DIFFERENT)
def test_what_may_give_something_else_differs(plan):
    assert DIFFERENT[plan](0).fingerprint() != DIFFERENT[plan](1).fingerprint()


def test_an_edit_of_a_function_or_a_number_that_the_function_reads_shows(monkeypatch):
    before = mapped(scaled).fingerprint()
    monkeypatch.setitem(globals(), "SCALE", 4)
    changed = mapped(scaled).fingerprint()
    assert changed != before
    monkeypatch.setitem(globals(), "SCALE", 3)
    monkeypatch.setitem(globals(), "doubled", lambda x: x + x)
    assert mapped(scaled).fingerprint() not in {before, changed}
    monkeypatch.undo()
    assert mapped(scaled).fingerprint() == before


def test_labels_and_lines_do_not_count_and_other_packages_count_by_name():
    first = Dataset.range(3).map(doubled, name="a")
    second = Dataset.range(3).map(doubled)
    assert first.fingerprint() == second.fingerprint()
    assert mapped(lambda x: np.stack([x])).fingerprint() != mapped(lambda x: np.hstack([x])).fingerprint()


def test_cycles_end():
    def countdown(n):
        return 0 if n < 1 else countdown(n - 1)

    loop = []
    loop.append(loop)
    offset = Offset(1)
    offset.by = offset
    for function in (countdown, lambda x: loop, offset.add):
        assert mapped(function).fingerprint() == mapped(function).fingerprint()


def test_it_is_the_same_in_another_process():
    code = (
        "import numpy as np\nfrom dataset import Dataset\n"
        "words = {'a', 'b', 'c', 'd'}\n"
        "def known(x, y):\n    return (x in (1, 2, 3), y, x in {4, 5, 6}, str(y) in words)\n"
        "plan = Dataset.from_tensor_slices((np.arange(3), ['a', 'b', 'c'])).map(known).shuffle(3, seed=1)\n"
        "print(plan.fingerprint())"
    )
    command, options = [sys.executable, "-c", code], {"capture_output": True, "text": True}
    found = {subprocess.run(command, env={"PYTHONHASHSEED": s}, check=True, **options).stdout for s in ("1", "2", "3")}
    assert len(found) == 1


def test_a_parser_counts_as_what_it_was_made_from_and_not_by_what_it_has_parsed():
    def records():
        return Dataset.from_tensors(io.encode_example({"x": np.int64(3)}))

    parser = io.ExampleParser({"x": io.FixedLenFeature([], np.int64)})
    other = io.ExampleParser({"x": io.FixedLenFeature([1], np.int64)})
    before = records().map(parser).fingerprint()
    list(records().map(parser))
    assert records().map(parser).fingerprint() == before
    assert records().map(other).fingerprint() != before


def test_functions_of_the_library_count_by_name_and_what_they_hold_by_value():
    def resampled(class_func, target):
        resampled = Dataset.range(9).rejection_resample(class_func, [target, 1 - target], [0.5, 0.5], seed=1)
        return resampled.fingerprint()

    def parity(x):
        return x % 2

    assert resampled(parity, 0.5) == resampled(parity, 0.5)
    assert len({resampled(parity, 0.5), resampled(lambda x: 1 - x % 2, 0.5), resampled(parity, 0.25)}) == 3

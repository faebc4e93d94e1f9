"""Fingerprints and step digests: equal for pipelines built alike, different where what comes out may differ."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SparseTensor, TensorSpec, TFRecordDataset, io
from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.fingerprints.step_digests import difference, stable_digests, step_digests
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
def test_what_is_built_alike_is_equal_and_like_nothing_else_also_after_it_ran(plan):
    ran = ALIKE[plan]()
    mine, before = ran.fingerprint(), step_digests(ran.plan)
    assert isinstance(mine, np.uint64)
    assert all(digest for _, digest in before)
    try:
        list(itertools.islice(ran, 9))
        _ = ran.element_spec
    except Exception:  # noqa: S110  # some of the functions take no such elements
        pass
    stored = stable_digests(ran.plan, before)
    assert stored == before
    assert ran.fingerprint() == mine
    for name, make in ALIKE.items():
        assert (make().fingerprint() == mine) == (name == plan)
        assert (difference(stored, step_digests(make().plan)) == "") == (name == plan)


BASE = Dataset.range(10)


def generated(signature):
    return Dataset.from_generator(doubled, output_signature=signature)


def resampled(class_func, target):
    return BASE.rejection_resample(class_func, [target, 1 - target], [0.5, 0.5], seed=1)


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
    "parser": lambda n: mapped(io.ExampleParser({"a": io.FixedLenFeature([[], [1]][n], np.int64)})),
    "function of an op of the library": lambda n: resampled([lambda x: x % 2, lambda x: 1 - x % 2][n], 0.5),
    "argument of an op of the library": lambda n: resampled(doubled, 0.5 + n / 4),
    "output type": lambda n: Dataset.range(10, output_type=[np.int64, np.int32][n]),
    "share": lambda n: BASE.shard(3, n),
    "function": lambda n: BASE.map([doubled, scaled][n]),
    "remainder": lambda n: BASE.batch(2, drop_remainder=bool(n)),
    "padding": lambda n: BASE.padded_batch(2, padding_values=np.int64(n)),
    "endless": lambda n: BASE.repeat([None, 2][n]),
    "reshuffling": lambda n: BASE.shuffle(5, seed=1, reshuffle_each_iteration=bool(n)),
    "cycle length": lambda n: BASE.interleave(Dataset.range, 2 + n),
    "order of inputs": lambda n: [BASE.concatenate(BASE.take(2)), BASE.take(2).concatenate(BASE)][n],
    "nested inputs": lambda n: [Dataset.zip(BASE, (BASE, BASE)), Dataset.zip((BASE, BASE), BASE)][n],
    "names of inputs": lambda n: [Dataset.zip((BASE, BASE)), Dataset.zip({"a": BASE, "b": BASE})][n],
    "list": lambda n: Dataset.from_tensors([(1, 2), [1, 2]][n]),
    "names": lambda n: Dataset.from_tensor_slices({"ab"[n]: [1]}),
    "signature": lambda n: generated(TensorSpec((), [np.int64, np.float32][n])),
    "kind of signature": lambda n: generated([TensorSpec, RaggedTensorSpec][n]((None, None))),
    "compression": lambda n: TFRecordDataset(["a"], ["", "GZIP"][n]),
    "files": lambda n: TFRecordDataset(["a", "b"][: 1 + n]),
}
SAME_PLANS = {"data", "bytes", "captured", "captured array", "constant", "default", "keyword default", "partial"}
SAME_PLANS |= {"element", "callable object", "method", "seed", "parser", "function of an op of the library"}


@pytest.mark.parametrize("plan", DIFFERENT)
def test_what_may_give_something_else_differs_and_in_plans_data_and_code_do_not_count(plan):
    one, other = (DIFFERENT[plan](n) for n in range(2))
    assert one.fingerprint() != other.fingerprint()
    assert difference(step_digests(one.plan), step_digests(other.plan))
    assert (fingerprint(one.plan) == fingerprint(other.plan)) == (plan in SAME_PLANS)


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
    assert fingerprint(first.plan) == fingerprint(second.plan)
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

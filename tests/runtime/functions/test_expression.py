"""Expression graphs: functions as people write them run on columns, with the results of single calls."""

import dis
import functools
import gc
import types
import weakref
from collections import namedtuple
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from dataset import Dataset
from dataset.optimize.driver import optimize
from dataset.runtime.functions import bytecode, expression
from dataset.runtime.functions.bytecode import instructions_of
from dataset.runtime.functions.expression import Graph, graph_of
from dataset.runtime.functions.kernels import columns
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.columns_at_once import columns_at_once, columns_recorded
from support.pipelines import unoptimized

# These functions are what users write:
# ruff: noqa: RET505, C408, B008, PLR1730, T201, PLW0108, FURB171, UP031, UP032, C417

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 4, 4), np.uint8)
LABELS = np.arange(40) % 7
PAIRS = IMAGES, LABELS
NUMBERS_OF_ROWS = {"image": IMAGES, "label": LABELS}
ROWS = {"image": IMAGES, "label": LABELS, "name": [b"%d" % i for i in range(40)]}

SCALE = 2.0
SHIFT = {"mean": 3, "std": 0.5, "deep": {"values": [1, 2.5, (3, 4)]}}
TABLE = np.linspace(0, 1, 7)
SIZE = (2, 8)


@pytest.fixture(autouse=True, scope="module")
def _at_once():
    with columns_at_once():
        yield


def scaled(x, by=SCALE, *, shift=1):
    return x * by + shift


def sign(x):
    if x > 3:
        return 1
    elif x == 3:
        return 0
    return -1


def applied(function, x):
    return function(x)


@dataclass
class Config:
    scale: float = 0.5
    offsets: tuple = (1, 2)


class Model:
    rate = 3

    def __init__(self, config):
        self.config = config
        self.function = scaled
        self.mean = np.float32(7)

    def normalized(self, image):
        return (image - self.mean) * self.config.scale + self.offset(self.config.offsets[1])

    @staticmethod
    def offset(x):
        return x + 1

    def __call__(self, image, label):
        return self.normalized(image), self.function(label) * self.rate


def nested(factor):
    def inner(x):
        return x * factor

    def outer(x):
        return inner(x) + inner(factor)

    return outer


def updated(row):
    row = dict(image=row["image"], label=row["label"])
    row["scaled"] = row["image"] / 255
    row["both"] = {"again": row.pop("label"), "image": row["image"]}
    del row["image"]
    row.update(one=1, two=row.get("nothing", 2))
    return row


def written(row):
    row["label"] += 1
    row["image"] = row["image"].astype(np.float32)
    row["image"] /= 255
    row["image"][0, 1:] = 0.5
    row["image"][-1] = row["label"]
    row["image"][1:2] = 3
    return row


def early(x):
    if x == 2:
        return x * 10
    y = x + 1
    if x < 2 or x == 5:
        y = y * 2
    return y if y % 3 else -y


def chosen(image, label):
    x = image.astype(np.float32)
    if label % 2:
        x = x[:, ::-1]
    return x, label


def reduced(image, label):
    x = (image / 3).T[1:, ::-1]
    return x.sum() if label % 2 else x.mean(axis=0).sum()


def optional(x, mask=None, labels=()):
    if mask is not None:
        x = x * mask
    if labels:
        return x
    return x - 1


def caught(x):
    try:
        return x // 1
    except ZeroDivisionError:
        return x


def checked(x):
    assert x >= 0, "negative"
    if x > 100:
        raise ValueError(f"{x} is too large")
    return x + 1


def unpacked(image, label):
    a, b, c, d = image
    (e, f) = label, b[1]
    return a + d, c, e * 2, f


def swapped(x, y):
    x, y = y, x
    del y
    return x


# Loops whose number of steps is known

KEYS = ["image", "label"]
WEIGHTS = {"image": 0.5, "label": 2}
COLUMNS = {"x_0": LABELS, "x_1": LABELS * 2, "x_2": LABELS * 3}
LAYERS = [(2, 1), (3, 0.5)]


class Limits(NamedTuple):
    low: int
    high: float


@dataclass(slots=True)
class Slotted:
    scale: float
    limits: Limits


class Rescaler:
    names = ("image", "label")
    factor = 3

    def __init__(self):
        self.settings = Slotted(0.25, Limits(1, 2.5))

    @classmethod
    def scaled(cls, x):
        return x * cls.factor

    def __call__(self, row):
        limits = self.settings.limits
        return {name: self.scaled(row[name]) * self.settings.scale + limits.low - limits.high for name in self.names}


COLUMNS_IN_ORDER = ("x_0", "x_1", "x_2")
OPTIONS = {"by": 3, "shift": 2.5}
STEPS = 6
LIMITS = Limits(3, 4.5)


def polynomial(x, *coefficients, offset=0):
    total = offset
    for power, coefficient in enumerate(coefficients):
        total = total + coefficient * x**power
    return total


def normalized(row):
    out = dict()
    for key, weight in WEIGHTS.items():
        if key == "label":
            continue
        out[key] = row[key] * weight
    out["extra"] = row["label"]
    for key in KEYS:
        if key in out:
            out[key] = out[key] + 1
            break
    return out


def steps(x):
    total = 0
    for i in range(1, STEPS, 2):
        for j in reversed(range(i)):
            if i * j % 2 == 0:
                total += x * (i + j)
    return total


def inner_functions(row):
    names = ("image", "label")

    def scale(key, by=WEIGHTS["image"]):
        return row[key] * by

    return (
        {name: scale(name) for name in names},
        tuple(map(scale, names)),
        tuple(scale(by=n, key=name) for n, name in zip((1, 2), names, strict=True)),
    )


def largest(row):
    best = row["x_0"]
    for i in range(3):
        if row[f"x_{i}"] > best:
            best = row[f"x_{i}"]
    return best


STATS = {"image": (127.5, 50), "label": (3, 2.5)}
SKIPPED = ["name"]
NAMES = {"name"}
FACTORS = {"image": 0.5}


def in_place(row):
    for key in row:
        if key in SKIPPED:
            continue
        row[key] = row[key] / 2
    return row


def in_place_items(row):
    out = dict(row)
    for key, value in row.items():
        if key.startswith("im"):
            out[key] = value / 255
            out[f"{key}_{len(key)}"] = len(out)
    return out


def replaced(row):
    row = {**row}
    for key in list(row.keys()):
        row[key + "_2"] = row.pop(key)
    return row


def of_views(row):
    parts = dict(row, label=row["label"] * 2)
    a, _, _ = parts.values()
    pairs = zip(parts, row.values(), strict=True)
    copy = dict(parts.items())
    return {
        "len": len(row) + len(parts),
        "pairs": dict((key.upper(), value) for key, value in pairs),  # noqa: C402
        "tuple": (*copy.values(),),
        "keys": tuple([key for key in copy if key not in {"name"}]),
        "first": a,
    }


def given_by_name(image, label, name):
    return image * 2, label, name


def nested_items(row):
    return {key: {name: value * 2 for name, value in part.items()} for key, part in row.items()}


def copied(row):
    first = {key: row[key] for key in KEYS}
    second = {**first, "image": first["label"]}
    first["image"] = 7
    return first["image"], second["image"], first["label"]


def unpacked_constants(x):
    (scale, shift), pair = LAYERS[0], LAYERS[1]
    a, b = pair
    return x * scale * a + shift * b


def viewed(image, label):
    x = image / 2
    y = x[::-1].T
    y[0] = label
    return x, y


def cut_out(image, label):
    x = image.astype(np.float32)
    if label % 2:
        x[1:3] = 0
    return x, label


def listed(image, label):
    x = [image / 2]
    both = x, x
    if label % 2:
        both[0][0][0] = label
    return both[0][0], both[1][0]


LONG = eval("lambda x: x" + "".join(f" + {i}.5" for i in range(300)))  # noqa: S307  # arguments of more than a byte


def one_hot(label):
    found = np.zeros(7, np.float32)
    part = found[2:]
    found[label] = 1
    return found, part, np.ones((2, 3))


def smoothed(label):
    found = np.full(8, 0.05)
    if label % 3:
        found[label] = 0.9
    found[-label - 1] -= 0.01
    found *= 2
    return {"target": found, "label": label}


def histogram(image, label):
    found = np.zeros(16, np.int64)
    for row in range(4):
        found[image[0, row] % 16] = label
    return found


class Labels:
    """Lookup tables."""

    def __init__(self, numbers, names=tuple("abcdefg")):
        self.numbers, self.names = numbers, names
        self.weights = {0: 0.5, 3: 1.5}

    def __call__(self, row):
        number = self.numbers.get(row["name"], -1)
        weight = self.weights.get(row["label"] % 4, 1.0)
        name = self.names[row["label"]]
        return {"image": row["image"] * weight, "number": number, "known": self.numbers[row["name"]], "name": name}


def texts(row):
    name = row["name"].decode().zfill(3)
    kind = "odd" if name.endswith(("1", "3", "5")) else name.upper().replace("0", "-", 1)
    return {
        "name": name,
        "kind": kind + ".png",
        "is": (row["name"] == b"12", row["name"] != b"3", name in {"003", "004"}, row["name"] not in [b"1"]),
        "number": int(name) + len(kind),
        "value": float(row["name"]) * row["image"],
    }


def types_of_all(row):
    found = [isinstance(part, np.ndarray) for part in (row["image"], row["label"], row["image"] + 1, row["label"] / 2)]
    name = row["name"]
    if isinstance(name, bytes):
        name = name.decode()
    assert not isinstance(row["label"], (int, str))
    assert isinstance(row["label"], np.integer)
    return row["image"] / 2, name, tuple(found)


MEANS = [1, 2.5, 3, 4]
LIST_OF_SIZES = [2, 8]
STACKED = (np.arange(2.0), np.arange(2.0))


def masked(image):
    found = image / 2
    found[found > 60] = 0
    found[image < 9] = 1
    return found


def checked_name(row, longest):
    if len(row["name"]) > longest:
        raise ValueError(f"{row['name']} has {len(row['name'])} letters")
    return row["image"] * 2


SPLIT, MESSAGE = "train", "{} of {n:>3}"


def formatted(row):
    name, label, mean = row["name"].decode(), row["label"], row["image"].mean()
    width = 7
    texts = {
        "plain": f"{SPLIT}/{label}-{name}.png",
        "spec": f"{label:03d} {mean:.2f} {SCALE:>{width}} {name:>5} {name:{width}}",
        "converted": f"{name!r:>8} {label!s} {mean!r} {name!a}",
        "format": "{}-{:.1f}".format(label, mean) + MESSAGE.format(name, n=label) + format(mean, ".3e"),
        "percent": "%s/%05d" % (name, label) + "%.1f" % mean + ", %s" % name,
        "str": str(label) + str(label / 2) + repr(name) + SPLIT.upper() + "-".join([SPLIT, name, str(width)]),
        "bytes": b"%d:" % label + row["name"],
    }
    name += ".jpg"
    return {**texts, "name": name, "first": name[0] + name[-3:] + name[label % 2 :], "x": row["image"] / 2}


def in_texts(row):
    name = row["name"].decode()
    if not name:
        return row["image"] / 2, False
    is_low = name < "20" or "2" in name or name in ("30", f"{row['label']}")
    return row["image"] / (3 if is_low else 4), name not in SPLIT


def checked_with_messages(row):
    if row["label"] < 0:
        raise ValueError(f"negative: {row['label']} in {row['name']!r}")
    assert row["label"] < 7, f"{row['label']:.2f} is too large"
    assert row["image"].ndim == 2, "%d axes" % row["image"].ndim
    if row["label"] > 7:
        raise ValueError("{} is too large".format(row["label"]))
    return row["image"] / 255, row["label"]


class Point(NamedTuple):
    x: float
    y: float = 2.5

    def norm(self):
        return self.x + self.y


class Ordered(Point):
    def __iter__(self):
        return reversed((self.x, self.y))


class Doubled(Point):
    def __new__(cls, x):
        return super().__new__(cls, x, x)


class Sized(namedtuple("Sized", "image size")):  # noqa: PYI024
    __slots__ = ()

    @property
    def double(self):
        return self.size * 2


def points(image, label):
    point = Point(label / 2, y=label * 0.5)
    if label % 2:
        point = Point(1.5, point.x)
    x, y = point
    return {"point": point, "sized": Sized(image / 2, point.y + x), "norm": point[0] + y + len(point)}


FORMS = {
    "dict comprehension": (ROWS, lambda row: {key: row[key] for key in KEYS}),
    "dict comprehension of a tuple": (ROWS, lambda row: {f"{key}_2": row[key] * 2 for key in ("label", "image")}),
    "list comprehension": (ROWS, lambda row: [row[key] for key in ("image", "label")]),
    "comprehension with a condition": (ROWS, lambda row: {key: row[key] / 2 for key in KEYS if key != "image"}),
    "conditional in a comprehension": (ROWS, lambda row: [1 if row[key] > 3 else 2 for key in ("label", "label")]),
    "generator": (ROWS, lambda row: tuple(row[key] * weight for key, weight in WEIGHTS.items())),
    "stack": (COLUMNS, lambda row: np.stack([row[f"x_{i}"] for i in range(3)])),
    "array": (COLUMNS, lambda row: np.array([row[key] for key in COLUMNS_IN_ORDER])),
    "tuple of a list": (COLUMNS, lambda row: tuple([row[f"x_{i}"] for i in (2, 0)])),
    "nested": (
        COLUMNS,
        lambda row: {a: tuple(row[b] + i for i, b in enumerate(("x_0", a), start=1)) for a in ("x_1", "x_2")},
    ),
    "keys, values": (ROWS, lambda row: [row[k] * v for k, v in zip(WEIGHTS.keys(), [*WEIGHTS.values()], strict=False)]),
    "loop": (ROWS, normalized),
    "range": (LABELS, steps),
    "branches in a loop": (COLUMNS, largest),
    "copies": (ROWS, copied),
    "rest of arguments": (LABELS, lambda x: polynomial(x, 1, 2, 0.5, offset=3)),
    "spread": (PAIRS, lambda x, y: polynomial(*(y, x), 2) + polynomial(y, *[1, 2])),
    "spread of keywords": (LABELS, lambda x: scaled(x, **OPTIONS)),
    "merged constants": (ROWS, lambda row: {**WEIGHTS, "image": row["image"], "y": row["label"]}),
    "class method": (ROWS, Rescaler()),
    "class method of a class": (LABELS, lambda x: Rescaler.scaled(x) + LIMITS.low),
    "functions of its own": (ROWS, inner_functions),
    "list, displayed": (PAIRS, lambda x, y: [*LAYERS[1], x, *(y, 1)]),
    "unpacked constants": (LABELS, unpacked_constants),
    "helper": (LABELS, lambda x: scaled(x)),
    "keywords": (LABELS, lambda x: scaled(by=x, shift=2, x=3)),
    "helper of a helper": (LABELS, lambda x: applied(scaled, scaled(x, 2))),
    "closures": (LABELS, nested(3)),
    "method": (IMAGES, Model(Config()).normalized),
    "object": (PAIRS, Model(Config())),
    "method in a lambda": (PAIRS, lambda image, label, model=Model(Config()): model(image, label)),
    "partial": (LABELS, functools.partial(scaled, by=3)),
    "partial of a method": (IMAGES, functools.partial(functools.partial(Model(Config(2.5)).normalized))),
    "class": (LABELS, lambda x: Model.offset(x) * Model.rate),
    "namespace": (LABELS, lambda x, c=types.SimpleNamespace(a=4): x * c.a),
    "dict": (LABELS, lambda x: (x - SHIFT["mean"]) / SHIFT["std"] + SHIFT["deep"]["values"][2][1]),
    "shape": (IMAGES, lambda x: (x.reshape(SIZE), x.reshape(2, -1) if x.ndim == 2 else x, x.shape[0] * 2)),
    "table": (LABELS, lambda x: TABLE[x]),
    "branches in a helper": (LABELS, lambda x: (sign(x), sign(x - 1))),
    "early": (LABELS, early),
    "branch on a label": (PAIRS, chosen),
    "branch after views": (PAIRS, reduced),
    "crop": (PAIRS, lambda image, label: (image[label // 4 : label // 4 + 2], label)),
    "diagonal": (IMAGES, lambda x: np.diagonal(x)),
    "repeated": (IMAGES, lambda x: np.repeat(np.expand_dims(x, -1), 3, axis=-1)),
    "rounded": (IMAGES, lambda x: np.round(x / 7, 1)),
    "conditional": (PAIRS, lambda image, label: {"x": image if label > 2 else image * 2, "y": label}),
    "chain": (LABELS, lambda x: 1 if 2 < x <= 5 else 0),
    "and": (LABELS, lambda x: 1 if x > 1 and x != 4 else 0),
    "value of or": (LABELS, lambda x: x or 9),
    "not": (LABELS, lambda x: 5 if not x else 6),
    "in": (LABELS, lambda x: (x in (1, 3), x not in [2], 1 if x in (0, 6) else 2)),
    "attribute": (PAIRS, lambda image, label: (image if image.size else 1, label if label.ndim else label + 1)),
    "optional": (LABELS, optional),
    "optional, given": (LABELS, functools.partial(optional, mask=2, labels=("a",))),
    "new dict": (ROWS, updated),
    "dict in place": (ROWS, written),
    "dict, names kept": (ROWS, lambda row: {"name": row["name"], "label": row["label"] + 1}),
    "dict of a copy": (ROWS, lambda row: {**row, "label": row["label"] * 2}),
    "names in branches": (ROWS, lambda row: {"n": row["name"], "x": 1} if row["label"] else {"n": b"", "x": 2}),
    "list": (PAIRS, lambda image, label: [image + 1, label]),
    "constants": (LABELS, lambda x: (x, 5, 2.5, True, b"a", "b", np.float32(3), TABLE)),
    "only constants": (LABELS, lambda x: {"a": 1}),
    "caught": (LABELS, caught),
    "checked": (LABELS, checked),
    "written view": (PAIRS, viewed),
    "written in a branch": (PAIRS, cut_out),
    "written in a list": (PAIRS, listed),
    "long": (LABELS, LONG),
    "truth, identity, bits": (LABELS, lambda x: (not x, x is None, x is not None, ~x)),
    "unpacked": (PAIRS, unpacked),
    "swapped": (PAIRS, swapped),
    "reductions": (IMAGES, lambda x: (x.mean(), x.max() - x.min(), np.sum(x, axis=0))),
    "ranks": (PAIRS, lambda image, label: image * label + image[0] * np.arange(4)),
}


FORMS |= {
    "standardized": (NUMBERS_OF_ROWS, lambda row: {k: (v - STATS[k][0]) / STATS[k][1] for k, v in row.items()}),
    "standardized if known": (ROWS, lambda row: {k: v / STATS[k][1] if k in STATS else v for k, v in row.items()}),
    "keys of an element": (NUMBERS_OF_ROWS, lambda row: {key: row[key] / 255 for key in row}),
    "renamed": (ROWS, lambda row: {f"x_{key}": value for key, value in row.items() if key != "image"}),
    "values of an element": (COLUMNS, lambda row: np.stack(list(row.values()))),
    "sum of values": ({"a": IMAGES, "b": IMAGES / 2}, lambda row: sum(row.values())),
    "keys of a part": (
        {"part": NUMBERS_OF_ROWS, "id": LABELS},
        lambda row: {**{k: v + 1 for k, v in row["part"].items()}, "id": row["id"]},
    ),
    "keys in a tuple": ((NUMBERS_OF_ROWS, LABELS), lambda row, y: ({k: v * 2 for k, v in row.items()}, y)),
    "nested items": ({"a": NUMBERS_OF_ROWS, "b": COLUMNS}, nested_items),
    "in place": (ROWS, in_place),
    "in a copy": (ROWS, in_place_items),
    "views": (ROWS, of_views),
    "pairs from a function": (NUMBERS_OF_ROWS, lambda row: dict(map(lambda kv: (kv[0], kv[1] / 2), row.items()))),
    "positions of keys": (ROWS, lambda row: {f"{k}_{i}": v for i, (k, v) in enumerate(row.items())}),
    "joined dicts": (ROWS, lambda row: {k: v for k, v in (row | {"x": row["image"] / 2}).items() if k != "image"}),
    "copy of the keys": (ROWS, replaced),
    "in a given order": (NUMBERS_OF_ROWS, lambda row: {k: row[k] / 2 for k in sorted(row)}),
    "keys of a set": (ROWS, lambda row: {k: v / 2 for k, v in row.items() if k not in NAMES}),
    "defaults of a table": (NUMBERS_OF_ROWS, lambda row: {k: v * FACTORS.get(k, 2) for k, v in row.items()}),
    "dtypes": (
        NUMBERS_OF_ROWS,
        lambda row: {k: v.astype(np.float32) if v.dtype == np.uint8 else f"{v.dtype}" for k, v in row.items()},
    ),
    "keywords of an element": (ROWS, lambda row: given_by_name(**row)),
    "one-hot": (LABELS, one_hot),
    "smoothed": (LABELS, smoothed),
    "written at computed places": (PAIRS, histogram),
    "raises": (ROWS, functools.partial(checked_name, longest=2)),
    "raises for some": (ROWS, functools.partial(checked_name, longest=1)),
    "lookups": (ROWS, Labels({b"%d" % i: i % 3 for i in range(40)})),
    "lookups, some missing": (ROWS, Labels({b"%d" % i: i % 3 for i in range(30)}, names=[*"abcdefg"])),
    "texts": (ROWS, texts),
    "formatted": (ROWS, formatted),
    "texts in texts": (ROWS, in_texts),
    "raises with a message": (ROWS, checked_with_messages),
    "named tuples": (PAIRS, points),
    "named tuple": (PAIRS, Sized),
    "named tuple of numbers": (LABELS, lambda x: Point(x / 2)),
    "types": (ROWS, types_of_all),
    "list of numbers": (IMAGES, lambda x: (x[0] - MEANS) / [0.5, 1, 2, 4]),
    "list of numbers, as a shape": (IMAGES, lambda x: x.reshape(LIST_OF_SIZES)),
    "mask": (IMAGES, masked),
    "tuple of an array": (IMAGES, lambda x: np.stack(STACKED) + x[:2, :2]),
    "repeated list": (PAIRS, lambda image, label: (np.stack([image] * 3, -1), np.array([label] * 2))),
}


def lengths_of(make):
    """Check that the results are those of single calls; return the lengths of the chunks that ran on columns."""
    expected = outcomes(iter(unoptimized(make())))
    with columns_recorded() as lengths:
        assert_elements_equal(outcomes(iter(make())), expected)
    return lengths


@pytest.mark.parametrize(("rows", "function"), FORMS.values(), ids=FORMS)
def test_runs_on_columns_with_the_results_of_single_calls(rows, function):
    slices = Dataset.from_tensor_slices(rows)
    assert sum(lengths_of(lambda: slices.map(function).batch(8))) > columns.TRIAL
    lengths = lengths_of(lambda: slices.map(function).prefetch(8))
    assert lengths or not graph_of(function).is_whole  # otherwise, elements are requested one by one


def test_each_opcode_of_this_version_is_in_a_form():
    codes = [function.__code__ for _, function in FORMS.values() if isinstance(function, types.FunctionType)]
    for code in codes:  # and those of inner functions
        codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
    used = {one.opname for code in codes for one in dis.get_instructions(code)}
    left = {opname for opname in bytecode._STEPS if dis.opmap.get(opname, 256) < 256} - used  # others are never run
    assert left <= {"CACHE", "NOP", "LOAD_FAST_CHECK", "LOAD_COMMON_CONSTANT"}, "add a form that uses it"


@pytest.mark.parametrize("name", ["object", "new dict", "branch on a label"])
def test_resumes(name):
    rows, function = FORMS[name]
    make = lambda: Dataset.from_tensor_slices(rows).map(function).batch(8)
    check_operator(make, outcomes(iter(unoptimized(make()))))


def test_a_filter_runs_on_columns_too():
    assert lengths_of(lambda: Dataset.from_tensor_slices(LABELS).filter(lambda x: sign(x) > 0 or x == 1).batch(4))


# What is not part of a graph

calls = []


def recursive(x):
    return recursive(x - 1)


def branchy(x):
    for_all = 0
    for_all += 1 if x > 1 else 2
    for_all += 1 if x > 2 else 2
    for_all += 1 if x > 3 else 2
    for_all += 1 if x > 4 else 2
    for_all += 1 if x > 5 else 2
    return for_all


def looping(x):
    while x > 1:
        x = x // 2
    return x


def both_ways(x):
    if x > 2:
        return sorted(x)
    return print(x)


def helping(x):
    y = x + 1
    return print(y)


class Odd:
    def __init__(self):
        self.values = ["1"]

    @property
    def size(self):
        calls.append("size")
        return 3

    def __getattr__(self, name):
        calls.append(name)
        return 3


class Always(Odd):
    def __getattribute__(self, name):
        calls.append(name)
        return 3


class Meta(type):
    def __getattribute__(cls, name):
        calls.append(name)
        return 3


class Classy(metaclass=Meta):
    pass


class Strange(Odd):
    def __call__(self, x):
        return print(x)


ODD, ALWAYS, CLASSY, STRANGE = Odd(), Always(), Classy(), Strange()
lines = lambda function, offset: function.__code__.co_firstlineno + offset

MANY = list(range(9999))


def twice(x):
    parts = (x * y for y in (1, 2))
    return tuple(parts), tuple(parts)


def late(row):
    parts = (row[key] for key in ("image", "label"))
    row["label"] = 0
    return tuple(parts)


def meanwhile(row):
    for value in map(row.get, ("image", "label")):
        row["label"] = value
    return row


def grown(x):
    parts = also = [x]
    also += [x]
    return [y for y in parts]  # noqa: C416


REASONS = [
    (lambda x: print(x), "it calls print()"),
    (lambda x: helping(x), f"it calls print() (line {lines(helping, 2)}, in helping)"),
    (helping, f"it calls print() (line {lines(helping, 2)})"),
    (lambda x: [y for y in x], "it contains a loop whose number of steps is not known"),  # noqa: C416
    (lambda x: [x for y in x[:2]], "it contains a loop whose number of steps is not known"),
    (lambda x: [x * y for y in range(99999)], "it calls range()"),
    (lambda x: [x * y for _ in range(99) for y in range(99)], "it is too long, or has too many branches"),
    (lambda x: scaled(*x), "it calls a function with a number of arguments that is not known"),
    (lambda x: scaled(**x), "it calls a function with keyword arguments that are not known"),
    (lambda x: [x * y for y in MANY], "it contains a loop over a large container, or over one of objects"),
    (twice, f"it uses an iterator twice (line {lines(twice, 2)})"),
    (late, f"it modifies something while it uses an iterator (line {lines(late, 3)})"),
    (meanwhile, f"it modifies something while it uses an iterator (line {lines(meanwhile, 1)})"),
    (grown, f"it modifies a list (line {lines(grown, 2)})"),
    (lambda x: x.tobytes(), "it calls the method tobytes()"),
    (lambda x: x.base, "it uses the attribute base of a value"),
    (recursive, "it calls itself"),
    (looping, "it contains a loop"),
    (both_ways, f"it calls sorted() (line {lines(both_ways, 2)})"),
    (branchy, "it is too long, or has too many branches"),
    (lambda x: x + SHIFT["deep"]["values"], "it reads 'values' of an object, of type list"),
    (lambda x: x * ODD.values, "it reads 'values' of an object, of type list"),
    (lambda x: x * ODD.size, "it reads the global ODD, of type Odd"),
    (lambda x: x * ODD.nothing, "it reads the global ODD, of type Odd"),
    (lambda x: x * ALWAYS.values, "it reads the global ALWAYS, of type Always"),
    (lambda x: x + ODD, "it reads the global ODD, of type Odd"),
    (lambda x: x + CLASSY, "it reads the global CLASSY, of type Classy"),
    (lambda x: CLASSY(x), "it calls Classy()"),
    (lambda x: STRANGE(x), f"it calls print() (line {lines(Strange.__call__, 1)}, in __call__)"),
    (lambda x: None, "it returns None"),
]
NEVER = [lambda x: Classy.values * x, lambda x: Classy()(x), lambda x: x[ODD], lambda x: (yield x)]
NEVER += [lambda x: sorted((x, 1)), lambda x: x.real.foo, lambda x: lambda: x, lambda *x: x[0]]


@pytest.mark.parametrize(("function", "reason"), REASONS)
def test_says_why_there_is_no_graph(function, reason):
    calls.clear()  # pytest looks at the objects of a module
    found = graph_of(function)
    assert isinstance(found, str)
    assert found.startswith(reason)
    assert found.count("line") <= 1
    (miss,) = optimize(Dataset.range(3).map(function).plan).missed
    assert found in str(miss)
    assert calls == []  # no code of the user ran


@pytest.mark.parametrize("function", NEVER)
def test_other_functions_have_no_graph(function):
    calls.clear()
    assert not isinstance(graph_of(function), Graph)
    assert calls == []


def test_one_side_of_a_branch_may_do_anything():
    seen = []

    def function(x):
        if x == 33:
            seen.append(int(x))
            return x * 2
        return x + 1

    found = graph_of(function)
    assert isinstance(found, Graph)
    assert not found.is_whole
    slices = Dataset.from_tensor_slices(np.arange(40))
    assert lengths_of(lambda: slices.map(function).batch(8))
    assert seen == [33, 33]  # with columns and without


def test_an_operation_without_use_may_fail():
    def function(x):
        TABLE[x]
        return x

    assert isinstance(graph_of(function), Graph)
    make = lambda: Dataset.from_tensor_slices(np.array([1, 2, 3, 9] * 10)).map(function).batch(4)
    assert lengths_of(make) == [columns.TRIAL]
    assert sum(isinstance(outcome, IndexError) for outcome in outcomes(iter(make()))) == 10


@pytest.mark.parametrize("value", [np.arange(8.0), np.array([3.0]), np.ones((2, 3))])
def test_an_array_that_is_stored_at_a_place_fails_as_it_does_for_one_element(value):
    def function(x):
        found = np.zeros(9)
        found[x] = value
        return found

    lengths_of(lambda: Dataset.from_tensor_slices(LABELS).map(function).batch(8))


def set_first(image, label):
    found = image.astype(np.int8)
    found[0, 0] = int(label)
    return found


def set_at(image, label):
    found = np.zeros(4, np.int8)
    found[label % 4] = int(label)
    return found, image


@pytest.mark.parametrize("function", [set_first, set_at])
def test_an_int_that_does_not_fit_into_an_array_fails_its_element(function):
    labels = np.where(np.arange(40) == 33, 300, 5)
    make = lambda: Dataset.from_tensor_slices((IMAGES, labels)).map(function).batch(4)
    lengths_of(make)
    assert sum(isinstance(outcome, OverflowError) for outcome in outcomes(iter(make()))) == 1


def test_what_is_read_may_be_a_tuple_of_arrays():
    parts = (np.arange(3.0), [1, 2], "a")
    assert lengths_of(lambda: Dataset.from_tensor_slices(IMAGES).map(lambda x: x[:3, :3] + parts[0]).prefetch(8))
    lengths_of(lambda: Dataset.from_tensor_slices(IMAGES).map(lambda x: np.stack((*parts[:1], x[0, :3]))).prefetch(8))


def test_a_table_is_looked_up_when_it_is_used():
    table = {b"%d" % i: i for i in range(40)}

    def function(row):
        return row["image"] + table[row["name"]]

    def passed(row):
        if row["label"] == 5:
            table[row["name"]] += 100
        return row

    for make in (lambda: Dataset.from_tensor_slices(ROWS).map(function).batch(8),) * 2:
        assert lengths_of(make)
        table[b"39"] = 7
    with columns_recorded():
        first = [*Dataset.from_tensor_slices(ROWS).map(passed).map(function)]
    assert first[5][0, 0] == ROWS["image"][5][0, 0] + 105


def test_texts_alone_are_faster_one_by_one():
    assert lengths_of(lambda: Dataset.from_tensor_slices(ROWS["name"]).map(lambda x: x.decode()).batch(8)) == []


NUMBERS = ["?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8"]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_of_all_dtypes_are_formatted_as_single_calls_do(dtype):
    values = np.array([0, 1, 3, 1e-3, -0.0, 70000.25, np.nan, np.inf] * 5 if dtype[0] == "f" else [0, 1, 77] * 13)
    values = values.astype(dtype)
    function = lambda image, x: (image / 2, f"{x} {x!r} {x:>9} {x / 3:.2e} {x or -1}", "%s" % x, str(image[0]))
    assert lengths_of(lambda: Dataset.from_tensor_slices((IMAGES[: len(values)], values)).map(function).batch(8))


def test_a_number_that_cannot_be_formatted_fails_its_element():
    function = lambda image, label: (image, f"{label:{'d' if label else '.q'}}", "%c" % (int(label) - 1))
    make = lambda: Dataset.from_tensor_slices(PAIRS).map(function).batch(4)
    lengths_of(make)
    assert {type(one) for one in outcomes(iter(make()))} >= {ValueError}


def halved(row):
    return {key: value / 2 for key, value in row.items()}


@pytest.mark.parametrize("parallel", [None, 2])
def test_keys_that_are_known_only_when_it_runs(parallel):
    """The source is a generator, whose elements have other keys in another order from the 20th on."""

    def rows():
        for i in range(40):
            image = IMAGES[i]
            yield {"image": image, "label": LABELS[i]} if i < 20 else {"label": LABELS[i], "image": image}

    make = lambda: Dataset.from_generator(rows).map(halved, num_parallel_calls=parallel).prefetch(8)
    assert "map(halved)" in make().explain()
    assert "on columns if its elements are dicts" in make().explain()
    lengths_of(make)
    first = lambda: Dataset.from_generator(rows).take(20).map(halved, num_parallel_calls=parallel).batch(10)
    assert lengths_of(first)
    keys = [[*element] for element in make()]
    assert keys == [[*element] for element in unoptimized(make())]


def test_chunks_of_several_structures():
    """Chunks whose elements have other keys are computed by their own graphs; those that are not dicts, one by one."""
    halves = [Dataset.from_tensor_slices(rows).map(lambda row: row) for rows in (NUMBERS_OF_ROWS, COLUMNS)]
    assert sum(lengths_of(lambda: halves[0].concatenate(halves[1]).map(halved).prefetch(8))) > 60
    assert lengths_of(lambda: Dataset.from_tensor_slices(LABELS).map(lambda x: x).map(halved).prefetch(8)) == []


def grows(row):
    for key in row:
        row[key + "_2"] = row[key]
    return row


def shrinks(row):
    for key in row:
        if key == "image":
            del row["label"]
    return row


def changed_meanwhile(row):
    out = {}
    for key, value in row.items():
        row["label"] = 7
        out[key] = value
    return out, row


def grown_dict(row):
    out = {"a": row["image"] / 2}
    out["b"] = row["label"]
    return {key: value for key, value in out.items()}  # noqa: C416


@pytest.mark.parametrize("function", [grows, shrinks, changed_meanwhile, grown_dict])
def test_a_dict_that_changes_in_a_loop_gives_what_single_calls_give(function):
    lengths_of(lambda: Dataset.from_tensor_slices(NUMBERS_OF_ROWS).map(function).batch(8))
    lengths_of(lambda: Dataset.from_tensor_slices(NUMBERS_OF_ROWS).map(lambda row: row).map(function).prefetch(8))


def test_a_loop_over_a_heavy_argument_is_still_called_in_parallel():
    def function(words):
        return [print(word) for word in words]

    explained = Dataset.from_generator(lambda: iter([["a"]])).map(function).explain()
    assert "the function runs on whole columns" not in explained


def test_arrays_are_not_printed_by_functions_of_the_user():
    printed = []

    def number(x):
        printed.append(x)
        return "x"

    function = lambda x: (x, f"{x[0]}")
    slices = Dataset.from_tensor_slices(IMAGES)
    assert lengths_of(lambda: slices.map(function).batch(8))
    with np.printoptions(formatter={"int": number}):
        make = lambda: slices.map(function).batch(8)
        assert lengths_of(make) == []
        assert len(printed) == 2 * IMAGES[:, 0].size


def test_objects_of_the_user_are_not_formatted():
    class Printed:
        def __format__(self, spec):
            calls.append("format")
            return "x"

        __str__ = __repr__ = lambda self: format(self)

    held = Printed()
    calls.clear()
    functions = [
        *[lambda x: (x, f"{held}"), lambda x: (x, f"{held!r}"), lambda x: (x, f"{x:{held}}"), lambda x: (x, str(held))],
        *[lambda x: (x, "%s" % held), lambda x: (x, "{}".format(held)), lambda x: (x, str((x, held)))],
        *[lambda x: (x, f"{[held]}"), lambda x: (x, f"{(held, x)}"), lambda x: (x, repr({"a": held}))],
    ]
    assert not any(isinstance(graph_of(function), Graph) for function in functions)
    assert calls == []


@pytest.mark.parametrize("make", [Ordered, Doubled])
def test_classes_that_are_more_than_named_tuples_are_called(make):
    assert lengths_of(lambda: Dataset.from_tensor_slices(LABELS).map(lambda x: make(x / 2)).batch(8)) == []


def test_a_named_tuple_that_changes_is_called():
    class Local(NamedTuple):
        x: int

    def run(prepare, change):
        iterator = iter(prepare(Dataset.from_tensor_slices(LABELS).map(lambda x: Local(x * 2)).batch(8)))
        first = [next(iterator) for _ in range(3)]
        change()
        return first + outcomes(iterator)

    old = Local.__new__
    changes = {"code": lambda: setattr(Local, "__new__", lambda cls, x: old(cls, x * 3)), "none": lambda: None}
    for change in changes.values():
        found = run(lambda dataset: dataset, change)
        Local.__new__ = old
        assert_elements_equal(found, run(unoptimized, change))
        Local.__new__ = old


def test_an_index_out_of_range_fails_its_element():
    make = lambda: Dataset.from_tensor_slices(np.arange(40) % 9).map(one_hot).batch(4)
    lengths_of(make)
    assert sum(isinstance(outcome, IndexError) for outcome in outcomes(iter(make()))) == 8


def test_a_row_that_the_user_holds_is_not_modified():
    def function(image):
        image[0] = 0
        return image

    assert lengths_of(lambda: Dataset.from_tensor_slices(IMAGES).map(np.copy).map(function).batch(8)) == []


@pytest.mark.parametrize(
    "write",
    [
        lambda a: np.add(a, 1, out=a),
        lambda a: np.add(a, 1, a),
        lambda a: np.cumsum(a, None, None, a),
        lambda a: a.cumsum(out=a),
        lambda a: a.clip(3, 4, a),
    ],
)
def test_an_array_that_the_user_holds_is_not_modified(write):
    held = np.ones(3)

    def function(x):
        write(held)
        return x

    dataset = Dataset.from_tensor_slices(LABELS).map(function).batch(8)
    dataset.explain()
    assert held.tolist() == [1, 1, 1]
    expected = np.ones(3)
    for _ in LABELS:
        write(expected)
    list(dataset)
    assert held.tolist() == expected.tolist()


def test_a_dict_that_the_user_holds_is_not_modified():
    held = {"calls": 0, "last": {"x": 0}}

    def counted(x):
        held["calls"] += 1
        return x

    def nested_in(row):
        row["kept"] = held
        row["kept"]["last"]["x"] = row["x"]
        return {"x": row["x"]}

    def got(x):
        held.get("last")["x"] = x
        return x

    slices = Dataset.from_tensor_slices(LABELS)
    assert lengths_of(lambda: slices.map(counted).batch(8)) == []
    assert held["calls"] == 2 * len(LABELS)
    assert lengths_of(lambda: Dataset.from_tensor_slices({"x": LABELS}).map(nested_in).batch(8)) == []
    assert lengths_of(lambda: slices.map(got).batch(8)) == []
    assert held["last"] == {"x": LABELS[-1]}


# What a function reads may change at any time


def make_function():
    thing = Model(Config())
    thing.function = lambda x: scaled(x, shift=2)
    space = {
        "scaled": types.FunctionType(scaled.__code__, {}, "scaled", (3,)),
        "model": thing,
        "limits": [4],
        "polynomial": polynomial,
        "factors": {"a": 2, "b": 3},
        "steps": 3,
    }
    space["scaled"].__kwdefaults__ = {"shift": 5}
    template = lambda x: (
        scaled(x)
        + model.function(x) * model.config.scale  # noqa: F821
        + (limits[0] if model.rate else 0)  # noqa: F821
        + polynomial(x, *[factor for factor in factors.values()])  # noqa: C416, F821
        + (1 if factors else 2)  # noqa: F821
        + polynomial(x, *[1 for _ in range(steps)])
    )
    return types.FunctionType(template.__code__, space, "function")


def test_a_set_and_a_table_that_change_are_read_again():
    names, factors = {"image"}, {"label": 2}

    def run(prepare):
        names.clear(), factors.clear()
        names.add("image"), factors.update(label=2)
        function = lambda row: {k: v * factors.get(k, 3) for k, v in row.items() if k in names or k == "label"}
        iterator = iter(prepare(Dataset.from_tensor_slices(NUMBERS_OF_ROWS).map(function).batch(8)))
        found = [next(iterator), next(iterator)]
        factors["image"] = 5
        found.append(next(iterator))
        names.clear()
        return found + outcomes(iterator)

    with columns_recorded() as lengths:
        found = run(lambda dataset: dataset)
    assert lengths
    assert_elements_equal(found, run(unoptimized))


CHANGES = {
    "attribute": lambda space: setattr(space["model"].config, "scale", 4.0),
    "type of an attribute": lambda space: setattr(space["model"].config, "scale", "4"),
    "object": lambda space: setattr(space["model"], "config", Config(7.0)),
    "other object": lambda space: space.update(model=types.SimpleNamespace(function=abs, config=Config(), rate=0)),
    "truth": lambda space: setattr(space["model"], "rate", 0),
    "item": lambda space: space["limits"].__setitem__(0, 8),
    "no item": lambda space: space["limits"].clear(),
    "item of a loop": lambda space: space["factors"].update(a=7),
    "type of an item": lambda space: space["factors"].update(a=7.5),
    "number of steps": lambda space: space.update(steps=2),
    "another key": lambda space: space["factors"].update(c=7),
    "key": lambda space: space["factors"].pop("a"),
    "no key": lambda space: space["factors"].clear(),
    "function": lambda space: space.update(scaled=lambda x: x * 100),
    "attribute that is a function": lambda space: setattr(space["model"], "function", lambda x: x * 100),
    "code": lambda space: setattr(space["scaled"], "__code__", (lambda x, by=1, *, shift=1: x - by).__code__),
    "defaults": lambda space: setattr(space["scaled"], "__defaults__", (7.0,)),
    "keyword defaults": lambda space: space["scaled"].__kwdefaults__.update(shift=9),
    "nothing": lambda space: space.pop("scaled"),
    "class": lambda space: setattr(space["model"].config, "__class__", type("Other", (), {"scale": property(len)})),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_function_reads_is_read_again(change):
    def run(prepare):
        function = make_function()
        assert isinstance(graph_of(function), Graph)
        iterator = iter(prepare(Dataset.range(40).map(function).batch(8)))
        first = [next(iterator) for _ in range(3)]
        change(function.__globals__)
        return first + outcomes(iterator)

    assert_elements_equal(run(lambda dataset: dataset), run(unoptimized))


def test_a_method_that_is_replaced_or_hidden_is_called():
    class Local(Model):
        pass

    def run(change):
        model = Local(Config())
        iterator = iter(Dataset.from_tensor_slices(IMAGES).map(lambda x: model.normalized(x)).batch(8))
        found = [next(iterator) for _ in range(3)]
        change(model)
        return found + list(iterator)

    expected = list(unoptimized(Dataset.from_tensor_slices(IMAGES).map(Model(Config()).normalized).batch(8)))
    hidden = run(lambda model: setattr(model, "normalized", lambda x: x))
    assert_elements_equal(hidden[:3], expected[:3])
    assert_elements_equal(hidden[3:], [IMAGES[24:32], IMAGES[32:]])
    replaced = run(lambda _: setattr(Local, "normalized", lambda _, x: x))
    assert_elements_equal(replaced, hidden)


def test_a_graph_does_not_keep_the_code_that_it_is_kept_for():
    function = eval("lambda x: x * 2 + 1")  # noqa: S307  # code of its own
    assert list(Dataset.range(3).map(function)) == [1, 3, 5]
    code = weakref.ref(function.__code__)
    del function
    instructions_of.cache_clear()  # which keeps some codes
    gc.collect()
    assert code() is None


def test_functions_with_the_same_code_have_one_graph():
    first, second = nested(2), nested(3)
    assert graph_of(first) is graph_of(second)
    assert graph_of(nested("a")) is not graph_of(first)
    for factor in (2, 3, 2.5):
        expected = [x * factor + factor * factor for x in LABELS]
        assert list(Dataset.from_tensor_slices(LABELS).map(nested(factor))) == expected


def spinning(steps, x):
    for step in range(steps):
        x = x + step * step % 7
    return x


def test_a_function_that_is_too_long_is_read_once(monkeypatch):
    refused = functools.partial(spinning, 1000)
    slices = Dataset.from_tensor_slices(LABELS)
    assert "too long" in slices.map(refused).explain()
    assert isinstance(graph_of(functools.partial(spinning, 3)), Graph)
    monkeypatch.setattr(expression, "_Reader", None)
    assert "too long" in slices.map(refused).explain()
    gone = weakref.ref(refused)
    del refused
    gc.collect()
    assert gone() is None

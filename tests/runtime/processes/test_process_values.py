"""Tests of elements in worker processes: any Python object, including classes of the main script."""

import datetime as dt
import decimal
import enum
import pathlib
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import assert_elements_equal
from support.pipelines import Pair
from support.process_helpers import WAIT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="one system is enough")


@dataclass(frozen=True)
class Order:
    price: decimal.Decimal
    day: dt.date


class Color(enum.Enum):
    RED = 1


OBJECTS = {
    "decimal": decimal.Decimal("1.10"),
    "datetime": dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
    "path": pathlib.PurePosixPath("a/b"),
    "sets": {1, frozenset({"a"})},
    "dataclass": Order(decimal.Decimal(2), dt.date(2025, 1, 1)),
    "in a tuple": (decimal.Decimal(1), np.arange(3)),
    "in a dict": {"day": dt.date(2024, 1, 1), "image": np.ones((64, 64), np.float32)},
    "in a named tuple": Pair(Color.RED, (frozenset({1}), 5)),
    "a class": Order,
}


def test_objects_are_results_and_inputs_as_in_threads():
    def through(executor):
        settings = {"num_parallel_calls": 1, "executor": executor}
        made = Dataset.range(2).map(lambda _: (dict(OBJECTS), decimal.Decimal(3)), **settings)
        return list(made.map(lambda objects, number: (objects, number), **settings))

    assert_elements_equal(through("process"), through("thread"))
    made = Dataset.range(3).map(lambda n: decimal.Decimal(int(n)), executor="process")
    assert list(made) == [decimal.Decimal(0), decimal.Decimal(1), decimal.Decimal(2)]


SCRIPT = """\
import dataclasses, enum, functools, multiprocessing, sys, typing
import cloudpickle
import numpy as np
from dataset import Dataset

T = typing.TypeVar("T")

class Color(enum.Enum):
    RED = 1
    GREEN = 2

@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    color: Color

class Counted:
    count = 0
    def __init__(self, value):
        self.value = value
    def get(self):
        return self.value + offset

class Box(Counted, typing.Generic[T]):
    def get(self):
        return super().get() * 2

class Refused(Exception):
    pass

offset = 100

def shifted(n):
    return int(n) + offset

@functools.cache
def cached(n):
    return shifted(n)

def times(k):
    return lambda n: shifted(n) * k

def make(n):
    return Point(int(n), Color.GREEN), Box(int(n)), cached(int(n)), np.full(5000, n)

def refuse(n):
    raise Refused(n)

def mapped(function):
    return Dataset.range(3).map(function, num_parallel_calls=1, executor="process")

def check():
    made = iter(mapped(make))
    first = next(made)
    get = Counted.get
    Counted.count = 7
    point, box, number, _ = list(made)[-1]
    assert type(point) is Point and point.color is Color.GREEN, point
    assert type(box) is Box and box.get() == 204, box
    assert number == 102
    assert Counted.count == 7 and Counted.get is get, "a result has changed the class"
    assert list(mapped(times(3))) == [300, 303, 306]
    assert list(mapped(lambda n: Box(int(n))).map(lambda box: box.get(), executor="process")) == [200, 202, 204]
    assert not cloudpickle.list_registry_pickle_by_value(), "others see what this library does"
    try:
        next(iter(mapped(refuse)))
    except Refused:
        print("checked")

if __name__ == "__main__":
    method = sys.argv[1]
    if method == "here":
        check()
    else:
        process = multiprocessing.get_context(method).Process(target=check)
        process.start()
        process.join()
        sys.exit(process.exitcode)
"""


@pytest.mark.parametrize(
    ("way", "method"),
    [("file", "here"), ("file", "forkserver"), ("-m", "spawn"), ("-c", "fork"), ("stdin", "here")],
)
def test_functions_and_classes_of_the_main_script(way, method, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    command = {"file": [path], "-m": ["-m", "program"], "-c": ["-c", SCRIPT], "stdin": ["-"]}[way]
    done = subprocess.run(
        [sys.executable, *command, method],
        input=SCRIPT if way == "stdin" else "",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "checked\n"), done.stderr

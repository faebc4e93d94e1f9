"""cache(filename): kept in files, for later passes and later processes."""

import dataclasses
import functools
import itertools
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from dataset import DataLossError, Dataset, Options, RaggedTensor, SparseTensor, SpecError, StateError
from dataset.io.elements.metadata import Metadata
from dataset.testing import assert_elements_equal, check_laziness, check_operator, no_leaks, outcomes
from support.op_cases import fail_at, ints
from support.pipelines import Point, Record


def counting(calls, stop=4):
    return Dataset.range(stop).map(lambda x: calls.append(int(x)) or x)


@pytest.fixture
def new(tmp_path):
    """Names that nobody has used."""
    numbers = itertools.count()
    return lambda: str(tmp_path / f"cache{next(numbers)}")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "cache")


def files_in(path):
    return sorted(str(p.relative_to(path)) for p in Path(path).rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda name: Dataset.range(5).map(lambda x: x * 2).cache(name), ints(0, 2, 4, 6, 8)),
        (lambda name: Dataset.range(0).cache(name), []),
        (lambda name: Dataset.range(3).map(str).cache(name).repeat(3), [b"0", b"1", b"2"] * 3),
        (lambda name: Dataset.range(3).cache(name).repeat(2).batch(2), None),
        (lambda name: Dataset.range(6).shuffle(6, seed=1).cache(name).repeat(3), None),
        (lambda name: Dataset.range(6).cache(name).shuffle(6, seed=1).repeat(3), None),
        (
            lambda name: Dataset.range(5).map(fail_at(1, 3)).cache(name),
            [*ints(0), ValueError("bad 1"), *ints(2), ValueError("bad 3"), *ints(4)],
        ),
        (lambda name: Dataset.range(6).prefetch(2).cache(name).prefetch(2).repeat(2), None),
    ],
)
def test_keeps_the_whole_contract_while_filling(new, make, expected):
    check_operator(lambda: make(new()), expected)


def test_keeps_the_whole_contract_while_reading(path):
    make = lambda: Dataset.range(9).map(lambda x: (x, {"a": np.full(x, x)})).cache(path)
    found = list(make())
    check_operator(make, found)


def test_takes_one_element_for_each(new):
    check_laziness(lambda numbers: numbers.cache(new()), lambda k: k)


def test_runs_its_input_once_whoever_asks(path):
    calls = []
    dataset = counting(calls).cache(path)
    assert list(dataset) == list(dataset) == list(counting(calls).cache(path)) == [0, 1, 2, 3]
    assert list(dataset.batch(2).repeat(2).unbatch()) == [0, 1, 2, 3] * 2
    assert calls == [0, 1, 2, 3]


def test_asking_for_the_spec_writes_nothing(path):
    calls = []
    dataset = counting(calls).cache(path).map(lambda x: (x, x))
    assert dataset.element_spec[0].dtype == np.int64
    assert not Path(path).exists()
    assert len(list(dataset)) == 4


@pytest.mark.parametrize("taken", [1, 3, 4])
def test_a_partial_pass_leaves_no_cache_and_says_so(path, caplog, taken):
    calls = []
    dataset = counting(calls).cache(path)
    with caplog.at_level(logging.WARNING):
        assert len(list(dataset.take(taken))) == taken
    assert f"abandoned after {taken} elements" in caplog.text
    assert "put take() before cache()" in caplog.text
    assert files_in(path) == []
    calls.clear()
    assert list(dataset) == [0, 1, 2, 3]
    assert calls == [0, 1, 2, 3]


def test_a_full_pass_says_nothing(path, caplog):
    list(Dataset.range(3).cache(path))
    list(Dataset.range(3).cache(path))
    assert not caplog.records


def test_a_second_iterator_during_the_first_pass_is_an_error(path):
    dataset = Dataset.range(4).cache(path)
    first = iter(dataset)
    next(first)
    second = iter(Dataset.range(4).cache(path))
    with pytest.raises(FileExistsError, match=r"another iterator of this process is filling the cache in .*cache"):
        next(second)
    assert list(first) == [1, 2, 3]
    assert list(second) == [0, 1, 2, 3]


def test_a_closed_or_abandoned_pass_lets_the_next_one_fill(path):
    for end in (lambda it: it.close(), lambda it: None):
        with no_leaks():
            iterator = iter(Dataset.range(4).cache(path))
            next(iterator)
            end(iterator)
            del iterator
    assert files_in(path) == []
    assert list(Dataset.range(4).cache(path)) == [0, 1, 2, 3]


def test_a_lock_file_that_nobody_holds_is_no_hindrance(path):
    Path(path).mkdir()
    Path(path, "filling.lock").write_text("process 1\n")
    assert list(Dataset.range(2).cache(path)) == [0, 1]
    assert [name for name in files_in(path) if "lock" in name] == []


def test_what_a_dead_writer_left_is_removed(path):
    run = Path(path, "0123456789abcdef")
    run.mkdir(parents=True)
    (run / "00000000.tfrecord").write_bytes(b"half")
    Path(path, "0123456789abcdef.lock").write_text("process 1\n")
    Path(path, "notes.txt").write_text("mine")
    assert list(Dataset.range(2).cache(path)) == [0, 1]
    assert not run.exists()
    assert Path(path, "notes.txt").read_text() == "mine"
    assert len(files_in(path)) == 3


def test_elements_that_fail_are_left_out_of_later_passes(path):
    dataset = Dataset.range(4).map(fail_at(1)).cache(path)
    assert_elements_equal(outcomes(iter(dataset)), [np.int64(0), ValueError("bad 1"), *ints(2, 3)])
    assert_elements_equal(outcomes(iter(dataset)), ints(0, 2, 3))


ELEMENTS = {
    "scalars": [np.float16(1.5), np.float16(-2)],
    "text": [b"a\0", b"", b"\0"],
    "times": list(np.array([1, 2], "M8[ns]")),
    "images": [np.full((2, 3), i, np.uint8) for i in range(3)],
    "vectors": [np.arange(i) for i in range(4)],
    "nested": [(np.int64(i), {"b": None, "a": (np.arange(i), b"x" * i)}) for i in range(3)],
    "ragged": [RaggedTensor.from_rows([[1.0] * i, []]) for i in range(3)],
    "sparse": [SparseTensor([[i]], [i], [4]) for i in range(3)],
    "named": [Point(np.int64(i), np.arange(2)) for i in range(3)],
    "dataclass": [Record(np.full(2, i), np.int64(i)) for i in range(3)],
    "keys": [{1: np.int64(i), 2: b"a"} for i in range(2)],
}


@pytest.mark.parametrize("kind", ELEMENTS)
def test_elements_of_every_kind_come_back(path, kind):
    elements = ELEMENTS[kind]
    make = lambda: Dataset.from_generator(lambda: iter(elements)).cache(path)
    assert_elements_equal(list(make()), elements)
    assert_elements_equal(list(make()), elements)


@pytest.mark.parametrize("warm", [False, True])
def test_arrays_come_out_read_only(path, warm):
    make = lambda: Dataset.range(2).map(lambda x: (np.full(3, x), RaggedTensor(np.zeros(2), [0, 2]))).cache(path)
    if warm:
        list(make())
    for array, ragged in make():
        assert not array.flags.writeable
        assert not ragged.values.flags.writeable


def test_an_object_is_refused_at_its_place_and_nothing_is_kept(path):
    dataset = Dataset.range(3).map(lambda x: object() if x == 1 else x).cache(path)
    for _ in range(2):
        found = outcomes(iter(dataset))
        assert_elements_equal([found[0], found[2]], ints(0, 2))
        assert isinstance(found[1], TypeError)
        assert "a object cannot be written to a file" in str(found[1])
    assert files_in(path) == []
    whole = outcomes(iter(dataset.batch(3)))
    assert isinstance(whole[0], TypeError)


def test_elements_of_another_dtype_are_refused(path):
    kinds = {1: np.float32(1), 3: b"text"}
    dataset = Dataset.range(5).map(lambda x: kinds.get(int(x), x)).cache(path)
    found = outcomes(iter(dataset))
    assert_elements_equal([found[0], found[2], found[4]], ints(0, 2, 4))
    for position, dtype in ((1, "float32"), (3, "bytes")):
        assert isinstance(found[position], SpecError)
        assert f"the same kind and dtype, got {dtype} for the element after int64" in str(found[position])
        assert f"element {position}" in found[position].__notes__[0]


MISMATCH = r"was filled by another pipeline, or the pipeline was edited since: .*on_mismatch=\"rebuild\""


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: Dataset.range(3).batch(2), r"it was filled by range\(3\), this pipeline is range\(3\) -> batch\(2\)"),
        (lambda: Dataset.range(3).map(float), "this pipeline is"),
        (lambda: Dataset.range(9), "range"),
        (lambda: Dataset.from_tensor_slices({"a": [1]}), "it was filled by range.* where this pipeline has"),
        (lambda: Dataset.from_tensor_slices(np.arange(3)), "it was filled by range.* where this pipeline has"),
    ],
)
def test_a_cache_of_another_pipeline_is_an_error_that_says_what_to_do_or_is_rebuilt(path, other, words):
    list(Dataset.range(3).cache(path))
    with pytest.raises(SpecError, match=MISMATCH) as caught:
        next(iter(other().cache(path)))
    assert re.search(words, str(caught.value))
    assert list(Dataset.range(3).cache(path)) == [0, 1, 2]
    expected = list(other())
    for _ in range(2):
        assert_elements_equal(list(other().cache(path, on_mismatch="rebuild")), expected)
    assert_elements_equal(list(other().cache(path)), expected)
    assert len(files_in(path)) == 2
    with pytest.raises(SpecError, match=MISMATCH):
        list(Dataset.range(3).cache(path))


FACTOR = 2


def tripled(x):
    return x * 3


def scaled(x):
    return tripled(x) * FACTOR


class Scaler:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def method(self, x):
        return x + self.factor

    @functools.cached_property
    def costly(self):
        return 3


class Slotted:
    __slots__ = ()


LOG = logging.getLogger(__name__)
CONFIG = {"size": [1, 2]}


def times(by):
    return lambda x: x * by


EDITS = {
    "code": lambda n: [lambda x: x + 1, lambda x: x - 1][n],
    "a constant": lambda n: [lambda x: x + 1, lambda x: x + 2][n],
    "an inner function": lambda n: [lambda x: sum(y + 1 for y in [x]), lambda x: sum(y + 2 for y in [x])][n],
    "a captured number": lambda n: times(n + 1),
    "a captured array": lambda n: times(np.arange(2) + n),
    "a captured list": lambda n: first_of([n]),
    "a captured set": lambda n: is_in({"0", str(n)}),
    "a default": lambda n: lambda x, by=n: x + by,
    "a partial": lambda n: functools.partial(np.add, n),
    "a callable object": Scaler,
    "a method": lambda n: Scaler(n).method,
    "a function": lambda n: [np.sin, np.cos][n],
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_function_is_noticed(path, edit):
    make = EDITS[edit]
    before = list(Dataset.range(3).map(make(0)).cache(path))
    assert_elements_equal(list(Dataset.range(3).map(make(0)).cache(path)), before)
    with pytest.raises(SpecError, match=MISMATCH) as caught:
        list(Dataset.range(3).map(make(1)).cache(path))
    assert "map(" in str(caught.value)
    rebuilt = list(Dataset.range(3).map(make(1)).cache(path, on_mismatch="rebuild"))
    assert_elements_equal(rebuilt, list(Dataset.range(3).map(make(1))))


@pytest.mark.parametrize(
    ("name", "value"), [("FACTOR", 3), ("tripled", lambda x: x + x + x), ("CONFIG", {"size": [1, 3]})]
)
def test_an_edit_of_what_a_function_names_is_noticed(path, name, value, monkeypatch):
    make = lambda: Dataset.range(3).map(lambda x: scaled(x) + CONFIG["size"][0]).cache(path)
    direct = lambda: Dataset.range(3).map(scaled if name != "CONFIG" else lambda x: x + CONFIG["size"][1]).cache(path)
    for cached in (make, direct):
        Dataset.range(0).save(path)  # so that the directory is there
        shutil.rmtree(path)
        list(cached())
        list(cached())
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, value)
            with pytest.raises(SpecError, match=MISMATCH):
                list(cached())
        list(cached())


def test_other_data_and_another_seed_are_noticed(path):
    for make in (
        lambda n: Dataset.from_tensor_slices([1, 2, n]),
        lambda n: Dataset.range(5).shuffle(5, seed=n),
        lambda n: Dataset.range(5).take(n + 2),
        lambda n: Dataset.from_generator(lambda: iter(range(n + 3))),
    ):
        list(make(0).cache(path))
        with pytest.raises(SpecError, match=MISMATCH):
            list(make(1).cache(path))
        shutil.rmtree(path)


def logged(x):
    LOG.debug("element %s", x)
    return x


def first_of(values):
    return lambda x: x * values[0]


def is_in(words):
    return lambda x: int(str(x) in words)


def appends_to(calls):
    return lambda x: calls.append(x) or x


def looks_up_in(known):
    return lambda x: known.setdefault(int(x), x)


def adds_in(buffer):
    return lambda x: np.add(x, 1, out=buffer).copy()


def holds(thing):
    return lambda x: x + (thing is None)


def grown():
    loop = []
    loop.append(loop)
    return loop


def used():
    scaler = Scaler(1)
    assert scaler.costly == 3
    return scaler


def twice(make):
    """Two functions that hold the like."""
    return lambda: [holds(make()) for _ in range(2)]


SAME = {
    "another line": lambda: [
        lambda x: x + 1,
        lambda x: x + 1,
    ],
    "a list that grows": lambda: [appends_to([])] * 2,
    "a dict that is a cache": lambda: [looks_up_in({})] * 2,
    "a buffer": lambda: [adds_in(np.zeros((), np.int64))] * 2,
    "a logger": lambda: [logged, logged],
    "objects with addresses": twice(object),
    "sets of objects with addresses": twice(lambda: {Slotted() for _ in range(9)}),
    "a lock": twice(threading.Lock),
    "a random generator": twice(np.random.default_rng),
    "an open file": twice(lambda: open(os.devnull)),  # noqa: PTH123, SIM115
    "a cached property": lambda: [Scaler(1), used()],
    "an endless graph": twice(grown),
    "a deep graph": twice(lambda: nested(100_000)),
    "very many values": twice(lambda: [0] * 1_100_000),
}


def nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", SAME)
def test_what_was_not_edited_is_no_mismatch(path, kind):
    first, second = SAME[kind]()
    made = list(Dataset.range(3).map(first).cache(path))
    logging.getLogger("dataset.tests.another")  # which all loggers know of
    LOG.isEnabledFor(logging.DEBUG)
    for function in (first, second):
        assert_elements_equal(list(Dataset.range(3).map(function).cache(path)), made)


PROGRAM = """
import sys
import numpy as np
from dataset import Dataset

WORDS = {"a", "b", "c", "d", "e"}

class Scaler:
    def __init__(self, factor):
        self.factor, self.words = factor, frozenset(WORDS)

    def __call__(self, x):
        return x * self.factor + len(WORDS)

def make():
    return Dataset.range(3).map(Scaler(2)).map(lambda x: x if x in {1, 2, 3} else x + 1).cache(sys.argv[1])

if __name__ == "__main__":
    print([int(x) for x in make()])
"""


def test_another_process_takes_the_same_pipeline_for_the_same(path, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "moved.py").write_text("\n\n# comments\n" + PROGRAM)
    found = []
    for name, seed in (("program", "1"), ("program", "2"), ("moved", "3")):
        command = [sys.executable, tmp_path / f"{name}.py", path]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        found.append(subprocess.run(command, capture_output=True, text=True, check=False, env=environment))
    assert [one.stdout for one in found] == [found[0].stdout] * 3, found[-1].stderr
    assert [one.returncode for one in found] == [0] * 3


def test_options_and_the_optimizer_are_no_mismatch(path):
    options = Options()
    options.optimization.enabled = False
    make = lambda: Dataset.range(9).map(tripled).map(tripled).filter(lambda x: x > 3).batch(2).cache(path)
    made = list(make())
    assert_elements_equal(list(make().with_options(options)), made)


def test_another_version_of_python_has_other_bytecode(path, monkeypatch):
    from dataset.io.elements import cache_dataset

    list(Dataset.range(3).map(lambda x: x + 1).cache(path))
    monkeypatch.setattr(cache_dataset, "PYTHON", "cpython-399-0")
    assert list(Dataset.range(3).map(lambda x: x + 2).cache(path)) == [1, 2, 3]
    with pytest.raises(SpecError, match=MISMATCH):
        list(Dataset.range(3).map(lambda x: x + 2).batch(2).cache(path))  # other elements are noticed all the same


@pytest.mark.parametrize("steps", [None, 3, [], [3], [["a"]], [["a", 3]], [["range(0, 3)", ""]]])
def test_a_cache_that_does_not_say_who_filled_it_is_taken_if_its_elements_fit(path, steps):
    list(Dataset.range(3).cache(path))
    old = Metadata.read(path)
    about = {**old.about, "steps": steps} if steps is not None else {"start": old.about["start"]}
    dataclasses.replace(old, about=about).write(path)
    assert list(Dataset.range(9).cache(path)) == [0, 1, 2]
    with pytest.raises(SpecError, match=r"another pipeline.*(this one produces .*float|map\(float\))"):
        next(iter(Dataset.range(3).map(float).cache(path)))


def test_a_rebuild_that_is_left_keeps_the_old_cache(path):
    list(Dataset.range(3).cache(path))
    iterator = iter(Dataset.range(4).cache(path, on_mismatch="rebuild"))
    next(iterator)
    iterator.close()
    assert list(Dataset.range(3).cache(path)) == [0, 1, 2]


@pytest.mark.parametrize("word", ["ignore", None, 3])
def test_what_is_no_answer_to_a_mismatch(word, path):
    with pytest.raises(ValueError, match='on_mismatch must be "error" or "rebuild"'):
        Dataset.range(3).cache(path, on_mismatch=word)


def test_a_saved_dataset_is_not_taken_for_a_cache(path):
    Dataset.range(3).save(path)
    with pytest.raises(SpecError, match=r"was written by save\(\)"):
        list(Dataset.range(3).cache(path))


@pytest.mark.parametrize("filename", [3, None, ["a"], 2.0])
def test_what_is_no_name(filename):
    with pytest.raises(TypeError, match="path"):
        Dataset.range(3).cache(filename)


def test_names_of_every_type(tmp_path):
    for name in (tmp_path / "a", os.fsencode(tmp_path / "a"), f"{tmp_path}/a/"):
        assert list(Dataset.range(3).cache(name)) == [0, 1, 2]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_directory_that_cannot_be_made(tmp_path):
    dataset = Dataset.range(3).cache(tmp_path / "no" / "where")
    with pytest.raises(FileNotFoundError, match="where"):
        list(dataset)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        list(Dataset.range(3).cache(tmp_path / "file"))


def test_a_damaged_cache_says_where(path):
    dataset = Dataset.range(1000).map(lambda x: x).cache(path)
    list(dataset)
    (shard,) = (name for name in files_in(path) if name.endswith(".tfrecord"))
    content = bytearray(Path(path, shard).read_bytes())
    content[len(content) // 2] ^= 1
    Path(path, shard).write_bytes(content)
    with pytest.raises(DataLossError, match=r"tfrecord, record 0, at byte 0"):
        list(dataset)


def test_a_state_of_a_first_pass_goes_on_where_there_is_no_cache(new):
    def make(name):
        return Dataset.range(4).shuffle(4, seed=3).map(lambda x: x + 1).cache(name).repeat(2)

    for position, warm in itertools.product(range(9), (False, True)):
        with iter(make(new())) as iterator:
            for _ in range(position):
                next(iterator)
            state = iterator.state_dict()
            rest = list(iterator)
        name = new()
        if warm:
            assert len(list(make(name))) == 8
        resumed = iter(make(name))
        resumed.load_state_dict(state)
        assert_elements_equal(list(resumed), rest)
        assert len(list(make(name))) == 8


def test_an_iterator_can_go_back_while_it_fills(path):
    iterator = iter(Dataset.range(5).map(lambda x: x).cache(path))
    next(iterator)
    state = iterator.state_dict()
    assert [next(iterator), next(iterator)] == [1, 2]
    iterator.load_state_dict(state)
    assert list(iterator) == [1, 2, 3, 4]
    assert list(Dataset.range(5).map(lambda x: x).cache(path)) == [0, 1, 2, 3, 4]


def test_a_state_that_reads_is_not_loaded_over_another_pass(new):
    def make(name):
        return Dataset.range(50).shuffle(50).map(lambda x: x).cache(name)

    one, two = new(), new()
    list(make(one)), list(make(two))
    reading = iter(make(one))
    next(reading)
    state = reading.state_dict()
    with pytest.raises(StateError, match="another pass was cached"):
        iter(make(two)).load_state_dict(state)


def test_a_disk_that_is_full_costs_the_cache_not_the_elements(path, monkeypatch, caplog):
    from dataset.io.elements.write_session import RunWriter

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunWriter, "write", full)
    elements = [np.full(1 << 18, i) for i in range(4)]
    found = outcomes(iter(Dataset.from_tensor_slices(np.array(elements)).cache(path)))
    assert [type(one) for one in found].count(OSError) == 1
    assert_elements_equal([one for one in found if not isinstance(one, OSError)], elements)
    assert files_in(path) == []


def test_a_cache_of_another_pipeline_is_not_an_error_of_an_element(path):
    list(Dataset.range(3).cache(path))
    iterator = iter(Dataset.range(4).cache(path).ignore_errors())
    for _ in range(2):
        with pytest.raises(SpecError, match="another pipeline") as caught:
            next(iterator)
        assert caught.value.__notes__[-1].endswith("the iteration cannot continue")


def test_a_cache_that_cannot_be_filled_is_not_an_error_of_an_element(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent") as caught:
        next(iter(Dataset.range(4).cache(tmp_path / "absent" / "cache").ignore_errors()))
    assert caught.value.__notes__[-1].endswith("the iteration cannot continue")

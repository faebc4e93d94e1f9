"""split: parts that never overlap and together have all elements. tests/oracle compares them with those of Keras."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from dataset import Dataset, SpecError, TFRecordDataset, set_random_seed
from dataset.io import TFRecordWriter
from dataset.queues import FIFOQueue
from dataset.testing import check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints

COUNTED = {
    "range": Dataset.range,
    "map, prefetch": lambda n: Dataset.range(n).map(lambda x: x, num_parallel_calls=2).prefetch(2),
    "stable shuffle": lambda n: Dataset.range(n).shuffle(7, seed=3, reshuffle_each_iteration=False),
    "zip": lambda n: Dataset.zip(Dataset.range(n), Dataset.range(n)).map(lambda a, _: a),
    "asserted": lambda n: Dataset.range(n).filter(lambda x: x >= 0).assert_cardinality(n),
    "random_map": lambda n: Dataset.range(n).random_map(lambda _, x: x, seed=1),
}
UNCOUNTED = {
    "filter": lambda n: Dataset.range(n).filter(lambda x: x >= 0),
    "generator": lambda n: Dataset.from_generator(lambda: range(n)),
}


def numbers(dataset):
    return [int(x) for x in dataset]


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize(
    ("parts", "sizes"),
    [
        ([0.5, 0.3, 0.2], [15, 9, 6]),
        ([1 / 3] * 3, [10, 10, 10]),
        ([20, 10], [20, 10]),
        (np.array([1, -1, 2]), [1, 27, 2]),
    ],
)
@pytest.mark.parametrize("kind", COUNTED)
def test_parts_of_a_known_number_have_the_exact_sizes(kind, parts, sizes, seed):
    found = COUNTED[kind](30).split(parts, seed)
    assert [part.cardinality() for part in found] == sizes
    elements = [numbers(part) for part in found]
    assert list(map(len, elements)) == sizes
    whole = numbers(COUNTED[kind](30))
    assert sorted(itertools.chain(*elements)) == sorted(whole)
    assert all(part == [x for x in whole if x in part] for part in elements), "the order is kept"
    assert elements == [numbers(part) for part in found] == [numbers(p) for p in COUNTED[kind](30).split(parts, seed)]
    if seed is None:
        assert list(itertools.chain(*elements)) == whole
    else:
        assert elements != [numbers(part) for part in COUNTED[kind](30).split(parts, seed + 1)]


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("kind", COUNTED)
def test_a_part_is_an_operator_like_any_other(kind, seed):
    for number in range(2):
        check_operator(lambda: COUNTED[kind](13).split([0.7, 0.3], seed)[number], positions=4)


@pytest.mark.parametrize("kind", UNCOUNTED)
def test_an_unknown_number_is_divided_by_position(kind):
    found = UNCOUNTED[kind](3000).split([0.8, 0.15, 0.05], seed=2)
    elements = [numbers(part) for part in found]
    assert sorted(itertools.chain(*elements)) == list(range(3000))
    for part, fraction in zip(elements, [0.8, 0.15, 0.05], strict=True):
        assert abs(len(part) - 3000 * fraction) < 4 * (3000 * fraction * (1 - fraction)) ** 0.5
    longer = [numbers(part) for part in UNCOUNTED[kind](4000).split([0.8, 0.15, 0.05], seed=2)]
    assert [part[: len(first)] for part, first in zip(longer, elements, strict=True)] == elements, "it may grow"
    first, rest = UNCOUNTED[kind](30).split([10, -1])
    assert (numbers(first), numbers(rest)) == (list(range(10)), list(range(10, 30)))
    for part in [1, 0]:
        check_operator(lambda: UNCOUNTED[kind](25).split([0.7, 0.3], seed=1)[part], positions=5)
        check_operator(lambda: UNCOUNTED[kind](25).split([10, -1])[part], positions=5)


def test_infinitely_many_elements_are_divided():
    left, right = Dataset.counter().split([0.5, 0.5], seed=1)
    assert left.cardinality() == Dataset.counter().cardinality()
    both = numbers(left.take(500)) + numbers(right.take(500))
    assert len(set(both)) == 1000
    assert max(both) < 1200
    check_operator(lambda: Dataset.counter().split([0.5, 0.5], seed=1)[1].take(20), positions=4)


def test_functions_are_not_called_for_elements_of_other_parts():
    for seed in None, 1:
        called = []
        _, validation = Dataset.range(20).map(lambda x: called.append(int(x)) or x).split([0.75, 0.25], seed)
        assert called == []
        assert numbers(validation) == called
        assert len(called) == 5


def test_only_what_is_needed_is_requested():
    check_laziness(lambda numbers: numbers.split([6, -1])[0], lambda k: min(k, 6))
    check_laziness(lambda numbers: numbers.split([6, -1])[1], lambda k: k + 6 if k else 0)
    own = numbers(Dataset.from_generator(lambda: range(50)).split([0.5, 0.5], 3)[1])
    check_laziness(
        lambda numbers: numbers.split([0.5, 0.5], 3)[1], lambda k: 0 if not k else [*own, 50][k - 1] + (k <= len(own))
    )


def test_a_failure_moves_no_element_to_another_part():
    bad = [ValueError("bad 1"), ValueError("bad 4")]
    whole = Dataset.range(8).map(fail_at(1, 4)).filter(lambda _: True).assert_cardinality(8)
    sound = Dataset.range(8).filter(lambda _: True).assert_cardinality(8)
    for seed in None, 1:
        for number in range(2):
            part = whole.split([0.5, 0.5], seed)[number]
            kept = [x for x in sound.split([0.5, 0.5], seed)[number] if int(x) not in {1, 4}]
            found = outcomes(iter(part))
            assert [x for x in found if not isinstance(x, Exception)] == kept
            assert {str(x) for x in found if isinstance(x, Exception)} <= set(map(str, bad))
    check_operator(lambda: whole.split([0.5, 0.5], 1)[1], positions=8)
    check_operator(lambda: Dataset.range(6).map(fail_at(1)).split([3, 3])[1], ints(3, 4, 5))


def test_elements_with_the_same_key_are_in_the_same_part():
    visits = Dataset.from_tensor_slices({"patient": np.arange(2000) % 100, "visit": np.arange(2000)})
    parts = visits.shuffle(50).split([0.7, 0.2, 0.1], seed=3, by=lambda row: row["patient"])  # in any order
    found = [[(int(row["patient"]), int(row["visit"])) for row in part] for part in parts]
    patients = [{patient for patient, _ in part} for part in found]
    assert sum(map(len, patients)) == len(set.union(*patients)) == 100
    assert sorted(visit for part in found for _, visit in part) == list(range(2000))
    assert [50 < len(patients[0]) < 90, 5 < len(patients[1]) < 35, len(patients[2]) < 25] == [True] * 3
    check_operator(lambda: visits.take(40).split([0.7, 0.3], by=lambda row: row["patient"])[0], positions=4)


@pytest.mark.parametrize(
    "keys",
    [
        [7, np.int32(7), np.uint8(7), np.array(7)],
        ["Ada", b"Ada", np.str_("Ada")],
        [(1, "a"), (np.int64(1), b"a")],
        [0.5, np.float64(0.5)],
    ],
)
def test_equal_keys_are_in_the_same_part_whatever_their_type(keys):
    parts = [
        [len(numbers(part)) for part in Dataset.range(1).split([0.25] * 4, seed=1, by=lambda _, key=key: key)]
        for key in keys
    ]
    assert parts == [parts[0]] * len(keys)


def test_the_parts_of_keys_never_change():
    """Saved splits depend on this: a change of the hash would move training data into the validation part."""

    def half(dataset, **key):
        return numbers(dataset.split([0.5, 0.5], seed=7, **key)[0])

    assert half(Dataset.range(12), by=lambda x: x) == [1, 5, 6, 7, 10, 11]
    assert half(Dataset.range(12), by=lambda x: f"patient {x}") == [0, 3, 4, 8, 9]
    assert half(Dataset.range(12)) == [3, 4, 6, 8, 9, 11]
    assert half(UNCOUNTED["filter"](12)) == [2, 3, 4, 6, 8]


@pytest.mark.parametrize("key", [None, object(), [object()]])
def test_a_key_is_made_of_numbers_and_text(key):
    part, _ = Dataset.range(1).split([0.5, 0.5], by=lambda _: key)
    with pytest.raises((SpecError, TypeError, ValueError)) as caught:
        next(iter(part))
    assert "split(1 of 2 by <lambda>)" in str(caught.value.__notes__)


@pytest.fixture
def files(tmp_path):
    for file in range(10):
        with TFRecordWriter(tmp_path / f"{file}.tfrecord") as writer:
            for record in range(3):
                writer.write(b"%d" % (10 * file + record))
    return str(tmp_path / "*.tfrecord")


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize(
    "read",
    [
        lambda files: TFRecordDataset(Dataset.list_files(files, shuffle=True)),  # the files move, but between no parts
        lambda files: TFRecordDataset(Dataset.list_files(files, shuffle=False), num_parallel_reads=3),
        lambda files: Dataset.list_files(files, shuffle=True).interleave(TFRecordDataset, cycle_length=4),
        lambda files: (
            Dataset.list_files(files, shuffle=False).flat_map(TFRecordDataset).map(bytes).shuffle(9).repeat(1)
        ),
    ],
)
def test_whole_files_are_in_one_part(files, read, seed):
    parts = read(files).split([0.7, 0.3], seed, by="file")
    found = [sorted(int(record) for record in part) for part in parts]
    assert list(map(len, found)) == [21, 9]
    assert sorted(found[0] + found[1]) == [10 * file + record for file in range(10) for record in range(3)]
    assert not {x // 10 for x in found[0]} & {x // 10 for x in found[1]}
    assert found == [sorted(int(record) for record in part) for part in read(files).split([7, 3], seed, by="file")]
    if seed is None:
        assert {x // 10 for x in found[1]} == {7, 8, 9}
    shares = [list(parts[0].shard_by_process(rank, 2, remainder="keep", by="files")) for rank in range(2)]
    assert sorted(int(record) for share in shares for record in share) == found[0]


def test_a_file_that_is_listed_several_times_is_in_one_part(files, tmp_path, monkeypatch):
    names = list(Dataset.list_files(files, shuffle=False))
    monkeypatch.chdir(Path(names[0].decode()).parent)
    (tmp_path / "link").symlink_to(names[3].decode())
    listed = [*names, *names[4:6], b"./" + names[1].rpartition(b"/")[2], tmp_path / "link"]
    for seed in (None, 1, 2, 3):
        for sizes in ([0.5, 0.5], [7, 3]):
            found = [
                [int(record) // 10 for record in part] for part in TFRecordDataset(listed).split(sizes, seed, by="file")
            ]
            assert not set(found[0]) & set(found[1])
            assert len(set(found[0])) == sizes[0] * (10 if sizes[0] < 1 else 1)
            assert sorted(found[0] + found[1]) == sorted([*range(10), 4, 5, 1, 3] * 3)


def test_a_list_of_files_is_divided_and_a_part_resumes(files):
    names = Dataset.list_files(files, shuffle=False)
    left, right = names.split([0.5, 0.5], seed=1, by="file")
    assert sorted([*left, *right]) == list(names)
    check_operator(lambda: TFRecordDataset(names).split([0.5, 0.5], 1, by="file")[0], positions=5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dataset.range(9).shuffle(3), r"shuffle\(3\) from test_split.py:\d+ returns other elements"),
        (lambda: Dataset.range(9).repeat(2), r"repeat\(2\) .* returns each element several times"),
        (lambda: Dataset.range(9).map(bool).cache(), "cache .* leaves out elements that failed"),
        (lambda: Dataset.random(1, rerandomize_each_iteration=True).take(9), "in each iteration"),
        (lambda: Dataset.from_queue(FIFOQueue(1)), "in each iteration"),
        (lambda: Dataset.range(9).shuffle(9, reshuffle_each_iteration=False), "has no seed, so .* in each run"),
        (lambda: Dataset.sample_from_datasets([Dataset.range(9)] * 2), "has no seed"),
        (
            lambda: Dataset.range(9).rejection_resample(lambda x: x % 2, [0.9, 0.1], [0.5, 0.5]),
            "has no seed",
        ),
    ],
)
def test_elements_that_move_are_not_divided(make, message):
    with pytest.raises(ValueError, match=message):
        make().split([0.5, 0.5], seed=1)


def test_orders_without_seeds_are_divided_below_a_random_seed_and_where_no_element_moves():
    set_random_seed(1)
    left, right = Dataset.range(9).shuffle(9, reshuffle_each_iteration=False).split([0.5, 0.5])
    set_random_seed(None)
    assert sorted(numbers(left) + numbers(right)) == list(range(9))
    left, right = Dataset.range(9).random_map(lambda _, x: x).split([0.5, 0.5])
    assert numbers(left) + numbers(right) == list(range(9))


def test_an_unknown_number_needs_a_seed_or_first_counts(files):
    unknown = UNCOUNTED["filter"](10)
    with pytest.raises(ValueError, match=r"unknown, so fractions need a seed.*assert_cardinality"):
        unknown.split([0.5, 0.5])
    for parts, seed in ([3, 4], None), ([-1, 3], None), ([3, -1], 1):
        with pytest.raises(ValueError, match=r"unknown, so only the last count .*assert_cardinality"):
            unknown.split(parts, seed)
    with pytest.raises(ValueError, match="infinite"):
        Dataset.counter().split([0.5, 0.5])
    with pytest.raises(ValueError, match=r"take\(2\) .* needs the elements of all files together"):
        TFRecordDataset(Dataset.list_files(files)).take(2).split([0.5, 0.5], by="file")


# The leak that split prevents.


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(1000).shuffle(1000, seed=1),
        lambda: Dataset.range(1000).shuffle(1000, seed=1).cache(),  # a take does not complete the first pass
    ],
)
def test_take_and_skip_after_a_reshuffle_overlap_and_warn(make):
    dataset = make()
    validation = dataset.take(300)
    with pytest.warns(
        UserWarning, match=r"take\(300\) from test_split.py:\d+ and skip\(300\) overlap: shuffle"
    ) as caught:
        train = dataset.skip(300)
    assert [warning.filename for warning in caught] == [__file__]
    assert len(set(numbers(validation)) & set(numbers(train))) > 100
    dataset = make()
    dataset.skip(300)
    with pytest.warns(UserWarning, match=r"skip\(300\) .* and take\(300\) overlap"):
        dataset.take(300)


@pytest.mark.filterwarnings("error")
def test_take_and_skip_of_a_stable_order_and_a_look_at_the_first_elements_do_not_warn():
    for dataset in (
        Dataset.range(10),
        Dataset.range(10).shuffle(10, reshuffle_each_iteration=False),
        Dataset.range(10).shuffle(1),
        Dataset.random().take(10),
    ):
        assert not set(numbers(dataset.take(4))) & set(numbers(dataset.skip(4)))
    dataset = Dataset.range(10).shuffle(10)
    for count in (1, 1, 5, -1, 0):
        dataset.take(count)
    dataset.skip(3), dataset.skip(0)
    Dataset.range(10).shuffle(10).skip(5)

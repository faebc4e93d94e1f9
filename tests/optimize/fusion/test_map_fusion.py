"""map_fusion: maps one after another run as one, and nobody can tell."""

import threading
import time

import numpy as np
import pytest

import dataset
from dataset import AUTOTUNE, Dataset, Options, SpecError
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_operator, check_rule, no_leaks, outcomes
from support.pipelines import no_rules

LARGE = (600, 600)  # float64: in chunks of two they are more than a cache holds


def add(x):
    return abs(x) + 1


def double(x):
    return max(x, x) * 2


def pair(x):
    return x, b"%d" % int(x)


def unpack(x, text):
    return text, x + len(text)


def picture(x):
    return np.full(LARGE, float(x))


def scale(image):
    return image / max(2, 1)


def corner(image):
    return image[0, 0]


@dataset.vectorized
def vectorized(x):
    return x + 1


def rules(data):
    return [fired.rule for fired in optimize(data.plan).fired]


def misses(data):
    return [str(missed) for missed in optimize(data.plan).missed if missed.rule == "map_fusion"]


def numbers():
    return Dataset.range(11)


FIRES = {
    "sequential": lambda: numbers().map(add).map(double),
    "three": lambda: numbers().map(add).map(double).map(pair),
    "several arguments": lambda: numbers().map(pair).map(unpack),
    "equal numbers of calls": lambda: numbers().map(add, num_parallel_calls=2).map(double, num_parallel_calls=2),
    "on columns": lambda: numbers().map(lambda x: x + 1).map(lambda x: x * 2),
    "partly on columns": lambda: numbers().map(add).map(lambda x: x * 2).map(picture).map(lambda x: x / 2),
    "AUTOTUNE": lambda: numbers().map(add, num_parallel_calls=AUTOTUNE).map(double, num_parallel_calls=AUTOTUNE),
    "in any order": lambda: (
        numbers()
        .map(add, num_parallel_calls=2, deterministic=False)
        .map(double, num_parallel_calls=2, deterministic=False)
    ),
}
NEVER = {
    "alone": lambda: numbers().map(add),
    "an op between": lambda: numbers().map(add).take(9).map(double),
    "other numbers of calls": lambda: numbers().map(add, num_parallel_calls=2).map(double, num_parallel_calls=3),
    "one parallel": lambda: numbers().map(add).map(double, num_parallel_calls=3),
    "other order": lambda: (
        numbers().map(add, num_parallel_calls=2, deterministic=False).map(double, num_parallel_calls=2)
    ),
    "processes": lambda: (
        numbers()
        .map(add, executor="process", num_parallel_calls=1)
        .map(double, executor="process", num_parallel_calls=1)
    ),
    "vectorized above": lambda: numbers().map(add).map(vectorized),
    "vectorized below": lambda: numbers().map(vectorized).map(add),
    "random": lambda: numbers().map(add).random_map(lambda rng, x: x),
    "a filter between": lambda: numbers().map(add).filter(bool).map(double),
}


@pytest.mark.parametrize("case", FIRES)
def test_fires(case):
    data = FIRES[case]()
    assert "map_fusion" in rules(data)
    assert "together with the op below" in data.explain()


@pytest.mark.parametrize("case", [case for case in FIRES if case != "in any order"])
def test_changes_nothing(case):
    check_operator(FIRES[case], outcomes(iter(FIRES[case]().with_options(no_rules()))))
    check_operator(lambda: FIRES[case]().batch(4), outcomes(iter(FIRES[case]().batch(4).with_options(no_rules()))))


@pytest.mark.parametrize("case", NEVER)
def test_does_not_fire(case):
    assert "map_fusion" not in rules(NEVER[case]())


def test_says_why_not():
    (miss,) = misses(NEVER["other numbers of calls"]())
    assert "map(add) below it has different parallel settings (2 parallel calls; here 3 parallel calls)" in miss
    (miss,) = misses(NEVER["one parallel"]())
    assert "one call at a time" in miss
    (miss,) = misses(NEVER["processes"]())
    assert "worker processes" in miss
    assert not misses(NEVER["vectorized above"]())


def test_the_rule_alone():
    check_rule("map_fusion", FIRES["three"], "map(pair) <- map(double) <- map(add) <- range(11)")


def fail_at(*bad, error=ValueError):
    def function(x):
        if int(np.ravel(x)[0]) in bad:
            raise error(f"for {int(np.ravel(x)[0])}")
        return x

    return function


def notes(data):
    return [getattr(outcome, "__notes__", None) for outcome in outcomes(iter(data)) if isinstance(outcome, Exception)]


@pytest.mark.parametrize("calls", [None, 1, 3, AUTOTUNE])
@pytest.mark.parametrize("made", [lambda x: x, pair, picture, lambda x: {"a": x, "b": (x, picture(x))}])
def test_failures_of_every_stage_keep_their_places_and_names(calls, made):
    def first(*parts):
        return parts[0]

    def make():
        data = numbers().map(fail_at(2, 7), num_parallel_calls=calls).map(made, num_parallel_calls=calls)
        if made is pair:
            data = data.map(first, num_parallel_calls=calls)
        elif isinstance(made(1), dict):
            data = data.map(lambda parts: parts["a"], num_parallel_calls=calls)
        return data.map(fail_at(0, 3, 10), num_parallel_calls=calls)

    plain = make().with_options(no_rules())
    assert "map_fusion" in rules(make())
    assert_elements_equal(outcomes(iter(make())), outcomes(iter(plain)))
    assert notes(make()) == notes(plain)
    assert len(notes(make())) == 5
    check_operator(make, outcomes(iter(plain)), positions=4)
    batches = outcomes(iter(make().batch(3).with_options(no_rules())))
    assert_elements_equal(outcomes(iter(make().batch(3))), batches)


@pytest.mark.parametrize("calls", [None, 2])
def test_a_result_of_another_structure_is_the_fault_of_its_function(calls):
    def odd(x):
        return (x, x) if x == 4 else x

    def make():
        return numbers().map(odd, num_parallel_calls=calls).map(add, num_parallel_calls=calls)

    found = outcomes(iter(make()))
    plain = make().with_options(no_rules())
    assert isinstance(found[4], SpecError)
    assert str(found[4]).startswith("map(odd) returned")
    assert_elements_equal(found, outcomes(iter(plain)))
    assert notes(make()) == notes(plain)


@pytest.mark.parametrize(
    "returned", [7, 2.5, "text", None, [1, 2], np.float32(1), 2**70, (1, "a"), {"a": [1]}, range(3)]
)
def test_what_the_second_function_is_given_is_canonical(returned):
    def make(seen):
        def look(*given):
            seen.append([(type(part), getattr(part, "dtype", None)) for part in given])
            return 1

        return numbers().take(4).map(lambda _: returned).map(look)

    fused, plain = [], []
    assert_elements_equal(outcomes(iter(make(fused))), outcomes(iter(make(plain).with_options(no_rules()))))
    assert fused == plain
    fused.clear()
    plain.clear()
    one_by_one = outcomes(iter(make(fused).batch(2)))
    assert_elements_equal(one_by_one, outcomes(iter(make(plain).batch(2).with_options(no_rules()))))
    assert fused == plain


@pytest.mark.parametrize("demand", [1, 4])
def test_calls_are_as_many_as_before_and_none_early(demand):
    def calls(options):
        seen = []

        def note(name):
            def function(x):
                seen.append((name, int(np.ravel(x)[0])))
                return x

            return function

        data = numbers().map(note("a")).map(picture).map(note("b")).map(corner)
        iterator = iter((data if demand == 1 else data.batch(demand)).with_options(options))
        next(iterator)
        first = sorted(seen)
        list(iterator)
        return first, sorted(seen)

    assert calls(Options()) == calls(no_rules())


def test_each_element_goes_through_all_functions_before_the_next():
    order = []

    def make(name, function):
        def noted(x):
            order.append(name)
            return function(x)

        return noted

    list(numbers().take(6).map(make("a", picture)).map(make("b", scale)).map(make("c", corner)).batch(6))
    assert order == ["a", "b", "c"] * 6


def test_arrays_that_a_function_keeps_are_not_written_to_by_the_next():
    kept = {}

    def keep(x):
        return kept.setdefault(int(x), np.full(LARGE, float(x)))

    def in_place(image):
        image += 1
        return image

    found = [image[0, 0] for batch in numbers().map(keep).map(in_place).batch(4) for image in batch]
    assert found == [x + 1.0 for x in range(11)]
    assert [image[0, 0] for image in kept.values()] == list(range(11))


def test_a_buffer_that_is_filled_again_may_be_handed_on():
    buffer = np.zeros(LARGE)

    def fill(x):
        buffer[:] = x
        return buffer

    found = [
        image[0, 0] for batch in numbers().map(fill).map(lambda x: x[:] if True else x).batch(4) for image in batch
    ]
    assert found == list(range(11))


@pytest.mark.parametrize("where", ["first", "second", "last"])
@pytest.mark.parametrize("size", [1, 4])
def test_an_interrupt_loses_no_element_and_repeats_no_call(where, size):
    calls = {"first": [], "second": [], "last": []}

    def stage(name, function):
        def noted(x):
            calls[name].append(1)
            if name == where and len(calls[name]) == 7:
                raise KeyboardInterrupt
            return function(x)

        return noted

    data = numbers().map(stage("first", picture)).map(stage("second", scale)).map(stage("last", corner)).batch(size)
    iterator = iter(data)
    found = []
    with pytest.raises(KeyboardInterrupt):
        while True:
            found.extend(next(iterator))
    found.extend(x for batch in iterator for x in batch)
    assert_elements_equal(found, [np.float64(x / 2) for x in range(11)])
    assert {name: len(seen) for name, seen in calls.items()} == {name: 12 if name == where else 11 for name in calls}


def test_no_function_gets_more_calls_at_once_than_it_was_given():
    lock = threading.Lock()
    most = {"first": 0, "second": 0}
    now = {"first": 0, "second": 0}

    def stage(name):
        def function(x):
            with lock:
                now[name] += 1
                most[name] = max(most[name], now[name])
            time.sleep(0.001)  # is work, while which others may call
            with lock:
                now[name] -= 1
            return x

        return function

    with no_leaks():
        data = Dataset.range(40).map(stage("first"), num_parallel_calls=2).map(stage("second"), num_parallel_calls=2)
        assert "map_fusion" in rules(data)
        assert len(list(data)) == 40
    assert max(most.values()) <= 2


@pytest.mark.parametrize("position", range(12))
def test_resumes_with_failures_between_the_stages(position):
    def make():
        return numbers().map(fail_at(3)).map(picture).map(fail_at(5)).map(corner).batch(2)

    expected = outcomes(iter(make()))
    iterator = iter(make())
    for _ in range(min(position, len(expected))):
        try:
            next(iterator)
        except ValueError:
            continue
    resumed = iter(make())
    resumed.load_state_dict(iterator.state_dict())
    assert_elements_equal(outcomes(resumed), expected[position:])

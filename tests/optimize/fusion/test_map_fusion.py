"""map_fusion: maps one after another run as one, and nobody can tell."""

import numpy as np
import pytest

import dataset
from dataset import AUTOTUNE, Dataset, Options
from dataset.optimize.driver import optimize
from dataset.testing import assert_elements_equal, check_operator, check_rule, outcomes
from support.pipelines import fired, no_rules, unoptimized

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


def corner(image):
    return image[0, 0]


@dataset.vectorized
def vectorized(x):
    return x + 1


def numbers():
    return Dataset.range(11)


def chained(*functions, **arguments):
    data = numbers()
    for function in functions:
        data = data.map(function, **arguments)
    return data


ANY_ORDER = {"num_parallel_calls": 2, "deterministic": False}
CHAINS = {
    "three": lambda: chained(add, double, pair),
    "several arguments": lambda: chained(pair, unpack),
    "equal numbers of calls": lambda: chained(add, double, num_parallel_calls=2),
    "on columns": lambda: chained(lambda x: x + 1, lambda x: x * 2),
    "partly on columns": lambda: chained(add, lambda x: x * 2, picture, lambda x: x / 2, corner),
    "AUTOTUNE": lambda: chained(add, double, num_parallel_calls=AUTOTUNE),
    "in any order": lambda: chained(add, double, **ANY_ORDER),
    "not: alone": lambda: chained(add),
    "not: an op between": lambda: chained(add).take(9).map(double),
    "not: other numbers of calls": lambda: chained(add, num_parallel_calls=2).map(double, num_parallel_calls=3),
    "not: one parallel": lambda: chained(add).map(double, num_parallel_calls=3),
    "not: other order": lambda: chained(add, **ANY_ORDER).map(double, num_parallel_calls=2),
    "not: processes": lambda: chained(add, double, executor="process", num_parallel_calls=1),
    "not: vectorized above": lambda: chained(add, vectorized),
    "not: vectorized below": lambda: chained(vectorized, add),
    "not: random": lambda: chained(add).random_map(lambda rng, x: x),
    "not: a filter between": lambda: chained(add).filter(bool).map(double),
}


@pytest.mark.parametrize("case", CHAINS)
def test_fires_and_changes_nothing(case):
    data = CHAINS[case]()
    assert ("map_fusion" in fired(data)) is not case.startswith("not: ")
    if "map_fusion" in fired(data):
        assert "together with its input" in data.explain()
        if case != "in any order":
            check_operator(lambda: CHAINS[case]().batch(4), outcomes(iter(unoptimized(data.batch(4)))), positions=2)


def misses(data):
    return [str(missed) for missed in optimize(data.plan).missed if missed.rule == "map_fusion"]


def notes(data):
    return [getattr(outcome, "__notes__", None) for outcome in outcomes(iter(data)) if isinstance(outcome, Exception)]


def test_the_rule_alone():
    check_rule("map_fusion", CHAINS["three"], "map(pair) <- map(double) <- map(add) <- range(11)")


def test_says_why_not():
    for case, words in (
        ("other numbers of calls", "map(add) below it has different parallel settings (2 parallel calls; here 3 "),
        ("one parallel", "one call at a time"),
        ("processes", "worker processes"),
    ):
        (miss,) = misses(CHAINS[f"not: {case}"]())
        assert words in miss
    assert not misses(CHAINS["not: vectorized above"]())


def fail_at(*bad):
    def function(x):
        if int(np.ravel(x)[0]) in bad:
            raise ValueError(f"for {int(np.ravel(x)[0])}")
        return x

    return function


@pytest.mark.parametrize("calls", [None, 1, 3, AUTOTUNE])
def test_failures_of_every_stage_keep_their_places_and_names(calls):
    for between in (
        [lambda x: x],
        [pair, lambda x, _: x],
        [picture],
        [lambda x: {"a": x, "b": (x, picture(x))}, lambda parts: parts["a"]],
    ):
        data = chained(fail_at(2, 7), *between, fail_at(0, 3, 10), num_parallel_calls=calls)
        assert "map_fusion" in fired(data)
        assert len(notes(data)) == 5
        assert_elements_equal(outcomes(iter(data)), outcomes(iter(unoptimized(data))))
        assert notes(data) == notes(unoptimized(data))
    small = chained(fail_at(2, 7), pair, lambda x, _: x, fail_at(0, 3, 10), num_parallel_calls=calls)
    check_operator(lambda: small, positions=4)


@pytest.mark.parametrize(
    "returned", [7, 2.5, "text", None, [1, 2], np.float32(1), 2**70, (1, "a"), {"a": [1]}, range(3)]
)
def test_what_the_second_function_is_given_is_canonical(returned):
    def run(options, demand):
        seen = []

        def look(*given):
            seen.append([(type(part), getattr(part, "dtype", None)) for part in given])
            return 1

        data = numbers().take(4).map(lambda _: returned).map(look).batch(demand)
        return [seen, [repr(outcome) for outcome in outcomes(iter(data.with_options(options)))]]

    for demand in (1, 2):
        assert run(Options(), demand) == run(no_rules(), demand)


def test_arrays_that_a_function_keeps_are_not_written_to_by_the_next():
    kept = {}

    def keep(x):
        return kept.setdefault(int(x), np.full(LARGE, float(x)))

    def in_place(image):
        image += 1
        return image

    found = [image[0, 0] for batch in chained(keep, in_place).batch(4) for image in batch]
    assert found == [x + 1.0 for x in range(11)]
    assert [image[0, 0] for image in kept.values()] == list(range(11))


def test_a_buffer_that_is_filled_again_may_be_handed_on():
    buffer = np.zeros(LARGE)

    def fill(x):
        buffer[:] = x
        return buffer

    batches = chained(fill, lambda x: x[:] if True else x).batch(4)
    assert [image[0, 0] for batch in batches for image in batch] == list(range(11))

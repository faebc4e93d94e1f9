"""from_generator: what a Python generator yields. tests/oracle compares signatures, arguments and failures."""

import numpy as np
import pytest

from dataset import ClosedError, Dataset, SpecError, TensorSpec
from dataset.runtime.context import open_plan
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import ints
from support.pipelines import Record
from support.resuming import interrupted, loaded

INT = TensorSpec((), np.int64)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [Record(1, [2.0]), Record(3, [4.0, 5.0])],
        [np.datetime64("2024-01-01"), np.datetime64("2024-01-02")],
    ],
    ids=repr,
)
def test_gives_every_structure_and_kind_as_from_tensors_does(values):
    expected = [element for value in values for element in Dataset.from_tensors(value)]
    dataset = Dataset.from_generator(lambda: values)
    assert dataset.cardinality() == -2
    check_operator(lambda: dataset, expected)
    check_operator(lambda: dataset.shuffle(1), expected, positions=2)


def test_is_read_no_further_than_requested():
    check_laziness(lambda numbers: numbers, lambda k: k)  # of a generator
    check_laziness(lambda numbers: numbers.batch(7), lambda k: 7 * k)
    with iter(Dataset.from_generator(lambda: iter(int, 1))) as endless:
        assert [next(endless) for _ in range(3)] == [0, 0, 0]


# Errors while iterating


def failing(after):
    def generate():
        yield from range(after)
        raise ValueError("broken")

    return generate


def test_an_exception_comes_after_what_was_yielded_and_says_that_it_ends_it():
    found = check_operator(lambda: Dataset.from_generator(failing(5)), [*ints(*range(5)), ValueError("broken")])
    assert found[5].__notes__[0] == "this exception ended the generator, as in plain Python: no element comes after it"
    for batch in (1, 2, 5):
        whole = [np.arange(i, i + batch) for i in range(0, 5, batch) if i + batch <= 5]
        assert_elements_equal(
            outcomes(iter(Dataset.from_generator(failing(5)).batch(batch))), [*whole, ValueError("broken")]
        )


def test_a_state_can_be_taken_while_the_exception_of_the_generator_waits_for_its_turn():
    def bad(x):
        raise KeyError("bad")

    def make():
        return Dataset.from_generator(failing(1)).map(bad).shuffle(2, seed=1)  # requests two, gets one and an exception

    check_operator(make, [KeyError("bad"), ValueError("broken")])


# Signatures


def test_without_a_signature_the_first_element_tells_the_spec_and_is_found_once():
    runs = []
    dataset = Dataset.from_generator(lambda: runs.append(None) or iter([[1, 2]]))
    assert dataset.element_spec == dataset.element_spec == TensorSpec((None,), np.int64)
    assert len(runs) == 1
    with pytest.raises(SpecError, match="output_signature"):
        _ = Dataset.from_generator(list).element_spec


# Arrays that the generator keeps


@pytest.mark.parametrize("first", [0, b"a", True, np.float32(1)])
def test_a_generator_may_use_its_lists_again(first):
    def reusing():
        flat, nested, mixed = [first], [[first], [first]], (1, [[np.zeros(1)]])
        yield flat, nested, mixed
        flat[0] = nested[0][0] = nested[1][0] = type(first)()
        mixed[1][0][0][0] = 5
        yield flat, nested, mixed

    def fresh():
        for value, number in ((first, 0.0), (type(first)(), 5.0)):
            yield [value], [[value], [value]], (1, [[np.full(1, number)]])

    for batched in (lambda dataset: dataset, lambda dataset: dataset.batch(2)):
        expected = list(batched(Dataset.from_generator(fresh)))
        assert_elements_equal(list(batched(Dataset.from_generator(reusing))), expected)


# Reruns


def stepped(iterator, count):
    """Return what comes of some steps; a value, or the type of what was raised."""
    found = []
    for _ in range(count):
        try:
            found.append(int(next(iterator)))
        except BaseException as error:
            found.append(type(error))
    return found


def interrupted_at_3(armed):
    for number in range(5):
        if number == 3 and armed:
            raise armed.pop()
        yield number


def test_after_an_interrupt_a_generator_that_can_not_be_rerun_is_an_error():
    generator = interrupted_at_3([KeyboardInterrupt()])
    iterator = iter(Dataset.from_generator(lambda: generator))
    assert stepped(iterator, 6) == [0, 1, 2, KeyboardInterrupt, ClosedError, ClosedError]
    rest = [interrupted_at_3([KeyboardInterrupt()]), iter([0]), iter([0])]
    iterator = iter(Dataset.from_generator(lambda: rest.pop(0)))
    assert stepped(iterator, 6) == [0, 1, 2, KeyboardInterrupt, ClosedError, ClosedError]


def test_values_before_a_resumed_position_are_not_converted_and_their_exception_is_raised():
    fails = []

    def source():
        yield 1
        if fails:
            raise OSError("down")
        yield (1, 2)  # another structure
        yield 3

    dataset = Dataset.from_generator(source)
    _, states = interrupted(dataset, [2])
    for expected in ([3, StopIteration], [OSError, StopIteration]):
        assert stepped(loaded(dataset, states[2]), 2) == expected
        fails.append(True)


def test_a_state_taken_while_outcomes_wait_for_their_turn_repeats_them_after_the_resume():
    plan = Dataset.from_generator(lambda: [0, "text", 2], output_signature=TensorSpec((), np.int64)).plan
    (first, operator), (second, resumed) = open_plan(plan), open_plan(plan)
    assert operator.pull(5).length == 1
    resumed.load(operator.save())
    for coordinator, opened in ((first, operator), (second, resumed)):
        with pytest.raises(SpecError, match="element 1"):
            opened.pull(5)
        assert opened.pull(5).only() == 2
        coordinator.shut_down(opened.close, wait=True)

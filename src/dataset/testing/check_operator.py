"""Contract check of an op: everything that runtime/contract.py promises, and exact laziness."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dataset.dataset import Dataset
from dataset.options import Options
from dataset.plan.node import has_random_access, spec_is_static, walk
from dataset.plan.plain import digest
from dataset.plan.spec import flatten_spec, spec_of
from dataset.runtime.context import open_plan
from dataset.runtime.contract import Operator
from dataset.runtime.position import Position
from dataset.testing.elements import assert_elements_equal, outcomes
from dataset.testing.leaks import no_leaks

_PULL_SIZES = (1, 2, 3, 7, 10_000)
_PLAIN = (bool, int, float, str, bytes, type(None))


def check_operator(
    make: Callable[[], Dataset[Any]], expected: Sequence[Any] | None = None, *, positions: int = 50
) -> list[Any]:
    """Check a pipeline, and so the op at its end, against everything that every op must do.

    - It produces ``expected``, equal in structure, dtype and value, and the same again when it is built anew.
    - Chunks of every size contain the same elements. After the end, every pull returns the end.
    - The optimizer does not change the elements.
    - ``element_spec`` is compatible with every element. ``cardinality`` is correct if it is a number.
    - If the plan has random access, ``dataset[i]`` equals the element at that position of an iteration.
    - A state saved at any position resumes exactly there, also if it is saved again at once. It is plain data.
    - A state computed by ``Operator.advance`` resumes where a state saved at that position does.
    - Stopping at any position leaves no threads and no open files.

    Args:
        make: builds the pipeline. It must build the same one each time, so random ops need seeds. The pipeline must
            have less than 10,000 elements.
        expected: the elements, with an exception in the place of each failing one. Default: the outcome of a first run.
        positions: the number of positions, from the first on, at which saving and stopping are tried.

    Returns:
        The elements.

    Raises:
        AssertionError: one of these statements is false.

    >>> check_operator(lambda: Dataset.range(5).skip(3), [np.int64(3), np.int64(4)])
    [np.int64(3), np.int64(4)]
    """
    found = outcomes(iter(make()))
    if expected is not None:
        assert_elements_equal(found, expected)
    assert_elements_equal(outcomes(iter(make())), found)
    for size in _PULL_SIZES:
        assert_elements_equal(_pulled(make(), size), found)
    assert_elements_equal(outcomes(iter(_unoptimized(make()))), found)
    _check_spec(make(), found)
    _check_random_access(make(), found)
    last = min(len(found), positions)
    _check_resume(make, found, last)
    _check_stops(make, last)
    _check_arithmetic(make, found, positions)
    return found


def check_laziness(
    transform: Callable[[Dataset[Any]], Dataset[Any]], needed: Callable[[int], int], *, size: int = 50
) -> None:
    """Check that a transformation requests no more elements from its input than it needs.

    Args:
        transform: the transformation, applied to a dataset of the numbers below ``size``.
        needed: returns how many numbers ``k`` elements need, for k = 0, 1, 2, ...; more than ``size`` means all.
        size: how many numbers there are.

    Raises:
        AssertionError: a different number was taken for some ``k``, requested one by one or together.

    >>> check_laziness(lambda numbers: numbers.batch(4), lambda k: 4 * k)
    """
    taken = 0

    def count() -> Iterator[int]:
        nonlocal taken
        for number in range(size):
            taken += 1
            yield number

    iterator = iter(transform(Dataset.from_generator(count)))
    asked = 0
    while True:
        _assert_taken(taken, asked, min(needed(asked), size))
        if next(iterator, None) is None:
            break
        asked += 1
    for many in range(1, asked + 1):
        taken = 0
        _pull_together(transform(Dataset.from_generator(count)), many)
        _assert_taken(taken, many, min(needed(many), size))


def _pull_together(dataset: Dataset[Any], count: int) -> None:
    """Pull ``count`` elements the way ``batch(count)`` does."""
    coordinator, root = open_plan(dataset.plan)
    while count:
        chunk = root.pull(count)
        if chunk is None:
            raise AssertionError("fewer elements were returned together than one by one")
        count -= chunk.length
    coordinator.shut_down(root.close, wait=True)


def _assert_taken(taken: int, asked: int, needed: int) -> None:
    if taken != needed:
        raise AssertionError(f"{asked} elements took {taken} elements of the input, expected {needed}")


def _pulled(dataset: Dataset[Any], size: int) -> list[Any]:
    """Return all elements, pulled in chunks of up to ``size``. Check that the end is returned again."""
    coordinator, root = open_plan(dataset.plan)
    found = _outcomes_of(root, size)
    if root.pull(size) is not None:
        raise AssertionError("there are elements after the end")
    coordinator.shut_down(root.close, wait=True)
    return found


def _outcomes_of(root: Operator, size: int) -> list[Any]:
    """Return all remaining elements, pulled in chunks of up to ``size``."""

    def elements() -> Iterator[list[Any]]:
        while (chunk := root.pull(size)) is not None:
            if not 1 <= chunk.length <= size:
                raise AssertionError(f"pull({size}) returned {chunk.length} elements")
            yield chunk.rows()

    found: list[Any] = []
    while True:
        try:
            for rows in elements():
                found.extend(rows)
            break
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001  # it is an outcome
            found.append(error)
    return found


def _unoptimized(dataset: Dataset[Any]) -> Dataset[Any]:
    options = Options()
    options.optimization.enabled = False
    return dataset.with_options(options)


def _may_skip(dataset: Dataset[Any]) -> bool:
    """Return whether the dataset may leave out elements that its cardinality and its positions count."""
    return any(getattr(node, "may_skip_rows", False) for node in walk(dataset.plan))


def _check_spec(dataset: Dataset[Any], found: Sequence[Any]) -> None:
    good = [element for element in found if not isinstance(element, Exception)]
    cardinality = dataset.cardinality()
    if cardinality >= 0 and len(found) == len(good) and cardinality != len(found) and not _may_skip(dataset):
        raise AssertionError(f"cardinality() is {cardinality}, but there are {len(found)} elements")
    if not good:
        return
    static = spec_is_static(dataset.plan)
    structure, specs = flatten_spec(dataset.element_spec)
    for element in good:
        got_structure, got = flatten_spec(spec_of(element))
        pairs = zip(specs, got, strict=False)
        # A spec that was found by computing one element does not know the shapes of others.
        compatible = [spec.is_compatible_with(mine) if static else spec.dtype == mine.dtype for spec, mine in pairs]
        if got_structure != structure or not all(compatible):
            raise AssertionError(f"element_spec {dataset.element_spec!r} does not allow {element!r:.200}")


def _check_random_access(dataset: Dataset[Any], found: Sequence[Any]) -> None:
    if not has_random_access(dataset.plan) or _may_skip(dataset) or any(isinstance(one, Exception) for one in found):
        return
    count = min(len(found), 20)
    assert_elements_equal([dataset[index] for index in range(count)], found[:count])
    if dataset.cardinality() >= 0:  # otherwise negative indices are not supported
        assert_elements_equal([dataset[index] for index in range(-count, 0)], found[len(found) - count :])
    for index in (len(found), -len(found) - 1):
        try:
            element = dataset[index]
        except IndexError:
            continue
        raise AssertionError(f"there are {len(found)} elements, but element {index} is {element!r}")


def _advance(iterator: Iterator[Any], count: int) -> None:
    for _ in range(count):
        try:
            next(iterator)
        except StopIteration:
            raise AssertionError("the iterator ended early") from None
        except Exception:  # noqa: BLE001, S112  # a failing element is skipped like any other
            continue


def _check_resume(make: Callable[[], Dataset[Any]], found: Sequence[Any], last: int) -> None:
    """Resume at each position up to ``last``: from the state saved there, and from those saved soon after resuming.

    Most of the latter equal a state that is loaded anyway. Only those that differ are loaded, too.
    """
    states = [_state_at(make, found, position) for position in range(last + 1)]
    for position, state in enumerate(states):
        following = min(position + 1, len(found))
        with iter(make()) as resumed:
            resumed.load_state_dict(state)
            again = resumed.state_dict()
            _advance(resumed, following - position)
            later = resumed.state_dict()
            assert_elements_equal(outcomes(resumed), found[following:])
        if digest(again) != digest(state):
            _check_resumed(make, again, found[position:])
        if following > last or digest(later) != digest(states[following]):
            _check_resumed(make, later, found[following:])


def _state_at(make: Callable[[], Dataset[Any]], found: Sequence[Any], position: int) -> dict[str, Any]:
    with iter(make()) as iterator:
        _advance(iterator, position)
        state: dict[str, Any] = iterator.state_dict()
        assert_plain_data(state)
        assert_elements_equal(outcomes(iterator), found[position:])  # saving has changed nothing
    return state


def _check_resumed(make: Callable[[], Dataset[Any]], state: dict[str, Any], rest: Sequence[Any]) -> None:
    assert_plain_data(state)
    with iter(make()) as resumed:
        resumed.load_state_dict(state)
        assert_elements_equal(outcomes(resumed), rest)


def _check_arithmetic(make: Callable[[], Dataset[Any]], found: Sequence[Any], positions: int) -> None:
    """Check ``advance`` from the start and from a middle position, for several counts, one of them too large."""
    for start in (0, min(len(found), positions) // 3):
        for count in (1, 2, 5, len(found) - start, len(found) - start + 1):
            if count > 0:
                _check_advance(make, found, start, count)


def _check_advance(make: Callable[[], Dataset[Any]], found: Sequence[Any], start: int, count: int) -> None:
    coordinator, root = open_plan(make().plan)
    _pass(root, start)
    state = root.save()
    after = root.advance(state, count)
    coordinator.shut_down(root.close, wait=True)
    if after is None:
        return
    plain = after.to_plain()
    assert_plain_data(plain)
    if start + count > len(found):
        raise AssertionError(f"advance() returned a state after {start + count} of {len(found)} elements")
    coordinator, root = open_plan(make().plan)
    root.load(Position.from_plain(plain))
    rest = _outcomes_of(root, 3)
    coordinator.shut_down(root.close, wait=True)
    assert_elements_equal(rest, found[start + count :])


def _pass(root: Operator, count: int) -> None:
    for _ in range(count):
        with contextlib.suppress(Exception):  # a failing element is skipped like any other
            root.pull(1)


def _check_stops(make: Callable[[], Dataset[Any]], last: int) -> None:
    """Stop at each position up to ``last``. The leak check is slow, so single positions follow only after a failure."""
    positions = range(last + 1)
    try:
        with no_leaks():
            for position in positions:
                _stop_at(make, position)
    except AssertionError:
        for position in positions:
            try:
                with no_leaks():
                    _stop_at(make, position)
            except AssertionError as error:
                raise AssertionError(f"stopped after {position} elements: {error}") from error
        raise


def _stop_at(make: Callable[[], Dataset[Any]], position: int) -> None:
    iterator = iter(make())
    _advance(iterator, position)
    iterator.close()
    iterator.close()
    iterator = iter(make())
    _advance(iterator, position)
    del iterator


def assert_plain_data(state: Any) -> None:
    """Raise AssertionError unless ``state`` holds nothing but numbers, strings, bytes, arrays, lists and dicts."""
    if isinstance(state, dict):
        for key, value in state.items():
            if not isinstance(key, str):
                raise AssertionError(f"the keys of a state must be strings, got {key!r}")  # noqa: TRY004  # a failed check
            assert_plain_data(value)
    elif isinstance(state, list):
        for value in state:
            assert_plain_data(value)
    elif isinstance(state, np.ndarray):
        if state.dtype.hasobject:
            raise AssertionError(f"a state holds an array of objects: {state!r:.100}")
    elif type(state) not in _PLAIN:
        raise AssertionError(f"a state holds a {type(state).__name__}: {state!r:.100}")

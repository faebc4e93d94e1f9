"""Helpers for tests that interrupt pipelines and resume them.

``EXAMPLES=20 pytest tests/test_resume*`` tries 20 times as many pipelines and places.

An outcome is an element, or the exception of an element that failed. A place is the number of outcomes before it.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hypothesis import HealthCheck, settings

from dataset import Dataset, DatasetIterator, checkpoint
from dataset.plan.plain import digest
from dataset.testing import assert_elements_equal, outcomes

Build = Callable[[], Dataset[Any]]
"""Builds a pipeline as a new process would: from new objects, without existing caches."""


def examples(count: int) -> settings:
    """Return settings for this many examples, times the factor in the environment."""
    count *= int(os.environ.get("EXAMPLES", "1"))
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


def resealed(state: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the state with these entries changed and a correct digest."""
    changed = {key: value for key, value in {**state, **changes}.items() if key != "digest"}
    return {**changed, "digest": digest(changed)}


DELETED = object()
"""Marks an entry to be removed from a state."""


def paths_in(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a state."""
    yield path
    items = state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, list) else ()
    for key, value in items:
        yield from paths_in(value, (*path, key))


def damaged(state: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a state with the value at a path replaced or removed."""
    if not path:
        return value
    state = copy.deepcopy(state)
    parent = state
    for key in path[:-1]:
        parent = parent[key]
    if value is DELETED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return state


def advanced(iterator: DatasetIterator[Any], count: int) -> list[Any]:
    """Return the next ``count`` outcomes, or fewer if there are no more."""
    found: list[Any] = []
    for _ in range(count):
        try:
            found.append(next(iterator))
        except StopIteration:
            break
        except Exception as error:
            found.append(error)
    return found


def interrupted(dataset: Dataset[Any], places: Iterable[int]) -> tuple[list[Any], dict[int, str]]:
    """Return all outcomes of a run, and the states taken at some places of it, as JSON.

    The states are serialized immediately and again at the end of the run: later pulls must not have changed them.
    """
    found: list[Any] = []
    states: dict[int, Any] = {}
    written: dict[int, str] = {}
    with iter(dataset) as iterator:
        for place in sorted(set(places)):
            found += advanced(iterator, place - len(found))
            states[place] = iterator.state_dict()
            written[place] = to_json(states[place])
            if len(found) < place:  # it has ended, and this is the state after the end
                break
        found += outcomes(iterator)
    assert {place: to_json(state) for place, state in states.items()} == written
    return found, written


def to_json(state: Any) -> str:
    """Return a state as text, as another process would read it."""
    return json.dumps(checkpoint.to_json(state))


def from_json(text: str) -> Any:
    """Parse the result of ``to_json``."""
    return checkpoint.from_json(json.loads(text))


def loaded(dataset: Dataset[Any], state: str) -> DatasetIterator[Any]:
    """Return an iterator at the position of the state."""
    iterator = iter(dataset)
    iterator.load_state_dict(from_json(state))
    return iterator


def check_every_place(build: Build, places: Iterable[int], *, resume: Build | None = None) -> list[Any]:
    """Check that a new pipeline resumed at each place continues like the interrupted one. Return all outcomes.

    Args:
        build: builds the pipeline to interrupt.
        places: the places at which states are taken.
        resume: builds the pipeline to resume; by default ``build``.
    """
    found, states = interrupted(build(), places)
    for place, state in states.items():
        with loaded((resume or build)(), state) as iterator:
            assert_from(place, outcomes(iterator), found)
    return found


def check_stops(build: Build, stops: Iterable[int], found: Sequence[Any]) -> None:
    """Check that a run that is interrupted at each stop and resumed in a new pipeline returns ``found``."""
    assert_elements_equal(with_stops(build, stops), found)


def assert_from(place: int, got: Sequence[Any], found: Sequence[Any]) -> None:
    """Raise AssertionError unless ``got`` are the outcomes after a place."""
    try:
        assert_elements_equal(got, found[place:])
    except AssertionError as error:
        error.add_note(f"resumed at {place} of {len(found)}")
        raise


def with_stops(build: Build, stops: Iterable[int]) -> list[Any]:
    """Return all outcomes of a run that is interrupted at each stop and resumed in a new pipeline.

    At each stop, the state is taken twice, and taken again from an iterator that has only loaded it.
    """
    found: list[Any] = []
    state: str | None = None
    for stop in sorted(stops):
        with _begun(build, state) as iterator:
            found += advanced(iterator, stop - len(found))
            iterator.state_dict()
            state = to_json(iterator.state_dict())
        with _begun(build, state) as iterator:
            state = to_json(iterator.state_dict())
    with _begun(build, state) as iterator:
        return found + outcomes(iterator)


def _begun(build: Build, state: str | None) -> DatasetIterator[Any]:
    return iter(build()) if state is None else loaded(build(), state)

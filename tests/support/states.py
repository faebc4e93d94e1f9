"""Places of iterators: saved, resumed, and held by objects that are no iterators."""

from __future__ import annotations

from typing import Any

from dataset import Dataset


class Holder:
    """An object with a state that any value may be."""

    def __init__(self, state: Any = None) -> None:
        self.state = state

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Any) -> None:
        self.state = state


def state_after(dataset: Dataset[Any], count: int, before: Any = None) -> Any:
    """Return the state of a new iterator after some elements; it begins at the state ``before``, if there is one."""
    with iter(dataset) as iterator:
        if before is not None:
            iterator.load_state_dict(before)
        for _ in range(count):
            next(iterator)
        return iterator.state_dict()


def rest_of(dataset: Dataset[Any], state: Any, **options: Any) -> list[Any]:
    """Return the elements of a new iterator that resumes at a state."""
    with iter(dataset) as iterator:
        iterator.load_state_dict(state, **options)
        return list(iterator)

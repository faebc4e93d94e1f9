"""to_json and from_json: a state where JSON is what is stored, beside the other numbers of a run."""

from __future__ import annotations

from typing import Any

from dataset.plan.plain import state_from_json, state_to_json

__all__ = ["from_json", "to_json"]


def to_json(state: dict[str, Any]) -> dict[str, Any]:
    """A state as a dict that ``json.dumps`` takes; ``load_state_dict`` takes it, too, as ``json.loads`` gives it back.

    Bytes and arrays become base64, a third longer. All values come back exactly, also those that JSON has no word for.

    Args:
        state: what ``state_dict()`` gave.

    Raises:
        StateError: if something in it is no plain data.

    >>> import json
    >>> from dataset import Dataset, checkpoint
    >>> dataset = Dataset.range(100).shuffle(100).batch(10)
    >>> iterator = iter(dataset)
    >>> _ = next(iterator)
    >>> text = json.dumps({"step": 1, "data": checkpoint.to_json(iterator.state_dict())})
    >>> later = iter(dataset)
    >>> later.load_state_dict(json.loads(text)["data"])
    >>> bool((next(later) == next(iterator)).all())
    True
    """
    return state_to_json(state)


def from_json(data: dict[str, Any]) -> dict[str, Any]:
    """The state that ``to_json`` made ``data`` of.

    Args:
        data: what it gave, as ``json.loads`` gives it back.

    Raises:
        StateError: if ``data`` is not that, or was changed.

    >>> from dataset import Dataset, checkpoint
    >>> state = iter(Dataset.range(3)).state_dict()
    >>> checkpoint.from_json(checkpoint.to_json(state)) == state
    True
    """
    state: dict[str, Any] = state_from_json(data)
    return state

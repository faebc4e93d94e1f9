"""Conversion of states to JSON and back, to store them together with other data of a run."""

from __future__ import annotations

from typing import Any

from dataset.plan.plain import state_from_json, state_to_json


def to_json(state: dict[str, Any]) -> dict[str, Any]:
    """Convert a state to a dict that ``json.dumps`` accepts. ``load_state_dict`` accepts the result of ``json.loads``.

    Bytes and arrays are encoded in base64, which is a third longer. All values are restored exactly, including those
    that JSON cannot represent.

    Args:
        state: the result of ``state_dict()``.

    Raises:
        StateError: the state contains something that is not plain data.

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
    """Convert the result of ``to_json`` back to a state.

    Args:
        data: the result of ``to_json``, as returned by ``json.loads``.

    Raises:
        StateError: ``data`` is not such a result, or was changed.

    >>> from dataset import Dataset, checkpoint
    >>> state = iter(Dataset.range(3)).state_dict()
    >>> checkpoint.from_json(checkpoint.to_json(state)) == state
    True
    """
    state: dict[str, Any] = state_from_json(data)
    return state

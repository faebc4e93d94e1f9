"""What a saved state says of itself around the place: its version, the pipeline it is of, the random orders, a digest.

It is looked at before anything of the place is. Whatever it holds may have been written by anybody.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dataset.errors import StateError
from dataset.plan.epochs import drawing_nodes
from dataset.plan.fingerprint import fingerprint
from dataset.plan.lazy import lazy_property
from dataset.plan.likeness import difference, is_outline, outline
from dataset.plan.node import Node
from dataset.plan.plain import digest, unwrapped
from dataset.runtime.contract import State
from dataset.runtime.random.streams import EpochLedger
from dataset.runtime.state import resharding
from dataset.version import __version__

__all__ = ["KEYS", "STATE_VERSION", "Envelope"]

STATE_VERSION = 3

KEYS = ("version", "library", "fingerprint", "plan", "shares", "elements", "orders", "operator", "digest")

_COUNTS = frozenset(
    [
        "ahead",
        "base",
        "batch_size",
        "before",
        "behind",
        "current",
        "drawn",
        "dropped",
        "epoch",
        "failures",
        "finished",
        "gap",
        "given",
        "gone",
        "hole",
        "iteration",
        "kept",
        "key",
        "left",
        "length",
        "made",
        "number",
        "offset",
        "opened",
        "part",
        "passed",
        "place",
        "position",
        "raised",
        "read",
        "record",
        "remaining",
        "rounds",
        "row",
        "since",
        "skip",
        "taken",
        "turn",
    ]
)
"""Names under which operators keep counts and places in their states."""


class Envelope:
    """Puts places of one pipeline into states, and takes them out again.

    Args:
        plan: of the pipeline, as it runs.
    """

    def __init__(self, plan: Node) -> None:
        self._plan = plan
        self._drawing = list(drawing_nodes(plan))

    @lazy_property
    def _fingerprint(self) -> str:
        return fingerprint(self._plan)

    @lazy_property
    def _outline(self) -> list[Any]:
        return outline(self._plan)

    def seal(self, place: State | None, elements: int, epochs: EpochLedger) -> State:
        """A state.

        Args:
            place: of the last operator; None behind the end.
            elements: handed out so far.
            epochs: of the iterator.
        """
        state: State = {
            "version": STATE_VERSION,
            "library": __version__,
            "fingerprint": self._fingerprint,
            "plan": [entry if type(entry) is int else list(entry) for entry in self._outline],
            "shares": resharding.shares(self._plan),
            "elements": elements,
            "orders": [list(epochs.place(node.counter, node.key)) for node in self._drawing],
            "operator": place,
        }
        return {**state, "digest": digest(state)}

    def open(self, state: Any) -> State:
        """The state, if it is one of this pipeline; from what ``to_json`` made of it, too.

        Raises:
            StateError: if it is none.
        """
        try:
            return self._opened(state)
        except StateError:
            raise
        except (ValueError, TypeError, RecursionError) as error:  # an integer too long to be shown, for example
            raise StateError(f"the state is damaged: {error}") from error

    def _opened(self, state: Any) -> State:
        state = unwrapped(state)
        _check_whole(state)
        if state["fingerprint"] != self._fingerprint:
            known = is_outline(state["plan"])
            told = difference(state["plan"], self._outline) if known else "it does not say which"
            raise StateError(
                f"the state belongs to another pipeline: {told}; build the "
                "pipeline exactly as it was when the state was saved (fingerprint "
                f"{state['fingerprint']!r:.40}, this one has {self._fingerprint!r})"
                + resharding.difference(state["shares"], self._plan)
            )
        elements, orders = state["elements"], state["orders"]
        if type(elements) is not int or elements < 0:
            raise StateError(f"the state is damaged: it is behind {elements!r:.40} elements")
        if type(orders) is not list or len(orders) != len(self._drawing) or not all(map(_is_order, orders)):
            raise StateError(
                f"the state is damaged: the random orders it names are none of this pipeline: {orders!r:.80}"
            )
        _check_counts(state["operator"])
        opened: State = state
        return opened

    def resume(self, state: State, epochs: EpochLedger) -> None:
        """Have operators that are opened with ``epochs`` be in the iterations of a state that ``open`` gave."""
        for node, (iteration, key) in zip(self._drawing, state["orders"], strict=True):
            epochs.resume(node.counter, key, iteration)

    def go_on(self, state: State, epochs: EpochLedger, *, begun: bool) -> None:
        """Have the iterations that begin from now on count on behind that of a state.

        Args:
            state: that ``open`` has found good, and to whose place the iterator has gone.
            epochs: of that iterator.
            begun: whether elements had been taken of it before.
        """
        for node, (iteration, key) in zip(self._drawing, state["orders"], strict=True):
            epochs.go_on(node.counter, iteration, key, begun=begun)


def _check_whole(state: Any) -> None:
    """Whether a state says of itself that it is of this version, and is what it was."""
    if type(state) is not dict or not all(type(key) is str for key in state):
        raise StateError(f"expected what state_dict() returned, a dict of {sorted(KEYS)}, got {state!r:.100}")
    version = state.get("version")
    if "version" in state and (type(version) is not int or version != STATE_VERSION):
        written = state.get("library")
        by = f", written by version {written} of the library" if type(written) is str else ""
        raise StateError(
            f"the state has version {version!r:.40}{by:.80}; this library, {__version__}, reads version "
            f"{STATE_VERSION}: go on with the library that wrote it, or begin anew"
        )
    missing = [key for key in KEYS if key not in state]
    if len(missing) == len(KEYS):
        raise StateError(f"expected what state_dict() returned, a dict of {sorted(KEYS)}, got {state!r:.100}")
    if missing:
        raise StateError(f"the state is cut short: it has no {' and no '.join(map(repr, missing))}")
    if len(state) != len(KEYS):
        raise StateError(f"the state is damaged: it has {sorted(set(state) - set(KEYS))!r:.100}, which no state has")
    found = state["digest"]
    if type(found) is not str or found != digest({key: state[key] for key in KEYS if key != "digest"}):
        raise StateError("the state is damaged: its content does not fit its digest")
    if type(state["fingerprint"]) is not str:
        raise StateError("the state is damaged: its fingerprint is no text")
    if not resharding.are_shares(state["shares"]):
        raise StateError("the state is damaged: it does not say of which process it is")


def _check_counts(place: Any) -> None:
    """Refuse a place in which a count is negative or is not an integer: operators would wait for what never comes."""
    pending = [place]
    while pending:
        part = pending.pop()
        if type(part) is dict:
            for key, value in part.items():
                if key in _COUNTS and not _can_be_count(key, value):
                    raise StateError(f"the state is damaged: {key!r} is {value!r:.40}, which is not a count")
            pending += part.values()
        elif type(part) is list or type(part) is tuple:
            pending += part


def _can_be_count(key: str, value: Any) -> bool:
    """Whether ``value`` is a count, or something else that some operator keeps under the same name."""
    if type(value) is int:
        # Below 0, skip() means all elements, and a feed of shard_by_process that it has ended.
        return (value >= 0 or key in {"remaining", "left"}) and abs(value) < 1 << 64
    return not isinstance(value, float | str | bytes) and not (isinstance(value, np.ndarray) and value.ndim == 0)


def _is_order(order: Any) -> bool:
    if type(order) is not list or len(order) != 2 or type(order[1]) is not int:
        return False
    return type(order[0]) is int and order[0] >= 0

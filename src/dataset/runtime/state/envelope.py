"""State envelope: the metadata of a saved state, namely its version, pipeline, random orders, and digest.

It is validated before the position inside is used. A state may have been written by anyone.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from dataset.errors import StateError
from dataset.plan.epochs import random_states
from dataset.plan.fingerprints.fingerprint import fingerprint
from dataset.plan.fingerprints.plan_diff import difference, is_outline, outline
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.plan.plain import digest, unwrapped
from dataset.runtime.position import Position
from dataset.runtime.random.streams import EpochLedger
from dataset.runtime.state import resharding
from dataset.version import __version__

STATE_VERSION = 5

KEYS = ("version", "library", "fingerprint", "plan", "shares", "elements", "orders", "operator", "digest")

State: TypeAlias = dict[str, Any]


class Envelope:
    """Wraps positions of one pipeline in states, and unwraps them.

    Args:
        plan: the plan of the pipeline, as it runs.
    """

    def __init__(self, plan: Node) -> None:
        self._plan = plan
        self._random = random_states(plan)

    @lazy_property
    def _fingerprint(self) -> str:
        return fingerprint(self._plan)

    @lazy_property
    def _outline(self) -> list[Any]:
        return outline(self._plan)

    def seal(self, position: Position | None, elements: int, epochs: EpochLedger) -> State:
        """Wrap a position in a state.

        Args:
            position: the position of the last operator; None after the end.
            elements: the number of elements handed out so far.
            epochs: the ledger of the iterator.
        """
        state: State = {
            "version": STATE_VERSION,
            "library": __version__,
            "fingerprint": self._fingerprint,
            "plan": [entry if type(entry) is int else list(entry) for entry in self._outline],
            "shares": resharding.shares(self._plan),
            "elements": elements,
            "orders": [list(epochs.place(random)) for random in self._random],
            "operator": None if position is None else position.to_plain(),
        }
        return {**state, "digest": digest(state)}

    def open(self, state: Any) -> State:
        """Validate and return a state of this pipeline; the result of ``to_json`` is also accepted.

        Its entry "operator" becomes a Position, or None.

        Raises:
            StateError: if it is not a valid state of this pipeline.
        """
        try:
            return self._opened(state)
        except StateError:
            raise
        except (ValueError, TypeError, RecursionError) as error:  # for example, an integer too long to be printed
            raise StateError(f"the state is damaged: {error}") from error

    def _opened(self, state: Any) -> State:
        state = unwrapped(state)
        _check_whole(state)
        if state["fingerprint"] != self._fingerprint:
            known = is_outline(state["plan"])
            told = difference(state["plan"], self._outline) if known else "the state does not describe its pipeline"
            raise StateError(
                f"the state belongs to another pipeline: {told}; build the "
                "pipeline exactly as it was when the state was saved (fingerprint "
                f"{state['fingerprint']!r:.40}, this one has {self._fingerprint!r})"
                + resharding.difference(state["shares"], self._plan)
            )
        elements, orders = state["elements"], state["orders"]
        if type(elements) is not int or elements < 0:
            raise StateError(f"the state is damaged: its number of elements is {elements!r:.40}")
        if type(orders) is not list or len(orders) != len(self._random) or not all(map(_is_order, orders)):
            raise StateError(f"the state is damaged: its random orders do not belong to this pipeline: {orders!r:.80}")
        plain = state["operator"]
        return {**state, "operator": None if plain is None else Position.from_plain(plain)}

    def resume(self, state: State, epochs: EpochLedger) -> None:
        """Set the iterations of operators opened with ``epochs`` to those of a state returned by ``open``."""
        for random, (iteration, key) in zip(self._random, state["orders"], strict=True):
            epochs.resume(random, key, iteration)

    def go_on(self, state: State, epochs: EpochLedger, *, begun: bool) -> None:
        """Make iterations that begin from now on count on from those of a state.

        Args:
            state: a state returned by ``open``, whose position the iterator has restored.
            epochs: the ledger of that iterator.
            begun: whether elements had been taken from the iterator before.
        """
        for random, (iteration, key) in zip(self._random, state["orders"], strict=True):
            epochs.go_on(random, iteration, key, begun=begun)


def _check_whole(state: Any) -> None:
    """Check that a state has this version and is undamaged, according to its own metadata."""
    if type(state) is not dict or not all(type(key) is str for key in state) or state.keys() & KEYS <= {"version"}:
        found, advice = f"{state!r:.100}", ""
        if type(state) is dict:
            found = f"a dict of {list(state)!r:.100}"
            advice = (
                "; if one of its values is the state, pass that; load a state of to_torch() or of a StatefulDataLoader "
                "into one of the same kind"
            )
        raise StateError(f"expected what state_dict() returned, a dict of {sorted(KEYS)}, got {found}{advice}")
    version = state.get("version")
    if "version" in state and (type(version) is not int or version != STATE_VERSION):
        written = state.get("library")
        by = f", written by version {written} of the library" if type(written) is str else ""
        raise StateError(
            f"the state has version {version!r:.40}{by:.80}; this library, {__version__}, reads version "
            f"{STATE_VERSION}: continue with the library that wrote it, or start without a state"
        )
    missing = [key for key in KEYS if key not in state]
    if missing:
        raise StateError(f"the state is incomplete: it has no {' and no '.join(map(repr, missing))}")
    if len(state) != len(KEYS):
        raise StateError(f"the state is damaged: it has unknown keys {sorted(set(state) - set(KEYS))!r:.100}")
    found = state["digest"]
    if type(found) is not str or found != digest({key: state[key] for key in KEYS if key != "digest"}):
        raise StateError("the state is damaged: its content does not match its digest")
    if type(state["fingerprint"]) is not str:
        raise StateError("the state is damaged: its fingerprint is not a string")
    if not resharding.are_shares(state["shares"]):
        raise StateError("the state is damaged: it does not say which process it is from")


def _is_order(order: Any) -> bool:
    if type(order) is not list or len(order) != 2 or type(order[1]) is not int:
        return False
    return type(order[0]) is int and order[0] >= 0

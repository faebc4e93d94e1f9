"""Optimizer driver: applies the rules to a plan until none fires, and records which rules fired where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dataset.ops.elementwise import Elementwise
from dataset.ops.with_options import options_of
from dataset.optimize.fusion.elementwise_fusion import fusion
from dataset.optimize.fusion.map_and_batch_fusion import fuse_map_and_batch
from dataset.optimize.noop_elimination import eliminate_noop
from dataset.optimize.parallelism.inject_prefetch import inject_prefetch
from dataset.optimize.parser_rules import rule_for_parsers
from dataset.optimize.pushdown.shuffle_before_gather import shuffle_before_gather
from dataset.optimize.pushdown.slice_pushdown import push_down_slice
from dataset.optimize.rewritable_ops import rule_of_op
from dataset.optimize.rule import Rule, WholePlanRule
from dataset.optimize.vectorization.map_vectorization import vectorize_map
from dataset.options import OptimizationOptions, Options
from dataset.plan.nested import REWRITTEN_ELEMENTS_MIN, subdatasets_are_optimized_by
from dataset.plan.node import Miss, Node, inputs_first, walk
from dataset.plan.rewriting import Fired, Missed, Rewritten

RULES: dict[str, Rule] = {
    "noop_elimination": eliminate_noop,  # first, so that the other rules see the real neighbours
    "slice_pushdown": push_down_slice,
    "skip_by_seeking": rule_of_op("skip_by_seeking"),
    "repeat_pushdown": rule_of_op("repeat_pushdown"),
    "shuffle_before_gather": shuffle_before_gather,
    "parser_vectorization": rule_for_parsers("vectorize_parser"),  # before the rules that check which maps parse
    "map_vectorization": vectorize_map,
    "parser_and_batch_fusion": rule_for_parsers("fuse_parser_and_batch"),
    "parser_projection": rule_for_parsers("project_parser"),
    "map_parallelization": rule_of_op("map_parallelization"),  # only maps that do not run on columns
    "filter_parallelization": rule_of_op("filter_parallelization"),
    "parallel_batch": rule_of_op("parallel_batch"),
    "seq_interleave_prefetch": rule_of_op("seq_interleave_prefetch"),
    "map_fusion": fusion(gives_results=True, takes_results=True),  # these require equal settings
    "filter_fusion": fusion(gives_results=False, takes_results=False),
    "map_and_filter_fusion": fusion(gives_results=False, takes_results=True),
    "map_and_batch_fusion": fuse_map_and_batch,
}
"""The rules by the name of their option in ``Options().optimization``, in order."""

LAST: dict[str, WholePlanRule] = {"inject_prefetch": inject_prefetch}
"""The rules for whole plans, tried once after no other rule fires."""

_SUBDATASET_RULES = "parser_vectorization", "map_vectorization"  # the operators and their states stay the same
_SUBDATASET = "optimize_subdataset()"  # key of the result that is kept with a plan; no attribute can have this name

_ROUNDS_MAX = 100  # far more than any plan needs; stops rules that undo each other


@dataclass(frozen=True)
class Optimized(Rewritten):
    """Optimized plan, with the rules that were applied or nearly applied, and the options for running it."""

    options: Options


def optimize(plan: Node, options: OptimizationOptions | None = None) -> Optimized:
    """Return the plan with all rules applied that ``options`` allow; default, the options of the plan itself."""
    settings = options_of(plan)
    allowed = settings.optimization if options is None else options
    rewriting = _Rewriting({name: rule for name, rule in RULES.items() if allowed.allows(name)})
    plan = rewriting.until_nothing_changes(plan)
    for name, rule in LAST.items():
        if allowed.allows(name):
            plan = rewriting.taken(name, plan, rule(plan, asked_for=getattr(allowed, name) is True))
    missed = tuple(dict.fromkeys(rewriting.missed))
    return Optimized(plan, tuple(rewriting.fired), missed, rewriting.rules_in(plan), settings)


def optimize_subdataset(plan: Node, allows: Callable[[str], bool]) -> Node:
    """Return the plan of a dataset that a user function returned, with its functions on columns if they are proven.

    The other rules gain less than they cost for each dataset, and so do these for few elements. The result is kept
    with the plan, because the function may return the same dataset again.
    """
    if not any(isinstance(node, Elementwise) and _has_many_elements(node.source) for node in walk(plan)):
        return plan
    rules = {name: RULES[name] for name in _SUBDATASET_RULES if allows(name)}
    kept: tuple[Any, Node] | None = vars(plan).get(_SUBDATASET)
    if kept is not None and kept[0] == rules:
        return kept[1]
    rewritten = _Rewriting(rules).round(plan)
    vars(plan)[_SUBDATASET] = rules, rewritten
    return rewritten


def _has_many_elements(node: Node) -> bool:
    """Return whether the node may have enough elements for rewriting the op that reads it."""
    return not 0 <= node.cardinality() < REWRITTEN_ELEMENTS_MIN


subdatasets_are_optimized_by(optimize_subdataset)


class _Rewriting:
    """Run of the optimizer over a plan, and its record. ``missed`` is from the last round."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self.rules = rules
        self.fired: list[Fired] = []
        self.missed: list[Missed] = []
        self.rules_of: dict[Node, tuple[str, ...]] = {}
        """The rules that created each node; empty for nodes of the original plan."""

    def until_nothing_changes(self, plan: Node) -> Node:
        for _ in range(_ROUNDS_MAX):
            before = len(self.fired)
            self.missed = []
            plan = self.round(plan)
            if len(self.fired) == before:
                return plan
        raise RuntimeError(f"the optimizer did not terminate; the last rules were {[str(f) for f in self.fired[-4:]]}")

    def rules_in(self, plan: Node) -> dict[Node, tuple[str, ...]]:
        """Return the nodes of the plan that were created by rules, with these rules."""
        return {node: self.rules_of[node] for node in inputs_first(plan) if self.rules_of.get(node)}

    def round(self, plan: Node) -> Node:
        """Try each rule once on each node, inputs first, and return the rewritten plan."""
        rewritten: dict[Node, Node] = {}
        remote = {source for node in inputs_first(plan) if node.traits.remote for source in node.inputs}
        for node in inputs_first(plan, without=remote):
            rules = self.rules_of.setdefault(node, ())
            inputs = [rewritten.get(source, source) for source in node.inputs]
            moved = any(new is not old for new, old in zip(inputs, node.inputs, strict=True))
            found = node.with_inputs(inputs) if moved else node
            self.rules_of[found] = rules
            rewritten[node] = self._after_rules(found)
        return rewritten[plan]

    def _after_rules(self, node: Node) -> Node:
        for name, rule in self.rules.items():
            node = self.taken(name, node, rule(node))
        return node

    def taken(self, name: str, node: Node, found: Node | Miss | None) -> Node:
        """Record the result ``found`` of a rule, and return the node or its replacement."""
        if isinstance(found, Miss):
            self.missed.append(Missed(name, node.label(), node.origin, found.reason))
        elif found is not None:
            self.fired.append(Fired(name, node.label(), node.origin))
            self._note(name, node, found)
            return found
        return node

    def _note(self, rule: str, old: Node, new: Node) -> None:
        """Record which nodes a rule created, together with the rules that created the nodes they replace."""
        made = inputs_first(new, without=self.rules_of)
        kept = {source for node in made for source in node.inputs}.difference(made)
        gone = inputs_first(old, without=kept) if made else []
        earlier = {(node.label(), node.origin): self.rules_of[node] for node in gone}
        for node in made:
            self.rules_of[node] = (*earlier.get((node.label(), node.origin), ()), rule)

"""Rules for maps that parse Examples, which are imported with the parser, when it is first used."""

from __future__ import annotations

import sys
from types import FunctionType

from dataset.lazy_imports import lazy_imports
from dataset.optimize.rule import Rule
from dataset.plan.node import Miss, Node

with lazy_imports():
    from dataset.optimize.vectorization.parsers import fuse_parser_and_batch, project_parser, vectorize_parser

__all__ = ["fuse_parser_and_batch", "project_parser", "rule_for_parsers", "vectorize_parser"]


_PARSERS = frozenset({"parse_single_example", "parse_example"})


def rule_for_parsers(name: str) -> Rule:
    """Return the rule with this name in this module. It does not apply to plans in which nothing can be a parser."""

    def rule(node: Node) -> Node | Miss | None:
        function = getattr(node, "called", None)
        names = function.__code__.co_names if type(function) is FunctionType else ()
        if "dataset.io.example.parse" not in sys.modules and _PARSERS.isdisjoint(names):
            return None
        chosen: Rule = getattr(sys.modules[__name__], name)
        return chosen(node)

    return rule

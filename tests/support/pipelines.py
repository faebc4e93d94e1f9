"""Functions, elements and options that tests of many pipelines share. Those of the ops only are in op_cases.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from chains.names import options
from dataset import Dataset, Options
from dataset.optimize.driver import optimize
from dataset.plan.node import walk


class Pair(NamedTuple):
    """An element of a user's class: a named tuple."""

    x: object
    y: object


class Point(NamedTuple):
    """Another one, with the same fields."""

    x: object
    y: object


@dataclass
class Record:
    """An element of a user's class: a dataclass."""

    image: object
    label: object


def double(x: Any) -> Any:
    return x * 2


def no_rules() -> Options:
    """Return options with which no rule rewrites a pipeline."""
    options = Options()
    options.optimization.enabled = False
    return options


def switched_on(*rules: str) -> Options:
    """Return the default options, but with these rules of the optimizer on."""
    options = Options()
    for rule in rules:
        setattr(options.optimization, rule, True)
    return options


def unoptimized(dataset: Dataset[Any]) -> Dataset[Any]:
    """Return the pipeline as it is written."""
    return dataset.with_options(no_rules())


def with_options(dataset: Dataset[Any], **settings: Any) -> Dataset[Any]:
    """Return the dataset with options; a group and its option are written with two underscores between them."""
    return dataset.with_options(options(**settings))


def only(*rules: str) -> Options:
    """Return options with which only these rules rewrite a pipeline."""
    options = Options()
    for name in options.optimization.names():
        setattr(options.optimization, name, name in {"enabled", *rules})
    return options


def fired(dataset: Dataset[Any], options: Options | None = None) -> list[str]:
    """Return the names of the rules that rewrite a pipeline, in their order, with its own options or these."""
    return [one.rule for one in optimize(dataset.plan, options and options.optimization).fired]


def as_written(dataset: Dataset[Any]) -> str:
    """Return the plan that check_rule expects if no rule changes it."""
    return " <- ".join(node.label() for node in walk(dataset.plan))

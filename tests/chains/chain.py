"""A step of a chain, and a chain: the texts of expressions, what is known of their elements, and their models."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

from chains.kinds import INT
from chains.model import Model, Open, bounded, list_of
from chains.names import names_of


@dataclass(frozen=True)
class Step:
    """One op of a chain, or its source.

    Attributes:
        text: the call, as it follows the expression of its input; the expression itself, of a source.
        kind: the kind of its elements.
        model: the model of the op, or None if it has none.
        is_stateful: whether its operator has a state besides the position of its input.
        growth: about how many elements it returns for each element of its input.
        by_chance: whether the order of its elements is not deterministic.
        needs_order: whether its elements depend on the order of its input.
        keeps_order: whether the ops upstream of it keep a deterministic order because of it.
        reads_twice: whether it reads its input in several places at the same time.
    """

    text: str
    kind: Any
    model: Model | None = None
    is_stateful: bool = False
    growth: float = 1
    by_chance: bool = False
    needs_order: bool = False
    keeps_order: bool = False
    reads_twice: bool = False

    def apply(self, lib: Any, dataset: Any = None) -> Any:
        """Return the dataset of a library that follows another one."""
        text = self.text if dataset is None else f"d{self.text}"
        return eval(text, {**names_of(lib), "d": dataset})  # noqa: S307  # it is ours


@dataclass(frozen=True, repr=False)
class Chain:
    """A pipeline: its steps, of which the first is the source, and the text of its options."""

    steps: tuple[Step, ...]
    options: str = ""

    def __str__(self) -> str:
        return "".join(step.text for step in self.steps) + (f".with_options({self.options})" if self.options else "")

    __repr__ = __str__

    @property
    def kind(self) -> Any:
        return self.steps[-1].kind

    def followed_by(self, *steps: Step) -> Chain:
        return Chain((*self.steps, *steps), self.options)

    # The pipeline in a library, and in the model

    def stages(self, lib: Any) -> list[Any]:
        """Return the dataset after each step."""
        found: list[Any] = []
        for step in self.steps:
            found.append(step.apply(lib, *found[-1:]))
        return found

    def make(self, lib: Any) -> Any:
        return self.stages(lib)[-1]

    def open(self) -> Open:
        return opened(self.steps)

    def model(self, limit: int | None = None) -> list[Any]:
        """Return the expected outcomes, at most ``limit``."""
        return list(itertools.islice(self.open()(), limit))

    def prefixes(self) -> list[Chain]:
        """Return the pipeline after each step."""
        return [Chain(self.steps[:length]) for length in range(1, len(self.steps) + 1)]

    # What is known of its elements

    @property
    def by_chance(self) -> bool:
        """Whether two runs may return the elements in different orders."""
        found = False
        for step in self.steps:
            found = (found or step.by_chance) and not step.keeps_order
        return found

    @property
    def is_comparable(self) -> bool:
        """Whether two runs return the same elements, in any order.

        They may not if a cache is read in two places at the same time and elements fail: the failures are missing in
        passes that begin after the end of the first, and how many elements are requested at once decides when that is.
        They may not either if threads decide at random whether the elements that were read ahead include the end of a
        pass that is left early.
        """
        if _PASS_LEFT_EARLY.search(str(self)):
            return False
        kept = [index for index, step in enumerate(self.steps) if step.keeps_order]
        is_filled_twice = kept and any(step.reads_twice for step in self.steps[kept[0] :])
        if is_filled_twice and re.search(_PASSES_DIFFER, "".join(step.text for step in self.steps[: kept[0]])):
            return False
        found = False
        for step in self.steps:
            if found and step.needs_order:
                return False
            found = (found or step.by_chance) and not step.keeps_order
        return True

    @property
    def is_repeatable(self) -> bool:
        """Whether a pipeline that is built anew returns the same elements."""
        return "seed=None" not in str(self) and not self.by_chance

    @property
    def stores_elements(self) -> bool:
        return any(step.keeps_order for step in self.steps)

    def smaller(self) -> list[Chain]:
        """Return the chains with one op less, those with a simpler source, and the one without options."""
        found = [
            Chain(self.steps[:place] + self.steps[place + 1 :], self.options) for place in range(1, len(self.steps))
        ]
        simpler = itertools.takewhile(lambda source: source.text != self.steps[0].text, SIMPLE)
        found += [Chain((source, *self.steps[1:]), self.options) for source in simpler]
        if self.options:
            found.append(Chain(self.steps))
        return [chain for chain in found if chain.is_comparable]


_PASSES_DIFFER = "(failing|checked)"

_PASS_LEFT_EARLY = re.compile(
    _PASSES_DIFFER + r".*\.(cache|snapshot)\(.*"
    r"(parallel.*|prefetch.*)\.(take\(|take_while|zip|choose|sample).*(repeat|concatenate|resample)"
)

SIMPLE = [Step(f"Dataset.range({n})", INT) for n in (1, 2, 3, 5, 8)]


def opened(steps: tuple[Step, ...], source: Open | None = None) -> Open:
    """Return the model of several steps, or of a whole pipeline."""
    found = source or list_of([])
    for step in steps:
        assert step.model is not None, f"{step.text} has no model"
        found = bounded(step.model(found))
    return found

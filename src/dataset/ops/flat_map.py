"""flat_map(map_func): a dataset for each element, one after the other. Side by side is interleave.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.checks import require_callable
from dataset.plan.node import UnaryNode
from dataset.plan.origin import function_name
from dataset.runtime.chunk import Chunk
from dataset.runtime.inner import Inner, InnerDatasets
from dataset.runtime.iterator import probed_spec
from dataset.runtime.operator import Build, Operator, State, UnaryOperator


@dataclass(frozen=True, eq=False)
class FlatMap(UnaryNode):
    """The elements of ``function(element)``, a dataset, for each element in turn."""

    op: ClassVar[str] = "flat_map"
    calls_user_code: ClassVar[bool] = True
    spec_is_static: ClassVar[bool] = False
    opens_elements: ClassVar[bool] = True
    function: Callable[..., Any]
    in_agreement: bool = field(default=False, kw_only=True, repr=False)
    """Whether other processes run it, too, and all must give the same elements in the same order."""

    def __post_init__(self) -> None:
        require_callable(self.op, "map_func", self.function)

    def _element_spec(self) -> Any:
        return probed_spec(self)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    @property
    def separates(self) -> bool:
        return True

    def described(self) -> str:
        return f"{self.op}({function_name(self.function)})"

    def lower(self, build: Build) -> Operator:
        return FlatMapOperator(build(self.source), self.datasets(build))

    def datasets(self, build: Build) -> InnerDatasets:
        """What opens the datasets that the function returns."""
        return InnerDatasets(build, self, self.function, in_agreement=self.in_agreement)


class FlatMapOperator(UnaryOperator):
    """Holds the open inner dataset."""

    def __init__(self, source: Operator, datasets: InnerDatasets) -> None:
        super().__init__(source)
        self.datasets = datasets
        self.inner: Inner | None = None

    def pull(self, n: int) -> Chunk | None:
        while True:
            if self.inner is None:
                self.inner = self.datasets.open_next(self.source)
                if self.inner is None:
                    return None
            chunk = self.datasets.pull(self.inner, n)
            if chunk is not None:
                return chunk
            self._close_inner()

    def _close_inner(self) -> None:
        if self.inner is not None:
            self.inner.operator.close()
            self.inner = None

    def state_dict(self) -> State:
        inner = self.datasets.save(self.inner)
        return {"op": self.datasets.node.op, **super().state_dict(), "opened": self.datasets.opened, "inner": inner}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.datasets.opened = int(state["opened"])
        self.inner = self.datasets.load(state["inner"])

    def close(self) -> None:
        self._close_inner()
        super().close()

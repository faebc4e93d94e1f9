"""Source node over a dataset of another library, for methods such as from_tf: a generator with a name and a length."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.ops.sources.generator import Generator
from dataset.plan.cardinality import UNKNOWN_CARDINALITY


@dataclass(frozen=True, eq=False)
class ExternalSource(Generator):
    """Source node over ``iter(function())``; the Dataset method ``method`` guarantees its length and signature."""

    op: ClassVar[str] = "foreign"
    method: str = field(kw_only=True)
    kind: str = field(kw_only=True)
    """The kind of the underlying object, as shown in plans."""
    count: int = field(default=UNKNOWN_CARDINALITY, kw_only=True)

    def cardinality(self) -> int:
        return self.count

    def label(self) -> str:
        return f"{self.method}({self.kind})"

    def parameters(self) -> dict[str, Any]:
        return {"method": self.method, "kind": self.kind, "count": self.count, "signature": repr(self.signature)}

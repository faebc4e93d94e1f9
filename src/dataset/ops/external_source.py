"""What a dataset of another library yields, for methods such as from_tf: from_generator with a name and a length."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.ops.generator import Generator
from dataset.plan.cardinality import UNKNOWN_CARDINALITY


@dataclass(frozen=True, eq=False)
class ExternalSource(Generator):
    """The values of ``iter(function())``, as the method ``method`` has promised them: so many, of this signature."""

    op: ClassVar[str] = "foreign"
    method: str = field(kw_only=True)
    kind: str = field(kw_only=True)
    """What it was made of, as plans show it."""
    count: int = field(default=UNKNOWN_CARDINALITY, kw_only=True)

    def cardinality(self) -> int:
        return self.count

    def described(self) -> str:
        return f"{self.method}({self.kind})"

    def parameters(self) -> dict[str, Any]:
        return {"method": self.method, "kind": self.kind, "count": self.count, "signature": repr(self.signature)}

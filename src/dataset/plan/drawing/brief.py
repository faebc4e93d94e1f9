"""Brief forms of specs, sizes and times for display: ``(uint8[28, 28], int64)``, ``1.5 kB``. ``repr`` is exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dataset.plan.spec import BYTES, ComponentSpec, DatasetSpec, RaggedTensorSpec, SparseTensorSpec, flatten_spec
from dataset.plan.structure import LEAF, NONE, Structure, _Dict, _Tuple


def brief_spec(spec: Any) -> str:
    """Return the structure with the dtype and shape of each component.

    >>> from dataset import TensorSpec
    >>> brief_spec({"image": TensorSpec((None, 28, 28), "uint8"), "label": TensorSpec((), bytes)})
    '{image: uint8[?, 28, 28], label: bytes}'
    """
    structure, components = flatten_spec(spec)
    return _brief(structure, iter(components))


def _brief(structure: Structure, components: Iterator[ComponentSpec]) -> str:
    if structure is LEAF:
        return _brief_component(next(components))
    if structure is NONE:
        return "None"
    parts = [_brief(child, components) for child in structure.children]
    if isinstance(structure, _Tuple):
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    pairs = zip(structure.child_keys(), parts, strict=True)
    if isinstance(structure, _Dict):
        return "{" + ", ".join(f"{key}: {part}" for key, part in pairs) + "}"
    return f"{structure.cls.__name__}({', '.join(f'{name}={part}' for name, part in pairs)})"  # type: ignore[attr-defined]


def _brief_component(spec: ComponentSpec) -> str:
    if isinstance(spec, DatasetSpec):
        return f"Dataset of {brief_spec(spec.element_spec)}"
    kind = {RaggedTensorSpec: "ragged ", SparseTensorSpec: "sparse "}.get(type(spec), "")
    return f"{kind}{'bytes' if spec.dtype == BYTES else spec.dtype.name}{_brief_shape(spec)}"


def _brief_shape(spec: ComponentSpec) -> str:
    if spec.shape is None:
        return "[...]"
    sizes = ", ".join("?" if size is None else str(size) for size in spec.shape)
    return f"[{sizes}]" if sizes else ""


def brief_bytes(count: float) -> str:
    """Return a number of bytes with a unit, in powers of 1,000.

    >>> brief_bytes(841), brief_bytes(50_460_000)
    ('841 B', '50.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def brief_number(value: float) -> str:
    """Return a number with two significant digits, or as a whole number.

    >>> brief_number(0.1234), brief_number(1234.5)
    ('0.12', '1,234')
    """
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def brief_seconds(value: float) -> str:
    """Return a time with a unit.

    >>> brief_seconds(1.5e-5)
    '15 us'
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.0f} ns"

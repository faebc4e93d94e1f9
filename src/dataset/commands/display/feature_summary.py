"""Summary of the features of many records: their names, kinds and shapes, and what their values look like.

Records are added one by one and only aggregated, so memory does not grow with their number. It is also bounded if each
record has new feature names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from dataset.commands.display.content_type import IMAGES, RAW, TEXT, look_of, text_of
from dataset.commands.display.record_content import Values, read_message
from dataset.commands.display.terminal import counted, number, printable, size

NAMES_MAX = 1000  # further features are only counted
EXAMPLE_TEXT = 24  # characters shown of a text value


class ValueRange:
    """The range of some numbers: the smallest and the largest, both None if there are no numbers."""

    def __init__(self) -> None:
        self.min: Any = None
        self.max: Any = None

    def add(self, low: Any, high: Any) -> None:
        """Extend the range to include ``low`` and ``high``."""
        self.min = low if self.min is None else min(self.min, low)
        self.max = high if self.max is None else max(self.max, high)

    def words(self, show: Any = number) -> str:
        """Return a text such as ``5`` or ``5 to 7``."""
        if self.min is None:
            return "-"
        return str(show(self.min)) if self.min == self.max else f"{show(self.min)} to {show(self.max)}"

    def json(self, plain: Any = int) -> dict[str, Any] | None:
        """Return the range as a JSON value, with its limits converted by ``plain``."""
        return None if self.min is None else {"min": plain(self.min), "max": plain(self.max)}


class FeatureSummary:
    """Summary of one feature over many records."""

    def __init__(self, name: str, *, is_list: bool) -> None:
        self.name = name
        self.is_list = is_list
        self.records = 0
        self.kinds: Counter[str] = Counter()
        self.steps = ValueRange()
        self.values = ValueRange()  # the number of values of a feature, or of a step
        self.lengths = ValueRange()  # the lengths of bytes values
        self.numbers = ValueRange()
        self.not_finite = 0
        self.looks: Counter[str] = Counter()
        self.widths, self.heights = ValueRange(), ValueRange()
        self.text: str | None = None  # the first value that is text

    def add(self, steps: list[Values]) -> None:
        """Add the values of one record: the steps of a feature list, or one step for a feature."""
        self.records += 1
        self.steps.add(len(steps), len(steps))
        for step in steps:
            self.kinds[step.kind] += 1
            count = len(step.values)
            self.values.add(count, count)
            if step.kind == "bytes":
                self._add_bytes(step.values)
            elif count:
                self._add_numbers(np.array(step.values, np.int64 if step.kind == "int64" else np.float32))

    def _add_bytes(self, values: Iterable[bytes]) -> None:
        for value in values:
            look = look_of(value)
            self.looks[look.kind] += 1
            self.lengths.add(len(value), len(value))
            if look.width and look.height:
                self.widths.add(look.width, look.width)
                self.heights.add(look.height, look.height)
            if look.kind == TEXT and not self.text:
                self.text = text_of(value)

    def _add_numbers(self, values: Any) -> None:
        finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        self.not_finite += len(values) - len(finite)
        if len(finite):
            self.numbers.add(finite.min(), finite.max())

    def content(self) -> str:
        """Return a text that describes the values."""
        parts = []
        if self.looks:
            parts = [self._look_words(kind, count) for kind, count in self.looks.most_common(3)]
            parts.append(self.lengths.words(size) + (" each" if self.lengths.min == self.lengths.max else ""))
        elif self.numbers.min is not None:
            parts = [self.numbers.words(_number_words)]
        if self.not_finite:
            parts.append(f"{counted(self.not_finite, 'value')} not finite")
        if self.kinds["damaged"]:
            parts.append(f"damaged in {counted(self.kinds['damaged'], 'record')}")
        return ", ".join(parts) or "-"

    def _look_words(self, kind: str, count: int) -> str:
        share = "" if count == self.looks.total() else f" ({100 * count / self.looks.total():.0f}%)"
        if kind == TEXT:
            return f"text such as {_shortened(self.text or '')}{share}"
        if kind in IMAGES:
            size_words = "" if self.widths.min is None else f" {_span(self.widths)} x {_span(self.heights)}"
            return f"{kind.upper()}{size_words}{share}"
        return f"{'raw bytes' if kind == RAW else kind}{share}"

    def json(self) -> dict[str, Any]:
        """Return the summary as a JSON value; the keys are described in docs/commands.md."""
        return {
            "name": self.name,
            "feature_list": self.is_list,
            "kinds": dict(self.kinds),
            "records": self.records,
            "steps": self.steps.json() if self.is_list else None,
            "values": self.values.json(),
            "numbers": self.numbers.json(_plain),
            "not_finite": self.not_finite,
            "bytes": self.lengths.json(),
            "looks": dict(self.looks),
            "width": self.widths.json(),
            "height": self.heights.json(),
        }


class RecordsSummary:
    """Summary of the records that were inspected."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.kinds: Counter[str] = Counter()
        self.unnamed = 0  # features beyond NAMES_MAX
        self._features: dict[tuple[bool, str], FeatureSummary] = {}

    def add(self, record: bytes) -> None:
        """Add one record."""
        message = read_message(record)
        self.records += 1
        self.bytes += len(record)
        self.kinds[message.kind] += 1
        for name, values in message.features.items():
            self._add(name, [values], is_list=False)
        for name, steps in message.lists.items():
            self._add(name, steps, is_list=True)

    def _add(self, name: str, steps: list[Values], *, is_list: bool) -> None:
        feature = self._features.get((is_list, name))
        if feature is None:
            if len(self._features) >= NAMES_MAX:
                self.unnamed += 1
                return
            feature = self._features[is_list, name] = FeatureSummary(name, is_list=is_list)
        feature.add(steps)

    def features(self) -> list[FeatureSummary]:
        """Return the features sorted by name, feature lists last."""
        return [self._features[key] for key in sorted(self._features)]


def _plain(value: Any) -> int | float:
    """Convert a NumPy number to a Python number; a float32 becomes the shortest decimal number that rounds to it."""
    return int(value) if isinstance(value, np.integer) else float(str(value))


def _number_words(value: Any) -> str:
    return number(int(value)) if isinstance(value, np.integer) else f"{value:.6g}"


def _span(numbers: ValueRange) -> str:
    return f"{numbers.min}" if numbers.min == numbers.max else f"{numbers.min}-{numbers.max}"


def _shortened(text: str) -> str:
    shown = printable(text[:EXAMPLE_TEXT])
    return f'"{shown}..."' if len(text) > EXAMPLE_TEXT else f'"{shown}"'

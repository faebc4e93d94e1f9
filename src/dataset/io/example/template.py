"""Templates: records of one length that differ in nothing but their values.

Many datasets have records of few different lengths: fixed-size images and a label. Two such records have the same tags,
keys and lengths at the same places. A Template remembers these bytes of one record, in the gaps between its values. A
record of the same length with the same bytes in the gaps has its values in the same places, whatever they are; so a
few comparisons of slices replace all parsing. It is the fastest way, and the narrowest: for anything else, see
layout.py, then wire.py. What is here knows bytes and positions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from dataset.io.example.layout import Entry, entries_of

__all__ = ["Template", "Templates"]

_TEMPLATES_MAX = 128
_SEEN_MAX = 1024
_MISSES_FREE = 512
_GAPS_MAX = 64  # beyond, comparing gap by gap is no longer the fastest way


class Template:
    """The bytes between the values of one record.

    Attributes:
        places: for each key that the record has, the kind of its list, where the list begins, where the content of
            its only field begins, and where both end.
    """

    def __init__(self, record: bytes, entries: Sequence[Entry]) -> None:
        self.places: dict[bytes, tuple[int, int, int, int]] = {}
        self.gaps: list[tuple[slice, bytes]] = []
        gap_begin = 0
        for entry in entries:
            payload = entry.payload or entry.end
            self.places[entry.key] = (entry.kind, entry.content, payload, entry.end)
            gap = slice(gap_begin, payload)
            self.gaps.append((gap, record[gap]))
            gap_begin = entry.end
        self._gap_octets = [(gap, np.frombuffer(octets, np.uint8)) for gap, octets in self.gaps]

    def fits(self, record: bytes) -> bool:
        """Whether a record of the same length has its values in the same places."""
        for gap, octets in self.gaps:  # noqa: SIM110  # twice as fast as all() of a generator
            if record[gap] != octets:
                return False
        return True

    def fits_all(self, octets: npt.NDArray[np.uint8], count: int) -> bool:
        """The same for ``count`` records of that length, which lie end to end in ``octets``."""
        table = octets.reshape(count, -1)
        return all(bool((table[:, gap] == wanted).all()) for gap, wanted in self._gap_octets)


class Templates:
    """The templates for records that have a few keys, by the records' length; limited in number.

    A record is no model for a template if one of the keys has a list that is not one plain field, such as several
    values of bytes, or none.
    """

    def __init__(self, keys: Collection[bytes]) -> None:
        self._keys = frozenset(keys)
        self._by_length: dict[int, Template] = {}
        self._seen: set[int] = set()
        self._misses = 0

    def get(self, length: int) -> Template | None:
        """The template for records of ``length`` bytes, if one is known."""
        return self._by_length.get(length)

    def learn(self, record: bytes) -> Template | None:
        """Make ``record`` the model for records of its length; None if it can't be one."""
        entries = entries_of(record)
        if entries is None or len(entries) > _GAPS_MAX:
            return None
        if any(entry.payload is None and entry.key in self._keys for entry in entries):
            return None
        if len(self._by_length) >= _TEMPLATES_MAX:
            self._by_length.clear()
        template = self._by_length[len(record)] = Template(record, entries)
        return template

    def worth_learning(self, length: int) -> bool:
        """Whether a record of this length, which fitted no template, should become one: when its length comes again.

        Where lengths come again but templates don't fit, learning would be in vain; so after some hundred misses only
        few are considered.
        """
        self._misses += 1
        if self._misses > _MISSES_FREE and self._misses % 32:
            return False
        if length in self._seen:
            return True
        if len(self._seen) >= _SEEN_MAX:
            self._seen.clear()
        self._seen.add(length)
        return False

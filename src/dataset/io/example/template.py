"""Templates: fast decoding of records of equal length that differ only in their values.

Many datasets have records of few different lengths, such as fixed-size images with a label. Two such records have the
same tags, keys and lengths at the same positions. A Template stores these bytes of one record, the gaps between its
values. Another record of the same length with the same bytes in the gaps has its values at the same positions. So a few
comparisons of slices replace all parsing. This is the fastest method, and the most restricted one: for other records,
see record_layout.py, then wire.py. This module knows bytes and positions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from dataset.io.example.record_layout import Entry, entries_of

__all__ = ["Template", "Templates"]

_TEMPLATES_MAX = 128
_SEEN_MAX = 1024
_MISSES_FREE = 512
_GAPS_MAX = 64  # for more gaps, comparing them one by one is not the fastest method


class Template:
    """Template: the bytes between the values of one record.

    Attributes:
        places: for each key of the record, the kind of its list, where the list begins, where the content of its only
            field begins, and where both end.
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
        """Return whether a record of the same length has its values at the same positions."""
        for gap, octets in self.gaps:  # noqa: SIM110  # twice as fast as all() of a generator
            if record[gap] != octets:
                return False
        return True

    def fits_all(self, octets: npt.NDArray[np.uint8], count: int) -> bool:
        """Do the same for ``count`` concatenated records of that length in ``octets``."""
        table = octets.reshape(count, -1)
        return all(bool((table[:, gap] == wanted).all()) for gap, wanted in self._gap_octets)


class Templates:
    """Bounded cache of templates for a few keys, by record length.

    A record can't become a template if the list of one of the keys is not a single plain field, for example if it has
    several values of bytes, or none.
    """

    def __init__(self, keys: Collection[bytes]) -> None:
        self._keys = frozenset(keys)
        self._by_length: dict[int, Template] = {}
        self._seen: set[int] = set()
        self._misses = 0

    def get(self, length: int) -> Template | None:
        """Return the template for records of ``length`` bytes, or None."""
        return self._by_length.get(length)

    def learn(self, record: bytes) -> Template | None:
        """Create and store a template from ``record``; return None if that is not possible."""
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
        """Return whether to create a template from a record without one: when its length occurs a second time.

        If lengths repeat but templates don't fit, learning is useless. So after some hundred misses only a few records
        are considered.
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

"""What is wrong with one feature of one record, as those see it who know positions and bytes, and no names."""

from __future__ import annotations

from dataset.errors import ParseError

__all__ = ["Problem"]


class Problem(ParseError):  # noqa: N818  # never seen by users: parse.py turns it into a full sentence
    """What is wrong with one feature of one record; whoever catches it knows the feature's name."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row

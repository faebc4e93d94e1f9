"""Internal error for one feature of one record, raised by modules that do not know the feature's name."""

from __future__ import annotations

from dataset.errors import ParseError

__all__ = ["Problem"]


class Problem(ParseError):  # noqa: N818  # never seen by users: parse.py converts it to a complete message
    """Error in one feature of one record; the code that catches it adds the feature's name."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row

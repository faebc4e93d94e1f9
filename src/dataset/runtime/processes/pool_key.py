"""Owner key of worker processes that are kept between iterations."""

from __future__ import annotations


class PoolKey:
    """Owner key, held by a node of the plan and its rewritten forms; what is kept for it is released with it.

    A copy in another process is a separate owner.
    """

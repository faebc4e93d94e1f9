"""For whom something is kept between iterations."""

from __future__ import annotations


class PoolKey:
    """Held by a node of the plan and by whatever that is rewritten into; what is kept for it ends with it.

    A copy in another process is an owner of its own.
    """

"""Which process this is, and of how many: as torch.distributed, JAX or the launcher say.

No framework is imported or started for that. One that is not loaded cannot be in use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["process_rank"]

_VARIABLES = ("RANK", "WORLD_SIZE")
"""What torchrun sets, and others after it."""


def process_rank(op: str) -> tuple[int, int]:
    """(rank, world size): of torch.distributed or else JAX, if initialised; else of RANK and WORLD_SIZE; else (0, 1).

    Args:
        op: who asks, for messages.

    Raises:
        ValueError: if one of the variables is set and the other is not, or one is no number.
    """
    return _of_torch() or _of_jax() or _of_environment(op, os.environ) or (0, 1)


def _of_torch() -> tuple[int, int] | None:
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def _of_jax() -> tuple[int, int] | None:
    """As jax.distributed.initialize() was told, or has found out.

    jax.process_index() says the same, but starts the backends, for which it may be too early: so that is only asked
    where JAX does not keep the numbers where it does today.
    """
    jax: Any = sys.modules.get("jax")
    distributed = getattr(jax, "distributed", None)
    if distributed is None or not distributed.is_initialized():
        return None
    kept = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    rank, world_size = getattr(kept, "process_id", None), getattr(kept, "num_processes", None)
    if rank is None or world_size is None:
        rank, world_size = jax.process_index(), jax.process_count()
    return int(rank), int(world_size)


def _of_environment(op: str, variables: Mapping[str, str]) -> tuple[int, int] | None:
    texts = [variables.get(name) for name in _VARIABLES]
    if texts == [None, None]:
        return None
    try:
        rank, world_size = (int(text or "") for text in texts)
    except ValueError:
        found = ", ".join(f"{name}={text!r}" for name, text in zip(_VARIABLES, texts, strict=True))
        raise ValueError(
            f"{op}(): the environment must tell both RANK and WORLD_SIZE as numbers, as torchrun does, got {found}; or "
            "give rank= and world_size="
        ) from None
    return rank, world_size

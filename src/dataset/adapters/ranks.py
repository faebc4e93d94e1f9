"""The rank of this process and the world size, according to torch.distributed, JAX or the launcher.

No framework is imported or initialized to find them: a framework that is not loaded cannot be in use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

_VARIABLES = ("RANK", "WORLD_SIZE")
"""The variables that torchrun and other launchers set."""


def process_rank(op: str) -> tuple[int, int]:
    """Return the rank and the world size of this process.

    They come from torch.distributed if it is initialized, else from JAX if it is initialized, else from the variables
    RANK and WORLD_SIZE if they are set; otherwise they are (0, 1).

    Args:
        op: the caller, for messages.

    Raises:
        ValueError: if only one of the variables is set, or one is not a number.
    """
    return _of_torch() or _of_jax() or _of_environment(op, os.environ) or (0, 1)


def _of_torch() -> tuple[int, int] | None:
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def _of_jax() -> tuple[int, int] | None:
    """Return the numbers that jax.distributed.initialize() was given, or detected.

    jax.process_index() returns the same, but initializes the backends, for which it may be too early. It is called only
    if a version of JAX does not have the private attributes that are read here.
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
            f"{op}(): the environment must set both RANK and WORLD_SIZE to numbers, as torchrun does, got {found}; or "
            "pass rank= and world_size="
        ) from None
    return rank, world_size

"""Engine protocol of distribute(): how workers are started, called and ended."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from dataset.errors import ClosedError
from dataset.runtime.position import Position
from dataset.world import threading

HEARTBEAT_SECONDS = 10.0
"""A worker that has been called, and shows no sign of life for this long, is killed and replaced."""


class WorkerLostError(Exception):
    """Internal: a worker has died, hangs, or has lost its state, so that its share must be run by another one.

    Attributes:
        exit_code: the exit code of its process; None if it is unknown.
    """

    def __init__(self, reason: str, exit_code: int | None = None) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class Start(NamedTuple):
    """Request to open a share.

    Attributes:
        rank: which share.
        workers: the number of shares.
        is_counted: whether none of the elements before failed in a way that moves those after it.
        source: the position of the last operator to begin with; None for the beginning.
        skip: how many elements to skip from there.
    """

    rank: int
    workers: int
    is_counted: bool
    source: Position | None
    skip: int


class ShareReport(NamedTuple):
    """Report at the end of each reply.

    Attributes:
        position: the position after the elements of the reply; None if it was not saved this time.
        ended: whether these were the last elements of the share.
        repeats: whether the share, restored to a position, repeats its elements.
        seconds: how long the worker worked on the reply.
        cpu_seconds: the CPU time of that.
        memory: the resident memory of the worker, in bytes.
        lineages: for each outcome its lineage as saved by ``save_lineage``; None if it is unknown or not recorded.
    """

    position: Position | None
    ended: bool
    repeats: bool
    seconds: float
    cpu_seconds: float
    memory: int
    lineages: list[Any]


class StoppableEngine:
    """Base class of engines: the flag that ends them, and its lock.

    Args:
        label: names the operation in errors.
        patience: the heartbeat deadline in seconds.
    """

    def __init__(self, label: str, patience: float) -> None:
        self.label = label
        self.patience = patience
        self.lock = threading.RLock()  # reentrant: the garbage collector may call stop()
        self.stopped = False

    def check_usable(self) -> None:
        """Raise ClosedError if the engine has been stopped."""
        if self.stopped:
            raise ClosedError(f"{self.label}: its workers have been stopped")


class EngineWorker(Protocol):
    """One worker. Used by one thread at a time."""

    node: str
    """The machine on which it runs."""

    def call(self, message: Start | int) -> list[Any]:
        """Open a share, or compute up to this many elements: outcomes in order, and a ShareReport after them.

        Raises:
            WorkerLostError: if the worker is lost. It has ended then.
            ClosedError: if the engine has been stopped.
            Exception: what opening the share raised.
        """

    def end(self) -> None:
        """End the worker, which is not needed any more."""


def received(worker: EngineWorker, reply: Any) -> Any:
    """Return what a worker has replied, or raise it if it is an exception; one without memory for its work is lost."""
    try:
        if isinstance(reply, MemoryError):
            worker.end()
            raise WorkerLostError(f"ran out of memory: {reply}") from None
        if isinstance(reply, BaseException):
            raise reply
        return reply
    finally:
        del reply  # see runtime/contract.py on exceptions that are kept


class Engine(Protocol):
    """Starts the workers of one operator. All methods may be called from any thread."""

    def start(self) -> EngineWorker:
        """Start a worker; raises as ``EngineWorker.call`` does."""

    def stop(self) -> None:
        """Make all calls raise ClosedError soon. Does not wait."""

    def close(self) -> None:
        """Stop, and release everything. No call is in progress."""

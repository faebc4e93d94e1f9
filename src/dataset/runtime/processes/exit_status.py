"""Exit status of worker processes that died, and the errors that describe it."""

from __future__ import annotations

from dataclasses import dataclass

from dataset.errors import WorkerDiedError
from dataset.world import signal

_ENDED_ITSELF = "the function or a library that it uses ended the process"
_OUT_OF_MEMORY = "the system may be out of memory: reduce num_parallel_calls or the size of elements"
_HINTS: dict[int, str] = {
    signal.SIGKILL: _OUT_OF_MEMORY,
    signal.SIGSEGV: "native code called by the function crashed; the stack is on stderr",
    signal.SIGABRT: "native code called by the function aborted; the reason is often on stderr",
    signal.SIGBUS: _OUT_OF_MEMORY,
}


@dataclass(frozen=True)
class Ending:
    """How a worker process ended.

    Attributes:
        code: its exit code, negative for a signal; None if there was no process, or if the launcher had ended before.
        launcher_code: the exit code of the launcher, if it had ended before.
        reason: why there was no process.
    """

    code: int | None = None
    launcher_code: int | None = None
    reason: str = ""

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended the worker or the launcher, so that the work may be retried."""
        code = self.code if self.launcher_code is None else self.launcher_code
        return code is not None and code < 0


def worker_died(label: str, when: str, ending: Ending) -> WorkerDiedError:
    """Return the error for a dead worker of the operation ``label``.

    Args:
        label: such as ``map(decode) from train.py:41``.
        when: such as ``while it worked on element 7``.
        ending: how the worker ended.
    """
    if ending.reason:
        return WorkerDiedError(f"{label}: {ending.reason}", exit_code=None)
    if ending.launcher_code is not None:
        how = ending_words(ending.launcher_code)
        message = f"{label}: the process that starts the workers {how}, which also ended a worker {when}"
        hint = _HINTS.get(-ending.launcher_code, "")
    else:
        assert ending.code is not None  # the only remaining case
        message = f"{label}: a worker process {ending_words(ending.code)} {when}"
        hint = _ENDED_ITSELF if ending.code >= 0 else _HINTS.get(-ending.code, "")
    return WorkerDiedError(f"{message}; {hint}" if hint else message, exit_code=ending.code)


def ending_words(code: int) -> str:
    """Describe how a process with this exit code ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-code}"
